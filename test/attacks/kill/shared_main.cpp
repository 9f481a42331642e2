// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_shared: processes that write one object (simpo::client::join), and kills of the one that
// serves it, of others, of all at once, at moments drawn from a seed. test/attacks/kill/README.md
//
// Each process is one caller. It numbers its calls, defers three, waits for the fourth. When the
// server ends, or it was killed itself, it joins again, and goes on behind the last call that was
// made; the first one to come serves. The object counts each caller's numbers: a call that was
// lost, made twice, or made out of order is one that it did not expect.
#include "beside_harness.hpp"

#include <holdfast/simpo.hpp>
#include <holdfast/simpo/share.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf::literals;
using kill_test::broken;
using kill_test::u64;

constexpr u64 members = 3, kills_of_a_pool = 12, calls_a_wait = 4;

/// How far each caller has come.
class ledger {
public:
    static constexpr hf::simpo::class_name simpo_class{"ledger", 1};
    void add(u64 who, u64 number) noexcept { enter(who, number); }
    void add_wide(u64 who, u64 number, std::array<u64, 20>) noexcept { enter(who, number); }
    u64 add_and_count(u64 who, u64 number) noexcept { return enter(who, number), count_; }
    u64 last(u64 who) const noexcept { return last_[who % members]; }
    u64 count() const noexcept { return count_; }
    u64 unexpected() const noexcept { return unexpected_; }

private:
    void enter(u64 who, u64 number) noexcept {
        ++cells_[number % cells_.size()];
        u64& last = last_[who % members];
        if (number != last + 1) ++unexpected_;
        last = number;
        ++count_;
    }
    std::array<u64, members> last_{};
    std::array<u64, 500> cells_{}; // some pieces for checkpoints
    u64 count_ = 0, unexpected_ = 0;
};
using object = hf::simpo::object<ledger>;

struct words {
    struct told_to {
        std::atomic<u64> number, answer; // of its last call that has had an answer
    };
    std::array<told_to, members> told;
    std::atomic<pid_t> server;
    std::atomic<u64> served, calls, asked_again, ended;
};

class shared {
public:
    int run(int argc, char** argv);

private:
    hf::open_options options() const;
    hf::status prepare(hf::pool& pool) const;
    [[noreturn]] void belong(u64 who, u64 seed);
    void call(hf::simpo::client& over, u64 who, std::mt19937_64& chance);
    void ask_again(hf::simpo::remote<ledger>& on, u64 who);
    pid_t new_child(u64 who, u64 seed);
    bool one_pool(std::mt19937_64& chance, u64 kills);
    void check() const;

    std::string path_;
    hf::mode mode_ = hf::mode::process;
    u64 log_bytes_ = 1_KiB;
    words& words_ = kill_test::shared_words<words>();
};

hf::open_options shared::options() const {
    return {.layout = "shared/1",
            .create_bytes = 1_MiB,
            .mode = mode_,
            .engines = {hf::simpo::engine()}};
}

hf::status shared::prepare(hf::pool& pool) const {
    auto found = object::find(pool, "it");
    if (!found)
        found = object::create(
            pool, "it", hf::simpo::object_options{.log_bytes = log_bytes_, .callers = members});
    return found ? hf::status{} : found.error();
}

/// One process: what it does until it is killed.
void shared::belong(u64 who, u64 seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto over = hf::simpo::client::join(path_, options(),
                                            [&](hf::pool& pool) { return prepare(pool); });
        if (!over && over.error().code() == hf::errc::io_error) continue;
        if (!over) broken(over.error());
        if (over->pool() != nullptr) {
            words_.server = ::getpid();
            ++words_.served;
        }
        call(*over, who, chance);
        ++words_.ended;
    }
}

/// Until the server ends.
void shared::call(hf::simpo::client& over, u64 who, std::mt19937_64& chance) {
    const auto ended = [](const hf::status& s) {
        if (s.ok()) return false;
        if (s.code() != hf::errc::io_error) broken(s);
        return true;
    };
    auto on = hf::simpo::remote<ledger>::of(over, "it", who + 1);
    if (!on) return (void)ended(on.error());
    const auto last = on->last();
    if (!last) return (void)ended(last.error());
    auto& told = words_.told[who];
    if (*last < told.number) broken("calls that had an answer", told.number, *last);
    ask_again(*on, who);
    for (u64 number = *last + 1;; ++number) {
        if (number % calls_a_wait != 0) {
            const hf::status s = chance() % 8 == 0
                                     ? on->defer<&ledger::add_wide>(number, who, number,
                                                                    (std::array<u64, 20>{number}))
                                     : on->defer<&ledger::add>(number, who, number);
            if (ended(s)) return;
            continue;
        }
        const auto count = on->call<&ledger::add_and_count>(number, who, number);
        if (!count) return (void)ended(count.error());
        if (*count < number || *count <= told.answer)
            broken("a count that grows", told.answer, *count);
        told.answer = *count;
        told.number = number;
        ++words_.calls;
    }
}

