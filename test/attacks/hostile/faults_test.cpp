// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults that a pool causes: a re-executed function that dies, gives up or never ends becomes a
// refusal; a file that was cut while it was open, and a pool that was closed, is named before the
// process dies of it.
#include <open/pool_impl.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

enum class trouble : std::uint8_t {
    none,
    bad_pointer,
    division,
    spins,          // calls nothing
    spins_storing,  // notes a store each time
    spins_logging,  // logs a store each time
    allocates_more, // diverges
    deep,           // fills the stack
    frees_twice,
    cuts_the_file
};
trouble in_re_execution = trouble::none;
std::string pool_path;
volatile int always = 1, sink = 0;

struct object {
    std::uint64_t value;
    std::uint64_t other;
};
struct troubled_args {
    object* o;
};

__attribute__((noinline, no_sanitize("address", "undefined"))) int deeper(volatile int* from) {
    volatile int here[64] = {*from};
    return always != 0 ? deeper(here) + here[1] : here[0];
}

__attribute__((no_sanitize("address", "undefined"))) void misbehave(object* o) {
    volatile int zero = 0;
    switch (in_re_execution) {
    case trouble::none: return;
    case trouble::bad_pointer: *reinterpret_cast<volatile int*>(8) = 1; return;
    case trouble::division: sink = 7 / zero; return;
    case trouble::spins:
        while (always != 0) {}
        return;
    case trouble::spins_storing:
        while (always != 0) hf_note_store(&o->value, 8);
        return;
    case trouble::spins_logging:
        while (always != 0) hf_clobber_log(&o->value, 8);
        return;
    case trouble::allocates_more: (void)hf_alloc(5000); return;
    case trouble::deep: (void)deeper(&zero); return;
    case trouble::frees_twice:
        hf_free(o);
        hf_free(o);
        return;
    case trouble::cuts_the_file:
        ASSERT_EQ(::truncate(pool_path.c_str(), 0), 0);
        *const_cast<volatile std::uint64_t*>(&o->other) = 1;
        return;
    }
}

void troubled_body(const troubled_args& a) {
    hf_clobber_log(&a.o->value, 8);
    a.o->value += 1;
    misbehave(a.o);
    void* b = hf_alloc(40);
    hf_note_store(b, 8);
    std::memset(b, 1, 8);
}
const hf_arg troubled_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc troubled_desc{
    HF_ABI_VERSION,
    sizeof(troubled_args),
    7201,
    1,
    "troubled",
    "faults_test.cpp:1",
    troubled_schema,
    1,
    [](const void* packed) { troubled_body(*static_cast<const troubled_args*>(packed)); }};

class Faults : public ::testing::Test {
protected:
    void SetUp() override {
        path = "/dev/shm/hf_faults_test." + std::to_string(::getpid());
        pool_path = path;
        ::unlink(path.c_str());
        options.layout = "faults_test/1";
        options.create_bytes = 256_KiB;
        options.engines = {clobber::engine({.recovery_ms_max = 60}), undo::engine()};
        hf_txfunc_register(&troubled_desc);
        in_re_execution = trouble::none;
    }
    void TearDown() override { ::unlink(path.c_str()); }

    /// A pool with one section that a crash cut short behind its last step.
    void make_pending() {
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = pool::open(path, options);
            const troubled_args args{p->root<object>()};
            hf_clobber_begin(&troubled_desc, &args);
            troubled_body(args);
            ::kill(::getpid(), SIGKILL);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how));
    }
    /// Runs 'body' in a child; returns how it ended and what it wrote to stderr.
    int in_child(const std::function<void()>& body, std::string& said) {
        int ends[2];
        EXPECT_EQ(::pipe(ends), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const rlimit no_core{0, 0};
            ::setrlimit(RLIMIT_CORE, &no_core);
            ::signal(SIGBUS, SIG_DFL); // not a sanitizer's
            ::dup2(ends[1], STDERR_FILENO);
            body();
            ::_exit(0);
        }
        ::close(ends[1]);
        char text[4096];
        for (ssize_t n; (n = ::read(ends[0], text, sizeof text)) > 0;)
            said.append(text, static_cast<std::size_t>(n));
        ::close(ends[0]);
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        return how;
    }
    void cut(std::uint64_t bytes) {
        ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
    }

    std::string path;
    open_options options;
};

