// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of compiled code (justdo_abi.h), on the thread that it runs on.
#include <base/assert.hpp>
#include <justdo/step.hpp>
#include <justdo/threads.hpp>
#include <section/thread.hpp>

namespace hf::justdo {
namespace {

template <class Step> decltype(auto) on_thread(const char* call, Step&& step) noexcept {
    return without_exceptions(call, [&]() -> decltype(auto) {
        if (current == nullptr) [[unlikely]]
            fatal("%s outside of a function that enters", call);
        return step(*current);
    });
}

} // namespace
} // namespace hf::justdo

using hf::justdo::on_thread;
using hf::justdo::thread;

extern "C" {

void* hf_justdo_enter(const hf_justdo_function* function, const void* in,
                      std::uint32_t* resumed) noexcept {
    return hf::without_exceptions("hf_justdo_enter", [&] {
        return hf::justdo::calling_thread(in, function->name).enter(*function, *resumed);
    });
}
void hf_justdo_argument(const void* pointer, std::uint32_t number) noexcept {
    on_thread("hf_justdo_argument", [&](thread& t) { t.check_argument(pointer, number); });
}
void hf_justdo_leave(void) noexcept {
    on_thread("hf_justdo_leave", [](thread& t) { t.leave(); });
}
void hf_justdo_call(std::uint32_t point) noexcept {
    on_thread("hf_justdo_call", [&](thread& t) { t.call(point); });
}
void hf_justdo_note(const void* address, std::uint64_t bytes) noexcept {
    on_thread("hf_justdo_note", [&](thread& t) { t.note(address, bytes); });
}
void hf_justdo_point(std::uint32_t point) noexcept {
    on_thread("hf_justdo_point", [&](thread& t) { t.move_to(point); });
}
void hf_justdo_store(void* address, std::uint64_t value, std::uint32_t bytes,
                     std::uint32_t point) noexcept {
    on_thread("hf_justdo_store", [&](thread& t) { t.store(address, value, bytes, point); });
}
void hf_justdo_copy(void* to, const void* from, std::uint64_t bytes, std::uint32_t point) noexcept {
    on_thread("hf_justdo_copy", [&](thread& t) { t.copy(to, from, bytes, point); });
}
void hf_justdo_fill(void* to, int byte, std::uint64_t bytes, std::uint32_t point) noexcept {
    on_thread("hf_justdo_fill", [&](thread& t) { t.fill(to, byte, bytes, point); });
}
void* hf_justdo_alloc(std::uint64_t bytes, void** slot, std::uint32_t point) noexcept {
    return on_thread("hf_justdo_alloc", [&](thread& t) { return t.alloc(bytes, slot, point); });
}
void hf_justdo_free(void* block, std::uint32_t point) noexcept {
    on_thread("hf_justdo_free", [&](thread& t) { t.free(block, point); });
}
void hf_justdo_lock(void* lock, std::uint32_t kind, std::uint32_t point) noexcept {
    on_thread("hf_justdo_lock", [&](thread& t) {
        if (!t.begin_without_lock(kind, point)) t.lock(lock, kind, point, true);
    });
}
int hf_justdo_try_lock(void* lock, std::uint32_t kind, std::uint32_t point) noexcept {
    return on_thread("hf_justdo_try_lock",
                     [&](thread& t) -> int { return t.lock(lock, kind, point, false); });
}
void hf_justdo_unlock(void* lock, std::uint32_t kind, std::uint32_t point) noexcept {
    on_thread("hf_justdo_unlock", [&](thread& t) {
        if (!t.end_without_lock(kind)) t.unlock(lock, kind, point);
    });
}

} // extern "C"
