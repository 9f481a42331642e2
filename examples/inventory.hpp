// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers of the standard library in a pool, three that must agree.
#pragma once

// [include]
#include <holdfast/containers.hpp>
#include <holdfast/holdfast.hpp>
// [/include]

#include <cstdint>

namespace inventory {

inline constexpr const char layout[] = "inventory/1";
using number = std::uint64_t;

// [types]
struct stock {
    hf::map<number, number> amount;          // article -> how many
    hf::unordered_map<number, number> shelf; // article -> its place in 'articles'
    hf::vector<number> articles;
};

/// The pool's root. All zeros is no valid std::map: the containers are made by a section.
struct store {
    hf::mutex lock;
    stock* all;
};
// [/types]

/// Makes the containers, once. False when the pool is full.
HF_TXFUNC inline bool create(store* s) noexcept {
    if (s->all == nullptr) s->all = hf::make<stock>();
    return s->all != nullptr;
}

// [add]
/// Adds to an article's amount; all three containers, or none, when the process dies halfway.
template <class Pool> number add(const Pool& pool, store* s, number article, number amount) {
    return hf::tx(pool, [=] {
        stock& all = *s->all;
        if (all.shelf.emplace(article, all.articles.size()).second) all.articles.push_back(article);
        hf::crash_point("half-added");
        return all.amount[article] += amount;
    });
}
// [/add]

/// Takes an article out: the last one moves to its place.
HF_TXFUNC inline bool remove(store* s, number article) noexcept {
    stock& all = *s->all;
    const auto found = all.shelf.find(article);
    if (found == all.shelf.end()) return false;
    const number last = all.articles.back();
    all.articles[found->second] = last;
    all.shelf[last] = found->second;
    all.articles.pop_back();
    all.shelf.erase(article);
    all.amount.erase(article);
    return true;
}

/// Do the three containers agree?
inline bool whole(const stock& all) {
    if (all.amount.size() != all.articles.size() || all.shelf.size() != all.articles.size())
        return false;
    for (number place = 0; place < all.articles.size(); ++place) {
        const auto found = all.shelf.find(all.articles[place]);
        if (found == all.shelf.end() || found->second != place) return false;
        if (!all.amount.contains(all.articles[place])) return false;
    }
    number before = 0, counted = 0;
    for (const auto& [article, amount] : all.amount) {
        if (counted++ > 0 && article <= before) return false;
        before = article;
    }
    return counted == all.amount.size();
}

} // namespace inventory
