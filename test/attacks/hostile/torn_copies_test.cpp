// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: salvage opens every copy of a pool in use, for writing and for reading, whatever moments
// its blocks are of. It never refuses, never crashes, never hangs, and leaves no lock taken. What
// it has opened opens again without it, with the work done meanwhile. Method: a writer runs
// sections of each engine, updates of MOD and calls of persistent objects on threads of their own,
// while its file is copied as `cp` does. Then 4-KiB blocks of two such copies are put together by a
// fixed seed, thousands of times, and opened in child processes. HOLDFAST_TORN_COPIES=100000 tries
// as many.
#include "sections.hpp"
#include <base/assert.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>
#include <verify/examine.hpp>
#include <verify/repair.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/justdo/routine.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::hostile;
using namespace hf::literals;

using image = std::vector<char>;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

class adder {
public:
    static constexpr simpo::class_name simpo_class{"adder", 1};
    void add(std::uint64_t n) noexcept { sum_ += n, cells_[n % cells_.size()] += n; }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 0;
    std::array<std::uint64_t, 1000> cells_{};
};

/// A section of engine justdo on these needs a lock log and frames that grow.
struct hall {
    hf::mutex locks[150];
    justdo::by_hand::plain_lock plain[150];
    std::uint64_t sum;
};
/// Calls itself, and adds 1 to 'left' on the way back.
struct descends {
    static constexpr const char* name = "descends";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t left;
    };
    struct locals {
        std::uint64_t words[64];
    };
    struct returns {};
    static void run(justdo::object& jd, const arguments& given, const locals& my, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(set(my.words[0], given.left));
        if (given.left != 0) {
            HF_JUSTDO_CALL(jd.call<descends>({given.in, given.left - 1}));
            HF_JUSTDO_STEP(store(&given.in->sum, given.in->sum + my.words[0]));
        }
        HF_JUSTDO_END;
    }
};
/// The same with 'count' locks of each kind held.
struct holds_many {
    static constexpr const char* name = "holds_many";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t count, depth;
    };
    struct locals {
        std::uint64_t i;
    };
    struct returns {};
    static void run(justdo::object& jd, const arguments& given, const locals& my, returns&) {
        hall& in = *given.in;
        HF_JUSTDO_BEGIN(jd);
        while (my.i < given.count) {
            HF_JUSTDO_STEP(lock(in.locks[my.i]));
            HF_JUSTDO_STEP(lock(&in.plain[my.i], justdo::by_hand::plain_kind));
            HF_JUSTDO_STEP(set(my.i, my.i + 1));
        }
        HF_JUSTDO_CALL(jd.call<descends>({given.in, given.depth}));
        while (my.i > 0) {
            HF_JUSTDO_STEP(set(my.i, my.i - 1));
            HF_JUSTDO_STEP(unlock(&in.plain[my.i], justdo::by_hand::plain_kind));
            HF_JUSTDO_STEP(unlock(in.locks[my.i]));
        }
        HF_JUSTDO_END;
    }
};

struct root_of_all {
    chain* chains[3];
    justdo::by_hand::list* list;
    hall* halls[2];
    chain* after; // what is done once a copy has been salvaged
    hall* hall_after;
};

constexpr std::size_t block_bytes_of_disk = 4096;

unsigned copies_wanted() {
    const char* const text = std::getenv("HOLDFAST_TORN_COPIES");
    return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 300;
}

open_options options_for(const char* mode_name) {
    open_options o;
    o.layout = "torn copies/1";
    o.create_bytes = 1_MiB;
    o.max_bytes = 8_MiB;
    o.max_threads = 8;
    o.mode = mode_name == std::string("pmem") ? mode::pmem : mode::process;
    o.engines = {clobber::engine({.recovery_ms_max = 20}),
                 undo::engine(),
                 redo::engine(),
                 justdo::engine({.recovery_ms_max = 20, .open_waits = true}),
                 mod::engine(),
                 simpo::engine()};
    o.expert.seal = false;
    return o;
}

void run_sections(built_for engine, chain* on, const std::atomic<bool>& stop) {
    for (std::uint64_t n = 1; !stop; ++n) {
        if (n % 7 == 0) pop(engine, on);
        else if (n % 5 == 0) replace(engine, on, n);
        else if (n % 31 == 0) sweep(engine, on, 2);
        else if (n % 3 == 0 && n > 200) pop(engine, on);
        else push(engine, on, n);
    }
}

void run_resumable(justdo::by_hand::list* on, const std::atomic<bool>& stop) {
    for (std::uint64_t n = 1; !stop; ++n) {
        justdo::by_hand::push(on, n);
        if (on->count > 50) justdo::by_hand::pop(on);
    }
}

