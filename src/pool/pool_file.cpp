// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/log.hpp>
#include <persist/order.hpp>
#include <pool/address_book.hpp>
#include <pool/believed.hpp>
#include <pool/boot_id.hpp>
#include <pool/creation.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_system.hpp>
#include <pool/mapping.hpp>
#include <pool/occupants.hpp>
#include <pool/pool_file.hpp>
#include <pool/power_files.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace hf {
namespace {

constexpr std::uint64_t page_bytes = 4096;

std::string error_text(int error) { return std::strerror(error); }

std::uint64_t end_of(const pool_header& h) noexcept {
    HF_ASSERT_SLOW(h.extent_count >= 1);
    HF_ASSERT_SLOW(h.extent_count <= extents_max); // check_header
    const extent& last = h.extents[h.extent_count - 1];
    return last.offset_bytes + last.size_bytes;
}

} // namespace

static held held_by(const file_options& options) noexcept {
    if (options.read_only) return options.shared ? held::to_read_beside : held::to_read;
    return options.shared ? held::to_write_beside_readers : held::to_write;
}

pool_file::pool_file(const std::string& path, const file_options& options)
    : path_(path), asked_(options), opener_{.process = ::getpid()},
      header_(std::make_unique<pool_header>()), seal_(options.seal) {}

result<std::unique_ptr<pool_file>> pool_file::open(const std::string& path,
                                                   const file_options& options) try {
    if (status usable = check_options(path, options); !usable.ok()) return usable;
    for (bool first_try = true;; first_try = false) {
        std::unique_ptr<pool_file> pool{new pool_file(path, options)};
        if (options.creation != create::always_new) {
            auto existing = os_file::open_existing(path, options.follow_symlinks, held_by(options));
            if (existing) {
                pool->take(*existing);
                status good = pool->reads_beside() ? pool->take_over_beside() : pool->take_over();
                if (!good.ok()) return good;
                return pool;
            }
            if (existing.error().code() != errc::not_found || options.creation == create::never ||
                options.read_only)
                return existing.error();
        }
        auto fresh = os_file::create_new(path, held_by(options));
        status created;
        if (fresh) {
            pool->take(*fresh);
            created = pool->create_or_say_why();
            if (created.ok()) return pool;
            pool->file_.unlink(); // still locked, so nobody else can have made a pool of it
        } else created = fresh.error();
        // Somebody else created it between our two looks: look once more.
        const bool raced = created.code() == errc::exists && options.creation == create::if_missing;
        if (!raced || !first_try) return created;
    }
} catch (const std::bad_alloc&) {
    return out_of_memory(path);
}

result<std::unique_ptr<pool_file>> pool_file::open_image(memory_image& image,
                                                         const file_options& options) {
    std::unique_ptr<pool_file> pool{new pool_file("(image)", options)};
    os_file file(image);
    pool->file_.take(file);
    if (status good = pool->take_over(); !good.ok()) return good;
    return pool;
}

result<std::unique_ptr<pool_file>> pool_file::open_to_replace(const std::string& path,
                                                              const file_options& options) try {
    HF_ASSERT(options.read_only && !options.shared);
    if (status usable = check_options(path, options); !usable.ok()) return usable;
    std::unique_ptr<pool_file> pool{new pool_file(path, options)};
    auto existing = os_file::open_existing(path, options.follow_symlinks, held::to_write);
    if (!existing) return existing.error();
    pool->take(*existing);
    if (status good = pool->take_over(); !good.ok()) return good;
    return pool;
} catch (const std::bad_alloc&) {
    return out_of_memory(path);
}

/// Without memory the file must go as after any other failure.
status pool_file::create_or_say_why() try { return create(); } catch (const std::bad_alloc&) {
    return out_of_memory(path_);
}

