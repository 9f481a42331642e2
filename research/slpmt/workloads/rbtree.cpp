// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// STAMP's red-black tree: nodes name their parent and have a colour. Both follow from the children:
// recovery sets parents, and finds colours that the tree's shape allows.
#include <slpmt/workloads/structures.hpp>

#include <functional>

namespace hf::slpmt {
namespace {

struct node {
    std::uint64_t key;
    link<std::uint64_t> value;
    link<node> left, right, parent;
    std::uint64_t colour;
};

class rbtree final : public tree_workload<node> {
public:
    rbtree(std::uint64_t value_words, const layout& where)
        : tree_workload(value_words, where, all_sites(), root_link) {}

    std::string_view name() const override { return "rbtree"; }
    void insert(program& in, std::uint64_t key) override;
    void recover(image& of) const override;
    found check(const image& of) const override;

private:
    static constexpr std::uint64_t black = 0, red = 1;

    enum : unsigned {
        new_key,
        new_value,
        value_bytes,
        new_left,
        new_right,
        new_parent,
        rotated_parent,
        node_colour, // by hand
        root_link,
        child_link
    };
    static std::vector<site> all_sites() {
        return {{"key", log_free},
                {"value pointer", log_free},
                {"value bytes", log_free},
                {"left", log_free},
                {"right", log_free},
                {"new parent", log_free},
                {"rotated parent", lazy_logged},
                {"colour", lazy_logged},
                {"root", eager_logged},
                {"child", eager_logged}};
    }

    using side = link<node> node::*;
    static constexpr side sides[2] = {&node::left, &node::right};

    void replace_child(program& in, ref<node> parent, ref<node> old, ref<node> with);
    void rotate(program& in, ref<node> top, bool right);
    void balance(program& in, ref<node> at);
    static std::uint64_t colour_of(program& in, ref<node> at) {
        return at ? in.get(at, &node::colour) : black;
    }

