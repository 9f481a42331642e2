// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/few_signals.hpp>
#include <base/names.hpp>
#include <justdo/engine.hpp>
#include <justdo/inspect.hpp>
#include <justdo/resume.hpp>
#include <pool/fault_guard.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
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

} // namespace

/// State that all sections which resume together share.
struct resumption::common {
    common(pool::impl& pool, std::vector<thread*> all, std::function<void(thread*)> at_end)
        : in(pool), own(pool), sections(std::move(all)), ended(std::move(at_end)),
          running(sections.size()), to_own(sections.size()),
          bare(static_cast<std::size_t>(std::ranges::count(sections, false, &thread::is_guarded))) {
    }

    pool::impl& in;
    const own_blocks own;
    const std::vector<thread*> sections;
    const std::function<void(thread*)> ended;

    std::atomic<std::uint64_t> progress{0};
    std::atomic<std::uint64_t> reached{0}; // lines of the pool that no section had reached before
    std::atomic<bool> failed{false};       // or they stop anyway
    std::atomic<bool> beside{false};       // others work in the pool
    std::atomic<std::size_t> running;      // sections that have not ended
    std::atomic<std::size_t> to_own;       // that do not have their locks yet: (1)
    std::atomic<std::size_t> bare;         // of those, that no lock guards to their ends: (4)
    bool open = false;    // guarded, as is what follows: they may go on when they have their locks
    errc code = errc::ok; // of the first that was stopped
    std::string why;
    std::uint64_t stuck_at = 0; // at which 'progress'
    std::size_t stuck = 0;      // so many sections have asked in vain
    std::mutex lock;
    std::condition_variable changed;

    template <class Change> void change(Change&& what) {
        const std::scoped_lock held{lock};
        what();
        changed.notify_all();
    }
    template <class Test> void wait_for(Test&& holds) {
        std::unique_lock held{lock};
        changed.wait(held, holds);
    }
    /// Whether all of them have asked in vain since 'progress' became 'at', as the caller has.
    /// 'first': the caller reports it for the first time. A section that merely waits for the
    /// processor counts as going on: it may find what it waits for.
    bool nobody_goes_on(std::uint64_t at, bool first) {
        std::scoped_lock held{lock};
        if (at < stuck_at) return false;
        if (at > stuck_at) stuck_at = at, stuck = 0;
        stuck += first ? 1 : 0;
        return stuck == (open ? running : to_own).load() && progress == at;
    }
    /// Upholds (3).
    void fail(errc what, std::string text) {
        std::unique_lock held{lock};
        if (failed) return;
        code = what;
        why = std::move(text);
        if (beside) {
            const status refused = refusal_of_all();
            held.unlock(); // fatal() may leave by a jump
            fatal("%s", refused.what().c_str());
        }
        failed = true;
        changed.notify_all();
    }
    status refusal_of_all() const {
        const bool not_its_fault = code == errc::truncated || code == errc::io_error;
        return refusal(
            in.file->path(), code,
            fmt::format("engine justdo: resuming {}; the pool stays marked open, for a build that "
                        "can resume its sections{}",
                        why, not_its_fault ? "" : last_way_out(*in.file)));
    }
};

/// One section, and its thread.
class resumption::runner : public party {
public:
    runner(common& with, thread& section)
        : with_(with), section_(section), bare_(!section.is_guarded()) {}

    /// To the section's end, or to where 'failed' is seen.
    void run() {
        current = &section_;
        hf_justdo_steps.words_end = 0; // of a section that a jump has left
        if (setjmp(end_) == 0) {
            section_.own_again(*this);
            ++with_.progress; // before it counts no more: nobody_goes_on()
            with_.change([&] { --with_.to_own; });
            wait_for_others();
            section_.resume();
        }
        current = nullptr;
        if (section_.open()) return;
        section_.resumed();
        with_.ended(&section_);
        with_.change([&] {
            --with_.running;
            with_.bare -= bare_;
        });
    }
    void progressed(std::uint64_t offset, std::uint64_t bytes) noexcept override {
        ++with_.progress;
        if (with_.own.meet(offset, bytes, section_.offset()))
            fatal(
                "a section of engine justdo stores to the engine's own %llu bytes at offset %#llx",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset));
        if (bytes != 0 && lines_.add(offset / line_bytes)) ++with_.reached;
        if (expired_) fault_guard::expired();
        if (with_.failed) give_up();
    }
    [[noreturn]] void finished() noexcept override {
        HF_ASSERT_SLOW(!section_.open());
        std::longjmp(end_, 1);
    }

protected:
    /// Upholds (1).
    virtual void wait_for_others() = 0;
    /// Leaves the section unfinished.
    [[noreturn]] void give_up() noexcept { std::longjmp(end_, 1); }

    common& with_;
    thread& section_;
    volatile bool expired_ = false;

private:
    const bool bare_;  // counts among common::bare
    lines_seen lines_; // where its steps have been
    std::jmp_buf end_;
};

/// On a thread of its own.
class resumption::threaded final : public runner {
public:
    using runner::runner;

