// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The textbook's chained map on libpmemobj, in transactions as its manual teaches: what is
// overwritten is announced by hand. Values stand inside entries, and links are its own pointers.
#pragma once

#include "subject.hpp"

#include <string>

namespace hf::bench::plain {

/// Its functions work on the newest pool that is open.
const subject& pmdk_textbook();

/// Wants PMEM_IS_PMEM_FORCE=1 in the environment from the start (peers/pmdk_pool.hpp).
class pmdk_pool {
public:
    pmdk_pool(const std::string& path, std::uint64_t bytes);
    ~pmdk_pool();
    pmdk_pool(const pmdk_pool&) = delete;
    pmdk_pool& operator=(const pmdk_pool&) = delete;
    void* root() const noexcept;
};

} // namespace hf::bench::plain
