// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A server's cache as plain as memcached's: a chained hash table, and a set puts a fresh item where
// the old one was. On engines with sections and on libpmemobj.  Source: Clobber §5.6.
//
// A cache has no lock. The caller holds one around it, as memcached 1.2 did: alone for set(), alone
// or with other readers for get().
#pragma once

#include <holdfast/result.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::apps::server {

using cache_key = std::array<char, 16>;
using cache_value = std::array<std::uint64_t, 8>; // 64 bytes

inline std::uint64_t hash_of(const cache_key& key) noexcept {
    return XXH3_64bits(key.data(), sizeof key);
}

class cache {
public:
    virtual ~cache() = default;
    /// Inserts the key, or gives it another value. False: the pool is full; nothing has changed.
    virtual bool set(const cache_key& key, const cache_value& value) = 0;
    /// Copies the key's value. False: no such key.
    virtual bool get(const cache_key& key, cache_value& value) const = 0;
    virtual std::uint64_t size() const = 0;
};

struct cache_options {
    std::string path;       // of the pool; no file is there yet
    std::uint64_t keys = 0; // room from the start, and buckets
};

// Engines of the paper's comparison that are compiled: CMakeLists.txt builds section_cache.cpp for
// each of them.
#define HF_CACHE_ENGINES(X) X(none) X(undo) X(clobber) X(redo)

/// Makes an empty cache in a pool that survives power loss. 'engine': one of HF_CACHE_ENGINES, or
/// "pmdk", before which pmdk::restart_for_pmdk() must have been called.
result<std::unique_ptr<cache>> make_cache(std::string_view engine, const cache_options& options);

result<std::unique_ptr<cache>> make_pmdk_cache(const cache_options& options);

} // namespace hf::apps::server
