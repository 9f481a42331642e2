// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An AVL tree without parents. Recovery computes heights, which follow from the shape, so they may
// be annotated as lazy.
#include <slpmt/workloads/structures.hpp>

#include <array>
#include <functional>

namespace hf::slpmt {
namespace {

struct node {
    std::uint64_t key;
    link<std::uint64_t> value;
    link<node> left, right;
    std::uint64_t height;
};

class avl final : public tree_workload<node> {
public:
    avl(std::uint64_t value_words, const layout& where)
        : tree_workload(value_words, where, all_sites(), root_link) {}

    std::string_view name() const override { return "avl"; }
    void insert(program& in, std::uint64_t key) override;
    void recover(image& of) const override;
    found check(const image& of) const override;

private:
    using side = link<node> node::*;
    static constexpr side sides[2] = {&node::left, &node::right};

    enum : unsigned {
        new_key,
        new_value,
        value_bytes,
        new_left,
        new_right,
        node_height,
        root_link,
        child_link
    };
    static std::vector<site> all_sites() {
        return {{"key", log_free},      {"value pointer", log_free}, {"value bytes", log_free},
                {"left", log_free},     {"right", log_free},         {"height", eager_logged},
                {"root", eager_logged}, {"child", eager_logged}};
    }

    static std::uint64_t height_of(program& in, ref<node> at) {
        return at ? in.get(at, &node::height) : 0;
    }
    void set_height(program& in, ref<node> at);
    ref<node> rotate(program& in, ref<node> top, bool right);
    ref<node> balance(program& in, ref<node> at);
};

void avl::set_height(program& in, ref<node> at) {
    const std::uint64_t height = 1 + std::max(height_of(in, in.get(at, &node::left)),
                                              height_of(in, in.get(at, &node::right)));
    if (in.get(at, &node::height) != height) in.set(at, &node::height, height, sites_[node_height]);
}

ref<node> avl::rotate(program& in, ref<node> top, bool right) {
    const auto lifted = in.get(top, sides[!right]);
    in.set(top, sides[!right], in.get(lifted, sides[right]), sites_[child_link]);
    in.set(lifted, sides[right], top, sites_[child_link]);
    set_height(in, top);
    set_height(in, lifted);
    return lifted;
}

/// Returns the subtree's top.
ref<node> avl::balance(program& in, ref<node> at) {
    const auto left = in.get(at, &node::left), right = in.get(at, &node::right);
    const auto of_left = static_cast<std::int64_t>(height_of(in, left));
    const auto of_right = static_cast<std::int64_t>(height_of(in, right));
    if (of_left - of_right > 1) {
        if (height_of(in, in.get(left, &node::left)) < height_of(in, in.get(left, &node::right)))
            in.set(at, &node::left, rotate(in, left, false), sites_[child_link]);
        return rotate(in, at, true);
    }
    if (of_right - of_left > 1) {
        if (height_of(in, in.get(right, &node::right)) < height_of(in, in.get(right, &node::left)))
            in.set(at, &node::right, rotate(in, right, true), sites_[child_link]);
        return rotate(in, at, false);
    }
    set_height(in, at);
    return at;
}

void avl::insert(program& in, std::uint64_t key) {
    struct step {
        ref<node> at;
        bool right;
    };
    std::array<step, depth_max> way;
    unsigned depth = 0;
    for (auto at = in.get(tree_, &tree::root); at;) {
        const std::uint64_t there = in.get(at, &node::key);
        if (there == key) return;
        way[depth++] = {at, there < key};
        at = in.get(at, sides[there < key]);
    }
    const auto one = in.make<node>();
    in.set(one, &node::key, key, sites_[new_key]);
    in.set(one, &node::value, make_value(in, key, sites_[value_bytes]), sites_[new_value]);
    in.set(one, &node::left, ref<node>{}, sites_[new_left]);
    in.set(one, &node::right, ref<node>{}, sites_[new_right]);
    in.set(one, &node::height, std::uint64_t{1}, sites_[node_height]);
    for (ref<node> below = one;;) {
        if (depth == 0) {
            if (!(in.get(tree_, &tree::root) == below))
                in.set(tree_, &tree::root, below, sites_[root_link]);
            return;
        }
        const auto [at, right] = way[--depth];
        if (!(in.get(at, sides[right]) == below))
            in.set(at, sides[right], below, sites_[child_link]);
        below = balance(in, at);
    }
}

void avl::recover(image& of) const {
    const std::function<std::uint64_t(ref<node>, unsigned)> measure =
        [&](ref<node> at, unsigned depth) -> std::uint64_t {
        if (!at || depth == 0 || at.at + sizeof(node) > of.bytes().size()) return 0;
        const std::uint64_t height = 1 + std::max(measure(of.get(at, &node::left), depth - 1),
                                                  measure(of.get(at, &node::right), depth - 1));
        of.set(at, &node::height, height);
        return height;
    };
    measure(of.get(tree_, &tree::root), depth_max);
}

found avl::check(const image& of) const {
    found what;
    const std::function<std::uint64_t(ref<node>, std::uint64_t, std::uint64_t, unsigned)> walk =
        [&](ref<node> at, std::uint64_t low, std::uint64_t high, unsigned depth) -> std::uint64_t {
        if (!at || !what.wrong.empty()) return 0;
        if (depth == 0 || at.at + sizeof(node) > of.bytes().size()) {
            what.wrong = "the tree is a circle, or leads out of memory";
            return 0;
        }
        const std::uint64_t key = of.get(at, &node::key);
        if (key < low || key > high) what.wrong = "keys are not in order";
        reaches(what, at.at + sizeof(node));
        check_value(of, key, of.get(at, &node::value), what);
        const std::uint64_t left = walk(of.get(at, &node::left), low, key - 1, depth - 1);
        const std::uint64_t right = walk(of.get(at, &node::right), key + 1, high, depth - 1);
        if (left > right + 1 || right > left + 1) what.wrong = "the tree is not balanced";
        if (of.get(at, &node::height) != 1 + std::max(left, right))
            what.wrong = "a height is wrong";
        return 1 + std::max(left, right);
    };
    walk(of.get(tree_, &tree::root), 0, ~std::uint64_t{0}, depth_max);
    return what;
}

} // namespace

std::unique_ptr<workload> make_avl(std::uint64_t value_words, const layout& where) {
    return std::make_unique<avl>(value_words, where);
}

} // namespace hf::slpmt
