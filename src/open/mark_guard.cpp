// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/environment.hpp>
#include <base/page.hpp>
#include <base/symbols.hpp>
#include <open/mark_guard.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace hf::mark_guard {

namespace detail {
constinit std::atomic<bool> on{false};
}

namespace {

constinit std::atomic<store_of (*)(const void*) noexcept> whose_here{nullptr};
struct sigaction before{}, before_step{};
/// The library's stores outside of sections since one ended. Behind so many the pool stays writable
/// until the next one ends: containers that log nothing store a lot.
[[maybe_unused]] constexpr unsigned steps_max = 200; // where stores are made alone: x86-64
constinit std::atomic<unsigned> steps{0};
/// Where the library's store, which is being made alone, leads to; null: none is.
constinit thread_local pool::impl* stepping = nullptr;

void set_protection(pool::impl& pool, int protection) noexcept {
    if (::mprotect(pool.file->base(), pool.file->size_bytes(), protection) != 0)
        fatal("%s: guard_marks cannot change the protection of the pool: %s",
              pool.file->path().c_str(), ::strerror(errno));
}

bool is_guarded(const pool::impl& pool) noexcept {
    return !pool.file->read_only() && !pool.file->in_memory() && !pool.file->is_parents();
}

void make_read_only(pool::impl& pool) noexcept {
    pool.guarded.pages.store(0, std::memory_order_relaxed);
    pool.guarded.writable.store(false, std::memory_order_relaxed);
    set_protection(pool, PROT_READ);
}
/// Where two threads change the protection, the later one wins: if the pool is read-only in truth,
/// a store makes it writable.
void make_writable(pool::impl& pool) noexcept {
    set_protection(pool, PROT_READ | PROT_WRITE);
    pool.guarded.writable.store(true, std::memory_order_relaxed);
}

/// Many of them would be many mappings.
void make_page_writable(pool::impl& pool, const void* address) noexcept {
    constexpr unsigned pages_max = 64;
    const auto page = page_of(address);
    if (pool.guarded.pages.fetch_add(1, std::memory_order_relaxed) >= pages_max ||
        ::mprotect(reinterpret_cast<void*>(page), page_bytes(), PROT_READ | PROT_WRITE) != 0)
        make_writable(pool);
}

std::int64_t now_ms() noexcept {
    timespec now{}; // coarse: it is asked behind each section
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// Upholds (1).
bool is_due(state& of) noexcept {
    const std::int64_t now = now_ms();
    if (of.sections.load(std::memory_order_relaxed) < each_of_first)
        of.sections.fetch_add(1, std::memory_order_relaxed);
    else if (now - of.closed_ms.load(std::memory_order_relaxed) < pause_ms) return false;
    of.closed_ms.store(now, std::memory_order_relaxed);
    return true;
}

bool is_store([[maybe_unused]] const ucontext_t& at) noexcept {
#if defined(__x86_64__)
    constexpr greg_t write = 2;
    return (at.uc_mcontext.gregs[REG_ERR] & write) != 0;
#else
    return true;
#endif
}

std::uintptr_t address_of_fault(const ucontext_t& at) noexcept {
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(at.uc_mcontext.gregs[REG_RIP]);
#else
    return at.uc_mcontext.pc;
#endif
}

/// The calls that led to a store, innermost first: functions, and what is inlined in them.
struct way {
    std::vector<std::string> calls;
    std::size_t in_first = 0; // of the innermost function about which something is known
};

way way_to(std::uintptr_t store) {
    std::array<void*, 24> frames{};
    const auto count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    const auto end = frames.begin() + count;
    auto next = std::find(frames.begin(), end, reinterpret_cast<void*>(store));
    way found;
    constexpr std::size_t calls_max = 4;
    // A place is where a call returns to.
    for (const void* at = reinterpret_cast<const void*>(store + 1);; at = *next) {
        auto more = calls_at({{at}});
        std::erase_if(more, [](const std::string& call) { // the C library's
            return call.starts_with("__");
        });
        found.calls.insert(found.calls.end(), more.begin(), more.end());
        if (found.in_first == 0) found.in_first = more.size();
        if (found.calls.size() >= calls_max || next == end || ++next == end) return found;
    }
}

/// Whether the function in "function at file:line" is the library's. What is inlined may have no
/// namespace.
bool is_ours(std::string_view call) noexcept {
    const std::string_view name = call.substr(0, call.find_first_of("<( "));
    // A template's name comes behind its result.
    return name.starts_with("hf::") || name.starts_with("hf_") ||
           call.substr(name.size()).starts_with(" hf::") ||
           call.find("include/holdfast/") != call.npos;
}

void report(const pool::impl& pool, const void* address, const std::vector<std::string>& calls,
            store_of whose) {
    std::string by;
    for (const std::string& call : calls) by += (by.empty() ? "" : ", called by ") + call;
    if (whose == store_of::section_untold)
        fatal("%s: a store to the pool that its section knows nothing of, at byte %llu, by %s. A "
              "crash would keep a part of what belongs together. Expected: HF_PURE marks functions "
              "that store nothing; others are marked HF_TXFUNC or HF_SECTION where they are "
              "declared, and compiled with the plugin. The store has not been made",
              pool.file->path().c_str(), static_cast<unsigned long long>(pool.offset_of(address)),
              by.c_str());
    fatal(
        "%s: a store to the pool outside of a section, at byte %llu, by %s. A crash would keep "
        "a part of what belongs together. Expected: stores in functions that are marked HF_TXFUNC, "
        "or in hf::tx. The store has not been made",
        pool.file->path().c_str(), static_cast<unsigned long long>(pool.offset_of(address)),
        by.c_str());
}

void pass_on(const struct sigaction& to, int signal, siginfo_t* about, void* context) {
    if ((to.sa_flags & SA_SIGINFO) != 0) return to.sa_sigaction(signal, about, context);
    if (to.sa_handler != SIG_DFL && to.sa_handler != SIG_IGN) return to.sa_handler(signal);
    ::signal(signal, SIG_DFL); // an access is repeated, and kills
    if (signal != SIGSEGV || about->si_code <= 0) ::raise(signal);
}

/// Whether the processor stops behind the next instruction.
void step([[maybe_unused]] ucontext_t& at, [[maybe_unused]] bool on) noexcept {
#if defined(__x86_64__)
    constexpr greg_t trap = 0x100;
    greg_t& flags = at.uc_mcontext.gregs[REG_EFL];
    flags = on ? flags | trap : flags & ~trap;
#endif
}

void on_step(int signal, siginfo_t* about, void* context) {
    pool::impl* const pool = std::exchange(stepping, nullptr);
    if (pool == nullptr) return pass_on(before_step, signal, about, context);
    step(*static_cast<ucontext_t*>(context), false);
    set_protection(*pool, PROT_READ);
}

void on_fault(int signal, siginfo_t* about, void* context) {
    const int error = errno;
    auto& at = *static_cast<ucontext_t*>(context);
    pool::impl* const pool =
        about->si_code == SEGV_ACCERR && is_store(at) ? registry::pool_of(about->si_addr) : nullptr;
    if (pool == nullptr) return pass_on(before, signal, about, context);
    const auto asks = whose_here.load(std::memory_order_relaxed);
    const store_of whose = asks == nullptr ? store_of::nobody : asks(about->si_addr);
    if (whose == store_of::nobody || whose == store_of::section_untold) {
        static std::mutex one_at_a_time;
        const std::scoped_lock held{one_at_a_time};
        const way by = way_to(address_of_fault(at));
        if (by.in_first > 0 &&
            std::none_of(by.calls.begin(), by.calls.begin() + by.in_first, is_ours))
            report(*pool, about->si_addr, by.calls, whose);
#if defined(__x86_64__)
        if (whose == store_of::nobody && ++steps <= steps_max) {
            stepping = pool;
            step(at, true);
        }
#endif
    }
    if (stepping != nullptr) set_protection(*pool, PROT_READ | PROT_WRITE); // until on_step()
    else if (whose == store_of::section_as_told) make_page_writable(*pool, about->si_addr);
    else make_writable(*pool);
    errno = error;
}

bool asked_by_environment() noexcept {
    static constinit environment_switch asked("HOLDFAST_GUARD");
    return asked.is_on();
}

} // namespace

void ask(store_of (*whose)(const void*) noexcept) noexcept { whose_here = whose; }

void start(const expert_options& options, pool::impl& pool) {
    if (!is_on()) {
        if (!options.guard_marks && !asked_by_environment()) return;
        struct sigaction action{};
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
        action.sa_sigaction = on_fault;
        static const bool once = [&] {
            struct sigaction stepped = action;
            stepped.sa_sigaction = on_step;
            return ::sigaction(SIGTRAP, &stepped, &before_step) == 0 &&
                   ::sigaction(SIGSEGV, &action, &before) == 0;
        }();
        detail::on = once;
    }
    close(pool);
}

void close(pool::impl& pool) noexcept {
    if (!is_on() || !is_guarded(pool) || !is_due(pool.guarded)) return;
    steps = 0;
    make_read_only(pool);
}

void open(pool::impl& pool) noexcept {
    if (!pool.guarded.writable.load(std::memory_order_relaxed)) make_writable(pool);
}

} // namespace hf::mark_guard
