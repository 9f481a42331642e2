// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels of SLPMT's study as plain code, built with engine selective: memory that the compiler
// takes for new is not logged, and no crash may show it. (The simulated machine proves the same of
// the same stores: research/slpmt.) derived.hpp declares parents and heights, and the compiler
// makes their plain stores lazy; the function built from the same declarations computes lost ones
// again. Without that function they are logged.
#include "kv_kernels.hpp"
#include <check/pool_program.hpp>

#include <holdfast/author/derived.hpp>
#include <holdfast/selective.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kernels {
namespace {

constexpr word value_words = 2;

void describe_value(word key, const word* value, hf::crash::state& s) {
    s.object(value);
    s.add(key);
    for (word i = 0; i < value_words; ++i)
        s.expect(value[i] == value_word(key, i), "a value is its key's");
}
void describe_pair(const pair* one, hf::crash::state& s) {
    s.object(one);
    describe_value(one->key, one->value, s);
}

/// Names the table's own blocks; with 'pairs' what they lead to as well.
void describe_slots(hashtable::chain** slots, word count, bool pairs, hf::crash::state& s) {
    s.object(slots);
    s.object(slots[0]); // the headers are one block
    for (word i = 0; i < count; ++i) {
        word length = 0;
        for (const auto* at = slots[i]->first; at != nullptr; at = at->next, ++length) {
            s.object(at);
            if (pairs) describe_pair(at->data, s);
        }
        s.expect(slots[i]->size == length, "a chain's size");
    }
}
void describe(hashtable::table& in, hf::crash::state& s) {
    s.add(in.size);
    describe_slots(in.slots, in.slot_count, true, s);
    if (in.old_slots != nullptr) describe_slots(in.old_slots, in.old_count, false, s);
}

void describe(heap::all& in, hf::crash::state& s) {
    s.object(in.elements);
    for (word i = 0; i < in.size; ++i) {
        describe_pair(in.elements[i], s);
        s.expect(i == 0 || in.elements[(i - 1) / 2]->key >= in.elements[i]->key, "the order");
    }
}

/// The black nodes on every way down.
word describe(const rbtree::node* at, const rbtree::node* parent, hf::crash::state& s) {
    if (at == nullptr) return 0;
    s.object(at);
    s.expect(at->parent == parent, "a parent");
    s.expect(at->colour == rbtree::black || (parent != nullptr && parent->colour == rbtree::black),
             "a red node has a black parent");
    const word left = describe(at->left, at, s);
    describe_value(at->key, at->value, s);
    s.expect(left == describe(at->right, at, s), "as many black nodes on either side");
    return left + (at->colour == rbtree::black);
}
void describe(rbtree::tree& in, hf::crash::state& s) { describe(in.root, nullptr, s); }

word describe(const avl::node* at, hf::crash::state& s) {
    if (at == nullptr) return 0;
    s.object(at);
    const word left = describe(at->left, s);
    describe_value(at->key, at->value, s);
    const word right = describe(at->right, s);
    s.expect(left <= right + 1 && right <= left + 1, "the balance");
    s.expect(at->height == 1 + std::max(left, right), "a height");
    return at->height;
}
void describe(avl::tree& in, hf::crash::state& s) { describe(in.root, s); }

/// Returns how deep its leaves are.
word describe(const btree::node* at, hf::crash::state& s) {
    s.object(at);
    s.expect(at->count != 0 && at->count <= btree::items_max, "a node's count");
    const bool leaf = at->children[0] == nullptr;
    word below = 0;
    for (word i = 0; i <= at->count; ++i) {
        if (!leaf) {
            const word depth = describe(at->children[i], s);
            s.expect(i == 0 || depth == below, "leaves are equally deep");
            below = depth;
        }
        if (i < at->count) describe_value(at->keys[i], at->values[i], s);
        s.expect(i == 0 || i == at->count || at->keys[i - 1] < at->keys[i], "the order");
    }
    return below + 1;
}
void describe(btree::tree& in, hf::crash::state& s) {
    if (in.root != nullptr) describe(in.root, s);
}

void describe(ctree::entry& in, hf::crash::state& s) {
    if (in.key != 0) return describe_value(in.key, static_cast<const word*>(in.below), s);
    if (in.below == nullptr) return;
    auto* inner = static_cast<ctree::node*>(in.below);
    s.object(inner);
    for (ctree::entry& one : inner->entries) describe(one, s);
}

/// 'way': the key's bytes so far.
void describe(const rtree::node* at, word way, word depth, hf::crash::state& s) {
    s.object(at);
    for (word i = 0; i < at->fragment_bytes; ++i) way = way << 8 | (at->fragment >> 8 * i & 255);
    depth += at->fragment_bytes;
    s.expect((depth == rtree::key_bytes) == (at->value != nullptr), "a value at a key's end");
    if (at->value != nullptr) return describe_value(way, at->value, s);
    for (word i = 0; i < rtree::slots; ++i)
        if (at->slot[i] != nullptr) describe(at->slot[i], way << 8 | i, depth + 1, s);
}
void describe(rtree::tree& in, hf::crash::state& s) {
    if (in.root != nullptr) describe(in.root, 0, 0, s);
}

bool create(rbtree::tree*) { return true; }
bool create(avl::tree*) { return true; }
bool create(btree::tree*) { return true; }
bool create(ctree::entry*) { return true; }
bool create(rtree::tree*) { return true; }

/// Computes again what follows from the links, for structures with such members.
template <class Root> struct found_again {};
template <>
struct found_again<rbtree::tree>
    : hf::derived::recovery<
          hf::derived::links<&rbtree::tree::root, &rbtree::node::left, &rbtree::node::right>,
          hf::derived::parent<&rbtree::node::parent>> {};

word height(const avl::node& of) {
    return 1 + std::max(avl::height_of(of.left), avl::height_of(of.right));
}
template <>
struct found_again<avl::tree>
    : hf::derived::recovery<
          hf::derived::links<&avl::tree::root, &avl::node::left, &avl::node::right>,
          hf::derived::value<&avl::node::height, height>> {};

template <class Root> class insertions final : public hf::crash::pool_program {
public:
    insertions(std::vector<word> before, std::vector<word> keys, bool rebuilds)
        : pool_program({.layout = "crash/kernels",
                        .engines = {engine(rebuilds)},
                        .bytes = hf::operator""_KiB(128),
                        .max_threads = 64}),
          before_(std::move(before)), keys_(std::move(keys)) {}
    void setup(hf::pool& p) override {
        done_ = create(p.root<Root>());
        for (const word key : before_) done_ = done_ && insert(p.root<Root>(), key, value_words);
    }
    unsigned operations(unsigned) const override { return static_cast<unsigned>(keys_.size()); }
    void run(hf::pool& p, unsigned, unsigned i) override {
        done_ = insert(p.root<Root>(), keys_[i], value_words) && done_;
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        s.expect(done_, "there is room");
        kernels::describe(*p.root<Root>(), s);
    }

private:
    static hf::engine_ptr engine(bool rebuilds) {
        if constexpr (requires { &found_again<Root>::rebuild; })
            if (rebuilds) return hf::selective::engine({.rebuild = found_again<Root>::rebuild});
        return hf::selective::engine();
    }

    const std::vector<word> before_, keys_;
    bool done_ = true;
};

std::vector<word> upwards(word count) {
    std::vector<word> keys;
    for (word key = 1; key <= count; ++key) keys.push_back(key);
    return keys;
}

template <class Root>
void add(const std::string& name, std::vector<word> before, std::vector<word> keys,
         bool rebuilds = false) {
    hf::crash::add("kernels/" + name, std::make_unique<insertions<Root>>(
                                          std::move(before), std::move(keys), rebuilds));
}

[[maybe_unused]] const bool added = [] {
    add<hashtable::table>("hashtable", upwards(3), {7, 8});
    add<hashtable::table>("hashtable resized", upwards(48), {49});
    add<heap::all>("heap", upwards(3), {9, 2, 10});
    add<rbtree::tree>("rbtree", upwards(7), {8});
    add<rbtree::tree>("rbtree inside", {40, 30, 50, 60}, {20, 25, 55});
    add<avl::tree>("avl", {4, 2, 5}, {1, 3, 6, 7});
    add<avl::tree>("avl inside", {40, 30}, {35, 60, 50});
    add<btree::tree>("kv-btree, split", upwards(7), {8, 9});
    add<ctree::entry>("kv-ctree", {9}, {1, 13, 11});
    add<rtree::tree>("kv-rtree, forked", {0x0102}, {0x0103, 0x010203});
    constexpr bool rebuilds = true;
    add<rbtree::tree>("rbtree, parents found again", upwards(7), {8}, rebuilds);
    add<rbtree::tree>("rbtree inside, parents found again", {40, 30, 50, 60}, {20, 25, 55},
                      rebuilds);
    add<avl::tree>("avl, heights found again", {4, 2, 5}, {1, 3, 6, 7}, rebuilds);
    add<avl::tree>("avl inside, heights found again", {40, 30}, {35, 60, 50}, rebuilds);
    return true;
}();

} // namespace
} // namespace kernels