void* handler_of(int signal) {
    struct sigaction now{};
    ::sigaction(signal, nullptr, &now);
    return (now.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<void*>(now.sa_sigaction)
                                            : reinterpret_cast<void*>(now.sa_handler);
}

struct expected {
    trouble what;
    const char* said;
};
void PrintTo(const expected& e, std::ostream* to) {
    *to << static_cast<int>(e.what) << ' ' << e.said;
}
class RecoveryFaults : public Faults, public ::testing::WithParamInterface<expected> {};

TEST_P(RecoveryFaults, BecomesARefusalThatLeavesThePoolRecoverable) {
    make_pending();
    in_re_execution = GetParam().what;
    void* const before[] = {handler_of(SIGSEGV), handler_of(SIGBUS), handler_of(SIGFPE),
                            handler_of(SIGURG)};
    {
        const auto p = pool::open(path, options);
        ASSERT_FALSE(p);
        EXPECT_EQ(name(p.error().code()), "corrupt");
        for (const char* part : {"lane 0", "troubled (faults_test.cpp:1)", GetParam().said})
            EXPECT_NE(p.error().what().find(part), std::string::npos) << p.error().what();
    }
    void* const after[] = {handler_of(SIGSEGV), handler_of(SIGBUS), handler_of(SIGFPE),
                           handler_of(SIGURG)};
    EXPECT_EQ(std::memcmp(before, after, sizeof before), 0) << "a handler stayed";
    // A build whose function is well finds the section pending still.
    in_re_execution = trouble::none;
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().re_executed, 1U);
    EXPECT_EQ(p->root<object>()->value, 1U);
    EXPECT_EQ(account(*p).blocks, 2U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecoveryFaults,
                         ::testing::Values(expected{trouble::bad_pointer, "SIGSEGV at 0x8"},
                                           expected{trouble::division, "SIGFPE"},
                                           expected{trouble::spins, "new within 60 ms"},
                                           expected{trouble::spins_storing, "new within 60 ms"},
                                           expected{trouble::spins_logging, "new within 60 ms"},
                                           expected{trouble::allocates_more, "diverged"},
                                           expected{trouble::deep, "SIGSEGV"},
                                           expected{trouble::frees_twice, "no allocated block"}));

TEST_F(Faults, FileCutByARecoveryIsReportedAsTruncated) {
    make_pending();
    in_re_execution = trouble::cuts_the_file;
    const auto p = pool::open(path, options);
    ASSERT_FALSE(p);
    EXPECT_EQ(name(p.error().code()), "truncated");
    EXPECT_NE(p.error().what().find("expected 262144 bytes, found 0"), std::string::npos)
        << p.error().what();
}

TEST_F(Faults, WithoutGuardTheProcessDiesOfTheFault) {
    make_pending();
    in_re_execution = trouble::bad_pointer;
    options.expert.guard_signals = false;
    std::string said;
    const int how = in_child(
        [&] {
            ::signal(SIGSEGV, SIG_DFL);
            (void)pool::open(path, options);
        },
        said);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV) << how;
}

TEST_F(Faults, AccessToACutFileIsExplainedBeforeItKills) {
    std::string said;
    const auto touch = [&] {
        auto p = pool::open(path, options);
        auto* o = p->root<object>();
        cut(4096);
        *const_cast<volatile std::uint64_t*>(&o->value) = 1;
    };
    int how = in_child(touch, said);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGBUS) << how;
    EXPECT_NE(said.find("holdfast: " + path +
                        ": truncated: the file was cut while the pool was open: expected 262144 "
                        "bytes, found 4096"),
              std::string::npos)
        << said;
    ::unlink(path.c_str());
    options.expert.guard_signals = false;
    said.clear();
    how = in_child(touch, said);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGBUS) << how;
    EXPECT_EQ(said, "");
}

TEST_F(Faults, AccessToAClosedPoolIsExplainedBeforeItKills) {
    std::string said;
    const auto touch = [&] {
        object* o = nullptr;
        {
            auto p = pool::open(path, options);
            o = p->root<object>();
        }
        ::_exit(*const_cast<volatile std::uint64_t*>(&o->value) == 0 ? 0 : 3);
    };
    int how = in_child(touch, said);
    EXPECT_FALSE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
    EXPECT_NE(said.find("holdfast: " + path + ": an access at byte "), std::string::npos) << said;
    EXPECT_NE(said.find("of this pool, which was closed"), std::string::npos) << said;
    ::unlink(path.c_str());
    options.expert.guard_signals = false;
    said.clear();
    how = in_child(touch, said);
    EXPECT_FALSE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
    EXPECT_EQ(said.find("holdfast: "), std::string::npos) << said;
}

