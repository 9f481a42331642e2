// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/workloads/structures.hpp>

namespace hf::slpmt {

std::unique_ptr<workload> make_workload(std::string_view name, std::uint64_t value_bytes,
                                        const layout& where) {
    const std::uint64_t words = value_bytes / 8;
    if (name == "hashtable") return make_hashtable(words, where, true);
    if (name == hashtable_by_the_text) return make_hashtable(words, where, false);
    struct maker {
        std::string_view known;
        std::unique_ptr<workload> (*make)(std::uint64_t value_words, const layout& where);
    };
    for (const auto& [known, make] : {maker{"rbtree", make_rbtree}, maker{"heap", make_heap},
                                      maker{"avl", make_avl}, maker{"kv-btree", make_btree},
                                      maker{"kv-ctree", make_ctree}, maker{"kv-rtree", make_rtree}})
        if (name == known) return make(words, where);
    return nullptr;
}

} // namespace hf::slpmt
