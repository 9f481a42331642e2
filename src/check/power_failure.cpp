// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <check/power_failure.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace hf::check {
namespace {
power_failure* watching = nullptr;
}

power_failure::power_failure(std::byte* base, std::vector<std::byte> image,
                             std::function<void()> at_event)
    : base_(base), lines_(image.size() / line_bytes), at_event_(std::move(at_event)) {
    HF_ASSERT(watching == nullptr);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        lines_[i].versions.resize(1);
        std::memcpy(lines_[i].versions[0].data(), image.data() + i * line_bytes, line_bytes);
    }
    watching = this;
    persist::set_trace_hook(on_event);
}

power_failure::~power_failure() {
    persist::set_trace_hook(nullptr);
    watching = nullptr;
}

void power_failure::on_event(persist::event what, const void* address, std::size_t bytes) {
    watching->record(what, address, bytes);
}

/// Adds a version to every line that has changed (1).
void power_failure::observe() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const std::byte* now = base_ + i * line_bytes;
        auto& versions = lines_[i].versions;
        if (std::memcmp(now, versions.back().data(), line_bytes) == 0) continue;
        line torn = versions.back();
        std::size_t changed = 0, kept = 0;
        for (std::size_t w = 0; w < line_bytes; w += word_bytes) {
            if (std::memcmp(torn.data() + w, now + w, word_bytes) == 0) continue;
            ++changed;
            if (tearing_() % 2 == 0) continue;
            std::memcpy(torn.data() + w, now + w, word_bytes);
            ++kept;
        }
        if (kept > 0 && kept < changed) versions.push_back(torn);
        versions.emplace_back();
        std::memcpy(versions.back().data(), now, line_bytes);
    }
}

void power_failure::record(persist::event what, const void* address, std::size_t bytes) {
    observe();
    ++events_;
    const auto* at = static_cast<const std::byte*>(address);
    if (what == persist::event::fence) {
        for (std::size_t i : flushed_lines_) {
            line_state& l = lines_[i];
            l.versions.erase(l.versions.begin(),
                             l.versions.begin() + static_cast<std::ptrdiff_t>(l.flushed));
            l.durable = l.flushed = 0;
        }
        flushed_lines_.clear();
    } else if (what != persist::event::store && at >= base_ &&
               at < base_ + lines_.size() * line_bytes) {
        const auto first = static_cast<std::size_t>(at - base_) / line_bytes;
        const auto last = std::min(static_cast<std::size_t>(at + bytes - 1 - base_) / line_bytes,
                                   lines_.size() - 1);
        for (std::size_t i = first; i <= last; ++i) {
            if (lines_[i].flushed == 0) flushed_lines_.push_back(i);
            lines_[i].flushed = lines_[i].versions.size() - 1;
        }
    }
    if (at_event_) at_event_();
}

std::vector<std::byte> power_failure::image(std::mt19937_64& random) {
    observe();
    std::vector<std::byte> out(lines_.size() * line_bytes);
    // Mostly old, mostly new, or mixed: extremes find more than even odds do.
    const auto odds = random() % 4;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const line_state& l = lines_[i];
        const std::size_t newest = l.versions.size() - 1;
        std::size_t chosen = l.durable + random() % (newest - l.durable + 1);
        if (odds == 0 && random() % 8 != 0) chosen = l.durable;
        if (odds == 1 && random() % 8 != 0) chosen = newest;
        std::memcpy(out.data() + i * line_bytes, l.versions[chosen].data(), line_bytes);
    }
    return out;
}

} // namespace hf::check
