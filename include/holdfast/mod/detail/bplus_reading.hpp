// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iterators of a B+tree, and the reading functions of ordered maps.
#pragma once

#include <holdfast/mod/detail/bplus_node.hpp>
#include <holdfast/mod/detail/entry.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hf::mod::detail {

/// Goes in the order of keys, both ways.
template <class Tree> class tree_iterator {
public:
    using iterator_concept = std::bidirectional_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = typename Tree::value_type;
    using reference = typename Tree::reference;
    using pointer = arrow<reference>;

    tree_iterator() noexcept = default;
    tree_iterator(const std::byte* base, std::uint64_t word, const typename Tree::way& to) noexcept
        : base_(base), word_(word), way_(to) {}

    reference operator*() const noexcept { return Tree::entry_at(base_, way_); }
    pointer operator->() const noexcept { return {**this}; }
    tree_iterator& operator++() noexcept {
        Tree::next(base_, way_);
        return bounded();
    }
    tree_iterator& operator--() noexcept {
        if (way_.leaf == 0) way_ = Tree::last(base_, ordered::top_of(word_));
        else Tree::previous(base_, way_);
        return bounded();
    }
    tree_iterator operator++(int) noexcept {
        auto before = *this;
        ++*this;
        return before;
    }
    tree_iterator operator--(int) noexcept {
        auto before = *this;
        --*this;
        return before;
    }
    friend bool operator==(const tree_iterator& a, const tree_iterator& b) noexcept {
        return a.way_.leaf == b.way_.leaf && a.way_.entry == b.way_.entry;
    }

private:
    /// Limits the steps in a damaged tree: as many leaves as the word counts entries.
    tree_iterator& bounded() noexcept {
        const auto most = static_cast<std::int64_t>(ordered::size_of(word_));
        if (way_.turns > most || way_.turns < -most) [[unlikely]]
            way_ = {};
        return *this;
    }

    const std::byte* base_ = nullptr;
    std::uint64_t word_ = 0;
    typename Tree::way way_{};
};

/// The reading functions of ordered maps, their versions and batches. 'Self' has base() and word().
///
/// Cost:     find, contains, count, get and bounds: O(log n) nodes; a step of an iterator: O(1) on
///           average; size: 1.
/// Ordering: 0.
/// Threads:  of a version: any. Of a handle or a batch: not beside a writer, and results are valid
///           until the next update; versions keep them.
template <class Self, class Tree> class tree_reading {
    using bound = typename Tree::bound;

public:
    using key_type = typename Tree::key_type;
    using mapped_type = typename Tree::mapped_type;
    using value_type = typename Tree::value_type;
    using reference = typename Tree::reference;
    using const_reference = reference;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using iterator = tree_iterator<Tree>;
    using const_iterator = iterator;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = reverse_iterator;
    /// The types by which keys and values are given and read: a const reference, or a
    /// std::string_view.
    using key_view = typename Tree::key_view;
    using value_view = typename Tree::value_view;
    /// The result of get(); false without such a key: a pointer into the pool, or an optional
    /// std::string_view.
    using found_value = std::conditional_t<byte_string<mapped_type>,
                                           std::optional<std::string_view>, const mapped_type*>;

    size_type size() const noexcept { return ordered::size_of(self().word()); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return it(Tree::first(self().base(), top())); }
    iterator end() const noexcept { return it({}); }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return end(); }
    reverse_iterator rbegin() const noexcept { return reverse_iterator(end()); }
    reverse_iterator rend() const noexcept { return reverse_iterator(begin()); }
    /// The entries of the least and the greatest key. Requires: not empty.
    reference first() const noexcept {
        assert(!empty());
        return *begin();
    }
    reference last() const noexcept {
        assert(!empty());
        return *--end();
    }

    /// The key's entry, or end().
    iterator find(key_view key) const noexcept { return to(key); }
    bool contains(key_view key) const noexcept { return to(key) != end(); }
    size_type count(key_view key) const noexcept { return contains(key); }
    found_value get(key_view key) const noexcept { return value(to(key)); }
    /// The first entry not before the key, and the first behind it.
    iterator lower_bound(key_view key) const noexcept { return to_bound<bound::lower>(key); }
    iterator upper_bound(key_view key) const noexcept { return to_bound<bound::upper>(key); }
    std::pair<iterator, iterator> equal_range(key_view key) const noexcept {
        return {lower_bound(key), upper_bound(key)};
    }
    /// The entries from 'from' to before 'upto'. Requires: upto is not before from.
    auto range(key_view from, key_view upto) const noexcept {
        return std::ranges::subrange(lower_bound(from), lower_bound(upto));
    }

    /// The same for what the comparison takes besides keys (is_transparent).
    template <class Query>
        requires Tree::template
    looks_up<Query> iterator find(const Query& key) const noexcept {
        return to(key);
    }
    template <class Query>
        requires Tree::template
    looks_up<Query> bool contains(const Query& key) const noexcept {
        return to(key) != end();
    }
    template <class Query>
        requires Tree::template
    looks_up<Query> found_value get(const Query& key) const noexcept {
        return value(to(key));
    }
    template <class Query>
        requires Tree::template
    looks_up<Query> iterator lower_bound(const Query& key) const noexcept {
        return to_bound<bound::lower>(key);
    }
    template <class Query>
        requires Tree::template
    looks_up<Query> iterator upper_bound(const Query& key) const noexcept {
        return to_bound<bound::upper>(key);
    }

private:
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
    ref top() const noexcept { return ordered::top_of(self().word()); }
    iterator it(const typename Tree::way& to) const noexcept {
        return iterator(self().base(), self().word(), to);
    }
    template <class Query> iterator to(const Query& key) const noexcept {
        return it(Tree::find(self().base(), top(), key));
    }
    template <bound Which, class Query> iterator to_bound(const Query& key) const noexcept {
        return it(Tree::template find_bound<Which>(self().base(), top(), key));
    }
    found_value value(const iterator& found) const noexcept {
        if (found == end()) return {};
        if constexpr (byte_string<mapped_type>) return (*found).second;
        else return std::addressof((*found).second);
    }
};

} // namespace hf::mod::detail
