// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PMDK's rtree_map, a radix tree of 256 slots a node: ways without a fork are a fragment of the key
// in the node below. Every node is made with its slots, which are cleared.
#include <slpmt/workloads/structures.hpp>

#include <functional>

namespace hf::slpmt {
namespace {

constexpr std::uint64_t key_bytes = 8, slots = 256;
struct node {
    link<node> slot[slots];
    link<std::uint64_t> value;
    std::uint64_t fragment_bytes;
    std::uint64_t fragment; // its first byte is the lowest
};

class rtree final : public tree_workload<node> {
public:
    rtree(std::uint64_t value_words, const layout& where)
        : tree_workload(value_words, where, all_sites(), root_link) {}

    std::string_view name() const override { return "kv-rtree"; }
    void insert(program& in, std::uint64_t key) override;
    void recover(image&) const override {} // nothing is lazy, and log-free bytes are unreachable
    found check(const image& of) const override;

private:
    enum : unsigned {
        value_bytes,
        cleared_slot,
        new_slot,
        new_value,
        new_fragment,
        root_link,
        slot_link,
        fragment_cut
    };
    static std::vector<site> all_sites() {
        return {{"value bytes", log_free},
                {"cleared slot", log_free},
                {"new node's slot", log_free},
                {"new node's value", log_free},
                {"new node's fragment", log_free},
                {"root", eager_logged},
                {"slot", eager_logged},
                {"fragment", eager_logged}};
    }
    static std::uint64_t byte_of(std::uint64_t key, std::uint64_t i) {
        return key >> (8 * (key_bytes - 1 - i)) & 255;
    }
    static std::uint64_t first_bytes(std::uint64_t fragment, std::uint64_t count) {
        return count >= 8 ? fragment : fragment & ((std::uint64_t{1} << 8 * count) - 1);
    }
    ref<node> make_node(program& in, std::uint64_t fragment, std::uint64_t bytes,
                        ref<std::uint64_t> value);
    ref<node> make_leaf(program& in, std::uint64_t key, std::uint64_t depth,
                        ref<std::uint64_t> value);
    void put_link(program& in, ref<node> parent, std::uint64_t slot, ref<node> to);
};

ref<node> rtree::make_node(program& in, std::uint64_t fragment, std::uint64_t bytes,
                           ref<std::uint64_t> value) {
    const auto one = in.make<node>();
    for (std::uint64_t i = 0; i < slots; ++i)
        in.set(one, &node::slot, i, ref<node>{}, sites_[cleared_slot]);
    in.set(one, &node::value, value, sites_[new_value]);
    in.set(one, &node::fragment_bytes, bytes, sites_[new_fragment]);
    in.set(one, &node::fragment, fragment, sites_[new_fragment]);
    return one;
}

/// A node for the rest of a key.
ref<node> rtree::make_leaf(program& in, std::uint64_t key, std::uint64_t depth,
                           ref<std::uint64_t> value) {
    std::uint64_t fragment = 0;
    for (std::uint64_t i = depth; i < key_bytes; ++i)
        fragment |= byte_of(key, i) << 8 * (i - depth);
    in.compute(2 * (key_bytes - depth));
    return make_node(in, fragment, key_bytes - depth, value);
}

void rtree::put_link(program& in, ref<node> parent, std::uint64_t slot, ref<node> to) {
    if (parent) in.set(parent, &node::slot, slot, to, sites_[slot_link]);
    else in.set(tree_, &tree::root, to, sites_[root_link]);
}

void rtree::insert(program& in, std::uint64_t key) {
    const auto value = make_value(in, key, sites_[value_bytes]);
    ref<node> parent{}, at = in.get(tree_, &tree::root);
    std::uint64_t slot = 0, depth = 0;
    while (at) {
        const std::uint64_t bytes = in.get(at, &node::fragment_bytes),
                            fragment = in.get(at, &node::fragment);
        std::uint64_t same = 0;
        while (same < bytes && (fragment >> 8 * same & 255) == byte_of(key, depth + same)) ++same;
        in.compute(4 * same);
        depth += same;
        if (same < bytes) { // a fork within the fragment: a node above keeps what both have
            const auto fork = make_node(in, first_bytes(fragment, same), same, {});
            in.set(fork, &node::slot, fragment >> 8 * same & 255, at, sites_[new_slot]);
            const auto leaf = make_leaf(in, key, depth + 1, value);
            in.set(fork, &node::slot, byte_of(key, depth), leaf, sites_[new_slot]);
            in.set(at, &node::fragment, bytes - same > 1 ? fragment >> 8 * (same + 1) : 0,
                   sites_[fragment_cut]);
            in.set(at, &node::fragment_bytes, bytes - same - 1, sites_[fragment_cut]);
            return put_link(in, parent, slot, fork);
        }
        if (depth == key_bytes) return; // it is there
        parent = at;
        slot = byte_of(key, depth++);
        at = in.get(at, &node::slot, slot);
    }
    put_link(in, parent, slot, make_leaf(in, key, depth, value));
}

found rtree::check(const image& of) const {
    found what;
    const std::function<void(ref<node>, std::uint64_t, std::uint64_t)> walk =
        [&](ref<node> at, std::uint64_t way, std::uint64_t depth) {
            const std::uint64_t bytes = of.get(at, &node::fragment_bytes),
                                fragment = of.get(at, &node::fragment);
            if (at.at + sizeof(node) > of.bytes().size() || depth + bytes > key_bytes ||
                depth + bytes < depth) {
                what.wrong = "a node is none";
                return;
            }
            reaches(what, at.at + sizeof(node));
            for (std::uint64_t i = 0; i < bytes; ++i) way = way << 8 | (fragment >> 8 * i & 255);
            depth += bytes;
            const auto value = of.get(at, &node::value);
            if ((depth == key_bytes) != static_cast<bool>(value))
                what.wrong = "a value is not at a key's end";
            if (value) return check_value(of, way, value, what);
            for (std::uint64_t i = 0; i < slots && what.wrong.empty(); ++i)
                if (const auto below = of.get(at, &node::slot, i))
                    walk(below, way << 8 | i, depth + 1);
        };
    if (const auto root = of.get(tree_, &tree::root)) walk(root, 0, 0);
    return what;
}

} // namespace

std::unique_ptr<workload> make_rtree(std::uint64_t value_words, const layout& where) {
    return std::make_unique<rtree>(value_words, where);
}

} // namespace hf::slpmt
