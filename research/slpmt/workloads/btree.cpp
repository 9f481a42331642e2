// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PMDK's btree_map: order 8, items in every node, full nodes split on the way down.
#include <slpmt/workloads/structures.hpp>

#include <functional>

namespace hf::slpmt {
namespace {

constexpr std::uint64_t order = 8, items_max = order - 1, middle = items_max / 2;
struct node {
    std::uint64_t count;
    std::uint64_t keys[items_max];
    link<std::uint64_t> values[items_max];
    link<node> children[order]; // the first is null in a leaf
};

class btree final : public tree_workload<node> {
public:
    btree(std::uint64_t value_words, const layout& where)
        : tree_workload(value_words, where, all_sites(), root_link) {}

    std::string_view name() const override { return "kv-btree"; }
    void insert(program& in, std::uint64_t key) override;
    void recover(image&) const override {} // nothing is lazy, and log-free bytes are unreachable
    found check(const image& of) const override;

private:
    enum : unsigned {
        value_bytes,
        new_count,
        new_key,
        new_value,
        new_child,
        root_link,
        item_count,
        item_key,
        item_value,
        child_link
    };
    static std::vector<site> all_sites() {
        return {{"value bytes", log_free},      {"new node's count", log_free},
                {"new node's key", log_free},   {"new node's value", log_free},
                {"new node's child", log_free}, {"root", eager_logged},
                {"count", eager_logged},        {"key", eager_logged},
                {"value", eager_logged},        {"child", eager_logged}};
    }

    void split(program& in, ref<node> parent, std::uint64_t at, ref<node> full, bool new_parent);
    void put_item(program& in, ref<node> into, std::uint64_t at, std::uint64_t key,
                  ref<std::uint64_t> value);
};

/// Makes room at a place of a node that is not full, and stores an item there.
void btree::put_item(program& in, ref<node> into, std::uint64_t at, std::uint64_t key,
                     ref<std::uint64_t> value) {
    const std::uint64_t count = in.get(into, &node::count);
    for (std::uint64_t i = count; i > at; --i) {
        in.set(into, &node::keys, i, in.get(into, &node::keys, i - 1), sites_[item_key]);
        in.set(into, &node::values, i, in.get(into, &node::values, i - 1), sites_[item_value]);
    }
    in.set(into, &node::keys, at, key, sites_[item_key]);
    in.set(into, &node::values, at, value, sites_[item_value]);
    in.set(into, &node::count, count + 1, sites_[item_count]);
}

/// The upper half of a full child moves to a new node, its middle item to the parent.
void btree::split(program& in, ref<node> parent, std::uint64_t at, ref<node> full,
                  bool new_parent) {
    const auto right = in.make<node>();
    for (std::uint64_t i = middle + 1; i < items_max; ++i) {
        in.set(right, &node::keys, i - middle - 1, in.get(full, &node::keys, i), sites_[new_key]);
        in.set(right, &node::values, i - middle - 1, in.get(full, &node::values, i),
               sites_[new_value]);
    }
    for (std::uint64_t i = middle + 1; i < order; ++i)
        in.set(right, &node::children, i - middle - 1, in.get(full, &node::children, i),
               sites_[new_child]);
    in.set(right, &node::count, items_max - middle - 1, sites_[new_count]);
    const std::uint64_t key = in.get(full, &node::keys, middle);
    const auto value = in.get(full, &node::values, middle);
    in.set(full, &node::count, middle, sites_[item_count]);
    if (new_parent) { // of no item yet
        in.set(parent, &node::keys, 0, key, sites_[new_key]);
        in.set(parent, &node::values, 0, value, sites_[new_value]);
        in.set(parent, &node::children, 0, full, sites_[new_child]);
        in.set(parent, &node::children, 1, right, sites_[new_child]);
        in.set(parent, &node::count, std::uint64_t{1}, sites_[new_count]);
        return;
    }
    for (std::uint64_t i = in.get(parent, &node::count) + 1; i > at + 1; --i)
        in.set(parent, &node::children, i, in.get(parent, &node::children, i - 1),
               sites_[child_link]);
    in.set(parent, &node::children, at + 1, right, sites_[child_link]);
    put_item(in, parent, at, key, value);
}

void btree::insert(program& in, std::uint64_t key) {
    const auto value = make_value(in, key, sites_[value_bytes]);
    auto at = in.get(tree_, &tree::root);
    if (!at) {
        at = in.make<node>();
        in.set(at, &node::keys, 0, key, sites_[new_key]);
        in.set(at, &node::values, 0, value, sites_[new_value]);
        for (std::uint64_t i = 0; i < order; ++i)
            in.set(at, &node::children, i, ref<node>{}, sites_[new_child]);
        in.set(at, &node::count, std::uint64_t{1}, sites_[new_count]);
        in.set(tree_, &tree::root, at, sites_[root_link]);
        return;
    }
    if (in.get(at, &node::count) == items_max) {
        const auto top = in.make<node>();
        split(in, top, 0, at, true);
        in.set(tree_, &tree::root, top, sites_[root_link]);
        at = top;
    }
    for (;;) {
        const std::uint64_t count = in.get(at, &node::count);
        std::uint64_t place = 0;
        while (place < count && in.get(at, &node::keys, place) < key) ++place;
        if (place < count && in.get(at, &node::keys, place) == key) return;
        const auto child = in.get(at, &node::children, place);
        if (!child) return put_item(in, at, place, key, value);
        if (in.get(child, &node::count) == items_max)
            split(in, at, place, child, false); // and look again
        else at = child;
    }
}

found btree::check(const image& of) const {
    found what;
    const std::function<unsigned(ref<node>, std::uint64_t, std::uint64_t, unsigned)> walk =
        [&](ref<node> at, std::uint64_t low, std::uint64_t high, unsigned depth) -> unsigned {
        const std::uint64_t count = of.get(at, &node::count);
        if (count == 0 || count > items_max || depth == 0 ||
            at.at + sizeof(node) > of.bytes().size()) {
            what.wrong = "a node is none";
            return 0;
        }
        reaches(what, at.at + sizeof(node));
        const bool leaf = !of.get(at, &node::children, 0);
        unsigned below = 0;
        for (std::uint64_t i = 0; i <= count && what.wrong.empty(); ++i) {
            const std::uint64_t key = i < count ? of.get(at, &node::keys, i) : high;
            if (key < low || key > high) what.wrong = "keys are not in order";
            if (!leaf) {
                const unsigned deep = walk(of.get(at, &node::children, i), low,
                                           i < count ? key - 1 : high, depth - 1);
                if (i != 0 && deep != below) what.wrong = "leaves are not equally deep";
                below = deep;
            }
            if (i < count) check_value(of, key, of.get(at, &node::values, i), what);
            low = key + 1;
        }
        return below + 1;
    };
    if (const auto root = of.get(tree_, &tree::root)) walk(root, 0, ~std::uint64_t{0}, 40);
    return what;
}

} // namespace

std::unique_ptr<workload> make_btree(std::uint64_t value_words, const layout& where) {
    return std::make_unique<btree>(value_words, where);
}

} // namespace hf::slpmt
