// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/page.hpp>
#include <pool/file_checks.hpp>
#include <pool/header.hpp>
#include <pool/power_files.hpp>
#include <power/home.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace hf {
namespace {

constexpr std::uint64_t compared_bytes = 4096; // of memory and file, at a time

std::uint64_t end_of(const pool_header& h) noexcept {
    const extent& last = h.extents[h.extent_count - 1];
    return last.offset_bytes + last.size_bytes;
}

power::owner owner_of(const pool_header& h) noexcept {
    power::owner whose{};
    std::memcpy(whose.uuid, h.uuid, sizeof whose.uuid);
    whose.generation = h.generation;
    whose.salt = h.power_salt;
    whose.first_line = root_words_offset / line_bytes;
    whose.end_line = end_of(h) / line_bytes;
    return whose;
}

/// The pages of this process's memory that may differ from the file they were mapped from, as far
/// as the kernel reports them; else all.
class own_pages {
public:
    own_pages() noexcept : fd_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
    ~own_pages() {
        if (fd_ >= 0) ::close(fd_);
    }
    own_pages(const own_pages&) = delete;
    own_pages& operator=(const own_pages&) = delete;

    bool may_differ(const std::byte* at) noexcept {
        const std::uint64_t index = reinterpret_cast<std::uintptr_t>(at) / page_bytes();
        if (index - first_ >= known_) {
            first_ = index;
            const ssize_t got = fd_ < 0 ? -1
                                        : ::pread(fd_, entries_, sizeof entries_,
                                                  static_cast<off_t>(index * sizeof entries_[0]));
            known_ = got > 0 ? static_cast<std::uint64_t>(got) / sizeof entries_[0] : 0;
            if (known_ == 0) return true;
        }
        constexpr std::uint64_t present = std::uint64_t{1} << 63, swapped = std::uint64_t{1} << 62;
        constexpr std::uint64_t of_file = std::uint64_t{1} << 61;
        const std::uint64_t entry = entries_[index - first_];
        return (entry & (present | swapped)) != 0 && (entry & of_file) == 0;
    }

private:
    int fd_;
    std::uint64_t first_ = 0, known_ = 0;
    std::uint64_t entries_[4096];
};

} // namespace

status power_files::blocks::read(std::uint64_t at, void* to, std::size_t bytes) const {
    return of_->read_at(at, to, bytes);
}
status power_files::blocks::write(std::uint64_t at, const void* from, std::size_t bytes) {
    return of_->write_at(at, from, bytes);
}

void power_files::blocks::start(std::uint64_t at, std::size_t bytes) noexcept {
    (void)::sync_file_range(of_->descriptor(), static_cast<off_t>(at), static_cast<off_t>(bytes),
                            SYNC_FILE_RANGE_WRITE);
}

power_files::power_files(const std::string& pool_path, os_file& home)
    : path_(log_path_of(pool_path)), home_(home), log_file_(std::in_place), log_blocks_(*log_file_),
      log_(path_) {}

std::string power_files::log_path_of(const std::string& pool_path) {
    std::error_code unknown; // there is no directory to be in, or none that may be read
    auto file = std::filesystem::absolute(pool_path, unknown);
    if (!unknown) file = std::filesystem::weakly_canonical(file, unknown);
    if (unknown) file = pool_path;
    return file.string() + "-power";
}

status power_files::open_log(bool read_only) {
    auto opened = os_file::open_existing(path_, false, read_only ? held::to_read : held::to_write);
    if (opened) log_file_->take(*opened);
    return opened || opened.error().code() == errc::not_found ? status{} : opened.error();
}

status power_files::find(const pool_header& h, bool read_only) {
    if (status ok = open_log(read_only); !ok.ok()) return ok;
    if (!log_is_open())
        return refusal(path_, errc::torn,
                       "the pool was left open in mode power, and its log is missing: expected it "
                       "beside the pool, under this name");
    const auto size = log_file_->size_bytes();
    if (!size) return size.error();
    auto found = power::found_log::read(path_, log_blocks_, *size, owner_of(h));
    if (!found) return found.error();
    found_.emplace(std::move(*found));
    return {};
}

std::uint64_t power_files::found_lines() const noexcept {
    return found_ ? found_->lines().size() : 0;
}
std::uint64_t power_files::found_batches() const noexcept {
    return found_ && !found_->lines().empty() ? found_->last() - found_->header().applied : 0;
}

void power_files::put_over(std::byte* base) const noexcept {
    if (!found_) return;
    for (const power::logged_line& line : found_->lines())
        std::memcpy(base + line.number * line_bytes, line.bytes, line_bytes);
}

/// The disk's room for a log, beside a pool that has all of its space.
std::uint64_t power_files::room_bytes(const pool_header& h) const noexcept {
    struct statfs disk{};
    struct stat pool{}, before{};
    if (::fstatfs(home_.descriptor(), &disk) != 0 || ::fstat(home_.descriptor(), &pool) != 0)
        return ~std::uint64_t{0}; // then the log's allocation shows it
    const auto bytes_of = [](const struct stat& file) {
        return static_cast<std::uint64_t>(file.st_blocks) * 512;
    };
    std::uint64_t room = disk.f_bavail * static_cast<std::uint64_t>(disk.f_bsize);
    if (::lstat(path_.c_str(), &before) == 0) room += bytes_of(before); // goes, or is taken
    const std::uint64_t lacking = end_of(h) - std::min(end_of(h), bytes_of(pool));
    return room - std::min(room, lacking);
}

