// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "beside_harness.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kill_test {

namespace {

using namespace hf::literals;

constexpr unsigned readers = 2;
constexpr u64 kills_of_a_pool = 12;

unsigned long long printed(u64 n) { return n; }

/// False when the child had ended by itself: (1).
bool kill_one(pid_t child) {
    ::kill(child, SIGKILL);
    int how = 0;
    return ::waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
}

} // namespace

void broken(const char* what, u64 expected, u64 found) {
    std::fprintf(stderr, "%s: %s: expected %llu, found %llu\n", program_invocation_short_name, what,
                 printed(expected), printed(found));
    std::fflush(stderr);
    ::_exit(1);
}
void broken(const hf::status& s) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, s.what().c_str());
    ::_exit(1);
}

void* shared_memory(std::size_t bytes) {
    void* const made =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) ::_exit(2);
    return made;
}

hf::result<hf::pool> beside_test::open(bool shared, bool read_only) const {
    hf::open_options how = options();
    how.create_bytes = 1_MiB;
    how.mode = mode_;
    how.shared = shared;
    how.read_only = read_only;
    return hf::pool::open(path_, how);
}

void beside_test::write_for_ever(u64 seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto pool = open(true, false);
        if (!pool) broken(pool.error());
        write(*pool, chance);
    }
}

void beside_test::read_for_ever(u64 seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto pool = open(true, true);
        if (!pool) { // a writer was killed before it had recovered the pool
            if (pool.error().code() != hf::errc::torn && pool.error().code() != hf::errc::in_use)
                broken(pool.error());
            ++refused_;
            ::usleep(500);
            continue;
        }
        read(*pool, chance);
    }
}

pid_t beside_test::new_child(bool reads, u64 seed) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    settle_in(reads);
    if (reads) read_for_ever(seed);
    write_for_ever(seed);
}

bool beside_test::one_pool(std::mt19937_64& chance, u64 kills) {
    std::filesystem::remove(path_);
    {
        auto pool = open(true, false);
        if (!pool) broken(pool.error());
        make(*pool);
    }
    pid_t writer = new_child(false, chance());
    std::array<pid_t, readers> reading{};
    for (pid_t& each : reading) each = new_child(true, chance());
    bool well = true;
    for (u64 k = 0; k < kills && well; ++k) {
        ::usleep(static_cast<useconds_t>(chance() % pace_.pause_us));
        const u64 what =
            chance() % 10; // first those of the writer, then of a reader, 7 to 9 of both
        pid_t& reader = reading[chance() % readers];
        const bool of_reader = what >= pace_.writers_kills;
        if (of_reader) well = kill_one(reader) && well;
        if (!of_reader || what > 6) {
            well = kill_one(writer) && well;
            if (well) writer = new_child(false, chance());
        }
        if (of_reader && well) reader = new_child(true, chance());
    }
    for (const pid_t each : reading) well = kill_one(each) && well;
    well = kill_one(writer) && well;
    if (!well) return false;
    auto pool = open(false, false); // by one that has it alone
    if (!pool) broken(pool.error());
    return is_whole(*pool);
}

int beside_test::run(int argc, char** argv) {
    u64 kills = 60, seed = 20260101;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--kills") == 0) kills = std::strtoull(argv[i + 1], nullptr, 10);
        else if (std::strcmp(argv[i], "--seed") == 0)
            seed = std::strtoull(argv[i + 1], nullptr, 10);
        else return std::fputs("options: [--kills N] [--seed N]\n", stderr), 2;
    }
    std::string directory = std::string("/dev/shm/hf_") + program_invocation_short_name + ".XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return 2;
    path_ = directory + "/pool.hf";
    std::mt19937_64 chance(seed);
    bool well = true;
    for (u64 done = 0; done < kills && well; done += kills_of_a_pool) {
        const u64 number = done / kills_of_a_pool;
        mode_ = number % 2 == 0 ? hf::mode::process : hf::mode::pmem;
        begin(number);
        well = one_pool(chance, std::min(kills_of_a_pool, kills - done));
    }
    std::printf("seed %llu: %llu kills, ", printed(seed), printed(kills));
    const bool enough = say(kills);
    std::printf(", %llu refused while nobody had recovered the pool: %s\n", printed(refused_),
                well ? "nothing lost" : "FAILED");
    well = well && enough;
    if (well) std::filesystem::remove_all(directory);
    else std::printf("kept: %s\n", directory.c_str());
    return well ? 0 : 1;
}

} // namespace kill_test
