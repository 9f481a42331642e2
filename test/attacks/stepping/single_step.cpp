// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "single_step.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stepping {
namespace {

// A section of some hundred stores takes some ten thousand instructions.
constexpr std::uint64_t instructions_max = 20'000'000;

/// Shared with the child.
struct progress {
    std::atomic<unsigned> acknowledged{0};
    std::atomic<bool> done{false};
};

/// A shared mapping, unmapped at the end.
template <class T> class shared {
public:
    shared(int fd, std::size_t bytes, int protection, int flags)
        : bytes_(bytes), at_(::mmap(nullptr, bytes, protection, MAP_SHARED | flags, fd, 0)) {}
    ~shared() {
        if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
    }
    shared(const shared&) = delete;
    shared& operator=(const shared&) = delete;
    bool failed() const noexcept { return at_ == MAP_FAILED; }
    T* get() const noexcept { return static_cast<T*>(at_); }

private:
    std::size_t bytes_;
    void* at_;
};

[[noreturn]] void be_stepped(progress& told, const std::function<void()>& prepare, calls wanted,
                             const std::function<void()>& work) {
    prepare();
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    for (unsigned i = 0; i < wanted.all; ++i) {
        if (i == wanted.at_full_speed) ::raise(SIGSTOP); // the parent takes over here
        work();
        told.acknowledged.store(i + 1, std::memory_order_relaxed);
    }
    told.done.store(true, std::memory_order_relaxed);
    for (;;) ::pause(); // to be killed: nothing is closed
}

/// Appends what differs between the file and 'last', which it brings up to date.
void compare(const std::byte* now, image& last, recording& into, unsigned acknowledged) {
    if (std::memcmp(now, last.data(), last.size()) == 0) return;
    moment& m = into.moments.emplace_back(into.instructions, acknowledged);
    for (std::size_t at = 0; at < last.size(); at += line_bytes) {
        if (std::memcmp(now + at, last.data() + at, line_bytes) == 0) continue;
        std::memcpy(last.data() + at, now + at, line_bytes);
        std::memcpy(m.lines.emplace_back(at).bytes.data(), now + at, line_bytes);
    }
}

/// Steps a stopped child to the end of its work.
void step(pid_t child, const progress& told, const std::byte* now, recording& into) {
    image last = into.start;
    int pass = 0; // a signal of the child's own
    while (!told.done.load(std::memory_order_relaxed)) {
        int state = 0;
        if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, pass) != 0 ||
            ::waitpid(child, &state, 0) != child || !WIFSTOPPED(state)) {
            into.failure = "the child ended at instruction " + std::to_string(into.instructions);
            return;
        }
        pass = WSTOPSIG(state) == SIGTRAP ? 0 : WSTOPSIG(state);
        ++into.instructions;
        compare(now, last, into, told.acknowledged.load(std::memory_order_relaxed));
        if (into.instructions == instructions_max) {
            into.failure = "the child did not end in time";
            return;
        }
    }
}

} // namespace

recording record(const std::string& file, const std::function<void()>& prepare, calls wanted,
                 const std::function<void()>& work) {
    recording result;
    const shared<progress> told(-1, sizeof(progress), PROT_READ | PROT_WRITE, MAP_ANONYMOUS);
    new (told.get()) progress;
    const pid_t child = ::fork();
    if (child == 0) be_stepped(*told.get(), prepare, wanted, work);
    int state = 0;
    if (child < 0 || ::waitpid(child, &state, WUNTRACED) != child || !WIFSTOPPED(state)) {
        result.failure = "the child ended before its work began";
        return result;
    }
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (fd >= 0 && ::fstat(fd, &status) == 0) {
        const auto bytes = static_cast<std::size_t>(status.st_size);
        const shared<const std::byte> now(fd, bytes, PROT_READ, 0);
        if (now.failed()) result.failure = "the file cannot be mapped";
        else {
            result.start.assign(now.get(), now.get() + bytes);
            step(child, *told.get(), now.get(), result);
        }
    } else {
        result.failure = "the file cannot be opened";
    }
    if (fd >= 0) ::close(fd);
    ::kill(child, SIGKILL);
    ::waitpid(child, &state, 0);
    return result;
}

void advance(image& of, const moment& to) noexcept {
    for (const moment::line& l : to.lines)
        std::memcpy(of.data() + l.offset, l.bytes.data(), line_bytes);
}

} // namespace stepping
