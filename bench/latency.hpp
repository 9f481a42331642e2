// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that this machine does not have, as a model of what a fence waits for.
#pragma once

#include <holdfast/author/persist.hpp>

#include <optional>
#include <string_view>

namespace hf::bench {

/// optane: 353 ns for one line; a further one adds 18 % of that (MOD §3's fit: 82 % parallel). cxl,
/// cxl-far: the same shape with 600 and 2300 ns, the ends of what is published for memory behind
/// CXL. stt-ram, pcm: the same shape with the longest writes of SIMPO's Table 1, 100 and 220 ns; a
/// fence takes longer than the former on most machines already.
inline std::optional<persist::latency_model> latency_model_of(std::string_view name) {
    constexpr double serial = 0.18;
    if (name == "optane") return persist::latency_model{353, 353 * serial};
    if (name == "cxl") return persist::latency_model{600, 600 * serial};
    if (name == "cxl-far") return persist::latency_model{2300, 2300 * serial};
    if (name == "stt-ram") return persist::latency_model{100, 100 * serial};
    if (name == "pcm") return persist::latency_model{220, 220 * serial};
    return std::nullopt;
}

} // namespace hf::bench
