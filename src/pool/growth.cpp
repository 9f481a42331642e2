// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growth: disk space, then addresses, then the header that names them. A crash before the header is
// written leaves a file longer than its header says, which opens; the next growth starts over from
// the size that the header gives.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/log.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_limits.hpp>
#include <pool/mapping.hpp>
#include <pool/pool_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace hf {

namespace {

// An extent for a small rise of max_bytes must leave so much to those after it: steps of at most a
// quarter.
constexpr std::uint64_t spared_step(std::uint64_t size) { return size / 4; }

} // namespace

/// The refusal of a growth that does not fit below 'until'.
status pool_file::past(const growth_bound& until, std::uint64_t heap_bytes) const {
    if (until.set_by == growth_bound::limit_growth)
        return refusal(path_, errc::pool_full,
                       fmt::format("{} more bytes would pass the {} bytes that pool::limit_growth "
                                   "allows: raise that limit, or free blocks",
                                   heap_bytes, until.bytes));
    return refusal(path_, errc::pool_full,
                   fmt::format("{} more bytes would pass the pool's limit of {}{}: open it with a "
                               "larger open_options::max_bytes, or free blocks",
                               heap_bytes, shape_.max_bytes,
                               until.bytes < shape_.max_bytes
                                   ? fmt::format(" (the last {} are for the logs of sections)",
                                                 shape_.max_bytes - until.bytes)
                                   : ""));
}

/// The size for which another extent is laid out that must have room for 'needed' bytes of chunks;
/// 0: its tables do not fit. Upholds (2) of extents.hpp: a limit, or the disk, decides how much of
/// the extent exists at first, but not this size.
std::uint64_t pool_file::lay_out(std::uint64_t needed, std::uint64_t room,
                                 const growth_bound& until) const {
    const std::uint64_t size = size_bytes(), chunk = shape_.chunk_bytes;
    const std::uint32_t kept = until.set_by == growth_bound::max_bytes ? 0 : 1;
    const std::uint32_t left = extents_max - kept - static_cast<std::uint32_t>(extents().size());
    const std::uint64_t step = std::max(size / 8, least_step(size + needed, left));
    const std::uint64_t rest = shape_.max_bytes - size;
    std::uint64_t good =
        std::min(extent_bytes_for((needed + step) / chunk + 1, chunk), pool_bytes_max - size);
    if (good < rest && rest < 2 * good)
        good = rest; // no end that is too short for tables of its own
    if (split_extent(good, chunk).metadata_bytes + needed <= room) return good;
    // The end of a pool whose limit is raised by little has room for tables of that little alone,
    // as long as there are extents to spare. Logs take one in any case.
    const bool spared = until.set_by == growth_bound::max_bytes ||
                        (until.set_by == growth_bound::log_reserve && left > 1 &&
                         least_step(shape_.max_bytes, left - 1) <= spared_step(shape_.max_bytes));
    if (!spared || split_extent(rest, chunk).metadata_bytes + needed > room) return 0;
    return rest;
}

bool pool_file::growth_ended() const noexcept {
    const std::size_t count = extents().size();
    return count >= extents_max - 1 &&
           extents().back().size_bytes == header_->laid_out_bytes[count - 1];
}

std::uint64_t pool_file::laid_out_bytes(std::size_t i) const noexcept {
    HF_ASSERT_SLOW(i < extents().size());
    return header_->laid_out_bytes[i];
}

result<extent> pool_file::grow(std::uint64_t heap_bytes) {
    return grow(heap_bytes, {shape_.max_bytes, growth_bound::max_bytes});
}

