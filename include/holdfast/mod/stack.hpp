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
//     elements as fit, oldest first: 7 of 8 bytes. Elements that leave no room for a second one
//     have chunks of their own size. All chunks but the top one are full, so that the word's count
//     says how many elements that holds.
// (2) Pushing copies the top chunk, one line, or puts a new one above it. Popping makes no node:
//     the word counts one less. What the chunk has above that count is nobody's.
// (3) A string's slot names a blob, which has to be given up when the string is popped: then the
//     top chunk is copied for that, too.
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
        /// The newest element: a copy, or a std::string_view of one that is valid as long as what
        /// this is called on lives and is not changed. Requires: !empty().
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

/// open, push, pop, update: detail::sequence, which also says what versions and batches do; clear,
/// snapshot, commit, when_durable, set_durability: detail::handle.
template <element T>
class stack : public detail::sequence<stack<T>, detail::stack_of<T>> {
    using stack::sequence::sequence;
};

} // namespace hf::mod
