// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What hf::tx, hf::allocator and the C library's functions for sections ask of the runtime.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <open/registry.hpp>
#include <pool/fault_guard.hpp>
#include <section/c_library.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/tx.hpp>

#include <fmt/format.h>

namespace hf {

static_assert(HF_ARGS_BYTES_MAX == args_bytes_max, "the compiler and the log agree");

namespace detail {

const void* base_of(const pool& of) noexcept { return of.internals().file->base(); }

} // namespace detail
} // namespace hf

extern "C" {

void hf_c_overwrite(const void* address, std::uint64_t bytes) noexcept {
    hf::section* const s = hf::current_section;
    if (s == nullptr) return;
    hf::without_exceptions("a library function", [&] { s->by().overwrite(address, bytes); });
}

void hf_section_in(const void* address) noexcept {
    const hf::section* s = hf::current_section;
    if (s == nullptr || s->pool().contains(address)) return;
    hf::fatal(
        "hf::tx is called in section %s (%s), which works on another pool: end that section first",
        hf::readable_name(s->function()->name), s->function()->where);
}

void hf_pool_full(std::size_t bytes) noexcept {
    hf::section* const s = hf::current_section;
    if (s != nullptr) s->by().give_up();
    const hf::pool::impl* const in = s != nullptr ? &s->pool() : hf::registry::only_pool();
    if (in == nullptr) hf::fatal("hf::allocator: no room for %zu bytes", bytes);
    hf::without_exceptions("hf::allocator", [&] {
        const hf::status full = in->blocks.full(
            s == nullptr
                ? fmt::format("{} bytes of hf::allocator", bytes)
                : fmt::format("{} bytes of hf::allocator in section {} ({})", bytes,
                              hf::readable_name(s->function()->name), s->function()->where));
        hf::fault_guard::fatal_means(full.code());
        hf::fatal("%s", full.what().c_str());
    });
    __builtin_unreachable();
}

} // extern "C"