status pool_file::create() {
    pool_header& h = *header_;
    if (status ok = first_header(path_, asked_, h); !ok.ok()) return ok;
    if (h.lane_count < asked_.max_threads && asked_.max_threads != file_options{}.max_threads)
        warnings_.push_back(
            fmt::format("{}: max_threads: expected room for {} log lanes, found room for {} in {} "
                        "bytes: further threads take turns on the last one",
                        path_, asked_.max_threads, h.lane_count, end_of(h)));
    warn_of_file_system();
    const std::uint64_t file_bytes = end_of(h);
    if (status ok = file_.allocate(0, file_bytes); !ok.ok()) return ok;
    if (status ok = settle_mode(); !ok.ok()) return ok;
    if (status ok = choose_base(h); !ok.ok()) return ok;
    h.base_address = reinterpret_cast<std::uint64_t>(base_);
    take_shape(h);
    if (status ok = map(0, file_bytes); !ok.ok()) return ok;
    if (mode() == hf::mode::power) power_->watch(base_, h);
    note_mapping();
    watch();
    if (asked_.prefault) populate(base_, file_bytes);
    // Everything else is in place before a header says so. By write(2), whose page no kill tears.
    if (status ok = file_.sync(); !ok.ok()) return ok;
    h.sequence = 1;
    h.checksum = header_checksum(h);
    for (std::uint64_t copy : {header_b_offset, header_a_offset})
        if (status ok = file_.write_at(copy, &h, sizeof h); !ok.ok()) return ok;
    if (status ok = file_.sync(); !ok.ok()) return ok;
    now_.created = true;
    if (status ok = file_.publish(); !ok.ok()) return ok;
    return file_.sync_directory();
}

status read_copies(const os_file& from, header_bytes_read& to) {
    const status a = from.read_at(header_a_offset, to.page_a, sizeof to.page_a);
    return a.ok() ? from.read_at(header_b_offset, to.page_b, sizeof to.page_b) : a;
}

status pool_file::take_over() {
    header_bytes_read read;
    if (file_.in_memory())
        for (std::uint64_t copy : {header_a_offset, header_b_offset})
            trace::announce(believed::checked, file_.image_base() + copy, sizeof(pool_header));
    const auto file_bytes = file_.size_bytes();
    if (!file_bytes) return file_bytes.error();
    read.file_bytes = *file_bytes;
    if (status ok = read_copies(file_, read); !ok.ok()) return ok;
    auto chosen = choose_header(path_, read);
    if (!chosen) return chosen.error();
    pool_header& h = *header_;
    h = chosen->header;
    counting_copy_ = chosen->copy;
    warnings_ = std::move(chosen->warnings);
    status sound = check_header(path_, h, read.file_bytes);
    const bool short_of_it = sound.code() == errc::truncated;
    if (short_of_it && asked_.salvage && !file_.in_memory()) {
        present_bytes_ = read.file_bytes;
        warn(fmt::format("{}: salvaged: {}: what is missing reads as zeros", path_, sound.what()));
        sound = {};
    }
    if (!sound.ok()) return sound;
    if (file_.in_memory() && h.max_bytes > file_.capacity_bytes())
        return refusal(path_, errc::address_taken,
                       fmt::format("the image has room for {} bytes, the pool may grow to {}",
                                   file_.capacity_bytes(), h.max_bytes));
    const auto boot = boot_here(path_);
    if (!boot) return boot.error();
    if (status ok = check_use(path_, h, asked_, **boot); !ok.ok()) return ok;
    now_.migrates = !asked_.read_only && !has_layout(h, asked_);
    if (status ok = find_power_log(h); !ok.ok()) return ok;
    if (asked_.shared && asked_.max_bytes > h.max_bytes)
        return refusal(
            path_, errc::bad_argument,
            fmt::format(
                "max_bytes: expected at most the {} bytes that readers have mapped, found {}: "
                "raise it by an open without "
                "shared",
                h.max_bytes, asked_.max_bytes));
    if (status ok = raise_limit(path_, asked_, h); !ok.ok()) return ok;
    if (status ok = find_doubts(h, **boot); !ok.ok()) return ok;
    if (status ok = place(h, asked_.relocate); !ok.ok()) return ok;
    take_shape(h);
    if (status ok = settle_mode(); !ok.ok()) return ok;
    warn_of_file_system();
    if (status ok = map_all(); !ok.ok()) return ok;
    if (power_ != nullptr) power_->put_over(base_);
    // Readers bound their reads by the first copy: a writer is about to mend it, in the file.
    if (asked_.read_only && counting_copy_ != header_a_offset)
        std::memcpy(base_ + header_a_offset, &h, sizeof h);
    if (mode() == hf::mode::power) power_->watch(base_, h);
    note_mapping();
    if (!asked_.read_only && !file_.in_memory())
        address_book::note_opened(path_, {h.base_address, h.max_bytes});
    watch();
    if (asked_.prefault) populate(base_, size_bytes());
    return {};
}

