// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is killed: threads that change a structure in a pool, and a check of what they left.
#pragma once

#include "journal.hpp"
#include <justdo/format.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace kill_test {

class workload {
public:
    virtual ~workload() = default;
    virtual const char* name() const = 0;
    /// Layout and sizes; the harness adds mode and engines. 'round' varies them.
    virtual void shape(hf::open_options& options, std::uint64_t round) const = 0;
    virtual hf::engine_options engines() const { return {}; }
    /// Called first: adds so many records, which nobody changes. False if there is no room for
    /// them.
    virtual bool fill(std::uint64_t records) { return records == 0; }
    /// Makes what the threads need, unless an earlier life of the process has.
    virtual void prepare(hf::pool& pool, journal& log) = 0;
    /// Operates until the process is killed.
    [[noreturn]] virtual void run(hf::pool& pool, journal& log, unsigned thread) = 0;
    /// Compares the pool with the journal, settles unfinished operations, reports through log.fail.
    virtual void verify(hf::pool& pool, journal& log) = 0;
};

/// The workloads of this program's build.
std::vector<workload*> workloads();

workload& map_workload();
workload& tree_workload(); // what it stores lazily with engine selective is rebuilt
workload& bank_workload();
workload& blob_workload();
workload& grid_workload();
workload& locked_workload();
workload& containers_workload();
workload& cache_workload();
workload& simpo_structures_workload();
workload& simpo_retraced_workload();
workload& simpo_swap_workload();
workload& simpo_history_workload();

/// The allocator's account against what can be reached: every allocated block must be named exactly
/// once, and everything named must be an allocated block.
class block_census {
public:
    explicit block_census(const hf::pool& pool) {
        hf::for_each_block(
            pool,
            [](void* to, const void* block, std::size_t bytes) {
                static_cast<std::vector<entry>*>(to)->push_back(
                    {static_cast<const std::byte*>(block), bytes, false});
            },
            &blocks_);
        std::ranges::sort(blocks_, {}, &entry::at);
        for (entry& e : blocks_) e.reached = is_log(e);
    }
    /// False when no block starts at 'at', it is smaller than 'bytes', or it was reached before.
    bool reach(const void* at, std::size_t bytes) {
        entry* found = find(at);
        if (found == nullptr || found->reached || found->bytes < bytes) return false;
        found->reached = true;
        return true;
    }
    /// Marks the block if one starts at 'at': for words that may or may not be pointers.
    void reach_if_block(const void* at) {
        if (entry* found = find(at)) found->reached = true;
    }
    void report_leaks(const hf::pool& pool, journal& log) const {
        std::uint64_t bytes = 0;
        for (const entry& e : blocks_) {
            bytes += e.bytes;
            if (!e.reached)
                log.fail("leak: block of %zu bytes at %p is allocated and cannot be reached",
                         e.bytes, static_cast<const void*>(e.at));
        }
        for (std::size_t i = 1; i < blocks_.size(); ++i)
            if (blocks_[i - 1].at + blocks_[i - 1].bytes > blocks_[i].at)
                log.fail("blocks overlap at %p", static_cast<const void*>(blocks_[i].at));
        const hf::alloc_account account = hf::account(pool);
        if (account.blocks != blocks_.size() || account.block_bytes != bytes)
            log.fail("account: %llu blocks of %llu bytes, walking finds %zu of %llu",
                     static_cast<unsigned long long>(account.blocks),
                     static_cast<unsigned long long>(account.block_bytes), blocks_.size(),
                     static_cast<unsigned long long>(bytes));
    }

private:
    struct entry {
        const std::byte* at;
        std::size_t bytes;
        bool reached;
    };
    /// Whether engine justdo keeps its logs there: in the block of a thread, or in the block that
    /// names those.
    static bool is_log(const entry& e) {
        namespace jd = hf::justdo;
        if (e.bytes < sizeof(jd::thread_block)) return false;
        return reinterpret_cast<const jd::superblock*>(e.at)->magic == jd::superblock_magic ||
               reinterpret_cast<const jd::thread_block*>(e.at)->magic == jd::thread_magic;
    }
    entry* find(const void* at) {
        const auto* wanted = static_cast<const std::byte*>(at);
        const auto place = std::ranges::lower_bound(blocks_, wanted, {}, &entry::at);
        return place != blocks_.end() && place->at == wanted ? &*place : nullptr;
    }
    std::vector<entry> blocks_; // by address
};

} // namespace kill_test
