// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a refusal for want of room names the disk's error, or the limit that holds, and what to do.
// No limit of the process ends it by a signal. Method: a fallocate() that fails; limits of a child
// process.
#include <pool/test_support.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/copy.hpp>
#include <holdfast/log.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/undo.hpp>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {
int error_to_give; // 0: none
}

extern "C" {
int __real_fallocate(int, int, off_t, off_t);
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's name
int __wrap_fallocate(int fd, int mode, off_t at, off_t bytes) {
    if (error_to_give == 0) return __real_fallocate(fd, mode, at, bytes);
    errno = error_to_give;
    return -1;
}
}

namespace {

using namespace hf;

struct large_root {
    std::byte bytes[3 << 20];
};
struct large_object {
    static constexpr simpo::class_name simpo_class{"large object", 1};
    std::byte bytes[2 << 20] = {};
};

class Growth : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_growth_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        how.layout = "growth/1";
        how.create_bytes = 1_MiB;
        how.max_bytes = 64_MiB;
        how.engines = {mod::engine(), simpo::engine(), undo::engine()};
        set_log(
            [](void* to, severity level, const char* line) {
                if (level == severity::error)
                    static_cast<std::vector<std::string>*>(to)->push_back(line);
            },
            &said);
    }
    void TearDown() override {
        error_to_give = 0;
        set_log(nullptr);
        std::filesystem::remove_all(directory);
    }
    pool open() const {
        auto opened = pool::open(path, how);
        if (!opened) throw std::runtime_error(opened.error().what());
        return std::move(*opened);
    }
    static void expect(const status& why, errc code, const std::string& text) {
        EXPECT_EQ(name(why.code()), name(code)) << why.what();
        EXPECT_NE(why.what().find(text), std::string::npos) << why.what();
    }
    /// In a child, with a limit: false if the message differs from the expected one.
    bool limited(decltype(RLIMIT_FSIZE) which, std::uint64_t bytes,
                 const std::function<status()>& body, const std::string& text) const {
        return hf::test::in_child([&] {
            const rlimit few{bytes, bytes};
            if (::setrlimit(which, &few) != 0) return false;
            const status why = body();
            const bool well =
                why.code() == errc::pool_full && why.what().find(text) != why.what().npos;
            if (!well)
                std::fprintf(stderr, "expected \"%s\", found \"%s\"\n", text.c_str(),
                             why.what().c_str());
            return well;
        });
    }

    std::string directory, path;
    open_options how;
    std::vector<std::string> said;
};

TEST_F(Growth, ADiskThatFailsIsNoFullPoolToAnybodyWhoAsksForRoom) {
    pool p = open();
    auto numbers = mod::map<std::uint64_t, std::string>::open(p, {.name = "numbers"});
    ASSERT_TRUE(numbers);
    const std::string eio = "Input/output error";
    error_to_give = EIO;
    expect(staged::in(p, 2_MiB).error(), errc::io_error, eio);
    EXPECT_EQ(hf_alloc(2_MiB), nullptr);
    expect(p.why_full(), errc::io_error, eio);
    expect(p.find_root<large_root>().error(), errc::io_error, eio);
    expect(numbers->insert(1, std::string(2_MiB, 'x')).error(), errc::io_error, eio);
    expect(simpo::object<large_object>::create(p, "object").error(), errc::io_error, eio);
    EXPECT_EQ(said.size(), 1U) << "a line for the operator, once";
    EXPECT_NE(said[0].find(eio), std::string::npos) << said[0];
    // A limit that is met meanwhile is no cure.
    expect(staged::in(p, 65_MiB).error(), errc::io_error, eio);
    error_to_give = 0;
    EXPECT_TRUE(numbers->insert(1, std::string(2_MiB, 'x')));
    EXPECT_TRUE(p.why_full().ok()) << p.why_full().what();
}

TEST_F(Growth, AFullPoolNamesItsCauseAndWhatToDo) {
    pool p = open();
    error_to_give = ENOSPC;
    expect(staged::in(p, 4_MiB).error(), errc::pool_full,
           "No space left on device; the file system is full: free space");
    error_to_give = EDQUOT; // less each time: a refusal is kept for a second
    expect(staged::in(p, 2_MiB).error(), errc::pool_full, "Disk quota exceeded; the disk quota");
    error_to_give = EFBIG;
    expect(staged::in(p, 1_MiB).error(), errc::pool_full,
           "File too large; the file system allows no longer files");
    error_to_give = 0;
    expect(staged::in(p, 65_MiB).error(), errc::pool_full, "more than the pool may ever hold");
    expect(staged::in(p, 63_MiB).error(), errc::pool_full,
           "open it with a larger open_options::max_bytes");
    ASSERT_TRUE(p.limit_growth(1_MiB).ok());
    expect(staged::in(p, 2_MiB).error(), errc::pool_full,
           "pool::limit_growth allows: raise that limit");
    EXPECT_TRUE(said.empty()) << said[0];
}

TEST_F(Growth, ALimitOnFileSizesIsAFullPoolWhereverAFileBecomesLonger) {
    const std::string ulimit = "(ulimit -f)";
    EXPECT_TRUE(limited(
        RLIMIT_FSIZE, 65536,
        [&] {
            const auto made = pool::open(path, how);
            return made ? status() : made.error();
        },
        ulimit))
        << "creation";
    EXPECT_FALSE(std::filesystem::exists(path));
    how.expert.seal = false;
    { const pool made = open(); }
    EXPECT_TRUE(limited(
        RLIMIT_FSIZE, 2_MiB,
        [&] {
            pool p = open();
            const auto some = staged::in(p, 256_KiB);
            if (!some) return status();
            return staged::in(p, 4_MiB).error();
        },
        ulimit))
        << "growth, of which there is some";
    EXPECT_TRUE(limited(
        RLIMIT_FSIZE, 512_KiB,
        [&] {
            const auto copied = open().copy_to(directory + "/copy.hf");
            return copied ? status() : copied.error();
        },
        ulimit))
        << "a copy";
    EXPECT_TRUE(limited(
        RLIMIT_FSIZE, 512_KiB,
        [&] {
            how.mode = mode::power; // which writes to the pool's file, and to its log
            const auto opened = pool::open(path, how);
            return opened ? status() : opened.error();
        },
        ulimit))
        << "mode power";
    EXPECT_TRUE(open().find_root<large_root>()) << "and it was left whole";
}

TEST_F(Growth, ALimitOnAddressesIsNamed) {
    how.max_bytes = 1_GiB;
    { const pool made = open(); }
    EXPECT_TRUE(hf::test::in_child([&] {
        std::ifstream pages("/proc/self/statm");
        std::uint64_t used = 0;
        pages >> used;
        const rlimit few{used * 4096 + 128_MiB, RLIM_INFINITY};
        if (::setrlimit(RLIMIT_AS, &few) != 0) return false;
        pool p = open();
        const auto staged = staged::in(p, 160_MiB);
        return !staged && staged.error().code() == errc::pool_full &&
               staged.error().what().find("(ulimit -v)") != std::string::npos;
    }));
}

} // namespace
