// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/engines.hpp>

#include <holdfast/engines.hpp>

#define HF_ENGINE_ROW(name, bit, sections, verb)                                                   \
    namespace hf::name {                                                                           \
    const hf::engine* engine() noexcept;                                                           \
    }
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW

namespace hf {

std::vector<const engine*> all_engines() {
    std::vector<const engine*> all;
#define HF_ENGINE_ROW(name, bit, sections, verb)                                                   \
    if constexpr (bit != 0) all.push_back(name::engine());
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
    return all;
}

} // namespace hf
