// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness.hpp"

#include "../../../examples/bank.hpp"
#include "killer.hpp"

#include <holdfast/engines.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kill_test {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr unsigned child_seconds_max = 120; // a child that takes longer hangs
constexpr std::uint64_t kills_per_pool = 16, kills_per_filled_pool = 256;

struct forked {
    pid_t pid;
    int how = 0; // waitpid's
    bool killed() const { return WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL; }
    bool good() const { return WIFEXITED(how) && WEXITSTATUS(how) == 0; }
};

forked start_child(const std::function<int()>& body) {
    std::fflush(stdout); // or the child would print it again
    const pid_t pid = ::fork();
    if (pid < 0) std::perror("fork"), std::exit(2);
    if (pid > 0) return {pid};
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(child_seconds_max);
    ::_exit(body());
}
void wait_for(forked& child) {
    while (::waitpid(child.pid, &child.how, 0) < 0 && errno == EINTR) {}
}
/// Kills the child unless it has ended by itself.
void kill_after(forked& child, microseconds delay) {
    std::this_thread::sleep_for(delay);
    ::kill(child.pid, SIGKILL);
    wait_for(child);
}

class session {
public:
    explicit session(const plan& given);
    ~session();
    outcome run();

private:
    hf::open_options options() const;
    void new_pool();
    int live();                    // child: recover, then work until killed
    int recover_only();            // child: recover, then wait to be killed
    int check(bool close_cleanly); // child: recover, then verify
    void kill_the_workload();
    void kill_recoveries();
    bool left_is_right();
    std::uint64_t random() { return mix(plan_.seed, stream_, ++draws_); }
    microseconds below(std::uint64_t limit_us) { return microseconds(random() % limit_us); }
    bool wrong(const char* who, const forked& child);

    plan plan_;
    std::string path_;
    journal* log_;
    outcome sum_;
    std::uint64_t draws_ = 0, stream_; // every combination draws moments of its own
    bool failed_ = false;
};

