// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "map_under_test.hpp"

#include <structures/hash_table.hpp>

#include <bit>

namespace hf::bench {

std::uint64_t buckets_per_instance(std::uint64_t keys) {
    const std::uint64_t nodes = keys / lock_count + 1;
    return std::bit_ceil(nodes / structures::hash_table::nodes_per_bucket + 1);
}

std::uint64_t pool_bytes(const map_options& given) {
    const std::uint64_t per_key = (given.value_bytes + 64) * 3 / 2 + 64;
    const std::uint64_t bytes = given.keys * per_key + (std::uint64_t{64} << 20);
    return bytes / 4096 * 4096;
}

std::unique_ptr<map_under_test> make_map(std::string_view engine, const map_options& options) {
    if (engine == "none") return make_map_none(options);
    if (engine == "undo") return make_map_undo(options);
    if (engine == "clobber") return make_map_clobber(options);
    if (engine == "pmdk") return make_map_pmdk(options);
    if (engine == "pmdk-actions") return make_map_pmdk_actions(options);
    if (engine == "lmdb") return make_map_lmdb(options, false);
    if (engine == "lmdb-writemap-nosync") return make_map_lmdb(options, true);
    if (engine == "floor-2f") return make_map_floor_2f(options);
    if (engine == "volatile") return make_map_volatile(options);
    return nullptr;
}

} // namespace hf::bench
