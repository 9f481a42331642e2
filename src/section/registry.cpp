// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <section/pool_impl.hpp>
#include <section/registry.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <array>
#include <atomic>
#include <map>

namespace hf::registry {
namespace {

constexpr std::size_t pools_max = 64;

struct open_pool {
    std::atomic<std::uintptr_t> base{0};
    std::atomic<std::uintptr_t> bytes{0}; // 0: place unused
    std::atomic<pool::impl*> impl{nullptr};
};
std::array<open_pool, pools_max> pools;
std::atomic<std::size_t> places_used{0};

std::map<std::uint64_t, const hf_txfunc*>& txfuncs() {
    static std::map<std::uint64_t, const hf_txfunc*> table;
    return table;
}
std::mutex& txfuncs_lock() {
    static std::mutex lock;
    return lock;
}

} // namespace

std::mutex& guard() noexcept {
    static std::mutex lock;
    return lock;
}

void add(pool::impl* pool) {
    std::scoped_lock held{guard()};
    for (std::size_t i = 0; i < pools_max; ++i) {
        if (pools[i].bytes.load() != 0) continue;
        pools[i].base = reinterpret_cast<std::uintptr_t>(pool->file->base());
        pools[i].impl = pool;
        pools[i].bytes = pool->file->shape().max_bytes; // makes the place visible
        if (i >= places_used.load()) places_used = i + 1;
        return;
    }
    fatal("more than %zu pools open in one process", pools_max);
}

void remove(pool::impl* pool) {
    std::scoped_lock held{guard()};
    for (auto& place : pools)
        if (place.bytes.load() != 0 && place.impl.load() == pool) {
            place.bytes = 0;
            place.impl = nullptr;
        }
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
    for (auto& place : pools)
        if (place.bytes.load() != 0 && place.impl.load()->instance == instance) return true;
    return false;
}

const hf_txfunc* find_txfunc(std::uint64_t id) noexcept {
    std::scoped_lock held{txfuncs_lock()};
    const auto found = txfuncs().find(id);
    return found == txfuncs().end() ? nullptr : found->second;
}

} // namespace hf::registry

extern "C" void hf_txfunc_register(const hf_txfunc* function) noexcept {
    using namespace hf::registry;
    if ((function->abi_version & ~HF_ABI_RELOCATABLE) != HF_ABI_VERSION)
        hf::fatal("%s was instrumented for ABI %u, this library has %u", function->name,
                  function->abi_version, HF_ABI_VERSION);
    std::scoped_lock held{txfuncs_lock()};
    const auto [place, added] = hf::without_exceptions(
        "hf_txfunc_register", [&] { return txfuncs().emplace(function->id, function); });
    // The same inline function may come from several libraries; two different ones may not share a
    // name.
    if (!added && place->second->version != function->version)
        hf::fatal("txfunc %s is in this program twice, with different bodies (%s, %s)",
                  function->name, place->second->where, function->where);
}
