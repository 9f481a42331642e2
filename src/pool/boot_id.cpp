// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/boot_id.hpp>
#include <pool/file_checks.hpp>
#include <pool/restarted.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace hf {
namespace {

/// What stands for a boot identifier where there is none to read: when the machine was started.
std::string boot_time() {
    timespec now{}, up{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    ::clock_gettime(CLOCK_BOOTTIME, &up);
    return fmt::format("{}{}", boot_time_prefix, now.tv_sec - up.tv_sec);
}

/// 0, or the error. A kernel that has none is no error.
int read_boot_id(std::string& id) {
    char text[36];
    std::size_t done = 0;
    const int fd =
        restarted([] { return ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR) return errno;
    ssize_t n = fd < 0 ? 0 : 1;
    for (; n > 0 && done < sizeof text; done += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
        n = restarted([&] { return ::read(fd, text + done, sizeof text - done); });
    const int failed = n < 0 ? errno : 0;
    if (fd >= 0) ::close(fd);
    if (failed == 0) id = done == sizeof text ? std::string(text, done) : boot_time();
    return failed;
}

} // namespace

result<std::string_view> kernel_boot_id(const std::string& path) {
    static std::atomic<const std::string*>
        known; // never freed: pools may outlive static destructors
    if (known.load() == nullptr) {
        auto id = std::make_unique<std::string>();
        // A passing lack of descriptors must not be remembered, nor stored as another boot.
        if (const int failed = read_boot_id(*id); failed != 0)
            return refusal(
                path, errc::io_error,
                fmt::format("cannot read the boot identifier: {}", std::strerror(failed)));
        const std::string* none = nullptr;
        if (known.compare_exchange_strong(none, id.get())) (void)id.release();
    }
    return std::string_view(*known.load());
}

} // namespace hf
