// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The run of recovery under way: it decides the lines that it reads, and records its writes.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <check/explorer_frame.hpp>

#include <algorithm>
#include <cstring>

namespace hf::check {
namespace {

/// Does 'content' agree with 'other' on the bytes of [from, to) of their line?
bool same_bytes(const line_content& content, const line_content& other, std::size_t from,
                std::size_t to) {
    return std::memcmp(reinterpret_cast<const std::byte*>(content.data()) + from,
                       reinterpret_cast<const std::byte*>(other.data()) + from, to - from) == 0;
}

std::size_t words_apart(const line_content& a, const line_content& b) {
    std::size_t apart = 0;
    for (std::size_t w = 0; w < a.size(); ++w) apart += a[w] != b[w] ? 1 : 0;
    return apart;
}

} // namespace

void explorer::recovered() noexcept {
    if (current_ != nullptr && recording_) looked_from_ = current_->recovery.events.size();
}

void explorer::wants(const legal_set& states) {
    if (current_ == nullptr) return;
    looked_from_ = no_look;
    if (!recording_) return;
    current_->wanted.push_back(states);
    record(event_kind::legal, current_->wanted.size(), 0, nullptr);
}

void explorer::closed() {
    if (current_ == nullptr) return;
    looked_from_ = no_look;
    record(event_kind::closed, 0, 0, nullptr);
}

bool explorer::found_closed() const noexcept { return current_ != nullptr && current_->closed; }
bool explorer::found_sealed() const noexcept {
    return found_closed() && current_->after == closing::sealed;
}

unsigned explorer::failures_before() const noexcept {
    return current_ == nullptr ? 0 : current_->level + 1;
}

bool explorer::killed() const noexcept { return current_ != nullptr && current_->killed; }

std::uint32_t explorer::pick(std::uint32_t options) {
    if (current_ == nullptr || options < 2) return 0;
    const std::uint32_t picked = choose(*current_, options);
    picked_ = checksum(&picked, sizeof picked, picked_ + 1);
    return picked;
}

bool explorer::undecided(std::size_t line) const noexcept {
    return current_->open[line] != 0 && decided_[line] != run_;
}

std::uint32_t explorer::choose(frame& f, std::uint32_t options) {
    if (f.choices_made == f.choices.size()) f.choices.push_back({0, options});
    frame::choice& made = f.choices[f.choices_made++];
    made.options = std::max(options, made.taken + 1);
    return std::min(made.taken, options - 1);
}

void explorer::decide(std::size_t line, const line_content& content) {
    decided_[line] = run_;
    std::erase(unmet_, line);
    // Looks of a close, or of an open after it, must not change which failures are explored.
    const bool counts = closing_ == closing::never && current_->after == closing::never;
    for (unsigned level = 0; counts && level < current_->level; ++level)
        frames_[level]->looked_at[line] = true;
    if (dirtied_[line] != run_) {
        dirtied_[line] = run_;
        dirty_lines_.push_back(line);
    }
    if (overlaid_[line] == run_) { // recovery has stored to it: that stays
        std::byte* to = place_of(line);
        const auto* from = reinterpret_cast<const std::byte*>(content.data());
        for (std::size_t i = 0; i < line_bytes; ++i)
            if ((overlay_[line] >> i & 1) == 0) to[i] = from[i];
    } else set_memory(line, content);
    decisions_.emplace_back(line, content);
    if (current_->killed) return; // nothing has been settled by that
    record(event_kind::decided, touched_[line] * line_bytes, line_bytes, content.data());
}

/// The first choice is the newest content: the fewest stores lost.
void explorer::decide_by_choice(std::size_t line) {
    if (current_->killed) return decide(line, current_->newest(line));
    const auto& contents = current_->contents_of(line);
    const auto n = static_cast<std::uint32_t>(contents.size());
    const std::uint32_t back = n == 1 ? 0 : choose(*current_, n);
    decide(line, contents[n - 1 - back]);
}

void explorer::load(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t at = offset / line_bytes; at <= (offset + bytes - 1) / line_bytes; ++at) {
        if (number_of_[at] == 0) continue;
        const std::size_t line = number_of_[at] - 1;
        if (undecided(line) && !stored_over(line, offset, bytes)) decide_by_choice(line);
    }
}

/// Bits of the bytes of [offset, offset + bytes) that lie in the line.
std::uint64_t explorer::bytes_in_line(std::size_t line, std::size_t offset,
                                      std::size_t bytes) const {
    const std::size_t start = touched_[line] * line_bytes;
    const std::size_t from = std::max(offset, start) - start;
    const std::size_t to = std::min(offset + bytes, start + line_bytes) - start;
    const std::uint64_t below = to == line_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
    return below & ~((std::uint64_t{1} << from) - 1);
}

/// Recovery reads only what it has stored itself.
bool explorer::stored_over(std::size_t line, std::size_t offset, std::size_t bytes) const {
    return overlaid_[line] == run_ && (bytes_in_line(line, offset, bytes) & ~overlay_[line]) == 0;
}

