// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What indirect and virtual calls of an engine's sections reach (holdfast_abi.h): the instances, by
// the addresses of the functions they were made of. A module adds its own when it is loaded, and
// takes them back when it is unloaded: another module may come to the same place.
#pragma once

#include <holdfast/abi/holdfast_abi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace hf {

class callee_table {
public:
    constexpr callee_table() noexcept = default;
    callee_table(const callee_table&) = delete;
    callee_table& operator=(const callee_table&) = delete;

    void add(const hf_callees_row* rows, std::uint64_t count) noexcept;
    void forget(const hf_callees_row* rows, std::uint64_t count) noexcept;
    /// Ends the process, naming the function and 'where' it is called, if it has no instance.
    const void* instance_of(const void* function, const char* where) noexcept;

private:
    // An inline function comes from several modules.
    using addresses = std::unordered_multimap<const void*, const hf_callees_row*>;
    const hf_callees_row* row_of(const void* function) noexcept;

    std::mutex lock_;
    addresses* by_address_ = nullptr; // under 'lock_'; never destroyed: pools, and libraries, may
                                      // outlive static destructors
    /// How often rows were added or taken back: a thread remembers what it found only as long as
    /// this stays the same.
    std::atomic<std::uint64_t> generation_{0};
};

} // namespace hf
