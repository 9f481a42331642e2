// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread owns of a pool while it uses it: a lane, blocks at hand, its section.
#pragma once

#include <open/registry.hpp>
#include <section/section.hpp>

#include <memory>
#include <mutex>
#include <new>

namespace hf {

struct attachment {
    /// 'turns': where several threads take turns on the lane, a section at a time; else null.
    attachment(hf::pool::impl& of, std::uint32_t lane_index, std::mutex* turns = nullptr)
        : pool(&of), instance(of.instance), lane(lane_index), shared(turns != nullptr),
          own(make_section(of, lane_index, cache, turns)), work(*own) {}

    hf::pool::impl* pool;
    std::uint64_t instance;
    std::uint32_t lane;
    bool shared;
    thread_cache cache;
    std::unique_ptr<section> own;
    section& work;
};

/// The attachment that this thread used last: nearly always the one wanted. Null: none, or looked
/// for anew.
extern constinit thread_local attachment* last_attachment
    __attribute__((tls_model("initial-exec")));
/// Its section, where that is in the only pool of the process: no argument has to say which pool.
/// Null: it is not.
inline section* section_at_hand() noexcept {
    const attachment* const last = last_attachment;
    return last != nullptr && last->instance == registry::only_instance() ? &last->work : nullptr;
}

/// This thread's attachment; takes a lane the first time: one of its own, or, when none is left,
/// the last one, on which threads take turns.
attachment& attach(hf::pool::impl& pool);

/// The section object for a call of 'function': in the pool that its pointer arguments name.
/// Aborts, naming the argument, when one points to volatile memory, which only engines allow whose
/// sections do not run again, or two name different pools.
section& section_for(const engine_row& engine, const hf_txfunc& function, const void* args);

/// Ends the process: 'call', which cannot report it, finds no memory. An open section is completed
/// or rolled back by the next open.
[[noreturn]] void no_memory_for(const char* call) noexcept;
/// Runs what a call of the C interface does.
template <class Step> decltype(auto) without_exceptions(const char* call, Step&& step) noexcept {
    try {
        return step();
    } catch (const std::bad_alloc&) {
        no_memory_for(call);
    }
}

// The allocator outside sections: effective, and durable, when they return.
void* alloc_at_once(std::size_t bytes);
void free_at_once(void* given);
void adopt_at_once(void* staged_block);

} // namespace hf
