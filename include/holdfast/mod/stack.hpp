// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A durable stack: std::stack's interface, every call failure-atomic.
//
//   auto todo = hf::mod::stack<std::uint64_t>::open(pool, {"todo"});
//   todo->push(7);
//   auto seven = todo->pop();              // result<std::uint64_t>
//   auto now = todo->snapshot();           // a value: for (auto x : now) …, now.push(8), now.top()
//   todo->update([](auto& batch) { batch.push(1); batch.push(2); });
//
// (1) word ── chunk ── chunk ── … A chunk is a line: the ref of the chunk below, and as many
//     elements as fit, oldest first: 7 of 8 bytes. An element that leaves no room for a second one
//     has a chunk of its own size. All chunks except the top one are full, so the word's count says
//     how many elements the top one holds.
// (2) Pushing copies the top chunk, one line, or puts a new one above it. Popping makes no node:
//     the word counts one less. Chunk contents above that count belong to nobody.
// (3) A string's slot names a blob. Popping a string gives its blob up, and copies the top chunk
//     for that, too.
//
// Source: MOD §4 (linked lists). Differs: 9.1 bytes for an element of 8, not a node for each.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/sequence.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace hf::mod {
namespace detail {

/// Most elements: contexts count them in 31 bits.
inline constexpr std::uint32_t stack_count_max = 0x7fff'ffff;

extern const kind stack_kind;

template <element T> class stack_of : public sequence_of<T> {
public:
    using typename sequence_of<T>::kept;
    using typename sequence_of<T>::view;
    static constexpr const kind& its_kind = stack_kind;

    static std::uint64_t push(shadow& to, std::uint64_t word, view value) {
        const counted old = counted::of(word);
        if (old.count == stack_count_max) {
            to.fail();
            return word;
        }
        const std::uint32_t used = old.count % form.capacity;
        const ref top =
            used == 0 ? put_above(to, old.node) : edited(to, old.node, form.bytes, old.count);
        if (top == 0 || !kept::write(to, element_in(to.at<std::byte>(top), used), value))
            return word;
        return counted{top, old.count + 1}.word();
    }
    /// Requires: count != 0.
    static std::uint64_t pop(shadow& to, std::uint64_t word, bool = true) {
        const counted old = counted::of(word);
        assert(old.count != 0);
        const std::uint32_t last = (old.count - 1) % form.capacity;
        counted now{old.node, old.count - 1};
        if (last == 0) {
            const slot_copy<T> gone(element_in(chunk_at(to.base(), old.node), 0));
            now.node = *to.at<ref>(old.node);
            to.replaced(old.node, old.count);
            kept::give_up(to, gone.bytes);
        } else if constexpr (kept::form.holds_ref) { // (3)
            now.node = edited(to, old.node, form.bytes, old.count);
            if (now.node == 0) return word;
            kept::give_up(to, element_in(to.at<std::byte>(now.node), last));
        }
        return now.word();
    }
    static std::uint64_t cleared(shadow& to, std::uint64_t word) {
        const counted old = counted::of(word);
        if (old.count != 0) to.released(old.node, old.count);
        return 0;
    }
    /// Requires: count != 0.
    static view next(const std::byte* base, std::uint64_t word) noexcept {
        const counted now = counted::of(word);
        assert(now.count != 0);
        return at(base, now.node, (now.count - 1) % form.capacity);
    }

    class iterator : public sequence_of<T>::iterator_types {
    public:
        iterator() noexcept = default;
        iterator(const std::byte* base, std::uint64_t word) noexcept
            : base_(base), at_(counted::of(word)) {}
        view operator*() const noexcept { return next(base_, at_.word()); }
        iterator& operator++() noexcept {
            if (--at_.count % form.capacity == 0) at_.node = *node_at<ref>(base_, at_.node);
            return *this;
        }
        iterator operator++(int) noexcept {
            iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const iterator& other) const noexcept {
            return at_.count == other.at_.count;
        }

    private:
        const std::byte* base_ = nullptr;
        counted at_;
    };

    template <class Self, class Ops> class reads : public sequence_reads<Self, Ops> {
    public:
        /// The newest element: a copy, or a std::string_view that is valid as long as this object
        /// lives and is not changed. Requires: !empty().
        auto top() const noexcept { return Ops::next(this->self().base(), this->self().word()); }
    };

private:
    static constexpr chunk_form form = chunk_form_of(kept::form, sizeof(ref));

    template <class Byte> static Byte* element_in(Byte* chunk, std::uint32_t index) noexcept {
        return chunk + form.first + std::size_t{index} * kept::form.bytes;
    }
    static view at(const std::byte* base, ref chunk, std::uint32_t index) noexcept {
        return kept::read(base, element_in(chunk_at(base, chunk), index));
    }
    static const std::byte* chunk_at(const std::byte* base, ref chunk) noexcept {
        return node_at<std::byte>(base, chunk, form.bytes);
    }
    static ref put_above(shadow& to, ref below) {
        const ref top = to.make(form.bytes);
        if (top != 0) *to.at<ref>(top) = below;
        return top;
    }
};

} // namespace detail

