// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <check/watch.hpp>
#include <mod/announced.hpp>
#include <pool/believed.hpp>
#include <pool/os_file.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/trace_abi.h>

#include <algorithm>
#include <pthread.h>

extern "C" {
struct hf_trace_region hf_trace_watched = {0, 0};
}

namespace hf::check {
namespace {

observer* watching = nullptr;
bool places_followed = false, places_always = false, places_of_loads = false;
thread_local code_place place;

const void* end_of_stack() {
    thread_local const void* const end = [] {
        pthread_attr_t about;
        void* low = nullptr;
        std::size_t bytes = 0;
        if (::pthread_getattr_np(::pthread_self(), &about) == 0) {
            ::pthread_attr_getstack(&about, &low, &bytes);
            ::pthread_attr_destroy(&about);
        }
        return static_cast<const void*>(static_cast<std::byte*>(low) + bytes);
    }();
    return end;
}

/// Walks frame pointers: everything in trace mode is built with them, its callers may not be.
void note_place(const void* const* frame) {
    for (const void*& at : place.at) at = nullptr;
    for (unsigned i = 0; i < code_place::depth; ++i) {
        place.at[i] = frame[1];
        const auto* caller = static_cast<const void* const*>(frame[0]);
        const bool above = caller > frame && caller + 2 <= end_of_stack();
        if (!above || reinterpret_cast<std::uintptr_t>(caller) % sizeof(void*) != 0) return;
        frame = caller;
    }
}

/// The part of [address, address + bytes) that is watched; bytes 0: none.
struct clipped {
    std::size_t offset, bytes;
};
clipped clip(const void* address, std::uint64_t bytes) {
    const auto begin = hf_trace_watched.begin, end = begin + hf_trace_watched.bytes;
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t first = std::max(from, begin), last = std::min(from + bytes, end);
    return first < last ? clipped{first - begin, last - first} : clipped{0, 0};
}

void on_event(const hf::trace::event& what, const void* address, std::size_t bytes) {
    if (watching == nullptr) return;
    if (places_followed) { // of the caller of announce, with a function of trace::detail between
        const auto* own = static_cast<const void* const*>(__builtin_frame_address(0));
        note_place(static_cast<const void* const*>(own[0]));
    }
    if (what == hf::trace::fence) return watching->fence();
    const clipped in = clip(address, bytes);
    if (in.bytes == 0) return;
    // A store is only announced: trace mode reports it when it is made.
    if (what == hf::trace::nt_store) watching->nt_store(in.offset, in.bytes);
    else if (what == hf::trace::flush) watching->flush(in.offset, in.bytes);
    else if (what == image_written) watching->flush_now(in.offset, in.bytes);
    else if (what == believed::checked) watching->checked(in.offset, in.bytes, false);
    else if (what == believed::checked_on) watching->checked(in.offset, in.bytes, true);
    else if (what == mod::announced::fresh) watching->fresh(in.offset, in.bytes);
    else if (what == mod::announced::named) watching->named(in.offset, in.bytes);
    else if (what == mod::announced::commit) watching->commit(in.offset, in.bytes);
    else if (what == mod::announced::in_place) watching->in_place(in.offset, in.bytes);
    else if (what == mod::announced::offered) watching->load(in.offset, in.bytes);
}

} // namespace

watch::watch(std::byte* base, std::size_t bytes, observer& to) {
    HF_ASSERT(watching == nullptr);
    watching = &to;
    hf_trace_watched = {reinterpret_cast<std::uintptr_t>(base), bytes};
    hf::trace::listen(on_event);
}

watch::~watch() {
    hf::trace::leave(on_event);
    hf_trace_watched = {0, 0};
    watching = nullptr;
}

void follow_places(bool on) noexcept {
    places_followed = on || places_always;
    if (!places_followed) place = {}; // of this thread, the only one that recovers
}
void follow_places_of_loads(bool on) noexcept { places_of_loads = on; }
void follow_places_always() noexcept { places_followed = places_always = true; }
const code_place& reported_place() noexcept { return place; }

} // namespace hf::check

extern "C" {

using namespace hf::check;

void hf_trace_load(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (places_of_loads) [[unlikely]]
        note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    if (const clipped in = clip(address, bytes); in.bytes > 0) watching->load(in.offset, in.bytes);
}

void hf_trace_store(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (places_followed) note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    if (const clipped in = clip(address, bytes); in.bytes > 0) watching->store(in.offset, in.bytes);
}

void hf_trace_rmw(const void* address, uint64_t bytes) {
    // Its store; if its effect as a fence counts, hf_trace_fence follows.
    hf_trace_store(address, bytes);
}

void hf_trace_turn(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (const clipped in = clip(address, bytes); in.bytes > 0) watching->turn(in.offset, in.bytes);
}

void hf_trace_nt_store(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (places_followed) note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    const clipped in = clip(address, bytes);
    const std::size_t from = hf::round_down(in.offset, hf::word_bytes);
    if (in.bytes > 0)
        watching->nt_store(from, hf::round_up(in.offset + in.bytes, hf::word_bytes) - from);
}

void hf_trace_flush(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (places_followed) note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    if (const clipped in = clip(address, bytes); in.bytes > 0) watching->flush(in.offset, in.bytes);
}

void hf_trace_clflush(const void* address, std::uint64_t bytes) {
    if (watching == nullptr) return;
    if (places_followed) note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    if (const clipped in = clip(address, bytes); in.bytes > 0)
        watching->flush_now(in.offset, in.bytes);
}

void hf_trace_fence(void) {
    if (watching == nullptr) return;
    if (places_followed) note_place(static_cast<const void* const*>(__builtin_frame_address(0)));
    watching->fence();
}

} // extern "C"
