// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <mod/relocator.hpp>

#include <algorithm>
#include <cstring>

namespace hf::mod {
namespace {

constexpr ref own_bit = ~ref_max; // the structure's own, which stays

/// A node's bytes, aligned as a slot is, to be changed.
class scratch {
public:
    explicit scratch(std::span<const std::byte> of)
        : words_((of.size() + sizeof(line) - 1) / sizeof(line)), size_(of.size()) {
        std::memcpy(words_.data(), of.data(), of.size());
    }
    std::span<std::byte> bytes() noexcept {
        return {reinterpret_cast<std::byte*>(words_.data()), size_};
    }

private:
    struct alignas(64) line {
        std::byte at[64];
    };
    std::vector<line> words_;
    std::size_t size_;
};

/// Words that have the number of a node that is visited.
std::vector<std::size_t> candidates_of(std::span<const std::byte> node,
                                       std::span<const visit> named) {
    std::vector<ref> nodes;
    for (const visit& v : named) nodes.push_back(v.node);
    std::ranges::sort(nodes);
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < node.size() / sizeof(ref); ++i)
        if (std::ranges::binary_search(nodes, word_at(node, i) & ref_max)) found.push_back(i);
    return found;
}

/// All candidates get numbers of their own at once, so each visit identifies its word. Empty:
/// something that is not a ref was changed as well, and the node is a different one.
std::vector<std::size_t> find_at_once(const node_form& form, std::span<const std::byte> node,
                                      std::span<const visit> named,
                                      std::span<const std::size_t> candidates) {
    scratch changed(node);
    for (std::size_t c = 0; c < candidates.size(); ++c)
        set_word(changed.bytes(), candidates[c], static_cast<ref>(c + 1));
    const std::vector<visit> now = form.visits_of(changed.bytes());
    std::vector<std::size_t> found;
    if (now.size() != named.size()) return found;
    for (std::size_t v = 0; v < now.size(); ++v) {
        const bool ours = now[v].node >= 1 && now[v].node <= candidates.size();
        const std::size_t word = ours ? candidates[now[v].node - 1] : 0;
        if (!ours || (word_at(node, word) & ref_max) != named[v].node) return {};
        found.push_back(word);
    }
    return found;
}

/// One candidate after the other.
std::vector<std::size_t> find_one_by_one(const node_form& form, std::span<const std::byte> node,
                                         std::span<const visit> named,
                                         std::span<const std::size_t> candidates) {
    ref other = 1; // that nobody visits
    while (std::ranges::find(named, other, &visit::node) != named.end()) ++other;
    std::vector<std::size_t> found;
    scratch changed(node);
    for (const std::size_t word : candidates) {
        const ref was = word_at(node, word);
        set_word(changed.bytes(), word, other);
        const std::vector<visit> now = form.visits_of(changed.bytes());
        bool moved = false, same = now.size() == named.size();
        for (std::size_t v = 0; same && v < now.size(); ++v) {
            if (now[v] == named[v]) continue;
            same = now[v].node == other && named[v].node == (was & ref_max);
            moved = true;
        }
        if (same && moved) found.push_back(word);
        set_word(changed.bytes(), word, was);
    }
    return found;
}

} // namespace

ref word_at(std::span<const std::byte> node, std::size_t index) noexcept {
    HF_ASSERT_SLOW((index + 1) * sizeof(ref) <= node.size());
    ref word = 0;
    std::memcpy(&word, node.data() + index * sizeof word, sizeof word);
    return word;
}

void set_word(std::span<std::byte> node, std::size_t index, ref to) noexcept {
    HF_ASSERT_SLOW((index + 1) * sizeof(ref) <= node.size());
    const ref word = (word_at(node, index) & own_bit) | (to & ref_max);
    std::memcpy(node.data() + index * sizeof word, &word, sizeof word);
}

std::vector<std::size_t> find_refs(const node_form& form, std::span<const std::byte> node,
                                   std::span<const visit> named) {
    HF_ASSERT_SLOW(!named.empty());
    const std::vector<std::size_t> candidates = candidates_of(node, named);
    std::vector<std::size_t> found = find_at_once(form, node, named, candidates);
    if (found.empty()) found = find_one_by_one(form, node, named, candidates);
    return found;
}

} // namespace hf::mod
