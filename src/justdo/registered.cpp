// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <base/engines.hpp>
#include <base/names.hpp>
#include <justdo/registered.hpp>
#include <open/registry.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/lock.hpp>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>

namespace hf::justdo {
namespace {

struct functions {
    std::mutex lock;
    // There may be several of one identifier, each with its version, or with its constants
    // elsewhere: static functions of one name, and inline functions of several libraries. One of
    // the libraries may be unloaded.
    std::multimap<std::uint64_t, const hf_justdo_function*> by_id;
};
functions& known() {
    static auto* all =
        new functions; // never destroyed: pools, and libraries, may outlive static destructors
    return *all;
}

shared_mutex* as_mutex(void* lock) noexcept { return static_cast<shared_mutex*>(lock); }

// A lock of an earlier open is free (lock.cpp), so these are never reset or written back.
constexpr hf_justdo_lock_calls exclusive{
    HF_JUSTDO_EXCLUSIVE,
    0,
    sizeof(shared_mutex),
    0,
    "hf::shared_mutex",
    [](void* lock) { as_mutex(lock)->lock(); },
    [](void* lock) -> int { return as_mutex(lock)->try_lock(); },
    [](void* lock) { as_mutex(lock)->unlock(); },
    nullptr};
constexpr hf_justdo_lock_calls shared{
    HF_JUSTDO_SHARED,
    1,
    sizeof(shared_mutex),
    0,
    "hf::shared_mutex, shared",
    [](void* lock) { as_mutex(lock)->lock_shared(); },
    [](void* lock) -> int { return as_mutex(lock)->try_lock_shared(); },
    [](void* lock) { as_mutex(lock)->unlock_shared(); },
    nullptr};
constexpr hf_justdo_lock_calls no_lock{
    HF_JUSTDO_NO_LOCK, 1,      0, 0, "no lock", nullptr, [](void*) -> int { return 1; },
    [](void*) {},      nullptr};

/// Never 0.
std::uint64_t hash_layout(const hf_justdo_constants& of) noexcept {
    std::uint64_t hash = 0;
    for (std::uint64_t i = 0; i < of.count; ++i) {
        const std::uint64_t distance =
            reinterpret_cast<std::uintptr_t>(of.at[i]) - reinterpret_cast<std::uintptr_t>(of.at[0]);
        hash = checksum(&distance, sizeof distance, hash);
    }
    return hash != 0 ? hash : 1;
}

using kinds = std::array<std::atomic<const hf_justdo_lock_calls*>, HF_JUSTDO_KINDS_MAX>;
constinit kinds lock_kinds{&exclusive, &shared, &no_lock};

} // namespace

const hf_justdo_function* find_function(std::uint64_t id, std::uint64_t version,
                                        std::uint64_t layout) noexcept {
    functions& all = known();
    std::scoped_lock held{all.lock};
    const auto [first, end] = all.by_id.equal_range(id);
    const hf_justdo_function* best = first == end ? nullptr : first->second;
    for (auto it = first; it != end; ++it) {
        if (it->second->version != version) continue;
        if (layout_of(*it->second) == layout) return it->second;
        best = it->second;
    }
    return best;
}

const hf_justdo_lock_calls* find_lock(std::uint32_t kind) noexcept {
    return kind < lock_kinds.size() ? lock_kinds[kind].load(std::memory_order_acquire) : nullptr;
}

} // namespace hf::justdo

extern "C" {

void hf_justdo_register(const hf_justdo_function* f) noexcept try {
    if ((f->abi_version & ~HF_ABI_RELOCATABLE) != HF_ABI_VERSION)
        hf::fatal("%s was instrumented for ABI %u, this library has %u", hf::readable_name(f->name),
                  f->abi_version, HF_ABI_VERSION);
    if (f->frame_bytes > HF_JUSTDO_FRAME_BYTES_MAX || f->points > HF_JUSTDO_POINT_MAX)
        hf::fatal("%s (%s): a frame of %u bytes, %u resume points: at most %u and %u",
                  hf::readable_name(f->name), f->where, f->frame_bytes, f->points,
                  HF_JUSTDO_FRAME_BYTES_MAX, HF_JUSTDO_POINT_MAX);
    if (f->constants != nullptr) f->constants->layout = hf::justdo::hash_layout(*f->constants);
    hf::justdo::functions& all = hf::justdo::known();
    std::scoped_lock held{all.lock};
    // Several files of one library may register one inline function.
    const auto [first, end] = all.by_id.equal_range(f->id);
    for (auto it = first; it != end; ++it)
        if (it->second == f) return;
    all.by_id.emplace(f->id, f);
    hf::registry::count_function(hf::engine_justdo, 1);
} catch (const std::bad_alloc&) {
    hf::fatal("out of memory in hf_justdo_register");
}

void hf_justdo_forget(const hf_justdo_function* f) noexcept {
    hf::justdo::functions& all = hf::justdo::known();
    std::scoped_lock held{all.lock};
    if (std::erase_if(all.by_id, [&](const auto& known) { return known.second == f; }) != 0)
        hf::registry::count_function(hf::engine_justdo, -1);
}

void hf_justdo_register_lock(const hf_justdo_lock_calls* calls) noexcept {
    if (calls->kind < HF_JUSTDO_KINDS || calls->kind >= HF_JUSTDO_KINDS_MAX)
        hf::fatal("lock %s: kind %u, expected %u to %u", calls->name, calls->kind, HF_JUSTDO_KINDS,
                  HF_JUSTDO_KINDS_MAX - 1);
    const hf_justdo_lock_calls* there = nullptr;
    auto& place = hf::justdo::lock_kinds[calls->kind];
    if (!place.compare_exchange_strong(there, calls) && there != calls)
        hf::fatal("lock %s: kind %u is that of lock %s", calls->name, calls->kind, there->name);
}

} // extern "C"
