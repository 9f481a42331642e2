// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_views: processes that look at persistent objects beside a writer (simpo::view), and kills of readers, of the writer,
// of both, at moments drawn from a seed.                                                    test/kill/README.md
//
// The writer defers, commits and checkpoints as fast as it can, by two threads on one object and by one on another, whose
// groups are of four calls; their logs are so short that they go round all the time. Beside that an object comes, goes and
// is remade, where readers look for it. A reader finds the cells of each object add up, groups whole, nothing older than
// what was acknowledged before it looked, and never less than it has seen. What any reader has seen is there when a writer
// that was killed is followed by the next.
#include <holdfast/mod/store.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/view.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf::literals;
using u64 = std::uint64_t;

constexpr unsigned readers = 2, kills_of_a_pool = 12, group = 4;

/// Cells that add up to the sum of what was added.
class ledger {
public:
    static constexpr hf::simpo::class_name simpo_class{"ledger", 1};
    void add(u64 n) noexcept {
        cells_[count_ % cells_.size()] += n;
        count_ += 1;
        sum_ += n;
    }
    void add_wide(std::array<u64, 20> all) noexcept { add(all[19]); } // a record of several lines
    u64 add_and_count(u64 n) noexcept { return add(n), count_; }
    u64 count() const noexcept { return count_; }
    bool adds_up() const noexcept {
        u64 all = 0;
        for (const u64 c : cells_) all += c;
        return all == sum_;
    }

private:
    std::array<u64, 1500> cells_{};
    u64 sum_ = 0, count_ = 0;
};
using object = hf::simpo::object<ledger>;
using view = hf::simpo::view<ledger>;

struct shared_words { // outlive every child
    std::array<std::atomic<u64>, 2> told,
        seen; // counts: acknowledged to the writer; found by a reader
    std::atomic<u64> looks, changed, overtaken, others, refused;
};
constexpr const char* names[] = {"by two", "by one"};

struct plan {
    u64 kills = 60, seed = 20260101, log_bytes = 1_KiB;
    std::string path;
    hf::mode mode = hf::mode::process;
    bool apart = false, with_mod = false;
    shared_words* words = nullptr;
};

[[noreturn]] void broken(const char* what, u64 expected, u64 found) {
    std::fprintf(stderr, "kill_views: %s: expected %llu, found %llu\n", what,
                 static_cast<unsigned long long>(expected), static_cast<unsigned long long>(found));
    std::fflush(stderr);
    ::_exit(1);
}
[[noreturn]] void broken(const hf::status& s) {
    std::fprintf(stderr, "kill_views: %s\n", s.what().c_str());
    ::_exit(1);
}

void raise(std::atomic<u64>& word, u64 to) {
    for (u64 was = word; was < to && !word.compare_exchange_weak(was, to);) {}
}

hf::result<hf::pool> open(const plan& p, bool shared, bool read_only) {
    hf::open_options how;
    how.layout = "views/1";
    how.create_bytes = 1_MiB;
    how.mode = p.mode;
    how.engines = {hf::simpo::engine()};
    if (p.with_mod) how.engines.push_back(hf::mod::engine());
    how.shared = shared;
    how.read_only = read_only;
    return hf::pool::open(p.path, how);
}

/// The object of readers that looks for one in vain, finds it, and another one in its place.
void change_another(const plan& p, hf::pool& pool, std::mt19937_64& chance) {
    const hf::simpo::object_options how{p.log_bytes};
    if (chance() % 3 == 0) (void)hf::simpo::drop(pool, "another");
    else if (chance() % 3 == 0)
        (void)hf::simpo::remake<ledger, ledger>(pool, "another", how,
                                                [](const ledger& was) { return was; });
    else (void)object::create(pool, "another", how);
    auto found = object::find(pool, "another");
    for (u64 n = chance() % 40; found && n > 0; --n) found->defer<&ledger::add>(n);
    if (found) found->sync();
}

[[noreturn]] void write_for_ever(const plan& p, u64 seed) {
    std::mt19937_64 chance(seed);
    for (;;) {
        auto pool = open(p, true, false);
        if (!pool) broken(pool.error());
        auto by_two = object::find(*pool, names[0]), by_one = object::find(*pool, names[1]);
        if (!by_two || !by_one) broken("objects that were made", 2, 0);
        std::atomic<bool> stop = false;
        std::thread other([&] {
            for (u64 n = 0; !stop; ++n) {
                by_two->defer<&ledger::add>(n);
                if (n % 7 == 0) raise(p.words->told[0], by_two->call<&ledger::add_and_count>(n));
                if (n % 1000 == 0) by_two->checkpoint();
            }
        });
        for (u64 until = chance() % 20'000 + 1000; until-- > 0;) {
            by_two->defer<&ledger::add_wide>(std::array<u64, 20>{until});
            if (chance() % 16 == 0) by_two->sync();
            for (unsigned i = 1; i < group; ++i) by_one->defer<&ledger::add>(until + i);
            raise(p.words->told[1], by_one->call<&ledger::add_and_count>(until));
            if (chance() % 64 == 0) change_another(p, *pool, chance);
        }
        stop = true;
        other.join();
    }
}

/// One look at each; 'least': what readers and the writer know of already.
void look_at(const plan& p, unsigned which, view& at, u64& count, u64& version) {
    const u64 told = p.words->told[which], seen = p.words->seen[which];
    const hf::status s = at.refresh();
    ++p.words->looks;
    if (s.code() == hf::errc::in_use) ++p.words->overtaken;
    else if (!s.ok()) broken(s);
    if (!at->adds_up()) broken("cells that add up", 1, 0);
    if (at->count() < count) broken("what this reader has seen", count, at->count());
    if (at.version() < version) broken("the version that it had", version, at.version());
    if (s.ok() && at->count() < std::max(told, seen))
        broken("what was known when it looked", std::max(told, seen), at->count());
    if (which == 1 && at->count() % group != 0) broken("calls of whole groups", 0, at->count());
    if (at.version() != version) ++p.words->changed;
    count = at->count();
    version = at.version();
    raise(p.words->seen[which], count);
}

