// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Judges the bytes of a file's first two pages before anything is mapped. Pure: the same bytes get
// the same verdict, whatever they are, and nothing is read through an offset found in them.
#pragma once

#include <base/assert.hpp>
#include <pool/file_options.hpp>
#include <pool/header.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

class os_file;

/// The part of a file that is read before it is mapped.
struct header_bytes_read {
    alignas(64) std::byte page_a[sizeof(pool_header)] = {};
    alignas(64) std::byte page_b[sizeof(pool_header)] = {};
    std::uint64_t file_bytes = 0; // size of the file; pages past it read as zero
};

/// The kind of a header copy's page: a valid copy, one that does not verify, or no header of a
/// pool.
enum class copy_state : std::uint8_t { valid, damaged, foreign };

/// Both header copies and which one counts.
struct header_copies {
    copy_state a = copy_state::foreign, b = copy_state::foreign;
    pool_header first{}, second{}; // A and B as they are
    bool any_valid() const noexcept { return a == copy_state::valid || b == copy_state::valid; }
    bool any_pool() const noexcept { return a != copy_state::foreign || b != copy_state::foreign; }
    /// The valid copy with the higher sequence number. Requires: any_valid().
    const pool_header& chosen() const noexcept {
        HF_ASSERT(any_valid());
        const bool a_counts =
            a == copy_state::valid && (b != copy_state::valid || first.sequence >= second.sequence);
        return a_counts ? first : second;
    }
};
/// 'page_a', 'page_b': the file from where each copy starts, as far as it goes; empty: the file has
/// no such page.
header_copies judge_copies(std::span<const std::byte> page_a,
                           std::span<const std::byte> page_b) noexcept;

/// The header that counts, and a message for people about the other copy.
struct header_chosen {
    pool_header header;
    std::uint64_t copy; // where it stands: header_a_offset or header_b_offset
    std::vector<std::string> warnings;
};

/// Shapes the one line that a refusal carries: "PATH: CODE: TEXT".
status refusal(const std::string& path, errc code, const std::string& text);
/// "OPTION: expected A or B, found 9": no value of its enumeration has that number.
std::string no_such_value(std::string_view option, std::string_view expected, unsigned found);
/// The text of a refusal behind path and code.
std::string text_of(const status& refused, std::string_view path);
/// "path: io_error: out of memory"; without the path when there is no memory for that either.
status out_of_memory(const std::string& path) noexcept;

/// Picks the valid copy with the higher sequence number.
///
/// Errors:   not_a_pool (foreign, empty, creation cut short), truncated, corrupt (both copies).
result<header_chosen> choose_header(const std::string& path, const header_bytes_read& read);

/// Checks version, features, every number, and that the file is long enough.
///
/// Errors:   wrong_version, unknown_feature, corrupt, truncated.
status check_header(const std::string& path, const pool_header& h, std::uint64_t file_bytes);

/// Checks that this application, with its engines, on this boot may have the pool.
///
/// Errors:   wrong_layout, missing_engine, torn.
status check_use(const std::string& path, const pool_header& h, const file_options& options,
                 const boot_identifier& boot);
/// Whether the pool has the layout that is asked for, and is not on its way to another one.
bool has_layout(const pool_header& h, const file_options& options) noexcept;
/// The refusal of a pool that has another layout than this.
status other_layout(const std::string& path, const pool_header& h, const std::string& layout,
                    std::uint64_t hash);
/// Whether the pool was left open in another file than this. Then this is a copy of a pool in use,
/// and nobody knows the order of its bytes.
bool copied_while_open(const pool_header& h, const file_identity& here) noexcept;
/// Whether it was left open by pool::copy_to, or `holdfast copy`: whole, and on the disk.
bool is_whole_copy(const pool_header& h) noexcept;

/// Reads both header copies of a file.
status read_copies(const os_file& from, header_bytes_read& to);

/// Gives 'h' the growth limit that the options ask for, when it is above the pool's own.
///
/// Errors:   bad_argument: no pool at its address can become so large.
status raise_limit(const std::string& path, const file_options& options, pool_header& h);

} // namespace hf
