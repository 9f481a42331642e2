// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator's tables (alloc/heap.hpp): an entry per chunk, a bit per granule. An entry of a
// chunk without bits says nothing, so only chunks with bits can be wrong.
#include <alloc/pool_image.hpp>
#include <base/line.hpp>

#include <bit>

namespace hf {
namespace {

class walk {
public:
    walk(const pool_image& pool, table_visitor& visitor) : pool_(pool), visitor_(visitor) {}

    void extent(const extent_image& e) {
        extent_ = &e;
        const std::uint64_t words = pool_.words_per_chunk();
        for (std::uint64_t c = 0; c < e.chunks;) {
            // Bytes that a cut file has lost read as free; another check reports them.
            if (!pool_.has(bits_at(c), words * word_bytes)) return;
            c += has_bits(c) ? chunk(c) : 1;
        }
    }

private:
    std::uint64_t bits_at(std::uint64_t chunk) const noexcept {
        return extent_->bits_offset + chunk * pool_.words_per_chunk() * word_bytes;
    }
    std::uint64_t start_of(std::uint64_t chunk) const noexcept {
        return extent_->data_offset + chunk * pool_.chunk_bytes();
    }
    bool has_bits(std::uint64_t chunk) const noexcept {
        const std::uint64_t at = bits_at(chunk);
        for (std::uint64_t w = 0; w < pool_.words_per_chunk(); ++w)
            if (pool_.word(at + w * word_bytes) != 0) return true;
        return false;
    }
    void fault(std::uint64_t chunk, table_fault::kind what, std::uint64_t offset) {
        visitor_.on_fault({offset, start_of(chunk), what, pool_.word(offset)});
    }

    /// Visits a chunk that has bits; returns how many chunks it took.
    std::uint64_t chunk(std::uint64_t c) {
        const std::uint64_t entry_offset = extent_->entries_offset + c * word_bytes;
        const chunk_entry entry{pool_.word(entry_offset)};
        const unsigned size_class = entry.size_class();
        if (entry.kind() == chunk_kind::slab && size_class < pool_.classes().count() &&
            entry.word == chunk_entry::slab(size_class).word) {
            slab(c, size_class);
            return 1;
        }
        const std::uint64_t run = entry.run_chunks();
        if (entry.kind() == chunk_kind::large && entry.word == chunk_entry::large(run).word &&
            run >= 1 && run <= extent_->chunks - c)
            return large(c, run);
        fault(c, table_fault::kind::entry, entry_offset);
        return 1;
    }

    void slab(std::uint64_t c, unsigned size_class) {
        const auto size = static_cast<std::uint32_t>(pool_.classes().block_bytes(size_class));
        const auto granules = static_cast<std::uint32_t>(size / granule_bytes);
        const std::uint32_t slots = pool_.classes().slots(size_class);
        for (std::uint32_t w = 0; w < pool_.words_per_chunk(); ++w) {
            const std::uint64_t at = bits_at(c) + w * word_bytes;
            std::uint64_t stray = 0;
            for (std::uint64_t bits = pool_.word(at); bits != 0; bits &= bits - 1) {
                const std::uint32_t g = w * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
                if (g % granules == 0 && g / granules < slots)
                    visitor_.on_block({start_of(c) + g * granule_bytes, size});
                else stray |= bits & -bits;
            }
            if (stray != 0)
                visitor_.on_fault({at, start_of(c), table_fault::kind::stray_bit, stray});
        }
    }

    std::uint64_t large(std::uint64_t c, std::uint64_t run) {
        const std::uint64_t first = pool_.word(bits_at(c));
        if ((first & 1) == 0) { // bits, but none where the run starts
            fault(c, table_fault::kind::entry, extent_->entries_offset + c * word_bytes);
            return 1;
        }
        visitor_.on_block({start_of(c), run * pool_.chunk_bytes()});
        const std::uint64_t words = run * pool_.words_per_chunk();
        if (!pool_.has(bits_at(c), words * word_bytes)) return run;
        for (std::uint64_t w = 0; w < words; ++w) {
            const std::uint64_t at = bits_at(c) + w * word_bytes;
            const std::uint64_t stray = pool_.word(at) & ~std::uint64_t{w == 0};
            if (stray == 0) continue;
            const std::uint64_t in = c + w / pool_.words_per_chunk();
            visitor_.on_fault({at, start_of(in),
                               in == c ? table_fault::kind::stray_bit : table_fault::kind::overlap,
                               stray});
        }
        return run;
    }

    const pool_image& pool_;
    table_visitor& visitor_;
    const extent_image* extent_ = nullptr;
};

} // namespace

void walk_tables(const pool_image& pool, table_visitor& visitor) {
    walk all(pool, visitor);
    for (const extent_image& e : pool.extents()) all.extent(e);
}

} // namespace hf
