// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory in which pointers have another form than the one in which they can be followed: pools
// mapped elsewhere than at their canonical address, and their logs. It answers the questions of
// relocatable code (holdfast/abi/relocate_abi.h).  docs/internals/relocation.md
#pragma once

#include <holdfast/abi/relocate_abi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hf {

/// Addresses of a pool in two forms: as stored in some memory, and as they are followed now.
struct address_forms {
    std::uint64_t stored_base;   // of the pool, in the one
    std::uint64_t followed_base; // in the other
    std::uint64_t max_bytes;     // of the pool
    const std::atomic<std::uint64_t>*
        size_bytes; // of its file: what lies behind has no address yet

    /// Whether a pointer with this value is one into the pool, or just behind it.
    bool is_stored(std::uint64_t value) const noexcept { return value - stored_base <= max_bytes; }
    bool is_followed(std::uint64_t value) const noexcept {
        return value - followed_base <= max_bytes;
    }
};

/// Memory in the space of relocated pools whose pointers are translated as long as this lives: a
/// relocated pool, or a copy of a log that was written when the pool was mapped elsewhere. No code
/// touches it before or after. Aborts when 64 are known.
class translated_range {
public:
    translated_range(const std::byte* begin, std::uint64_t bytes, const address_forms& forms,
                     const char* name);
    ~translated_range();
    translated_range(const translated_range&) = delete;
    translated_range& operator=(const translated_range&) = delete;

    bool contains(std::uint64_t address) const noexcept { return address - begin_ < bytes_; }
    std::uint64_t offset_of(std::uint64_t address) const noexcept { return address - begin_; }
    const address_forms& forms() const noexcept { return forms_; }
    const char* name() const noexcept { return name_; }

private:
    std::uint64_t begin_, bytes_;
    address_forms forms_;
    const char* name_;
};

/// A copy of logged bytes, as relocatable code reads it: the pointers in it are translated.
class translated_copy {
public:
    /// Aborts when there is no place, or no memory, for it.
    translated_copy(const void* from, std::uint64_t bytes, const address_forms& forms);
    ~translated_copy();
    translated_copy(const translated_copy&) = delete;
    translated_copy& operator=(const translated_copy&) = delete;
    const std::byte* data() const noexcept { return begin_; }

private:
    std::byte* begin_ = nullptr;
    std::uint64_t bytes_;
    std::optional<translated_range> range_;
};

/// hf_relocated_raw_load of bytes that are seen at 'address', and lie at 'seen'.
void check_seen(const void* address, const void* seen, std::uint64_t bytes,
                const char* where) noexcept;

/// Whether one of the bytes may begin an address in [base, base + max_bytes], at any alignment.
bool holds_address(const std::byte* bytes, std::uint64_t count, std::uint64_t base,
                   std::uint64_t max_bytes) noexcept;

/// In a child of fork(), where they are not mapped.
void forget_relocated_ranges() noexcept;

} // namespace hf
