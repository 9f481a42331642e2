// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <justdo/engine.hpp>
#include <justdo/inspect.hpp>
#include <justdo/resume.hpp>
#include <pool/fault_guard.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <memory>
#include <mutex>
#include <new>
#include <sched.h>
#include <string>
#include <system_error>
#include <thread>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace hf::justdo {
namespace {

constexpr const char* all_wait = "sections wait for each other's locks for ever";

/// State that all sections which resume together share.
struct common {
    common(const pool::impl& in, std::size_t count) : own(in), running(count), to_own(count) {}

    const own_blocks own;

    std::atomic<std::size_t> running; // sections that have not ended
    std::atomic<std::size_t> to_own;  // that do not have their locks yet: (1)
    std::atomic<std::uint64_t> progress{0};
    std::atomic<std::uint64_t> reached{0}; // lines of the pool that no section had reached before
    std::atomic<bool> failed{false};
    std::mutex lock;
    errc code = errc::ok; // guarded, as is what follows: of the first that was stopped
    std::string why;
    std::uint64_t stuck_at = 0; // guarded: at which 'progress'
    std::size_t stuck = 0;      // so many sections have asked in vain

    /// Whether all of them have asked in vain since 'progress' became 'at', as the caller has.
    /// 'first': the caller reports it for the first time. A section that merely waits for the
    /// processor counts as going on: it may find what it waits for.
    bool nobody_goes_on(std::uint64_t at, bool first) {
        std::scoped_lock held{lock};
        if (at < stuck_at) return false;
        if (at > stuck_at) stuck_at = at, stuck = 0;
        stuck += first ? 1 : 0;
        return stuck == running && progress == at;
    }
    void fail(errc what, std::string text) {
        std::scoped_lock held{lock};
        if (failed.exchange(true)) return;
        code = what;
        why = std::move(text);
    }
};

/// The lines that a section has stored to, roughly: lines that share a bit count as one. A section
/// that only stores to the same lines again has no end.
class lines_seen {
public:
    bool add(std::uint64_t line) noexcept {
        const std::uint64_t at = line % (words * 64);
        const std::uint64_t bit = std::uint64_t{1} << at % 64;
        const bool fresh = (bits_[at / 64] & bit) == 0;
        bits_[at / 64] |= bit;
        return fresh;
    }

private:
    static constexpr std::uint64_t words = 1 << 11; // 8 MiB of lines
    std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(words);
};

/// One section, and its thread.
class runner : public party {
public:
    runner(common& with, thread& section) : with_(with), section_(section) {}

    /// To the section's end, or to where 'failed' is seen.
    void run() {
        current = &section_;
        hf_justdo_steps.words_end = 0; // of a section that a jump has left
        if (setjmp(end_) == 0) {
            section_.own_again(*this);
            --with_.to_own;
            ++with_.progress;
            while (with_.to_own != 0) wait(); // upholds (1)
            section_.resume();
        }
        current = nullptr;
    }
    void progressed(std::uint64_t offset, std::uint64_t bytes) noexcept override {
        ++with_.progress;
        if (with_.own.meet(offset, bytes, section_.offset()))
            fatal(
                "a section of engine justdo stores to the engine's own %llu bytes at offset %#llx",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset));
        if (bytes != 0 && lines_.add(offset / line_bytes)) ++with_.reached;
        if (expired_) fault_guard::expired();
    }
    [[noreturn]] void finished() noexcept override {
        HF_ASSERT_SLOW(!section_.open());
        std::longjmp(end_, 1);
    }

    thread& section() const noexcept { return section_; }

protected:
    /// Leaves the section unfinished.
    [[noreturn]] void give_up() noexcept { std::longjmp(end_, 1); }

    common& with_;
    thread& section_;
    volatile bool expired_ = false;

private:
    lines_seen lines_; // where its steps have been
    std::jmp_buf end_;
};

/// On a thread of its own.
class threaded final : public runner {
public:
    using runner::runner;

    void run_guarded(const pool::impl& in) noexcept try {
        struct {
            threaded* self;
            std::uint64_t seen;
        } watched{this, 0};
        const auto body = [&] {
            const fault_guard::clock running(
                options_of(in).recovery_ms_max,
                [](void* of) noexcept {
                    auto& w = *static_cast<decltype(watched)*>(of);
                    const std::uint64_t now = w.self->with_.reached;
                    return std::exchange(w.seen, now) != now;
                },
                [](void* of) noexcept {
                    static_cast<decltype(watched)*>(of)->self->expired_ = true;
                },
                &watched);
            run();
        };
        if (!in.guard_signals) run();
        else if (const auto how = fault_guard::run(fault_guard::against::everything, body);
                 how.stopped)
            stopped(how);
        --with_.running;
    } catch (const std::bad_alloc&) {
        with_.fail(errc::io_error, "out of memory");
        --with_.running;
    }

