// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What indirect and virtual calls of sections reach (holdfast_abi.h): the instances, by the
// addresses of the functions they were made of. Modules tell of them when they are loaded, and take
// that back when they are unloaded: another may come to where one was.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <dlfcn.h>
#include <mutex>
#include <new>
#include <unordered_map>

namespace hf::redo {
namespace {

using row = hf_redo_callees_row;

struct callees {
    std::mutex lock;
    // Under 'lock'. An inline function comes from several modules.
    std::unordered_multimap<const void*, const row*> by_address;
};
callees& all() {
    static auto* table =
        new callees; // never destroyed: pools, and libraries, may outlive static destructors
    return *table;
}
/// How often a module has told of some, or taken some back: what a thread remembers from before may
/// be another's by now.
constinit std::atomic<std::uint64_t> generation{0};

/// What this thread has called of late.
struct remembered {
    const void* function = nullptr;
    const void* instance = nullptr;
    std::uint64_t generation = 0;
};
constexpr std::size_t remembered_count = 64;
constexpr std::uintptr_t alignment_of_functions = 16;
constinit thread_local std::array<remembered, remembered_count> recent{};

/// One that has an instance, if there is any: another module may have seen less of what the
/// function calls.
const row* find(const void* function) {
    callees& table = all();
    std::scoped_lock held{table.lock};
    const row* found = nullptr;
    const auto [first, end] = table.by_address.equal_range(function);
    for (auto it = first; it != end; ++it)
        if (found == nullptr || found->instance == nullptr) found = it->second;
    return found;
}

[[noreturn]] void refuse(const void* function, const char* where, const row* known) {
    if (function == nullptr) fatal("%s: a section calls a function by a null pointer", where);
    if (known != nullptr)
        fatal("%s: a section calls %s by its address, which cannot run in a section: %s", where,
              readable_name(known->name), known->why);
    Dl_info found{};
    const char* const symbol = ::dladdr(function, &found) != 0 ? found.dli_sname : nullptr;
    fatal("%s: a section calls %s (%p) by its address, of which there is no version for sections: "
          "its body must be in a source of this program that is built for engine redo",
          where, symbol != nullptr ? readable_name(symbol) : "a function", function);
}

} // namespace
} // namespace hf::redo

extern "C" {

void hf_redo_register_callees(const hf_redo_callees_row* rows, std::uint64_t count) noexcept {
    hf::redo::callees& table = hf::redo::all();
    std::scoped_lock held{table.lock};
    try {
        for (std::uint64_t i = 0; i < count; ++i)
            table.by_address.emplace(rows[i].function, &rows[i]);
    } catch (const std::bad_alloc&) {
        hf::fatal("out of memory in hf_redo_register_callees");
    }
    hf::redo::generation.fetch_add(1, std::memory_order_release);
}

void hf_redo_forget_callees(const hf_redo_callees_row* rows, std::uint64_t count) noexcept {
    hf::redo::callees& table = hf::redo::all();
    std::scoped_lock held{table.lock};
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto [first, end] = table.by_address.equal_range(rows[i].function);
        const auto its =
            std::find_if(first, end, [&](const auto& r) { return r.second == &rows[i]; });
        if (its != end) table.by_address.erase(its);
    }
    hf::redo::generation.fetch_add(1, std::memory_order_release);
}

const void* hf_redo_callee(const void* function, const char* where) noexcept {
    using namespace hf::redo;
    remembered& last = recent[reinterpret_cast<std::uintptr_t>(function) / alignment_of_functions %
                              remembered_count];
    const std::uint64_t now = generation.load(std::memory_order_acquire);
    if (last.function == function && last.generation == now && function != nullptr) [[likely]]
        return last.instance;
    const row* const found = find(function);
    if (found == nullptr || found->instance == nullptr) refuse(function, where, found);
    last = {function, found->instance, now};
    return found->instance;
}

} // extern "C"
