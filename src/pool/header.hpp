// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The durable header of a pool, format version 1 (docs/format/pool.md). Do not change the meaning
// of existing fields: they are part of the format on disk.
//
// (1) 'magic', 'format_version', 'header_bytes' and 'checksum' keep their places in every version,
//     so any build can distinguish a newer pool from a damaged one.
// (2) The checksum covers every byte before it, reserved ones included.
#pragma once

#include <base/checksum.hpp>
#include <pool/extents.hpp>
#include <pool/pool_file.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf {

inline constexpr std::uint64_t header_magic = 0x54534146444c4f48ULL; // "HOLDFAST" in the file
inline constexpr std::uint32_t header_format_version = 1;
inline constexpr std::uint64_t header_a_offset = 0;
inline constexpr std::uint64_t header_b_offset = 4096;
inline constexpr std::uint64_t root_words_offset = 8192;
inline constexpr std::uint64_t lanes_start_offset = 12288;

/// Optional: left open, and a copy made at one moment, all of it on the disk (copying.hpp). Neither
/// another boot nor another file makes its content doubtful. Gone with the first open.
inline constexpr std::uint64_t feature_whole = 1;
/// Optional: free chunks may be holes in the file (pool::trim). The file's number of blocks does
/// not always show it, because a file system counts some of its own among them.
inline constexpr std::uint64_t feature_holes = 2;
/// Required bits change what readers must understand; a build that misses one refuses the pool.
/// Left open, with addresses of a mapping at 'mapped_address' in its logs.
inline constexpr std::uint64_t feature_relocated = 1;
/// Left open in a domain whose caches outlive a failure of the machine (eADR).
inline constexpr std::uint64_t feature_caches_persist = 2;
/// Left open in mode power: what its log holds is not in the file (docs/format/power.md).
inline constexpr std::uint64_t feature_power_log = 4;
/// On the way from 'layout' to 'next_layout' (open_options::migrate), open or closed.
inline constexpr std::uint64_t feature_migrating = 8;
inline constexpr std::uint64_t known_required_features =
    feature_relocated | feature_caches_persist | feature_power_log | feature_migrating;

/// Two marks of each engine, by its bit, among the required features. A pool has them that was left
/// open, and only of the engines that its header names.
struct engine_marks {
    /// Engines whose log records for rolling back may be missing (kinds 11 and 12).
    std::uint32_t drop_bytes = 0;
    /// Engines whose lazy stores the next open computes again (engine::rebuild).
    std::uint32_t rebuild = 0;

    static constexpr engine_marks of(std::uint64_t features) noexcept {
        constexpr std::uint32_t all = (1U << engines_max) - 1;
        return {static_cast<std::uint32_t>(features >> drop_shift) & all,
                static_cast<std::uint32_t>(features >> rebuild_shift) & all};
    }
    constexpr std::uint64_t features() const noexcept {
        return std::uint64_t{drop_bytes} << drop_shift | std::uint64_t{rebuild} << rebuild_shift;
    }

private:
    static constexpr unsigned rebuild_shift = 64 - engines_max,
                              drop_shift = rebuild_shift - engines_max;
};

inline constexpr std::uint64_t pool_bytes_min = 64ULL << 10;
inline constexpr std::uint64_t pool_bytes_max = 1ULL << 40;
inline constexpr std::uint32_t lane_count_max = 4096;

/// Canonical addresses: application memory for plain programs, sanitizers and valgrind
/// (docs/internals/design.md).
inline constexpr std::uint64_t base_low = HF_CANONICAL_LOW;
inline constexpr std::uint64_t base_high = HF_CANONICAL_HIGH;
/// The address range of pools that are not mapped at their canonical address; nothing else is
/// there.
inline constexpr std::uint64_t relocated_low = std::uint64_t{HF_RELOCATED_BITS}
                                               << HF_RELOCATED_SHIFT;
inline constexpr std::uint64_t relocated_high = (std::uint64_t{HF_RELOCATED_BITS} + 1)
                                                << HF_RELOCATED_SHIFT;

/// Alignment of a canonical address: huge pages, and gigantic ones where the pool may need them.
constexpr std::uint64_t base_alignment(std::uint64_t max_bytes) {
    return max_bytes > (1ULL << 30) ? 1ULL << 30 : 2ULL << 20;
}

