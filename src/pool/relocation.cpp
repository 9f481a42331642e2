// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/page.hpp>
#include <pool/mapping.hpp>
#include <pool/relocation.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace hf {
namespace {

constexpr unsigned copy_attempts_max = 4096;
constexpr std::uint64_t relocated_end = (std::uint64_t{HF_RELOCATED_BITS} + 1)
                                        << HF_RELOCATED_SHIFT;

std::array<std::atomic<const translated_range*>, 64> known;

bool in_relocated_space(std::uint64_t value) noexcept {
    return value >> HF_RELOCATED_SHIFT == HF_RELOCATED_BITS;
}

const translated_range* range_around(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    if (!in_relocated_space(at)) return nullptr;
    for (const auto& slot : known) {
        const translated_range* range = slot.load(std::memory_order_acquire);
        if (range != nullptr && range->contains(at)) return range;
    }
    return nullptr;
}

std::uint64_t word_at(const std::byte* from) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
}

[[noreturn]] void refuse(const translated_range& in, const void* address, const char* where,
                         const char* what) noexcept {
    const std::uint64_t offset = in.offset_of(reinterpret_cast<std::uint64_t>(address));
    fatal("%s: at offset %#llx of %s: %s (docs/internals/relocation.md)", where,
          static_cast<unsigned long long>(offset), in.name(), what);
}

/// Whether a whole word among the bytes at 'from', which are or will be at 'address', is in [low,
/// low + bytes_behind]: pointers are aligned.
bool any_word_in(const void* address, const void* from, std::uint64_t bytes, std::uint64_t low,
                 std::uint64_t bytes_behind) noexcept {
    bool found = false; // no exit from the loop: next to no copy holds one
    std::uint64_t at = -reinterpret_cast<std::uint64_t>(address) % word_bytes;
    for (; at + word_bytes <= bytes; at += word_bytes)
        found |= word_at(static_cast<const std::byte*>(from) + at) - low <= bytes_behind;
    return found;
}

std::uint64_t to_follow(const translated_range& in, const void* address, std::uint64_t value,
                        const char* where) noexcept {
    if (reinterpret_cast<std::uint64_t>(address) % word_bytes != 0)
        refuse(in, address, where, "a pointer that is not aligned");
    const address_forms& forms = in.forms();
    return forms.is_stored(value) ? value - forms.stored_base + forms.followed_base : value;
}

std::uint64_t to_store(const translated_range& in, const void* address, std::uint64_t value,
                       const char* where) noexcept {
    if (reinterpret_cast<std::uint64_t>(address) % word_bytes != 0)
        refuse(in, address, where, "a pointer that is not aligned");
    const address_forms& forms = in.forms();
    if (forms.is_followed(value)) return value - forms.followed_base + forms.stored_base;
    if (forms.is_stored(value) || in_relocated_space(value))
        refuse(in, address, where, "a pointer to another pool is stored");
    return value;
}

void check_read(const translated_range& in, const void* address, const void* seen,
                std::uint64_t bytes, const char* where) noexcept {
    const address_forms& forms = in.forms();
    if (any_word_in(address, seen, bytes, forms.stored_base, *forms.size_bytes))
        refuse(in, address, where,
               "bytes that look like an address of the pool are read, but not as a pointer");
}

void check_written(const translated_range& in, const void* address, const void* from,
                   std::uint64_t bytes, const char* where) noexcept {
    const address_forms& forms = in.forms();
    if (any_word_in(address, from, bytes, forms.followed_base, *forms.size_bytes) ||
        any_word_in(address, from, bytes, forms.stored_base, *forms.size_bytes))
        refuse(in, address, where,
               "bytes that look like an address of the pool are stored, but not as a pointer");
}

} // namespace

translated_range::translated_range(const std::byte* begin, std::uint64_t bytes,
                                   const address_forms& forms, const char* name)
    : begin_(reinterpret_cast<std::uint64_t>(begin)), bytes_(bytes), forms_(forms), name_(name) {
    HF_ASSERT_SLOW(bytes != 0);
    HF_ASSERT_SLOW(forms.size_bytes != nullptr);
    for (auto& slot : known) {
        const translated_range* none = nullptr;
        if (slot.compare_exchange_strong(none, this, std::memory_order_acq_rel)) return;
    }
    fatal("more than %zu relocated pools and logs at a time", known.size());
}

