// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server's store without its network: sets and gets of 16-byte keys and 64-byte values, in
// four shares (Clobber §5.6), on the build that this program is linked with. Prints one JSON
// object: processor time, entries and bytes of the log for each. A get that finds another value
// than its key's ends the program.
#include <kv/store/store.hpp>

#include <holdfast/author/persist.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <unistd.h>

namespace {

using namespace hf::kv;

struct asked {
    std::uint64_t ops = 100000, keys = 100000;
    unsigned seed = 1;
    std::string directory = "/dev/shm";
};

std::string key_of(std::uint64_t number) { return fmt::format("key{:013}", number); }
std::string value_of(std::uint64_t number) { return fmt::format("{:064}", number); }

void set(store& in, thread_counts& counted, std::uint64_t number) {
    request what;
    const std::string key = key_of(number), value = value_of(number);
    what.what = verb::set;
    what.key = key;
    what.value_bytes = static_cast<std::uint32_t>(value.size());
    change done;
    if (in.write(what, value, counted, done) != outcome::stored)
        std::fprintf(stderr, "bench_server: %s is not stored\n", key.c_str()), std::_Exit(1);
}

void get(store& in, thread_counts& counted, std::uint64_t number) {
    const std::string key = key_of(number);
    bool right = false;
    const bool found =
        in.get(key, counted, [&](const item_view& of) { right = of.value == value_of(number); });
    if (!found || !right)
        std::fprintf(stderr, "bench_server: %s has not its value\n", key.c_str()), std::_Exit(1);
}

double processor_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
    asked a;
    CLI::App app{"The server's store without its network"};
    app.add_option("--ops", a.ops)->check(CLI::Range(100, 100000000))->capture_default_str();
    app.add_option("--keys", a.keys)->check(CLI::Range(1, 10000000))->capture_default_str();
    app.add_option("--seed", a.seed, "of the keys' order")->capture_default_str();
    app.add_option("--dir", a.directory)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    const std::string path = a.directory + "/hf_server." + std::to_string(::getpid());
    nlohmann::ordered_json shares = nlohmann::ordered_json::array();
    {
        store_options options;
        options.path = path;
        options.mode = hf::mode::pmem;
        options.max_bytes = 1024 * a.keys + (64U << 20);
        auto opened = store::open(options);
        if (!opened) return std::fprintf(stderr, "%s\n", opened.error().what().c_str()), 1;
        store& in = **opened;
        thread_counts& counted = in.counted().join();
        for (std::uint64_t i = 0; i < a.keys; ++i) set(in, counted, i);
        std::minstd_rand random(a.seed);
        for (const unsigned percent : {95U, 75U, 25U, 5U}) {
            const hf::persist::counters before = hf::persist::thread_counters();
            const double start = processor_ns();
            for (std::uint64_t i = 0; i < a.ops; ++i) {
                const std::uint64_t number = random() % a.keys;
                if (random() % 100 < percent) set(in, counted, number);
                else get(in, counted, number);
            }
            const auto each = [&](double all) { return all / static_cast<double>(a.ops); };
            const double took = processor_ns() - start;
            const hf::persist::counters after = hf::persist::thread_counters();
            shares.push_back({{"sets_percent", percent},
                              {"cpu_ns_per_op", each(took)},
                              {"log_entries_per_op",
                               each(static_cast<double>(after.log_entries - before.log_entries))},
                              {"log_bytes_per_op",
                               each(static_cast<double>(after.log_bytes - before.log_bytes))}});
        }
    }
    ::unlink(path.c_str());
    const nlohmann::ordered_json out{
        {"name", "server"}, {"engine", store::engine_name()}, {"ops", a.ops}, {"shares", shares}};
    std::printf("%s\n", out.dump().c_str());
    return 0;
}
