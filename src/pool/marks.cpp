// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header's marks of a pool: open, moved, being migrated, closed; and how they are written.
#include <base/assert.hpp>
#include <pool/address_book.hpp>
#include <pool/boot_id.hpp>
#include <pool/creation.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_limits.hpp>
#include <pool/file_system.hpp>
#include <pool/mapping.hpp>
#include <pool/pool_file.hpp>
#include <pool/power_files.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace hf {

bool pool_file::may_have_holes() const noexcept {
    if (asked_.read_only) return false;
    if ((header_->optional_features & feature_holes) != 0) return true;
    // The whole file is asked: the blocks of a seal must not be counted for the pool's.
    const auto present = file_.size_bytes();
    return !present || file_.has_holes(std::max(size_bytes(), *present));
}

/// Upholds (3). In mode power blocks go home when the pool is closed: none may find the disk full
/// then. A pool opened by salvage may have been copied without its zeros, including blocks of
/// pending sections.
status pool_file::allocate_but(std::span<const extent> spare) {
    if (mode() == hf::mode::power || asked_.salvage) spare = {};
    std::uint64_t from = 0;
    for (const extent& free : spare) {
        HF_ASSERT_SLOW(free.offset_bytes >= from);
        if (free.offset_bytes > from)
            if (status ok = file_.allocate(from, free.offset_bytes - from); !ok.ok()) return ok;
        from = free.offset_bytes + free.size_bytes;
    }
    growth_.sparse = !spare.empty();
    return from < size_bytes() ? file_.allocate(from, size_bytes() - from) : status();
}

/// Upholds (3): blocks that the file shares with a copy of it, which a store would have to take
/// anew, become its own.
status pool_file::take_own_blocks() {
    const unshared done = unshare(file_.descriptor());
    if (done.failed != 0)
        return refusal(path_,
                       done.failed == ENOSPC || done.failed == EDQUOT ? errc::pool_full
                                                                      : errc::io_error,
                       fmt::format("its file shares blocks with a copy that was made of it (a "
                                   "reflink, as `cp` makes it), and must have its own before it "
                                   "is stored to: {}; make room on the disk, or remove the copy",
                                   std::strerror(done.failed)));
    // The open has warned of file systems that are known for it.
    if (done.left && file_system_doubt(file_.descriptor()).empty())
        warn(fmt::format("{}: its file shares blocks with a copy or a snapshot: while the disk is "
                         "full a store ends the process (SIGBUS)",
                         path_));
    return {};
}