[[noreturn]] void read_for_ever(const plan& p, u64 seed) {
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
        for (u64 views = chance() % 20 + 1; views-- > 0;) {
            std::array<std::optional<view>, 2> at;
            std::array<u64, 2> count{}, version{};
            for (unsigned which : {0U, 1U}) {
                auto found = view::open(*pool, names[which]);
                if (found) at[which].emplace(std::move(*found));
                else if (found.error().code() != hf::errc::in_use) broken(found.error());
                else ++p.words->overtaken;
            }
            for (u64 looks = chance() % 100; looks-- > 0;) {
                const auto which = static_cast<unsigned>(chance() % 2);
                if (at[which]) look_at(p, which, *at[which], count[which], version[which]);
                if (chance() % 32 != 0) continue;
                const auto another = view::open(*pool, "another");
                ++p.words->others;
                if (another && !(*another)->adds_up()) broken("cells of another", 1, 0);
                if (!another && another.error().code() != hf::errc::not_found &&
                    another.error().code() != hf::errc::in_use)
                    broken(another.error());
            }
        }
    }
}

/// Writers on the first processor that there is, readers on the last: else both may have one, and take turns.
void keep_apart(bool reads) {
    cpu_set_t all, one;
    if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && (reads || CPU_COUNT(&one) == 0); ++cpu) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
    }
    ::sched_setaffinity(0, sizeof one, &one);
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
void look_alone(const plan& p) {
    auto pool = open(p, false, false);
    if (!pool) broken(pool.error());
    for (const unsigned which : {0U, 1U}) {
        const u64 least = std::max<u64>(p.words->told[which], p.words->seen[which]);
        auto found = object::find(*pool, names[which]);
        if (!found) broken(found.error());
        const u64 count = found->call<&ledger::count>();
        if (count < least) broken("what was acknowledged or seen", least, count);
        if (!found->call<&ledger::adds_up>()) broken("cells that add up", 1, 0);
    }
}

bool one_pool(const plan& p, std::mt19937_64& chance, u64 kills) {
    std::filesystem::remove(p.path);
    for (const unsigned which : {0U, 1U}) p.words->told[which] = p.words->seen[which] = 0;
    {
        auto pool = open(p, true, false);
        if (!pool) broken(pool.error());
        for (const char* name : names)
            if (auto made = object::create(*pool, name, hf::simpo::object_options{p.log_bytes});
                !made)
                broken(made.error());
    }
    const auto new_writer = [&] {
        return spawn([&, seed = chance()] {
            if (p.apart) keep_apart(false);
            write_for_ever(p, seed);
        });
    };
    const auto new_reader = [&] {
        return spawn([&, seed = chance()] {
            if (p.apart) keep_apart(true);
            read_for_ever(p, seed);
        });
    };
    pid_t writer = new_writer();
    std::array<pid_t, readers> reading{};
    for (pid_t& each : reading) each = new_reader();
    bool well = true;
    for (u64 k = 0; k < kills && well; ++k) {
        ::usleep(static_cast<useconds_t>(chance() % 40'000));
        const auto what = chance() % 10; // 0 to 4 the writer, 5 to 6 a reader, 7 to 9 both
        pid_t& reader = reading[chance() % readers];
        if (what >= 5) well = kill_one(reader) && well;
        if (what < 5 || what > 6) {
            well = kill_one(writer) && well;
            if (well) writer = new_writer();
        }
        if (what >= 5 && well) reader = new_reader();
    }
    for (const pid_t each : reading) well = kill_one(each) && well;
    well = kill_one(writer) && well;
    if (well) look_alone(p);
    return well;
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
    char directory[] = "/dev/shm/hf_kill_views.XXXXXX";
    if (::mkdtemp(directory) == nullptr) return 2;
    p.path = std::string(directory) + "/pool.hf";
    void* const shared = ::mmap(nullptr, sizeof(shared_words), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    p.words = ::new (shared) shared_words{};
    std::mt19937_64 chance(p.seed);
    bool well = true;
    for (u64 done = 0; done < p.kills && well; done += kills_of_a_pool) {
        const u64 number = done / kills_of_a_pool;
        p.mode = number % 2 == 0 ? hf::mode::process : hf::mode::pmem;
        p.log_bytes = number % 4 < 2 ? 1_KiB : 64_KiB;
        p.apart = number % 8 < 4;
        p.with_mod = number % 3 == 1; // which says that a pool may be read, too
        well = one_pool(p, chance, std::min<u64>(kills_of_a_pool, p.kills - done));
    }
    const auto number = [](const std::atomic<u64>& n) {
        return static_cast<unsigned long long>(n);
    };
    std::printf(
        "seed %llu: %llu kills, %llu looks, %llu of them at something new, %llu overtaken to the "
        "end, %llu looks at an "
        "object that comes and goes, %llu refused while nobody had recovered the pool: %s\n",
        static_cast<unsigned long long>(p.seed), static_cast<unsigned long long>(p.kills),
        number(p.words->looks), number(p.words->changed), number(p.words->overtaken),
        number(p.words->others), number(p.words->refused), well ? "nothing lost" : "FAILED");
    well = well && p.words->changed > 10 * p.kills && p.words->overtaken < p.words->looks / 10;
    if (well) std::filesystem::remove_all(directory);
    else std::printf("kept: %s\n", directory);
    return well ? 0 : 1;
}
