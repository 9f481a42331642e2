// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::vector: a durable sequence with fast access by index. Every update is one failure-atomic
// section with one ordering point.                             Source: MOD §4.1-4.3.
//
//     auto prices = *hf::mod::vector<double>::open(pool, {"prices"});
//     prices.push_back(9.75);                          // durable when the next update returns
//     prices.set(0, 9.5);
//     for (double price : prices) …                    // random access iterators
//     prices.update([](auto& batch) { batch.swap(3, 7); batch.pop_back(); });     // one commit
//     auto then = prices.snapshot();                   // stays as it is, readable beside writers
//     auto twice = then.take(100).append(then);        // pure: a version that nobody else sees
//     auto status = prices.commit(twice);              // conflict, if another commit came first
//
// Elements are trivially copyable (up to 64 KiB, aligned to 16 at most) or std::string. Strings are
// given and read as std::string_view. A vector has at most 2^32 - 1 elements. References and
// iterators are valid until the handle's next update; those of a version, as long as it lives.
// Updates of handles refuse an index out of range; elsewhere it ends the program.
//
// Nodes and their costs: src/mod/rrb.hpp.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/handle.hpp>
#include <holdfast/mod/detail/rrb_tree.hpp>

#include <algorithm>
#include <cassert>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace hf::mod {

namespace detail {

extern const kind vector_kind;

[[noreturn]] void no_such_element(std::size_t index, std::size_t size) noexcept;
status refuse_index(std::size_t index, std::size_t size);

/// The layout of vectors of T in nodes.
template <element T> struct vector_layout {
    static constexpr rrb::leaf_form leaf = rrb::leaf_form::of(slot<T>::form);
    using view = typename slot<T>::view;
};

template <element T> class vector_iterator {
    using layout = vector_layout<T>;

public:
    using value_type = std::remove_cvref_t<typename layout::view>;
    using reference = typename layout::view;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::conditional_t<std::is_reference_v<reference>, iterator_concept,
                                                 std::input_iterator_tag>;

    vector_iterator() noexcept = default;
    vector_iterator(const std::byte* base, std::uint64_t word, std::uint32_t index) noexcept
        : base_(base), word_(word), index_(index) {
        seek();
    }

    reference operator*() const noexcept { return slot<T>::read(base_, at_); }
    auto operator->() const noexcept
        requires std::is_reference_v<reference>
    {
        return &**this;
    }
    reference operator[](difference_type by) const noexcept { return *(*this + by); }
    vector_iterator& operator++() noexcept {
        at_ += layout::leaf.element_bytes;
        if (++index_ == last_) seek();
        return *this;
    }
    vector_iterator& operator--() noexcept { return *this += -1; }
    vector_iterator operator++(int) noexcept {
        vector_iterator before = *this;
        ++*this;
        return before;
    }
    vector_iterator operator--(int) noexcept {
        vector_iterator before = *this;
        --*this;
        return before;
    }
    vector_iterator& operator+=(difference_type by) noexcept {
        index_ = static_cast<std::uint32_t>(index_ + by);
        if (index_ >= first_ && index_ < last_) at_ += by * difference_type(bytes);
        else seek();
        return *this;
    }
    vector_iterator& operator-=(difference_type by) noexcept { return *this += -by; }
    friend vector_iterator operator+(vector_iterator it, difference_type by) noexcept {
        return it += by;
    }
    friend vector_iterator operator+(difference_type by, vector_iterator it) noexcept {
        return it += by;
    }
    friend vector_iterator operator-(vector_iterator it, difference_type by) noexcept {
        return it -= by;
    }
    friend difference_type operator-(const vector_iterator& a, const vector_iterator& b) noexcept {
        return difference_type{a.index_} - difference_type{b.index_};
    }
    friend bool operator==(const vector_iterator& a, const vector_iterator& b) noexcept {
        return a.index_ == b.index_;
    }
    friend auto operator<=>(const vector_iterator& a, const vector_iterator& b) noexcept {
        return a.index_ <=> b.index_;
    }

private:
    static constexpr std::size_t bytes = layout::leaf.element_bytes;

    void seek() noexcept {
        first_ = last_ = 0;
        if (index_ >= rrb::top_of(word_).count) return;
        const rrb::leaf_place leaf = rrb::leaf_at(layout::leaf, base_, word_, index_);
        first_ = leaf.first;
        last_ = leaf.last;
        at_ = leaf.elements + (index_ - first_) * bytes;
    }

    const std::byte* base_ = nullptr;
    std::uint64_t word_ = 0;
    const std::byte* at_ = nullptr;
    std::uint32_t index_ = 0;
    std::uint32_t first_ = 0, last_ = 0; // elements of the leaf that at_ points into
};

/// The reading functions of a vector: of the current version through a handle, of a version, of a
/// batch.
template <class Self, element T> class vector_reading {
    using layout = vector_layout<T>;

public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using view = typename layout::view; // const T&, or std::string_view
    using const_iterator = vector_iterator<T>;
    using iterator = const_iterator;
    /// const T*, or std::optional<std::string_view>.
    using found = std::conditional_t<std::is_reference_v<view>, const T*, std::optional<view>>;

    size_type size() const noexcept { return rrb::top_of(self().word()).count; }
    bool empty() const noexcept { return size() == 0; }
    /// Cost: O(log16 n). Requires: index < size().
    view operator[](size_type index) const noexcept {
        const std::uint64_t word = self().word();
        if (index >= rrb::top_of(word).count) [[unlikely]]
            no_such_element(index, rrb::top_of(word).count);
        const std::byte* base = self().base();
        return slot<T>::read(
            base, rrb::element_at<layout::leaf>(base, word, static_cast<std::uint32_t>(index)));
    }
    /// The element; nothing if the index is out of range.
    found at(size_type index) const noexcept {
        if (index >= size()) return {};
        if constexpr (std::is_reference_v<view>) return &(*this)[index];
        else return (*this)[index];
    }
    view front() const noexcept { return (*this)[0]; }
    view back() const noexcept { return (*this)[size() - 1]; }
    const_iterator begin() const noexcept { return {self().base(), self().word(), 0}; }
    const_iterator end() const noexcept {
        return {self().base(), self().word(), static_cast<std::uint32_t>(size())};
    }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }

private:
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

template <element T> class vector_version;

/// The vector's updates. An index out of range ends the program.
template <element T>
class vector_batch : public batch_base, public vector_reading<vector_batch<T>, T> {
    using layout = vector_layout<T>;

public:
    using view = typename layout::view;
    using size_type = std::size_t;

