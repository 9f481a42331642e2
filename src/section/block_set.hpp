// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The blocks that a section has taken, or freed. A search looks at each of a few blocks. For many,
// tables say which bytes are theirs: a section may take millions, and asks at each of its stores.
#pragma once

#include <alloc/heap.hpp>
#include <base/assert.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

namespace hf {

/// 64-bit keys to 64-bit values: open addressing, nothing is ever taken out.
class offset_table {
public:
    /// Null: never made.
    std::uint64_t* find(std::uint64_t key) noexcept {
        return slots_.empty() ? nullptr : found(key).key == 0 ? nullptr : &found(key).value;
    }
    const std::uint64_t* find(std::uint64_t key) const noexcept {
        return const_cast<offset_table*>(this)->find(key);
    }
    /// Made as 0. Requires: room for it.
    std::uint64_t& at(std::uint64_t key) noexcept {
        slot& s = found(key);
        used_ += s.key == 0 ? 1 : 0;
        HF_ASSERT_SLOW(4 * used_ <= 3 * slots_.size()); // found() ends at a free slot
        s.key = key + 1;
        return s.value;
    }
    /// For so many more keys. Throws std::bad_alloc.
    void make_room(std::size_t more) {
        if (3 * slots_.size() >= 4 * (used_ + more)) return;
        std::size_t size = 64;
        while (size < 2 * (used_ + more)) size *= 2;
        std::vector<slot> old(size);
        old.swap(slots_);
        for (const slot& s : old)
            if (s.key != 0) found(s.key - 1) = s;
        HF_ASSERT_SLOW((slots_.size() & (slots_.size() - 1)) == 0);
    }
    void clear() noexcept {
        if (slots_.size() > keep_slots) std::vector<slot>().swap(slots_);
        else slots_.assign(slots_.size(), slot{});
        used_ = 0;
    }
    bool empty() const noexcept { return used_ == 0; }

private:
    struct slot {
        std::uint64_t key; // + 1; 0: free
        std::uint64_t value;
    };
    static constexpr std::size_t keep_slots = 4096;
    slot& found(std::uint64_t key) noexcept {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = (key * 0x9e3779b97f4a7c15ULL >> 20) & mask;
        while (slots_[i].key != 0 && slots_[i].key != key + 1) i = (i + 1) & mask;
        return slots_[i];
    }
    std::vector<slot> slots_; // as many as a power of two
    std::size_t used_ = 0;
};

class block_set {
public:
    block_set() = default;
    block_set(const block_set&) = delete;
    block_set& operator=(const block_set&) = delete;

    /// Does what can fail in the next add(), except for large blocks. Throws std::bad_alloc.
    void make_room() {
        if (count_ >= room_) [[unlikely]]
            make_more_room();
    }
    /// Requires: no byte of the block is in the set.
    void add(block b) {
        HF_ASSERT_SLOW(b.bytes != 0);
        HF_ASSERT_SLOW(!covers(b.offset));
        if (count_ >= room_) [[unlikely]]
            return add_to_many(b);
        few_[count_++] = b;
    }
    /// True when the byte is one of a block of the set.
    bool covers(std::uint64_t offset) const noexcept {
        if (indexed()) [[unlikely]]
            return covers_by_tables(offset);
        for (const block* b = few_; b != few_ + count_; ++b)
            if (offset - b->offset < b->bytes) return true;
        return false;
    }
    /// Bytes of blocks of the set around that one: all of its block, or of many those nearby.
    /// Requires: covers(offset).
    block around(std::uint64_t offset) const noexcept {
        if (indexed()) [[unlikely]]
            return around_by_tables(offset);
        const block* b = few_;
        while (offset - b->offset >= b->bytes) ++b;
        return *b;
    }
    /// Takes out the block that starts there; bytes 0: none does.
    block remove(std::uint64_t offset) {
        const std::size_t i = place_of(offset);
        if (i == count_) return {offset, 0};
        const block gone = all_[i];
        all_[i] = all_[--count_];
        if (indexed()) [[unlikely]] {
            many_.pop_back();
            index(gone, false);
            if (i != count_) places_.at(all_[i].offset) = i + 1;
            places_.at(offset) = 0;
        }
        HF_ASSERT_SLOW(!covers(offset));
        return gone;
    }
    void clear() noexcept {
        count_ = 0;
        if (indexed()) [[unlikely]]
            clear_many();
    }
    bool empty() const noexcept { return count_ == 0; }
    std::size_t size() const noexcept { return count_; }
    const block* begin() const noexcept { return all_; }
    const block* end() const noexcept { return all_ + count_; }

private:
    static constexpr std::size_t few = 32;
    static constexpr std::uint64_t region_bytes = 64 * granule_bytes; // a bit each in a word
    static constexpr std::uint64_t small_bytes = 4096;                // larger ones are in large_
    static constexpr std::uint64_t regions_max = small_bytes / region_bytes + 1; // of a small one

