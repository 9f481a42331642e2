// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_system.hpp>
#include <pool/restarted.hpp>

#include <fmt/format.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <sys/ioctl.h>
#include <sys/vfs.h>

namespace hf {
namespace {

enum class trait : std::uint8_t { copies, below, remote };

struct known_system {
    std::uint32_t magic;
    const char* name;
    trait what;
};
// File systems that are missing in <linux/magic.h>, by their numbers in statfs(2) and their own
// sources.
constexpr known_system known[] = {
    {BTRFS_SUPER_MAGIC, "btrfs", trait::copies},
    {0x2fc12fc1, "zfs", trait::copies},
    {0xca451a4e, "bcachefs", trait::copies},
    {NILFS_SUPER_MAGIC, "nilfs2", trait::copies},
    {F2FS_SUPER_MAGIC, "f2fs", trait::copies},
    {OVERLAYFS_SUPER_MAGIC, "an overlay", trait::below},
    {ECRYPTFS_SUPER_MAGIC, "ecryptfs", trait::below},
    {FUSE_SUPER_MAGIC, "FUSE", trait::below},
    {NFS_SUPER_MAGIC, "NFS", trait::remote},
    {SMB_SUPER_MAGIC, "SMB", trait::remote},
    {CIFS_SUPER_MAGIC, "SMB", trait::remote},
    {SMB2_SUPER_MAGIC, "SMB", trait::remote},
    {CEPH_SUPER_MAGIC, "Ceph", trait::remote},
    {AFS_SUPER_MAGIC, "AFS", trait::remote},
    {V9FS_MAGIC, "9p", trait::remote},
};

std::uint32_t magic_of(int descriptor) noexcept {
    struct statfs system{};
    const int failed = restarted([&] { return ::fstatfs(descriptor, &system); });
    return failed != 0 ? 0 : static_cast<std::uint32_t>(system.f_type);
}

} // namespace

std::string file_system_doubt(int descriptor) {
    const std::uint32_t magic = magic_of(descriptor);
    const auto* const found = std::ranges::find(known, magic, &known_system::magic);
    if (found == std::ranges::end(known)) return {};
    switch (found->what) {
    case trait::copies:
        return fmt::format("on {}, which writes to a new place on the disk: while the disk is "
                           "full a store ends the process (SIGBUS); expected ext4, XFS or tmpfs, "
                           "or space that nobody else can take",
                           found->name);
    case trait::below:
        return fmt::format("on {}: what is below is not known; where that writes to a new place "
                           "on the disk (btrfs, zfs), a store ends the process (SIGBUS) while the "
                           "disk is full",
                           found->name);
    case trait::remote: break;
    }
    return fmt::format(
        "on {}, another machine's disk: when it is full, or out of reach, a store may end the "
        "process (SIGBUS), and what another machine sees meanwhile is not known; expected a disk "
        "of this machine",
        found->name);
}

unshared unshare(int descriptor) noexcept {
    constexpr unsigned extents_at_once = 128;
    alignas(fiemap) std::byte room[sizeof(fiemap) + extents_at_once * sizeof(fiemap_extent)];
    unshared out;
    const std::uint32_t magic = magic_of(descriptor);
    if (magic == TMPFS_MAGIC || magic == EXT4_SUPER_MAGIC) return out; // none is ever shared
    bool last = false;
    for (std::uint64_t at = 0; !last;) {
        std::memset(room, 0, sizeof room);
        auto* const map = reinterpret_cast<fiemap*>(room);
        map->fm_start = at;
        map->fm_length = ~std::uint64_t{0} - at;
        map->fm_extent_count = extents_at_once;
        // A file system without this question does not share blocks in the way that it asks about.
        if (restarted([&] { return ::ioctl(descriptor, FS_IOC_FIEMAP, map); }) != 0) return out;
        if (map->fm_mapped_extents == 0) return out;
        for (const fiemap_extent& e : std::span(map->fm_extents, map->fm_mapped_extents)) {
            at = e.fe_logical + e.fe_length;
            last = (e.fe_flags & FIEMAP_EXTENT_LAST) != 0;
            if ((e.fe_flags & FIEMAP_EXTENT_SHARED) == 0 || out.left) continue;
            const int done = restarted([&] {
                return ::fallocate(descriptor, FALLOC_FL_UNSHARE_RANGE,
                                   static_cast<off_t>(e.fe_logical),
                                   static_cast<off_t>(e.fe_length));
            });
            if (done == 0) out.bytes += e.fe_length;
            else if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) out.left = true;
            else out.failed = errno;
            if (out.failed != 0) return out;
        }
    }
    return out;
}

} // namespace hf
