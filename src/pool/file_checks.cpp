// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/engines.hpp>
#include <base/line.hpp>
#include <pool/boot_id.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

namespace hf {
namespace {

bool all_zero(const std::byte* bytes, std::size_t count) noexcept {
    return std::all_of(bytes, bytes + count, [](std::byte b) { return b == std::byte{0}; });
}

/// Text from a file may hold anything: characters that a terminal would obey appear as '?'.
std::string printable(const char* text, std::size_t capacity) {
    std::string out(text, strnlen(text, capacity));
    for (char& c : out)
        if (c < 0x20 || c > 0x7e || c == '"') c = '?';
    return out;
}

// Opening a pool adds a few to its counters; the next open must accept the result as well.
constexpr std::uint64_t counter_max = UINT64_MAX - (std::uint64_t{1} << 40);

copy_state judge(std::span<const std::byte> page, pool_header& out) noexcept {
    if (page.empty()) return copy_state::foreign;
    std::memcpy(&out, page.data(), std::min(page.size(), sizeof out));
    if (out.magic != header_magic) return copy_state::foreign;
    return header_checksum(out) == out.checksum ? copy_state::valid : copy_state::damaged;
}

status nothing_valid(const std::string& path, const header_bytes_read& read, copy_state a,
                     copy_state b) {
    if (read.file_bytes == 0)
        return refusal(
            path, errc::not_a_pool,
            "expected a pool header, found an empty file: creation was cut short, or this never "
            "was a pool; remove the file to create the pool anew");
    const bool magic_seen = a == copy_state::damaged || b == copy_state::damaged;
    if (magic_seen && read.file_bytes < lanes_start_offset)
        return refusal(
            path, errc::truncated,
            fmt::format("expected at least {} bytes, found {}", pool_bytes_min, read.file_bytes));
    if (magic_seen)
        return refusal(
            path, errc::corrupt,
            "expected a header copy that verifies, found none: `holdfast repair` looks for a "
            "header in both copies together and in the seal");
    if (all_zero(read.page_a, sizeof read.page_a) && all_zero(read.page_b, sizeof read.page_b))
        return refusal(
            path, errc::not_a_pool,
            "expected a pool header, found zeros: creation was cut short, or this never was a "
            "pool; remove the file to create the pool anew");
    return refusal(path, errc::not_a_pool,
                   "expected a pool header at the start of the file, found other bytes: this is "
                   "another kind of file");
}

std::string out_of_bounds(const char* field, std::uint64_t found, std::uint64_t low,
                          std::uint64_t high) {
    return fmt::format("header field {}: expected {:#x} to {:#x}, found {:#x}", field, low, high,
                       found);
}

/// Empty when every number is in its bounds; else which is not.
std::string number_out_of_bounds(const pool_header& h) {
    if (h.header_bytes != sizeof h)
        return out_of_bounds("header_bytes", h.header_bytes, sizeof h, sizeof h);
    if (h.chunk_bytes != 4096 && h.chunk_bytes != 65536)
        return out_of_bounds("chunk_bytes", h.chunk_bytes, 4096, 65536);
    if (h.max_bytes < pool_bytes_min || h.max_bytes > pool_bytes_max ||
        h.max_bytes % h.chunk_bytes != 0)
        return out_of_bounds("max_bytes", h.max_bytes, pool_bytes_min, pool_bytes_max);
    if (h.base_address < base_low || h.base_address > base_high - h.max_bytes ||
        h.base_address % base_alignment(0) != 0) // a limit that was raised moves no pool
        return out_of_bounds("base_address", h.base_address, base_low, base_high - h.max_bytes);
    if ((h.required_features & feature_relocated) != 0 &&
        (h.mapped_address < relocated_low || h.mapped_address > relocated_high - h.max_bytes ||
         h.mapped_address % base_alignment(h.max_bytes) != 0))
        return out_of_bounds("mapped_address", h.mapped_address, relocated_low,
                             relocated_high - h.max_bytes);
    if (h.lanes_offset != lanes_start_offset)
        return out_of_bounds("lanes_offset", h.lanes_offset, lanes_start_offset,
                             lanes_start_offset);
    if (h.lane_bytes != 4096 && h.lane_bytes != 16384 && h.lane_bytes != 65536)
        return out_of_bounds("lane_bytes", h.lane_bytes, 4096, 65536);
    if (h.lane_count < 2 || h.lane_count > lane_count_max)
        return out_of_bounds("lane_count", h.lane_count, 2, lane_count_max);
    constexpr auto mode_max = static_cast<std::uint32_t>(mode::power);
    if (h.mode > mode_max) return out_of_bounds("mode", h.mode, 0, mode_max);
    if (h.open > 1) return out_of_bounds("open", h.open, 0, 1);
    if (h.sequence == 0 || h.sequence > counter_max)
        return out_of_bounds("sequence", h.sequence, 1, counter_max);
    if (h.generation > counter_max)
        return out_of_bounds("generation", h.generation, 0, counter_max);
    if (h.layout[sizeof h.layout - 1] != 0 || h.boot_id[sizeof h.boot_id - 1] != 0 ||
        h.next_layout[sizeof h.next_layout - 1] != 0)
        return "header text without an end";
    if (h.extent_count < 1 || h.extent_count > extents_max)
        return out_of_bounds("extent_count", h.extent_count, 1, extents_max);
    return {};
}

/// Empty when the extents are sorted, disjoint, aligned and below max_bytes. Requires: the numbers
/// above are in bounds, so nothing here can overflow.
std::string extent_out_of_bounds(const pool_header& h) {
    HF_ASSERT_SLOW(number_out_of_bounds(h).empty());
    const std::uint64_t lanes_end = h.lanes_offset + h.lane_bytes * h.lane_count;
    std::uint64_t end = round_up(lanes_end, h.chunk_bytes);
    for (std::uint32_t i = 0; i < h.extent_count; ++i) {
        const extent& e = h.extents[i];
        const bool aligned =
            e.offset_bytes % h.chunk_bytes == 0 && e.size_bytes % h.chunk_bytes == 0;
        if (!aligned || e.size_bytes == 0 || e.offset_bytes < end || e.offset_bytes > h.max_bytes ||
            e.size_bytes > h.max_bytes - e.offset_bytes)
            return fmt::format(
                "header extent {}: found {:#x} + {:#x}, expected a multiple of {:#x} within {:#x} "
                "to {:#x}",
                i, e.offset_bytes, e.size_bytes, h.chunk_bytes, end, h.max_bytes);
        end = e.offset_bytes + e.size_bytes;
        const std::uint64_t laid_out = h.laid_out_bytes[i];
        if (laid_out < e.size_bytes || laid_out > pool_bytes_max || laid_out % h.chunk_bytes != 0 ||
            split_extent(e.size_bytes, h.chunk_bytes, laid_out).metadata_bytes > e.size_bytes)
            return fmt::format("header extent {}: found tables laid out for {:#x} bytes, expected "
                               "a multiple of {:#x} from {:#x} on whose tables fit",
                               i, laid_out, h.chunk_bytes, e.size_bytes);
    }
    return {};
}

} // namespace

std::string_view name(mode m) noexcept {
    switch (m) {
    case mode::process: return "process";
    case mode::pmem: return "pmem";
    case mode::power: return "power";
    }
    return "unknown";
}

status refusal(const std::string& path, errc code, const std::string& text) {
    return {code, fmt::format("{}: {}: {}", path, name(code), text)};
}

std::string no_such_value(std::string_view option, std::string_view expected, unsigned found) {
    return fmt::format("{}: expected {}, found {}", option, expected, found);
}

std::string text_of(const status& refused, std::string_view path) {
    const std::string head = fmt::format("{}: {}: ", path, name(refused.code()));
    return refused.what().starts_with(head) ? refused.what().substr(head.size()) : refused.what();
}

status out_of_memory(const std::string& path) noexcept try {
    return refusal(path, errc::io_error, "out of memory");
} catch (const std::bad_alloc&) {
    return {errc::io_error, "out of memory"}; // short enough to need none
}

header_copies judge_copies(std::span<const std::byte> page_a,
                           std::span<const std::byte> page_b) noexcept {
    header_copies out;
    out.a = judge(page_a, out.first);
    out.b = judge(page_b, out.second);
    return out;
}

result<header_chosen> choose_header(const std::string& path, const header_bytes_read& read) {
    const header_copies copies = judge_copies(read.page_a, read.page_b);
    if (!copies.any_valid()) return nothing_valid(path, read, copies.a, copies.b);
    const bool first = &copies.chosen() == &copies.first;
    header_chosen out{copies.chosen(), first ? header_a_offset : header_b_offset, {}};
    for (char copy : {'A', 'B'}) {
        if ((copy == 'A' ? copies.a : copies.b) == copy_state::valid) continue;
        out.warnings.push_back(
            fmt::format("{}: header copy {} does not verify (damaged, or a write was cut short): "
                        "the other copy is used and repairs it",
                        path, copy));
    }
    return out;
}

status check_header(const std::string& path, const pool_header& h, std::uint64_t file_bytes) {
    if (h.format_version != header_format_version)
        return refusal(path, errc::wrong_version,
                       fmt::format("expected format version {}, found {}", header_format_version,
                                   h.format_version));
    // Marks are of engines that the header names, which check_use() compares with those that are
    // given.
    const std::uint64_t known =
        known_required_features | engine_marks{h.engines, h.engines}.features();
    if (const std::uint64_t unknown = h.required_features & ~known; unknown != 0)
        return refusal(
            path, errc::unknown_feature,
            fmt::format(
                "found required features {:#x} that this build does not know, expected some of "
                "{:#x}: open the pool with a later build",
                unknown, known));
    if (std::string wrong = number_out_of_bounds(h); !wrong.empty())
        return refusal(path, errc::corrupt, wrong);
    if (std::string wrong = extent_out_of_bounds(h); !wrong.empty())
        return refusal(path, errc::corrupt, wrong);
    const extent& last = h.extents[h.extent_count - 1];
    if (const std::uint64_t expected = last.offset_bytes + last.size_bytes; file_bytes < expected)
        return refusal(path, errc::truncated,
                       fmt::format("expected {} bytes, found {}", expected, file_bytes));
    return {};
}

bool is_whole_copy(const pool_header& h) noexcept {
    return h.open != 0 && (h.optional_features & feature_whole) != 0;
}

bool copied_while_open(const pool_header& h, const file_identity& here) noexcept {
    return h.open != 0 && !here.may_be({h.file_inode, h.file_birth_ns});
}

bool has_layout(const pool_header& h, const file_options& options) noexcept {
    return !is_migrating(h) && options.layout == h.layout && options.layout_hash == h.layout_hash;
}

status other_layout(const std::string& path, const pool_header& h, const std::string& layout,
                    std::uint64_t hash) {
    if (layout != std::string_view(h.layout))
        return refusal(path, errc::wrong_layout,
                       fmt::format("expected layout \"{}\", found \"{}\"", layout,
                                   printable(h.layout, sizeof h.layout)));
    return refusal(path, errc::wrong_layout,
                   fmt::format("layout \"{}\": expected hash {:#x}, found {:#x}", layout, hash,
                               h.layout_hash));
}

namespace {

std::string layout_text(const char* name, std::size_t capacity, std::uint64_t hash) {
    return fmt::format("\"{}\" (hash {:#x})", printable(name, capacity), hash);
}

/// A migrating pool has no layout that a program could use, except to look at its contents.
status check_migration(const std::string& path, const pool_header& h, const file_options& options) {
    const bool to_there =
        options.layout == h.next_layout && options.layout_hash == h.next_layout_hash;
    const bool from_there = options.layout == h.layout && options.layout_hash == h.layout_hash;
    if (options.read_only ? options.salvage && (to_there || from_there)
                          : options.migrates && to_there)
        return {};
    return refusal(
        path, errc::wrong_layout,
        fmt::format("a migration from layout {} to {} is under way: expected "
                    "open_options::migrate and that layout, found {}{}; read-only with salvage "
                    "shows it as it is",
                    layout_text(h.layout, sizeof h.layout, h.layout_hash),
                    layout_text(h.next_layout, sizeof h.next_layout, h.next_layout_hash),
                    layout_text(options.layout.data(), options.layout.size(), options.layout_hash),
                    !options.migrates   ? " without one"
                    : options.read_only ? " and a read-only open"
                                        : ""));
}

status check_layout(const std::string& path, const pool_header& h, const file_options& options) {
    if (has_layout(h, options)) return {};
    if (is_migrating(h)) return check_migration(path, h, options);
    if (options.migrates && !options.read_only) {
        const std::uint32_t rebuild = h.open != 0 ? marks_of(h).rebuild : 0;
        if (rebuild == 0) return {};
        return refusal(
            path, errc::wrong_layout,
            fmt::format(
                "expected a pool that a migration can read, found one that a crash left with "
                "what engine {} computes again: open it once with the build that made it",
                engine_names(rebuild)));
    }
    return other_layout(path, h, options.layout, options.layout_hash);
}

} // namespace

status check_use(const std::string& path, const pool_header& h, const file_options& options,
                 const boot_identifier& boot) {
    if (status ok = check_layout(path, h, options); !ok.ok()) return ok;
    // For a reader beside a writer, open has checked its own engines; those of the header are the
    // writer's.
    const std::uint32_t engines =
        options.read_only && options.shared ? ~std::uint32_t{0} : options.engines;
    if (const std::uint32_t missing = h.engines & ~engines; missing != 0)
        return refusal(
            path, errc::missing_engine,
            fmt::format(
                "the pool was left open: expected engine {}, found {} given to open; open and "
                "close it once with the build that left it, or give {} to open_options::engines "
                "as well (hf::NAME::engine(); hf::all_engines() has every one); to give up what "
                "is unfinished, run `holdfast repair --roll-back`; to look only, use "
                "open_options::read_only with that engine",
                engine_names(missing), engines == 0 ? "no engine" : engine_names(engines),
                engine_names(missing)));
    const bool process_mode = h.mode == static_cast<std::uint32_t>(mode::process);
    if (h.open != 0 && process_mode && !is_whole_copy(h) && !same_boot(h, boot) && !options.salvage)
        return refusal(
            path, errc::torn,
            fmt::format(
                "left open in process mode by boot {}, this is boot {}: its pages may not all "
                "have reached the disk; open with salvage to look at what did",
                printable(h.boot_id, sizeof h.boot_id), boot.id));
    // Logs in an ordered medium have no checks: nothing shows where the end is missing.
    const bool caches_persisted = (h.required_features & feature_caches_persist) != 0;
    const bool believed = options.mode == mode::pmem && options.eadr;
    if (h.open != 0 && caches_persisted && !believed && !is_whole_copy(h) && !same_boot(h, boot) &&
        !options.salvage)
        return refusal(path, errc::torn,
                       "left open in pmem mode with caches that persist (eADR), before the machine "
                       "went down: open it in pmem mode on such a machine, or with expert.eadr; "
                       "salvage opens it to look at what is there");
    return {};
}

status raise_limit(const std::string& path, const file_options& options, pool_header& h) {
    const std::uint64_t wanted = round_down(options.max_bytes, h.chunk_bytes);
    if (wanted <= h.max_bytes) return {};
    const std::uint64_t most = std::min(pool_bytes_max, base_high - h.base_address);
    if (wanted > most)
        return refusal(
            path, errc::bad_argument,
            fmt::format("max_bytes: the pool stands at {:#x}: expected at most {} bytes, "
                        "found {}",
                        h.base_address, most, options.max_bytes));
    if (h.open != 0 && (h.required_features & feature_relocated) != 0)
        return refusal(
            path, errc::bad_argument,
            "max_bytes: expected a pool that was closed, found one left open at another address: "
            "open and close it before its limit is raised");
    h.max_bytes = wanted;
    HF_ASSERT_SLOW(number_out_of_bounds(h).empty());
    return {};
}

} // namespace hf
