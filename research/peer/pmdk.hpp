// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the applications on libpmemobj: the pool's file, and a transaction as a function.
//
// libpmem reads its environment when it is loaded: call restart_for_pmdk first in main. On tmpfs
// libpmem needs the hint that this is persistent memory, or it calls msync. For experiments that
// only kill the process its write-backs are taken away.
#pragma once

#include <holdfast/result.hpp>

#include <cstdlib>
#include <filesystem>
#include <libpmemobj.h>
#include <memory>
#include <string>
#include <unistd.h>

namespace hf::apps::pmdk {

inline void restart_for_pmdk(bool power, char** arguments) {
    if (std::getenv("PMEM_IS_PMEM_FORCE") != nullptr) return;
    ::setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    if (!power) ::setenv("PMEM_NO_FLUSH", "1", 1);
    ::execv("/proc/self/exe", arguments);
    std::abort();
}

template <class T> T* direct(PMEMoid object) noexcept {
    return static_cast<T*>(pmemobj_direct(object));
}

/// Announces that the transaction will overwrite this object.
template <class T> void snapshot(T* object) noexcept {
    pmemobj_tx_add_range_direct(object, sizeof(T));
}

struct closing {
    void operator()(PMEMobjpool* open) const noexcept { pmemobj_close(open); }
};
using pool_handle = std::unique_ptr<PMEMobjpool, closing>;

inline status failed(const std::string& doing) {
    return {errc::io_error, doing + ": " + pmemobj_errormsg()};
}

/// Opens the pool, or makes it with 'bytes'.
inline result<pool_handle> open(const std::string& path, const char* layout, std::size_t bytes,
                                bool prefault) {
    int yes = prefault ? 1 : 0;
    pmemobj_ctl_set(nullptr, "prefault.at_create", &yes);
    PMEMobjpool* const opened = std::filesystem::exists(path)
                                    ? pmemobj_open(path.c_str(), layout)
                                    : pmemobj_create(path.c_str(), layout, bytes, 0600);
    if (opened == nullptr) return failed(path);
    return pool_handle(opened);
}

/// Runs body() in a transaction: pool_full when it was aborted. An abort leaves body by longjmp, so
/// body holds nothing that a destructor must give back.
template <class F> status in_transaction(PMEMobjpool* pool, const F& body) noexcept {
    volatile bool done = false;
    TX_BEGIN(pool) { body(); }
    TX_ONCOMMIT { done = true; }
    TX_END
    if (done) return {};
    return {errc::pool_full, std::string("transaction aborted: ") + pmemobj_errormsg()};
}

} // namespace hf::apps::pmdk