/// Finds the state that the last open has left, and how much of it may be missing.
status pool_file::find_doubts(const pool_header& h, const boot_identifier& boot) {
    left_.clean = h.open == 0;
    left_.dropped_bytes = left_.clean ? 0 : marks_of(h).drop_bytes;
    const bool left_in_process_mode =
        !left_.clean && h.mode == static_cast<std::uint32_t>(mode::process);
    // A private image dies with its process, and the log is as after a failure of the machine.
    const bool left_in_power_mode =
        !left_.clean && h.mode == static_cast<std::uint32_t>(mode::power);
    const bool other_boot = left_in_power_mode  ? true
                            : file_.in_memory() ? file_.power_failed() && !left_in_process_mode
                                                : !is_whole_copy(h) && !same_boot(h, boot);
    // How the pool was left counts, not how it is opened now: as if every byte of a copy had come
    // through a failure of the machine, too.
    const bool cache_persists = asked_.mode == mode::pmem && asked_.eadr &&
                                (h.required_features & feature_caches_persist) != 0;
    left_.in_doubt =
        !left_.clean && ((other_boot && !cache_persists) || copied_while_open(h, file_.identity()));
    if (left_in_process_mode && !is_whole_copy(h) && !same_boot(h, boot))
        warnings_.push_back(
            fmt::format("{}: salvaged: left open in process mode by an earlier boot, updates may "
                        "be torn or missing",
                        path_));
    if (copied_while_open(h, file_.identity())) {
        const std::string what =
            fmt::format("a copy of a pool in use: it was open in the file with inode {} when it "
                        "was copied, this is inode {}",
                        h.file_inode, file_.identity().inode);
        if (!asked_.salvage)
            return refusal(path_, errc::torn,
                           what + "; bytes of different moments may have come together: copy a "
                                  "pool that is closed, or open with salvage to look at this one");
        warnings_.push_back(
            fmt::format("{}: salvaged: {}, updates may be torn or missing", path_, what));
    }
    return {};
}

/// Finds and reserves the addresses of an existing pool.
status pool_file::place(const pool_header& h, relocation wanted) {
    const bool left_elsewhere = h.open != 0 && (h.required_features & feature_relocated) != 0;
    left_.logged_base = left_elsewhere ? h.mapped_address : h.base_address;
    // At that address recovery finds everything where the logs say.
    if (left_elsewhere && wanted != relocation::never && reserve_range(h.mapped_address, h) == 0) {
        base_ = reinterpret_cast<std::byte*>(h.mapped_address);
        return {};
    }
    if (wanted == relocation::always) return relocate(h);
    status canonical = reserve(h);
    if (canonical.code() == errc::address_taken &&
        (wanted == relocation::if_taken || may_lie_anywhere(h)))
        return relocate(h);
    if (canonical.ok()) base_ = reinterpret_cast<std::byte*>(h.base_address);
    return canonical;
}

/// Whether no reader follows an address in the pool. It then holds nothing but MOD's nodes and
/// persistent objects, which know their places.
bool pool_file::may_lie_anywhere(const pool_header& h) const {
    if (!asked_.read_only || file_.in_memory() || power_ != nullptr || is_migrating(h))
        return false;
    root_words roots{};
    if (!file_.read_at(root_words_offset, &roots, sizeof roots).ok()) return false;
    constexpr std::uint32_t position_free = engine_mod | engine_simpo;
    std::uint32_t engines = h.open != 0 ? h.engines : 0;
    for (unsigned slot = 0; slot < engines_max; ++slot)
        if (roots.anchors[slot] != 0) engines |= 1U << slot;
    return roots.root_offset == 0 && roots.migration_offset == 0 && (engines & ~position_free) == 0;
}

void pool_file::note_mapping() {
    const auto here = reinterpret_cast<std::uint64_t>(base_);
    file_.note_place(here, reserved_bytes_);
    elsewhere_ = here != header_->base_address;
    if (elsewhere_ && asked_.relocate != relocation::never)
        relocated_.emplace(
            base_, shape_.max_bytes,
            address_forms{header_->base_address, here, shape_.max_bytes, &seen_.size_bytes},
            "a relocated pool");
}

status pool_file::relocate(const pool_header& h) {
    int failed = file_.in_memory() ? EINVAL : EEXIST;
    for (unsigned n = 0; n < base_attempts_max && failed == EEXIST; ++n) {
        const std::uint64_t base = relocated_candidate(h.uuid, h.max_bytes, n);
        failed = reserve_range(base, h);
        if (failed == 0) base_ = reinterpret_cast<std::byte*>(base);
    }
    if (failed == 0) return {};
    return refusal(path_, failed == EEXIST ? errc::address_taken : errc::io_error,
                   fmt::format("no place for {} bytes of addresses between {:#x} and {:#x}: {}",
                               h.max_bytes, relocated_low, relocated_high, error_text(failed)));
}

