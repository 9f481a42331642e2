// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache under one lock, as memcached's when it had one (Clobber §5.6, Fig. 10): sets and gets of
// 16-byte keys and 64-byte values in four shares, under a spin lock and a reader-writer lock, over
// threads, for each engine. Prints one JSON object with every round's speed and processor time. A
// get that finds what no set has stored ends the program. A cache that lacks a key in the end ends
// it, too.
#include "../peer/measured.hpp"
#include "../peer/pmdk.hpp"
#include "../peer/random.hpp"
#include "cache.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <pthread.h>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

using namespace hf::apps::server;

struct asked {
    std::vector<std::string> engines, locks{"spin", "rw"};
    std::vector<unsigned> threads{1, 2, 4}, sets{95, 75, 25, 5};
    std::uint64_t ops = 100000, keys = 100000, rounds = 1, seed = 1;
    std::string directory = "/dev/shm";
};

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "bench_server_mixes: %s\n", why.c_str());
    std::_Exit(1);
}

/// The lock that the paper gave to writers and readers alike.
class spin_lock {
public:
    spin_lock() { ::pthread_spin_init(&word_, PTHREAD_PROCESS_PRIVATE); }
    ~spin_lock() { ::pthread_spin_destroy(&word_); }
    spin_lock(const spin_lock&) = delete;
    spin_lock& operator=(const spin_lock&) = delete;
    void lock() { ::pthread_spin_lock(&word_); }
    void unlock() { ::pthread_spin_unlock(&word_); }
    void lock_shared() { lock(); }
    void unlock_shared() { unlock(); }

private:
    pthread_spinlock_t word_;
};

cache_key key_of(std::uint64_t number) {
    cache_key key;
    const std::string text = fmt::format("key{:013}", number);
    std::memcpy(key.data(), text.data(), sizeof key);
    return key;
}

// A value names its key and the set that has stored it; the other words follow from these.
cache_value value_of(std::uint64_t number, std::uint64_t stamp) {
    cache_value value{number, stamp};
    hf::apps::random_words rest(number ^ stamp);
    for (std::size_t i = 2; i < value.size(); ++i) value[i] = rest.word();
    return value;
}

bool is_of(const cache_value& value, std::uint64_t number) {
    return value[0] == number && value == value_of(number, value[1]);
}

struct done {
    double ops_per_second = 0, cpu_ns_per_op = 0, log_entries_per_op = 0;
};

/// One thread's part: 'ops' sets and gets of random keys. Returns what hf::apps::measured says.
template <class Lock>
nlohmann::ordered_json work(cache& in, Lock& lock, unsigned percent, std::uint64_t ops,
                            std::uint64_t keys, std::uint64_t seed) {
    hf::apps::random_words random(seed);
    const hf::apps::measured spent;
    for (std::uint64_t i = 0; i < ops; ++i) {
        const std::uint64_t number = random.below(static_cast<std::uint32_t>(keys));
        const cache_key key = key_of(number);
        if (random.below(100) < percent) {
            const cache_value value = value_of(number, random.word());
            const std::unique_lock held(lock);
            if (!in.set(key, value)) stop("the pool is full");
        } else {
            cache_value found;
            std::shared_lock held(lock);
            const bool there = in.get(key, found);
            held.unlock();
            if (!there || !is_of(found, number))
                stop(fmt::format("key {} has not its value", number));
        }
    }
    nlohmann::ordered_json out;
    spent.add_to(out, ops);
    return out;
}

template <class Lock>
done run(cache& in, const asked& a, unsigned threads, unsigned percent, std::uint64_t seed) {
    Lock lock;
    std::atomic<unsigned> ready = 0;
    std::atomic<bool> go = false;
    std::vector<nlohmann::ordered_json> said(threads);
    std::vector<std::thread> crew;
    for (unsigned t = 0; t < threads; ++t)
        crew.emplace_back([&, t] {
            ++ready;
            go.wait(false);
            said[t] = work(in, lock, percent, a.ops / threads, a.keys, seed * 64 + t);
        });
    while (ready < threads) std::this_thread::yield();
    const auto start = std::chrono::steady_clock::now();
    go = true;
    go.notify_all();
    for (std::thread& each : crew) each.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    done all{.ops_per_second = static_cast<double>(a.ops / threads * threads) / took.count()};
    for (const auto& one : said) {
        all.cpu_ns_per_op +=
            1e9 * one["cpu_seconds"].get<double>() / static_cast<double>(a.ops / threads * threads);
        all.log_entries_per_op += one["log_entries_per_step"].get<double>() / threads;
    }
    return all;
}

