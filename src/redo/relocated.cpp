// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections of relocatable code ask of engine redo (holdfast/abi/relocate_abi.h), in pools that
// are mapped elsewhere. The buffer holds the pool's bytes, so addresses in it are canonical. In a
// file of its own: programs that are not built relocatable do not link it.
#include <base/line.hpp>
#include <open/pool_impl.hpp>
#include <pool/relocation.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/relocate_abi.h>

#include <cstring>

namespace hf::redo {
namespace {

/// Whether the thread's section may have stored there what waits.
bool in_its_pool(const void* address) noexcept { return current_section->pool().contains(address); }

/// Stores the pointer that the section sees at 'from' at 'to'.
void copy_pointer(std::byte* to, const std::byte* from, const char* where) noexcept {
    void* value = nullptr;
    std::memcpy(&value, hf_redo_read(from, sizeof value), sizeof value);
    value = hf_relocated_store(to, hf_relocated_load(from, value, where), where);
    hf_redo_put(to, &value, sizeof value);
}

} // namespace
} // namespace hf::redo

extern "C" {

void hf_redo_relocated_raw_load(const void* address, std::uint64_t bytes, const char* where) {
    hf::check_seen(address, hf_redo_read(address, bytes), bytes, where);
}

void hf_redo_relocated_copy(void* to, const void* from, std::uint64_t bytes, const char* where) {
    if (!hf::redo::in_its_pool(from)) return hf_relocated_copy(to, from, bytes, where);
    if (!hf::redo::in_its_pool(to)) hf_redo_relocated_raw_load(from, bytes, where);
}

void hf_redo_relocated_copy_pointers(void* to, const void* from, std::uint64_t bytes,
                                     const char* where) {
    const bool stays = hf::redo::in_its_pool(from) && hf::redo::in_its_pool(to);
    if (stays || bytes % hf::word_bytes != 0) {
        hf_redo_relocated_copy(to, from, bytes, where);
        return hf_redo_copy(to, from, bytes);
    }
    for (std::uint64_t at = 0; at < bytes; at += hf::word_bytes) // they do not overlap
        hf::redo::copy_pointer(static_cast<std::byte*>(to) + at,
                               static_cast<const std::byte*>(from) + at, where);
}

} // extern "C"
