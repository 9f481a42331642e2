// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/persistent_memory.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace hf::check {
namespace {

constexpr std::size_t words_per_line = line_bytes / word_bytes;
constexpr std::uint64_t never = ~std::uint64_t{0};
// Combinations of unordered words that possible() enumerates for one version of a line.
constexpr std::size_t combinations_max = 256;

void add_unique(std::vector<line_content>& to, const line_content& content) {
    if (std::ranges::find(to, content) == to.end()) to.push_back(content);
}

} // namespace

persistent_memory::persistent_memory(domain d, std::span<const std::byte> durable)
    : domain_(d), settled_(durable.size() / line_bytes), slot_(settled_.size()) {
    HF_ASSERT(durable.size() % line_bytes == 0);
    if (!durable.empty()) std::memcpy(settled_.data(), durable.data(), durable.size());
}

void persistent_memory::extend(const line_content& durable) {
    settled_.push_back(durable);
    slot_.push_back(0);
}

persistent_memory::open_line* persistent_memory::find(std::size_t line) noexcept {
    return slot_[line] == 0 ? nullptr : &open_[slot_[line] - 1];
}
const persistent_memory::open_line* persistent_memory::find(std::size_t line) const noexcept {
    return slot_[line] == 0 ? nullptr : &open_[slot_[line] - 1];
}

persistent_memory::open_line& persistent_memory::opened(std::size_t line) {
    if (open_line* found = find(line)) return *found;
    open_lines_.push_back(line);
    open_.push_back({.versions = {settled_[line]}, .first = 0, .nt = {}, .torn = {}, .stored = {}});
    slot_[line] = static_cast<std::uint32_t>(open_.size());
    return open_.back();
}

void persistent_memory::close(std::size_t line) {
    const std::uint32_t at = slot_[line] - 1;
    settled_[line] = open_[at].versions.front();
    slot_[line] = 0;
    if (at + 1 < open_.size()) {
        open_[at] = std::move(open_.back());
        open_lines_[at] = open_lines_.back();
        slot_[open_lines_[at]] = at + 1;
    }
    open_.pop_back();
    open_lines_.pop_back();
    for (auto& of_thread : flushes_)
        std::erase_if(of_thread, [&](const pending_flush& f) { return f.line == line; });
}

void persistent_memory::close_if_settled(std::size_t line) {
    if (const open_line* l = find(line); l && l->versions.size() == 1 && l->nt.empty()) close(line);
}

line_content persistent_memory::newest_of(const open_line& of) {
    line_content out = of.versions.back();
    for (const nt_word& n : of.nt)
        if (n.superseded == never) out[n.word] = n.value;
    return out;
}

line_content persistent_memory::newest(std::size_t line) const {
    const open_line* l = find(line);
    return l == nullptr ? settled_[line] : newest_of(*l);
}

void persistent_memory::add_version(open_line& of, const line_content& content, unsigned changed) {
    const std::uint64_t number = of.first + of.versions.size();
    for (nt_word& n : of.nt)
        if ((changed >> n.word & 1) != 0 && n.superseded == never) n.superseded = number;
    for (std::size_t w = 0; w < words_per_line; ++w)
        if ((changed >> w & 1) != 0) of.stored[w] = number;
    of.versions.push_back(content);
}

/// A store of several words, in part: its first words, or its last.
void persistent_memory::add_torn(open_line& of, const line_content& wanted, unsigned changed) {
    std::vector<unsigned> parts;
    unsigned first = 0;
    for (std::size_t w = 0; w < words_per_line; ++w) {
        if ((changed >> w & 1) == 0) continue;
        first |= 1u << w;
        if (first == changed) break;
        for (const unsigned part : {first, changed & ~first})
            if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
    }
    const line_content before = of.versions.back();
    const std::uint64_t whole = of.first + of.versions.size() + parts.size();
    for (const unsigned part : parts) {
        line_content content = before;
        for (std::size_t w = 0; w < words_per_line; ++w)
            if ((part >> w & 1) != 0) content[w] = wanted[w];
        of.torn.push_back({of.first + of.versions.size(), whole, part});
        of.versions.push_back(content);
    }
}

/// Words in the mask 'changed' take their values of 'wanted'.
void persistent_memory::store_words(std::size_t line, const line_content& wanted,
                                    unsigned changed) {
    if (domain_ != domain::adr && find(line) == nullptr) { // (4)
        settled_[line] = wanted;
        return;
    }
    open_line& l = opened(line);
    line_content after = l.versions.back();
    for (std::size_t w = 0; w < words_per_line; ++w)
        if ((changed >> w & 1) != 0) after[w] = wanted[w];
    if (std::popcount(changed) > 1) add_torn(l, wanted, changed);
    add_version(l, after, changed);
    if (domain_ != domain::adr) drop_before(l, l.first + l.versions.size() - 1); // (4)
    close_if_settled(line);
}

