// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <open/mark_guard.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <pool/forks.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <new>
#include <pthread.h>
#include <span>

constinit thread_local hf::section* hf::current_section = nullptr;
constinit std::atomic<hf::resumed_section (*)() noexcept> hf::resumes_here{nullptr};

namespace hf::registry {
namespace {

constexpr std::size_t pools_max = 64;

struct open_pool {
    std::atomic<std::uintptr_t> base{0};
    std::atomic<std::uintptr_t> bytes{0}; // 0: place unused
    std::atomic<pool::impl*> impl{nullptr};
};
struct parents_pool {
    std::uintptr_t base = 0, bytes = 0;
};
std::array<open_pool, pools_max> pools;
std::atomic<std::size_t> places_used{0};
std::array<parents_pool, pools_max> parents; // open when this process was forked

/// Whether no two open pools have an address, or an instance number, in common; each with its whole
/// range below 'places_used'.
[[maybe_unused]] bool valid() noexcept {
    for (std::size_t i = 0; i < pools_max; ++i) {
        const std::uintptr_t bytes = pools[i].bytes.load(), base = pools[i].base.load();
        if (bytes == 0) continue;
        const pool::impl* const its = pools[i].impl.load();
        if (i >= places_used.load() || its == nullptr) return false;
        for (std::size_t j = 0; j < i; ++j) {
            const std::uintptr_t other = pools[j].bytes.load();
            if (other == 0) continue;
            if (pools[j].base.load() < base + bytes && base < pools[j].base.load() + other)
                return false;
            if (pools[j].impl.load()->instance == its->instance) return false;
        }
    }
    return true;
}

// Several functions may have one identifier: two files of one name may each have a static function
// of one name, and the same inline function may come from several libraries, one of them perhaps
// unloaded. Their bodies, and so their versions, differ, or it does not matter which is called.
std::multimap<std::uint64_t, const hf_txfunc*>& txfuncs() {
    // Never destroyed: pools, and libraries, may outlive static destructors.
    static auto* by_id = new std::multimap<std::uint64_t, const hf_txfunc*>;
    return *by_id;
}
std::mutex& txfuncs_lock() {
    static std::mutex lock;
    return lock;
}
constinit std::array<std::atomic<int>, 16> functions_of{}; // by the number of their engine's bit
constinit std::atomic<int> functions_for_two{};            // engines: counted for both

void note_only_pool() noexcept {
    const pool::impl* const only = only_pool();
    detail::only_instance = only == nullptr ? 0 : only->instance;
}

} // namespace

constinit std::atomic<std::uint64_t> detail::only_instance{0};

std::mutex& guard() noexcept {
    static std::mutex lock;
    return lock;
}

void add(pool::impl* pool) {
    HF_ASSERT_SLOW(pool->instance != 0);
    HF_ASSERT_SLOW(!is_added(pool));
    std::scoped_lock held{guard()};
    for (std::size_t i = 0; i < pools_max; ++i) {
        if (pools[i].bytes.load() != 0) continue;
        pools[i].base = reinterpret_cast<std::uintptr_t>(pool->file->base());
        pools[i].impl = pool;
        pools[i].bytes = pool->file->shape().max_bytes; // makes the place visible
        if (i >= places_used.load()) places_used = i + 1;
        note_only_pool();
        HF_ASSERT_SLOW(valid());
        return;
    }
    fatal("more than %zu pools open in one process: close one first", pools_max);
}

void remove(pool::impl* pool) {
    if (mark_guard::is_on()) mark_guard::open(*pool); // what closes it stores where nobody looks
    std::scoped_lock held{guard()};
    for (auto& place : pools)
        if (place.bytes.load() != 0 && place.impl.load() == pool) {
            place.bytes = 0;
            place.impl = nullptr;
        }
    note_only_pool();
    HF_ASSERT_SLOW(valid());
}

bool is_added(const pool::impl* pool) noexcept {
    return std::ranges::any_of(pools, [&](const open_pool& place) {
        return place.bytes.load() != 0 && place.impl.load() == pool;
    });
}

pool::impl* pool_of(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t used = places_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
        const std::uintptr_t bytes = pools[i].bytes.load(std::memory_order_acquire);
        if (at - pools[i].base.load(std::memory_order_relaxed) < bytes)
            return pools[i].impl.load(std::memory_order_relaxed);
    }
    return nullptr;
}

pool::impl* only_pool() noexcept {
    pool::impl* found = nullptr;
    const std::size_t used = places_used.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < used; ++i) {
        if (pools[i].bytes.load(std::memory_order_acquire) == 0) continue;
        if (found != nullptr) return nullptr;
        found = pools[i].impl.load(std::memory_order_relaxed);
    }
    return found;
}

bool is_open(std::uint64_t instance) noexcept {
    HF_ASSERT_SLOW(held_here(guard()));
    HF_ASSERT_SLOW(instance != 0);
    for (auto& place : pools)
        if (place.bytes.load() != 0 && place.impl.load()->instance == instance) return true;
    return false;
}

