// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <open/sealing.hpp>
#include <pool/believed.hpp>
#include <pool/seal.hpp>

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
    const bool cached = file.mode() == mode::pmem; // in mode power the image goes home as it stands
    std::uint64_t sealed = 0;
    bool sound = true;
    blocks.for_each([&](block b) {
        // The tables were hostile when the pool was opened, and no open looks at all of them.
        sound = sound && (blocks.is_slab(b.bytes) || blocks.well_formed(b));
        if (!sound) return;
        const std::byte* const at = file.base() + b.offset;
        trace::announce(believed::checked, at, b.bytes);
        // A lock's word, and whatever else nobody has flushed, is sealed as the caches have it.
        if (cached) pm.flush(at, b.bytes);
        writer.add_block({b.offset, b.bytes, XXH3_64bits(at, b.bytes)});
        ++sealed;
    });
    // A bit that is no block is damage. It must not be sealed away: it may be an object whose
    // chunk's entry was hit.
    if (sound && sealed == blocks.bits_set()) {
        if (cached) pm.fence(); // the header that vouches for the seal comes after it
        (void)writer.finish(file.closing_header(), *file.roots());
    }
} catch (const std::bad_alloc&) { // no memory, no seal
}

} // namespace hf
