// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stores of the kernels and of the key-value store whose annotation the compiler finds:
// log-free if the section has allocated their target; lazy if the target follows from links
// (compiler/analysis/BackPointers.h). It logs all others. compiler/test/patterns compiles the same
// insertions as plain code and fails if this table says anything else.
#pragma once

#include <slpmt/workloads/workload.hpp>

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace hf::slpmt {

struct found_store {
    std::string_view workload, site;
    operands how;
};

// One row a line, in the order in which they are found.
inline constexpr found_store found_by_compiler[] = {
    {"hashtable", "new slot", log_free},
    {"hashtable", "moved node", log_free},
    {"hashtable", "value bytes", log_free},
    {"hashtable", "pair key", log_free},
    {"hashtable", "value pointer", log_free},
    {"hashtable", "chain node data", log_free},
    {"hashtable", "chain node next", log_free},
    {"rbtree", "value bytes", log_free},
    {"rbtree", "key", log_free},
    {"rbtree", "value pointer", log_free},
    {"rbtree", "left", log_free},
    {"rbtree", "right", log_free},
    {"rbtree", "new parent", log_free},
    {"heap", "value bytes", log_free},
    {"heap", "pair key", log_free},
    {"heap", "value pointer", log_free},
    {"avl", "value bytes", log_free},
    {"avl", "key", log_free},
    {"avl", "value pointer", log_free},
    {"avl", "left", log_free},
    {"avl", "right", log_free},
    {"kv-btree", "value bytes", log_free},
    {"kv-ctree", "value bytes", log_free},
    {"kv-rtree", "value bytes", log_free},
    {"kv-btree", "new node's child", log_free},
    {"kv-btree", "new node's count", log_free},
    {"kv-ctree", "new node's bit", log_free},
    {"kv-ctree", "new node's key", log_free},
    {"kv-ctree", "new node's entry", log_free},
    {"kv-rtree", "cleared slot", log_free},
    {"kv-rtree", "new node's value", log_free},
    {"kv-rtree", "new node's fragment", log_free},
    {"kv-rtree", "new node's slot", log_free},
    {"rbtree", "rotated parent", lazy_logged},
};

inline std::size_t count_by_compiler(std::string_view workload) {
    std::size_t count = 0;
    for (const found_store& found : found_by_compiler) count += found.workload == workload;
    return count;
}

/// Every store of a kernel with what the compiler makes of it, so that nothing is left of what
/// hands wrote.
inline std::vector<std::pair<std::string_view, operands>>
annotations_by_compiler(std::string_view workload) {
    std::vector<std::pair<std::string_view, operands>> all;
    const auto made = make_workload(workload, 16, layout{});
    for (const site& one : made->sites()) {
        all.emplace_back(one.name, eager_logged);
        for (const found_store& found : found_by_compiler)
            if (found.workload == workload && found.site == one.name) all.back().second = found.how;
    }
    return all;
}

} // namespace hf::slpmt
