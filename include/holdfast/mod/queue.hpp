// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A durable queue: std::queue's interface, every call failure-atomic.
//
//   auto jobs = hf::mod::queue<std::string>::open(pool, {"jobs"});
//   jobs->push("mail");
//   auto mail = jobs->pop();               // result<std::string>, first in, first out
//   auto now = jobs->snapshot();           // a value: for (auto job : now) …
//
//   word ── header ── level 1 ── level 2 ── …        newest elements in the header
//                       ││││       ││││
//                       chunks     groups of 14 chunks, then of 14 groups …
//
// (1) The header is a line that holds the newest elements itself, 1 to 7 of 8 bytes. When it is
//     full, its elements become a chunk. Level 1 is a line that names up to 14 chunks. When it is
//     full, its chunks become a group, which level 2 names, and so on: counting in base 14.
//     Everything is addressed by its distance from the back, so only the word's count says where
//     the front is.
// (2) Pushing copies the header: one line. Every 7th push makes a chunk and copies level 1 as well;
//     every 98th makes a group and copies level 2. Popping makes no node: the word counts one less.
// (3) Parts before the front are dropped when a copy is made anyway, in the header's chunk and in
//     level 1. Otherwise once in 98 pops the path to a dead group is copied. Chunks of strings,
//     whose blobs may be long, are dropped one by one. So at most 15 chunks are dead. Pushing
//     leaves room for the copies. If something else has taken that room, more stay: until pushes
//     copy their level, or all that is newer in their group or level has died as well.
//
// Source: MOD §4. Differs: the paper's queue is two linked lists. When one is empty, pop reverses
//         the other, and copies all of it: a million nodes in one failure-atomic section. Here the
//         longest section writes 2 lines for each level, and a queue of 2^30 elements has 8 levels.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/sequence.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace hf::mod {
namespace detail {

inline constexpr std::uint32_t queue_count_max = 0x3fff'ffff;
inline constexpr std::uint32_t queue_fan = 14;
inline constexpr std::uint32_t queue_levels_max = 8; // level 8 names groups of 14^7 chunks

/// The header; elements follow.
struct queue_header {
    ref level;          // level 1, or 0: no chunk holds anything alive
    std::uint32_t used; // elements in the header, dead ones included
};
/// A level or a group.
struct queue_node {
    ref deeper;         // the next level, of older elements; 0: no deeper level. 0 in groups
    std::uint32_t used; // of 'at'; queue_fan in groups
    ref at[queue_fan];  // oldest first; 0: dead
};
static_assert(sizeof(queue_header) == 8 && sizeof(queue_node) == 64);

/// Contexts say which part of a queue a node is, and how many elements (the header) or chunks (a
/// level with all deeper ones, a group) it holds at least.
namespace queue_context {
inline constexpr unsigned part_shift = 26;
inline constexpr std::uint32_t holds_max = (1U << part_shift) - 1; // this many, or more

constexpr std::uint32_t made_of(std::uint32_t part, std::uint32_t holds) noexcept {
    return part << part_shift | std::min(holds, holds_max);
}
constexpr std::uint32_t header(std::uint32_t holds = 0) noexcept { return made_of(0, holds); }
/// number: from 1 on.
constexpr std::uint32_t level(std::uint32_t number, std::uint32_t holds = 0) noexcept {
    return made_of(number, holds);
}
/// height: 0 is a chunk, 1 a group of chunks …
constexpr std::uint32_t group(std::uint32_t height, std::uint32_t holds = 0) noexcept {
    return made_of(queue_levels_max + 1 + height, holds);
}
} // namespace queue_context

/// A chunk has the header's elements and nothing else.
constexpr std::uint32_t queue_chunk_bytes(slot_form each, chunk_form header) noexcept {
    constexpr std::uint32_t granule = granule_bytes;
    return std::max(granule, (header.capacity * each.bytes + granule - 1) / granule * granule);
}
/// How many chunks hold live elements.
constexpr std::uint32_t queue_chunks(std::uint32_t count, std::uint32_t in_header,
                                     std::uint32_t capacity) noexcept {
    return count <= in_header ? 0 : (count - in_header - 1) / capacity + 1;
}

/// How many refs a node has: the number that it names, within what is possible.
inline std::uint32_t queue_used(const queue_node& in) noexcept {
    return std::min(in.used, queue_fan);
}
/// The chunk that is 'back' before the newest one; 0 if it is missing, in a damaged queue.
/// Requires: it is alive.
inline ref queue_chunk(const std::byte* base, ref level, std::uint32_t back) noexcept {
    const auto* node = node_at<queue_node>(base, level);
    std::uint32_t unit = 1; // chunks per ref
    for (std::uint32_t number = 1; back >= queue_used(*node) * unit; ++number) {
        if (number == queue_levels_max) return 0;
        back -= queue_used(*node) * unit;
        unit *= queue_fan;
        node = node_at<queue_node>(base, node->deeper);
    }
    ref found = node->at[queue_used(*node) - 1 - back / unit];
    while (unit > 1) {
        back %= unit;
        unit /= queue_fan;
        found = node_at<queue_node>(base, found)->at[queue_fan - 1 - back / unit];
    }
    return found;
}
/// Level 1 with one more chunk. alive: how many chunks were. 0: no room, nothing is changed.
ref queue_append(shadow& to, ref level, ref chunk, std::uint32_t alive);
/// The header, or a copy, when the chunk that is 'back' before the newest has died: without the
/// groups (of this height or more) that died with it. 0: no room, nothing is changed.
ref queue_drop(shadow& to, ref header, std::size_t header_bytes, std::uint32_t back,
               std::uint32_t height_min);

extern const kind queue_kind;

template <element T> class queue_of : public sequence_of<T> {
public:
    using typename sequence_of<T>::kept;
    using typename sequence_of<T>::view;
    static constexpr const kind& its_kind = queue_kind;

    static std::uint64_t push(shadow& to, std::uint64_t word, view value) {
        const counted old = counted::of(word);
        if (old.count == 0) return pushed_first(to, value);
        const std::uint32_t used = used_in(to.base(), old.node);
        if (damaged(to, old)) return word;
        if (used == form.capacity) return pushed_when_full(to, old, value);
        const ref own = edited(to, old.node, form.bytes, queue_context::header());
        if (own == 0 || !kept::write(to, element_in(to.at<std::byte>(own), used), value))
            return word;
        to.at<queue_header>(own)->used = used + 1;
        return counted{own, old.count + 1}.word();
    }
    /// Requires: count != 0. tidy: gives dead parts back, which takes new nodes.
    static std::uint64_t pop(shadow& to, std::uint64_t word, bool tidy = true) {
        const counted old = counted::of(word);
        assert(old.count != 0);
        if (old.count == 1) return cleared(to, word);
        if (damaged(to, old)) return word;
        const std::uint32_t used = used_in(to.base(), old.node);
        const std::uint32_t left = queue_chunks(old.count - 1, used, form.capacity);
        ref header = old.node;
        if (tidy && queue_chunks(old.count, used, form.capacity) != left)
            header = queue_drop(to, header, form.bytes, left, kept::form.holds_ref ? 0 : 1);
        return header == 0 ? word : counted{header, old.count - 1}.word();
    }
    static std::uint64_t cleared(shadow& to, std::uint64_t word) {
        const counted old = counted::of(word);
        if (old.count != 0) to.released(old.node, queue_context::header());
        return 0;
    }
    /// Requires: count != 0.
    static view next(const std::byte* base, std::uint64_t word) noexcept {
        assert(counted::of(word).count != 0);
        return *iterator(base, word);
    }

    /// Oldest first.
    class iterator : public sequence_of<T>::iterator_types {
    public:
        iterator() noexcept = default;
        iterator(const std::byte* base, std::uint64_t word) noexcept
            : base_(base), header_(counted::of(word).node), left_(counted::of(word).count) {
            if (left_ != 0) find();
        }
        view operator*() const noexcept { return kept::read(base_, at_); }
        iterator& operator++() noexcept {
            at_ += kept::form.bytes;
            --left_;
            if (--in_row_ == 0 && left_ != 0) find();
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator& other) const noexcept { return left_ == other.left_; }

    private:
        void find() noexcept {
            const std::byte* header = node_at<std::byte>(base_, header_, form.bytes);
            const std::uint32_t used = used_in(base_, header_);
            in_row_ = left_;
            if (left_ <= used) {
                at_ = element_in(header, used - left_);
                return;
            }
            const std::uint32_t before = left_ - used - 1;
            in_row_ = before % form.capacity + 1;
            const ref level = reinterpret_cast<const queue_header*>(header)->level;
            const ref chunk = queue_chunk(base_, level, before / form.capacity);
            at_ = node_at<std::byte>(base_, chunk, chunk_bytes) +
                  std::size_t{form.capacity - in_row_} * kept::form.bytes;
        }
        const std::byte* base_ = nullptr;
        const std::byte* at_ = nullptr;
        ref header_ = 0;
        std::uint32_t left_ = 0;   // elements from here on
        std::uint32_t in_row_ = 0; // of them, those that lie side by side
    };

    template <class Self, class Ops> class reads : public sequence_reads<Self, Ops> {
    public:
        /// The oldest element: a copy, or a std::string_view that is valid as long as this object
        /// lives and is not changed. Requires: !empty().
        auto front() const noexcept { return Ops::next(this->self().base(), this->self().word()); }
        /// The same of the newest one.
        auto back() const noexcept { return Ops::newest(this->self().base(), this->self().word()); }
    };
    /// Requires: count != 0.
    static view newest(const std::byte* base, std::uint64_t word) noexcept {
        assert(counted::of(word).count != 0);
        const ref header = counted::of(word).node;
        const std::byte* bytes = node_at<std::byte>(base, header, form.bytes);
        return kept::read(base, element_in(bytes, std::max(used_in(base, header), 1U) - 1));
    }

private:
    static constexpr chunk_form form = chunk_form_of(kept::form, sizeof(queue_header));
    static constexpr std::size_t chunk_bytes = queue_chunk_bytes(kept::form, form);

    /// Elements in a header: the number that it names, within what is possible.
    static std::uint32_t used_in(const std::byte* base, ref header) noexcept {
        return std::min(node_at<queue_header>(base, header)->used, form.capacity);
    }
    /// Fails an update of a queue whose header is damaged.
    static bool damaged(shadow& to, counted of) noexcept {
        const auto* header = node_at<queue_header>(to.base(), of.node);
        const bool sound = header->used - 1U < form.capacity;
        if (!sound) to.fail_damaged();
        return !sound;
    }
    template <class Byte> static Byte* element_in(Byte* header, std::uint32_t index) noexcept {
        return header + form.first + std::size_t{index} * kept::form.bytes;
    }
    static std::uint64_t pushed_first(shadow& to, view value) {
        const ref made = to.make(form.bytes);
        if (made == 0 || !kept::write(to, element_in(to.at<std::byte>(made), 0), value)) return 0;
        *to.at<queue_header>(made) = {0, 1};
        return counted{made, 1}.word();
    }
    static std::uint64_t pushed_when_full(shadow& to, counted old, view value) {
        // Steps that can fail come first: a batch that failed still reads as before.
        alignas(granule_bytes) std::byte last[kept::form.bytes + 1];
        const ref chunk = to.make(queue_chunk_bytes(kept::form, form));
        if (chunk == 0 || old.count == queue_count_max || !kept::write(to, last, value)) {
            to.fail();
            return old.word();
        }
        const ref own = edited(to, old.node, form.bytes, queue_context::header());
        if (own == 0) return old.word();
        auto* bytes = to.at<std::byte>(own);
        // In a damaged pool the two may overlap.
        std::memmove(to.at<std::byte>(chunk), element_in(bytes, 0),
                     std::size_t{form.capacity} * kept::form.bytes);
        auto* header = to.at<queue_header>(own);
        const std::uint32_t alive = queue_chunks(old.count, form.capacity, form.capacity);
        const ref level = queue_append(to, header->level, chunk, alive);
        if (level == 0) return old.word();
        *header = {level, 1};
        std::memcpy(element_in(bytes, 0), last, kept::form.bytes);
        return counted{own, old.count + 1}.word();
    }
};

} // namespace detail