session::session(const plan& given)
    : plan_(given), stream_(mix(static_cast<std::uint64_t>(given.what->name()[1]),
                                static_cast<std::uint64_t>(given.mode))) {
    path_ = plan_.directory + "/hf_kill." + std::to_string(::getpid()) + "." + plan_.what->name();
    void* shared =
        ::mmap(nullptr, sizeof(journal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) std::perror("mmap"), std::exit(2);
    log_ = ::new (shared) journal{};
}

/// With the log of mode power.
void remove_pool(const std::string& path) {
    ::unlink(path.c_str());
    ::unlink((path + "-power").c_str());
}

session::~session() {
    ::munmap(log_, sizeof(journal));
    if (!failed_) remove_pool(path_);
    if (!failed_) ::unlink((path_ + ".before").c_str());
}

hf::open_options session::options() const {
    hf::open_options o;
    plan_.what->shape(o, sum_.pools);
    o.mode = plan_.mode;
    for (const hf::engine_ptr& e : hf::engines_of_build(plan_.what->engines()))
        o.engines.push_back(e);
    o.max_threads = threads_max + 2;
#if defined(HF_RELOCATABLE) // at its place or elsewhere, by chance
    if (mix(plan_.seed, stream_, draws_) % 2 == 0) o.expert.relocate = hf::relocation::always;
#endif
    return o;
}

void session::new_pool() {
    ++sum_.pools;
    remove_pool(path_);
    ::new (log_) journal{};
    log_->seed = mix(plan_.seed, sum_.pools);
    // One thread alone commits in another way than several do (src/section).
    constexpr unsigned in_turn[] = {4, 1, 8, 2};
    log_->threads = plan_.threads != 0 ? plan_.threads : in_turn[sum_.pools % std::size(in_turn)];
}

int session::live() {
    auto pool = hf::pool::open(path_, options());
    if (!pool) {
        // Whatever was cut short, only creation may leave something that does not open.
        const bool never_was =
            log_->acknowledged() == 0 && pool.error().code() == hf::errc::not_a_pool;
        if (!never_was) return log_->fail("%s", pool.error().what().c_str()), 1;
        remove_pool(path_);
        pool = hf::pool::open(path_, options());
        if (!pool) return log_->fail("%s", pool.error().what().c_str()), 1;
    }
    hf::justdo::wait(*pool); // what follows takes no locks
    log_->phase = opened;
    plan_.what->prepare(*pool, *log_);
    if (log_->failures != 0) return 1;
    for (unsigned t = 0; t < log_->threads; ++t)
        std::thread([&, t] { plan_.what->run(*pool, *log_, t); }).detach();
    log_->phase = running;
    for (;;) ::pause();
}

int session::recover_only() {
    auto pool = hf::pool::open(path_, options());
    log_->phase = opened;
    for (;;) ::pause(); // what it found wrong, the next one will find
}

int session::check(bool close_cleanly) {
    auto pool = hf::pool::open(path_, options());
    if (!pool) {
        const bool never_was =
            log_->acknowledged() == 0 && (pool.error().code() == hf::errc::not_a_pool ||
                                          pool.error().code() == hf::errc::not_found);
        if (!never_was) log_->fail("%s", pool.error().what().c_str());
        return never_was ? 0 : 1;
    }
    hf::justdo::wait(*pool);
    const hf::recovery_report& report = pool->recovered();
    log_->pending += report.sections_pending;
    log_->re_executed += report.re_executed;
    log_->resumed += report.resumed;
    log_->rolled_back += report.rolled_back;
    log_->discarded += report.discarded;
    plan_.what->verify(*pool, *log_);
    log_->phase = verified;
    if (!close_cleanly) ::_exit(log_->failures == 0 ? 0 : 1);
    return log_->failures == 0 ? 0 : 1;
}

/// True, and said so, when a child ended otherwise than by being killed or by success.
bool session::wrong(const char* who, const forked& child) {
    if (child.killed() || child.good()) return false;
    const bool signalled = WIFSIGNALED(child.how);
    log_->fail("%s ended by %s %d", who, signalled ? "signal" : "exit status",
               signalled ? WTERMSIG(child.how) : WEXITSTATUS(child.how));
    return true;
}

void session::kill_the_workload() {
    log_->phase = starting;
    forked child = start_child([this] { return live(); });
    // A third at any moment of opening and preparing; the others while the threads are at work.
    const bool in_time = plan_.every_ms != 0;
    if (in_time || random() % 3 != 0) {
        const auto give_up = clock::now() + std::chrono::seconds(child_seconds_max);
        while (log_->phase < running && log_->failures == 0 && clock::now() < give_up)
            std::this_thread::sleep_for(microseconds(20));
        kill_after(child, in_time ? microseconds(static_cast<std::int64_t>(plan_.every_ms * 1000))
                                  : below(random() % 8 == 0 ? 30000 : 5000));
    } else {
        kill_after(child, below(6000));
    }
    ++sum_.kills;
    (void)wrong("the workload", child);
}

void session::kill_recoveries() {
    while (random() % 3 == 0) {
        log_->phase = starting;
        forked child = start_child([this] { return recover_only(); });
        kill_after(child, below(4000));
        ++sum_.recovery_kills;
        if (wrong("a recovery", child)) return;
    }
}

bool session::left_is_right() {
    const bool close_cleanly = random() % 2 == 0;
    std::error_code ignored;
    if (plan_.records == 0) // else there may be no room for two
        std::filesystem::copy_file(path_, path_ + ".before",
                                   std::filesystem::copy_options::overwrite_existing, ignored);
    forked child = start_child([&] { return check(close_cleanly); });
    wait_for(child);
    (void)wrong("verification", child);
    return log_->failures == 0;
}

outcome session::run() {
    const auto start = clock::now();
    const auto enough = [&] {
        if (plan_.kills != 0) return sum_.kills >= plan_.kills;
        return std::chrono::duration<double>(clock::now() - start).count() >= plan_.seconds;
    };
    const auto add_up = [&] {
        sum_.acknowledged += log_->acknowledged();
        sum_.pending += log_->pending;
        sum_.re_executed += log_->re_executed;
        sum_.resumed += log_->resumed;
        sum_.rolled_back += log_->rolled_back;
        sum_.discarded += log_->discarded;
        sum_.lost += log_->lost;
        sum_.failures += log_->failures;
    };
    while (!enough()) {
        if (sum_.kills % (plan_.records == 0 ? kills_per_pool : kills_per_filled_pool) == 0) {
            if (sum_.pools != 0) add_up();
            new_pool();
        }
        kill_the_workload();
        if (log_->failures == 0) kill_recoveries();
        if (log_->failures == 0 && left_is_right()) continue;
        failed_ = true;
        std::printf("FAILED at kill %llu (pool %llu, seed %llu):\n%s"
                    "kept: %s (now), %s.before (as it was killed)\n",
                    static_cast<unsigned long long>(sum_.kills),
                    static_cast<unsigned long long>(sum_.pools),
                    static_cast<unsigned long long>(plan_.seed), log_->text, path_.c_str(),
                    path_.c_str());
        break;
    }
    add_up();
    return sum_;
}

} // namespace