/// The kernel says no more than ENOMEM.
static std::string why_no_addresses(int failed) {
    if (failed != ENOMEM) return error_text(failed);
    return error_text(failed) +
           ": raise the limit of the process (ulimit -v); a kernel that gives programs "
           "less than 47 bits of addresses (ARM64 with CONFIG_ARM64_VA_BITS_39) has no such place";
}

std::uint64_t pool_file::canonical_base() const noexcept { return header_->base_address; }

/// All addresses that the pool may grow into, or those it needs today where the process may not
/// have so many (ulimit -v). 0, or the error.
int pool_file::reserve_range(std::uint64_t base, const pool_header& h) {
    reserved_bytes_ = h.max_bytes;
    const int failed = reserve_addresses(base, reserved_bytes_);
    if (failed != ENOMEM) return failed;
    reserved_bytes_ = end_of(h);
    if (reserve_addresses(base, reserved_bytes_) != 0) return failed;
    warnings_.push_back(fmt::format("{}: no room for the {} bytes of addresses that the pool may "
                                    "grow to (ulimit -v): it may not grow",
                                    path_, h.max_bytes));
    return 0;
}

status pool_file::reserve(const pool_header& h) {
    int failed = 0;
    if (file_.in_memory()) { // an image is there in whole
        failed = h.base_address == reinterpret_cast<std::uint64_t>(file_.image_base()) ? 0 : EEXIST;
        reserved_bytes_ = h.max_bytes;
    } else failed = reserve_range(h.base_address, h);
    if (failed == 0) return {};
    return refusal(path_, failed == EEXIST ? errc::address_taken : errc::io_error,
                   fmt::format("cannot reserve {} bytes at the canonical address {:#x}: {}",
                               h.max_bytes, h.base_address,
                               failed == EEXIST ? occupant_of(path_, h.base_address, h.max_bytes)
                                                : why_no_addresses(failed)));
}

status pool_file::choose_base(const pool_header& h) {
    const geometry shape = shape_of(h);
    address_book book(path_); // until the place is noted no other process chooses one
    std::uint64_t base = 0;
    int failed = EEXIST;
    for (unsigned n = 0; n < base_attempts_max && failed == EEXIST; ++n) {
        base = book.candidate(h.uuid, shape.max_bytes, n);
        failed = reserve_range(base, h);
    }
    if (failed != 0)
        return refusal(
            path_, failed == EEXIST ? errc::address_taken : errc::io_error,
            fmt::format(
                "no place for {} bytes of addresses between {:#x} and {:#x}, last tried {:#x}: {}",
                shape.max_bytes, base_low, base_high, base, why_no_addresses(failed)));
    base_ = reinterpret_cast<std::byte*>(base);
    HF_ASSERT_SLOW(base >= base_low);
    HF_ASSERT_SLOW(base + shape.max_bytes <= base_high);
    shape_ = shape; // from here on the destructor gives the range back
    const pool_place place{base, shape.max_bytes};
    if (const std::string other = book.pool_in(place); !other.empty())
        warnings_.push_back(
            fmt::format("{}: other pools leave no {} bytes of addresses free: it cannot be open in "
                        "one process together with {}",
                        path_, shape.max_bytes, other));
    book.note(place);
    return {};
}

/// Asks for what the platform offers: caches that persist, and get stores in order.
void pool_file::take(os_file& opened) {
    file_.take(opened);
    if (asked_.mode == hf::mode::pmem && (asked_.eadr || caches_persist()) &&
        can_map_sync(file_.descriptor()) == 0)
        asked_.eadr = persist::caches_get_stores_in_order;
}

status pool_file::settle_mode() {
    if (mode() == hf::mode::process) {
        medium_ = hf::medium(hf::domain::process);
        return {};
    }
    if (mode() == hf::mode::power) return settle_power_mode();
    medium_ = hf::medium(asked_.eadr ? hf::domain::eadr : hf::domain::adr);
    const int no_dax = file_.in_memory() ? EOPNOTSUPP : can_map_sync(file_.descriptor());
    if (no_dax != 0 && no_dax != EOPNOTSUPP)
        return refusal(path_, errc::io_error,
                       fmt::format("cannot map with MAP_SYNC: {}", error_text(no_dax)));
    map_sync_ = no_dax == 0;
    if (map_sync_) return {};
    if (!file_.on_tmpfs())
        return refusal(path_, errc::mode_unavailable,
                       "pmem mode needs a file on persistent memory mounted for direct access "
                       "(DAX), or on tmpfs, where it is emulated");
    warnings_.push_back(
        fmt::format("{}: pmem mode is emulated on tmpfs: flushes and fences are real, but nothing "
                    "here survives power loss",
                    path_));
    return {};
}

