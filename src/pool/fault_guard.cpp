// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <pool/fault_guard.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::fault_guard {
namespace {

constexpr std::size_t watched_max = 64;
constexpr std::size_t stack_bytes = 64 << 10;
constexpr std::uint32_t grace_ms_max = 1000;
// Ignored by default, so a late one does no harm.
constexpr int timer_signal = SIGURG;

/// The place of a fault in a watched file, and the present length of that file.
struct place {
    const watched_file* file = nullptr;
    std::uint64_t offset = 0, expected = 0, found = 0;
    bool cut() const noexcept { return found < expected; }
};

enum class cause : std::uint8_t { none, signal, fatal, time };

struct frame {
    sigjmp_buf back;
    frame* outer = nullptr;
    against what = against::cut_files;
    std::uint32_t ms_max = 0;
    std::uint32_t tick_ms = 0;  // the timer's period
    std::uint32_t quiet_ms = 0; // without progress
    bool (*progressed)(void*) noexcept = nullptr;
    void (*at_expiry)(void*) noexcept = nullptr;
    void* context = nullptr;
    timer_t timer{};
    bool timing = false;
    volatile sig_atomic_t expired = 0;
    errc fatal_code = errc::corrupt;
    volatile cause why = cause::none;
    int signal = 0;
    const void* address = nullptr;
    place where;
    char text[1024];
};
constinit thread_local frame* innermost __attribute__((tls_model("initial-exec"))) = nullptr;

std::array<std::atomic<const watched_file*>, watched_max> watched;
std::array<const watched_file*, watched_max> parents{}; // watched when this process was forked

place place_of(const void* address) noexcept {
    for (const auto& slot : watched) {
        const watched_file* file = slot.load(std::memory_order_acquire);
        if (file == nullptr) continue;
        const auto offset =
            static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - file->base);
        const std::uint64_t expected = file->size_bytes->load(std::memory_order_acquire);
        if (offset >= expected) continue;
        struct stat about{};
        if (::fstat(file->descriptor, &about) != 0) return {file, offset, expected, expected};
        return {file, offset, expected, static_cast<std::uint64_t>(about.st_size)};
    }
    return {};
}

template <class Out> Out describe(Out to, const place& at) {
    if (at.cut())
        return fmt::format_to(to,
                              "the file was cut while the pool was open: expected {} bytes, found "
                              "{} (access at offset {:#x})",
                              at.expected, at.found, at.offset);
    return fmt::format_to(to,
                          "the file system cannot supply the page at offset {:#x}: an "
                          "input/output error, or no room on the disk",
                          at.offset);
}

const watched_file* parents_around(const void* address) noexcept {
    for (const watched_file* file : parents)
        if (file != nullptr && static_cast<std::uint64_t>(static_cast<const std::byte*>(address) -
                                                          file->base) < file->size_bytes->load())
            return file;
    return nullptr;
}

/// One line on stderr, put together without allocating.
template <class... Parts>
void write_line(fmt::format_string<const Parts&...> format, const Parts&... parts) noexcept {
    char line[1024];
    char* const end = fmt::format_to_n(line, sizeof line, format, parts...).out;
    (void)!::write(STDERR_FILENO, line, std::min<std::size_t>(end - line, sizeof line));
}

void explain_fork(const watched_file& file) noexcept {
    write_line("holdfast: {}: this is a child of the process that has opened the pool, and has no "
               "part in it: it must open a pool of its own\n",
               file.path);
}

struct closed_pool {
    std::uintptr_t base = 0;
    std::atomic<std::uintptr_t> bytes{0}; // 0: what stands beside it is not whole
    char path[256];
};
std::array<closed_pool, watched_max> closed; // the oldest is forgotten first
std::atomic<std::size_t> closed_count{0};

const closed_pool* closed_around(std::uintptr_t address) noexcept {
    const std::size_t count = closed_count.load(std::memory_order_acquire);
    for (std::size_t i = count; i-- > 0 && count - i <= closed.size();) { // the newest first
        const closed_pool& each = closed[i % closed.size()];
        const std::uintptr_t bytes = each.bytes.load(std::memory_order_acquire);
        if (address - each.base < bytes) return &each;
    }
    return nullptr;
}

constinit thread_local no_block not_given __attribute__((tls_model("initial-exec")));

