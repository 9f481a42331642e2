// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/mapping.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <system_error>

namespace hf {
namespace {
[[maybe_unused]] constexpr std::uint64_t page_bytes = 4096;
constexpr int reservation_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// Upholds (1) of forks.hpp. 0, or the error.
int leave_out_of_children(void* at, std::uint64_t bytes) noexcept {
    while (::madvise(at, bytes, MADV_DONTFORK) != 0)
        if (errno != EINTR) return errno;
    return 0;
}
} // namespace

int reserve_addresses(std::uint64_t base, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(base % page_bytes == 0);
    HF_ASSERT_SLOW(bytes != 0);
    void* const wanted = reinterpret_cast<void*>(base);
    void* const got =
        ::mmap(wanted, bytes, PROT_NONE, reservation_flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return errno;
    const int failed = got == wanted ? leave_out_of_children(got, bytes) : EEXIST;
    if (failed != 0) ::munmap(got, bytes); // a kernel older than the flag took it as a hint
    return failed;
}

void let_read(void* at, std::uint64_t bytes) noexcept {
    if (bytes != 0) (void)::mprotect(at, bytes, PROT_READ);
}

void let_store(void* at, std::uint64_t bytes) noexcept {
    if (bytes != 0) (void)::mprotect(at, bytes, PROT_READ | PROT_WRITE);
}

void release_addresses(void* base, std::uint64_t bytes) noexcept { ::munmap(base, bytes); }

int map_file(void* at, int fd, std::uint64_t offset, std::uint64_t bytes, mapped_as how) noexcept {
    HF_ASSERT_SLOW(offset % page_bytes == 0);
    HF_ASSERT_SLOW(bytes != 0);
    int flags = MAP_FIXED;
    const bool stores = how != mapped_as::shared_to_read;
    if (how == mapped_as::shared || !stores) flags |= MAP_SHARED;
    if (how == mapped_as::shared_sync) flags |= MAP_SHARED_VALIDATE | MAP_SYNC;
    if (how == mapped_as::copy_on_write) flags |= MAP_PRIVATE | MAP_NORESERVE;
    const bool mapped = ::mmap(at, bytes, stores ? PROT_READ | PROT_WRITE : PROT_READ, flags, fd,
                               static_cast<off_t>(offset)) != MAP_FAILED;
    const int failed = mapped ? leave_out_of_children(at, bytes) : errno;
    if (failed == 0) return 0;
    // A failed MAP_FIXED may have taken the reservation away already.
    (void)::mmap(at, bytes, PROT_NONE, reservation_flags | MAP_FIXED, -1, 0);
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
