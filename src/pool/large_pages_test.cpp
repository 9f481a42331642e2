// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool whose parts are in units of 4 KiB works where the kernel's page is larger (ARM64: 16
// or 64 KiB). Method: functions stand before the kernel's, and do as one with pages of 64 KiB does.
// They refuse an address or an offset within a page, and take each page that the range touches.
// Behind the end of a file the machine's own pages count still: no test touches memory there.
#include <base/line.hpp>
#include <pool/test_support.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/pool.hpp>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>

namespace {
constexpr std::uint64_t large = 65536;
unsigned refused_count;

bool is_within_page(const void* at) {
    const bool within = reinterpret_cast<std::uintptr_t>(at) % large != 0;
    refused_count += within;
    return within;
}
int refused() {
    errno = EINVAL;
    return -1;
}
std::size_t whole(std::size_t bytes) { return hf::round_up(bytes, large); }
} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
long __real_sysconf(int);
long __wrap_sysconf(int name) { return name == _SC_PAGESIZE ? long{large} : __real_sysconf(name); }

void* __real_mmap(void*, std::size_t, int, int, int, off_t);
void* __wrap_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    const bool is_there = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if ((is_there && is_within_page(at)) || is_within_page(reinterpret_cast<void*>(offset)))
        return refused(), MAP_FAILED;
    return __real_mmap(at, is_there ? whole(bytes) : bytes, protection, flags, fd, offset);
}
int __real_mprotect(void*, std::size_t, int);
int __wrap_mprotect(void* at, std::size_t bytes, int protection) {
    return is_within_page(at) ? refused() : __real_mprotect(at, whole(bytes), protection);
}
int __real_msync(void*, std::size_t, int);
int __wrap_msync(void* at, std::size_t bytes, int flags) {
    return is_within_page(at) ? refused() : __real_msync(at, bytes, flags);
}
/// The kernel's list of pages has those of the machine: this one refuses to open it.
int __real_open(const char*, int, ...);
int __wrap_open(const char* path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const auto rights = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0U;
    va_end(more);
    return std::strcmp(path, "/proc/self/pagemap") == 0 ? refused()
                                                        : __real_open(path, flags, rights);
}
int __real_munmap(void*, std::size_t);
int __wrap_munmap(void* at, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uint64_t>(at);
    if (address < HF_CANONICAL_LOW ||
        address >= HF_CANONICAL_HIGH) // where the kernel itself placed it
        return __real_munmap(at, bytes);
    return is_within_page(at) ? refused() : __real_munmap(at, whole(bytes));
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

using namespace hf;

struct place {
    mode how;
    const char* folder; // tmpfs, where mode pmem is emulated; or the build's file system
};

class LargePages : public ::testing::TestWithParam<place> {
protected:
    void SetUp() override {
        std::string pattern = std::string(GetParam().folder) + "/hf_large_pages_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        options.layout = "large_pages/1";
        options.mode = GetParam().how;
        options.create_bytes = 1_MiB + 12_KiB; // ends within a page
        options.max_bytes = 15_MiB + 4_KiB;
        options.engines = {mod::engine(), clobber::engine()};
        refused_count = 0;
    }
    void TearDown() override {
        EXPECT_EQ(refused_count, 0U);
        std::filesystem::remove_all(directory);
    }
    pool open() const {
        auto opened = pool::open(directory + "/pool.hf", options);
        if (!opened) throw std::runtime_error(opened.error().what());
        return std::move(*opened);
    }

    std::string directory;
    open_options options;
};

TEST_P(LargePages, APoolGrowsByPartsOfThemAndKeepsItsBytes) {
    const auto value = [](std::uint64_t i) {
        return std::string(9000, static_cast<char>('a' + i % 26));
    };
    constexpr std::uint64_t count = 700; // 6 MiB: it grows several times
    std::uint64_t first_bytes = 0;
    for (std::uint64_t from = 0; from < count; from += count / 7) { // opened anew in between
        pool p = open();
        auto map = mod::map<std::uint64_t, std::string>::open(p, {.name = "numbers"});
        ASSERT_TRUE(map) << map.error().what();
        if (from == 0) first_bytes = p.size_bytes();
        for (std::uint64_t i = 0; i < from; ++i) ASSERT_TRUE(*map->get(i) == value(i)) << i;
        for (std::uint64_t i = from; i < from + count / 7; ++i)
            ASSERT_TRUE(map->insert(i, value(i))) << i;
    }
    EXPECT_NE(first_bytes % large, 0U);
    const pool p = open();
    EXPECT_GT(p.size_bytes(), 6_MiB);
}

TEST_P(LargePages, AFullPoolIsRefusedAndGoesOn) {
    pool p = open();
    unsigned blocks = 0;
    while (hf_alloc(100'000) != nullptr) ++blocks;
    EXPECT_GT(blocks, 100U);
    EXPECT_EQ(p.why_full().code(), errc::pool_full);
}

INSTANTIATE_TEST_SUITE_P(Modes, LargePages,
                         ::testing::Values(place{mode::process, "."},
                                           place{mode::process, "/dev/shm"},
                                           place{mode::power, "."}, place{mode::pmem, "/dev/shm"}),
                         [](const auto& of) {
                             return std::string(name(of.param.how)) +
                                    (of.param.folder[0] == '.' ? "_on_disk" : "_on_tmpfs");
                         });

} // namespace