/// Explains an access to memory that is not mapped, where it follows from a mistake in the use of a
/// pool.
void explain_unmapped(const void* at) noexcept {
    constexpr std::uint64_t page_bytes = 4096;
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    if (const no_block& asked = not_given;
        address < std::max(page_bytes, asked.bytes) && asked.still != nullptr && asked.still(asked))
        write_line("holdfast: {}: pool_full: section {} ({}) uses null as a block: it asked for {} "
                   "bytes, and the pool has no room for them. Expected: a look at what hf::make or "
                   "hf_alloc returns before it is used. The section has not committed\n",
                   asked.path, readable_name(asked.function), asked.where, asked.bytes);
    else if (const closed_pool* pool = closed_around(address))
        write_line(
            "holdfast: {}: an access at byte {} of this pool, which was closed: no address in "
            "it is good any more. Expected: the hf::pool lives as long as anything uses its "
            "objects; after the next open a program begins at the root\n",
            pool->path, address - pool->base);
}

/// One line on stderr, put together without allocating.
void explain(const place& at) noexcept {
    char line[1024];
    char* end = fmt::format_to_n(line, 400, "holdfast: {}: {}: ", at.file->path,
                                 name(at.cut() ? errc::truncated : errc::io_error))
                    .out;
    end = describe(end, at);
    *end++ = '\n';
    (void)!::write(STDERR_FILENO, line, static_cast<std::size_t>(end - line));
}

// One place for each signal we may handle. 'ours': the handler is installed, or buried under one
// that came later (1).
struct handled {
    int signal;
    void (*handler)(int, siginfo_t*, void*);
    unsigned users = 0;
    bool ours = false;
    struct sigaction before{};
};
std::mutex handled_lock;

void on_fault(int signal, siginfo_t* about, void* context);
void on_timer(int signal, siginfo_t* about, void* context);
std::array<handled, 6> table{handled{SIGBUS, on_fault},       handled{SIGSEGV, on_fault},
                             handled{SIGFPE, on_fault},       handled{SIGILL, on_fault},
                             handled{timer_signal, on_timer}, handled{SIGABRT, on_fault}};
constexpr std::size_t bus_only = 1; // places for a run that does not ask for everything
constexpr std::size_t bus_and_segv = 2;

/// Whether somebody has removed all handlers since.
bool is_default(int signal) noexcept {
    struct sigaction now{};
    return ::sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
           now.sa_handler == SIG_DFL;
}

/// Requires: handled_lock held.
void acquire_held(std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        handled& h = table[i];
        ++h.users;
        if (h.ours && !is_default(h.signal)) continue;
        struct sigaction action{};
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
        action.sa_sigaction = h.handler;
        h.ours = ::sigaction(h.signal, nullptr, &h.before) == 0 &&
                 ::sigaction(h.signal, &action, nullptr) == 0;
    }
}

void acquire(std::size_t count) {
    const std::scoped_lock held{handled_lock};
    acquire_held(count);
}

