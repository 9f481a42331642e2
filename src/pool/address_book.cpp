// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/address_book.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_limits.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace hf {
namespace {

constexpr const char* register_name = "addresses";
constexpr const char* next_name = "addresses.new";
constexpr std::uint64_t register_bytes_max = 16ULL << 20; // what lies behind is not read
constexpr unsigned create_wait_ms = 10'000, open_wait_ms = 1'000;
constexpr std::uint64_t lines_between_cleanings = 1024;
constexpr std::uint64_t newest_lines = 64; // their files may still be on the way to their names
constexpr unsigned neighbours_max = 1000;  // that one creation looks at

/// A descriptor that is closed when its scope is left, also without memory.
struct descriptor {
    explicit descriptor(int opened) noexcept : fd(opened) {}
    descriptor(const descriptor&) = delete;
    ~descriptor() {
        if (fd >= 0) ::close(fd);
    }
    const int fd;
};

/// Empty: the user wants no register.
std::string register_folder() {
    if (const char* const given = ::secure_getenv("HOLDFAST_ADDRESSES")) return given;
    return fmt::format("/var/tmp/holdfast-{}", ::geteuid());
}

/// A descriptor of the folder, or -1. What others may write to is not believed.
int open_folder(const std::string& path) noexcept {
    if (path.empty()) return -1;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return -1;
    const int fd = restarted(
        [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
    struct stat about{};
    if (fd < 0 || (::fstat(fd, &about) == 0 && about.st_uid == ::geteuid() &&
                   (about.st_mode & (S_IWGRP | S_IWOTH)) == 0))
        return fd;
    ::close(fd);
    return -1;
}

/// All that can be read, as far as it goes.
std::string text_in(int folder) {
    std::string text;
    const descriptor file(restarted([&] {
        return ::openat(folder, register_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    }));
    struct stat about{};
    if (file.fd < 0 || ::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode)) return text;
    text.resize(std::min(static_cast<std::uint64_t>(about.st_size), register_bytes_max));
    std::size_t have = 0;
    for (ssize_t n = 1; n > 0 && have < text.size(); have += static_cast<std::size_t>(n)) {
        n = restarted([&] {
            return ::pread(file.fd, text.data() + have, text.size() - have,
                           static_cast<off_t>(have));
        });
        if (n < 0) n = 0;
    }
    text.resize(have);
    return text;
}

/// From the root of all directories, by way of no link to a folder.
std::string full_path(const std::string& path) {
    std::error_code nowhere;
    const std::filesystem::path full = std::filesystem::absolute(path, nowhere);
    const auto folder = std::filesystem::canonical(full.parent_path(), nowhere);
    return ((nowhere ? full.parent_path() : folder) / full.filename()).string();
}

/// A path on one line: bytes that would end it, or that a terminal would obey, as %0a.
std::string on_one_line(std::string_view path) {
    std::string text;
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f || c == '%') text += fmt::format("%{:02x}", byte);
        else text += c;
    }
    return text;
}

std::string line_of(const pool_place& place, const std::string& path) {
    return fmt::format("{:x} {:x} {}\n", place.base, place.bytes, on_one_line(path));
}

/// The number in hexadecimal digits in front of a blank; takes both away.
std::optional<std::uint64_t> number_before_blank(std::string_view& line) noexcept {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
    if (failed != std::errc() || end == line.data() + line.size() || *end != ' ') return {};
    line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
    return value;
}

bool can_be(const pool_place& p) noexcept {
    return p.bytes != 0 && p.bytes <= pool_bytes_max && p.base >= base_low &&
           p.base <= base_high - p.bytes && p.base % base_alignment(0) == 0;
}

/// Upholds (3). The path is as it is in the line.
std::optional<std::pair<pool_place, std::string_view>> entry_of(std::string_view line) noexcept {
    const auto base = number_before_blank(line);
    const auto bytes = base ? number_before_blank(line) : std::nullopt;
    if (!bytes || line.empty() || line.front() != '/' || !can_be({*base, *bytes})) return {};
    return std::pair(pool_place{*base, *bytes}, line);
}

bool is_gone(const std::string& line_path) {
    std::string path;
    for (std::size_t i = 0; i < line_path.size(); ++i) {
        unsigned byte = 0;
        const bool coded =
            line_path[i] == '%' && i + 2 < line_path.size() &&
            std::from_chars(&line_path[i + 1], &line_path[i + 3], byte, 16).ec == std::errc();
        path += coded ? static_cast<char>(byte) : line_path[i];
        if (coded) i += 2;
    }
    struct stat about{};
    return ::lstat(path.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/// The place of the pool in a file, if it is one.
std::optional<pool_place> place_in(int folder, const char* name) {
    const int fd = restarted([&] {
        return ::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    });
    if (fd < 0) return {};
    header_bytes_read read;
    struct stat about{};
    const auto fill = [&](std::byte(&page)[sizeof(pool_header)], std::uint64_t at) {
        return restarted([&] { return ::pread(fd, page, sizeof page, static_cast<off_t>(at)); }) ==
               static_cast<ssize_t>(sizeof page);
    };
    const bool is_read = ::fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
                         fill(read.page_a, header_a_offset) && fill(read.page_b, header_b_offset);
    ::close(fd);
    if (!is_read) return {};
    const header_copies copies = judge_copies(read.page_a, read.page_b);
    if (!copies.any_valid()) return {};
    const pool_header& h = copies.chosen();
    const pool_place place{h.base_address, h.max_bytes};
    return can_be(place) ? std::optional(place) : std::nullopt;
}

/// Where 'bytes' fit between pools, as places that are 'alignment' apart.
class gaps {
public:
    gaps(std::vector<pool_place> taken, std::uint64_t bytes, std::uint64_t alignment)
        : alignment_(alignment) {
        std::ranges::sort(taken, {}, &pool_place::base);
        std::uint64_t free_from = base_low;
        for (const pool_place& p : taken) {
            add(free_from, p.base, bytes);
            free_from = std::max(free_from, p.base + p.bytes);
        }
        add(free_from, base_high, bytes);
    }
    std::uint64_t count() const noexcept { return count_; }
    /// Requires: n < count().
    std::uint64_t place(std::uint64_t n) const noexcept {
        HF_ASSERT(n < count_);
        std::size_t i = 0;
        while (n >= all_[i].places) n -= all_[i++].places;
        return all_[i].first + n * alignment_;
    }

private:
    void add(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
        const std::uint64_t first = round_up(from, alignment_);
        if (first > to || to - first < bytes) return;
        all_.push_back({first, (to - first - bytes) / alignment_ + 1});
        count_ += all_.back().places;
    }
    struct gap {
        std::uint64_t first, places;
    };
    std::uint64_t alignment_, count_ = 0;
    std::vector<gap> all_;
};

} // namespace

address_book::address_book(const std::string& path) : address_book(path, create_wait_ms) {
    read();
    if (folder_ >= 0 && lines_ % lines_between_cleanings == lines_between_cleanings - 1)
        forget_removed();
    read_neighbours();
}

address_book::address_book(const std::string& path, unsigned wait_ms) : path_(full_path(path)) {
    lock(wait_ms);
}

address_book::~address_book() {
    if (folder_ < 0) return;
    // Closing is not enough: a child that was made a moment ago has the descriptor, too.
    (void)::flock(folder_, LOCK_UN);
    ::close(folder_);
}

void address_book::lock(unsigned wait_ms) {
    static std::atomic<bool> waited_in_vain; // a process may hang with the lock: one wait is enough
    folder_ = open_folder(register_folder());
    if (folder_ < 0) return;
    if (waited_in_vain) wait_ms = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    while (::flock(folder_, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > until) {
            ::close(folder_);
            folder_ = -1;
            if (wait_ms == create_wait_ms) waited_in_vain = true;
            return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    waited_in_vain = false;
}

/// Upholds (4).
void address_book::read() {
    if (folder_ < 0) return;
    const std::string text = text_in(folder_);
    for (std::string_view rest = text; !rest.empty(); ++lines_) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) return; // cut short
        if (const auto e = entry_of(rest.substr(0, end)))
            known_.insert_or_assign(std::string(e->second), entry{e->first, lines_});
        rest.remove_prefix(end + 1);
    }
}

/// Only names that end like a pool's: a process that opens and closes a file loses the record locks
/// that it has on it, and another file may be its data base.
void address_book::read_neighbours() {
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const std::unique_ptr<DIR, int (*)(DIR*)> each(::opendir(folder.c_str()), ::closedir);
    std::string found;
    unsigned looked = 0;
    while (const dirent* e = each == nullptr ? nullptr : ::readdir(each.get())) {
        if (!std::string_view(e->d_name).ends_with(".hf") ||
            (e->d_type != DT_REG && e->d_type != DT_UNKNOWN))
            continue;
        const std::string full = (std::filesystem::path(folder) / e->d_name).string();
        if (known_.contains(on_one_line(full)) || ++looked > neighbours_max) continue;
        const auto place = place_in(::dirfd(each.get()), e->d_name);
        if (!place) continue;
        known_.insert_or_assign(on_one_line(full), entry{*place, lines_++});
        found += line_of(*place, full);
    }
    append(found);
}

std::string address_book::pool_in(const pool_place& place) const {
    const std::string own = on_one_line(path_); // of a pool that was there before
    for (const auto& [path, e] : known_)
        if (path != own && e.place.overlaps(place)) return path;
    return {};
}

std::uint64_t address_book::candidate(const std::uint8_t (&uuid)[16], std::uint64_t max_bytes,
                                      unsigned n) {
    const auto free_of_pools = [&] {
        std::vector<pool_place> taken;
        for (const auto& [path, e] : known_)
            if (path != on_one_line(path_)) taken.push_back(e.place);
        return gaps(std::move(taken), max_bytes, base_alignment(max_bytes));
    };
    gaps left = free_of_pools();
    if (left.count() == 0 && n == 0) {
        forget_removed();
        left = free_of_pools();
    }
    if (left.count() == 0) left = gaps({}, max_bytes, base_alignment(max_bytes));
    return left.place(checksum(uuid, sizeof uuid, n) % left.count());
}

void address_book::note(const pool_place& place) {
    known_.insert_or_assign(on_one_line(path_), entry{place, lines_++});
    append(line_of(place, path_));
}

/// One write: a kill leaves all of it, or a part that has no end.
void address_book::append(const std::string& lines) const {
    if (folder_ < 0 || lines.empty()) return;
    const descriptor file(restarted([&] {
        return ::openat(folder_, register_name,
                        O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    }));
    struct stat about{};
    if (file.fd < 0 || ::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode) ||
        static_cast<std::uint64_t>(about.st_size) + lines.size() >= file_bytes_allowed())
        return;
    char last = '\n';
    if (about.st_size > 0) (void)!::pread(file.fd, &last, 1, about.st_size - 1);
    const std::string all = last == '\n' ? lines : '\n' + lines;
    (void)!restarted([&] { return ::write(file.fd, all.data(), all.size()); });
}

/// Upholds (3). The newest lines stay: a file that is being made has no name yet.
void address_book::forget_removed() {
    std::vector<std::pair<std::uint64_t, std::string>> stay;
    std::erase_if(known_, [&](const auto& known) {
        const auto& [path, e] = known;
        if (e.line + newest_lines < lines_ && is_gone(path)) return true;
        stay.emplace_back(e.line, fmt::format("{:x} {:x} {}\n", e.place.base, e.place.bytes, path));
        return false;
    });
    if (folder_ < 0) return;
    std::ranges::sort(stay);
    std::string text;
    for (const auto& [line, of] : stay) text += of;
    if (text.size() >= file_bytes_allowed()) return;
    const int fd = restarted([&] {
        return ::openat(folder_, next_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                        0600);
    });
    if (fd < 0) return;
    const bool whole = restarted([&] { return ::write(fd, text.data(), text.size()); }) ==
                       static_cast<ssize_t>(text.size());
    ::close(fd);
    if (whole) (void)::renameat(folder_, next_name, folder_, register_name);
    else (void)::unlinkat(folder_, next_name, 0);
}

void address_book::note_opened(const std::string& path, const pool_place& place) {
    const std::string full = full_path(path), line = line_of(place, full),
                      its_path = fmt::format(" {}\n", on_one_line(full));
    const descriptor folder(open_folder(register_folder()));
    if (folder.fd < 0) return;
    const std::string text = text_in(folder.fd);
    const std::size_t at = text.rfind(its_path); // the last line of the path
    const std::size_t begin = at == std::string::npos ? 0 : text.rfind('\n', at) + 1;
    if (at != std::string::npos && text.compare(begin, line.size(), line) == 0) return;
    address_book(path, open_wait_ms).note(place);
}

} // namespace hf