status pool_file::mark_open(std::span<const extent> spare) {
    HF_ASSERT(!now_.marked_open);
    HF_ASSERT_SLOW(valid());
    if (asked_.read_only) {
        now_.generation = header_->generation + 1; // frees the locks that its copy shows as taken
        return {};
    }
    // A copy of a pool may have holes, which would fault when the disk is full.
    if (may_have_holes())
        if (status ok = allocate_but(spare); !ok.ok()) return ok;
    if (!file_.in_memory())
        if (status ok = take_own_blocks(); !ok.ok()) return ok;
    const auto boot = boot_here(path_);
    if (!boot) return boot.error();
    pool_header& h = *header_;
    // What a process left in the caches has not been written back yet, and from here on mode pmem
    // would vouch for it. A killed process may also have written a header that no sync has covered:
    // the log must not depend on a header that a failure takes back.
    const bool left_in_process_mode =
        !left_.clean && h.mode == static_cast<std::uint32_t>(mode::process);
    if (mode() == mode::power || (mode() == mode::pmem && left_in_process_mode))
        if (status ok = file_.sync(); !ok.ok()) return ok;
    if (mode() == hf::mode::power && size_bytes() > file_bytes_allowed())
        return refusal(path_, errc::pool_full,
                       fmt::format("mode power writes to the file, up to {} bytes{}", size_bytes(),
                                   way_out_of(EFBIG)));
    if (mode() == hf::mode::power)
        if (status ok = power_->start(h, h.generation + 1); !ok.ok()) return ok;
    // A process that created or renamed the log, or the pool, may have been killed before the name
    // was durable. Then no open would find the state promised from here on.
    if (mode() != hf::mode::process)
        if (status ok = file_.sync_directory(); !ok.ok()) return ok;
    h.required_features &= ~feature_power_log;
    if (mode() == hf::mode::power) {
        h.required_features |= feature_power_log;
        h.power_salt = power_->lines().salt();
    }
    h.generation += 1;
    h.mode = static_cast<std::uint32_t>(mode());
    h.engines = asked_.engines;
    h.open = 1;
    h.optional_features &= ~(feature_whole | feature_holes); // not true of this file
    if (growth_.sparse) h.optional_features |= feature_holes;
    h.required_features &= ~feature_caches_persist;
    if (domain() == hf::domain::eadr) h.required_features |= feature_caches_persist;
    // Lost data stay lost for the next open, too.
    note_marks(!now_.migrates || migrating(), dropped_so_far());
    note_place(left_.clean ? reinterpret_cast<std::uint64_t>(base_) : left_.logged_base);
    note_boot(h, **boot);
    const file_identity here = file_.identity();
    h.file_inode = here.inode;
    h.file_birth_ns = here.birth_ns;
    if (status ok = write_headers(); !ok.ok()) return ok;
    now_.generation = h.generation;
    now_.marked_open = true;
    HF_ASSERT_SLOW(h.open == 1);
    HF_ASSERT_SLOW(now_.generation > 0);
    return {};
}

/// Bits of the engines of whose pending sections old bytes may be missing.
std::uint32_t pool_file::dropped_so_far() const noexcept {
    if (left_.clean) return 0;
    return left_.in_doubt ? asked_.engines : left_.dropped_bytes;
}

/// Marks the engines that ask for it, and those whose old bytes are missing already.
void pool_file::note_marks(bool rebuild, std::uint32_t dropped) noexcept {
    set_marks(*header_, {asked_.drop_bytes | dropped, rebuild ? asked_.rebuild : 0});
}

void pool_file::note_place(std::uint64_t base) noexcept {
    pool_header& h = *header_;
    const bool elsewhere = base != h.base_address;
    h.required_features &= ~feature_relocated;
    if (elsewhere) h.required_features |= feature_relocated;
    h.mapped_address = elsewhere ? base : 0;
}

status pool_file::settle_place() {
    const auto here = reinterpret_cast<std::uint64_t>(base_);
    const bool noted = (dropped_so_far() & ~asked_.drop_bytes) == 0;
    HF_ASSERT_SLOW(now_.marked_open || asked_.read_only);
    if (left_.clean || asked_.read_only || (left_.logged_base == here && noted)) return {};
    note_marks(marks_of(*header_).rebuild != 0, 0);
    note_place(here);
    left_.logged_base = here;
    return write_headers();
}

bool pool_file::migrating() const noexcept { return is_migrating(*header_); }
std::string pool_file::layout() const { return header_->layout; } // check_header: it has an end
std::uint64_t pool_file::layout_hash() const noexcept { return header_->layout_hash; }

status pool_file::begin_migration() {
    pool_header& h = *header_;
    HF_ASSERT_SLOW(now_.migrates && now_.marked_open);
    if (migrating()) return {};
    h.required_features |= feature_migrating;
    set_marks(h, {marks_of(h).drop_bytes, asked_.rebuild}); // from here on
    std::memset(h.next_layout, 0, sizeof h.next_layout);
    asked_.layout.copy(h.next_layout, sizeof h.next_layout - 1);
    h.next_layout_hash = asked_.layout_hash;
    return write_headers();
}

status pool_file::other_layout() const {
    return hf::other_layout(path_, *header_, asked_.layout, asked_.layout_hash);
}