/// A store that changes nothing is still a store. Returns the words in which it must count, because
/// a non-temporal store to them has not settled, and notes the order of the others.
unsigned persistent_memory::note_unchanged(open_line& of, std::size_t from_word,
                                           std::size_t to_word, unsigned changed) {
    for (const nt_word& n : of.nt)
        if (n.superseded == never && n.word >= from_word && n.word <= to_word)
            changed |= 1u << n.word;
    // Behind a store of several words, this store comes after all of them.
    const std::uint64_t newest = of.first + of.versions.size() - 1;
    if (std::ranges::find(of.torn, newest, &torn_version::whole) != of.torn.end())
        of.versions.push_back(line_content(of.versions.back()));
    for (std::size_t w = from_word; w <= to_word; ++w)
        if ((changed >> w & 1) == 0) of.stored[w] = of.first + of.versions.size() - 1;
    return changed;
}

void persistent_memory::store(std::size_t offset, const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    while (count > 0) {
        const std::size_t line = offset / line_bytes, within = offset % line_bytes;
        const std::size_t n = std::min(count, line_bytes - within);
        const line_content now = newest(line);
        line_content wanted = now;
        std::memcpy(reinterpret_cast<std::byte*>(wanted.data()) + within, from, n);
        unsigned changed = 0;
        for (std::size_t w = 0; w < words_per_line; ++w)
            if (wanted[w] != now[w]) changed |= 1u << w;
        if (open_line* l = find(line))
            changed =
                note_unchanged(*l, within / word_bytes, (within + n - 1) / word_bytes, changed);
        if (changed != 0) store_words(line, wanted, changed);
        offset += n;
        from += n;
        count -= n;
    }
}

void persistent_memory::nt_store(unsigned thread, std::size_t offset, const void* bytes,
                                 std::size_t count) {
    HF_ASSERT(offset % word_bytes == 0 && count % word_bytes == 0);
    if (domain_ == domain::process) return store(offset, bytes, count);
    for (std::size_t at = 0; at < count; at += word_bytes) {
        std::uint64_t value;
        std::memcpy(&value, static_cast<const std::byte*>(bytes) + at, word_bytes);
        const std::size_t line = (offset + at) / line_bytes;
        const auto word = static_cast<unsigned>((offset + at) % line_bytes / word_bytes);
        const open_line* found = find(line);
        const bool settled =
            found == nullptr ||
            (found->stored[word] <= found->first &&
             std::ranges::find(found->nt, word, &nt_word::word) == found->nt.end());
        if (settled && newest(line)[word] == value) continue;
        open_line& l = opened(line);
        l.nt.push_back({thread, word, value, l.stored[word], never});
    }
}

void persistent_memory::flush(unsigned thread, std::size_t line) {
    const open_line* l = find(line);
    if (l == nullptr || domain_ != domain::adr) return;
    if (flushes_.size() <= thread) flushes_.resize(thread + 1);
    const std::uint64_t newest_version = l->first + l->versions.size() - 1;
    auto& mine = flushes_[thread];
    const auto same = [&](const pending_flush& f) { return f.line == line; };
    if (const auto found = std::ranges::find_if(mine, same); found != mine.end())
        found->covered = newest_version;
    else mine.push_back({line, newest_version});
}

void persistent_memory::flush_now(std::size_t line) {
    open_line* l = find(line);
    if (l == nullptr) return;
    drop_before(*l, l->first + l->versions.size() - 1);
    close_if_settled(line);
}

void persistent_memory::drop_before(open_line& of, std::uint64_t version) {
    if (version <= of.first) return;
    const std::uint64_t count = version - of.first;
    of.versions.erase(of.versions.begin(),
                      of.versions.begin() + static_cast<std::ptrdiff_t>(count));
    of.first = version;
    std::erase_if(of.nt, [&](const nt_word& n) { return n.superseded <= version; });
    std::erase_if(of.torn, [&](const torn_version& t) { return t.number < version; });
}

/// Whether version 'number' has the word as stored by the store that made 'version', or by a later.
bool persistent_memory::has(const open_line& of, std::uint64_t number, std::uint64_t version,
                            unsigned word) {
    return number >= version || std::ranges::any_of(of.torn, [&](const torn_version& t) {
               return t.number == number && t.whole == version && (t.present >> word & 1) != 0;
           });
}

