// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hostile_pools [--count N] [--seed S] [--replay K]: N mutants, in batches, each batch in a child
// process so that a signal is attributed to its mutant; one line of account at the end.
#include "trial.hpp"
#include <cli/command.hpp>

#include <holdfast/result.hpp>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// A report ends the process, so that it is attributed as well. Freed memory that is kept counts
// towards a batch: less than usual.
extern "C" const char* __asan_default_options() {
    return "abort_on_error=1:detect_leaks=0:quarantine_size_mb=64";
}
extern "C" const char* __ubsan_default_options() {
    return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}

namespace {

using namespace hf::hostile;

constexpr std::uint64_t batch = 1000;
int findings_max = 20;
constexpr int seconds_max = 20;            // of the processor, for one mutant
constexpr int waits_seconds_max = 300;     // by the clock, on a machine that others use too
constexpr long resident_kib_max = 1 << 20; // of a batch

struct shared {
    tally count;
    std::uint64_t current = 0; // mutant being tried
    std::uint64_t batch_end = 0;
    char wrong[512] = {};
};

/// The seed of the K-th mutant: neighbouring seeds of a run share nothing.
std::uint64_t seed_of(std::uint64_t seed, std::uint64_t k) {
    const std::uint64_t words[2] = {seed, k};
    return hf::checksum(words, sizeof words, 0);
}

void restart_clock() {
    const itimerval works{{0, 0}, {seconds_max, 0}}, waits{{0, 0}, {waits_seconds_max, 0}};
    ::setitimer(ITIMER_PROF, &works, nullptr);
    ::setitimer(ITIMER_REAL, &waits, nullptr);
}

/// Runs mutants [from, state.batch_end) and ends the process.
[[noreturn]] void run_batch(const std::vector<base_pool>& bases, std::uint64_t seed,
                            std::uint64_t from, shared& state) {
    std::map<std::size_t, std::unique_ptr<trial>> trials;
    for (std::uint64_t k = from; k < state.batch_end; ++k) {
        state.current = k;
        if (k % 16 == 0 || k == from) restart_clock();
        auto& tried = trials[k % bases.size()];
        if (tried == nullptr) tried = std::make_unique<trial>(bases[k % bases.size()]);
        const std::string wrong = tried->run(seed_of(seed, k), state.count, nullptr);
        if (wrong.empty()) continue;
        std::snprintf(state.wrong, sizeof state.wrong, "%s", wrong.c_str());
        ::_exit(1);
    }
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    if (used.ru_maxrss > resident_kib_max) {
        std::snprintf(state.wrong, sizeof state.wrong, "a batch took %ld KiB", used.ru_maxrss);
        ::_exit(1);
    }
    ::_exit(0);
}

int replay(const std::vector<base_pool>& bases, std::uint64_t seed, std::uint64_t k) {
    const base_pool& base = bases[k % bases.size()];
    tally count;
    std::string story;
    trial tried(base);
    // Twice: the story is known even if the mutant ends the process.
    {
        random_source random(seed_of(seed, k));
        std::vector<std::byte> copy = base.bytes;
        copy.resize(copy.size() + 65536);
        const pool_map map(base);
        mutator told(map, copy, random);
        told.tell = true;
        told.mutate();
        fmt::print("mutant {} of seed {}, base pool '{}'\n{}", k, seed, base.name, told.story);
        std::fflush(stdout);
    }
    const std::string wrong = tried.run(seed_of(seed, k), count, &story);
    fmt::print("{}\n{}\n", tried.said(), wrong.empty() ? "nothing wrong" : wrong);
    return wrong.empty() ? 0 : 1;
}

struct totals {
    std::uint64_t signals = 0, hangs = 0, wrong = 0;
    int found() const { return static_cast<int>(signals + hangs + wrong); }
};

void report(const shared& state, int how, std::uint64_t seed, totals& sum) {
    std::string what;
    if (WIFSIGNALED(how) && (WTERMSIG(how) == SIGALRM || WTERMSIG(how) == SIGPROF)) {
        ++sum.hangs;
        what = fmt::format("did not end within {} s of the processor, {} s by the clock",
                           seconds_max, waits_seconds_max);
    } else if (WIFSIGNALED(how)) {
        ++sum.signals;
        what = fmt::format("died: SIG{}", ::sigabbrev_np(WTERMSIG(how)));
    } else {
        ++sum.wrong;
        what = state.wrong;
    }
    fmt::print(stderr, "hostile: mutant {}: {}; replay with --seed {} --replay {}\n", state.current,
               what, seed, state.current);
}

totals run_all(const std::vector<base_pool>& bases, std::uint64_t seed, std::uint64_t count,
               shared& state) {
    totals sum;
    for (std::uint64_t next = 0; next < count && sum.found() < findings_max;) {
        state.batch_end = std::min(next + batch, count);
        state.wrong[0] = '\0';
        const pid_t child = ::fork();
        if (child == 0) run_batch(bases, seed, next, state);
        int how = 0;
        ::waitpid(child, &how, 0);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 0) {
            next = state.batch_end;
            continue;
        }
        report(state, how, seed, sum);
        next = state.current + 1;
    }
    return sum;
}

void print_account(const shared& state, const totals& sum, double seconds) {
    const tally& c = state.count;
    std::string refusals;
    for (std::size_t code = 0; code < c.refused.size(); ++code)
        if (c.refused[code] != 0)
            refusals +=
                fmt::format(" {}={}", hf::name(static_cast<hf::errc>(code)), c.refused[code]);
    fmt::print("hostile: mutants={} opened={} refused={} (stopped in recovery={};{}) "
               "sections_recovered={} verified_good={} verified_damaged={} mod_verified={} "
               "mod_damaged={} signals={} hangs={} wrong={} seconds={:.1f} per_second={:.0f}\n",
               c.tried, c.opened, c.refusals(), c.stopped, refusals, c.sections_pending,
               c.verified_good, c.verified_damaged, c.mod_verified, c.mod_damaged, sum.signals,
               sum.hangs, sum.wrong, seconds, static_cast<double>(c.tried) / seconds);
}

} // namespace

int main(int argc, char** argv) {
    const hf::cli::program app{"Opens mutated pools"};
    std::uint64_t count = 10'000, seed = 20260101;
    std::string only;
    std::int64_t replayed = -1;
    app.value("--count", count, "mutants");
    app.value("--seed", seed, "of the run");
    app.value("--replay", replayed, "the one mutant to try, in this process");
    app.value("--findings", findings_max, "after which the run ends");
    app.value("--only", only, "base pools whose names begin so");
    if (const auto status = app.read_or_say(argc, argv)) return *status;
    std::vector<base_pool> bases = make_base_pools();
    std::erase_if(bases, [&](const base_pool& b) { return !b.name.starts_with(only); });
    if (bases.empty()) return 2;
    if (replayed >= 0) return replay(bases, seed, static_cast<std::uint64_t>(replayed));
    void* memory =
        ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 2;
    auto* state = new (memory) shared;
    const auto start = std::chrono::steady_clock::now();
    const totals sum = run_all(bases, seed, count, *state);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    print_account(*state, sum, took.count());
    return sum.found() == 0 ? 0 : 1;
}