    void wait() override {
        if (with_.failed) give_up(); // upholds (3)
        // It has asked for its lock since the last look: in vain, while nothing went on.
        const std::uint64_t now = with_.progress;
        looks_ = now == seen_ ? looks_ + 1 : 0;
        seen_ = now;
        if (looks_ >= looks_max && with_.nobody_goes_on(now, looks_ == looks_max))
            with_.fail(errc::corrupt, all_wait);
        ::sched_yield();
    }

private:
    void stopped(const fault_guard::ending& how) {
        const hf_justdo_function* const f = section_.function();
        with_.fail(how.code, fmt::format("{} ({}): {}", f != nullptr ? f->name : "a section",
                                         f != nullptr ? f->where : "unknown place", how.why));
        current = nullptr;
    }
    // A lock of another kind may say no for no reason, but not so often. More looks would take long
    // on a busy machine: each look gives the processor away.
    static constexpr std::uint64_t looks_max = 64;
    std::uint64_t looks_ = 0;
    std::uint64_t seen_ = 0;
};

/// Runs on a stack of its own, on the thread that opens the pool. Stacks are kept: a run may be
/// left by a jump, and then nobody knows whether its stack is still in use.
class turn_taker final : public runner {
public:
    using runner::runner;

    void begin(ucontext_t& scheduler) {
        scheduler_ = &scheduler;
        stack_ = std::make_unique<std::byte[]>(stack_bytes);
        ::getcontext(&self_);
        self_.uc_stack.ss_sp = stack_.get();
        self_.uc_stack.ss_size = stack_bytes;
        self_.uc_link = &scheduler;
        const auto at = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&self_, reinterpret_cast<void (*)()>(&turn_taker::enter), 2,
                      static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
    }
    void turn() {
        current = &section_;
        ::swapcontext(scheduler_, &self_);
        current = nullptr;
    }
    void wait() override {
        if (with_.failed) give_up();
        ::swapcontext(&self_, scheduler_);
        if (with_.failed) give_up();
    }
    bool done() const noexcept { return done_; }

private:
    static void enter(unsigned high, unsigned low) {
        auto& self = *reinterpret_cast<turn_taker*>(std::uintptr_t{high} << 32 | low);
        self.run();
        self.done_ = true;
    }
    static constexpr std::size_t stack_bytes = 256 << 10;
    std::unique_ptr<std::byte[]> stack_;
    ucontext_t self_{};
    ucontext_t* scheduler_ = nullptr;
    bool done_ = false;
};

void take_turns(common& with, std::span<thread* const> sections) {
    // A run that the crash checker leaves by a jump leaves these behind.
    static auto& kept = *new std::vector<std::unique_ptr<turn_taker>>;
    kept.clear();
    static ucontext_t scheduler;
    std::vector<thread*> order(sections.begin(), sections.end());
    if (resume_order) resume_order(order);
    for (thread* section : order) {
        kept.push_back(std::make_unique<turn_taker>(with, *section));
        kept.back()->begin(scheduler);
    }
    for (unsigned idle = 0; with.running != 0;) {
        const std::uint64_t before = with.progress + with.to_own + with.running;
        for (auto& one : kept) {
            if (one->done()) continue;
            one->turn();
            if (one->done()) --with.running;
        }
        idle = with.progress + with.to_own + with.running == before ? idle + 1 : 0;
        if (idle > 2) with.fail(errc::corrupt, all_wait);
    }
}

void run_threads(common& with, const pool::impl& in, std::span<thread* const> sections) {
    std::vector<std::unique_ptr<threaded>> runners;
    for (thread* section : sections) runners.push_back(std::make_unique<threaded>(with, *section));
    std::vector<std::thread> threads;
    threads.reserve(sections.size());
    try {
        for (auto& one : runners) threads.emplace_back([&one, &in] { one->run_guarded(in); });
    } catch (const std::system_error& e) {
        with.fail(errc::io_error,
                  fmt::format("{} sections want a thread each: {}", sections.size(), e.what()));
    }
    for (auto& t : threads) t.join();
}

} // namespace

status resume_all(pool::impl& in, std::span<thread* const> sections) {
    common with(in, sections.size());
    const bool one_thread = in.file->in_memory() && !in.guard_signals; // the crash checker's
    if (one_thread) take_turns(with, sections);
    else run_threads(with, in, sections);
    if (!with.failed) {
        for (thread* section : sections) section->resumed();
        return {};
    }
    const bool not_its_fault = with.code == errc::truncated || with.code == errc::io_error;
    return refusal(
        in.file->path(), with.code,
        fmt::format("engine justdo: resuming {}; the pool stays marked open, for a build that can "
                    "resume its sections{}",
                    with.why, not_its_fault ? "" : last_way_out(*in.file)));
}

} // namespace hf::justdo
