// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what runs when a thread, or the process, is nearly gone uses pools as everything else does,
//           and loses nothing:
// destructors of thread_local objects made before the thread's first section and of pthread keys;
// functions given to atexit; destructors of static objects, and that of a static pool itself.
// Method: a child for each of them, whose freed memory is overwritten, pushes, pops, and exits;
// what it did is looked for in the file.
#include <open/pool_impl.hpp>
#include <section/list_sections.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <malloc.h>
#include <optional>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <tuple>

namespace {

using namespace hf;
using namespace hf::list_sections;

std::optional<pool> at_exit; // destroyed after all that the library makes while it is open
struct at_end {
    std::function<void()> work;
    ~at_end() {
        if (work) work();
    }
};
at_end of_process;
thread_local at_end of_thread;

enum class by { clobber, undo, redo };

void add_by_redo(list* l, std::uint64_t value) {
    hf_redo_begin(&pop_desc, &l);
    for (std::uint64_t* word : {&l->count, &l->sum}) {
        const std::uint64_t now = *static_cast<const std::uint64_t*>(hf_redo_read(word, 8)) + value;
        std::memcpy(hf_redo_write(word, 8), &now, sizeof now);
    }
    hf_redo_commit();
}

class Late : public ::testing::TestWithParam<std::tuple<by, mode>> {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_late_test." + std::to_string(::getpid());
        TearDown();
        options_.layout = "late_test/1";
        options_.create_bytes = 1_MiB;
        options_.mode = std::get<mode>(GetParam());
        options_.engines = {clobber::engine(), undo::engine(), redo::engine()};
    }
    void TearDown() override {
        for (const char* suffix : {"", "-power"}) std::filesystem::remove(path_ + suffix);
    }
    pool opened() {
        auto p = pool::open(path_, options_);
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), std::abort();
        return std::move(*p);
    }
    /// Three more than there were, one of them taken back: two.
    static void work() {
        list* const l = at_exit->root<list>();
        if (std::get<by>(GetParam()) == by::redo) return add_by_redo(l, 1), add_by_redo(l, 1);
        const bool clobber = std::get<by>(GetParam()) == by::clobber;
        for (int i = 0; i < 3; ++i) push(clobber, l, l->count + 1);
        pop(clobber, l);
    }
    /// Runs 'body' in a child that exits, and finds so many in the pool.
    void expect_after_exit(const std::function<void()>& body, std::uint64_t count) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::mallopt(M_PERTURB, 0xa5);
            at_exit = opened();
            body();
            std::exit(0);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
        pool p = opened();
        EXPECT_EQ(p.recovered().sections_pending, 0U);
        if (std::get<by>(GetParam()) == by::redo) EXPECT_EQ(p.root<list>()->count, count);
        else EXPECT_EQ(fault(p, count), nullptr);
    }

    std::string path_;
    open_options options_;
};

TEST_P(Late, AStaticObjectsDestructorLosesNothing) {
    expect_after_exit([] { work(), of_process.work = work; }, 4);
    expect_after_exit([] { of_process.work = work; }, 6);
}

TEST_P(Late, AFunctionGivenToAtexitLosesNothing) {
    expect_after_exit([] { work(), std::atexit(work); }, 4);
}

TEST_P(Late, AThreadsOlderObjectsLoseNothing) {
    expect_after_exit(
        [] {
            for (int i = 0; i < 3; ++i) std::thread([] { of_thread.work = work, work(); }).join();
        },
        12);
}

TEST_P(Late, APthreadKeysDestructorLosesNothingAndGivesItsLaneBack) {
    expect_after_exit(
        [] {
            static pthread_key_t key;
            if (::pthread_key_create(&key, [](void*) { work(); }) != 0) std::abort();
            for (int i = 0; i < 6; ++i)
                std::thread([i] {
                    ::pthread_setspecific(key, &key);
                    if (i % 2 == 0) work();
                }).join();
            const auto& lanes = at_exit->internals().lanes;
            for (std::uint32_t l = 0; l < lanes.size(); ++l)
                if (lanes[l].taken) std::abort();
        },
        18);
}

std::string name_of(const ::testing::TestParamInfo<Late::ParamType>& info) {
    static constexpr const char* engines[] = {"clobber", "undo", "redo"};
    const auto [engine, in] = info.param;
    return std::string(engines[static_cast<int>(engine)]) + "_" + std::string(name(in));
}
INSTANTIATE_TEST_SUITE_P(Modes, Late,
                         ::testing::Combine(::testing::Values(by::clobber, by::undo, by::redo),
                                            ::testing::Values(mode::process, mode::pmem,
                                                              mode::power)),
                         name_of);

} // namespace
