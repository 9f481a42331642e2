// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engines that a program's failure-atomic functions are built for: the meaning of an empty
// open_options::engines. Nothing here links an engine: a program with functions of an engine calls
// it, and so links it.
#include <base/engines.hpp>
#include <open/engine.hpp>
#include <open/program_engines.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs)                                      \
    namespace hf::name {                                                                           \
    [[gnu::weak]] engine_ptr engine() noexcept;                                                    \
    }
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW

namespace hf {

std::vector<engine_ptr> linked_engines() {
    std::vector<engine_ptr> found;
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs)                                      \
    if constexpr (bit != 0)                                                                        \
        if (name::engine != nullptr) found.push_back(name::engine());
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
    return found;
}

std::vector<engine_ptr> engines_of_program() {
    const std::uint32_t used = registry::engines_of_functions();
    std::vector<engine_ptr> found = linked_engines();
    std::erase_if(found, [&](const engine_ptr& e) { return (e->bit() & used) == 0; });
    return found;
}

status check_program(const std::string& path, bool fenced, std::uint32_t given) {
    const std::uint32_t with_sections = bits_with_sections(given);
    const std::uint32_t used = registry::engines_that_run(fenced);
    if (with_sections == 0 || used == 0 || (with_sections & used) != 0) return {};
    return refusal(
        path, errc::bad_argument,
        fmt::format(
            "open_options::engines: expected {}, which this program's failure-atomic functions "
            "run on here, found {}: leave it empty, which means the build's, or name those beside "
            "others (hf::engines_of_build()); or build them for {} "
            "(holdfast_instrument(target ENGINE ...), --holdfast-engine=...); where a crash has "
            "left a section of {}, give both",
            engine_names(used), engine_names(with_sections), engine_names(with_sections),
            engine_names(with_sections)));
}

} // namespace hf