outcome& outcome::operator+=(const outcome& o) {
    kills += o.kills, recovery_kills += o.recovery_kills, acknowledged += o.acknowledged;
    lost += o.lost, failures += o.failures, pending += o.pending, pools += o.pools;
    re_executed += o.re_executed, resumed += o.resumed, rolled_back += o.rolled_back,
        discarded += o.discarded;
    return *this;
}

outcome run(const plan& plan) {
    kill_on_time();
    return session(plan).run();
}

const char* engine_name() {
    return has_sections() ? hf::engine_of_build().data() : workloads().front()->name();
}
bool has_sections() { return !hf::engines_of_build().empty(); }

std::uint64_t kill_between_debit_and_credit(const plan& plan) {
    constexpr std::uint64_t accounts = 4;
    constexpr std::int64_t cents = 1000;
    const std::string path =
        plan.directory + "/hf_kill." + std::to_string(::getpid()) + ".crash_point";
    remove_pool(path);
    hf::open_options options;
    options.layout = bank::layout;
    options.create_bytes = 256 << 10;
    options.mode = plan.mode;
    options.engines = hf::engines_of_build();
    forked transfer = start_child([&] {
        ::setenv("HOLDFAST_CRASH_AT", "between-debit-and-credit", 1);
        auto pool = hf::pool::open(path, options);
        if (!pool || !bank::create(pool->root<bank::branch>(), accounts, cents)) return 1;
        bank::transfer(pool->root<bank::branch>(), 0, 1, 250);
        return 2;
    });
    wait_for(transfer);
    forked look = start_child([&] {
        auto pool = hf::pool::open(path, options);
        if (!pool) return 1;
        const auto* branch = pool->root<bank::branch>();
        const hf::recovery_report& how = pool->recovered();
        // In mode power what a section has logged so far need not be on the disk, nor the mark of
        // the one before.
        const bool may_be_gone = plan.mode == hf::mode::power && branch->accounts[0].cents == cents;
        const std::int64_t moved = how.re_executed + how.resumed != 0 && !may_be_gone ? 250 : 0;
        // Redo logs at the end: all that may be pending is the section before.
        const bool logs_at_end =
            hf::engine_of_build() == "redo" ||
            (hf::engine_of_build() == "auto" && plan.mode != hf::mode::process);
        const bool recovered =
            logs_at_end || plan.mode == hf::mode::power || how.sections_pending == 1;
        const bool whole = bank::total(branch) == static_cast<std::int64_t>(accounts) * cents &&
                           branch->accounts[0].cents == cents - moved &&
                           branch->accounts[1].cents == cents + moved;
        return recovered && whole ? 0 : 1;
    });
    wait_for(look);
    remove_pool(path);
    const bool right = transfer.killed() && look.good();
    std::printf("kill: between debit and credit, %s: %s\n", engine_name(),
                right ? "whole" : "FAILED");
    return right ? 0 : 1;
}

} // namespace kill_test