/// The call that had the last answer has it again, if it is the last that was made.
void shared::ask_again(hf::simpo::remote<ledger>& on, u64 who) {
    const auto& told = words_.told[who];
    const u64 number = told.number, answer = told.answer;
    if (number == 0) return;
    const auto again = on.call<&ledger::add_and_count>(number, who, number);
    if (!again &&
        (again.error().code() == hf::errc::io_error || again.error().code() == hf::errc::not_found))
        return; // a later one's result is kept
    if (!again) broken(again.error());
    // Between the two stores of an answer this process may have been killed.
    if (*again != answer && answer < *again) broken("the answer that it had", answer, *again);
    ++words_.asked_again;
}

pid_t shared::new_child(u64 who, u64 seed) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    belong(who, seed);
}

/// When nobody is left.
void shared::check() const {
    auto pool = hf::pool::open(path_, options());
    if (!pool) broken(pool.error());
    auto found = object::find(*pool, "it");
    if (!found) broken(found.error());
    u64 all = 0;
    for (u64 who = 0; who < members; ++who) {
        const u64 last = found->call<&ledger::last>(who), least = words_.told[who].number;
        if (last < least) broken("calls that had an answer", least, last);
        all += last;
    }
    if (const u64 wrong = found->call<&ledger::unexpected>(); wrong != 0)
        broken("calls lost, made twice or out of order", 0, wrong);
    if (const u64 count = found->call<&ledger::count>(); count != all)
        broken("calls in all", all, count);
}

bool shared::one_pool(std::mt19937_64& chance, u64 kills) {
    std::filesystem::remove(path_);
    for (auto& each : words_.told) each.number = each.answer = 0;
    std::array<pid_t, members> all{};
    for (u64 who = 0; who < members; ++who) all[who] = new_child(who, chance());
    const auto killed = [&](u64 who) { // false: it had ended by itself, because something was wrong
        ::kill(all[who], SIGKILL);
        int how = 0;
        return ::waitpid(all[who], &how, 0) == all[who] && WIFSIGNALED(how) &&
               WTERMSIG(how) == SIGKILL;
    };
    bool well = true;
    for (u64 k = 0; k < kills && well; ++k) {
        const u64 before = words_.calls; // they go on: with a server, after recovery
        for (int wait = 0; wait < 5000 && words_.calls == before; ++wait) ::usleep(1000);
        ::usleep(static_cast<useconds_t>(chance() % 30'000));
        const u64 what = chance() % 10, other = chance() % members;
        std::array<bool, members> goes{};
        for (u64 who = 0; who < members; ++who) // the server, or any, or all
            goes[who] = what >= 8 || (what < 5 ? all[who] == words_.server : who == other);
        for (u64 who = 0; who < members; ++who) well = (!goes[who] || killed(who)) && well;
        for (u64 who = 0; who < members; ++who) {
            const u64 seed = chance();
            if (goes[who] && well) all[who] = new_child(who, seed);
        }
    }
    for (u64 who = 0; who < members; ++who) well = killed(who) && well;
    if (well) check();
    return well;
}

int shared::run(int argc, char** argv) {
    u64 kills = 60, seed = 20260101;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--kills") == 0) kills = std::strtoull(argv[i + 1], nullptr, 10);
        else if (std::strcmp(argv[i], "--seed") == 0)
            seed = std::strtoull(argv[i + 1], nullptr, 10);
        else return std::fputs("options: [--kills N] [--seed N]\n", stderr), 2;
    }
    std::string directory = "/dev/shm/hf_kill_shared.XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return 2;
    path_ = directory + "/pool.hf";
    std::mt19937_64 chance(seed);
    bool well = true;
    for (u64 done = 0; done < kills && well; done += kills_of_a_pool) {
        const u64 number = done / kills_of_a_pool;
        mode_ = number % 2 == 0 ? hf::mode::process : hf::mode::pmem;
        log_bytes_ = number % 4 < 2 ? 1_KiB : 64_KiB;
        well = one_pool(chance, std::min(kills_of_a_pool, kills - done));
    }
    const auto print = [](const std::atomic<u64>& n) { return static_cast<unsigned long long>(n); };
    std::printf("seed %llu: %llu kills, %llu servers, %llu times the others joined again, %llu "
                "groups of calls acknowledged, %llu answers asked for again: %s\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(kills),
                print(words_.served), print(words_.ended), print(words_.calls),
                print(words_.asked_again), well ? "nothing lost, nothing made twice" : "FAILED");
    const bool enough =
        words_.served > kills / 8 && words_.calls > kills && words_.asked_again > kills / 16;
    if (well && enough) std::filesystem::remove_all(directory);
    else std::printf("kept: %s\n", directory.c_str());
    return well && enough ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) { return shared().run(argc, argv); }