translated_range::~translated_range() {
    for (auto& slot : known) {
        const translated_range* mine = this;
        if (slot.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) return;
    }
}

translated_copy::translated_copy(const void* from, std::uint64_t bytes, const address_forms& forms)
    : bytes_(round_up(std::max<std::uint64_t>(bytes, 1), page_bytes())) {
    // From the end of the space, where a pool comes last.
    std::uint64_t at = relocated_end;
    int failed = EEXIST;
    for (unsigned n = 0; n < copy_attempts_max && failed == EEXIST; ++n) {
        at -= bytes_;
        failed = reserve_addresses(at, bytes_);
    }
    if (failed == 0) begin_ = reinterpret_cast<std::byte*>(at);
    if (failed != 0 || ::mmap(begin_, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        fatal("no memory for a log of %llu bytes", static_cast<unsigned long long>(bytes));
    std::memcpy(begin_, from, bytes);
    range_.emplace(begin_, bytes_, forms, "a log made elsewhere");
}

translated_copy::~translated_copy() {
    range_.reset();
    release_addresses(begin_, bytes_);
}

void forget_relocated_ranges() noexcept {
    for (auto& slot : known) slot.store(nullptr, std::memory_order_release);
}

void check_seen(const void* address, const void* seen, std::uint64_t bytes,
                const char* where) noexcept {
    if (const translated_range* in = range_around(address))
        check_read(*in, address, seen, bytes, where);
}

bool holds_address(const std::byte* bytes, std::uint64_t count, std::uint64_t base,
                   std::uint64_t max_bytes) noexcept {
    for (std::uint64_t at = 0; at + word_bytes <= count; ++at)
        if (word_at(bytes + at) - base <= max_bytes) return true;
    return false;
}

} // namespace hf

extern "C" {

// A stray address in the space of relocated pools is left to the access itself, which faults.

void* hf_relocated_load(const void* address, void* value, const char* where) {
    const hf::translated_range* in = hf::range_around(address);
    if (in == nullptr) return value;
    const auto stored = reinterpret_cast<std::uint64_t>(value);
    return reinterpret_cast<void*>(hf::to_follow(*in, address, stored, where));
}

void* hf_relocated_store(const void* address, void* value, const char* where) {
    const hf::translated_range* in = hf::range_around(address);
    if (in == nullptr) return value;
    const auto followed = reinterpret_cast<std::uint64_t>(value);
    return reinterpret_cast<void*>(hf::to_store(*in, address, followed, where));
}

void hf_relocated_raw_load(const void* address, std::uint64_t bytes, const char* where) {
    if (const hf::translated_range* in = hf::range_around(address))
        hf::check_read(*in, address, address, bytes, where);
}

void hf_relocated_store_word(const void* address, std::uint64_t value, const char* where) {
    hf_relocated_raw_store(address, &value, sizeof value, where);
}

void hf_relocated_raw_store(const void* address, const void* from, std::uint64_t bytes,
                            const char* where) {
    if (const hf::translated_range* in = hf::range_around(address))
        hf::check_written(*in, address, from, bytes, where);
}

void hf_relocated_copy(void* to, const void* from, std::uint64_t bytes, const char* where) {
    const hf::translated_range* target = hf::range_around(to);
    const hf::translated_range* source = hf::range_around(from);
    if (target == source) return; // stays in one form
    if (source != nullptr) hf::check_read(*source, from, from, bytes, where);
    if (target != nullptr) hf::check_written(*target, to, from, bytes, where);
}

void hf_relocated_copy_pointers(void* to, const void* from, std::uint64_t bytes,
                                const char* where) {
    const hf::translated_range* target = hf::range_around(to);
    const hf::translated_range* source = hf::range_around(from);
    if (target == source || bytes % hf::word_bytes != 0) {
        hf_relocated_copy(to, from, bytes, where);
        std::memmove(to, from, bytes);
        return;
    }
    for (std::uint64_t at = 0; at < bytes; at += hf::word_bytes) { // they do not overlap
        const std::byte* read = static_cast<const std::byte*>(from) + at;
        std::byte* written = static_cast<std::byte*>(to) + at;
        std::uint64_t value = hf::word_at(read);
        if (source != nullptr) value = hf::to_follow(*source, read, value, where);
        if (target != nullptr) value = hf::to_store(*target, written, value, where);
        std::memcpy(written, &value, sizeof value);
    }
}

} // extern "C"
