// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <alloc/pool_image.hpp>
#include <base/assert.hpp>
#include <open/sealing.hpp>
#include <pool/believed.hpp>
#include <pool/file_checks.hpp>
#include <pool/seal.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace hf {
void seal(pool::impl& closing) noexcept try {
    pool_file& file = *closing.file;
    const os_file* const under = file.file_to_seal();
    if (under == nullptr) return;
    // A file that has been cut would fault when its blocks are read.
    if (const auto present = under->size_bytes(); !present || *present < file.size_bytes()) return;
    seal_writer writer(*under, file.size_bytes());
    for (std::uint32_t l = 0; l < file.shape().lane_count; ++l) {
        HF_ASSERT_SLOW(lane_at(file, l)->committed >= closing.lanes[l].mark_due.load());
        writer.add_lane(lane_at(file, l)->committed);
    }
    const heap& blocks = closing.blocks.durable();
    const medium pm = file.medium();
    const bool cached = file.mode() == mode::pmem; // in mode power the image goes home unchanged
    std::uint64_t sealed = 0;
    bool sound = true;
    blocks.for_each([&](block b) {
        // The tables were hostile when the pool was opened, and no open looks at all of them.
        sound = sound && (blocks.is_slab(b.bytes) || blocks.well_formed(b));
        if (!sound) return;
        const std::byte* const at = file.base() + b.offset;
        trace::announce(believed::checked, at, b.bytes);
        // Seals a lock's word, and anything else that is not flushed, as the caches have it.
        if (cached) pm.flush(at, b.bytes);
        writer.add_block({b.offset, b.bytes, XXH3_64bits(at, b.bytes)});
        ++sealed;
    });
    // A bit without a block is damage. It must not be sealed away: it may be an object whose
    // chunk's entry is damaged.
    if (sound && sealed == blocks.bits_set()) {
        if (cached) pm.fence(); // the header that vouches for the seal comes after it
        (void)writer.finish(file.closing_header(), *file.roots());
    }
} catch (const std::bad_alloc&) { // no memory, no seal
}

namespace {

/// A file's bytes, mapped to be read.
class mapped_bytes {
public:
    mapped_bytes(const os_file& file, std::uint64_t bytes)
        : bytes_(bytes), at_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.descriptor(), 0)) {}
    ~mapped_bytes() {
        if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
    }
    mapped_bytes(const mapped_bytes&) = delete;
    mapped_bytes& operator=(const mapped_bytes&) = delete;
    bool mapped() const noexcept { return at_ != MAP_FAILED; }
    std::span<const std::byte> all() const noexcept {
        return {static_cast<const std::byte*>(at_), bytes_};
    }

private:
    std::uint64_t bytes_;
    void* at_;
};

/// Puts every block into a seal.
class sealed_blocks final : public table_visitor {
public:
    sealed_blocks(std::span<const std::byte> file, seal_writer& to) : file_(file), to_(to) {}
    void on_block(block b) override {
        to_.add_block({b.offset, b.bytes, XXH3_64bits(file_.data() + b.offset, b.bytes)});
    }
    void on_fault(const table_fault&) override { sound_ = false; }
    bool sound() const noexcept { return sound_; }

private:
    std::span<const std::byte> file_;
    seal_writer& to_;
    bool sound_ = true;
};

} // namespace

status seal_copy(const os_file& copy) {
    header_bytes_read read;
    if (status ok = read_copies(copy, read); !ok.ok()) return ok;
    const header_copies copies = judge_copies(read.page_a, read.page_b);
    if (!copies.any_valid() || !is_whole_copy(copies.chosen())) return {};
    const pool_header& h = copies.chosen();
    const auto present = copy.size_bytes();
    if (!present) return present.error();
    if (!check_header("", h, *present).ok()) return {};
    const extent& last = h.extents[h.extent_count - 1];
    const std::uint64_t end = last.offset_bytes + last.size_bytes;
    const mapped_bytes file(copy, end);
    if (!file.mapped())
        return refusal(copy.path(), errc::io_error, fmt::format("map: {}", std::strerror(errno)));
    const pool_image pool(file.all(), h);
    seal_writer writer(copy, end);
    for (std::uint32_t l = 0; l < h.lane_count; ++l)
        writer.add_lane(pool.word(h.lanes_offset + l * h.lane_bytes));
    sealed_blocks blocks(file.all(), writer);
    walk_tables(pool, blocks);
    const auto content = file.all().subspan(root_words_offset);
    if (blocks.sound())
        (void)writer.finish(h, pool.roots(), checksum(content.data(), content.size(), seal_magic));
    return {};
}

} // namespace hf