// Engine, lock, threads, sets.
using cell = std::tuple<std::string, std::string, unsigned, unsigned>;

void run_engine(const std::string& engine, const asked& a, std::uint64_t round,
                std::map<cell, std::vector<done>>& all) {
    const std::string path = fmt::format("{}/hf_mixes.{}", a.directory, ::getpid());
    ::unlink(path.c_str());
    {
        const auto made = make_cache(engine, {path, a.keys});
        if (!made) stop(made.error().what());
        cache& in = **made;
        for (std::uint64_t i = 0; i < a.keys; ++i)
            if (!in.set(key_of(i), value_of(i, 0))) stop("the pool is full");
        for (const std::string& lock : a.locks)
            for (const unsigned threads : a.threads)
                for (const unsigned percent : a.sets) {
                    const done one =
                        lock == "spin"
                            ? run<spin_lock>(in, a, threads, percent, a.seed + round)
                            : run<std::shared_mutex>(in, a, threads, percent, a.seed + round);
                    all[{engine, lock, threads, percent}].push_back(one);
                }
        cache_value found;
        for (std::uint64_t i = 0; i < a.keys; ++i)
            if (!in.get(key_of(i), found) || !is_of(found, i))
                stop(fmt::format("key {} is lost", i));
        if (in.size() != a.keys)
            stop(fmt::format("{} keys in the end, expected {}", in.size(), a.keys));
    }
    ::unlink(path.c_str());
}

} // namespace

int main(int argc, char** argv) {
    hf::apps::pmdk::restart_for_pmdk(true, argv);
    asked a;
    std::vector<std::string> every{"pmdk"};
#define HF_NAME(build) every.emplace_back(#build);
    HF_CACHE_ENGINES(HF_NAME)
    a.engines = every;
    CLI::App app{"A server's cache under one lock"};
    app.add_option("--engine", a.engines)->check(CLI::IsMember(every))->capture_default_str();
    app.add_option("--lock", a.locks)->check(CLI::IsMember({"spin", "rw"}))->capture_default_str();
    app.add_option("--threads", a.threads)->check(CLI::Range(1, 64))->capture_default_str();
    app.add_option("--sets", a.sets, "Of 100 requests")
        ->check(CLI::Range(0, 100))
        ->capture_default_str();
    app.add_option("--ops", a.ops, "Of each run")
        ->check(CLI::Range(100, 100000000))
        ->capture_default_str();
    app.add_option("--keys", a.keys)->check(CLI::Range(1, 10000000))->capture_default_str();
    app.add_option("--rounds", a.rounds)->check(CLI::Range(1, 100))->capture_default_str();
    app.add_option("--seed", a.seed)->capture_default_str();
    app.add_option("--dir", a.directory)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    std::map<cell, std::vector<done>> all;
    for (std::uint64_t round = 0; round < a.rounds; ++round)
        for (const std::string& engine : a.engines) run_engine(engine, a, round, all);
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const auto& [of, said] : all) {
        const auto& [engine, lock, threads, sets] = of;
        nlohmann::ordered_json one{
            {"engine", engine}, {"lock", lock}, {"threads", threads}, {"sets_percent", sets}};
        for (const done& round : said) {
            one["ops_per_second"].push_back(round.ops_per_second);
            one["cpu_ns_per_op"].push_back(round.cpu_ns_per_op);
        }
        one["log_entries_per_op"] = said.front().log_entries_per_op;
        runs.push_back(one);
    }
    const nlohmann::ordered_json out{
        {"name", "server-mixes"}, {"ops", a.ops}, {"keys", a.keys}, {"runs", runs}};
    std::printf("%s\n", out.dump().c_str());
    return 0;
}
