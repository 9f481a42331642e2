// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/creation.hpp>
#include <pool/file_checks.hpp>

#include <holdfast/sizes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/random.h>

namespace hf {
namespace {

/// A new pool's sizes, with the defaults of what the options leave open.
struct sizes {
    std::uint64_t create_bytes, max_bytes;
};

sizes sizes_for(const file_options& o) noexcept {
    if (o.create_bytes == 0) { // starts small, and grows
        const std::uint64_t max_bytes = o.max_bytes != 0 ? o.max_bytes : 4_GiB;
        return {std::min<std::uint64_t>(1_MiB, max_bytes), max_bytes};
    }
    return {o.create_bytes,
            o.max_bytes != 0 ? o.max_bytes : std::min(64 * o.create_bytes, pool_bytes_max)};
}

/// Small chunks waste less of a pool that stays small. In one that grows they are many, and a
/// container's nodes of more than an eighth of one take each a chunk of their own.
std::uint64_t chunk_for(const sizes& pool) noexcept {
    const bool grows = pool.create_bytes >= 1_MiB && pool.max_bytes >= 1_GiB;
    return pool.create_bytes >= 16_MiB || grows ? 64_KiB : 4_KiB;
}

std::uint64_t lane_for(std::uint64_t create_bytes) noexcept {
    if (create_bytes >= 64_MiB) return 64_KiB;
    return create_bytes >= 8_MiB ? 16_KiB : 4_KiB;
}

} // namespace

int fill_random(std::uint8_t (&to)[16]) noexcept {
    for (std::size_t done = 0; done < sizeof to;) {
        const ssize_t n = ::getrandom(to + done, sizeof to - done, 0);
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) done += static_cast<std::size_t>(n);
    }
    return 0;
}

status check_options(const std::string& path, const file_options& o) {
    const auto bad = [&](const std::string& text) {
        return refusal(path, errc::bad_argument, text);
    };
    constexpr std::size_t layout_max = sizeof(pool_header::layout) - 1;
    if (o.layout.size() > layout_max || o.layout.find('\0') != std::string::npos)
        return bad(fmt::format("layout: expected at most {} bytes of text, found {}", layout_max,
                               o.layout.size()));
    if (path.find('\0') != std::string::npos)
        return bad("path: expected a name without a zero byte, found one inside");
    if (o.mode > mode::power)
        return bad(no_such_value("mode", "process, pmem or power", static_cast<unsigned>(o.mode)));
    if (o.creation > create::always_new)
        return bad(no_such_value("creation", "if_missing, never or always_new",
                                 static_cast<unsigned>(o.creation)));
    if (o.relocate > relocation::always)
        return bad(no_such_value("expert.relocate", "never, if_taken or always",
                                 static_cast<unsigned>(o.relocate)));
    if (o.read_only && o.creation == create::always_new)
        return bad("read_only: expected a pool that is there, found create::always_new: a new "
                   "one has nothing to read");
    if (o.shared && o.read_only && o.salvage)
        return bad("shared: expected a pool as its writer has it, found salvage");
    if (o.shared && o.migrates)
        return bad("shared: expected no migration, found one, which has the pool alone: migrate, "
                   "close, then open with shared");
    if (o.shared && o.mode == mode::power && !o.read_only)
        return refusal(path, errc::mode_unavailable,
                       "shared: in mode power the pool is in this process's memory until it is "
                       "closed: expected mode process or pmem");
    if (o.creation == create::never) return {};
    const std::uint64_t least = o.create_bytes != 0 ? o.create_bytes : pool_bytes_min;
    if (least < pool_bytes_min || least > pool_bytes_max)
        return bad(fmt::format("create_bytes: expected 0 or {} to {}, found {}", pool_bytes_min,
                               pool_bytes_max, o.create_bytes));
    if (o.max_bytes != 0 && (o.max_bytes < least || o.max_bytes > pool_bytes_max))
        return bad(fmt::format("max_bytes: expected 0 or {} to {}, found {}", least, pool_bytes_max,
                               o.max_bytes));
    if (o.max_threads < 1 || o.max_threads > lane_count_max)
        return bad(
            fmt::format("max_threads: expected 1 to {}, found {}", lane_count_max, o.max_threads));
    return {};
}

status first_header(const std::string& path, const file_options& o, pool_header& h) {
    HF_ASSERT_SLOW(check_options(path, o).ok());
    HF_ASSERT_SLOW(o.creation != create::never);
    h = {};
    h.magic = header_magic;
    h.format_version = header_format_version;
    h.header_bytes = sizeof h;
    if (const int failed = fill_random(h.uuid); failed != 0)
        return refusal(path, errc::io_error, fmt::format("getrandom: {}", std::strerror(failed)));
    const sizes size = sizes_for(o);
    h.chunk_bytes = chunk_for(size);
    const std::uint64_t file_bytes = round_up(size.create_bytes, h.chunk_bytes);
    h.max_bytes = std::max(file_bytes, round_down(size.max_bytes, h.chunk_bytes));
    h.lanes_offset = lanes_start_offset;
    h.lane_bytes = lane_for(size.create_bytes);
    const std::uint64_t for_lanes = size.create_bytes / (o.create_bytes == 0 ? 4 : 8);
    h.lane_count = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        o.max_threads, 2, std::max<std::uint64_t>(2, for_lanes / h.lane_bytes)));
    h.layout_hash = o.layout_hash;
    std::memcpy(h.layout, o.layout.data(), o.layout.size());
    h.mode = static_cast<std::uint32_t>(o.mode);
    const std::uint64_t heap =
        round_up(h.lanes_offset + h.lane_bytes * h.lane_count, h.chunk_bytes);
    h.extent_count = 1;
    HF_ASSERT(heap < file_bytes);
    HF_ASSERT(file_bytes <= h.max_bytes);
    h.extents[0] = {.offset_bytes = heap, .size_bytes = file_bytes - heap};
    h.laid_out_bytes[0] = h.extents[0].size_bytes;
    return {};
}

geometry shape_of(const pool_header& h) noexcept {
    return {.max_bytes = h.max_bytes,
            .chunk_bytes = h.chunk_bytes,
            .lanes_offset = h.lanes_offset,
            .lane_bytes = h.lane_bytes,
            .lane_count = h.lane_count};
}

std::uint64_t relocated_candidate(const std::uint8_t (&uuid)[16], std::uint64_t max_bytes,
                                  unsigned n) noexcept {
    constexpr std::uint64_t room = relocated_high - relocated_low;
    HF_ASSERT_SLOW(max_bytes <= room);
    const std::uint64_t alignment = base_alignment(max_bytes);
    const std::uint64_t places = (room - max_bytes) / alignment + 1;
    return relocated_low + checksum(uuid, sizeof uuid, n) % places * alignment;
}

} // namespace hf
