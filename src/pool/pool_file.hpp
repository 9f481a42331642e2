// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file under a pool: its checks when it is opened, its mapping, its growth. It is independent
// of the contents of the heap and of the log lanes.
//
// (1) Both header copies carry a checksum and a sequence number; the valid copy with the higher
//     number counts. They are written one after the other, the copy that counts last, each durable
//     before the next. So one copy verifies at any time, however often a crash cuts this short.
// (2) open() writes nothing: a refusal leaves the file byte-identical. mark_open() is the first
//     write.
// (3) The file system allocates every byte of an extent before the header names the extent, and
//     keeps it allocated. Exception: chunks that the allocator knows to be free: give_back(),
//     take_back().
// (4) Nothing read from the file is used as an offset, size or count before it is bounded.
#pragma once

#include <base/engines.hpp>
#include <pool/extents.hpp>
#include <pool/fault_guard.hpp>
#include <pool/file_options.hpp>
#include <pool/forks.hpp>
#include <pool/medium.hpp>
#include <pool/os_file.hpp>
#include <pool/relocation.hpp>

#include <holdfast/result.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace hf {

/// Properties that creation fixes for good (docs/format/pool.md).
struct geometry {
    std::uint64_t max_bytes;    // growth limit of the whole file
    std::uint64_t chunk_bytes;  // allocator's chunk: 4 KiB in pools under 16 MiB, else 64 KiB
    std::uint64_t lanes_offset; // log lanes, from pool start
    std::uint64_t lane_bytes;   // size of one lane
    std::uint32_t lane_count;
};

/// The durable words outside headers, lanes and heap; at root_words_offset, lines of their own.
struct root_words {
    std::uint64_t root_offset;      // root object, from pool start; 0: none yet
    std::uint64_t root_bytes;       // its size, written before root_offset
    std::uint64_t migration_offset; // migration_record; 0: none
    std::uint64_t reserved[5];
    /// By engine_slot(), the offset of an engine's superblock from pool start, one chunk; 0: none
    /// yet.
    std::uint64_t anchors[engines_max];

    std::uint64_t& anchor(engine_bit of) noexcept { return anchors[engine_slot(of)]; }
    std::uint64_t anchor(engine_bit of) const noexcept { return anchors[engine_slot(of)]; }
    /// From the first root word on.
    static constexpr std::uint64_t place_of_anchor(engine_bit of) noexcept {
        return offsetof(root_words, anchors) + engine_slot(of) * sizeof(std::uint64_t);
    }
};
static_assert(sizeof(root_words) == 192 && std::is_trivially_copyable_v<root_words>);

/// Words for readers from a writer that lets others read (open_options::shared): at
/// reader_words_offset, in a line of their own. Of no use once the machine has been down: then
/// there are no readers.
struct reader_words {
    /// Every version committed up to here is in the file, where readers look. It only grows.
    std::uint64_t sequence;
    /// pool_header::generation of the writer that has recovered the pool.
    std::uint64_t ready;
    std::uint64_t reserved[6];
};
static_assert(sizeof(reader_words) == 64);
inline constexpr std::uint64_t reader_words_offset = 8192 + 256;

/// The block that root_words::migration_offset names while a pool is on its way to another layout,
/// and until the remaining steps are done (open/migration.hpp).
struct migration_record {
    std::uint64_t cursor; // the application's
    std::uint64_t
        next_offset; // root object of the new layout, from pool start; 0: the old one stays
    std::uint64_t next_bytes; // its size, written before next_offset
    std::uint64_t old_offset; // of the root that it has replaced, noted before it does
    std::uint64_t old_bytes;  // written before old_offset
    std::uint64_t reserved[3];
};
static_assert(sizeof(migration_record) == 64);

/// Up to where a pool may be lengthened.
struct growth_bound {
    enum kind : std::uint8_t {
        max_bytes,    // the pool's limit: for logs
        log_reserve,  // what that leaves for data
        limit_growth, // pool::limit_growth
    };
    std::uint64_t bytes;
    kind set_by;
};

/// What the log of mode power has written so far, in bytes and in waits for the disk.
struct written_to_log {
    std::uint64_t bytes = 0, waits = 0, checkpoints = 0;
};

struct pool_header;     // header.hpp
struct boot_identifier; // boot_id.hpp
class power_files;      // power_files.hpp