void release(std::size_t count) noexcept {
    const std::scoped_lock held{handled_lock};
    for (std::size_t i = 0; i < count; ++i) {
        handled& h = table[i];
        HF_ASSERT_SLOW(h.users > 0);
        if (--h.users > 0 || !h.ours) continue;
        struct sigaction now{};
        const bool on_top = ::sigaction(h.signal, nullptr, &now) == 0 &&
                            (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == h.handler;
        if (on_top) h.ours = ::sigaction(h.signal, &h.before, nullptr) != 0;
    }
}

/// Gives a signal to the handler that was there before ours.
void pass_on(int signal, siginfo_t* about, void* context) {
    handled& h = *std::ranges::find(table, signal, &handled::signal);
    const struct sigaction to = h.before;
    const bool is_sent = about->si_code <= 0; // by somebody: there is no access
    const bool takes_more = (to.sa_flags & SA_SIGINFO) != 0;
    if (takes_more ||
        (to.sa_handler != SIG_DFL && to.sa_handler != SIG_IGN)) { // as the system would
        if ((to.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
            h.before = {};
            h.before.sa_handler = SIG_DFL;
        }
        sigset_t masked = to.sa_mask, own;
        if ((to.sa_flags & SA_NODEFER) == 0) ::sigaddset(&masked, signal);
        ::pthread_sigmask(SIG_BLOCK, &masked, &own);
        takes_more ? to.sa_sigaction(signal, about, context) : to.sa_handler(signal);
        ::pthread_sigmask(SIG_SETMASK, &own, nullptr);
        return;
    }
    if (signal == timer_signal || (to.sa_handler == SIG_IGN && is_sent)) return;
    // Returning repeats the access, which then kills the process at the place of the fault.
    ::signal(signal, SIG_DFL);
    if (is_sent) ::raise(signal);
}

void on_fault(int signal, siginfo_t* about, void* context) {
    const int error = errno;
    const bool by_access = about->si_code > 0;
    // glibc's abort() holds nothing while it raises.
    const bool aborts =
        signal == SIGABRT && about->si_code == SI_TKILL && about->si_pid == ::getpid();
    const place at = signal == SIGBUS && by_access ? place_of(about->si_addr) : place{};
    if (frame* f = innermost; f != nullptr && (by_access || aborts) &&
                              (f->what == against::everything || at.file != nullptr)) {
        f->why = cause::signal;
        f->signal = signal;
        f->address = aborts ? nullptr : about->si_addr;
        f->where = at;
        ::siglongjmp(f->back, 1);
    }
    if (at.file != nullptr) explain(at);
    else if (const watched_file* f = by_access ? parents_around(about->si_addr) : nullptr)
        explain_fork(*f);
    else if (signal == SIGSEGV && about->si_code == SEGV_MAPERR) explain_unmapped(about->si_addr);
    errno = error;
    pass_on(signal, about, context);
}

/// Upholds (3).
void on_timer(int signal, siginfo_t* about, void* context) {
    frame* f = innermost;
    if (f == nullptr || !f->timing || about->si_code != SI_TIMER || about->si_value.sival_ptr != f)
        return pass_on(signal, about, context);
    if (f->expired == 0) {
        f->quiet_ms = f->progressed(f->context) ? 0 : f->quiet_ms + f->tick_ms;
        if (f->quiet_ms < f->ms_max) return;
        f->expired = 1;
        f->at_expiry(f->context);
        return;
    }
    f->why = cause::time;
    ::siglongjmp(f->back, 1);
}

void on_fatal(const char* message) {
    frame* f = innermost;
    if (f == nullptr || f->what != against::everything) return; // the process ends
    f->why = cause::fatal;
    std::strncpy(f->text, message, sizeof f->text - 1);
    ::siglongjmp(f->back, 1);
}

/// Needed besides handlers by a run that guards against everything: a stack for the handler,
/// because the fault may be a full stack, and fatal()'s messages.
class surroundings {
public:
    /// 'stack': of stack_bytes; null: there was no memory for one.
    explicit surroundings(std::byte* stack) noexcept {
        stack_t mine{};
        mine.ss_sp = stack;
        mine.ss_size = stack_bytes;
        own_stack_ = stack != nullptr && ::sigaltstack(&mine, &before_) == 0;
        set_thread_fatal_handler(on_fatal);
    }
    ~surroundings() {
        set_thread_fatal_handler(nullptr);
        if (own_stack_) ::sigaltstack(&before_, nullptr);
    }
    surroundings(const surroundings&) = delete;
    surroundings& operator=(const surroundings&) = delete;

private:
    stack_t before_{};
    bool own_stack_ = false;
};

ending ending_of(const frame& f) {
    switch (f.why) {
    case cause::none: return {};
    case cause::fatal: return {true, f.fatal_code, f.text};
    case cause::time:
        return {true, errc::corrupt,
                fmt::format("expected it to reach something new within {} ms, found nothing; if it "
                            "is no endless loop, raise recovery_ms_max of the engine's options",
                            f.ms_max)};
    case cause::signal: break;
    }
    if (f.signal == SIGABRT)
        return {true, errc::corrupt,
                "expected it to return, found SIGABRT: an assertion failed, or something calls "
                "abort()"};
    if (f.where.file != nullptr) {
        ending out{true, f.where.cut() ? errc::truncated : errc::io_error, {}};
        describe(std::back_inserter(out.why), f.where);
        return out;
    }
    return {true, errc::corrupt, fmt::format("SIG{} at {}", ::sigabbrev_np(f.signal), f.address)};
}

void stop(frame& f) noexcept {
    if (f.timing) ::timer_delete(f.timer);
    f.timing = false;
}

/// The place that siglongjmp returns to. A function of its own: nothing in it changes on the way.
__attribute__((noinline)) void enter(frame& f, const std::function<void()>& body) {
    f.outer = innermost;
    innermost = &f;
    if (sigsetjmp(f.back, 0) == 0) body();
}

} // namespace

watched_file::watched_file(const std::byte* at, const std::atomic<std::uint64_t>& bytes, int fd,
                           const char* name)
    : base(at), size_bytes(&bytes), descriptor(fd), path(name) {
    acquire(bus_and_segv);
    for (auto& slot : watched) {
        const watched_file* none = nullptr;
        if (slot.compare_exchange_strong(none, this, std::memory_order_acq_rel)) return;
    }
}

watched_file::~watched_file() {
    for (auto& slot : watched) {
        const watched_file* mine = this;
        if (slot.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) break;
    }
    release(bus_and_segv);
}

ending run(against what, const std::function<void()>& body) {
    frame f;
    f.what = what;
    f.text[0] = f.text[sizeof f.text - 1] = '\0';
    const bool everything = what == against::everything;
    const std::size_t signals = everything ? table.size() : bus_only;
    const std::unique_ptr<std::byte[]> stack(everything ? new (std::nothrow) std::byte[stack_bytes]
                                                        : nullptr);
    acquire(signals);
    {
        std::optional<surroundings> around;
        if (everything) around.emplace(stack.get());
        enter(f, body);
        HF_ASSERT_SLOW(innermost == &f); // a jump leads to the innermost run
        innermost = f.outer;
        stop(f);
    }
    release(signals);
    return ending_of(f);
}

clock::clock(std::uint32_t ms_max, bool (*progressed)(void*) noexcept,
             void (*at_expiry)(void*) noexcept, void* context) {
    frame* f = innermost;
    if (f == nullptr || f->what != against::everything || ms_max == 0) return;
    HF_ASSERT_SLOW(!f->timing);
    HF_ASSERT_SLOW(progressed != nullptr);
    HF_ASSERT_SLOW(at_expiry != nullptr);
    f->ms_max = ms_max;
    f->tick_ms = std::min(ms_max, grace_ms_max);
    f->quiet_ms = 0;
    f->progressed = progressed;
    f->at_expiry = at_expiry;
    f->context = context;
    f->expired = 0;
    struct sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal;
    event.sigev_value.sival_ptr = f;
    event._sigev_un._tid = ::gettid();
    f->timing = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &f->timer) == 0;
    const timespec tick{f->tick_ms / 1000, static_cast<long>(f->tick_ms % 1000) * 1'000'000};
    const itimerspec when{.it_interval = tick, .it_value = tick};
    if (f->timing) ::timer_settime(f->timer, 0, &when, nullptr);
}