    vector_batch(shadow& work, std::uint64_t word) noexcept
        : batch_base(work, word), edit_(layout::leaf, work) {}
    vector_batch(vector_batch&&) noexcept = default;
    vector_batch& operator=(vector_batch&&) = delete;
    /// For root::writing::overwrite. Requires: index < size().
    std::byte* place_to_store(size_type index) const noexcept {
        assert(index < this->size());
        return const_cast<std::byte*>(this->place(index));
    }
    void set(size_type index, view value) {
        if (!has(index)) return;
        const written slot(*work_, value);
        if (slot) word_ = edit_.set(word_, number(index), slot.bytes());
    }
    void swap(size_type i, size_type j) {
        if (!has(i) || !has(j) || i == j) return;
        // The slots change places; what they name stays.
        std::byte first[bytes], second[bytes];
        std::memcpy(first, place(i), bytes);
        std::memcpy(second, place(j), bytes);
        word_ = edit_.put(word_, number(i), second);
        word_ = edit_.put(word_, number(j), first);
    }
    void push_back(view value) {
        const written slot(*work_, value);
        if (slot) word_ = edit_.extend(word_, slot.bytes(), 1);
    }
    /// Cost: for trivially copyable elements mostly only the commit's.
    void pop_back() {
        if (has(0)) word_ = edit_.take(word_, number(this->size() - 1));
    }
    /// Keeps the first 'count' elements, or all if there are fewer.
    void take(size_type count) { slice(0, count); }
    /// Removes the first 'count' elements.
    void drop(size_type count) { slice(count, this->size()); }
    /// Keeps the elements from 'first' to before 'last', as far as they exist.
    void slice(size_type first, size_type last) {
        last = std::min(last, this->size());
        word_ = edit_.slice(word_, number(std::min(first, last)), number(last));
    }
    /// Inserts before the element at 'index', or behind the last one.
    void insert(size_type index, view value) {
        if (index != this->size() && !has(index)) return;
        const written slot(*work_, value);
        if (slot) word_ = edit_.insert(word_, number(index), slot.bytes(), 1);
    }
    void erase(size_type index) { erase(index, index + 1); }
    void erase(size_type first, size_type last) {
        if (first < last && has(last - 1)) word_ = edit_.erase(word_, number(first), number(last));
    }
    void clear() { word_ = edit_.clear(word_); }
    /// Cost: O(elements added). Requires: a range that is not this batch.
    template <std::ranges::input_range Range>
        requires std::convertible_to<std::ranges::range_reference_t<Range>, view>
    void append_range(Range&& range) {
        if constexpr (std::ranges::contiguous_range<Range> && std::is_reference_v<view> &&
                      std::same_as<std::ranges::range_value_t<Range>, T>) {
            append_elements(std::ranges::data(range), std::ranges::size(range));
        } else {
            append_views(range);
        }
    }
    template <std::ranges::input_range Range> void assign(Range&& range) {
        clear();
        append_range(std::forward<Range>(range));
    }

private:
    friend class vector_version<T>;
    static constexpr std::size_t bytes = layout::leaf.element_bytes;
    /// An element as it lies in a slot, with its blob if it has one.
    class written {
    public:
        written(shadow& to, view value) : done_(slot<T>::write(to, bytes_, value)) {}
        explicit operator bool() const noexcept { return done_; }
        const std::byte* bytes() const noexcept { return bytes_; }

