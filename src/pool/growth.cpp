// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growth: disk space, then addresses, then the header that names them. A crash before the header is
// written leaves a file longer than its header says, which opens; the next growth starts over from
// the size that the header gives.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/log.hpp>
#include <pool/file_checks.hpp>
#include <pool/mapping.hpp>
#include <pool/pool_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace hf {

status pool_file::full(const std::string& what, const std::string& more) const {
    return refusal(path_, errc::pool_full,
                   fmt::format("no room for {}: the pool has {} of at most {} bytes{}", what,
                               size_bytes(), shape_.max_bytes, more));
}

result<extent> pool_file::grow(std::uint64_t heap_bytes, std::uint64_t reserved_bytes) try {
    if (read_only_)
        return refusal(path_, errc::permission, "the pool is open read-only and does not grow");
    HF_ASSERT(marked_open_);
    if (growth_in_doubt_)
        return refusal(path_, errc::poisoned,
                       "an earlier growth could not write the headers; reopen the pool");
    HF_ASSERT_SLOW(reserved_bytes <= shape_.max_bytes);
    const std::uint64_t size = size_bytes(), limit = shape_.max_bytes - reserved_bytes;
    const std::uint64_t room = limit - std::min(limit, size);
    const std::uint32_t count = extent_count_.load(std::memory_order_relaxed);
    if (heap_bytes > room || round_up(heap_bytes, shape_.chunk_bytes) > room || room == 0)
        return refusal(path_, errc::pool_full,
                       fmt::format("{} more bytes would pass the pool's limit of {}", heap_bytes,
                                   shape_.max_bytes));
    if (count == extents_max)
        return refusal(path_, errc::limit_reached,
                       fmt::format("the pool has all of its {} extents", extents_max));
    const std::uint64_t needed =
        std::max(round_up(heap_bytes, shape_.chunk_bytes), shape_.chunk_bytes);
    const std::uint64_t wanted =
        std::min(std::max(needed, round_up(size / 8, shape_.chunk_bytes)), room);
    HF_ASSERT_SLOW(needed <= wanted);
    HF_ASSERT_SLOW(wanted <= room);
    HF_ASSERT_SLOW(wanted % shape_.chunk_bytes == 0);
    status extended = extend(wanted);
    // Not where a header copy may name the extent already: the file would be cut below it.
    if (extended.code() == errc::pool_full && wanted > needed && !growth_in_doubt_)
        extended = extend(needed);
    if (!extended.ok()) return extended;
    return extents_[count];
} catch (const std::bad_alloc&) {
    return out_of_memory(path_);
}

status pool_file::give_back(std::uint64_t offset, std::uint64_t bytes) {
    HF_ASSERT_SLOW(offset + bytes <= size_bytes());
    if (read_only_) return refusal(path_, errc::permission, "opened read-only");
    if (mode_ == hf::mode::power)
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

/// Where not all addresses could be had at once: those up to 'end'.
status pool_file::reserve_more(std::uint64_t end) {
    if (end <= reserved_bytes_) return {};
    const auto base = reinterpret_cast<std::uint64_t>(base_);
    const int failed = reserve_addresses(base + reserved_bytes_, end - reserved_bytes_);
    if (failed != 0)
        return refusal(path_, failed == EEXIST ? errc::address_taken : errc::pool_full,
                       fmt::format("no addresses to grow into: {}", std::strerror(failed)));
    reserved_bytes_ = end;
    return {};
}

/// Whether the disk has refused no more than that, and has had no space given back since. A full pool asks for each
/// block that it lacks, and a file system with a journal (ext4) answers a refusal after writing that: 10 to 30 ms.
/// Quotas and reserves change unseen, so that it is asked again after a second.
bool pool_file::still_refused(std::uint64_t bytes) const noexcept {
    if (!refused_ || bytes < refused_->bytes) return false;
    const auto free_bytes = file_.disk_free_bytes();
    return free_bytes && *free_bytes <= refused_->disk_free_bytes &&
           std::chrono::steady_clock::now() - refused_->when < std::chrono::seconds(1);
}

/// 'free_before': when it was asked. What somebody gives back while it answers may be more than enough.
void pool_file::note_refused(std::uint64_t bytes, std::optional<std::uint64_t> free_before,
                             const status& why) {
    const auto free_bytes = file_.disk_free_bytes();
    if (free_before && free_bytes)
        refused_ = refused_growth{bytes, std::min(*free_before, *free_bytes),
                                  std::chrono::steady_clock::now(), why};
}

/// What a program goes on to store may go with the process: somebody should know before.
void pool_file::say_if_misplaced() {
    if (said_misplaced_) return;
    const std::string lost = misplaced();
    said_misplaced_ = !lost.empty();
    if (said_misplaced_)
        say(severity::warning, fmt::format("{}: it grows: {}", path_, lost).c_str());
}

status pool_file::extend(std::uint64_t bytes) {
    // Lengthened again, a file that somebody has cut would read as zeros where objects stood.
    if (status ok = whole(); !ok.ok()) return ok;
    const std::uint64_t size = size_bytes();
    const std::uint32_t count = extent_count_.load(std::memory_order_relaxed);
    HF_ASSERT(count < extents_max);
    HF_ASSERT(bytes <= shape_.max_bytes - size);
    if (still_refused(bytes)) return refused_->why;
    // What an earlier growth left beyond the end goes first, so that the extent reads as zeros.
    // A seal that stayed would pass for the extent's tables.
    const auto present = file_.size_bytes();
    if (!present) return present.error();
    if (const int failed = *present > size ? file_.truncate(size) : 0; failed != 0)
        return refusal(path_, errc::io_error,
                       fmt::format("truncate to {} bytes: {}", size, std::strerror(failed)));
    const auto free_before = file_.disk_free_bytes();
    status ok = file_.allocate(size, bytes); // no hole that faults when it is stored to
    const bool disk_is_full = ok.code() == errc::pool_full;
    if (ok.ok() && (map_sync_ || mode_ == hf::mode::power)) ok = file_.sync();
    if (ok.ok()) ok = reserve_more(size + bytes);
    if (ok.ok()) ok = map(size, bytes);
    if (!ok.ok()) {
        (void)file_.truncate(size);
        if (disk_is_full) note_refused(bytes, free_before, ok);
        return ok;
    }
    say_if_misplaced();
    header_->extents[count] = {.offset_bytes = size, .size_bytes = bytes};
    header_->extent_count = count + 1;
    extents_[count] = header_->extents[count];
    if (status written = write_headers(); !written.ok()) {
        // One copy may name the extent already, so the space stays; this process does not use it.
        // A file cut back to its size would be refused as truncated if a crash came then.
        header_->extent_count = count;
        growth_in_doubt_ = true;
        return written;
    }
    size_bytes_.store(size + bytes, std::memory_order_release);
    extent_count_.store(count + 1, std::memory_order_release);
    HF_ASSERT_SLOW(valid());
    HF_ASSERT_SLOW(extents().size() == count + 1);
    return {};
}

} // namespace hf