/// A named stack in a pool: a handle, cheap to copy. It must not outlive the open pool.
///
/// update() gives its function a batch, which has push, pop, clear and the reading functions; its
/// changes are committed together. snapshot() returns a version: a value with the reading
/// functions. Its push, pop and clear return another version and leave this one as it is, at no
/// ordering point.
///
/// Threads:  any number may read through handles while no thread writes. Writers wait for each
///           other. snapshot() at any time.
template <element T> class stack : public detail::sequence<stack<T>, detail::stack_of<T>> {
    using common = detail::sequence<stack, detail::stack_of<T>>;

public:
    using typename common::batch;
    using typename common::iterator;
    using typename common::version;
    /// The type by which elements are given and read: a const reference, or a std::string_view.
    using typename common::view;

    /// result<stack> open(const pool& in, const place& at): the stack of this name; created if it
    /// is missing.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout (another structure, or elements of another size), pool_full,
    ///           limit_reached, bad_argument.
    using common::open;

    /// status push(view value): adds an element.
    ///
    /// Cost:     one line: the top chunk, or a new one above it.
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the stack before the call or after it, never between.
    /// Errors:   pool_full; the stack is unchanged.
    /// Threads:  writers wait for each other.
    using common::push;
    /// result<T> pop(): removes the newest element and returns it.
    ///
    /// Cost:     no new node; for strings one line.
    /// Errors:   not_found: the stack is empty; pool_full: no line is left to give a string back
    ///           with.
    /// Otherwise as push.
    using common::pop;
    /// status clear(): erases all elements. Cost: O(1) new nodes. Otherwise as push.
    using common::clear;

    /// status update(change): several updates as one, by change(batch&).
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 0 when nothing was changed.
    /// Crash:    all of them or none.
    /// Errors:   pool_full; the stack is unchanged.
    using common::update;
    /// version snapshot() const: the stack's current version. Cost: O(1). Ordering: 0. Threads:
    /// any; it never waits.
    using common::snapshot;
    /// status commit(const version& next): makes 'next' the stack, if the version that it was
    /// derived from is still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the stack before the call or after it.
    /// Errors:   conflict (another commit came first), pool_full; the stack is unchanged.
    using common::commit;
    /// void refresh() const: for a process that reads beside a writer (open_options::shared). From
    /// here on reads see the current stack, and what was read before is invalid. In other processes
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
    /// The newest element: a copy, or a std::string_view that is valid until the next update. Cost:
    /// O(1).
    /// Requires: not empty.
    using common::top;
    /// iterator begin() const, end() const: all elements in the order in which pop would return
    /// them. Cost: a step is O(1).
    using common::begin;
    using common::end;

private:
    using stack::sequence::sequence;
};

} // namespace hf::mod