    private:
        std::byte bytes_[vector_batch::bytes] = {};
        bool done_;
    };

    static std::uint32_t number(size_type index) noexcept {
        return static_cast<std::uint32_t>(index);
    }
    const std::byte* place(size_type index) const noexcept {
        return rrb::element_at<layout::leaf>(this->base(), word_, number(index));
    }
    /// Whether there is such an element. It may be missing only after the pool was full.
    bool has(size_type index) const noexcept {
        if (this->failed()) return false;
        if (index >= this->size()) no_such_element(index, this->size());
        return true;
    }
    void append_elements(const T* from, size_type count) {
        if (count > rrb::count_max) return work_->fail();
        word_ = edit_.extend(word_, reinterpret_cast<const std::byte*>(from), number(count));
    }
    template <class Range> void append_views(Range& range) {
        constexpr std::uint32_t most = layout::leaf.capacity();
        std::byte slots[most * bytes] = {};
        std::uint32_t n = 0;
        for (auto&& value : range) {
            if (!slot<T>::write(*work_, slots + n * bytes, value)) return;
            if (++n < most) continue;
            word_ = edit_.extend(word_, slots, n);
            n = 0;
        }
        word_ = edit_.extend(word_, slots, n);
    }
    /// Appends another tree of this store, which stays shared.
    void append_tree(std::uint64_t other) { word_ = edit_.append(word_, other); }

    rrb::editor edit_;
};

template <element T>
class vector_version : public version_base<vector_version<T>, vector_batch<T>>,
                       public vector_reading<vector_version<T>, T> {
    using batch = vector_batch<T>;

public:
    using view = typename vector_layout<T>::view;
    using size_type = std::size_t;
    using version_base<vector_version, batch>::version_base;

    [[nodiscard]] vector_version set(size_type index, view value) const {
        return this->update([&](batch& to) { to.set(index, value); });
    }
    [[nodiscard]] vector_version swap(size_type i, size_type j) const {
        return this->update([&](batch& to) { to.swap(i, j); });
    }
    [[nodiscard]] vector_version push_back(view value) const {
        return this->update([&](batch& to) { to.push_back(value); });
    }
    [[nodiscard]] vector_version pop_back() const {
        return this->update([](batch& to) { to.pop_back(); });
    }
    [[nodiscard]] vector_version take(size_type count) const { return slice(0, count); }
    [[nodiscard]] vector_version drop(size_type count) const { return slice(count, this->size()); }
    [[nodiscard]] vector_version slice(size_type first, size_type last) const {
        return this->update([&](batch& to) { to.slice(first, last); });
    }
    [[nodiscard]] vector_version insert(size_type index, view value) const {
        return this->update([&](batch& to) { to.insert(index, value); });
    }
    [[nodiscard]] vector_version erase(size_type index) const { return erase(index, index + 1); }
    [[nodiscard]] vector_version erase(size_type first, size_type last) const {
        return this->update([&](batch& to) { to.erase(first, last); });
    }
    /// This version's elements, then the other's.
    ///
    /// Cost:   O(log16 n) when 'other' is this version, or another vector's current one in the same
    ///         pool: then both share nodes, and the commit reports a conflict if 'other' is no
    ///         longer current. Else O(other.size()): copies its elements.
    [[nodiscard]] vector_version append(const vector_version& other) const {
        if (other.empty()) return *this;
        const bool self = other.its_root() == this->its_root() && other.word() == this->word();
        const bool shares =
            self || (other.its_root() != this->its_root() && other.base() == this->base() &&
                     other.its_root()->word() == other.word());
        mod::version next = this->derived();
        if (shares && !self) next.depends_on(other);
        batch to(next.work(), this->word());
        if (shares) to.append_tree(other.word());
        else to.append_range(other);
        next.set_word(to.word());
        next.done();
        return vector_version(std::move(next));
    }
};

} // namespace detail

