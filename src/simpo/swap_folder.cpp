// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/packing.hpp>
#include <simpo/swap_folder.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <pthread.h>
#include <span>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace hf::simpo {
namespace {

constexpr std::uint64_t file_magic = 0x5041575354534648ULL; // "HFSTSWAP" in the file
constexpr std::uint64_t piece_bytes = 1ULL << 20;
constexpr const char* lock_name = "holdfast-swap";

// For a process with views of one object: os_file opens a file once at a time.
std::mutex reading;
// In a child of fork() no thread reads: a reading thread stayed in the parent.
[[maybe_unused]] const int watching =
    pthread_atfork(nullptr, nullptr, [] { ::new (&reading) std::mutex; });

/// The beginning of a file. Pieces follow, each as the length of its stored bytes (u64), and those
/// bytes; a piece of full length is stored as it is. The lock's file consists of the head alone:
/// its number is the pool's generation when the folder was opened last, its salt the number of that
/// open, and 0 stands behind them.
struct file_head {
    std::uint64_t magic; // file_magic
    std::uint64_t check; // of all that follows
    std::uint8_t pool[16];
    std::uint64_t salt;   // of the object
    std::uint64_t number; // of its state
    std::uint64_t copy_bytes;
    packing_name packing;
};
static_assert(sizeof(file_head) == 72 && std::has_unique_object_representations_v<file_head>);

std::uint64_t check_of(const file_head& h) noexcept {
    return checksum(h.pool, sizeof h - offsetof(file_head, pool), file_magic);
}

file_head head_for(const std::array<std::uint8_t, 16>& pool) {
    file_head h{};
    h.magic = file_magic;
    std::ranges::copy(pool, h.pool);
    return h;
}

/// A file that grows by each put().
class writing {
public:
    explicit writing(const os_file& to) : to_(&to) {}
    status put(const void* from, std::uint64_t bytes) {
        const status s = to_->write_at(at_, from, bytes);
        at_ += bytes;
        return s;
    }

private:
    const os_file* to_;
    std::uint64_t at_ = 0;
};

/// Writes the file, whole, before it gets its name: (1).
status write_new(os_file& file, const file_head& h, const std::byte* copy,
                 const compression* packing) {
    writing to(file);
    if (status s = to.put(&h, sizeof h); !s.ok()) return s;
    const auto packed = std::make_unique<std::byte[]>(packing == nullptr ? 0 : 2 * piece_bytes);
    for (std::uint64_t at = 0; at < h.copy_bytes; at += piece_bytes) {
        const std::uint64_t bytes = std::min(piece_bytes, h.copy_bytes - at);
        std::uint64_t stored = 0;
        const std::byte* from = packed.get();
        if (packing != nullptr)
            stored = pack(*packing, packed.get(), packed.get() + piece_bytes, copy + at, bytes);
        if (stored == 0) stored = bytes, from = copy + at;
        if (status s = to.put(&stored, sizeof stored); !s.ok()) return s;
        if (status s = to.put(from, stored); !s.ok()) return s;
    }
    if (status s = file.sync(); !s.ok()) return s;
    if (status s = file.publish(); !s.ok()) return s;
    return file.sync_directory();
}

errc code_of_mkdir(int error) noexcept {
    switch (error) {
    case ENOENT:
    case ENOTDIR: return errc::not_found;
    case EACCES:
    case EPERM:
    case EROFS: return errc::permission;
    case ENOSPC:
    case EDQUOT: return errc::pool_full;
    default: return errc::io_error;
    }
}

/// Removes a new file that is not wholly there when its scope is left.
class unfinished {
public:
    explicit unfinished(const os_file& file) : file_(&file) {}
    ~unfinished() {
        if (file_ != nullptr) file_->unlink();
    }
    unfinished(const unfinished&) = delete;
    void keep() noexcept { file_ = nullptr; }

private:
    const os_file* file_;
};

/// Makes the directory durably, for the owner of the pool, unless it is there.
status make_directory(const std::string& path, const os_file& pool) {
    const auto failed = [&](const char* what) {
        return refusal(path, code_of_mkdir(errno),
                       fmt::format("{}: {}", what, std::strerror(errno)));
    };
    const bool made = ::mkdir(path.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return failed("mkdir");
    struct stat of{};
    if (made && ::fstat(pool.descriptor(), &of) == 0 && of.st_uid != ::geteuid())
        (void)!::lchown(path.c_str(), of.st_uid, of.st_gid); // for the files in it, lchown decides
    const std::string parent = path.substr(0, path.rfind('/', path.size() - 2) + 1);
    const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES) return {}; // without the right to read it there is no sync
    if (fd < 0) return failed("open the directory above");
    const int synced = ::fsync(fd);
    const int error = errno;
    ::close(fd);
    errno = error;
    return synced == 0 || error == EINVAL ? status{} : failed("fsync the directory above");
}

std::string hex(std::span<const std::uint8_t> bytes) {
    std::string out;
    for (const std::uint8_t b : bytes) out += fmt::format("{:02x}", b);
    return out;
}

/// Whether the folder is this pool's, and of no later state.
status check_lock(const std::string& name, const file_head& mine, const file_head& found) {
    if (found.magic != file_magic || found.check != check_of(found))
        return refusal(
            name, errc::corrupt,
            "expected the lock of a folder for swapped-out objects, found other bytes: if the "
            "folder is this pool's, remove this file");
    if (!std::ranges::equal(found.pool, mine.pool))
        return refusal(
            name, errc::exists,
            fmt::format("the folder holds objects of another pool: expected {}, found {}",
                        hex(mine.pool), hex(found.pool)));
    if (found.number == mine.number && found.salt == mine.salt)
        return {}; // of this open, which has failed behind that
    if (found.number >= mine.number)
        return refusal(
            name, errc::conflict,
            fmt::format("the pool is a copy of an earlier state than the folder's: expected "
                        "generation {} at least, found {}",
                        found.number + 1, mine.number));
    return {};
}

/// The numbers in the name of an object's file.
bool numbers_of(std::string_view name, std::uint64_t& salt, std::uint64_t& number) {
    constexpr std::size_t digits = 16;
    if (name.size() != 2 * digits + 1 || name[digits] != '-') return false;
    const auto read = [](std::string_view text, std::uint64_t& out) {
        const auto end = text.data() + text.size();
        return std::from_chars(text.data(), end, out, 16).ptr == end;
    };
    return read(name.substr(0, digits), salt) && read(name.substr(digits + 1), number);
}

} // namespace