class pool_file {
public:
    /// Opens or creates, locks and maps; checks everything; writes nothing to an existing file.
    static result<std::unique_ptr<pool_file>> open(const std::string& path,
                                                   const file_options& options);
    /// The same with read_only, while nobody else has it, not even to read: for what takes its
    /// place.
    static result<std::unique_ptr<pool_file>> open_to_replace(const std::string& path,
                                                              const file_options& options);
    /// Opens the pool that 'image' holds, at its canonical address, as open() would a file.
    static result<std::unique_ptr<pool_file>> open_image(memory_image& image,
                                                         const file_options& options);
    /// Marks the pool open by this boot: generation grows by one, boot identifier, mode and engines
    /// recorded, a damaged header copy rewritten. 2 ordering points.
    /// 'spare': of a file with holes, in order, where no block is: nobody stores there before
    /// take_back().
    status mark_open(std::span<const extent> spare = {});
    /// Whether the file may have holes: until then 'spare' is not asked for. Requires: not marked
    /// open.
    bool may_have_holes() const noexcept;
    /// Marks the pool cleanly closed (no engine holds state), unmaps, unlocks. Also safe after a
    /// failed open. 2 ordering points.
    ~pool_file();
    pool_file(const pool_file&) = delete;
    pool_file& operator=(const pool_file&) = delete;
    /// Unmaps and unlocks without marking the pool closed: what a crash leaves (tests).
    static void abandon(std::unique_ptr<pool_file> file);
    /// abandon() for an open that has failed: removes a new pool, with its log.
    static void give_up(std::unique_ptr<pool_file> file);

    std::byte* base() const noexcept { return base_; }
    /// Whether that is elsewhere than the canonical address.
    bool relocated() const noexcept { return elsewhere_; }
    /// The address of the byte at 'base()' in its canonical form.
    std::uint64_t canonical_base() const noexcept;
    /// The address where the last open mapped the pool, if it was not closed cleanly: the form of
    /// addresses that its logs hold as plain bytes.
    std::uint64_t logged_base() const noexcept { return left_.logged_base; }
    /// The pool's addresses as those bytes hold them.
    address_forms logged_forms() const noexcept {
        return {left_.logged_base, reinterpret_cast<std::uint64_t>(base_), shape_.max_bytes,
                &seen_.size_bytes};
    }
    /// Nothing is pending any more: later log records have the form of this mapping.
    status settle_place();
    /// End of the last extent.
    std::uint64_t size_bytes() const noexcept {
        return seen_.size_bytes.load(std::memory_order_acquire);
    }
    const geometry& shape() const noexcept { return shape_; }
    hf::medium medium() const noexcept { return medium_; }
    hf::domain domain() const noexcept { return medium_.domain(); }
    /// A pool that is only read reaches no file.
    hf::mode mode() const noexcept { return asked_.read_only ? hf::mode::process : asked_.mode; }
    /// pmem mode without persistent memory, power mode without a disk.
    bool emulated() const noexcept {
        return mode() == hf::mode::power ? file_.on_tmpfs()
                                         : mode() == hf::mode::pmem && !map_sync_;
    }
    written_to_log logged() const noexcept;
    bool in_memory() const noexcept { return file_.in_memory(); }
    /// Whether the parent of this process opened it, so that it does not exist here (forks.hpp).
    bool is_parents() const noexcept { return opener_.forked != forks::count() && !in_memory(); }
    /// Makes the part that the pool has not grown to yet readable, as zeros: refs of a damaged
    /// structure may lead there.
    void make_readable() const noexcept;
    /// What has happened to the file's name since it was opened, for people; empty: the name leads
    /// there.
    std::string misplaced() const;
    /// ok, or truncated: somebody has made the file shorter than the pool.
    status whole() const;
    std::uint64_t generation() const noexcept { return now_.generation; }
    /// The pool's name for good.
    std::span<const std::uint8_t, 16> uuid() const noexcept;
    const std::string& path() const noexcept { return path_; }
    const std::vector<std::string>& warnings() const noexcept { return warnings_; }
    void warn(std::string what) { warnings_.push_back(std::move(what)); }
    /// Bits of engines whose sections, of those that the open before this one left pending, may not
    /// have kept all that they overwrote; and of those that have something to compute again.
    std::uint32_t dropped_bytes() const noexcept { return left_.dropped_bytes; }
    std::uint32_t left_to_rebuild() const noexcept { return left_.to_rebuild; }
    /// Whether the pool is on its way to another layout; whether this open brings it there.
    bool migrating() const noexcept;
    bool migrates() const noexcept { return now_.migrates; }
    /// The layout that the pool has, until end_migration() gives it this open's.
    std::string layout() const;
    std::uint64_t layout_hash() const noexcept;
    /// Marks the migration in the header as under way, or as ended: the pool has arrived, or is
    /// back, and nothing has been stored to it. 2 ordering points; begin_migration() of a pool that
    /// is under way already: 0.
    status begin_migration();
    enum class migration_end : bool { where_it_was, there };
    status end_migration(migration_end how);
    /// wrong_layout: the pool has another one than was asked for.
    status other_layout() const;
    /// True when it is mapped privately, and nothing is ever written to the file.
    bool read_only() const noexcept { return asked_.read_only; }
    /// open_options::shared: whether this process reads beside one that may write; and whether it
    /// writes, and lets others read. Neither of a pool in memory.
    bool reads_beside() const noexcept { return asked_.shared && asked_.read_only; }
    bool lets_read() const noexcept { return asked_.shared && !asked_.read_only; }
    /// Requires: one of both.
    reader_words* words_for_readers() const noexcept;
    /// Maps the new part of the file. False if the pool goes on behind the mapped part: there may
    /// be no memory, or no room (ulimit -v). Requires: reads_beside().
    [[nodiscard]] bool cover_growth() noexcept;
    /// True when creation made the file in this open.
    bool created() const noexcept { return now_.created; }
    /// True when any part may be missing of what the open before this one stored, though later
    /// stores are there: the machine may have gone down since, or the file is a copy of a pool in
    /// use. mark_open carries the doubt on: dropped_bytes() are those of all engines from then on,
    /// until nothing is pending any more.
    bool stores_in_doubt() const noexcept { return left_.in_doubt; }
    /// True when mark_open() has succeeded: from then on the file may be written.
    bool marked_open() const noexcept { return now_.marked_open; }
    /// True when the last close was clean.
    bool was_clean() const noexcept { return left_.clean; }
    std::span<const extent> extents() const noexcept {
        return {seen_.extents.data(), seen_.extent_count.load(std::memory_order_acquire)};
    }
    root_words* roots() const noexcept;
    /// The contents of both headers after the clean close: what a seal vouches for.
    pool_header closing_header() const noexcept;
    /// The clean close gives the pool another canonical address, which is returned: one that no
    /// known pool of the user has. Until then, and after a kill, it has the one that it had.
    ///
    /// Requires: it is marked open; nothing in it is an address, or holds one.
    /// Errors:   address_taken, io_error.
    result<std::uint64_t> move_with_close();
    /// The file for a seal; null when the close will not be clean, or asks for no seal.
    const os_file* file_to_seal() const noexcept;
    /// The file; null of one in memory.
    const os_file* own_file() const noexcept { return in_memory() ? nullptr : &file_; }
    void leave_unsealed() noexcept { seal_ = false; }
    bool contains(const void* address) const noexcept {
        auto a = reinterpret_cast<std::uintptr_t>(address),
             b = reinterpret_cast<std::uintptr_t>(base_);
        return a - b < shape_.max_bytes;
    }

