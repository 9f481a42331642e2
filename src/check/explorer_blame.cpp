// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a violation says: which stores are missing, and the last thing that changed anything.
#include <base/line.hpp>
#include <check/explorer_frame.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::check {

void explorer::report(frame& f, const std::string& what) {
    violation v;
    v.what = what;
    for (unsigned level = 0; level <= f.level; ++level) {
        const frame& of = *frames_[level];
        failure_point p{of.event, {}, of.part, of.killed, of.after};
        for (std::size_t i = 0; i < of.choices_made; ++i) p.choices.push_back(of.choices[i].taken);
        v.at.push_back(std::move(p));
    }
    if (const event_record& first = *frames_[0]->explored; !first.events.empty())
        v.last = first.events[frames_[0]->event].place;
    v.last_event = frames_[0]->event;
    v.last_change = last_change();
    for (const auto& [line, content] : decisions_)
        if (!f.killed && content != f.contents_of(line).back())
            v.missing.push_back(lost_of(f, touched_[line], content));
    result_.violations.push_back(std::move(v));
}

/// The oldest store to the line that is missing in the kept content. Stores that changed nothing
/// are neither missing nor there.
missing_line explorer::lost_of(const frame& f, std::size_t line, const line_content& kept) const {
    const bool killed_before = f.level > 0 && frames_[f.level - 1]->killed;
    struct step {
        const trace_event* e;
        const std::byte* data;
        unsigned level;
    };
    std::vector<step> steps; // events since it was certain what had persisted
    for (unsigned level = killed_before ? f.level - 1 : f.level; level <= f.level; ++level) {
        const event_record& run = *frames_[level]->explored;
        for (std::size_t i = 0; i < std::min(frames_[level]->event + 1, run.events.size()); ++i)
            if (const trace_event& e = run.events[i]; e.offset / line_bytes == line)
                steps.push_back({&e, run.data.data() + e.data, level});
    }
    line_content now{};
    bool known = f.level == 0 || killed_before; // else, until somebody looked, any of several
    std::memcpy(now.data(), before_.data() + line * line_bytes, line_bytes);
    auto* bytes = reinterpret_cast<std::byte*>(now.data());
    std::vector<std::size_t> changes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const trace_event& e = *steps[i].e;
        const bool stored = e.kind == event_kind::store || e.kind == event_kind::nt_store;
        if (!stored && e.kind != event_kind::decided) continue;
        const std::size_t at = e.offset % line_bytes;
        if (stored && (!known || std::memcmp(bytes + at, steps[i].data, e.bytes) != 0))
            changes.push_back(i);
        std::memcpy(bytes + at, steps[i].data, e.bytes);
        known |= e.kind == event_kind::decided;
    }
    missing_line m{line, f.level, {}, 0, 0, false};
    const auto* there = reinterpret_cast<const std::byte*>(kept.data());
    std::size_t lost = steps.size();
    for (std::size_t i = changes.size(); i-- > 0;) {
        const auto& [e, data, level] = steps[changes[i]];
        if (std::memcmp(there + e->offset % line_bytes, data, e->bytes) == 0) break;
        lost = changes[i];
        m.level = level;
        m.lost = e->place;
        m.lost_offset = e->offset;
        m.lost_bytes = e->bytes;
    }
    for (std::size_t i = lost; i < steps.size(); ++i)
        m.flushed |= steps[i].e->kind == event_kind::flush;
    return m;
}

/// The last change of the run before the first failure; no change: ~0.
std::size_t explorer::last_change() const {
    const frame& f = *frames_[0];
    const event_record& run = *f.explored;
    std::vector<std::byte> now(before_.begin(), before_.end());
    std::size_t last = ~std::size_t{0};
    for (std::size_t i = 0; i < std::min(f.event + 1, run.events.size()); ++i) {
        const trace_event& e = run.events[i];
        if (e.kind != event_kind::store && e.kind != event_kind::nt_store) continue;
        const std::byte* data = run.data.data() + e.data;
        if (std::memcmp(now.data() + e.offset, data, e.bytes) != 0) last = i;
        std::memcpy(now.data() + e.offset, data, e.bytes);
    }
    return last;
}

} // namespace hf::check
