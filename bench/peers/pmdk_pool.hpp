// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the structures on libpmemobj: the pool's file, and a transaction as a function.
//
// On tmpfs libpmemobj needs the hint that this is persistent memory, before it initialises, or it
// calls msync: PMEM_IS_PMEM_FORCE=1. In process mode PMEM_NO_FLUSH=1 takes its write-backs away:
// the rest survives a killed process. The command sets both and starts itself again.
#pragma once

#include "../map_under_test.hpp"
#include "../temporary_file.hpp"
#include "libpmem_events.hpp"

#include <holdfast/author/persist.hpp>

#include <chrono>
#include <filesystem>
#include <libpmemobj.h>
#include <optional>

namespace hf::bench::pmdk {

template <class T> T* direct(PMEMoid object) { return static_cast<T*>(pmemobj_direct(object)); }

/// Announces that a transaction will overwrite this object. Counted as a log entry: 24 bytes and
/// the object, up to the next line (libpmemobj 1.12, ulog.c of its sources).
inline void snapshot_bytes(void* begin, std::size_t bytes) {
    pmemobj_tx_add_range_direct(begin, bytes);
    persist::counters& counted = persist::thread_counters();
    ++counted.log_entries;
    counted.log_bytes += (24 + bytes + 63) / 64 * 64;
}
template <class T> void snapshot(T* object, std::size_t count = 1) {
    snapshot_bytes(object, count * sizeof(T));
}

class pool_file {
public:
    explicit pool_file(const map_options& given)
        : process_(given.mode == hf::mode::process), file_(given.directory, "pmdk", given.keep_at) {
        int prefault = given.prefault ? 1 : 0;
        int yes = 1;
        pmemobj_ctl_set(nullptr, "prefault.at_create", &prefault);
        reopened_ = std::filesystem::exists(file_.path());
        const auto start = std::chrono::steady_clock::now();
        const char* path = file_.path().c_str();
        pool_ = reopened_ ? pmemobj_open(path, "bench")
                          : pmemobj_create(path, "bench", pool_bytes(given), 0600);
        if (pool_ == nullptr) fail(reopened_ ? "pmemobj_open" : "pmemobj_create");
        // Counting what is allocated costs a little: only where events are counted as well.
        if (libpmem_is_counted() && pmemobj_ctl_set(pool_, "stats.enabled", &yes) != 0)
            fail("stats.enabled");
        open_ = std::chrono::steady_clock::now() - start;
    }
    pool_file(const pool_file&) = delete;
    pool_file& operator=(const pool_file&) = delete;
    ~pool_file() { pmemobj_close(pool_); }

    PMEMobjpool* pool() const noexcept { return pool_; }
    bool reopened() const noexcept { return reopened_; }
    std::optional<bench::reopened> state() const {
        bench::reopened seen;
        seen.open_ms = open_.count();
        seen.file_bytes = std::filesystem::file_size(file_.path());
        return seen;
    }
    template <class Root> Root* root() const {
        return direct<Root>(pmemobj_root(pool_, sizeof(Root)));
    }
    /// Known where it was counted.
    std::optional<memory_use> memory(std::uint64_t elements) const {
        std::uint64_t bytes = 0;
        if (!libpmem_is_counted() ||
            pmemobj_ctl_get(pool_, "stats.heap.curr_allocated", &bytes) != 0)
            return std::nullopt;
        return memory_use{elements, bytes, std::nullopt};
    }
    map_facts facts() const {
        return {!process_, libpmem_is_counted(), true,
                process_ ? "libpmemobj with PMEM_NO_FLUSH=1: survives the process"
                         : "libpmemobj with PMEM_IS_PMEM_FORCE=1: survives power loss on PM"};
    }
    [[noreturn]] static void fail(const char* what) {
        give_up(std::string(what) + ": " + pmemobj_errormsg());
    }

private:
    bool process_;
    bool reopened_ = false;
    std::chrono::duration<double, std::milli> open_{};
    temporary_file file_;
    PMEMobjpool* pool_ = nullptr;
};

/// Runs body() in a transaction; false when it was aborted. An abort leaves body by longjmp: body
/// holds nothing that a destructor must give back.
template <class F> bool in_transaction(PMEMobjpool* pool, const F& body) noexcept {
    volatile bool done = false;
    TX_BEGIN(pool) { body(); }
    TX_ONCOMMIT { done = true; }
    TX_END
    return done;
}

} // namespace hf::bench::pmdk