result<extent> pool_file::grow(std::uint64_t heap_bytes, const growth_bound& until) try {
    if (asked_.read_only)
        return refusal(path_, errc::permission, "the pool is open read-only and does not grow");
    HF_ASSERT(now_.marked_open);
    if (!growth_.doubt.ok())
        return refusal(path_, errc::poisoned,
                       fmt::format("an earlier growth could not write the headers ({}); reopen "
                                   "the pool",
                                   text_of(growth_.doubt, path_)));
    HF_ASSERT_SLOW(until.bytes <= shape_.max_bytes);
    const std::uint64_t size = size_bytes(), chunk = shape_.chunk_bytes;
    const std::uint64_t room = until.bytes < size ? 0 : round_down(until.bytes - size, chunk);
    if (heap_bytes > room || room == 0) return past(until, heap_bytes);
    const std::uint64_t needed = std::max(round_up(heap_bytes, chunk), chunk);
    const std::size_t last = extents().size() - 1;
    const std::uint64_t spare = header_->laid_out_bytes[last] - seen_.extents[last].size_bytes;
    if (needed <= spare) {
        const std::uint64_t eighth = round_up(size / 8, chunk);
        return lengthen(needed, std::min({std::max(needed, eighth), spare, room}), 0);
    }
    if (last + 1 == extents_max ||
        (last + 2 == extents_max && until.set_by != growth_bound::max_bytes))
        return refusal(
            path_, errc::limit_reached,
            fmt::format(
                "expected an extent for the heap, found {} of {} in use, and the last one is for "
                "the logs of sections: bring what the pool holds to a new pool",
                last + 1, extents_max));
    const std::uint64_t laid_out = lay_out(needed, room, until);
    if (laid_out == 0) return past(until, heap_bytes);
    const std::uint64_t least = split_extent(laid_out, chunk).metadata_bytes + needed;
    HF_ASSERT_SLOW(least <= laid_out && least <= room);
    return lengthen(least, std::min(laid_out, room), laid_out);
} catch (const std::bad_alloc&) {
    return out_of_memory(path_);
}

/// Lengthens by 'wanted' bytes; if the disk has no room for these, by the needed ones.
result<extent> pool_file::lengthen(std::uint64_t needed, std::uint64_t wanted,
                                   std::uint64_t laid_out) {
    HF_ASSERT_SLOW(needed <= wanted);
    HF_ASSERT_SLOW(needed % shape_.chunk_bytes == 0 && wanted % shape_.chunk_bytes == 0);
    const std::uint64_t size = size_bytes();
    status extended = extend(wanted, laid_out);
    // Not if a header copy may name the extent already: the file would be cut below it.
    if (extended.code() == errc::pool_full && wanted > needed && growth_.doubt.ok())
        extended = extend(needed, laid_out);
    if (!extended.ok()) return extended;
    return extent{size, size_bytes() - size};
}

status pool_file::give_back(std::uint64_t offset, std::uint64_t bytes) {
    HF_ASSERT_SLOW(offset + bytes <= size_bytes());
    if (asked_.read_only) return refusal(path_, errc::permission, "opened read-only");
    if (mode() == hf::mode::power)
        return refusal(path_, errc::mode_unavailable,
                       "in mode power what is stored reaches the file when it is closed, and must "
                       "find room then");
    if ((header_->optional_features & feature_holes) == 0) { // before there is one
        header_->optional_features |= feature_holes;
        if (status noted = write_headers(); !noted.ok()) {
            header_->optional_features &= ~feature_holes;
            return noted;
        }
    }
    const int failed = file_.punch(offset, bytes);
    if (failed == 0) return {};
    const bool unknown = failed == EOPNOTSUPP || failed == ENOSYS;
    return refusal(path_, unknown ? errc::mode_unavailable : errc::io_error,
                   fmt::format("give space back: {}", std::strerror(failed)));
}

status pool_file::take_back(std::uint64_t offset, std::uint64_t bytes) {
    HF_ASSERT_SLOW(offset + bytes <= size_bytes());
    // Lengthened again, a file that somebody has cut would read as zeros where objects stood.
    if (status ok = whole(); !ok.ok()) return ok;
    status ok = file_.allocate(offset, bytes);
    if (ok.ok() && map_sync_) ok = file_.sync();
    return ok;
}

/// Reserves the addresses up to 'end', if not all could be had at once.
status pool_file::reserve_more(std::uint64_t end) {
    if (end <= reserved_bytes_) return {};
    const auto base = reinterpret_cast<std::uint64_t>(base_);
    const int failed = reserve_addresses(base + reserved_bytes_, end - reserved_bytes_);
    if (failed != 0)
        return refusal(path_, failed == EEXIST ? errc::address_taken : errc::pool_full,
                       fmt::format("no addresses to grow into: {}{}", std::strerror(failed),
                                   failed == ENOMEM ? ": raise this process's limit of them "
                                                      "(ulimit -v)"
                                                    : ""));
    reserved_bytes_ = end;
    return {};
}