    /// Lengthens the pool by at least 'heap_bytes' of chunks in one piece (more by the growth
    /// policy: an eighth of the current size): in its last extent, or in another one behind its
    /// tables. On return the new part is allocated, mapped and named by both headers.
    /// Ordering: 2 points.
    /// Errors:   pool_full ('until', or the disk), limit_reached (extent table), io_error,
    ///           poisoned; the pool stays usable and the file keeps its size.
    /// Threads:  the caller serialises.
    result<extent> grow(std::uint64_t heap_bytes, const growth_bound& until);
    /// To max_bytes.
    result<extent> grow(std::uint64_t heap_bytes);
    /// How long the tables of an extent let it become. Threads: not while the pool grows.
    std::uint64_t laid_out_bytes(std::size_t extent) const noexcept;
    /// Whether all extents that data may have are used up: no limit lets the pool become longer.
    /// Threads: the same.
    bool growth_ended() const noexcept;
    /// Gives the disk space of a part of an extent back: it reads as zeros, or as anything once a
    /// power failure may have been. The headers say, from the first time on, that there may be
    /// holes: 2 ordering points.
    /// Errors:   mode_unavailable (the file system has no holes; mode power), permission
    ///           (read-only), io_error.
    /// Threads:  the caller serialises, here and below.
    status give_back(std::uint64_t offset, std::uint64_t bytes);
    /// Allocates it again: from then on stores find space. Durably, where they are.
    /// Errors:   pool_full, io_error; some of it may be allocated.
    status take_back(std::uint64_t offset, std::uint64_t bytes);
    /// Whether free chunks may be holes that were there when the pool was opened.
    bool sparse() const noexcept { return growth_.sparse; }

private:
    pool_file(const std::string& path, const file_options& options);
    status create();
    status create_or_say_why();
    status take_over();
    status take_over_beside();
    status look_beside(bool& in_flux);
    status reserve(const pool_header& header);
    int reserve_range(std::uint64_t base, const pool_header& header);
    status reserve_more(std::uint64_t end);
    status place(const pool_header& header, relocation wanted);
    status relocate(const pool_header& header);
    bool may_lie_anywhere(const pool_header& header) const;
    void note_mapping();
    status choose_base(const pool_header& header);
    void take(os_file& opened);
    status settle_mode();
    status settle_power_mode();
    status find_doubts(const pool_header& h, const boot_identifier& boot);
    status find_power_log(const pool_header& h);
    status write_headers_past_image();
    status map(std::uint64_t offset, std::uint64_t bytes) const;
    status map_all();
    void watch();
    void take_shape(const pool_header& header);
    void note_place(std::uint64_t base) noexcept;
    std::uint32_t dropped_so_far() const noexcept;
    void note_marks(bool rebuild, std::uint32_t dropped) noexcept;
    /// Whether the header is that of the mapping: its copies' places, extents, size and address.
    bool valid() const noexcept;
    status write_headers();
    status past(const growth_bound& until, std::uint64_t heap_bytes) const;
    std::uint64_t lay_out(std::uint64_t needed, std::uint64_t room,
                          const growth_bound& until) const;
    result<extent> lengthen(std::uint64_t needed, std::uint64_t wanted, std::uint64_t laid_out);
    status extend(std::uint64_t bytes, std::uint64_t laid_out);
    bool still_refused(std::uint64_t bytes) const noexcept;
    void note_refused(std::uint64_t bytes, std::optional<std::uint64_t> free_before,
                      const status& why);
    status allocate_but(std::span<const extent> spare);
    status take_own_blocks();
    void warn_of_file_system();
    void say_if_misplaced();
    void close_cleanly() noexcept;

