// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: limits of a pool, and of a program, that must not end the process: more threads than the
// pool has lanes, two functions of one identifier, an engine given twice, a root of another size,
// impossible arrays. Method: pools of two lanes and eight threads in both engines and domains,
// killed and not; two functions that recovery must distinguish by their versions.
#include <section/list_sections.hpp>

#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::list_sections;

class Turns : public ::testing::TestWithParam<mode> {
protected:
    ~Turns() override { ::unlink(path_.c_str()); }
    pool open() {
        open_options o;
        o.layout = "turns_test/1";
        o.create_bytes = 64_KiB;
        o.max_bytes = 4_MiB;
        o.max_threads = 2;
        o.mode = GetParam();
        o.engines = {clobber::engine(), undo::engine()};
        auto opened = pool::open(path_, o);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::abort();
        return std::move(*opened);
    }
    static constexpr std::uint64_t threads_count = 8;
    /// Every thread keeps a block staged, pushes 'each' values and pops half of them.
    static void work(pool& p, std::uint64_t each) {
        list* l = p.root<list>();
        std::vector<std::thread> threads;
        shared_mutex lock{};
        for (std::uint64_t t = 0; t < threads_count; ++t)
            threads.emplace_back([&, t] {
                const auto staged = staged::in(p, 48);
                for (std::uint64_t i = 0; i < each; ++i) {
                    const std::scoped_lock held{lock};
                    push(t % 2 == 0, l, l->count + 1);
                    if (i % 2 == 1) pop(t % 2 == 0, l);
                }
            });
        for (auto& t : threads) t.join();
    }
    const std::string path_ = "/dev/shm/hf_turns_test." + std::to_string(::getpid());
};

TEST_P(Turns, ThreadsBeyondTheLanesTakeTurns) {
    {
        pool p = open();
        work(p, 40);
        EXPECT_EQ(fault(p, threads_count * 20), nullptr);
    }
    pool p = open();
    EXPECT_EQ(fault(p, threads_count * 20), nullptr);
}

TEST_P(Turns, ASectionOfALateThreadIsRecovered) {
    for (int k = 0; k < 60; k += 3) {
        ::unlink(path_.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            pool p = open();
            list* l = p.root<list>();
            push(true, l, 1); // this thread has a lane, the next two share one
            std::thread second([&] {
                push(true, l, 2);
                std::thread([&] {
                    steps_left = k;
                    push(k % 2 == 0, l, 3);
                    pop(k % 2 == 0, l);
                    ::kill(::getpid(), SIGKILL);
                }).join();
            });
            second.join();
        }
        ::waitpid(child, nullptr, 0);
        pool p = open();
        const std::uint64_t count = p.root<list>()->count;
        EXPECT_TRUE(count == 2 || count == 3) << count;
        EXPECT_EQ(fault(p, count), nullptr) << "step " << k;
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, Turns, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& of) {
                             return of.param == mode::process ? "process" : "pmem";
                         });

// As the plugin would make them of 'static void add(std::uint64_t*)' in two files of one name.
template <std::uint64_t By> void add_again(const void* packed) {
    store_over_input<true>(*static_cast<std::uint64_t* const*>(packed),
                           **static_cast<std::uint64_t* const*>(packed) + By);
}
template <std::uint64_t By>
constexpr hf_txfunc add_desc{HF_ABI_VERSION, 8,          2001, By,           "a.cpp;add",
                             "here",         pop_schema, 1,    add_again<By>};

TEST(Functions, OfOneIdentifierAreToldApartByTheirVersion) {
    const std::string path = "/dev/shm/hf_functions_test." + std::to_string(::getpid());
    hf_txfunc_register(&add_desc<1>);
    hf_txfunc_register(&add_desc<10>);
    hf_txfunc_register(&add_desc<10>); // once more, by another library
    open_options o;
    o.layout = "functions/1";
    o.create_bytes = 64_KiB;
    o.engines = {clobber::engine()};
    for (const hf_txfunc* of : {&add_desc<1>, &add_desc<10>}) {
        ::unlink(path.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = pool::open(path, o);
            auto* number = p->root<std::uint64_t>();
            steps_left = 2; // stored, not committed
            hf_clobber_begin(of, &number);
            of->re_execute(&number);
        }
        ::waitpid(child, nullptr, 0);
        auto p = pool::open(path, o);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        EXPECT_EQ(*p->root<std::uint64_t>(), of->version);
    }
    ::unlink(path.c_str());
}

TEST(Sizes, ThatDoNotFitAreErrors) {
    const std::string path = "/dev/shm/hf_sizes_test." + std::to_string(::getpid());
    open_options o;
    o.layout = "sizes/1";
    o.create_bytes = 64_KiB;
    auto p = pool::open(path, o);
    ASSERT_TRUE(p) << p.error().what();
    ASSERT_TRUE(p->find_root<std::uint64_t>());
    const auto another = p->find_root<list>();
    ASSERT_FALSE(another);
    EXPECT_EQ(another.error().code(), errc::wrong_layout);
    EXPECT_NE(another.error().what().find("expected 24 bytes, found 8"), std::string::npos)
        << another.error().what();
    EXPECT_TRUE(p->find_root<std::uint64_t>()) << "as before";
    EXPECT_EQ(make_array<std::uint64_t>((std::size_t{1} << 61) + 2), nullptr);
    EXPECT_EQ(make_array<list>(~std::size_t{0}), nullptr);
    ::unlink(path.c_str());
}

TEST(Options, ANullOrRepeatedEngineIsRefused) {
    const std::string path = "/dev/shm/hf_engines_given." + std::to_string(::getpid());
    for (const char* what : {"twice", "null"}) {
        open_options o;
        o.create_bytes = 64_KiB;
        o.engines = {clobber::engine(), undo::engine(),
                     std::string(what) == "null" ? nullptr : clobber::engine()};
        const auto p = pool::open(path, o);
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), errc::bad_argument);
        EXPECT_NE(p.error().what().find(what), std::string::npos) << p.error().what();
        EXPECT_NE(::access(path.c_str(), F_OK), 0) << "no file is made";
    }
}

} // namespace
