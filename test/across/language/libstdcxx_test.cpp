// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bodies of <holdfast/libstdcxx.hpp> do what libstdc++'s own do, on volatile containers: random
// operations, each compared with sorted vectors, and the trees' invariants after each. The oracle
// (compiler/test/oracle), bench/plain and its crash programs show how sections use them.
#include <holdfast/libstdcxx.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

namespace {

using node = std::_Rb_tree_node_base;

/// Black nodes on each way down from 'n'; -1 if the invariants are broken.
int black_height(const node* n) {
    if (n == nullptr) return 0;
    for (const node* child : {n->_M_left, n->_M_right})
        if (child != nullptr && (child->_M_parent != n ||
                                 (n->_M_color == std::_S_red && child->_M_color == std::_S_red)))
            return -1;
    const int left = black_height(n->_M_left), right = black_height(n->_M_right);
    if (left == -1 || left != right) return -1;
    return left + (n->_M_color == std::_S_black ? 1 : 0);
}

template <class Set> bool is_valid(const Set& s) {
    const node* header = s.end()._M_node;
    const node* root = header->_M_parent;
    if (header->_M_color != std::_S_red) return false;
    if (root == nullptr) return header->_M_left == header && header->_M_right == header;
    const node *first = root, *last = root;
    while (first->_M_left != nullptr) first = first->_M_left;
    while (last->_M_right != nullptr) last = last->_M_right;
    return root->_M_color == std::_S_black && root->_M_parent == header &&
           black_height(root) != -1 && header->_M_left == first && header->_M_right == last;
}

TEST(LibstdcxxNodes, ATreeIsASortedVectorAfterEveryOperation) {
    for (const unsigned range : {3U, 12U, 40U, 400U}) {
        std::mt19937 random(range);
        std::multiset<unsigned> tree;
        std::vector<unsigned> sorted;
        for (int i = 0; i < 4000; ++i) {
            const unsigned key = random() % range;
            const bool grows = random() % 64 < (i / 500 % 2 == 0 ? 40U : 24U);
            const auto at = std::ranges::lower_bound(sorted, key);
            if (grows) {
                tree.insert(key);
                sorted.insert(at, key);
            } else if (at != sorted.end() && *at == key) {
                tree.erase(tree.find(key));
                sorted.erase(at);
            }
            ASSERT_TRUE(is_valid(tree)) << "range " << range << ", operation " << i;
            ASSERT_TRUE(std::ranges::equal(tree, sorted));
            ASSERT_TRUE(std::equal(tree.rbegin(), tree.rend(), sorted.rbegin(), sorted.rend()));
        }
    }
}

TEST(LibstdcxxNodes, ATreeOfOneIsWalkedBothWays) {
    std::set<int> one{7};
    EXPECT_EQ(std::next(one.begin()), one.end());
    EXPECT_EQ(*std::prev(one.end()), 7);
    one.erase(7);
    EXPECT_TRUE(is_valid(one));
    EXPECT_EQ(one.begin(), one.end());
}

TEST(LibstdcxxNodes, AListIsAVectorAfterEveryOperation) {
    std::mt19937 random(1);
    std::list<unsigned> list;
    std::vector<unsigned> vector;
    const auto place = [&] { return static_cast<std::ptrdiff_t>(random() % (vector.size() + 1)); };
    for (int i = 0; i < 20000; ++i) {
        const std::ptrdiff_t at = place();
        switch (random() % 6) {
        case 0:
        case 1:
            list.insert(std::next(list.begin(), at), random() % 100);
            vector.insert(vector.begin() + at, *std::next(list.begin(), at));
            break;
        case 2:
            if (at == std::ssize(vector)) break;
            list.erase(std::next(list.begin(), at));
            vector.erase(vector.begin() + at);
            break;
        case 3: {
            const std::ptrdiff_t to = place();
            const auto [first, last] = std::minmax({at, to});
            if (first == 0) break; // the place would be one of them
            list.splice(list.begin(), list, std::next(list.begin(), first),
                        std::next(list.begin(), last));
            std::rotate(vector.begin(), vector.begin() + first, vector.begin() + last);
            break;
        }
        case 4:
            list.reverse();
            std::ranges::reverse(vector);
            break;
        case 5: {
            std::list<unsigned> other(vector.size() % 3, 5);
            list.swap(other);
            if (random() % 8 != 0) list.splice(list.end(), other);
            std::vector<unsigned> swapped(vector.size() % 3, 5);
            if (list.size() != swapped.size())
                swapped.insert(swapped.end(), vector.begin(), vector.end());
            vector = swapped;
            break;
        }
        }
        ASSERT_TRUE(std::ranges::equal(list, vector)) << i;
        ASSERT_TRUE(std::equal(list.rbegin(), list.rend(), vector.rbegin(), vector.rend())) << i;
    }
    list.sort();
    std::ranges::sort(vector);
    EXPECT_TRUE(std::ranges::equal(list, vector));
}

} // namespace