/// A named vector in a pool: a handle, cheap to copy. It must not outlive the open pool.
///
/// update() gives its function a batch, which has the updates and the reading functions; its
/// changes are committed together. snapshot() returns a version: a value with the same functions.
/// Its updates return another version and leave this one as it is, at no ordering point. In both,
/// an index out of range ends the program.
///
/// Threads: any number may read through handles while no thread writes. Writers wait for each
///          other. snapshot() at any time.
template <element T>
class vector : public detail::handle<detail::vector_batch<T>, detail::vector_version<T>>,
               public detail::vector_reading<vector<T>, T> {
    using layout = detail::vector_layout<T>;
    using handle = detail::handle<detail::vector_batch<T>, detail::vector_version<T>>;
    using reading = detail::vector_reading<vector, T>;

public:
    using view = typename layout::view; // const T&, or std::string_view
    using size_type = std::size_t;
    using typename handle::batch;
    using typename handle::version;
    using typename reading::iterator;

    /// The vector of this name; created if it is missing.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout (another structure, or elements of another size), pool_full,
    ///           limit_reached, bad_argument.
    static result<vector> open(const pool& in, const place& at) {
        return handle::template opened<vector>(in, at, detail::vector_kind,
                                               detail::slot_shape(detail::slot<T>::form));
    }

    /// Replaces an element.
    ///
    /// Cost:     O(log16 n): a leaf of about two lines, and a line per level above. Elements of 1,
    ///           2, 4 or 8 bytes: one line, unless somebody holds a version or nodes are shared.
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the vector before the call or after it, never between.
    /// Errors:   bad_argument (no such element), pool_full; the vector is unchanged.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b. Differs: the store in place (root::writing::overwrite).
    status set(size_type index, view value) {
        auto writing = this->root_->write();
        batch to(writing.work(), writing.word());
        if (index >= to.size()) return detail::refuse_index(index, to.size());
        if constexpr (one_store)
            if (writing.overwrite(to.place_to_store(index), &value, sizeof(T))) return {};
        to.set(index, value);
        return handle::finish(writing, to);
    }
    /// Exchanges two elements.
    ///
    /// Cost:     as set. Elements of 1, 2, 4 or 8 bytes: three lines, unless somebody holds a
    ///           version, nodes are shared, or an exchange in another vector is in progress.
    /// Ordering: as set. With three lines: 1 point, and durable on return; 2 if this thread's last
    ///           update of the store is not durable yet.
    /// Otherwise as set. Differs from the paper: root::writing::exchange.
    status swap(size_type i, size_type j) {
        auto writing = this->root_->write();
        batch to(writing.work(), writing.word());
        if (std::max(i, j) >= to.size()) return detail::refuse_index(std::max(i, j), to.size());
        if constexpr (one_store)
            if (i != j && writing.exchange(to.place_to_store(i), to.place_to_store(j), sizeof(T)))
                return {};
        to.swap(i, j);
        return handle::finish(writing, to);
    }
    /// Adds an element behind the last one. Otherwise as set.
    status push_back(view value) {
        return update([&](batch& to) { to.push_back(value); });
    }
    /// Removes the last element. Cost: for trivially copyable elements mostly one line. Otherwise
    /// as set.
    status pop_back() {
        return change(0, [](batch& to) { to.pop_back(); });
    }
    /// Keeps the first 'count' elements, or all if there are fewer. Otherwise as set.
    status take(size_type count) {
        return update([&](batch& to) { to.take(count); });
    }
    /// Removes the first 'count' elements. Otherwise as set.
    status drop(size_type count) {
        return update([&](batch& to) { to.drop(count); });
    }
    /// Keeps the elements from 'first' to before 'last', as far as they exist. Otherwise as set.
    status slice(size_type first, size_type last) {
        return update([&](batch& to) { to.slice(first, last); });
    }
    /// Inserts before the element at 'index', or behind the last one.
    ///
    /// Cost: O(log16 n), a few nodes of up to 16 children per level. Otherwise as set.
    status insert(size_type index, view value) {
        return change(index == 0 ? no_element : index - 1,
                      [&](batch& to) { to.insert(index, value); });
    }
    /// Erases one element. Cost: as insert. Otherwise as set.
    status erase(size_type index) { return erase(index, index + 1); }
    /// Erases the elements from 'first' to before 'last'. Requires: first <= last.
    status erase(size_type first, size_type last) {
        return change(last == 0 ? no_element : last - 1, [&](batch& to) { to.erase(first, last); });
    }
    /// Replaces all elements by the range's, failure-atomically. Cost: O(size of both).
    template <std::ranges::input_range Range> status assign(Range&& range) {
        return update([&](batch& to) { to.assign(std::forward<Range>(range)); });
    }
    /// Adds the range's elements behind the last one. Cost: O(their number).
    template <std::ranges::input_range Range> status append_range(Range&& range) {
        return update([&](batch& to) { to.append_range(std::forward<Range>(range)); });
    }
    /// Adds another version's elements, as version::append.
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 1 more for the first node of a pool that
    ///           is shared.
    /// Errors:   conflict ('other' was current, and another commit to its vector came first),
    ///           pool_full; the vector is unchanged.
    status append(const version& other) {
        for (;;) {
            const version before = this->snapshot();
            status committed = this->commit(before.append(other));
            if (committed.code() != errc::conflict || before.word() == this->word())
                return committed;
        }
    }
    /// Several updates as one: change(batch&). Ordering, crash and errors as one of them.
    template <class Change> status update(Change&& change) {
        return handle::update([&](batch& to) { (void)change(to); });
    }
    /// status clear(): erases all elements. Cost: O(1) new nodes. Otherwise as set.
    using handle::clear;

    /// version snapshot() const: the vector's current version. Cost: O(1). Ordering: 0. Threads:
    /// any; it never waits.
    using handle::snapshot;
    /// status commit(const version& next): makes 'next' the vector, if the version that it was
    /// derived from is still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the vector before the call or after it.
    /// Errors:   conflict (another commit came first), pool_full; the vector is unchanged.
    using handle::commit;
    /// void refresh() const: for a process that reads beside a writer (open_options::shared). From
    /// here on reads see the current vector, and what was read before is invalid. In other
    /// processes it does nothing.
    using handle::refresh;
    /// durability when_durable() const, void set_durability(durability): by_next_section is the
    /// default.
    using handle::set_durability;
    using handle::when_durable;

    // For authors of structures: the root of this name, its word, the pool's first byte.
    using handle::base;
    using handle::its_root;
    using handle::word;

    /// std::size_t size() const, bool empty() const. Cost: O(1). Ordering: 0, as of all reading
    /// functions.
    using reading::empty;
    using reading::size;
    /// view operator[](index) const, front() const, back() const: the element. Cost: O(log16 n).
    /// Requires: the element exists.
    using reading::back;
    using reading::front;
    using reading::operator[];
    /// at(index) const: const T*, or std::optional<std::string_view>; false if the index is out of
    /// range.
    using reading::at;
    /// iterator begin() const, end() const: random access. Cost: a step is O(1), but O(log16 n)
    /// from one leaf to the next.
    using reading::begin;
    using reading::cbegin;
    using reading::cend;
    using reading::end;

private:
    static constexpr size_type no_element = ~size_type{0};
    /// Whether one store writes an element, so that it may be stored in place in the current
    /// version.
    static constexpr bool one_store =
        !std::is_same_v<T, std::string> && sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0;
    using handle::handle;

    /// One update that requires this element to exist.
    template <class Change> status change(size_type wanted, Change&& once) {
        auto writing = this->root_->write();
        batch to(writing.work(), writing.word());
        if (wanted != no_element && wanted >= to.size())
            return detail::refuse_index(wanted, to.size());
        once(to);
        return handle::finish(writing, to);
    }
};

} // namespace hf::mod
