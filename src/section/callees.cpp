// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <section/callees.hpp>

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <new>

namespace hf {
namespace {

/// What this thread has called of late.
struct remembered {
    const callee_table* table = nullptr;
    const void* function = nullptr;
    const void* instance = nullptr;
    std::uint64_t generation = 0;
};
constexpr std::size_t remembered_count = 64;
constexpr std::uintptr_t alignment_of_functions = 16;
constinit thread_local std::array<remembered, remembered_count> recent{};

[[noreturn]] void refuse(const void* function, const char* where, const hf_callees_row* known) {
    if (function == nullptr)
        fatal("%s: a section calls a function by a null pointer: check the pointer first", where);
    if (known != nullptr)
        fatal("%s: a section calls %s by its address, which cannot run in a section: %s", where,
              readable_name(known->name), known->why);
    Dl_info found{};
    const char* const symbol = ::dladdr(function, &found) != 0 ? found.dli_sname : nullptr;
    fatal("%s: a section calls %s (%p) by its address: expected a version of it for sections, "
          "found none: build the source that has its body for the section's engine",
          where, symbol != nullptr ? readable_name(symbol) : "a function", function);
}

} // namespace

void callee_table::add(const hf_callees_row* rows, std::uint64_t count) noexcept {
    std::scoped_lock held{lock_};
    try {
        if (by_address_ == nullptr) by_address_ = new addresses;
        for (std::uint64_t i = 0; i < count; ++i) by_address_->emplace(rows[i].function, &rows[i]);
    } catch (const std::bad_alloc&) {
        fatal("out of memory for the functions that sections may call by address");
    }
    generation_.fetch_add(1, std::memory_order_release);
}

void callee_table::forget(const hf_callees_row* rows, std::uint64_t count) noexcept {
    std::scoped_lock held{lock_};
    if (by_address_ == nullptr) return;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto [first, end] = by_address_->equal_range(rows[i].function);
        const auto its =
            std::find_if(first, end, [&](const auto& r) { return r.second == &rows[i]; });
        if (its != end) by_address_->erase(its);
    }
    generation_.fetch_add(1, std::memory_order_release);
}

/// One that has an instance, if there is any: another module may have seen less of what the
/// function calls.
const hf_callees_row* callee_table::row_of(const void* function) noexcept {
    std::scoped_lock held{lock_};
    const hf_callees_row* found = nullptr;
    if (by_address_ == nullptr) return found;
    const auto [first, end] = by_address_->equal_range(function);
    for (auto it = first; it != end; ++it)
        if (found == nullptr || found->instance == nullptr) found = it->second;
    return found;
}

const void* callee_table::instance_of(const void* function, const char* where) noexcept {
    remembered& last = recent[reinterpret_cast<std::uintptr_t>(function) / alignment_of_functions %
                              remembered_count];
    const std::uint64_t now = generation_.load(std::memory_order_acquire);
    if (last.function == function && last.table == this && last.generation == now &&
        function != nullptr) [[likely]]
        return last.instance;
    const hf_callees_row* const found = row_of(function);
    if (found == nullptr || found->instance == nullptr) refuse(function, where, found);
    last = {this, function, found->instance, now};
    return found->instance;
}

} // namespace hf
