// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/boot_id.hpp>
#include <pool/file_checks.hpp>
#include <pool/header.hpp>
#include <pool/restarted.hpp>

#include <fmt/format.h>
#include <linux/magic.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/vfs.h>
#include <unistd.h>

namespace hf {
namespace {

/// Before this date, 2026-01-01, the clock is not set: this program is younger.
constexpr std::int64_t clock_set_s_min = 1'767'225'600;

/// Reads a file of /proc from its start: how many bytes, or -1.
ssize_t read_text(int fd, char* to, std::size_t room) noexcept {
    std::size_t done = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    for (; n > 0 && done < room; done += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
        n = restarted([&] { return ::read(fd, to + done, room - done); });
    return n < 0 ? -1 : static_cast<ssize_t>(done);
}

/// 0, or the error. A kernel without an identifier is no error.
int read_boot_id(boot_identifier& out) {
    char text[36];
    const int fd =
        restarted([] { return ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
    struct statfs system{};
    const ssize_t n = read_text(fd, text, sizeof text);
    const int failed = n < 0 ? errno : 0;
    // Otherwise something is mounted over it (systemd-nspawn, LXC).
    out.kernels_own = ::fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
    ::close(fd);
    if (n == sizeof text) out.id.assign(text, sizeof text);
    return failed;
}

/// A time namespace shifts CLOCK_BOOTTIME: a container that is moved to another machine keeps it
/// going.
bool clocks_are_shifted() noexcept {
    const int fd =
        restarted([] { return ::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC); });
    if (fd < 0) return errno != ENOENT; // a kernel without them
    char text[256];
    const ssize_t n = read_text(fd, text, sizeof text);
    ::close(fd);
    const std::string_view offsets(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return n <= 0 || offsets.find_first_of("123456789") != offsets.npos;
}

std::int64_t now_ns(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

} // namespace

result<const boot_identifier*> boot_here(const std::string& path) {
    static std::atomic<const boot_identifier*>
        known; // never freed: pools may outlive static destructors
    if (known.load() == nullptr) {
        auto found = std::make_unique<boot_identifier>();
        // A passing lack of descriptors must not be remembered, nor stored as another boot.
        if (const int failed = read_boot_id(*found); failed != 0)
            return refusal(
                path, errc::io_error,
                fmt::format("cannot read the boot identifier: {}", std::strerror(failed)));
        const boot_identifier* none = nullptr;
        if (known.compare_exchange_strong(none, found.get())) (void)found.release();
    }
    return known.load();
}

std::uint64_t machine_start_ns() noexcept {
    constexpr std::int64_t apart_ns_max = start_differs_ns_max / 4;
    constexpr int tries_max = 1000; // of a thread that is stopped between two clocks
    if (clocks_are_shifted()) return 0;
    for (int tries = 0; tries < tries_max; ++tries) {
        const std::int64_t before = now_ns(CLOCK_BOOTTIME);
        const std::int64_t since_1970 = now_ns(CLOCK_REALTIME);
        const std::int64_t after = now_ns(CLOCK_BOOTTIME);
        if (after - before > apart_ns_max) continue;
        const std::int64_t start = since_1970 - before - (after - before) / 2;
        return start < clock_set_s_min * 1'000'000'000 ? 0 : static_cast<std::uint64_t>(start);
    }
    return 0;
}

void note_boot(pool_header& h, const boot_identifier& here) noexcept {
    HF_ASSERT(here.id.size() < sizeof h.boot_id);
    std::memset(h.boot_id, 0, sizeof h.boot_id);
    std::memcpy(h.boot_id, here.id.data(), here.id.size());
    const bool proof = !here.id.empty() && here.kernels_own;
    h.machine_start_ns = proof ? 0 : machine_start_ns();
}

bool same_boot(const pool_header& h, const boot_identifier& here) noexcept {
    return same_boot(h, here, h.machine_start_ns == 0 ? 0 : machine_start_ns());
}

bool same_boot(const pool_header& h, const boot_identifier& here, std::uint64_t start_ns) noexcept {
    if (!here.id.empty() && here.id == h.boot_id) return true;
    const std::uint64_t then = h.machine_start_ns; // 0: the identifier was proof
    return then != 0 && start_ns != 0 &&
           std::max(then, start_ns) - std::min(then, start_ns) <= start_differs_ns_max;
}

} // namespace hf