result<pool_name> uuid_of(const std::string& path, const os_file& pool) {
    header_bytes_read read;
    if (status s = read_copies(pool, read); !s.ok()) return s;
    const auto header = choose_header(path, read);
    if (!header) return header.error();
    return std::to_array(header->header.uuid);
}

result<swap_folder> swap_folder::open(const pool_file& of, std::string path,
                                      const swap_options& how, std::uint64_t opened_by) {
    if (path.empty() || path.find('\0') != path.npos)
        return refusal(of.path(), errc::bad_argument,
                       "swap_to: expected the name of a folder, found an empty one");
    if (how.packing != nullptr && !can_be_named(*how.packing))
        return refusal(
            of.path(), errc::bad_argument,
            fmt::format("swap_options::packing: expected a name of 1 to {} bytes, found {}",
                        sizeof(packing_name) - 1, std::strlen(how.packing->name())));
    std::error_code nowhere;
    path = std::filesystem::absolute(path, nowhere).string(); // the process may go elsewhere
    if (nowhere)
        return refusal(of.path(), errc::io_error,
                       fmt::format("swap_to: the working directory: {}", nowhere.message()));
    path.erase(path.find_last_not_of('/') + 1);
    path += '/';
    const os_file* const pool = of.own_file();
    if (pool == nullptr) return swap_folder(std::move(path), how.packing, {}); // nobody else's
    const auto uuid = uuid_of(of.path(), *pool);
    if (!uuid) return uuid.error();
    swap_folder out(std::move(path), how.packing, *uuid);
    if (of.read_only()) return out;
    if (status s = make_directory(out.path_, *pool); !s.ok()) return s;
    const status locked = out.lock(of.generation(), opened_by, *pool);
    return locked.ok() ? result<swap_folder>(std::move(out)) : locked;
}

status swap_folder::lock(std::uint64_t generation, std::uint64_t opened_by, const os_file& pool) {
    const std::string name = path_ + lock_name;
    file_head mine = head_for(pool_);
    mine.salt = opened_by;
    mine.number = generation;
    mine.check = check_of(mine);
    if (auto made = os_file::create_new(name)) {
        unfinished made_here(*made);
        made->take_owner_or_say(pool.descriptor());
        if (status s = made->write_at(0, &mine, sizeof mine); !s.ok()) return s;
        if (status s = made->sync(); !s.ok()) return s;
        if (status s = made->publish(); !s.ok()) return s;
        if (status s = made->sync_directory(); !s.ok()) return s;
        made_here.keep();
        lock_.take(*made);
        return {};
    } else if (made.error().code() != errc::exists) {
        return made.error();
    }
    auto there = os_file::open_existing(name, false);
    if (!there) return there.error();
    file_head found{};
    if (status s = there->read_at(0, &found, sizeof found); !s.ok()) return s;
    if (status s = check_lock(name, mine, found); !s.ok()) return s;
    if (status s = there->write_at(0, &mine, sizeof mine); !s.ok()) return s;
    if (status s = there->sync(); !s.ok()) return s;
    lock_.take(*there);
    return {};
}

void swap_folder::remove_all_but(const std::set<state>& named) const {
    if (lock_.descriptor() < 0) return;
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> all(::opendir(path_.c_str()));
    if (all == nullptr) return; // they stay, of no use to anybody
    std::vector<std::string> left;
    while (const dirent* entry = ::readdir(all.get())) {
        state of;
        if (numbers_of(entry->d_name, of.first, of.second) && !named.contains(of))
            left.push_back(path_ + entry->d_name);
    }
    for (const std::string& each : left) ::unlink(each.c_str());
}