void power_files::watch(std::byte* base, const pool_header& h) {
    if (found_) sizes_ = found_->header();
    else {
        // A pool that has grown over all of its disk is served by a log as small as the one it grew
        // with.
        const std::uint64_t room = room_bytes(h);
        std::uint64_t served = end_of(h);
        do sizes_ = power::log::sized_for(served);
        while (power::file_bytes(sizes_) > room && (served /= 2) >= power::segment_bytes_min);
    }
    log_.watch(base, sizes_);
}

/// ok if a log that is in the way holds nothing that anybody needs: it served the pool's last open
/// in mode power, which was closed, or an open that never recorded itself in the pool.
status power_files::is_void(const pool_header& h, const power::log_header& old,
                            std::uint64_t size_bytes) {
    if (old.salt == h.power_salt) return {};
    power::owner before = owner_of(h);
    before.generation = old.generation - 1;
    auto found = power::found_log::read(path_, log_blocks_, size_bytes, before);
    if (found) return {};
    return refusal(path_, errc::exists,
                   fmt::format("expected no file of this name, or an old log of this pool, found "
                               "one that another pool or a copy of this one may need ({:#x} after "
                               "{:#x}; the pool's last is {:#x}): move it away",
                               old.salt, old.follows, h.power_salt));
}

/// Takes a log that an earlier open of this pool has left, or makes one that has no name yet.
status power_files::make_log(const pool_header& h) {
    if (!log_is_open())
        if (status ok = open_log(false); !ok.ok()) return ok;
    if (log_is_open()) {
        power::log_header old{};
        const auto size = log_file_->size_bytes();
        if (!size) return size.error();
        const auto state = power::read_header(log_blocks_, old);
        if (!state) return state.error();
        if (*state != power::header_state::valid ||
            std::memcmp(old.uuid, h.uuid, sizeof old.uuid) != 0)
            return refusal(path_, errc::exists,
                           "expected the log of this pool, or no file of this name, found "
                           "another: move it away");
        if (!found_)
            if (status ok = is_void(h, old, *size); !ok.ok()) return ok;
        sizes_.writes = old.writes;
        if (old.version == power::log_version && power::numbers_wrong(old, *size).empty() &&
            old.segment_bytes == sizes_.segment_bytes &&
            old.batch_bytes_max == sizes_.batch_bytes_max)
            return {};
        HF_ASSERT(!found_); // a log of other sizes is useless
        ::unlink(path_.c_str());
        log_file_.emplace();
    }
    auto made = os_file::create_new(path_);
    if (!made) return made.error();
    log_file_->take(*made);
    named_ = false;
    log_file_->take_owner_or_say(
        home_.descriptor()); // the next open of the pool opens the log, too
    // Written, and not only allocated: otherwise the first write there would go through the file
    // system's journal, and a sync waits for that.
    const std::vector<std::byte> zeros(1 << 20);
    const std::uint64_t bytes = power::file_bytes(sizes_);
    status ok = log_file_->allocate(0, bytes);
    for (std::uint64_t at = 0; ok.ok() && at < bytes; at += zeros.size())
        ok = log_file_->write_at(at, zeros.data(),
                                 std::min<std::uint64_t>(zeros.size(), bytes - at));
    return ok.ok() ? log_file_->sync() : ok;
}

/// Without memory a new file must go as after any other failure.
status power_files::start(const pool_header& h, std::uint64_t generation) {
    status ok;
    try {
        ok = begin_log(h, generation);
    } catch (const std::bad_alloc&) {
        ok = out_of_memory(path_);
    }
    if (!ok.ok() && !named_) log_file_->unlink();
    named_ = true;
    return ok;
}

status power_files::begin_log(const pool_header& h, std::uint64_t generation) {
    if (found_)
        if (status ok = power::bring_home(log_blocks_, home_, found_->lines()); !ok.ok()) return ok;
    if (status ok = make_log(h); !ok.ok()) return ok;
    std::memcpy(sizes_.uuid, h.uuid, sizeof sizes_.uuid);
    sizes_.generation = generation;
    sizes_.follows = h.power_salt;
    if (status ok = log_.start(log_blocks_, home_, sizes_, true); !ok.ok()) return ok;
    found_.reset();
    return named_ ? status{} : log_file_->publish(); // upholds (2)
}

status power_files::bring_image_home(const std::byte* base, std::uint64_t first,
                                     std::uint64_t end) {
    HF_ASSERT_SLOW(first % compared_bytes == 0 && end % compared_bytes == 0);
    const auto pages = std::make_unique<own_pages>();
    std::byte there[compared_bytes];
    for (std::uint64_t at = first; at < end; at += compared_bytes) {
        if (!pages->may_differ(base + at)) continue;
        if (status ok = home_.read(at, there, sizeof there); !ok.ok()) return ok;
        if (std::memcmp(there, base + at, sizeof there) == 0) continue;
        if (status ok = home_.write(at, base + at, sizeof there); !ok.ok()) return ok;
    }
    return home_.sync();
}

/// By then the name may be another log's: the pool was renamed.
void power_files::remove_log() noexcept {
    if (log_.salt() == 0) return; // no log was begun: the name belongs to another file
    struct stat ours{}, named{};
    if (::fstat(log_file_->descriptor(), &ours) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
        ours.st_dev == named.st_dev && ours.st_ino == named.st_ino)
        ::unlink(path_.c_str());
}

} // namespace hf