status pool_file::end_migration(migration_end how) {
    pool_header& h = *header_;
    HF_ASSERT_SLOW(now_.migrates && migrating() && now_.marked_open);
    if (how == migration_end::there) {
        std::memcpy(h.layout, h.next_layout, sizeof h.layout);
        h.layout_hash = h.next_layout_hash;
    } else {
        set_marks(h, {marks_of(h).drop_bytes, 0});
        left_.to_rebuild = 0;
    }
    std::memset(h.next_layout, 0, sizeof h.next_layout);
    h.next_layout_hash = 0;
    h.required_features &= ~feature_migrating;
    now_.migrates = false;
    return write_headers();
}

/// Upholds (1). If stores reach the disk only by msync, each copy gets one: after a power failure
/// it must be known that the pool was open.
status pool_file::write_headers() {
    HF_ASSERT(!asked_.read_only);
    HF_ASSERT_SLOW(valid());
    header_->sequence += 1;
    header_->checksum = header_checksum(*header_);
    if (mode() == hf::mode::power) return write_headers_past_image();
    const bool needs_msync = !map_sync_ && !file_.on_tmpfs();
    const std::uint64_t other = header_a_offset + header_b_offset - counting_copy_;
    for (std::uint64_t copy : {other, counting_copy_}) {
        // Writes only the parts that change, which are few.
        constexpr std::size_t part = 512;
        const auto* from = reinterpret_cast<const std::byte*>(header_.get());
        for (std::size_t at = 0; at < sizeof *header_; at += part)
            if (std::memcmp(base_ + copy + at, from + at, part) != 0)
                medium_.copy(base_ + copy + at, from + at, part);
        medium_.fence();
        if (needs_msync)
            if (status ok = file_.sync_mapped(base_ + copy, sizeof *header_); !ok.ok()) return ok;
        counting_copy_ = copy;
    }
    return {};
}

/// Mode power: the header names the log, so the header is not in the log.
status pool_file::write_headers_past_image() {
    const std::uint64_t other = header_a_offset + header_b_offset - counting_copy_;
    for (std::uint64_t copy : {other, counting_copy_}) {
        if (status ok = file_.write_at(copy, header_.get(), sizeof *header_); !ok.ok()) return ok;
        if (status ok = file_.sync_data(); !ok.ok()) return ok;
        std::memcpy(base_ + copy, header_.get(), sizeof *header_);
        counting_copy_ = copy;
    }
    return {};
}

result<std::uint64_t> pool_file::move_with_close() {
    HF_ASSERT(now_.marked_open);
    HF_ASSERT_SLOW(!asked_.read_only && !file_.in_memory());
    const pool_place now{header_->base_address, shape_.max_bytes};
    std::uint8_t seed[sizeof(pool_header::uuid)]; // the uuid would lead all copies to one place
    if (const int failed = fill_random(seed); failed != 0)
        return refusal(path_, errc::io_error, fmt::format("getrandom: {}", std::strerror(failed)));
    address_book book(path_);
    for (unsigned n = 0; n < base_attempts_max; ++n) {
        const pool_place next{book.candidate(seed, now.bytes, n), now.bytes};
        if (next.overlaps(now) || reserve_addresses(next.base, next.bytes) != 0) continue;
        release_addresses(reinterpret_cast<void*>(next.base), next.bytes);
        book.note(next);
        now_.next_base = next.base;
        return next.base;
    }
    return refusal(path_, errc::address_taken,
                   fmt::format("no other place for {} bytes of addresses between {:#x} and {:#x}",
                               now.bytes, base_low, base_high));
}

pool_header pool_file::closing_header() const noexcept {
    pool_header closing = *header_;
    closing.open = 0;
    set_marks(closing, {});
    closing.required_features &= ~(feature_relocated | feature_caches_persist | feature_power_log);
    closing.mapped_address = 0;
    closing.file_inode = closing.file_birth_ns = 0;
    if (now_.next_base != 0) closing.base_address = now_.next_base;
    closing.engines = 0;
    closing.sequence += 1;
    closing.checksum = header_checksum(closing);
    return closing;
}

} // namespace hf