    /// The state that the last open has left, by the header. After a clean close nothing is
    /// missing, to rebuild, or in doubt.
    struct left_behind {
        bool clean = true;
        bool in_doubt = false;                           // stores_in_doubt()
        std::uint32_t dropped_bytes = 0, to_rebuild = 0; // bits of engines
        std::uint64_t logged_base = 0; // logged_base(): of this mapping once nothing is pending
    };
    /// The state of this open. Once it is marked open, the generation is the header's, and not 0.
    struct this_open {
        bool created = false;     // the file
        bool migrates = false;    // brings the pool to another layout
        bool marked_open = false; // mark_open succeeded; from then on the file may be written
        std::uint64_t generation = 0;
        std::uint64_t next_base = 0; // the canonical address from the clean close on; 0: the same
    };
    /// The pool's extents as other threads see them while it grows. An extent never moves, and only
    /// the last one changes, its size: readers go by size_bytes, which is stored when all below it
    /// is mapped.
    struct extents_seen {
        std::atomic<std::uint64_t> size_bytes{0};
        std::array<extent, extents_max> extents{};
        std::atomic<std::uint32_t> extent_count{0};
    };
    struct refused_growth {
        std::uint64_t bytes, disk_free_bytes; // asked for; free then
        std::chrono::steady_clock::time_point when;
        status why;
    };
    /// Threads: the caller of grow(), give_back() and take_back() serialises.
    struct growth {
        // Why headers could not be written: a copy in the file may name space that this process
        // does not use. Everything behind the last extent that it does use stays as it is.
        status doubt;
        std::optional<refused_growth> refused; // the last one that found no space on the disk
        bool said_misplaced = false;
        bool sparse = false; // sparse()
    };
    /// How far a reader beside a writer has mapped the file.
    struct covered {
        std::mutex covering; // guards what follows
        std::uint64_t covered_bytes = 0;
    };
    /// Its children leave the file alone.
    struct opening_process {
        int process;
        unsigned forked = forks::count(); // when it opened it
    };

    os_file file_;
    std::unique_ptr<power_files>
        power_; // of mode power, or of a log that it has left; ends before file_ does
    const std::string path_;
    file_options asked_;
    opening_process opener_;
    std::vector<std::string> warnings_;
    left_behind left_;
    this_open now_;
    // The contents of both copies now, or after the next write.
    std::unique_ptr<pool_header> header_;
    std::uint64_t counting_copy_ = 0; // offset of the copy whose content counts (1)
    geometry shape_{};
    hf::medium medium_;
    bool map_sync_ = false;            // mapped with MAP_SYNC: stores need no msync
    std::byte* base_ = nullptr;        // start of the reservation
    std::uint64_t reserved_bytes_ = 0; // of shape_.max_bytes, or what there were addresses for
    std::optional<std::uint64_t>
        present_bytes_; // of a file that is short of its pool, and salvaged
    extents_seen seen_;
    growth growth_;
    covered beside_;
    std::atomic<bool> seal_;                             // as asked, until somebody finds damage
    std::unique_ptr<fault_guard::watched_file> watched_; // ends before file_ does
    bool elsewhere_ = false;                    // mapped at another address than the canonical one
    std::optional<translated_range> relocated_; // then, if relocatable code may come
};

} // namespace hf