/// Whether the disk has refused no more than that, and has had no space given back since. A full
/// pool asks for each block that it lacks, and a file system with a journal (ext4) answers a
/// refusal after writing that: 10 to 30 ms. Quotas and reserves change unseen, so that it is asked
/// again after a second.
bool pool_file::still_refused(std::uint64_t bytes) const noexcept {
    if (!growth_.refused || bytes < growth_.refused->bytes) return false;
    const auto free_bytes = file_.disk_free_bytes();
    return free_bytes && *free_bytes <= growth_.refused->disk_free_bytes &&
           std::chrono::steady_clock::now() - growth_.refused->when < std::chrono::seconds(1);
}

/// 'free_before': at the time of the request. Space that somebody gives back while the disk answers
/// may be more than enough.
void pool_file::note_refused(std::uint64_t bytes, std::optional<std::uint64_t> free_before,
                             const status& why) {
    const auto free_bytes = file_.disk_free_bytes();
    if (free_before && free_bytes)
        growth_.refused = refused_growth{bytes, std::min(*free_before, *free_bytes),
                                         std::chrono::steady_clock::now(), why};
}

/// What a program stores from here on may be lost with the process: it should be warned before.
void pool_file::say_if_misplaced() {
    if (growth_.said_misplaced) return;
    const std::string lost = misplaced();
    growth_.said_misplaced = !lost.empty();
    if (growth_.said_misplaced)
        say(severity::warning, fmt::format("{}: it grows: {}", path_, lost).c_str());
}

/// 'laid_out': of another extent; 0: the last one becomes longer.
status pool_file::extend(std::uint64_t bytes, std::uint64_t laid_out) {
    // Lengthened again, a file that somebody has cut would read as zeros where objects stood.
    if (status ok = whole(); !ok.ok()) return ok;
    const std::uint64_t size = size_bytes();
    const std::uint32_t count = seen_.extent_count.load(std::memory_order_relaxed);
    const std::uint32_t which = laid_out == 0 ? count - 1 : count;
    HF_ASSERT(which < extents_max);
    HF_ASSERT(bytes <= shape_.max_bytes - size);
    if (still_refused(bytes)) return growth_.refused->why;
    // Removes the rest of an earlier growth beyond the end, so that the extent reads as zeros. A
    // seal that stayed would look like the extent's tables.
    const auto present = file_.size_bytes();
    if (!present) return present.error();
    if (const int failed = *present > size ? file_.truncate(size) : 0; failed != 0)
        return refusal(path_, errc::io_error,
                       fmt::format("truncate to {} bytes: {}", size, std::strerror(failed)));
    const auto free_before = file_.disk_free_bytes();
    status ok = file_.allocate(size, bytes); // no hole that faults when it is stored to
    // Not a limit of the process: that check costs no time.
    const bool disk_is_full = ok.code() == errc::pool_full && size + bytes <= file_bytes_allowed();
    if (ok.ok() && (map_sync_ || mode() == hf::mode::power)) ok = file_.sync();
    if (ok.ok()) ok = reserve_more(size + bytes);
    if (ok.ok()) ok = map(size, bytes);
    if (!ok.ok()) {
        (void)file_.truncate(size);
        if (disk_is_full) note_refused(bytes, free_before, ok);
        return ok;
    }
    say_if_misplaced();
    const extent was = header_->extents[which];
    if (laid_out != 0) {
        header_->extents[which].offset_bytes = size;
        header_->laid_out_bytes[which] = laid_out;
    }
    header_->extents[which].size_bytes = size + bytes - header_->extents[which].offset_bytes;
    header_->extent_count = which + 1;
    if (status written = write_headers(); !written.ok()) {
        // One copy may name the space already, so it stays; this process does not use it.
        // A file cut back to its size would be refused as truncated if a crash came then.
        header_->extents[which] = was;
        header_->extent_count = count;
        growth_.doubt = written;
        return written;
    }
    seen_.extents[which] = header_->extents[which];
    seen_.size_bytes.store(size + bytes, std::memory_order_release);
    seen_.extent_count.store(which + 1, std::memory_order_release);
    HF_ASSERT_SLOW(valid());
    HF_ASSERT_SLOW(extents().size() == which + 1);
    return {};
}

} // namespace hf