/// Upholds (4).
void explorer::checked(std::size_t offset, std::size_t bytes, bool goes_on) {
    if (current_ == nullptr) return;
    if (options_.every_combination || current_->killed) return load(offset, bytes);
    if (!goes_on) chain_ = chain::unmet;
    struct part {
        std::size_t line;
        std::vector<const line_content*> same, other; // as the newest on the range's bytes, or not
    };
    std::vector<part> parts;
    std::uint32_t others = 0;
    for (std::size_t l = offset / line_bytes; l <= (offset + bytes - 1) / line_bytes; ++l) {
        if (number_of_[l] == 0) continue;
        const std::size_t line = number_of_[l] - 1;
        if (!undecided(line)) continue;
        if (overlaid_[line] == run_) {
            decide_by_choice(line);
            continue;
        }
        const std::size_t start = l * line_bytes;
        const std::size_t from = std::max(offset, start) - start;
        const std::size_t to = std::min(offset + bytes, start + line_bytes) - start;
        part p{line, {}, {}};
        const auto& contents = current_->contents_of(line);
        for (std::size_t i = contents.size(); i-- > 0;) // newest first
            (same_bytes(contents[i], contents.back(), from, to) ? p.same : p.other)
                .push_back(&contents[i]);
        // Keeps of those the oldest, and those that miss one word: what others miss, one of these
        // misses, too.
        std::erase_if(p.other, [&](const line_content* c) {
            return c != p.other.back() && words_apart(*c, contents.back()) > 1;
        });
        others += static_cast<std::uint32_t>(p.other.size());
        parts.push_back(std::move(p));
    }
    if (parts.empty()) return;
    // For a chain: all lines newest; one line in one older content; or all lines oldest.
    const bool chooses = others > 0 && (chain_ == chain::unmet || chain_ == chain::newest);
    const bool may_be_oldest = chain_ == chain::unmet;
    const std::uint32_t way = chooses ? choose(*current_, 1 + others + may_be_oldest) : 0;
    if (chooses)
        chain_ = way == 0 ? chain::newest : way <= others ? chain::one_older : chain::oldest;
    std::uint32_t first = 1;
    for (const part& p : parts) {
        const auto n = static_cast<std::uint32_t>(p.other.size());
        const line_content* content = nullptr;
        if (chain_ == chain::oldest) content = p.other.empty() ? p.same.back() : p.other.back();
        else if (way >= first && way < first + n) content = p.other[way - first];
        else {
            const auto free = static_cast<std::uint32_t>(p.same.size());
            content = p.same[free == 1 ? 0 : choose(*current_, free)];
        }
        first += n;
        decide(p.line, *content);
    }
}

void explorer::record(event_kind kind, std::size_t offset, std::size_t bytes, const void* data) {
    if (!recording_) return;
    event_record& out = current_->recovery;
    out.events.push_back({kind, thread_, static_cast<std::uint32_t>(offset),
                          static_cast<std::uint32_t>(bytes),
                          static_cast<std::uint32_t>(out.data.size()), reported_place()});
    if (data == nullptr) return;
    const auto* from = static_cast<const std::byte*>(data);
    out.data.insert(out.data.end(), from, from + bytes);
}

/// A store that has been made. The rest of an undecided line stays undecided.
void explorer::written(std::size_t offset, std::size_t bytes, event_kind kind) {
    for (std::size_t at = offset, end = offset + bytes; at < end;) {
        const std::size_t line = touched(at / line_bytes);
        const std::size_t n = std::min(end, round_down(at, line_bytes) + line_bytes) - at;
        if (undecided(line)) {
            if (overlaid_[line] != run_) overlay_[line] = 0;
            overlaid_[line] = run_;
            overlay_[line] |= bytes_in_line(line, at, n);
        }
        if (dirtied_[line] != run_) {
            dirtied_[line] = run_;
            dirty_lines_.push_back(line);
        }
        record(kind, at, n, memory_.data() + at);
        at += n;
    }
}

void explorer::store(std::size_t offset, std::size_t bytes) {
    if (current_ != nullptr) written(offset, bytes, event_kind::store);
}
void explorer::nt_store(std::size_t offset, std::size_t bytes) {
    if (current_ != nullptr) written(offset, bytes, event_kind::nt_store);
}
void explorer::flush(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t line = offset / line_bytes; line <= (offset + bytes - 1) / line_bytes; ++line)
        record(event_kind::flush, line * line_bytes, line_bytes, nullptr);
}
void explorer::flush_now(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t line = offset / line_bytes; line <= (offset + bytes - 1) / line_bytes; ++line)
        record(event_kind::flush_now, line * line_bytes, line_bytes, nullptr);
}
void explorer::fence() {
    if (current_ != nullptr) record(event_kind::fence, 0, 0, nullptr);
}

} // namespace hf::check