void run_halls(pool& in, hall* on, const std::atomic<bool>& stop) {
    justdo::object jd = *justdo::root::in(in)->new_object();
    for (std::uint64_t n = 1; !stop; ++n) jd.call<holds_many>({on, 20 + n * 40 % 130, n * 7 % 120});
}

void run_map(pool& in, const std::atomic<bool>& stop) {
    auto map = numbers::open(in, {"numbers"});
    if (!map) fatal("%s", map.error().what().c_str());
    for (std::uint64_t n = 1; !stop; ++n) {
        (void)map->insert_or_assign(n * 7919 % 500, n);
        if (n % 3 == 0) (void)map->erase(n * 31 % 500);
    }
}

void run_object(pool& in, const std::atomic<bool>& stop) {
    auto on = simpo::object<adder>::create(in, "adder");
    if (!on) fatal("%s", on.error().what().c_str());
    for (std::uint64_t n = 1; !stop; ++n) {
        on->defer<&adder::add>(n);
        if (n % 10 == 0) (void)on->call<&adder::sum>();
    }
}

/// As `cp` reads it: from its start to its end, while others store to it.
image copy_of(const std::string& path) {
    image out(std::filesystem::file_size(path));
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    for (std::size_t at = 0; at < out.size(); at += block_bytes_of_disk)
        if (::pread(fd, out.data() + at, std::min(block_bytes_of_disk, out.size() - at),
                    static_cast<off_t>(at)) <= 0)
            break;
    ::close(fd);
    return out;
}

/// Copies of one pool at different moments; the writer is killed in the end.
std::vector<image> make_images(const std::string& path, const open_options& options) {
    constexpr unsigned images_count = 12;
    constexpr useconds_t between_us = 3000;
    ::unlink(path.c_str());
    int ready[2];
    if (::pipe(ready) != 0) fatal("no pipe");
    const pid_t writer = ::fork();
    if (writer == 0) {
        auto in = pool::open(path, options);
        if (!in) fatal("%s", in.error().what().c_str());
        auto* const root = in->root<root_of_all>();
        for (chain*& each : root->chains) each = make_chain();
        root->list = static_cast<justdo::by_hand::list*>(hf_alloc(sizeof(justdo::by_hand::list)));
        *root->list = {};
        for (hall*& each : root->halls) each = static_cast<hall*>(hf_alloc(sizeof(hall)));
        for (hall* const each : root->halls) std::memset(static_cast<void*>(each), 0, sizeof *each);
        const std::atomic<bool> never{false};
        std::vector<std::thread> all;
        const built_for engines[] = {built_for::clobber, built_for::undo, built_for::redo};
        for (int i = 0; i < 3; ++i)
            all.emplace_back([&, i] { run_sections(engines[i], root->chains[i], never); });
        all.emplace_back([&] { run_resumable(root->list, never); });
        for (hall* const each : root->halls)
            all.emplace_back([&, each] { run_halls(*in, each, never); });
        all.emplace_back([&] { run_map(*in, never); });
        all.emplace_back([&] { run_object(*in, never); });
        (void)!::write(ready[1], "r", 1);
        for (;;) ::pause();
    }
    char at = 0;
    ::close(ready[1]);
    if (::read(ready[0], &at, 1) != 1) fatal("the writer has not come up");
    ::close(ready[0]);
    std::vector<image> out;
    for (unsigned i = 0; i < images_count; ++i) {
        out.push_back(copy_of(path));
        ::usleep(between_us); // of no matter how much: the images are of other moments
    }
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    ::unlink(path.c_str());
    return out;
}

/// Blocks of two moments; in some there are runs of one, as in a copy.
image spliced(const std::vector<image>& of, unsigned seed) {
    std::mt19937 random(seed);
    const image& a = of[random() % of.size()];
    const image& b = of[random() % of.size()];
    image out = random() % 2 == 0 ? a : b; // and its length
    const unsigned run_blocks = 1U << random() % 8;
    bool first = true;
    for (std::size_t at = 0; at < out.size(); at += block_bytes_of_disk) {
        if (random() % run_blocks == 0) first = !first;
        const image& from = first ? a : b;
        if (at >= from.size()) continue;
        std::memcpy(out.data() + at, from.data() + at,
                    std::min({block_bytes_of_disk, out.size() - at, from.size() - at}));
    }
    return out;
}

void write_image(const std::string& path, const image& bytes) {
    ::unlink(path.c_str()); // another file than the pool was open in
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        fatal("no file for the copy");
    ::close(fd);
}