struct pool_header {
    std::uint64_t magic;             // header_magic: says "this is a pool"
    std::uint32_t format_version;    // header_format_version of the build that wrote it
    std::uint32_t header_bytes;      // size of one copy, 4096
    std::uint64_t required_features; // bits a reader must know
    std::uint64_t optional_features; // bits a reader may ignore
    std::uint8_t uuid[16];           // random, chosen at creation; names the pool for good
    std::uint64_t sequence;          // grows by one with every header write; the higher copy counts
    std::uint64_t generation;        // how often the pool was marked open
    std::uint64_t base_address;      // canonical address
    std::uint64_t max_bytes;         // growth limit of the file
    std::uint64_t chunk_bytes;       // allocator's chunk, and the unit of extents
    std::uint64_t lanes_offset;      // first log lane, from pool start
    std::uint64_t lane_bytes;        // size of one lane
    std::uint32_t lane_count;        // number of lanes
    std::uint32_t engines;           // engine_bit mask of engines that may hold durable state
    std::uint64_t layout_hash;       // application's hash of its types; 0 when it has none
    std::uint32_t mode;              // hf::mode of the last mark_open
    std::uint32_t open;              // 1 from mark_open to the clean close, else 0
    char boot_id[40];             // kernel boot identifier of the last mark_open, zero-padded text
    char layout[64];              // application's layout name, zero-padded text
    std::uint32_t extent_count;   // extents in use, 1 to 128
    std::uint32_t reserved_word;  // zero
    extent extents[extents_max];  // heap, in file order
    std::uint64_t mapped_address; // with feature_relocated: the mapping that logs may name; else 0
    std::uint64_t file_inode;     // while open: of the file it is open in; 0: not known
    std::uint64_t file_birth_ns;  // while open: when that file was made; 0: not known
    std::uint64_t power_salt;     // of the last log of mode power; 0: there was none
    char next_layout[64];         // with feature_migrating: what 'layout' will be; else zero
    std::uint64_t next_layout_hash; // and 'layout_hash'
    std::uint64_t machine_start_ns; // where 'boot_id' is not the kernel's own, when the machine was
                                    // started, in ns since 1970; 0: it is, or that is not known
    std::uint64_t laid_out_bytes
        [extents_max];          // the room of each extent's tables; the last extent may grow to it
    std::uint64_t reserved[83]; // zero
    std::uint64_t checksum;     // XXH3-64 of all bytes before it, seeded with header_magic
};
static_assert(sizeof(extent) == 16);
static_assert(sizeof(pool_header) == 4096);
static_assert(std::is_trivially_copyable_v<pool_header> && std::is_standard_layout_v<pool_header>);
static_assert(std::has_unique_object_representations_v<pool_header>, "no padding");
static_assert(offsetof(pool_header, uuid) == 32 && offsetof(pool_header, sequence) == 48);
static_assert(offsetof(pool_header, base_address) == 64 &&
              offsetof(pool_header, lane_count) == 104);
static_assert(offsetof(pool_header, boot_id) == 128 && offsetof(pool_header, layout) == 168);
static_assert(offsetof(pool_header, extent_count) == 232 && offsetof(pool_header, extents) == 240);
static_assert(offsetof(pool_header, mapped_address) == 2288 &&
              offsetof(pool_header, file_inode) == 2296 &&
              offsetof(pool_header, power_salt) == 2312 &&
              offsetof(pool_header, next_layout) == 2320 &&
              offsetof(pool_header, machine_start_ns) == 2392 &&
              offsetof(pool_header, laid_out_bytes) == 2400 &&
              offsetof(pool_header, checksum) == 4088);

inline engine_marks marks_of(const pool_header& h) noexcept {
    return engine_marks::of(h.required_features);
}
inline void set_marks(pool_header& h, const engine_marks& marks) noexcept {
    h.required_features &= known_required_features;
    h.required_features |= marks.features();
}

inline bool is_migrating(const pool_header& h) noexcept {
    return (h.required_features & feature_migrating) != 0;
}

inline std::uint64_t header_checksum(const pool_header& h) noexcept {
    return checksum(&h, offsetof(pool_header, checksum), header_magic);
}

} // namespace hf
