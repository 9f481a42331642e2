// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holdfast's own structures as subjects: what their sections log is measured beside other people's.
#include "structures.hpp"

#include <structures/avl_tree.hpp>
#include <structures/bptree.hpp>
#include <structures/hash_map.hpp>
#include <structures/rb_tree.hpp>
#include <structures/skip_list.hpp>

#include <holdfast/alloc.hpp>

#include <cstring>

HF_PLAIN_BEGIN(structures)

using number = std::uint64_t;
namespace ours = hf::structures;

/// Too large for the root, which holds its address. Zero-filled it is empty.
template <class Map> HF_TXFUNC void create_map(void* root, number) {
    void* memory = hf_alloc(sizeof(Map));
    std::memset(memory, 0, sizeof(Map));
    *static_cast<Map**>(root) = static_cast<Map*>(memory);
}
template <class Map> Map* map_at(const void* root) { return *static_cast<Map* const*>(root); }
template <class Map> bool insert(void* root, number key, number value) {
    return map_at<Map>(root)->insert(key, value);
}
template <class Map> bool erase(void* root, number key) { return map_at<Map>(root)->erase(key); }
template <class Map> void visit(const void* root, void* to, visitor* each) {
    map_at<Map>(root)->for_each(
        [&](const number& key, const number& value) { each(to, &value, key, value); });
}
template <class Map> constexpr subject ordered(const char* name) {
    return {name,        shape::keyed, "insert",  "erase", create_map<Map>,
            insert<Map>, erase<Map>,   visit<Map>};
}

constexpr subject all[] = {
    ordered<ours::hash_map<number, number>>("hf::hash_map"),
    ordered<ours::bptree<number, number>>("hf::bptree"),
    ordered<ours::skip_list<number, number>>("hf::skip_list"),
    ordered<ours::rb_tree<number, number>>("hf::rb_tree"),
    ordered<ours::avl_tree<number, number>>("hf::avl_tree"),
};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END

extern "C" hf::bench::plain::subjects hf_bench_plain_structures() {
    return hf::bench::plain::structures::list();
}
