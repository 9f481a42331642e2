// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list of blocks of words, as small as a structure on the store can be, for tests: what shows the
// store by itself right or wrong.
//
//   word: {first node, number of nodes}    node: {next node, words in it, words}
#pragma once

#include <holdfast/author/mod/store.hpp>

#include <cstdint>
#include <vector>

namespace hf::mod::block_list {

struct node {
    ref next;
    std::uint32_t words;
    std::uint64_t word[1]; // 'words' of them, all the same
};
constexpr std::size_t bytes_of(std::uint32_t words) { return 8 + words * std::size_t{8}; }

constexpr std::uint64_t pack(ref first, std::uint64_t count) { return count << 32 | first; }
constexpr ref first_of(std::uint64_t word) { return static_cast<ref>(word); }
constexpr std::uint64_t count_of(std::uint64_t word) { return word >> 32; }

inline void top(visitor& to, const std::byte*, std::uint64_t word, std::uint64_t) {
    if (first_of(word) != 0) to.node(first_of(word), sizeof(node), 0);
}
inline void children(visitor& to, const std::byte* at, std::size_t, std::uint32_t, std::uint64_t) {
    const auto* n = reinterpret_cast<const node*>(at);
    if (n->next != 0) to.node(n->next, sizeof(node), 0);
}
inline constexpr mod::kind kind{builtin_kind::users + 1, "list of blocks", top, children};

inline const node* at(const std::byte* base, ref n) {
    return reinterpret_cast<const node*>(base + std::uint64_t{n} * granule_bytes);
}

// Pure updates: of a word, to a word.

inline std::uint64_t push(shadow& s, std::uint64_t word, std::uint64_t value,
                          std::uint32_t words = 1) {
    const ref made = s.make(bytes_of(words));
    if (made == 0) return word;
    auto* n = s.at<node>(made);
    n->next = first_of(word);
    n->words = words;
    for (std::uint32_t i = 0; i < words; ++i) n->word[i] = value;
    return pack(made, count_of(word) + 1);
}

inline std::uint64_t pop(shadow& s, std::uint64_t word) {
    const ref was = first_of(word);
    const ref next = s.at<node>(was)->next;
    s.replaced(was);
    return pack(next, count_of(word) - 1);
}

/// A node that may be changed in the place of 'old'.
inline ref edit(shadow& s, ref old) {
    if (s.fresh(old)) return old;
    const auto* from = s.at<node>(old);
    const ref made = s.make(bytes_of(from->words));
    if (made == 0) return 0;
    auto* to = s.at<node>(made);
    to->next = from->next;
    to->words = from->words;
    for (std::uint32_t i = 0; i < from->words; ++i) to->word[i] = from->word[i];
    s.replaced(old);
    return made;
}

/// Gives the node at 'index' another value: copies the nodes before it too.
inline std::uint64_t set(shadow& s, std::uint64_t word, std::uint64_t index, std::uint64_t value) {
    const ref first = edit(s, first_of(word));
    if (first == 0) return word;
    ref above = first;
    for (; index > 0; --index) {
        const ref below = edit(s, s.at<node>(above)->next);
        if (below == 0) return word;
        s.at<node>(above)->next = below;
        above = below;
    }
    auto* n = s.at<node>(above);
    for (std::uint32_t i = 0; i < n->words; ++i) n->word[i] = value;
    return pack(first, count_of(word));
}

inline std::uint64_t clear(shadow& s, std::uint64_t word) {
    if (first_of(word) != 0) s.released(first_of(word));
    return 0;
}

/// The other list, in the place of this one: their nodes are the same.
inline std::uint64_t become(shadow& s, std::uint64_t word, std::uint64_t other) {
    clear(s, word);
    if (first_of(other) != 0) s.shared(first_of(other));
    return other;
}

/// A version of 'to' that is the list 'source': their nodes are the same.
inline version taken_over(const version& source, root& to) {
    version next = to.read().derived();
    next.depends_on(source);
    next.set_word(become(next.work(), next.word(), source.word()));
    next.done();
    return next;
}

/// One value for each node; false if a node is torn, or if their number is not the word's.
inline bool values(const std::byte* base, std::uint64_t word, std::vector<std::uint64_t>& out) {
    ref n = first_of(word);
    for (std::uint64_t left = count_of(word); left > 0; --left, n = at(base, n)->next) {
        if (n == 0) return false;
        const node* seen = at(base, n);
        if (seen->words == 0 || seen->words > 100'000) return false;
        for (std::uint32_t i = 1; i < seen->words; ++i)
            if (seen->word[i] != seen->word[0]) return false;
        out.push_back(seen->word[0]);
    }
    return n == 0;
}

/// An update alone.
template <class Change> status updated(root& r, Change&& change) {
    auto w = r.write();
    return w.commit(change(w.work(), w.word()));
}

} // namespace hf::mod::block_list