/// Whether the non-temporal store may be seen with that version: stores to its word, before and
/// after it, persist in their order.
bool persistent_memory::goes_with(const open_line& of, const nt_word& n, std::uint64_t number) {
    return has(of, number, n.after, n.word) && !has(of, number, n.superseded, n.word);
}

/// The word has persisted as stored by the store that made 'version', or by a later one; of that
/// store's other words the failure may still leave the older content.
void persistent_memory::drop_without(open_line& of, std::uint64_t version, unsigned word) {
    std::uint64_t kept = version;
    for (const torn_version& t : of.torn)
        if (t.whole == version) kept = std::min(kept, t.number);
    drop_before(of, kept);
    for (torn_version& t : of.torn)
        if (t.whole == version && (t.present >> word & 1) == 0) {
            of.versions[t.number - of.first] = of.versions[version - of.first]; // twice the same
            t.present = ~0u;
        }
}

/// The thread's non-temporal stores to the line have persisted.
void persistent_memory::settle_nt(open_line& of, unsigned thread) {
    for (std::size_t i = of.nt.size(); i-- > 0;) {
        if (of.nt[i].thread != thread) continue;
        const nt_word n = of.nt[i];
        // Gone: this store, and those to the same word before it.
        std::size_t position = 0;
        const std::size_t gone = std::erase_if(
            of.nt, [&](const nt_word& m) { return position++ <= i && m.word == n.word; });
        drop_without(of, n.after, n.word);
        for (std::uint64_t v = of.first; v < of.first + of.versions.size(); ++v)
            if (goes_with(of, n, v)) of.versions[v - of.first][n.word] = n.value;
        i = std::min(i + 1 - gone, of.nt.size());
    }
}

void persistent_memory::fence(unsigned thread) {
    if (thread < flushes_.size()) {
        const auto completing = std::exchange(flushes_[thread], {});
        for (const pending_flush& f : completing) {
            if (open_line* l = find(f.line)) drop_before(*l, f.covered);
            close_if_settled(f.line);
        }
    }
    for (std::size_t i = open_lines_.size(); i-- > 0;) {
        const std::size_t line = open_lines_[i];
        if (open_[i].nt.empty()) continue;
        settle_nt(open_[i], thread);
        close_if_settled(line); // moves the last, already seen, to i
    }
}

void persistent_memory::kill() {
    std::size_t threads = flushes_.size();
    for (const open_line& l : open_)
        for (const nt_word& n : l.nt) threads = std::max<std::size_t>(threads, n.thread + 1);
    for (std::size_t t = 0; t < threads; ++t) fence(static_cast<unsigned>(t));
}

/// Adds every content that the version may have with some of the unsettled non-temporal stores.
void persistent_memory::combine_nt(const open_line& of, std::size_t version,
                                   std::vector<line_content>& out) const {
    const std::uint64_t number = of.first + version;
    std::vector<nt_word> seen;
    std::array<std::size_t, words_per_line> choices{};
    choices.fill(1);
    for (const nt_word& n : of.nt)
        if (goes_with(of, n, number)) {
            seen.push_back(n);
            ++choices[n.word];
        }
    std::size_t combinations = 1;
    for (std::size_t c : choices) combinations *= c;
    const auto with = [&](auto&& taken) {
        line_content c = of.versions[version];
        for (std::size_t i = 0; i < seen.size(); ++i)
            if (taken(i)) c[seen[i].word] = seen[i].value;
        add_unique(out, c);
    };
    if (combinations <= combinations_max && seen.size() < 16) {
        for (std::size_t mask = 0; mask < std::size_t{1} << seen.size(); ++mask)
            with([&](std::size_t i) { return (mask >> i & 1) != 0; });
        return;
    }
    reduced_ = true;
    for (std::size_t n = 0; n <= seen.size(); ++n) {
        with([&](std::size_t i) { return i < n; });
        with([&](std::size_t i) { return i >= n; });
        with([&](std::size_t i) { return i == n; });
        with([&](std::size_t i) { return i != n; });
    }
}

std::vector<line_content> persistent_memory::possible(std::size_t line) const {
    const open_line* l = find(line);
    if (l == nullptr) return {settled_[line]};
    std::vector<line_content> out;
    for (std::size_t v = 0; v < l->versions.size(); ++v) {
        if (l->nt.empty()) add_unique(out, l->versions[v]);
        else combine_nt(*l, v, out);
    }
    const line_content newest = newest_of(*l);
    std::erase(out, newest);
    out.push_back(newest);
    return out;
}

void persistent_memory::settle(std::size_t line, const line_content& content) {
    open_line& l = opened(line);
    l = {.versions = {content}, .first = 0, .nt = {}, .torn = {}, .stored = {}};
    close(line);
}

} // namespace hf::check