status pool_file::settle_power_mode() {
    if (file_.in_memory()) return refusal(path_, errc::mode_unavailable, "mode power needs a file");
    if (power_ == nullptr) power_ = std::make_unique<power_files>(path_, file_);
    medium_ = hf::medium(power_->lines());
    if (emulated())
        warnings_.push_back(fmt::format(
            "{}: power mode is emulated on tmpfs: nothing here survives power loss", path_));
    return {};
}

/// Reads the log that an open in mode power has left, for whom the file is not all of the pool.
status pool_file::find_power_log(const pool_header& h) {
    if (h.open == 0 || (h.required_features & feature_power_log) == 0) return {};
    if (file_.in_memory())
        return refusal(path_, errc::mode_unavailable,
                       "left open in mode power, and its log is no part of the image");
    if (!asked_.read_only && asked_.mode != mode::power)
        return refusal(path_, errc::mode_unavailable,
                       "left open in mode power, so that part of it is in its log: open it in "
                       "mode power once, and close it");
    power_ = std::make_unique<power_files>(path_, file_);
    status found = power_->find(h, asked_.read_only);
    if (found.ok() || !asked_.salvage) return found;
    warnings_.push_back(fmt::format("{}: salvaged without its log: {}", path_, found.what()));
    power_ = nullptr;
    return {};
}

void pool_file::take_shape(const pool_header& h) {
    HF_ASSERT_SLOW(seen_.extent_count.load() == 0); // readers go by it: it only grows
    shape_ = shape_of(h);
    now_.generation = h.generation;
    left_.to_rebuild = h.open != 0 ? marks_of(h).rebuild : 0;
    std::memcpy(seen_.extents.data(), h.extents, sizeof(extent) * h.extent_count);
    seen_.extent_count.store(h.extent_count, std::memory_order_release);
    seen_.size_bytes.store(end_of(h), std::memory_order_release);
}

status pool_file::map(std::uint64_t offset, std::uint64_t bytes) const {
    HF_ASSERT_SLOW(base_ != nullptr);
    HF_ASSERT_SLOW(offset + bytes <= reserved_bytes_);
    if (file_.in_memory()) return {};
    const bool of_its_own = asked_.read_only || mode() == hf::mode::power;
    const mapped_as how = reads_beside() ? mapped_as::shared_to_read
                          : of_its_own   ? mapped_as::copy_on_write
                          : map_sync_    ? mapped_as::shared_sync
                                         : mapped_as::shared;
    const int failed = map_file(base_ + offset, file_.descriptor(), offset, bytes, how);
    if (failed == 0) return {};
    return refusal(
        path_, errc::io_error,
        fmt::format("cannot map {} bytes at offset {}: {}", bytes, offset, error_text(failed)));
}

/// A file that is too short gets the missing bytes if it is salvaged for writing: an exception to
/// (2). A file opened for reading is mapped as far as it goes.
status pool_file::map_all() {
    if (!present_bytes_) return map(0, size_bytes());
    const std::uint64_t there = round_up(*present_bytes_, page_bytes), end = size_bytes();
    if (!asked_.read_only) {
        status ok = file_.allocate(*present_bytes_, end - *present_bytes_);
        return ok.ok() ? map(0, end) : ok;
    }
    if (there < end) let_store(base_ + there, end - there);
    return map(0, std::min(there, end));
}

void pool_file::watch() {
    if (asked_.guard_signals && !file_.in_memory())
        watched_ = std::make_unique<fault_guard::watched_file>(base_, seen_.size_bytes,
                                                               file_.descriptor(), path_.c_str());
}

/// A process that stores to the file is warned where a pool's promises depend on the file system.
void pool_file::warn_of_file_system() {
    if (asked_.read_only || mode() == hf::mode::power || file_.in_memory()) return;
    if (const std::string why = file_system_doubt(file_.descriptor()); !why.empty())
        warn(fmt::format("{}: {}", path_, why));
}

