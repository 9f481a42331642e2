// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/creation.hpp>
#include <pool/file_checks.hpp>
#include <pool/mapping.hpp>
#include <pool/pool_file.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace hf {
namespace {

constexpr unsigned base_attempts_max = 64;
static_assert(extents_max == std::tuple_size_v<std::array<extent, 128>>);

std::string error_text(int error) { return std::strerror(error); }

} // namespace

pool_file::pool_file() : header_(std::make_unique<pool_header>()), process_(::getpid()) {}

result<std::unique_ptr<pool_file>>
pool_file::open(const std::string& path, const open_options& options, std::uint32_t engines) try {
    if (status usable = check_options(path, options); !usable.ok()) return usable;
    for (bool first_try = true;; first_try = false) {
        std::unique_ptr<pool_file> pool{new pool_file};
        pool->path_ = path;
        pool->engines_ = engines;
        if (options.creation != create::always_new) {
            auto existing = os_file::open_existing(path, options.follow_symlinks);
            if (existing) {
                pool->file_.take(*existing);
                if (status good = pool->take_over(options, engines); !good.ok()) return good;
                return pool;
            }
            if (existing.error().code() != errc::not_found || options.creation == create::never)
                return existing.error();
        }
        auto fresh = os_file::create_new(path);
        if (fresh) {
            pool->file_.take(*fresh);
            if (status good = pool->create(options); !good.ok()) {
                pool->file_.unlink(); // still locked, so nobody else can have made it a pool
                return good;
            }
            return pool;
        }
        // Somebody else created it between our two looks: look once more.
        const bool raced =
            fresh.error().code() == errc::exists && options.creation == create::if_missing;
        if (!raced || !first_try) return fresh.error();
    }
} catch (const std::bad_alloc&) {
    return status{errc::io_error, "out of memory"};
}

status pool_file::create(const open_options& options) {
    pool_header& h = *header_;
    h = first_header(options);
    const std::uint64_t file_bytes = h.extents[0].offset_bytes + h.extents[0].size_bytes;
    if (status ok = file_.allocate(0, file_bytes); !ok.ok()) return ok;
    if (status ok = settle_mode(options); !ok.ok()) return ok;
    if (status ok = choose_base(shape_of(h), h.uuid); !ok.ok()) return ok;
    h.base_address = reinterpret_cast<std::uint64_t>(base_);
    take_shape(h);
    if (status ok = map(0, file_bytes); !ok.ok()) return ok;
    if (options.prefault) populate(base_, file_bytes);
    // Everything else is in place before a header says so. By write(2), whose page no kill tears.
    if (status ok = file_.sync(); !ok.ok()) return ok;
    h.sequence = 1;
    h.checksum = header_checksum(h);
    for (std::uint64_t copy : {header_b_offset, header_a_offset})
        if (status ok = file_.write_at(copy, &h, sizeof h); !ok.ok()) return ok;
    if (status ok = file_.sync(); !ok.ok()) return ok;
    created_ = true;
    return file_.sync_directory();
}

status pool_file::take_over(const open_options& options, std::uint32_t engines) {
    header_bytes_read read;
    const auto file_bytes = file_.size_bytes();
    if (!file_bytes) return file_bytes.error();
    read.file_bytes = *file_bytes;
    if (status ok = file_.read_at(header_a_offset, read.page_a, sizeof read.page_a); !ok.ok())
        return ok;
    if (status ok = file_.read_at(header_b_offset, read.page_b, sizeof read.page_b); !ok.ok())
        return ok;
    auto chosen = choose_header(path_, read);
    if (!chosen) return chosen.error();
    pool_header& h = *header_;
    h = chosen->header;
    warnings_ = std::move(chosen->warnings);
    if (status ok = check_header(path_, h, read.file_bytes); !ok.ok()) return ok;
    const std::string boot_id = kernel_boot_id();
    if (status ok = check_use(path_, h, options, engines, boot_id); !ok.ok()) return ok;
    was_clean_ = h.open == 0;
    if (!was_clean_ && h.mode == static_cast<std::uint32_t>(mode::process) && boot_id != h.boot_id)
        warnings_.push_back(
            fmt::format("{}: salvaged: left open in process mode by an earlier boot, updates may "
                        "be torn or missing",
                        path_));
    if (const int failed = reserve_addresses(h.base_address, h.max_bytes); failed != 0)
        return refusal(
            path_, failed == EEXIST ? errc::address_taken : errc::io_error,
            fmt::format("cannot reserve {} bytes at the canonical address {:#x}: {}", h.max_bytes,
                        h.base_address,
                        failed == EEXIST ? "something is mapped there" : error_text(failed)));
    base_ = reinterpret_cast<std::byte*>(h.base_address);
    take_shape(h);
    if (status ok = settle_mode(options); !ok.ok()) return ok;
    if (status ok = map(0, size_bytes()); !ok.ok()) return ok;
    if (options.prefault) populate(base_, size_bytes());
    return {};
}