    /// Whether there are, or were, more than a few.
    bool indexed() const noexcept { return room_ == 0; }
    __attribute__((noinline)) void make_more_room() {
        if (!indexed()) return index_all();
        if (count_ == many_.capacity()) {
            many_.reserve(2 * count_);
            all_ = many_.data();
        }
        granules_.make_room(regions_max);
        if (!places_.empty()) places_.make_room(1);
    }
    __attribute__((noinline)) void add_to_many(block b) {
        make_more_room();
        index(b, true);
        if (!places_.empty()) places_.at(b.offset) = count_ + 1;
        many_.push_back(b);
        ++count_;
    }
    /// From here on the blocks are in many_.
    void index_all() {
        granules_.clear(); // what an attempt has left that found no memory
        large_.clear();
        granules_.make_room((few + 1) * regions_max);
        many_.reserve(2 * few);
        many_.assign(few_, few_ + count_);
        for (const block& b : many_) index(b, true);
        all_ = many_.data();
        room_ = 0;
        HF_ASSERT_SLOW(valid());
    }
    __attribute__((noinline)) void clear_many() noexcept {
        many_.clear();
        all_ = few_;
        room_ = few;
        granules_.clear();
        places_.clear();
        large_.clear();
    }
    void index(block b, bool in) {
        HF_ASSERT_SLOW(b.offset % granule_bytes == 0);
        HF_ASSERT_SLOW(b.bytes % granule_bytes == 0);
        if (b.bytes > small_bytes) {
            if (in) large_[b.offset] = b.bytes;
            else large_.erase(b.offset);
            return;
        }
        for (std::uint64_t at = b.offset, end = b.offset + b.bytes; at < end;) {
            const std::uint64_t next = std::min(end, at - at % region_bytes + region_bytes);
            const std::uint64_t bits = ~std::uint64_t{0} >> (64 - (next - at) / granule_bytes)
                                                                << at / granule_bytes % 64;
            std::uint64_t& mask = granules_.at(at / region_bytes);
            mask = in ? mask | bits : mask & ~bits;
            at = next;
        }
    }
    __attribute__((noinline)) bool covers_by_tables(std::uint64_t offset) const noexcept {
        const std::uint64_t* mask = granules_.find(offset / region_bytes);
        if (mask != nullptr && (*mask >> offset / granule_bytes % 64 & 1) != 0) return true;
        const auto next = large_.upper_bound(offset);
        return next != large_.begin() && offset - std::prev(next)->first < std::prev(next)->second;
    }
    __attribute__((noinline)) block around_by_tables(std::uint64_t offset) const noexcept {
        const auto next = large_.upper_bound(offset);
        if (next != large_.begin() && offset - std::prev(next)->first < std::prev(next)->second)
            return {std::prev(next)->first, std::prev(next)->second};
        const std::uint64_t region = offset - offset % region_bytes;
        const std::uint64_t mask = *granules_.find(offset / region_bytes);
        const auto at = static_cast<int>(offset / granule_bytes % 64);
        const int below = std::countl_one(mask << (63 - at)); // this one among them
        const int above = std::countr_one(mask >> at);
        return {region + static_cast<std::uint64_t>(at + 1 - below) * granule_bytes,
                static_cast<std::uint64_t>(below + above - 1) * granule_bytes};
    }
    /// In all_; count_: nowhere.
    std::size_t place_of(std::uint64_t offset) {
        if (!indexed()) {
            std::size_t i = 0;
            while (i < count_ && few_[i].offset != offset) ++i;
            return i;
        }
        if (places_.empty()) {
            places_.make_room(count_ + 1);
            for (std::size_t i = 0; i < count_; ++i) places_.at(all_[i].offset) = i + 1;
            HF_ASSERT_SLOW(valid());
        }
        const std::uint64_t* place = places_.find(offset);
        return place == nullptr || *place == 0 ? count_ : *place - 1;
    }

    /// Whether the tables have every block of the set, and its place.
    bool valid() const noexcept {
        if (indexed() ? many_.size() != count_ || all_ != many_.data() : all_ != few_) return false;
        for (std::size_t i = 0; indexed() && i < count_; ++i) {
            const std::uint64_t* place = places_.find(all_[i].offset);
            if (!places_.empty() && (place == nullptr || *place != i + 1)) return false;
            if (!covers(all_[i].offset) || !covers(all_[i].offset + all_[i].bytes - 1))
                return false;
        }
        return true;
    }

    std::size_t count_ = 0;
    std::size_t room_ = few; // so many have room without anything else; 0: there is more to do
    block* all_ = few_;      // the blocks: few_, or those of many_
    block few_[few];
    std::vector<block> many_;
    offset_table granules_; // of many: which of a region's are in the set
    offset_table places_;   // + 1, in all_; empty: no one of many was taken out
    std::map<std::uint64_t, std::uint64_t> large_;
};

} // namespace hf