/// Everything that can be asked of a torn pool without following its objects; and a little work of
/// one's own.
std::string used(pool& in) {
    const alloc_account sum = account(in);
    if (sum.block_bytes > sum.heap_bytes) return "the account exceeds the heap";
    if (in.internals().file->read_only()) return {};
    for (const std::size_t bytes : {24, 700, 5000})
        if (void* const block = hf_alloc(bytes)) std::memset(block, 7, bytes);
    for (const built_for engine : {built_for::clobber, built_for::undo, built_for::redo}) {
        chain* const c = make_chain();
        if (c == nullptr) return {}; // full
        push(engine, c, 1);
        if (c->count != 1) return "a push did something else";
        pop(engine, c);
    }
    auto* const root = in.root<root_of_all>();
    if (root == nullptr) return {};
    for (hall* const each : root->halls) // whatever became of the sections that held them
        for (hf::mutex& lock : each->locks) {
            if (!lock.try_lock()) return "a lock is taken";
            lock.unlock();
        }
    root->after = nullptr;
    chain* const kept = make_chain();
    auto* const room = static_cast<hall*>(hf_alloc(sizeof(hall)));
    if (kept == nullptr || room == nullptr) return {};
    std::memset(static_cast<void*>(room), 0, sizeof *room);
    auto jd = justdo::root::in(in)->new_object();
    if (!jd) return jd.error().code() == errc::pool_full ? "" : jd.error().what();
    jd->call<holds_many>({room, 150, 40});
    for (std::uint64_t n = 1; n <= 3; ++n) push(built_for::undo, kept, n);
    root->after = kept;
    root->hall_after = room;
    return {};
}

/// The part of that which is missing at the next open, or cannot be used.
std::string missing(pool& in) {
    const auto* const root = in.root<root_of_all>();
    if (root == nullptr || root->after == nullptr) return {}; // the pool was full
    if (const char* const wrong = fault(root->after, 1, 3)) return wrong;
    constexpr std::uint64_t once = 40 * 41 / 2;
    if (root->hall_after->sum != once) return "a section of engine justdo is lost";
    justdo::root::in(in)->new_object()->call<holds_many>({root->hall_after, 150, 40});
    return root->hall_after->sum == 2 * once ? "" : "a section does something else";
}

/// Salvages it in a process that is killed after some microseconds, or opens it.
void salvage_until(const std::string& path, const open_options& options, suseconds_t us) {
    const pid_t child = ::fork();
    if (child == 0) {
        const itimerval once{{0, 0}, {0, us}};
        ::signal(SIGALRM, SIG_DFL);
        ::setitimer(ITIMER_REAL, &once, nullptr);
        auto in = pool::open(path, options);
        ::_exit(in ? 0 : 1);
    }
    ::waitpid(child, nullptr, 0);
}

/// The fault of one torn copy; empty: none. 'killed': the process that salvages it is killed, and
/// closes nothing.
std::string tried(const std::string& path, const image& bytes, open_options options, bool killed,
                  suseconds_t us) {
    const auto file = std::as_bytes(std::span(bytes));
    for (const auto how : {verify::depth::structure, verify::depth::deep})
        if (verify::examine(file, how).outcome == verify::verdict::good)
            return "verify calls it good";
    if (!verify::plan_repair(file).possible) return "repair finds no header";
    options.creation = create::never;
    options.salvage = true;
    for (const bool rolls_back : {false, true}) {
        options.recovery = rolls_back ? recovery_policy::roll_back : recovery_policy::complete;
        for (const bool read_only : {true, false}) {
            write_image(path, bytes);
            options.read_only = read_only;
            options.salvage = true;
            if (killed && !read_only) salvage_until(path, options, us);
            const std::string what = std::string(read_only ? "to read" : "to write") +
                                     (rolls_back ? ", rolled back: " : ": ");
            {
                auto in = pool::open(path, options);
                // A section that resumes from torn arguments may need more room than there is:
                // rolled back, it opens.
                if (!in && in.error().code() == errc::pool_full && !read_only && !rolls_back)
                    continue;
                if (!in) return what + in.error().what();
                if (in->warnings().empty() && (read_only || !killed)) return what + "no warning";
                if (std::string wrong = used(*in); !wrong.empty()) return what + wrong;
                if (killed) pool::impl::abandon(std::move(*in));
            }
            if (read_only) continue;
            options.salvage = false;
            auto again = pool::open(path, options);
            if (!again) return what + "salvaged once, it is refused: " + again.error().what();
            if (std::string wrong = missing(*again); !wrong.empty())
                return what + "opened again: " + wrong;
        }
    }
    return {};
}