status pool_file::choose_base(const geometry& shape, const std::uint8_t (&uuid)[16]) {
    std::uint64_t base = 0;
    int failed = EEXIST;
    for (unsigned n = 0; n < base_attempts_max && failed == EEXIST; ++n) {
        base = base_candidate(uuid, shape.max_bytes, n);
        failed = reserve_addresses(base, shape.max_bytes);
    }
    if (failed != 0)
        return refusal(
            path_, failed == EEXIST ? errc::address_taken : errc::io_error,
            fmt::format(
                "no place for {} bytes of addresses between {:#x} and {:#x}, last tried {:#x}: {}",
                shape.max_bytes, base_low, base_high, base, error_text(failed)));
    base_ = reinterpret_cast<std::byte*>(base);
    shape_ = shape; // from here on the destructor gives the range back
    return {};
}

status pool_file::settle_mode(const open_options& options) {
    mode_ = options.mode;
    if (mode_ == hf::mode::process) {
        domain_ = hf::domain::process;
        return {};
    }
    domain_ = options.eadr ? hf::domain::eadr : hf::domain::adr;
    map_sync_ = can_map_sync(file_.descriptor());
    if (map_sync_) return {};
    if (!file_.on_tmpfs())
        return refusal(path_, errc::mode_unavailable,
                       "pmem mode needs a file on persistent memory mounted for direct access "
                       "(DAX), or on tmpfs, "
                       "where it is emulated");
    emulated_ = true;
    warnings_.push_back(
        fmt::format("{}: pmem mode is emulated on tmpfs: flushes and fences are real, but nothing "
                    "here survives power loss",
                    path_));
    return {};
}

void pool_file::take_shape(const pool_header& h) {
    shape_ = shape_of(h);
    generation_ = h.generation;
    std::memcpy(extents_.data(), h.extents, sizeof(extent) * h.extent_count);
    extent_count_.store(h.extent_count, std::memory_order_release);
    const extent& last = extents_[h.extent_count - 1];
    size_bytes_.store(last.offset_bytes + last.size_bytes, std::memory_order_release);
}

status pool_file::map(std::uint64_t offset, std::uint64_t bytes) const {
    const int failed = map_file(base_ + offset, file_.descriptor(), offset, bytes, map_sync_);
    if (failed == 0) return {};
    return refusal(
        path_, errc::io_error,
        fmt::format("cannot map {} bytes at offset {}: {}", bytes, offset, error_text(failed)));
}

status pool_file::mark_open() {
    HF_ASSERT(!marked_open_);
    // A copy of a pool may have holes, which would fault when the disk is full. Upholds (3).
    if (file_.has_holes(size_bytes()))
        if (status ok = file_.allocate(0, size_bytes()); !ok.ok()) return ok;
    pool_header& h = *header_;
    h.generation += 1;
    h.mode = static_cast<std::uint32_t>(mode_);
    h.engines = engines_;
    h.open = 1;
    std::memset(h.boot_id, 0, sizeof h.boot_id);
    const std::string boot_id = kernel_boot_id();
    std::memcpy(h.boot_id, boot_id.data(), boot_id.size());
    if (status ok = write_headers(); !ok.ok()) return ok;
    generation_ = h.generation;
    marked_open_ = true;
    return {};
}

/// Upholds (1). Where stores reach the disk only by msync, each copy gets one: after a power
/// failure the pool must be known to have been open.
status pool_file::write_headers() {
    header_->sequence += 1;
    header_->checksum = header_checksum(*header_);
    const bool needs_msync = !map_sync_ && !file_.on_tmpfs();
    for (std::uint64_t copy : {header_b_offset, header_a_offset}) {
        persist::copy(domain_, base_ + copy, header_.get(), sizeof *header_);
        persist::fence(domain_);
        if (needs_msync && ::msync(base_ + copy, sizeof *header_, MS_SYNC) != 0)
            return refusal(path_, errc::io_error,
                           fmt::format("msync of the header: {}", error_text(errno)));
    }
    return {};
}

root_words* pool_file::roots() const noexcept {
    return reinterpret_cast<root_words*>(base_ + root_words_offset);
}

void pool_file::close_cleanly() noexcept {
    // Data before the mark that vouches for it; if the disk fails, the mark is not made.
    if (!map_sync_ && !file_.sync().ok()) return;
    header_->open = 0;
    header_->engines = 0;
    (void)write_headers(); // a failure leaves one copy that says open, or none that says closed
}

pool_file::~pool_file() {
    if (base_ == nullptr) return;
    if (marked_open_ && process_ == ::getpid()) close_cleanly();
    release_addresses(base_, shape_.max_bytes);
}

void pool_file::abandon(std::unique_ptr<pool_file> file) { file->marked_open_ = false; }

} // namespace hf
