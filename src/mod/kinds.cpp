// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <mod/kinds.hpp>
#include <pool/header.hpp>

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace hf::mod {

static_assert(offsetof(pool_header, max_bytes) == 72); // detail::reach_of
alignas(64) std::byte detail::nowhere[nowhere_bytes];

namespace {

// The kinds of this library.
constexpr std::initializer_list<const kind*> builtin = {
    &detail::hash_trie_kind, &detail::queue_kind,  &detail::bplus_tree_kind,
    &detail::stack_kind,     &detail::vector_kind, &detail::cache_kind};

std::vector<const kind*>& users() {
    static auto* all =
        new std::vector<const kind*>; // never destroyed: pools may outlive static destructors
    return *all;
}

} // namespace

const kind* find_kind(std::uint32_t id) noexcept {
    for (const kind* k : builtin)
        if (k->id == id) return k;
    const auto& known = users();
    const auto found = std::ranges::find(known, id, &kind::id);
    return found == known.end() ? nullptr : *found;
}

void add_kind(const kind& what) {
    HF_ASSERT(what.id != 0 && what.top != nullptr && what.children != nullptr);
    const kind* known = find_kind(what.id);
    if (known == &what) return;
    HF_ASSERT(known == nullptr); // another structure has this id
    users().push_back(&what);
}

} // namespace hf::mod
