// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <base/symbols.hpp>
#include <check/shadow_trace.hpp>
#include <check/watch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hf::check {

shadow_trace::shadow_trace(std::size_t memory_bytes, domain d)
    : domain_(d), use_(memory_bytes / granule_bytes), reached_(memory_bytes / granule_bytes) {}

shadow_trace::shadow_trace(std::span<const std::byte> memory, domain d)
    : shadow_trace(memory.size(), d) {
    memory_ = memory;
}

template <class Each>
void shadow_trace::each_granule(std::size_t offset, std::size_t bytes, Each&& each) {
    if (bytes == 0) return;
    for (std::size_t g = offset / granule_bytes; g <= (offset + bytes - 1) / granule_bytes; ++g)
        each(g);
}

void shadow_trace::complain(const char* what, std::size_t offset) {
    if (!wrong_.empty()) return;
    look_up({reported_place()});
    wrong_ = fmt::format("shadowing: {}, at offset {:#x}: {}", what, offset,
                         fmt::join(calls_at(reported_place()), " < "));
}

void shadow_trace::stored(std::size_t offset, std::size_t bytes, reached so_far) {
    element& mine = elements_[thread_];
    const bool announced = offset == mine.offset && bytes == mine.bytes;
    if (announced) mine.bytes = 0;
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::published && !announced)
            complain("a store to a node that a commit has named", offset); // (1)
        if (use_[g] == use::named)
            complain("a store to a node of the commit that is under way", offset); // (1)
        if (is_word(g))
            for (std::size_t w = round_down(offset, word_bytes); w < offset + bytes;
                 w += word_bytes)
                if (words_.contains(w) && due_[thread_].erase(w) == 0)
                    complain("a word that commits store is stored without one", offset); // (4)
        progress& now = reached_[g];
        if (now.how == reached::durable) stored_.push_back(g);
        const bool past_caches = so_far == reached::flushed;
        if (past_caches && now.how == reached::cache) return; // its neighbour still is
        now = {so_far, past_caches, thread_, past_caches ? own_bit() : std::uint8_t{0}};
    });
}

void shadow_trace::store(std::size_t offset, std::size_t bytes) {
    stored(offset, bytes, reached::cache);
}
void shadow_trace::nt_store(std::size_t offset, std::size_t bytes) {
    stored(offset, bytes, reached::flushed);
}

void shadow_trace::flush(std::size_t offset, std::size_t bytes) {
    const std::size_t from = round_down(offset, line_bytes);
    each_granule(from, round_up(offset + bytes, line_bytes) - from, [&](std::size_t g) {
        progress& now = reached_[g];
        if (now.how == reached::durable || now.past_caches) return;
        now.how = reached::flushed;
        now.waited_for |= own_bit();
    });
}

void shadow_trace::fence() {
    std::erase_if(stored_, [&](std::size_t g) {
        progress& now = reached_[g];
        if (now.how == reached::cache) {
            const bool ours = use_[g] == use::published || use_[g] == use::named || is_word(g);
            if (ours && now.by == thread_ && domain_ == domain::adr)
                complain("a fence, and what was stored is not flushed", g * granule_bytes); // (3)
            return false;
        }
        if ((now.waited_for & own_bit()) == 0) return false;
        now = {};
        if (is_word(g))
            std::erase_if(held_, [&](const held& h) { return h.word / granule_bytes == g; });
        return true;
    });
}

void shadow_trace::fresh(std::size_t offset, std::size_t bytes) {
    ++nodes_;
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::named) complain("a node of the commit under way is made anew", offset);
        if (is_held(g))
            complain("a node is made anew that a failure may leave to a root", offset); // (5)
        use_[g] = use::fresh;
    });
}

void shadow_trace::named(std::size_t offset, std::size_t bytes) {
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::published) complain("a commit names a node as new that is not", offset);
        use_[g] = use::named;
        named_[thread_].push_back(g);
    });
}

void shadow_trace::in_place(std::size_t offset, std::size_t bytes) {
    ++commits_;
    if (bytes > word_bytes || offset / word_bytes != (offset + bytes - 1) / word_bytes)
        complain("more than a word is to be stored in place", offset); // (1)
    each_granule(offset, bytes, [&](std::size_t g) {
        if (is_held(g))
            complain("an element is stored in place that a failure may leave to a root",
                     offset); // (5)
    });
    elements_[thread_] = {offset, bytes};
}

bool shadow_trace::is_held(std::size_t granule) const {
    return std::ranges::any_of(
        held_, [&](const held& h) { return std::ranges::binary_search(h.granules, granule); });
}

void shadow_trace::hold(std::size_t word) {
    if (domain_ != domain::adr || follow_ == nullptr || memory_.empty()) return;
    held led_to{word, {}};
    follow_(memory_, word, [&](std::size_t offset, std::size_t bytes) {
        each_granule(offset, bytes, [&](std::size_t g) { led_to.granules.push_back(g); });
    });
    std::ranges::sort(led_to.granules);
    held_.push_back(std::move(led_to));
}

/// Upholds (2).
void shadow_trace::commit(std::size_t offset, std::size_t bytes) {
    ++commits_;
    for (const std::size_t g : named_[thread_]) {
        if (domain_ == domain::adr && reached_[g].how == reached::cache)
            complain("a commit names a node that is not flushed", g * granule_bytes);
        if (domain_ == domain::adr && reached_[g].how == reached::flushed)
            complain("a commit names a node that no fence made durable", g * granule_bytes);
        use_[g] = use::published;
    }
    named_[thread_].clear();
    hold(offset);
    for (std::size_t w = offset; w < offset + bytes; w += word_bytes) {
        words_.insert(w);
        word_granules_.insert(w / granule_bytes);
        due_[thread_].insert(w);
    }
}

} // namespace hf::check
