// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_beside: processes that read beside a writer (open_options::shared), and kills of readers, of the writer, of both,
// at moments drawn from a seed.                                                            test/kill/README.md
//
// The writer has a thread that gives all entries of a map the next number, in one update, and one that does so with a
// vector; it reclaims and closes at times. A reader finds the same number in all of a snapshot, no older than what was acknowledged before it took that;
// finds it again when it has kept the snapshot for a while; and has it still when the writer has been killed and another one
// has recovered the pool.
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/vector.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf::literals;
using numbers = hf::mod::map<std::uint64_t, std::uint64_t>;
using row = hf::mod::vector<std::uint64_t>;

constexpr std::uint64_t entries = 100;
constexpr unsigned readers = 2, kills_of_a_pool = 12;
constexpr std::size_t kept_max = 4;

struct shared_words {                          // outlive every child
    std::atomic<std::uint64_t> in_map, in_row; // acknowledged
    std::atomic<std::uint64_t> snapshots, checked_again, refused;
};

struct plan {
    std::uint64_t kills = 60, seed = 20260101;
    std::string path;
    hf::mode mode = hf::mode::process;
    shared_words* words = nullptr;
};

[[noreturn]] void broken(const char* what, std::uint64_t expected, std::uint64_t found) {
    std::fprintf(stderr, "kill_beside: %s: expected %llu, found %llu\n", what,
                 static_cast<unsigned long long>(expected), static_cast<unsigned long long>(found));
    std::fflush(stderr);
    ::_exit(1);
}
[[noreturn]] void broken(const hf::status& s) {
    std::fprintf(stderr, "kill_beside: %s\n", s.what().c_str());
    ::_exit(1);
}

hf::result<hf::pool> open(const plan& p, bool shared, bool read_only) {
    hf::open_options how;
    how.layout = "beside/1";
    how.create_bytes = 1_MiB;
    how.mode = p.mode;
    how.engines = {hf::mod::engine()};
    how.shared = shared;
    how.read_only = read_only;
    return hf::pool::open(p.path, how);
}

template <class Version> std::uint64_t round_of(const Version& map) {
    std::uint64_t count = 0, round = 0;
    for (const auto& [key, value] : map) {
        if (count++ == 0) round = value;
        if (value != round) broken("an entry of a map's version", round, value);
    }
    if (count != entries || map.size() != entries)
        broken("entries of a map's version", entries, count);
    return round;
}
template <class Version> std::uint64_t round_of_row(const Version& list) {
    if (list.size() != entries) broken("elements of a vector's version", entries, list.size());
    for (std::uint64_t i = 0; i < entries; ++i)
        if (list[i] != list[0]) broken("an element of a vector's version", list[0], list[i]);
    return list[0];
}

void write_map(numbers& all, std::uint64_t round) {
    const hf::status done = all.update([&](auto& to) {
        for (std::uint64_t i = 0; i < entries; ++i) to.insert_or_assign(i, round);
    });
    if (!done.ok()) broken(done);
}
void write_row(row& list, std::uint64_t round) {
    const hf::status done = list.update([&](auto& to) {
        to.clear();
        for (std::uint64_t i = 0; i < entries; ++i) to.push_back(round);
    });
    if (!done.ok()) broken(done);
}

[[noreturn]] void write_for_ever(const plan& p, std::uint64_t seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto pool = open(p, true, false);
        if (!pool) broken(pool.error());
        auto all = *numbers::open(*pool, {"numbers"});
        auto list = *row::open(*pool, {"row"});
        std::atomic<bool> stop = false;
        std::thread other([&] { // one asks for readers while the other commits
            while (!stop) {
                const std::uint64_t round = p.words->in_row + 1;
                write_row(list, round);
                p.words->in_row = round;
            }
        });
        for (std::uint64_t until = chance() % 400 + 50; until-- > 0;) {
            const std::uint64_t round = p.words->in_map + 1;
            write_map(all, round);
            p.words->in_map = round;
            if (chance() % 50 == 0)
                if (hf::status s = hf::mod::store::of(*pool).collect(); !s.ok()) broken(s);
        }
        stop = true;
        other.join();
    }
}

[[noreturn]] void read_for_ever(const plan& p, std::uint64_t seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto pool = open(p, true, true);
        if (!pool) { // a writer was killed before it had recovered the pool
            if (pool.error().code() != hf::errc::torn && pool.error().code() != hf::errc::in_use)
                broken(pool.error());
            ++p.words->refused;
            ::usleep(500);
            continue;
        }
        const auto all = numbers::open(*pool, {"numbers"});
        const auto list = row::open(*pool, {"row"});
        if (!all) broken(all.error());
        if (!list) broken(list.error());
        std::deque<std::pair<numbers::version, std::uint64_t>> kept;
        const bool keeps = chance() % 2 == 0; // else nothing is held back between two snapshots
        for (std::uint64_t until = chance() % 3000; until-- > 0;) {
            const std::uint64_t least = p.words->in_map, least_row = p.words->in_row;
            const auto now = all->snapshot();
            const auto row_now = list->snapshot();
            const std::uint64_t round = round_of(now), also = round_of_row(row_now);
            ++p.words->snapshots;
            if (round < least) broken("what was acknowledged, in a map", least, round);
            if (also < least_row) broken("what was acknowledged, in a vector", least_row, also);
            if (keeps && chance() % 16 == 0) kept.emplace_back(now, round);
            if (kept.size() <= kept_max) continue;
            if (const std::uint64_t still = round_of(kept.front().first);
                still != kept.front().second)
                broken("a version that was kept", kept.front().second, still);
            ++p.words->checked_again;
            kept.pop_front();
        }
    }
}

