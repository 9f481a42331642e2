// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/names.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <iterator>
#include <string_view>

namespace hf {
namespace {

constexpr std::string_view closure_begin = "auto hf::detail::run<",
                           closure_end = ">(void const*, hf::detail::recorded<";

} // namespace

const char* readable_name(const char* linker_name) noexcept {
    // Not a thread's own: a library that is loaded late finds little room for such variables. Each
    // of a message's few names stays until many other names have been asked for.
    static constinit char texts[64][512]{};
    static constinit std::atomic<unsigned> turn{0};
    auto& text = texts[turn.fetch_add(1, std::memory_order_relaxed) % std::size(texts)];
    if (std::strncmp(linker_name, "_Z", 2) != 0) return linker_name;
    int failed = 0;
    char* const whole = abi::__cxa_demangle(linker_name, nullptr, nullptr, &failed);
    if (whole == nullptr) return linker_name;
    std::string_view shown(whole);
    if (shown.starts_with(closure_begin)) {
        shown.remove_prefix(closure_begin.size());
        shown = shown.substr(0, shown.find(closure_end));
    }
    shown = shown.substr(0, sizeof text - 1);
    std::memcpy(text, shown.data(), shown.size());
    text[shown.size()] = 0;
    std::free(whole);
    return text;
}

bool is_closure(const char* linker_name) noexcept {
    return std::string_view(linker_name).starts_with("_ZN2hf6detail3runI");
}

} // namespace hf
