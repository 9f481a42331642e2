// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/page.hpp>
#include <pool/mapping.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <system_error>

namespace hf {
namespace {
constexpr int reservation_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// The pages that begin in a range: (1).
struct pages_of {
    pages_of(const void* at, std::uint64_t range_bytes) noexcept
        : skipped(round_up(address(at), page_bytes()) - address(at)),
          begin(reinterpret_cast<void*>(address(at) + skipped)),
          bytes(round_up(address(at) + range_bytes, page_bytes()) - address(begin)) {}
    std::uint64_t skipped; // from the range's start to the first of them
    void* begin;
    std::uint64_t bytes;

private:
    static std::uint64_t address(const void* of) noexcept {
        return reinterpret_cast<std::uint64_t>(of);
    }
};

/// Upholds (1) of forks.hpp. 0, or the error.
int leave_out_of_children(void* at, std::uint64_t bytes) noexcept {
    while (::madvise(at, bytes, MADV_DONTFORK) != 0)
        if (errno != EINTR) return errno;
    return 0;
}
} // namespace

int reserve_addresses(std::uint64_t base, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes != 0);
    const pages_of wanted(reinterpret_cast<void*>(base), bytes);
    if (wanted.bytes == 0) return 0;
    void* const got = ::mmap(wanted.begin, wanted.bytes, PROT_NONE,
                             reservation_flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return errno;
    const int failed = got == wanted.begin ? leave_out_of_children(got, wanted.bytes) : EEXIST;
    if (failed != 0) ::munmap(got, wanted.bytes); // a kernel older than the flag took it as a hint
    return failed;
}

static void let(void* at, std::uint64_t bytes, int protection) noexcept {
    if (const pages_of its(at, bytes); its.bytes != 0)
        (void)::mprotect(its.begin, its.bytes, protection);
}
void let_read(void* at, std::uint64_t bytes) noexcept { let(at, bytes, PROT_READ); }
void let_store(void* at, std::uint64_t bytes) noexcept { let(at, bytes, PROT_READ | PROT_WRITE); }

void release_addresses(void* base, std::uint64_t bytes) noexcept {
    if (const pages_of its(base, bytes); its.bytes != 0) ::munmap(its.begin, its.bytes);
}

int map_file(void* at, int fd, std::uint64_t offset, std::uint64_t bytes, mapped_as how) noexcept {
    HF_ASSERT_SLOW(bytes != 0);
    const pages_of its(at, bytes);
    if (its.bytes == 0) return 0;
    int flags = MAP_FIXED;
    const bool stores = how != mapped_as::shared_to_read;
    if (how == mapped_as::shared || !stores) flags |= MAP_SHARED;
    if (how == mapped_as::shared_sync) flags |= MAP_SHARED_VALIDATE | MAP_SYNC;
    if (how == mapped_as::copy_on_write) flags |= MAP_PRIVATE | MAP_NORESERVE;
    const bool mapped = ::mmap(its.begin, its.bytes, stores ? PROT_READ | PROT_WRITE : PROT_READ,
                               flags, fd, static_cast<off_t>(offset + its.skipped)) != MAP_FAILED;
    const int failed = mapped ? leave_out_of_children(its.begin, its.bytes) : errno;
    if (failed == 0) return 0;
    // A failed MAP_FIXED may have taken the reservation away already.
    (void)::mmap(its.begin, its.bytes, PROT_NONE, reservation_flags | MAP_FIXED, -1, 0);
    return failed;
}

int can_map_sync(int fd) noexcept {
    constexpr std::size_t page = 4096;
    void* const got =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    if (got == MAP_FAILED)
        return errno == EINVAL ? EOPNOTSUPP : errno; // an older kernel says EINVAL
    ::munmap(got, page);
    return 0;
}

bool caches_persist(const char* regions) {
    std::error_code failed;
    bool any = false;
    std::filesystem::directory_iterator each(regions, failed);
    for (; !failed && each != end(each); each.increment(failed)) {
        if (!each->path().filename().native().starts_with("region")) continue;
        std::string domain;
        std::ifstream(each->path() / "persistence_domain") >> domain;
        if (domain != "cpu_cache") return false;
        any = true;
    }
    return any && !failed;
}

void populate(void* at, std::uint64_t bytes) noexcept {
    while (::madvise(at, bytes, MADV_POPULATE_WRITE) != 0 && errno == EINTR) {}
}

} // namespace hf
