// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// growing_vector: words, read without a lock and changed while it grows. Plain code: the engine it
// is failure-atomic with is the including file's.
//
//   (1) Segment s has 8 << s elements; elements never move. A segment is published when it is
//       filled with zeros, an element's place with the vector's size.
//   (2) One thread at a time appends, under one lock. An element is changed by one atomic store,
//       without a lock: it has one of the values that threads give it at the same time. After a
//       crash that may be one of a call that did not return.
//   (3) Where an engine may take stores back (publish.hpp), one of 16 locks is taken by the index:
//       elements are changed under it, and readers take it shared.
//   (4) Zero-filled is empty.
//
// Source: Dechev, Pirkelbauer and Stroustrup, OPODIS 2006; JUSTDO §7, the vector. Differs: a lock
//           for those that append.
#pragma once

#include <structures/publish.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty vector.
class growing_vector {
public:
    using word = std::uint64_t;

    /// Appends.
    ///
    /// Crash:  it is there, or not.
    /// Errors: false when the pool is full; the vector is unchanged.
    bool push_back(word value) noexcept {
        const std::unique_lock held{growth_};
        return append(this, value);
    }
    /// Changes an element; false if the index is out of range.
    ///
    /// Crash:   the old value or the new one.
    /// Threads: any; with others that change, read, and append. No lock is taken, except for (3).
    bool set(std::uint64_t index, word value) noexcept {
        if (index >= size()) return false;
        std::unique_lock held{stripes_[index % stripe_count].lock, std::defer_lock};
        if constexpr (!ends_what_it_began) held.lock();
        assign(&element(index), value);
        return true;
    }
    /// Copies an element; false if the index is out of range. Takes no lock, except for (3).
    bool get(std::uint64_t index, word* value) const noexcept {
        if (index >= size()) return false;
        if constexpr (ends_what_it_began) {
            *value = published(element(index));
        } else {
            const std::shared_lock held{stripes_[index % stripe_count].lock};
            *value = element(index);
        }
        return true;
    }
    /// How many elements there are.
    std::uint64_t size() const noexcept {
        if constexpr (ends_what_it_began) return published(size_);
        const std::shared_lock held{growth_};
        return size_;
    }

    /// Calls f(value) for each, in order.
    template <class F> void for_each(F f) const {
        word value = 0;
        for (std::uint64_t i = 0; get(i, &value); ++i) f(value);
    }
    /// Calls f(block) for every block of the pool that the vector has, while nobody changes it.
    template <class F> void for_each_block(F f) const {
        for (const word* each : segments_)
            if (each != nullptr) f(each);
    }
    /// Whether (1) holds, while nobody changes it.
    bool check() const noexcept {
        for (std::uint64_t i = 0; i < size_; ++i)
            if (segments_[segment_of(i)] == nullptr) return false;
        return true;
    }

private:
    static constexpr unsigned segment_count = 40, stripe_count = 16;

    // Elements before segment s: 8 * (2^s - 1).
    static unsigned segment_of(std::uint64_t index) noexcept {
        return static_cast<unsigned>(std::bit_width(index / 8 + 1)) - 1;
    }
    word& element(std::uint64_t index) const noexcept {
        const unsigned s = segment_of(index);
        return published(segments_[s])[index - 8 * ((std::uint64_t{1} << s) - 1)];
    }

    HF_TXFUNC static bool append(growing_vector* v, word value) noexcept {
        const std::uint64_t index = v->size_;
        const unsigned s = segment_of(index);
        if (s >= segment_count) return false;
        if (v->segments_[s] == nullptr) {
            const std::uint64_t bytes = sizeof(word) * 8 << s;
            auto* const fresh = static_cast<word*>(hf_alloc(bytes));
            if (fresh == nullptr) return false;
            std::memset(fresh, 0, bytes);
            publish(v->segments_[s], fresh);
        }
        v->segments_[s][index - 8 * ((std::uint64_t{1} << s) - 1)] = value;
        publish(v->size_, index + 1);
        return true;
    }
    HF_TXFUNC static void assign(word* at, word value) noexcept { publish(*at, value); }

    struct stripe {
        mutable hf::mutex lock;
        std::byte apart[56];
    };
    [[maybe_unused]] std::byte before_[48];
    mutable hf::mutex growth_;
    [[maybe_unused]] std::byte after_[56];
    stripe stripes_[stripe_count];
    std::uint64_t size_;
    word* segments_[segment_count];
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
