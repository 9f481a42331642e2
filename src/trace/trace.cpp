// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <trace/trace.hpp>

#include <algorithm>
#include <array>

namespace hf::trace {

std::atomic<bool> detail::heard{false};

namespace {
std::array<std::atomic<listener>, listeners_max> listeners{};
}

void listen(listener to) {
    const auto place = std::ranges::find(listeners, nullptr, [](auto& l) { return l.load(); });
    HF_ASSERT(place != listeners.end());
    *place = to;
    detail::heard = true;
}

void leave(listener to) noexcept {
    const auto place = std::ranges::find(listeners, to, [](auto& l) { return l.load(); });
    HF_ASSERT(place != listeners.end());
    *place = nullptr;
    detail::heard = std::ranges::any_of(listeners, [](auto& l) { return l.load() != nullptr; });
}

void detail::tell(const event& what, const void* address, std::size_t bytes) {
    for (auto& place : listeners)
        if (const listener to = place.load(std::memory_order_relaxed); to != nullptr)
            to(what, address, bytes);
}

} // namespace hf::trace