/// A named queue in a pool: a handle, cheap to copy. It must not outlive the open pool.
///
/// update() gives its function a batch, which has push, pop, clear and the reading functions; its
/// changes are committed together. snapshot() returns a version: a value with the reading
/// functions. Its push, pop and clear return another version and leave this one as it is, at no
/// ordering point.
///
/// Threads:  any number may read through handles while no thread writes. Writers wait for each
///           other. snapshot() at any time.
template <element T> class queue : public detail::sequence<queue<T>, detail::queue_of<T>> {
    using common = detail::sequence<queue, detail::queue_of<T>>;

public:
    using typename common::batch;
    using typename common::iterator;
    using typename common::version;
    /// The type by which elements are given and read: a const reference, or a std::string_view.
    using typename common::view;

    /// result<queue> open(const pool& in, const place& at): the queue of this name; created if it
    /// is missing.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout (another structure, or elements of another size), pool_full,
    ///           limit_reached, bad_argument.
    using common::open;

    /// status push(view value): adds an element.
    ///
    /// Cost:     one line; every 7th time two more, every 98th two more still (for elements of 8
    ///           bytes).
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the queue before the call or after it, never between.
    /// Errors:   pool_full; the queue is unchanged.
    /// Threads:  writers wait for each other.
    using common::push;
    /// result<T> pop(): removes the oldest element and returns it.
    ///
    /// Cost:     mostly no new node; once in 98 times a path to dead ones.
    /// Errors:   not_found: the queue is empty. The queue is unchanged.
    /// Otherwise as push.
    using common::pop;
    /// status clear(): erases all elements. Cost: O(1) new nodes. Otherwise as push.
    using common::clear;

    /// status update(change): several updates as one, by change(batch&).
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 0 when nothing was changed.
    /// Crash:    all of them or none.
    /// Errors:   pool_full; the queue is unchanged.
    using common::update;
    /// version snapshot() const: the queue's current version. Cost: O(1). Ordering: 0. Threads:
    /// any; it never waits.
    using common::snapshot;
    /// status commit(const version& next): makes 'next' the queue, if the version that it was
    /// derived from is still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the queue before the call or after it.
    /// Errors:   conflict (another commit came first), pool_full; the queue is unchanged.
    using common::commit;
    /// void refresh() const: for a process that reads beside a writer (open_options::shared). From
    /// here on reads see the current queue, and what was read before is invalid. In other processes
    /// it does nothing.
    using common::refresh;
    /// durability when_durable() const, void set_durability(durability): by_next_section is the
    /// default.
    using common::set_durability;
    using common::when_durable;

    // For authors of structures: the root of this name, its word, the pool's first byte.
    using common::base;
    using common::its_root;
    using common::word;

    /// std::size_t size() const, bool empty() const. Cost: O(1). Ordering: 0, as of all reading
    /// functions.
    using common::empty;
    using common::size;
    /// The oldest element and the newest one: a copy, or a std::string_view that is valid until the
    /// next update. Cost: O(1); front O(log n). Requires: not empty.
    using common::back;
    using common::front;
    /// iterator begin() const, end() const: all elements in the order in which pop would return
    /// them. Cost: a step is O(1).
    using common::begin;
    using common::end;

private:
    using queue::sequence::sequence;
};

} // namespace hf::mod
