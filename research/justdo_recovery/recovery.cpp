// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a pool takes to open whose process was killed with a section of engine justdo open on
// every thread, and where the time goes (JUSTDO §7.3): mapping, root, checking, resuming. The
// sections are transfers, instrumented by hand (justdo/test_support.hpp), that hold two locks each.
// Prints one JSON object.
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/justdo.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf::justdo::by_hand;

constexpr unsigned threads_max = 64;
struct bank {
    account accounts[2 * threads_max];
};

struct asked {
    std::uint64_t mib = 100, filled_mib = 0;
    unsigned threads = 16, opens = 7;
    std::string directory = "/dev/shm";
};
/// The parts of one open, in milliseconds.
struct parts {
    double map, root, check, resume, open;
    std::uint32_t resumed;
};

hf::pool open_pool(const asked& a, const std::string& path) {
    hf::open_options o;
    o.layout = "bench/justdo recovery/1";
    o.create_bytes = o.max_bytes = a.mib << 20;
    o.max_threads = threads_max;
    o.expert.prefault = false;
    o.engines = {hf::justdo::engine()};
    auto opened = hf::pool::open(path, o);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::_Exit(1);
    return std::move(*opened);
}

/// Ends as a killed process does, once every thread holds both of its locks.
[[noreturn]] void leave_open(const asked& a, const std::string& path) {
    static std::atomic<unsigned> parked{0};
    hf::pool p = open_pool(a, path);
    auto* const b = p.root<bank>();
    std::vector<std::thread> all;
    for (unsigned t = 0; t < a.threads; ++t)
        all.emplace_back([=] {
            at_point = [](const char*, std::uint32_t point) {
                if (point != 3) return;
                parked.fetch_add(1);
                for (;;) ::pause();
            };
            transfer(&b->accounts[2 * t], &b->accounts[2 * t + 1], 1);
        });
    while (parked != a.threads) std::this_thread::yield();
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
}

void open_again(const asked& a, const std::string& path, parts& out) {
    hf::pool p = open_pool(a, path);
    const auto start = std::chrono::steady_clock::now();
    const bank* const b = p.root<bank>();
    out.root =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (b == nullptr) std::_Exit(1);
    const hf::pool::impl& in = p.internals();
    out.map = in.map_ms, out.check = in.check_ms, out.resume = in.sections_ms;
    out.open = p.recovered().open_ms, out.resumed = p.recovered().resumed;
    hf::justdo::wait(p);
    for (unsigned t = 0; t < a.threads; ++t) // whole, so that it can be cut short next
        if (b->accounts[2 * t].balance + b->accounts[2 * t + 1].balance != 0) std::_Exit(2);
}

template <class Body> bool in_child(Body&& body) {
    const pid_t child = ::fork();
    if (child == 0) body(), std::_Exit(0);
    int how = 0;
    ::waitpid(child, &how, 0);
    return (WIFEXITED(how) && WEXITSTATUS(how) == 0) ||
           (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

} // namespace

int main(int argc, char** argv) {
    asked a;
    CLI::App app{"Recovery of sections of engine justdo, its parts timed apart"};
    app.add_option("--mib", a.mib, "of the pool")
        ->check(CLI::Range(1, 1 << 20))
        ->capture_default_str();
    app.add_option("--filled-mib", a.filled_mib, "of it allocated, in blocks of 240 bytes")
        ->capture_default_str();
    app.add_option("--threads", a.threads, "each with a section open")
        ->check(CLI::Range(1U, threads_max))
        ->capture_default_str();
    app.add_option("--opens", a.opens)->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--dir", a.directory)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    const std::string path = a.directory + "/hf_justdo_recovery." + std::to_string(::getpid());
    auto* const seen = static_cast<parts*>(
        ::mmap(nullptr, sizeof(parts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    bool good = seen != MAP_FAILED && in_child([&] {
                    hf::pool p = open_pool(a, path);
                    for (std::uint64_t left = a.filled_mib << 20; left >= 240; left -= 240)
                        if (hf_alloc(240) == nullptr) std::_Exit(1);
                });
    std::vector<parts> all;
    for (unsigned i = 0; i < a.opens && good; ++i) {
        good =
            in_child([&] { leave_open(a, path); }) && in_child([&] { open_again(a, path, *seen); });
        if (good) all.push_back(*seen);
    }
    ::unlink(path.c_str());
    if (!good) return std::fprintf(stderr, "a run failed\n"), 1;
    nlohmann::ordered_json out{{"name", "justdo-recovery"},  {"mib", a.mib},
                               {"filled_mib", a.filled_mib}, {"threads", a.threads},
                               {"opens", a.opens},           {"resumed", all.back().resumed}};
    const auto add = [&](const char* name, double parts::* part) {
        std::vector<double> each;
        for (const parts& p : all) each.push_back(p.*part);
        std::ranges::sort(each);
        out[std::string(name) + "_ms"] = each[each.size() / 2];
        out[std::string(name) + "_ms_max"] = each.back();
    };
    add("map", &parts::map), add("root", &parts::root), add("check", &parts::check);
    add("resume", &parts::resume), add("open", &parts::open);
    std::printf("%s\n", out.dump().c_str());
    return 0;
}