    void run_guarded() noexcept try {
        struct {
            threaded* self;
            std::uint64_t seen;
        } watched{this, 0};
        const auto body = [&] {
            const fault_guard::clock running(
                options_of(with_.in).recovery_ms_max,
                [](void* of) noexcept {
                    auto& w = *static_cast<decltype(watched)*>(of);
                    const bool waited = std::exchange(w.self->waited_, false);
                    const std::uint64_t now = w.self->with_.reached;
                    return std::exchange(w.seen, now) != now || waited;
                },
                [](void* of) noexcept {
                    static_cast<decltype(watched)*>(of)->self->expired_ = true;
                },
                &watched);
            run();
        };
        if (!with_.in.guard_signals) run();
        else if (const auto how = fault_guard::run(fault_guard::against::everything, body);
                 how.stopped)
            stopped(how);
    } catch (const std::bad_alloc&) {
        with_.fail(errc::io_error, "out of memory");
    }

    void wait() override {
        if (expired_) fault_guard::expired();
        if (with_.failed) give_up(); // upholds (3)
        if (with_.beside) {          // for others, too
            waited_ = true;
            looks_ = 0;
            ::sched_yield();
            return;
        }
        // It has asked for its lock since the last look: in vain, while nothing went on.
        const std::uint64_t now = with_.progress;
        looks_ = now == seen_ ? looks_ + 1 : 0;
        seen_ = now;
        if (looks_ >= looks_max && with_.nobody_goes_on(now, looks_ == looks_max))
            with_.fail(errc::corrupt, all_wait);
        ::sched_yield();
    }

protected:
    void wait_for_others() override {
        with_.wait_for([&] { return with_.open || with_.failed; });
        if (with_.failed) give_up();
    }

private:
    void stopped(const fault_guard::ending& how) {
        const hf_justdo_function* const f = section_.function();
        with_.fail(how.code,
                   fmt::format("{} ({}): {}", f != nullptr ? readable_name(f->name) : "a section",
                               f != nullptr ? f->where : "unknown place", how.why));
        current = nullptr;
    }
    // A lock of another kind may say no for no reason, but not so often. More looks would take long
    // on a busy machine: each look gives the processor away.
    static constexpr std::uint64_t looks_max = 64;
    std::uint64_t looks_ = 0;
    std::uint64_t seen_ = 0;
    volatile bool waited_ = false; // for a lock, beside new work
};

/// Runs on a stack of its own, on the thread that opens the pool. Stacks are kept: a run may be
/// left by a jump, and then nobody knows whether its stack is still in use.
class resumption::turn_taker final : public runner {
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

protected:
    void wait_for_others() override {
        while (with_.to_own != 0) wait();
    }

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

void resumption::take_turns() {
    // A run that the crash checker leaves by a jump leaves these behind.
    static auto& kept = *new std::vector<std::unique_ptr<turn_taker>>;
    kept.clear();
    static ucontext_t scheduler;
    std::vector<thread*> order = with_->sections;
    if (resume_order) resume_order(order);
    for (thread* section : order) {
        kept.push_back(std::make_unique<turn_taker>(*with_, *section));
        kept.back()->begin(scheduler);
    }
    const auto ended = [](const auto& one) { return one->done(); };
    for (unsigned idle = 0; !std::ranges::all_of(kept, ended);) {
        const std::uint64_t before = with_->progress + with_->to_own + with_->running;
        for (auto& one : kept)
            if (!one->done()) one->turn();
        idle = with_->progress + with_->to_own + with_->running == before ? idle + 1 : 0;
        if (idle > 2) with_->fail(errc::corrupt, all_wait);
    }
}

void resumption::start_threads() {
    const auto& sections = with_->sections;
    for (thread* section : sections)
        runners_.push_back(std::make_unique<threaded>(*with_, *section));
    threads_.reserve(sections.size());
    const few_signals here;
    try {
        for (auto& one : runners_) threads_.emplace_back([&one] { one->run_guarded(); });
    } catch (const std::system_error& e) {
        with_->fail(errc::io_error,
                    fmt::format("{} sections want a thread each: {}", sections.size(), e.what()));
    }
}

resumption::resumption(pool::impl& in, std::vector<thread*> sections,
                       std::function<void(thread*)> ended)
    : with_(std::make_unique<common>(in, std::move(sections), std::move(ended))) {}

resumption::~resumption() {
    with_->change([&] { with_->failed = true; });
    join();
}

void resumption::join() noexcept {
    for (auto& t : threads_) t.join();
    threads_.clear();
}

status resumption::refused() const {
    return with_->code == errc::ok ? status() : with_->refusal_of_all();
}

status resumption::own_again() {
    if (with_->in.file->in_memory() && !with_->in.guard_signals) take_turns(); // crash checker's
    else {
        start_threads();
        with_->wait_for([&] { return with_->to_own == 0 || with_->failed; });
        if (with_->failed) join();
    }
    return refused();
}

status resumption::go_on() {
    const auto look = [&] {
        if (!with_->failed) with_->beside = with_->bare == 0;
        return with_->beside || with_->failed;
    };
    with_->change([&] { with_->open = true, look(); });
    with_->wait_for(look);
    if (with_->failed) join();
    return refused();
}

status resumption::finish() {
    with_->change([&] { with_->open = true, with_->beside = false, with_->stuck = 0; });
    join();
    return refused();
}

void resumption::wait() noexcept {
    with_->wait_for([&] { return with_->running == 0 || with_->failed; });
}

} // namespace hf::justdo
