// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <check/shadow_trace.hpp>
#include <check/symbols.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hf::check {

shadow_trace::shadow_trace(std::size_t memory_bytes, domain d)
    : domain_(d), use_(memory_bytes / granule_bytes), reached_(memory_bytes / granule_bytes) {}

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
    const bool announced = offset == element_ && bytes == element_bytes_;
    if (announced) element_bytes_ = 0;
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::published && !announced)
            complain("a store to a node that a commit has named", offset); // (1)
        if (use_[g] == use::named)
            complain("a store to a node of the commit that is under way", offset); // (1)
        if (is_word(g))
            for (std::size_t w = round_down(offset, word_bytes); w < offset + bytes;
                 w += word_bytes)
                if (words_.contains(w) && due_.erase(w) == 0)
                    complain("a word that commits store is stored without one", offset); // (4)
        if (reached_[g] == reached::durable) stored_.push_back(g);
        reached_[g] = std::max(reached_[g], so_far);
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
    each_granule(from, round_up(offset + bytes, line_bytes) - from,
                 [&](std::size_t g) { reached_[g] = std::min(reached_[g], reached::flushed); });
}

void shadow_trace::fence() {
    std::erase_if(stored_, [&](std::size_t g) {
        if (reached_[g] == reached::cache) {
            const bool ours = use_[g] == use::published || use_[g] == use::named || is_word(g);
            if (ours && domain_ == domain::adr)
                complain("a fence, and what was stored is not flushed", g * granule_bytes); // (3)
            return false;
        }
        reached_[g] = reached::durable;
        return true;
    });
}

void shadow_trace::fresh(std::size_t offset, std::size_t bytes) {
    ++nodes_;
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::named) complain("a node of the commit under way is made anew", offset);
        use_[g] = use::fresh;
    });
}

void shadow_trace::named(std::size_t offset, std::size_t bytes) {
    each_granule(offset, bytes, [&](std::size_t g) {
        if (use_[g] == use::published) complain("a commit names a node as new that is not", offset);
        use_[g] = use::named;
        named_.push_back(g);
    });
}

void shadow_trace::in_place(std::size_t offset, std::size_t bytes) {
    ++commits_;
    if (bytes > word_bytes || offset / word_bytes != (offset + bytes - 1) / word_bytes)
        complain("more than a word is to be stored in place", offset); // (1)
    element_ = offset;
    element_bytes_ = bytes;
}

/// Upholds (2).
void shadow_trace::commit(std::size_t offset, std::size_t bytes) {
    ++commits_;
    for (const std::size_t g : named_) {
        if (domain_ == domain::adr && reached_[g] == reached::cache)
            complain("a commit names a node that is not flushed", g * granule_bytes);
        if (domain_ == domain::adr && reached_[g] == reached::flushed)
            complain("a commit names a node that no fence made durable", g * granule_bytes);
        use_[g] = use::published;
    }
    named_.clear();
    for (std::size_t w = offset; w < offset + bytes; w += word_bytes) {
        words_.insert(w);
        word_granules_.insert(w / granule_bytes);
        due_.insert(w);
    }
}

} // namespace hf::check
