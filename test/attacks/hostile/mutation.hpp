// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structure-aware mutation. It has the place of every field of a pool, and mostly makes checksums
// right again afterwards, so that the checks behind them are reached.
#pragma once

#include "base_pools.hpp"
#include <alloc/heap.hpp>
#include <alloc/size_classes.hpp>
#include <log/lane.hpp>
#include <pool/header.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace hf::hostile {

using random_source = std::mt19937_64;

template <class T> T load_from(std::span<const std::byte> file, std::uint64_t at) {
    T out{};
    if (at <= file.size() && sizeof out <= file.size() - at)
        std::memcpy(&out, file.data() + at, sizeof out);
    return out;
}

/// Places of a base pool's parts, all from its start.
class pool_map {
public:
    explicit pool_map(const base_pool& of);

    struct log {
        std::uint64_t start;              // of a lane's half
        std::vector<std::uint64_t> heads; // of its records that hold
    };
    pool_header header;
    std::uint64_t file_bytes;
    std::vector<std::uint64_t> header_words, root_words, lane_words, table_words, object_words,
        seal_words;
    std::vector<log> logs;            // every half, those without records too
    std::vector<block> blocks;        // allocated
    std::vector<block> free_slots;    // what could be blocks
    std::vector<std::uint64_t> edges; // offsets near which things go wrong
    // MOD's part; empty without one.
    std::uint64_t mod_super = 0;
    std::vector<std::uint64_t> mod_cells, mod_arenas;
    std::vector<std::uint64_t> mod_super_words, mod_cell_words, mod_arena_words, mod_bitmap_words;
    std::vector<block> mod_nodes;

    // Engine justdo's part; empty without one.
    std::vector<std::uint64_t> justdo_words, justdo_threads; // the latter: their blocks

private:
    void map_justdo(std::span<const std::byte> file);
    void map_mod(std::span<const std::byte> file);
    void map_logs(std::span<const std::byte> file);
    void map_heap(std::span<const std::byte> file);
};

/// Makes one mutant after another of one base pool in the same memory.
class mutator {
public:
    /// 'memory' holds the base pool's bytes.
    mutator(const pool_map& map, std::span<std::byte> memory, random_source& random)
        : map_(&map), memory_(memory), random_(&random), file_bytes_(map.file_bytes) {}

    void mutate();
    std::uint64_t file_bytes() const noexcept { return file_bytes_; }
    /// The mutations, for people; filled on request.
    std::string story;
    bool tell = false;

private:
    void mutate_once();
    void mutate_header();
    void mutate_word(const std::vector<std::uint64_t>& words, const char* what);
    void mutate_record();
    void append_record();
    void forge_log();
    void mutate_length();
    void mutate_byte();
    void mend_headers();
    void mutate_justdo();
    // mod_mutation.cpp
    void mutate_mod();
    void mutate_mod_node();
    void mutate_mod_cell();
    void mutate_mod_list();
    void forge_mod_record();
    void forge_mod_exchange();
    std::uint32_t interesting_ref(std::uint32_t old);
    void mend_log(const pool_map::log& log);

    struct position {
        std::uint64_t at, limit, chain;
        std::uint64_t kept, kept_chain = 0, records = 0; // of kept records: lane.hpp, 5
    };
    position start_of(const pool_map::log& log) const;
    bool put_record(position& at, record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                    std::span<const std::byte> payload);
    void put_random_record(position& at);
    void put_new_bytes(position& at);
    void put_kept(position& at, std::uint64_t offset, std::span<const std::byte> payload);
    void step_over_kept(position& at, bool write_check);
    bool put_begin(position& at, std::uint64_t half);
    bool step_over(position& at, bool write_check);

    std::uint64_t pick(std::uint64_t below) { return below == 0 ? 0 : (*random_)() % below; }
    bool chance(unsigned percent) { return pick(100) < percent; }
    template <class T> const T& one_of(const std::vector<T>& v) { return v[pick(v.size())]; }
    std::uint64_t interesting(std::uint64_t old);
    std::uint64_t interesting_pointer();
    std::uint64_t interesting_offset();
    block interesting_block();
    template <class T> T load(std::uint64_t at) const { return load_from<T>(memory_, at); }
    template <class T> void store(std::uint64_t at, const T& value) {
        if (at <= memory_.size() && sizeof value <= memory_.size() - at)
            std::memcpy(memory_.data() + at, &value, sizeof value);
    }
    void note(const char* what, std::uint64_t at, std::uint64_t value);

    const pool_map* map_;
    std::span<std::byte> memory_;
    random_source* random_;
    std::uint64_t file_bytes_;
    bool headers_touched_ = false;
};

} // namespace hf::hostile