struct progress {
    std::atomic<unsigned> seed;
    char wrong[2000];
};

/// Tries the seeds from 'first' on, in a child: if anything ends the child, one seed is the cause.
/// Returns the seed behind the last.
unsigned try_in_child(const std::vector<image>& images, const std::string& path,
                      const open_options& options, progress& shared, unsigned first, unsigned end) {
    shared.seed = first;
    shared.wrong[0] = 0;
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(250);
        for (; shared.seed != end; ++shared.seed) {
            const std::string wrong = tried(path, spliced(images, shared.seed), options,
                                            shared.seed % 2 != 0, 100 + shared.seed * 37 % 2000);
            if (wrong.empty()) continue;
            std::snprintf(shared.wrong, sizeof shared.wrong, "%s", wrong.c_str());
            ::_exit(1);
        }
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    if (WIFSIGNALED(how)) ADD_FAILURE() << "seed " << shared.seed << ": signal " << WTERMSIG(how);
    else if (WEXITSTATUS(how) != 0) ADD_FAILURE() << "seed " << shared.seed << ": " << shared.wrong;
    return shared.seed == end ? end : shared.seed + 1;
}

class TornCopies : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Modes, TornCopies, ::testing::Values("process", "pmem"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(TornCopies, AreOpenedBySalvageToWriteAndToRead) {
    std::string directory = "/dev/shm/hf_torn_copies.XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const open_options options = options_for(GetParam());
    const std::vector<image> images = make_images(directory + "/pool.hf", options);
    void* const room = ::mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    auto& shared = *::new (room) progress{};
    unsigned failed = 0;
    for (unsigned seed = 0; seed < copies_wanted() && failed < 20;) {
        const unsigned end = std::min(seed + 50, copies_wanted());
        seed = try_in_child(images, directory + "/copy.hf", options, shared, seed, end);
        failed += HasFailure() ? 1 : 0;
    }
    ::munmap(room, sizeof(progress));
    std::filesystem::remove_all(directory);
}

using rooted = std::array<std::uint64_t, 64>;
// The anchor is of another moment than its chunk: blocks would be handed out over it.
TEST(TornAnchor, AmongOtherBlocksIsGivenUpForGood) {
    for (const std::uint64_t place :
         {std::uint64_t{offsetof(root_words, root_offset)}, root_words::place_of_anchor(engine_mod),
          root_words::place_of_anchor(engine_justdo), root_words::place_of_anchor(engine_simpo)}) {
        std::string path = "/dev/shm/hf_torn_anchor.XXXXXX";
        const int fd = ::mkstemp(path.data());
        ASSERT_GE(fd, 0);
        ::close(fd);
        ::unlink(path.c_str());
        open_options options = options_for("process");
        {
            auto in = pool::open(path, options);
            ASSERT_TRUE(in) << in.error().what();
            ASSERT_NE(in->root<rooted>(), nullptr);
            ASSERT_TRUE(justdo::root::in(*in)->new_object());
            ASSERT_TRUE(numbers::open(*in, {"numbers"}));
            ASSERT_TRUE(simpo::object<adder>::create(*in, "adder"));
            pool_file& file = *in->internals().file;
            const std::uint64_t chunk = file.shape().chunk_bytes;
            for (int others = 0; others < 20; ++others) (void)hf_alloc(24);
            const std::uint64_t at = in->offset_of(hf_alloc(24)) / chunk * chunk;
            auto& word = *reinterpret_cast<std::uint64_t*>(file.base() + root_words_offset + place);
            ASSERT_NE(word, 0U);
            std::memcpy(file.base() + at, file.base() + word, chunk);
            word = at;
            pool::impl::abandon(std::move(*in));
        }
        options.salvage = true;
        options.read_only = true;
        EXPECT_TRUE(pool::open(path, options)) << "it is shown as it stands";
        options.read_only = false;
        {
            auto in = pool::open(path, options);
            ASSERT_TRUE(in) << in.error().what();
            ASSERT_FALSE(in->warnings().empty());
            EXPECT_NE(in->warnings().back().find("given up"), std::string::npos);
            in->root<rooted>()->fill(43);
            for (int blocks = 0; blocks < 2000; ++blocks)
                if (void* const block = hf_alloc(24)) std::memset(block, 7, 24);
            pool::impl::abandon(std::move(*in));
        }
        options.salvage = false;
        auto in = pool::open(path, options);
        ASSERT_TRUE(in) << in.error().what();
        EXPECT_EQ(in->root<rooted>()->at(20), 43U);
        ::unlink(path.c_str());
    }
}

} // namespace
