// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mod::stack and mod::queue share: both hold elements in an order, with a next element to go:
// the stack's newest, the queue's oldest.
//
// Ops is the structure: 'push', 'pop' and 'cleared', pure functions on words that make nodes in a
// shadow; 'next' and 'iterator', which read; 'reads', the users' names of reading functions;
// 'its_kind'.
#pragma once

#include <holdfast/mod/detail/element.hpp>
#include <holdfast/mod/detail/handle.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

namespace hf::mod::detail {

/// A root's word: the structure's first node, and how many elements there are.
struct counted {
    ref node = 0;
    std::uint32_t count = 0;

    static counted of(std::uint64_t word) noexcept {
        return {static_cast<ref>(word), static_cast<std::uint32_t>(word >> 32)};
    }
    std::uint64_t word() const noexcept { return node | std::uint64_t{count} << 32; }
};

/// The layout of a node with a head and then elements: as many as a line holds, or one.
struct chunk_form {
    std::uint32_t first;    // where the elements begin
    std::uint32_t capacity; // elements
    std::uint32_t bytes;    // of the node
};
/// head_bytes: what comes before the elements.
constexpr chunk_form chunk_form_of(slot_form each, std::uint32_t head_bytes) noexcept {
    constexpr std::uint32_t line = 64;
    const std::uint32_t first = std::max(head_bytes, each.align);
    if (each.bytes == 0) return {first, line, line};
    const std::uint32_t fit = first + each.bytes <= line ? (line - first) / each.bytes : 0;
    if (fit >= 2) return {first, fit, line};
    constexpr std::uint32_t granule = granule_bytes;
    return {first, 1, (first + each.bytes + granule - 1) / granule * granule};
}

/// A slot on its own. Plain elements are given up without a look at it.
template <element T> struct slot_copy {
    explicit slot_copy(const std::byte* from) noexcept {
        if constexpr (slot<T>::form.holds_ref) std::memcpy(bytes, from, sizeof bytes);
    }
    std::byte bytes[slot<T>::form.holds_ref ? slot<T>::form.bytes : 1];
};

/// The node if this shadow made it, else a copy in its place. 0: no room.
inline ref edited(shadow& to, ref node, std::size_t bytes, std::uint32_t context) {
    if (to.fresh(node)) return node;
    const ref copy = to.make(bytes);
    if (copy == 0) return 0;
    // A damaged node may reach into its copy.
    std::memmove(to.at<std::byte>(copy), node_at<std::byte>(to.base(), node, bytes), bytes);
    to.replaced(node, context);
    return copy;
}

/// The type names of a structure of T and of its iterators.
template <element T> struct sequence_of {
    using value_type = T;
    using kept = slot<T>;
    using view = typename kept::view;
    static constexpr std::uint64_t shape = slot_shape(kept::form);

    struct iterator_types {
        using value_type = T;
        using reference = view;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::input_iterator_tag;
        using iterator_concept = std::forward_iterator_tag;
    };
};

/// The reading functions of anything with a base and a word.
template <class Self, class Ops> class sequence_reads {
public:
    using value_type = typename Ops::value_type;
    using size_type = std::size_t;

    size_type size() const noexcept { return counted::of(self().word()).count; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

protected:
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

/// The same with the elements in the order in which they would go. Iterators are valid as long as
/// their source lives and is not changed.
template <class Self, class Ops> class sequence_range : public Ops::template reads<Self, Ops> {
public:
    using iterator = typename Ops::iterator;
    using const_iterator = iterator;

    iterator begin() const noexcept {
        const Self& own = static_cast<const Self&>(*this);
        return {own.base(), own.word()};
    }
    iterator end() const noexcept { return {}; }
};

template <class Ops>
class sequence_batch : public batch_base, public sequence_range<sequence_batch<Ops>, Ops> {
public:
    using view = typename Ops::view;
    using value_type = typename Ops::value_type;
    using batch_base::batch_base;

    void push(view value) { word_ = Ops::push(*work_, word_, value); }
    /// Removes the next element and returns it; nothing if the sequence is empty.
    std::optional<value_type> pop() {
        if (this->empty()) return std::nullopt;
        std::optional<value_type> value(std::in_place, Ops::next(this->base(), word_));
        word_ = Ops::pop(*work_, word_);
        return value;
    }
    void clear() { word_ = Ops::cleared(*work_, word_); }
};

template <class Ops>
class sequence_version : public version_base<sequence_version<Ops>, sequence_batch<Ops>>,
                         public sequence_range<sequence_version<Ops>, Ops> {
public:
    using view = typename Ops::view;
    using version_base<sequence_version, sequence_batch<Ops>>::version_base;

    /// This version and one more element. Ordering: 0.
    [[nodiscard]] sequence_version push(view value) const {
        return sequence_version(this->updated(
            [&](shadow& to, std::uint64_t word) { return Ops::push(to, word, value); }));
    }
    /// This version without its next element; itself if it is empty. Ordering: 0.
    [[nodiscard]] sequence_version pop() const {
        if (this->empty()) return *this;
        return sequence_version(
            this->updated([](shadow& to, std::uint64_t word) { return Ops::pop(to, word); }));
    }
};

/// A handle: 'Self' is the container that users name. stack.hpp and queue.hpp say what its members
/// promise and cost.
template <class Self, class Ops>
class sequence : public handle<sequence_batch<Ops>, sequence_version<Ops>>,
                 public sequence_range<Self, Ops> {
    using handle = detail::handle<sequence_batch<Ops>, sequence_version<Ops>>;

public:
    using view = typename Ops::view;
    using value_type = typename Ops::value_type;
    using typename handle::batch;

    static result<Self> open(const pool& in, const place& at) {
        return handle::template opened<Self>(in, at, Ops::its_kind, Ops::shape);
    }
    status push(view value) {
        auto writing = this->root_->write();
        const std::uint64_t next = Ops::push(writing.work(), writing.word(), value);
        return writing.commit(next);
    }
    result<value_type> pop() {
        result<value_type> gone = popped(true);
        if (!gone && gone.error().code() != errc::not_found) return popped(false); // in a full pool
        return gone;
    }
    template <class Change> status update(Change&& change) {
        return handle::update([&](batch& to) { (void)change(to); });
    }

protected:
    using handle::handle;

private:
    result<value_type> popped(bool tidy) {
        auto writing = this->root_->write();
        const std::uint64_t word = writing.word();
        if (counted::of(word).count == 0) return status(errc::not_found, "empty");
        value_type value(Ops::next(this->base(), word));
        const std::uint64_t next = Ops::pop(writing.work(), word, tidy);
        if (status done = writing.commit(next); !done.ok()) return done;
        return value;
    }
};

} // namespace hf::mod::detail