    /// The numbers of black nodes on every way down that a subtree's shape allows, as sets of bits:
    /// with a black top and with a red one.
    struct heights {
        std::uint64_t with_black = 0, with_red = 0;
        std::uint64_t any() const { return with_black | with_red; }
    };
    static heights heights_of(const image& of, ref<node> at, unsigned depth);
    static void paint(image& of, ref<node> at, std::uint64_t black_nodes, bool may_be_red,
                      unsigned depth);
    bool sound(const image& of, found& what) const;
};

void rbtree::replace_child(program& in, ref<node> parent, ref<node> old, ref<node> with) {
    if (!parent) in.set(tree_, &tree::root, with, sites_[root_link]);
    else
        in.set(parent, in.get(parent, &node::left) == old ? &node::left : &node::right, with,
               sites_[child_link]);
}

/// Rotates: lifts the child of `top` on the opposite side.
void rbtree::rotate(program& in, ref<node> top, bool right) {
    const side to = sides[right], from = sides[!right];
    const auto lifted = in.get(top, from);
    const auto inner = in.get(lifted, to);
    const auto above = in.get(top, &node::parent);
    in.set(top, from, inner, sites_[child_link]);
    if (inner) in.set(inner, &node::parent, top, sites_[rotated_parent]);
    in.set(lifted, &node::parent, above, sites_[rotated_parent]);
    replace_child(in, above, top, lifted);
    in.set(lifted, to, top, sites_[child_link]);
    in.set(top, &node::parent, lifted, sites_[rotated_parent]);
}

void rbtree::insert(program& in, std::uint64_t key) {
    ref<node> parent{}, at = in.get(tree_, &tree::root);
    bool right = false;
    while (at) {
        const std::uint64_t there = in.get(at, &node::key);
        if (there == key) return;
        parent = at;
        right = there < key;
        at = in.get(at, sides[right]);
    }
    const auto one = in.make<node>();
    in.set(one, &node::key, key, sites_[new_key]);
    in.set(one, &node::value, make_value(in, key, sites_[value_bytes]), sites_[new_value]);
    in.set(one, &node::left, ref<node>{}, sites_[new_left]);
    in.set(one, &node::right, ref<node>{}, sites_[new_right]);
    in.set(one, &node::parent, parent, sites_[new_parent]);
    in.set(one, &node::colour, red, sites_[node_colour]);
    if (parent) in.set(parent, sides[right], one, sites_[child_link]);
    else in.set(tree_, &tree::root, one, sites_[root_link]);
    balance(in, one);
}

void rbtree::balance(program& in, ref<node> at) {
    for (;;) {
        auto parent = in.get(at, &node::parent);
        if (!parent || in.get(parent, &node::colour) == black) break;
        const auto above = in.get(parent, &node::parent);
        const bool right = !(in.get(above, &node::left) == parent); // where the parent lies
        const auto uncle = in.get(above, sides[!right]);
        if (colour_of(in, uncle) == red) {
            in.set(parent, &node::colour, black, sites_[node_colour]);
            in.set(uncle, &node::colour, black, sites_[node_colour]);
            in.set(above, &node::colour, red, sites_[node_colour]);
            at = above;
            continue;
        }
        if (at == in.get(parent, sides[!right])) {
            rotate(in, parent, right);
            std::swap(at, parent);
        }
        in.set(parent, &node::colour, black, sites_[node_colour]);
        in.set(above, &node::colour, red, sites_[node_colour]);
        rotate(in, above, !right);
        break;
    }
    const auto root = in.get(tree_, &tree::root);
    if (in.get(root, &node::colour) == red) in.set(root, &node::colour, black, sites_[node_colour]);
}

rbtree::heights rbtree::heights_of(const image& of, ref<node> at, unsigned depth) {
    if (!at) return {1, 0}; // no node: none that is black
    if (depth == 0) return {};
    const heights left = heights_of(of, of.get(at, &node::left), depth - 1);
    const heights right = heights_of(of, of.get(at, &node::right), depth - 1);
    return {(left.any() & right.any()) << 1, left.with_black & right.with_black};
}

/// Gives a subtree colours with that many black nodes on every way down; its top is black if it can
/// be.
void rbtree::paint(image& of, ref<node> at, std::uint64_t black_nodes, bool may_be_red,
                   unsigned depth) {
    if (!at || depth == 0) return;
    const bool is_red =
        may_be_red && (heights_of(of, at, depth).with_black >> black_nodes & 1) == 0;
    of.set(at, &node::colour, is_red ? red : black);
    for (const side s : sides) paint(of, of.get(at, s), black_nodes - !is_red, !is_red, depth - 1);
}

void rbtree::recover(image& of) const {
    found what;
    if (sound(of, what) && what.wrong.empty()) return; // nothing lazy was lost
    const auto root = of.get(tree_, &tree::root);
    const std::function<void(ref<node>, ref<node>, unsigned)> name_parent =
        [&](ref<node> at, ref<node> parent, unsigned depth) {
            if (!at || depth == 0 || at.at + sizeof(node) > of.bytes().size()) return;
            of.set(at, &node::parent, parent);
            for (const side s : sides) name_parent(of.get(at, s), at, depth - 1);
        };
    name_parent(root, {}, depth_max);
    const std::uint64_t possible = heights_of(of, root, depth_max).with_black;
    if (of.wild() || possible == 0) return; // never a valid tree; the check will report it
    paint(of, root, static_cast<std::uint64_t>(std::countr_zero(possible)), false, depth_max);
}

/// Walks the tree; false if parents or colours do not fit, which recovery sets right.
bool rbtree::sound(const image& of, found& what) const {
    bool fits = true;
    const std::function<int(ref<node>, ref<node>, std::uint64_t, std::uint64_t, unsigned)> walk =
        [&](ref<node> at, ref<node> parent, std::uint64_t low, std::uint64_t high,
            unsigned depth) -> int {
        if (!at || !what.wrong.empty()) return 0;
        if (depth == 0 || at.at + sizeof(node) > of.bytes().size()) {
            what.wrong = "the tree is a circle, or leads out of memory";
            return 0;
        }
        const std::uint64_t key = of.get(at, &node::key);
        if (key < low || key > high) what.wrong = "keys are not in order";
        reaches(what, at.at + sizeof(node));
        check_value(of, key, of.get(at, &node::value), what);
        const std::uint64_t colour = of.get(at, &node::colour);
        fits &= colour <= red && of.get(at, &node::parent) == parent;
        fits &= colour == black || (parent && of.get(parent, &node::colour) == black);
        const int left = walk(of.get(at, &node::left), at, low, key - 1, depth - 1);
        const int right = walk(of.get(at, &node::right), at, key + 1, high, depth - 1);
        fits &= left == right;
        return left + (colour == black);
    };
    walk(of.get(tree_, &tree::root), {}, 0, ~std::uint64_t{0}, depth_max);
    return fits;
}

found rbtree::check(const image& of) const {
    found what;
    if (!sound(of, what) && what.wrong.empty()) what.wrong = "parents or colours do not fit";
    return what;
}

} // namespace

std::unique_ptr<workload> make_rbtree(std::uint64_t value_words, const layout& where) {
    return std::make_unique<rbtree>(value_words, where);
}

} // namespace hf::slpmt