TEST_F(Faults, AnotherFaultIsNotExplainedByAClosedPool) {
    std::string said;
    const int how = in_child(
        [&] {
            { auto p = pool::open(path, options); }
            (void)*reinterpret_cast<volatile std::uint64_t*>(std::uint64_t{1} << 40);
        },
        said);
    EXPECT_FALSE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
    EXPECT_EQ(said.find("holdfast: "), std::string::npos) << said;
}

TEST_F(Faults, CommitIntoACutFileIsExplained) {
    std::string said;
    const int how = in_child(
        [&] {
            auto p = pool::open(path, options);
            const troubled_args args{p->root<object>()};
            hf_clobber_begin(&troubled_desc, &args);
            troubled_body(args);
            cut(4096);
            hf_clobber_commit();
        },
        said);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGBUS) << how;
    EXPECT_NE(said.find("found 4096"), std::string::npos) << said;
}

TEST_F(Faults, ClosingACutFileLeavesItMarkedOpenAndSaysSo) {
    std::string said;
    const int how = in_child(
        [&] {
            auto p = pool::open(path, options);
            (void)p->root<object>();
            cut(8192); // both headers are there, the lanes are not
        },
        said);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
    EXPECT_NE(said.find("expected 262144 bytes, found 8192; the pool stays marked open"),
              std::string::npos)
        << said;
    const auto p = pool::open(path, options);
    ASSERT_FALSE(p);
    EXPECT_EQ(name(p.error().code()), "truncated");
}

TEST_F(Faults, ACutFileIsNotLengthenedWithZeros) {
    std::string said;
    const int how = in_child(
        [&] {
            auto p = pool::open(path, options);
            cut(200'000);
            const auto grown = p->internals().file->grow(4096);
            if (grown || grown.error().code() != errc::truncated) ::_exit(1);
            if (*p->internals().file->whole().what().c_str() == '\0') ::_exit(2);
            ::_exit(0);
        },
        said);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
}

volatile sig_atomic_t seen_elsewhere = 0;
void elsewhere(int, siginfo_t*, void*) {
    seen_elsewhere = 1;
    ::_exit(42);
}

TEST_F(Faults, AFaultThatIsNotOursGoesToTheHandlerBefore) {
    std::string said;
    const int how = in_child(
        [&] {
            struct sigaction action{};
            action.sa_flags = SA_SIGINFO;
            action.sa_sigaction = elsewhere;
            ::sigaction(SIGBUS, &action, nullptr);
            auto p = pool::open(path, options);
            ::raise(SIGBUS);
        },
        said);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 42) << how;
    EXPECT_EQ(said, "");
}

TEST_F(Faults, TheHandlerBeforeIsCalledAsTheSystemWouldCallIt) {
    static volatile sig_atomic_t calls = 0;
    const auto dies = [&](int flags, void (*handler)(int), const std::function<void()>& trouble) {
        std::string said;
        return in_child(
            [&] {
                struct sigaction action{};
                action.sa_flags = flags;
                action.sa_handler = handler;
                ::sigaddset(&action.sa_mask, SIGUSR1);
                ::sigaction(SIGSEGV, &action, nullptr);
                auto p = pool::open(path, options);
                trouble();
            },
            said);
    };
    const auto touches = [] { *reinterpret_cast<volatile int*>(8) = 1; };
    const int once = dies(
        static_cast<int>(SA_RESETHAND),
        [](int) {
            if (++calls > 1) ::_exit(9);
        },
        touches);
    EXPECT_TRUE(!WIFEXITED(once) || WEXITSTATUS(once) != 9) << "it was called again";
    const auto shows_mask = [](int) {
        sigset_t blocked;
        ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        ::_exit(10 + ::sigismember(&blocked, SIGUSR1) + 2 * ::sigismember(&blocked, SIGSEGV));
    };
    const int masked = dies(0, shows_mask, touches);
    EXPECT_TRUE(WIFEXITED(masked) && WEXITSTATUS(masked) == 13) << masked;
    const int ignored = dies(0, SIG_IGN, [] {
        ::raise(SIGSEGV);
        ::_exit(5);
    });
    EXPECT_TRUE(WIFEXITED(ignored) && WEXITSTATUS(ignored) == 5) << ignored;
}

} // namespace