std::string swap_folder::name_of(const object_head& of, std::uint64_t number) const {
    return fmt::format("{}{:016x}-{:016x}", path_, of.salt, number);
}

status swap_folder::write(const object_head& of, std::uint64_t number,
                          const std::byte* copy) const {
    const std::string name = name_of(of, number);
    if (::unlink(name.c_str()) != 0 && errno != ENOENT) // a failure came before the pool named it
        return refusal(name, errc::io_error, fmt::format("unlink: {}", std::strerror(errno)));
    file_head h = head_for(pool_);
    h.salt = of.salt;
    h.number = number;
    h.copy_bytes = layout_of(of).copy_bytes;
    if (packing_ != nullptr) h.packing = packing_name_of(*packing_);
    h.check = check_of(h);
    auto file = os_file::create_new(name);
    std::optional<unfinished> made_here;
    if (file) made_here.emplace(*file);
    if (file && lock_.descriptor() >= 0) file->take_owner_or_say(lock_.descriptor());
    const status written = file ? write_new(*file, h, copy, packing_) : file.error();
    if (written.code() == errc::not_found) // as in read()
        return refusal(
            name, errc::io_error,
            "the folder for swapped-out objects is not there: put it back under this name");
    if (written.ok()) made_here->keep();
    return written;
}

status swap_folder::read(const object_head& swapped, std::byte* copy) const {
    const std::scoped_lock held{reading};
    const std::string name = name_of(swapped, swapped.file);
    const auto wrong = [&](const std::string& what) { return refusal(name, errc::corrupt, what); };
    const auto file = os_file::open_existing(name, false, held::to_read);
    if (!file && file.error().code() == errc::not_found) // not_found would invite a new object
        return refusal(name, errc::io_error,
                       fmt::format("the file of object \"{}\", which is swapped out, is not there",
                                   swapped.name));
    if (!file) return file.error();
    const auto size = file->size_bytes();
    if (!size) return size.error();
    file_head h{};
    if (status s = file->read_at(0, &h, sizeof h); !s.ok()) return s;
    const std::uint64_t copy_bytes = layout_of(swapped).copy_bytes;
    if (h.magic != file_magic || h.check != check_of(h) || h.packing.back() != 0)
        return wrong("expected the file of a swapped-out object, found other bytes");
    if (!std::ranges::equal(h.pool, pool_) || h.salt != swapped.salt || h.number != swapped.file ||
        h.copy_bytes != copy_bytes)
        return wrong(fmt::format("expected state {:#x} of object \"{}\", {} bytes; found state "
                                 "{:#x} of another one, {} bytes",
                                 swapped.file, swapped.name, copy_bytes, h.number, h.copy_bytes));
    const bool packed = h.packing[0] != 0;
    if (packed && (packing_ == nullptr || packing_name_of(*packing_) != h.packing))
        return refusal(name, errc::bad_argument,
                       fmt::format("expected swap_options::packing to be {}, found {}",
                                   h.packing.data(),
                                   packing_ == nullptr ? "none" : packing_->name()));
    const auto stored_piece = std::make_unique<std::byte[]>(packed ? piece_bytes : 0);
    std::uint64_t from = sizeof h;
    for (std::uint64_t at = 0; at < copy_bytes; at += piece_bytes) {
        const std::uint64_t bytes = std::min(piece_bytes, copy_bytes - at);
        std::uint64_t stored = 0;
        if (status s = file->read_at(from, &stored, sizeof stored); !s.ok()) return s;
        from += sizeof stored;
        if (stored == 0 || stored > bytes || (stored < bytes && !packed) || *size < from ||
            *size - from < stored)
            return wrong(fmt::format(
                "the piece of {} bytes at offset {:#x}: expected it stored in no more, found {}",
                bytes, from - sizeof stored, stored));
        void* const to = stored == bytes ? copy + at : stored_piece.get();
        if (status s = file->read_at(from, to, stored); !s.ok()) return s;
        if (stored < bytes && !packing_->unpack(copy + at, bytes, to, stored))
            return wrong(fmt::format(
                "the piece at offset {:#x}: expected bytes that can be unpacked, found others",
                from));
        from += stored;
    }
    if (copy_check(swapped, copy, copy_bytes) != swapped.copy_checks[0]) // upholds (2)
        return wrong("its object: expected a checksum that holds, found another");
    return {};
}

bool swap_folder::has(const object_head& of) const {
    struct stat about{};
    return ::lstat(name_of(of, of.file).c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
           about.st_size > static_cast<off_t>(sizeof(file_head));
}

void swap_folder::remove(const object_head& of, std::uint64_t number) const noexcept {
    try {
        ::unlink(name_of(of, number).c_str());
    } catch (const std::bad_alloc&) {
        return; // it stays, of no use to anybody
    }
}

} // namespace hf::simpo