std::string pool_file::misplaced() const { return file_.misplaced(); }

status pool_file::whole() const {
    const auto present = file_.size_bytes();
    if (!present) return present.error();
    if (*present >= (asked_.read_only ? present_bytes_.value_or(size_bytes()) : size_bytes()))
        return {};
    return refusal(path_, errc::truncated,
                   fmt::format("the file was cut while the pool was open: expected {} bytes, "
                               "found {}",
                               size_bytes(), *present));
}

bool pool_file::valid() const noexcept {
    const pool_header& h = *header_;
    if (counting_copy_ != header_a_offset && counting_copy_ != header_b_offset) return false;
    // While a growth writes the headers they name one extent more than readers see, or a longer
    // last one.
    const std::span<const extent> seen = extents();
    if (h.extent_count < seen.size() || h.extent_count > seen.size() + 1) return false;
    for (std::size_t i = 0; i < seen.size(); ++i)
        if (seen[i].offset_bytes != h.extents[i].offset_bytes ||
            (seen[i].size_bytes != h.extents[i].size_bytes && i + 1 < seen.size()))
            return false;
    if (seen.back().size_bytes > h.extents[seen.size() - 1].size_bytes) return false;
    if (seen.back().offset_bytes + seen.back().size_bytes != size_bytes()) return false;
    if (size_bytes() > h.max_bytes || h.max_bytes != shape_.max_bytes) return false;
    const auto here = reinterpret_cast<std::uint64_t>(base_);
    const bool moves = h.open == 0 && now_.next_base != 0; // away from its mapping
    return (moves || elsewhere_ == (here != h.base_address)) && end_of(h) <= reserved_bytes_;
}

void pool_file::make_readable() const noexcept {
    if (!file_.in_memory()) let_read(base_ + size_bytes(), reserved_bytes_ - size_bytes());
}

written_to_log pool_file::logged() const noexcept {
    if (mode() != hf::mode::power) return {};
    const power::log_counts c = power_->lines().counts();
    return {c.batch_bytes, c.batches, c.checkpoints};
}

root_words* pool_file::roots() const noexcept {
    return reinterpret_cast<root_words*>(base_ + root_words_offset);
}

const os_file* pool_file::file_to_seal() const noexcept {
    const bool wanted = seal_ && (!file_.in_memory() || file_.sealed());
    return wanted && growth_.doubt.ok() && now_.marked_open && opener_.process == ::getpid()
               ? &file_
               : nullptr;
}

/// Closes; warns first if the next open would look for the file elsewhere.
void pool_file::close_cleanly() noexcept try {
    if (const std::string lost = misplaced(); !lost.empty())
        say(severity::warning, fmt::format("{}: being closed: {}", path_, lost).c_str());
    // For a file that was cut nothing is vouched for, and its headers may be gone.
    HF_ASSERT_SLOW(now_.marked_open);
    HF_ASSERT_SLOW(!asked_.read_only);
    if (!whole().ok()) return;
    // Data before the mark that vouches for it; if the disk fails, the mark is not made.
    if (mode() == hf::mode::power) {
        if (!power_->lines().finish().ok() ||
            !power_->bring_image_home(base_, root_words_offset, size_bytes()).ok())
            return;
    } else if (!map_sync_ && !file_.sync().ok()) return;
    *header_ = closing_header();
    header_->sequence -= 1; // grows with the write
    // A failure leaves a header copy that says 'open', or no copy that says 'closed'.
    if (write_headers().ok() && mode() == hf::mode::power) power_->remove_log();
} catch (const std::bad_alloc&) { // it was about to say what failed
}

std::span<const std::uint8_t, 16> pool_file::uuid() const noexcept { return header_->uuid; }

pool_file::~pool_file() {
    if (base_ == nullptr || is_parents()) return;
    if (now_.marked_open && opener_.process == ::getpid())
        (void)fault_guard::run(fault_guard::against::cut_files, [&] { close_cleanly(); });
    relocated_.reset();
    if (!file_.in_memory()) release_addresses(base_, reserved_bytes_);
}

void pool_file::abandon(std::unique_ptr<pool_file> file) { file->now_.marked_open = false; }

void pool_file::give_up(std::unique_ptr<pool_file> file) {
    if (file->now_.created) {
        file->file_.unlink(); // still locked, so nobody else has it
        if (file->power_ != nullptr) file->power_->remove_log();
    }
    abandon(std::move(file));
}

} // namespace hf
