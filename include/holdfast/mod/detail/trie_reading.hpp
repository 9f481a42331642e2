// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iterators of a hash trie, and the reading functions of maps and sets.
#pragma once

#include <holdfast/mod/detail/entry.hpp>
#include <holdfast/mod/detail/trie_node.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

namespace hf::mod::detail {

/// Goes in the order of the leaves, which is that of hashes: forward only.
template <class Trie> class trie_iterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = typename Trie::value_type;
    using reference = typename Trie::reference;
    using pointer = arrow<reference>;

    trie_iterator() noexcept = default;
    /// The first entry.
    trie_iterator(const std::byte* base, std::uint64_t word) noexcept
        : base_(base), left_(count_of(word)) {
        way_.first(base, top_of(word));
        enter();
    }
    /// The entry of a key, or the end.
    template <class Query>
    trie_iterator(const std::byte* base, std::uint64_t word, const Query& wanted) noexcept
        : trie_iterator(base, word, wanted, Trie::hash_of(wanted)) {}

    /// The first entry of the leaf where a hash belongs, or of the next leaf.
    struct from_hash {
        std::uint64_t hash;
    };
    trie_iterator(const std::byte* base, std::uint64_t word, from_hash start) noexcept
        : base_(base), left_(count_of(word)), way_(base, top_of(word), start.hash) {
        if (way_.leaf() == 0) way_.next(base);
        enter();
    }

    reference operator*() const noexcept { return Trie::entry_at(base_, leaf_, count_, index_); }
    pointer operator->() const noexcept { return {**this}; }
    trie_iterator& operator++() noexcept {
        if (++index_ == count_) {
            way_.next(base_);
            enter();
        }
        return *this;
    }
    trie_iterator operator++(int) noexcept {
        auto before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const trie_iterator& a, const trie_iterator& b) noexcept {
        return a.leaf_ == b.leaf_ && a.index_ == b.index_;
    }

private:
    template <class Query>
    trie_iterator(const std::byte* base, std::uint64_t word, const Query& wanted,
                  std::uint64_t hash) noexcept
        : base_(base), left_(count_of(word)), way_(base, top_of(word), hash) {
        enter();
        if (leaf_ == nullptr) return;
        index_ = Trie::search(base, leaf_, hash, wanted);
        if (index_ == count_) {
            leaf_ = nullptr;
            index_ = 0;
        }
    }
    /// In a damaged trie iteration ends after as many entries as the word counts, or at a leaf
    /// without entries.
    void enter() noexcept {
        leaf_ = way_.leaf() == 0 ? nullptr : Trie::leaf_at(base_, way_.leaf());
        count_ = leaf_ == nullptr ? 0 : leaf_head::of(leaf_).count();
        index_ = 0;
        if (count_ == 0 || count_ > left_) {
            leaf_ = nullptr;
            count_ = 0;
        }
        left_ -= count_;
    }

    const std::byte* base_ = nullptr;
    const std::byte* leaf_ = nullptr;
    std::uint32_t index_ = 0;
    std::uint32_t count_ = 0;
    std::size_t left_ = 0; // entries behind this leaf, at most
    trie_way way_;
};

/// The reading functions of maps, sets, their versions and batches. 'Self' has base() and word().
///
/// Cost:     find, contains, count, get: O(log16 n) lines; size: 1.
/// Ordering: 0.
/// Threads:  of a version: any. Of a handle or a batch: not beside a writer, and results are valid
///           until the next update; versions keep them.
template <class Self, class Trie> class trie_reading {
public:
    using key_type = typename Trie::key_type;
    using value_type = typename Trie::value_type;
    using reference = typename Trie::reference;
    using const_reference = reference;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using iterator = trie_iterator<Trie>;
    using const_iterator = iterator;
    /// The type by which keys are given and read: a const reference, or a std::string_view.
    using key_view = typename Trie::key_view;

    size_type size() const noexcept { return count_of(self().word()); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return iterator(self().base(), self().word()); }
    iterator end() const noexcept { return {}; }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return {}; }

    /// The key's entry, or end().
    iterator find(key_view key) const noexcept {
        return iterator(self().base(), self().word(), key);
    }
    bool contains(key_view key) const noexcept { return at(key).leaf != nullptr; }
    size_type count(key_view key) const noexcept { return contains(key); }

    /// The same for what the hash and the comparison take besides keys (is_transparent in both).
    template <class Query>
        requires Trie::template
    looks_up<Query> iterator find(const Query& key) const noexcept {
        return iterator(self().base(), self().word(), key);
    }
    template <class Query>
        requires Trie::template
    looks_up<Query> bool contains(const Query& key) const noexcept {
        return at(key).leaf != nullptr;
    }
    template <class Query>
        requires Trie::template
    looks_up<Query> size_type count(const Query& key) const noexcept {
        return contains(key);
    }

protected:
    template <class Query> typename Trie::place at(const Query& key) const noexcept {
        return Trie::find(self().base(), self().word(), key);
    }
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

/// The same for maps.
template <class Self, class Trie> class map_reading : public trie_reading<Self, Trie> {
public:
    using mapped_type = typename Trie::mapped_type;
    /// The type by which values are given and read: a const reference, or a std::string_view.
    using value_view = typename Trie::value_view;
    /// The result of get(); false without such a key: a pointer into the pool, or an optional
    /// std::string_view.
    using found_value = std::conditional_t<byte_string<mapped_type>,
                                           std::optional<std::string_view>, const mapped_type*>;

    found_value get(typename Trie::key_view key) const noexcept { return value_at(this->at(key)); }
    template <class Query>
        requires Trie::template
    looks_up<Query> found_value get(const Query& key) const noexcept {
        return value_at(this->at(key));
    }

protected:
    found_value value_at(typename Trie::place found) const noexcept {
        if (found.leaf == nullptr) return {};
        if constexpr (byte_string<mapped_type>)
            return Trie::value(this->self().base(), found.leaf, found.count, found.index);
        else return &Trie::value(this->self().base(), found.leaf, found.count, found.index);
    }
};

} // namespace hf::mod::detail
