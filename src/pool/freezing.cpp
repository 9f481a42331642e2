// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/freezing.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf {
namespace {

constexpr std::int64_t stop_ns_max = 1'000'000'000;
constexpr timespec pause_between_looks{0, 20'000};

std::int64_t now_ns() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

/// As the kernel lays it out; readdir would allocate.
struct entry {
    std::uint64_t inode;
    std::int64_t next;
    std::uint16_t bytes;
    std::uint8_t kind;
    char name[];
};

pid_t number_in(const char* text) noexcept {
    pid_t n = 0;
    for (; *text >= '0' && *text <= '9'; ++text) n = n * 10 + (*text - '0');
    return n;
}

/// A path of /proc, without printf, which may allocate.
class proc_path {
public:
    proc_path& operator<<(const char* text) noexcept {
        while (*text != 0 && used_ + 1 < sizeof text_) text_[used_++] = *text++;
        return *this;
    }
    proc_path& operator<<(pid_t number) noexcept {
        char digits[16];
        std::size_t at = sizeof digits;
        digits[--at] = 0;
        for (pid_t left = number; left > 0; left /= 10)
            digits[--at] = static_cast<char>('0' + left % 10);
        return *this << digits + at;
    }
    const char* c_str() const noexcept { return text_; }

private:
    char text_[80] = {};
    std::size_t used_ = 0;
};

/// Whether the thread has ended, and only its entry is left: the kernel refuses it like another
/// user's thread.
bool has_ended(pid_t process, pid_t thread) noexcept {
    proc_path path;
    path << "/proc/" << process << "/task/" << thread << "/stat";
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    char text[256] = {}; // "N (NAME) STATE …"
    const ssize_t n = ::read(file, text, sizeof text - 1);
    ::close(file);
    const char* const name_end = n > 0 ? std::strrchr(text, ')') : nullptr;
    return name_end == nullptr || name_end[1] == 0 || name_end[2] == 'Z' || name_end[2] == 'X';
}

} // namespace

bool frozen_process::knows(pid_t thread) const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
        if (threads_[i].id == thread) return true;
    return false;
}

/// A thread that was not there a moment ago may have been made by one that had not stopped yet.
frozen_process::seized frozen_process::seize_new(pid_t process) noexcept {
    proc_path path;
    path << "/proc/" << process << "/task";
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return seized::nothing_new;
    seized found = seized::nothing_new;
    alignas(entry) char buffer[4096];
    for (long n = 0; (n = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
        for (long at = 0; at < n;) {
            const auto* e = reinterpret_cast<const entry*>(buffer + at);
            at += e->bytes;
            const pid_t id = number_in(e->name);
            if (id == 0 || knows(id)) continue;
            if (count_ == threads_max) {
                found = seized::too_many;
                break;
            }
            if (::ptrace(PTRACE_SEIZE, id, nullptr, nullptr) != 0) {
                if (errno == ESRCH || has_ended(process, id)) continue;
                found = seized::refused;
                break;
            }
            threads_[count_++] = {id, 0, false};
            (void)::ptrace(PTRACE_INTERRUPT, id, nullptr, nullptr);
            found = seized::some;
        }
        if (found == seized::refused || found == seized::too_many) break;
    }
    ::close(folder);
    return found;
}

bool frozen_process::wait_for_all() noexcept {
    const std::int64_t until = now_ns() + stop_ns_max;
    for (std::size_t i = 0; i < count_; ++i) {
        thread& t = threads_[i];
        while (t.id != 0 && !t.stopped) {
            int how = 0;
            const pid_t told = ::waitpid(t.id, &how, __WALL | WNOHANG);
            if (told == t.id && WIFSTOPPED(how)) {
                t.stopped = true;
                // Stopped for the interruption, or with a signal in hand, which is not to be lost.
                if (how >> 16 == 0) t.signal = WSTOPSIG(how);
            } else if (told == t.id || (told < 0 && errno != EINTR)) t.id = 0; // it has ended
            else if (now_ns() > until) return false;
            else ::nanosleep(&pause_between_looks, nullptr);
        }
    }
    return true;
}

frozen_process::outcome frozen_process::freeze(pid_t process) noexcept {
    for (;;) {
        const seized found = seize_new(process);
        if (found == seized::refused || found == seized::too_many) {
            thaw();
            return found == seized::refused ? outcome::refused : outcome::too_many;
        }
        if (!wait_for_all()) {
            thaw();
            return outcome::too_slow;
        }
        if (found == seized::nothing_new) break; // all threads are stopped
    }
    for (std::size_t i = 0; i < count_; ++i)
        if (threads_[i].stopped) return outcome::frozen;
    return outcome::gone;
}

void frozen_process::thaw() noexcept {
    const auto let_go = [](const thread& t) {
        (void)::ptrace(PTRACE_DETACH, t.id, nullptr,
                       reinterpret_cast<void*>(static_cast<std::intptr_t>(t.signal)));
    };
    for (std::size_t i = 0; i < count_; ++i)
        if (threads_[i].id != 0 && threads_[i].stopped) let_go(threads_[i]);
    for (std::size_t i = 0; i < count_;
         ++i) { // a thread that was asked to stop cannot be let go before it has stopped
        thread& t = threads_[i];
        int how = 0;
        if (t.id == 0 || t.stopped || ::waitpid(t.id, &how, __WALL) != t.id || !WIFSTOPPED(how))
            continue;
        if (how >> 16 == 0) t.signal = WSTOPSIG(how);
        let_go(t);
    }
    count_ = 0;
}

} // namespace hf
