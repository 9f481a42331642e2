// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <check/explorer_frame.hpp>

#include <algorithm>
#include <cstring>

namespace hf::check {

/// The number of a line of memory that may differ from now on.
std::size_t explorer::touched(std::size_t line_of_memory) {
    std::uint32_t& number = number_of_[line_of_memory];
    if (number != 0) return number - 1;
    touched_.push_back(line_of_memory);
    number = static_cast<std::uint32_t>(touched_.size());
    line_content content; // as it was, in every frame
    std::memcpy(content.data(), before_.data() + line_of_memory * line_bytes, line_bytes);
    digests_before_.push_back(digest_of(number - 1, {content}));
    for (auto& f : frames_) {
        f->memory.extend(content);
        f->image.push_back(content);
        f->open.push_back(0);
        f->digests.push_back(0);
        f->looked_at.push_back(false);
    }
    for (auto* stamps : {&decided_, &dirtied_, &overlaid_}) stamps->push_back(0);
    overlay_.push_back(0);
    return number - 1;
}

void explorer::stored(frame& f, const trace_event& e, std::size_t at, const std::byte* data,
                      std::size_t n) {
    const bool plain = e.kind == event_kind::store;
    const std::size_t line = touched(e.offset / line_bytes);
    const std::size_t within = e.offset % line_bytes + at;
    const auto store = [&](persistent_memory& to, std::size_t offset) {
        if (plain) to.store(offset, data + at, n);
        else to.nt_store(e.thread, offset, data + at, n);
    };
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return store(f.memory, line * line_bytes + within);
    unknown_line& u = found->second;
    if (u.stored_over.empty())
        for (const line_content& base : u.bases)
            u.stored_over.emplace_back(domain_, std::as_bytes(std::span(base)));
    for (persistent_memory& m : u.stored_over) store(m, within);
}

void explorer::flushed(frame& f, unsigned thread, std::size_t line) {
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return f.memory.flush(thread, line);
    for (persistent_memory& m : found->second.stored_over) m.flush(thread, 0);
}

void explorer::flushed_now(frame& f, std::size_t line) {
    ++f.epoch;
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) f.memory.flush_now(line);
    else
        for (persistent_memory& m : found->second.stored_over) m.flush_now(0);
    refresh_line(f, line);
}

void explorer::fenced(frame& f, unsigned thread) {
    ++f.epoch;
    const std::vector<std::size_t> open = f.memory.open_lines();
    f.memory.fence(thread);
    for (std::size_t l : open) refresh_line(f, l);
    for (auto& [line, u] : f.unknown) {
        if (u.stored_over.empty()) continue;
        for (persistent_memory& m : u.stored_over) m.fence(thread);
        refresh_line(f, line);
    }
}

/// Recovery has looked at the line: it was this content.
void explorer::decided(frame& f, std::size_t line, const std::byte* data) {
    ++f.epoch;
    line_content content;
    std::memcpy(content.data(), data, line_bytes);
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) { // certain; but new to the run before, so that the look counts
        HF_ASSERT_SLOW(possible(f, line) == std::vector{content});
        return;
    }
    unknown_line& u = found->second;
    const auto base = std::ranges::find(u.bases, content) - u.bases.begin();
    HF_ASSERT(static_cast<std::size_t>(base) < u.bases.size());
    if (u.stored_over.empty()) {
        f.memory.settle(line, content);
        f.unknown.erase(line);
    } else {
        u.stored_over = {persistent_memory(u.stored_over[static_cast<std::size_t>(base)])};
        u.bases = {content};
    }
    refresh_line(f, line);
}

std::vector<line_content> explorer::possible(const frame& f, std::size_t line) {
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return f.memory.possible(line);
    if (found->second.stored_over.empty()) return found->second.bases;
    std::vector<line_content> out;
    for (const persistent_memory& m : found->second.stored_over)
        for (const line_content& c : m.possible(0))
            if (std::ranges::find(out, c) == out.end()) out.push_back(c);
    // The newest of the last base, which recovery has been shown, stays the last.
    const line_content newest = found->second.stored_over.back().newest(0);
    std::erase(out, newest);
    out.push_back(newest);
    return out;
}

/// Takes over the model's state of the line; returns its possible contents.
std::vector<line_content> explorer::refresh_line(frame& f, std::size_t line) {
    std::vector<line_content> possible = explorer::possible(f, line);
    f.digest ^= f.digests[line];
    f.digest ^= f.digests[line] = digest_of(line, possible) ^ digests_before_[line];
    if (f.image[line] != possible.front()) { // (5)
        f.image[line] = possible.front();
        f.changed.push_back(line);
        set_memory(line, possible.front());
    }
    // A look at a new line must be noticed, even if it has no choices.
    const bool unmet = std::ranges::find(f.unmet, line) != f.unmet.end();
    if (possible.size() == 1 && !unmet) f.open[line] = 0;
    else {
        if (f.open[line] == 0) {
            f.contents.emplace_back();
            f.open[line] = static_cast<std::uint32_t>(f.contents.size());
        }
        f.contents[f.open[line] - 1] = possible;
    }
    return possible;
}

void explorer::set_memory(std::size_t line, const line_content& content) {
    std::memcpy(place_of(line), content.data(), line_bytes);
}

} // namespace hf::check
