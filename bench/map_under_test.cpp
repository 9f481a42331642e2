// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "map_under_test.hpp"

#include "ours/maps.hpp"
#include "peers/peers.hpp"
#include <structures/hash_table.hpp>

#include <bit>

namespace hf::bench {
namespace {

using maker = std::unique_ptr<map_under_test>(const map_options&);

struct engine_entry {
    std::string_view name;
    maker* make;
    bool (*has)(structure);
};

bool every(structure) { return true; }
bool filled(structure which) { return !is_container(which); }
bool container(structure which) { return is_container(which); }
bool hashed(structure which) { return which == structure::hashmap; }
bool unordered(structure which) { return !ordered(which); }

// The order is that of tables. CMakeLists.txt says which peers are there.
const engine_entry entries[] = {
    {"none", make_map_none, filled},
    {"undo", make_map_undo, filled},
    {"clobber", make_map_clobber, filled},
    {"redo", make_map_redo, filled},
    {"auto", make_map_auto, filled},
    {"selective", make_map_selective, filled},
    {"justdo", make_map_justdo, filled},
    {"ido", make_map_ido, filled},
    {"vlog-only", make_map_vlog_only, filled},
    {"clobberlog-only", make_map_clobberlog_only, filled},
    {"clobber-unrefined", make_map_clobber_unrefined, filled},
    {"mod", make_map_mod, container},
    {"pmdk", make_map_pmdk, every},
    {"pmdk-outside", make_map_pmdk_outside, hashed},
    {"pmdk-actions", make_map_pmdk_actions, unordered},
#ifdef HF_WITH_LMDB
    {"lmdb", make_map_lmdb, every},
    {"lmdb-writemap-nosync", make_map_lmdb_writemap_nosync, every},
#endif
#ifdef HF_WITH_ROCKSDB
    {"rocksdb", make_map_rocksdb, filled},
    {"rocksdb-nosync", make_map_rocksdb_nosync, filled},
#endif
#ifdef HF_WITH_SQLITE
    {"sqlite", make_map_sqlite, filled},
    {"sqlite-normal", make_map_sqlite_normal, filled},
#endif
#ifdef HF_WITH_BDB
    {"bdb", make_map_bdb, filled},
    {"bdb-nosync", make_map_bdb_nosync, filled},
    {"bdb-hash", make_map_bdb_hash, hashed},
    {"bdb-hash-nosync", make_map_bdb_hash_nosync, hashed},
#endif
    {"floor-1f", make_map_floor_1f, unordered},
    {"floor-2f", make_map_floor_2f, unordered},
    {"floor-append", make_map_floor_append, unordered},
    {"volatile", make_map_volatile, every},
};

} // namespace

std::string_view name_of(structure which) {
    switch (which) {
    case structure::hashmap: return "hashmap";
    case structure::bptree: return "bptree";
    case structure::skiplist: return "skiplist";
    case structure::rbtree: return "rbtree";
    case structure::avl: return "avl";
    case structure::map: return "map";
    case structure::set: return "set";
    }
    return "";
}

const std::vector<structure>& all_structures() {
    static const std::vector<structure> all{
        structure::hashmap, structure::bptree, structure::skiplist, structure::rbtree,
        structure::avl,     structure::map,    structure::set};
    return all;
}

std::uint64_t buckets_per_instance(std::uint64_t keys) {
    const std::uint64_t nodes = keys / lock_count + 1;
    return std::bit_ceil(nodes / structures::hash_table::nodes_per_bucket + 1);
}

std::unique_ptr<map_under_test> make_map(std::string_view engine, const map_options& options) {
    for (const engine_entry& each : entries)
        if (each.name == engine && each.has(options.which)) return each.make(options);
    return nullptr;
}

std::unique_ptr<map_under_test> make_map_pmdk(const map_options& options) {
    switch (options.which) {
    case structure::hashmap:
    case structure::map:
    case structure::set: return make_pmdk_hashmap(options);
    case structure::bptree: return make_pmdk_bptree(options);
    case structure::skiplist: return make_pmdk_skiplist(options);
    case structure::rbtree: return make_pmdk_rbtree(options);
    case structure::avl: return make_pmdk_avl(options);
    }
    return nullptr;
}

std::unique_ptr<map_under_test> make_map_volatile(const map_options& options) {
    if (!ordered(options.which)) return make_volatile_hashmap(options);
    return make_volatile_ordered_map(options);
}

std::vector<std::string> engines_for(structure which) {
    std::vector<std::string> names;
    for (const engine_entry& each : entries)
        if (each.has(which)) names.emplace_back(each.name);
    return names;
}

} // namespace hf::bench