template <class Body> pid_t spawn(Body&& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(0);
}

/// False when the child had ended by itself: it found something wrong.
bool kill_one(pid_t child) {
    ::kill(child, SIGKILL);
    int how = 0;
    return ::waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
}

/// What is left, looked at by one that has the pool alone.
bool whole(const plan& p) {
    auto pool = open(p, false, false);
    if (!pool) broken(pool.error());
    auto& store = hf::mod::store::of(*pool);
    if (hf::status s = store.collect(); !s.ok()) broken(s);
    if (hf::status s = store.verify(); !s.ok()) broken(s);
    const auto expect = [](const char* what, std::uint64_t acknowledged, std::uint64_t found) {
        if (found < acknowledged || found > acknowledged + 1) broken(what, acknowledged, found);
    };
    expect("the round left in the map", p.words->in_map,
           round_of(numbers::open(*pool, {"numbers"})->snapshot()));
    expect("the round left in the vector", p.words->in_row,
           round_of_row(row::open(*pool, {"row"})->snapshot()));
    return store.account().retired == 0;
}

bool one_pool(const plan& p, std::mt19937_64& chance, std::uint64_t kills) {
    std::filesystem::remove(p.path);
    p.words->in_map = p.words->in_row = 0;
    {
        auto pool = open(p, true, false);
        if (!pool) broken(pool.error());
        auto all = *numbers::open(*pool, {"numbers"});
        auto list = *row::open(*pool, {"row"});
        write_map(all, 0);
        write_row(list, 0);
    }
    const auto new_writer = [&] {
        return spawn([&, seed = chance()] { write_for_ever(p, seed); });
    };
    const auto new_reader = [&] { return spawn([&, seed = chance()] { read_for_ever(p, seed); }); };
    pid_t writer = new_writer();
    std::array<pid_t, readers> reading{};
    for (pid_t& each : reading) each = new_reader();
    bool well = true;
    for (std::uint64_t k = 0; k < kills && well; ++k) {
        ::usleep(static_cast<useconds_t>(chance() % 12'000));
        const auto what = chance() % 10; // 0 to 3 the writer, 4 to 6 a reader, 7 to 9 both
        pid_t& reader = reading[chance() % readers];
        if (what >= 4) well = kill_one(reader) && well;
        if (what < 4 || what > 6) {
            well = kill_one(writer) && well;
            if (well) writer = new_writer();
        }
        if (what >= 4 && well) reader = new_reader();
    }
    for (const pid_t each : reading) well = kill_one(each) && well;
    well = kill_one(writer) && well;
    return well && whole(p);
}

} // namespace

int main(int argc, char** argv) {
    plan p;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--kills") == 0) p.kills = std::strtoull(argv[i + 1], nullptr, 10);
        else if (std::strcmp(argv[i], "--seed") == 0)
            p.seed = std::strtoull(argv[i + 1], nullptr, 10);
        else return std::fputs("options: [--kills N] [--seed N]\n", stderr), 2;
    }
    char directory[] = "/dev/shm/hf_kill_beside.XXXXXX";
    if (::mkdtemp(directory) == nullptr) return 2;
    p.path = std::string(directory) + "/pool.hf";
    void* const shared = ::mmap(nullptr, sizeof(shared_words), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    p.words = ::new (shared) shared_words{};
    std::mt19937_64 chance(p.seed);
    bool well = true;
    for (std::uint64_t done = 0; done < p.kills && well; done += kills_of_a_pool) {
        p.mode = done / kills_of_a_pool % 2 == 0 ? hf::mode::process : hf::mode::pmem;
        well = one_pool(p, chance, std::min<std::uint64_t>(kills_of_a_pool, p.kills - done));
    }
    std::printf("seed %llu: %llu kills, %llu snapshots, %llu versions kept and looked at again, "
                "%llu refused while "
                "nobody had recovered the pool: %s\n",
                static_cast<unsigned long long>(p.seed), static_cast<unsigned long long>(p.kills),
                static_cast<unsigned long long>(p.words->snapshots),
                static_cast<unsigned long long>(p.words->checked_again),
                static_cast<unsigned long long>(p.words->refused),
                well ? "nothing lost" : "FAILED");
    well = well && p.words->snapshots > p.kills && p.words->checked_again > 0;
    if (well) std::filesystem::remove_all(directory);
    else std::printf("kept: %s\n", directory);
    return well ? 0 : 1;
}
