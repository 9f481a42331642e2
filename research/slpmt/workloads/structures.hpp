// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each structure's maker; make_workload() chooses. And what those have in common that are entered
// by a link.
#pragma once

#include <slpmt/workloads/workload.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace hf::slpmt {

/// A tree: the root names its top, at first nothing.
template <class Node> class tree_workload : public workload {
public:
    void create(program& in) override {
        in.set(tree_, &tree::root, ref<Node>{}, sites_[root_link_]);
    }

protected:
    struct tree {
        link<Node> root;
    };
    /// 'root_link': the site of stores to that link.
    tree_workload(std::uint64_t value_words, const layout& where, std::vector<site> sites,
                  unsigned root_link)
        : workload(value_words, std::move(sites)), tree_(root_of<tree>(where)),
          root_link_(root_link) {}

    const ref<tree> tree_;

private:
    const unsigned root_link_;
};

std::unique_ptr<workload> make_hashtable(std::uint64_t value_words, const layout& where,
                                         bool keeps_old_table);
std::unique_ptr<workload> make_rbtree(std::uint64_t value_words, const layout& where);
std::unique_ptr<workload> make_heap(std::uint64_t value_words, const layout& where);
std::unique_ptr<workload> make_avl(std::uint64_t value_words, const layout& where);
std::unique_ptr<workload> make_btree(std::uint64_t value_words, const layout& where);
std::unique_ptr<workload> make_ctree(std::uint64_t value_words, const layout& where);
std::unique_ptr<workload> make_rtree(std::uint64_t value_words, const layout& where);

} // namespace hf::slpmt