bool is_parents(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::ranges::any_of(parents, [&](const parents_pool& p) {
        return p.bytes != 0 && (address == nullptr || at - p.base < p.bytes);
    });
}

void refuse_parents(const void* address, const char* what) noexcept {
    if (is_parents(address))
        fatal("%s: this is a child of the process that has opened the pool, and has no part in "
              "it: it must open a pool of its own",
              readable_name(what));
}

namespace {

void before_fork() noexcept {
    guard().lock();
    txfuncs_lock().lock();
}

void after_fork() noexcept {
    txfuncs_lock().unlock();
    guard().unlock();
}

/// The parent's pools are not this process's (pool/forks.hpp).
void in_child() noexcept {
    auto unused = parents.begin();
    for (auto& place : pools) {
        const std::uintptr_t bytes = place.bytes.load();
        if (bytes == 0 || place.impl.load()->file->in_memory()) continue;
        unused = std::ranges::find(unused, parents.end(), std::uintptr_t{0}, &parents_pool::bytes);
        if (unused != parents.end()) *unused = {place.base.load(), bytes};
        place.bytes = 0;
        place.impl = nullptr;
    }
    note_only_pool();
    after_fork();
}

// A thread that ends stores under guard() what its sections have left to be stored, and so asks for
// the logs.
[[maybe_unused]] const int watching =
    (forks::watch(), pthread_atfork(before_fork, after_fork, in_child));

} // namespace

const hf_txfunc* find_txfunc(std::uint64_t id, std::uint64_t version) noexcept {
    std::scoped_lock held{txfuncs_lock()};
    const auto [first, end] = txfuncs().equal_range(id);
    const auto exact =
        std::find_if(first, end, [&](const auto& f) { return f.second->version == version; });
    if (exact != end) return exact->second;
    return first == end ? nullptr : first->second;
}

std::uint32_t engines_of_functions() noexcept {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < functions_of.size(); ++i)
        if (functions_of[i].load(std::memory_order_acquire) > 0) bits |= 1u << i;
    return bits;
}

std::uint32_t engines_that_run(bool fenced) noexcept {
    std::uint32_t bits = engines_of_functions();
    if (!fenced) return bits;
    const int chosen = functions_for_two.load(std::memory_order_acquire);
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs)
#define HF_ENGINE_CHOICE(name, in_order, elsewhere)                                                \
    if (functions_of[std::countr_zero(std::uint32_t{engine_##in_order})] == chosen)                \
        bits &= ~engine_##in_order;
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
    return bits;
}

void count_function(std::uint32_t engines, int change) noexcept {
    HF_ASSERT(engines >> functions_of.size() == 0);
    for (std::uint32_t left = engines; left != 0; left &= left - 1)
        functions_of[static_cast<std::size_t>(std::countr_zero(left))] += change;
    if (!std::has_single_bit(engines) && engines != 0) functions_for_two += change;
}

std::uint32_t engines_of(const hf_txfunc& function) noexcept {
    return (function.abi_version & ~HF_ABI_RELOCATABLE) >> HF_ABI_ENGINE_SHIFT;
}

} // namespace hf::registry

extern "C" void hf_txfunc_register(const hf_txfunc* function) noexcept {
    using namespace hf::registry;
    if (const std::uint32_t its = function->abi_version & HF_ABI_VERSION_MASK;
        its != HF_ABI_VERSION)
        hf::fatal("%s (%s) was instrumented for ABI %u, this library has %u: build it again with "
                  "the plugin that came with the library",
                  hf::readable_name(function->name), function->where, its, HF_ABI_VERSION);
    std::scoped_lock held{txfuncs_lock()};
    // Several files of one library may register one inline function.
    const auto [first, end] = txfuncs().equal_range(function->id);
    const bool known = std::any_of(first, end, [&](const auto& f) { return f.second == function; });
    if (!known) try {
            txfuncs().emplace(function->id, function);
            count_function(engines_of(*function), 1);
        } catch (const std::bad_alloc&) {
            hf::fatal("out of memory in hf_txfunc_register");
        }
}

extern "C" void hf_section_calls(const char* engine, const hf_section_call* rows,
                                 std::uint64_t count) noexcept {
    for (const hf_section_call& row : std::span{rows, count})
        if (row.version == nullptr)
            hf::fatal("%s: a section of engine %s calls %s, which another file has for sections of "
                      "engine %s: build both files for one engine, with holdfast_instrument or "
                      "holdfast-clang++",
                      row.where, engine, hf::readable_name(row.name), row.built_for);
}

extern "C" void hf_txfunc_forget(const hf_txfunc* function) noexcept {
    using namespace hf::registry;
    std::scoped_lock held{txfuncs_lock()};
    if (std::erase_if(txfuncs(), [&](const auto& f) { return f.second == function; }) != 0)
        count_function(engines_of(*function), -1);
}