clock::~clock() {
    if (frame* f = innermost) stop(*f);
}

void expired() noexcept {
    frame* f = innermost;
    HF_ASSERT(f != nullptr);
    HF_ASSERT(f->expired != 0);
    f->why = cause::time;
    ::siglongjmp(f->back, 1);
}

void note_closed(const std::byte* base, std::uint64_t bytes, const char* path) noexcept {
    const std::scoped_lock held{handled_lock};
    const std::size_t count = closed_count.load(std::memory_order_relaxed);
    if (count == 0) acquire_held(bus_and_segv); // for good (1)
    closed_pool& to = closed[count % closed.size()];
    to.bytes.store(0, std::memory_order_release);
    to.base = reinterpret_cast<std::uintptr_t>(base);
    std::snprintf(to.path, sizeof to.path, "%s", path);
    to.bytes.store(bytes, std::memory_order_release);
    closed_count.store(count + 1, std::memory_order_release);
}

void note_no_block(const no_block& found) noexcept { not_given = found; }

void hold_table() noexcept { handled_lock.lock(); }
void release_table() noexcept { handled_lock.unlock(); }
void leave_watched_files() noexcept {
    bool any = false;
    auto unused = parents.begin();
    for (auto& slot : watched) {
        const watched_file* file = slot.exchange(nullptr);
        if (file == nullptr) continue;
        unused = std::find(unused, parents.end(), nullptr);
        if (unused != parents.end()) *unused = file;
        any = true;
    }
    if (any) acquire_held(bus_and_segv);
}

void fatal_means(errc code) noexcept {
    if (innermost != nullptr) innermost->fatal_code = code;
}

} // namespace hf::fault_guard
