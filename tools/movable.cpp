// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "movable.hpp"

#include <base/engines.hpp>
#include <mod/format.hpp>
#include <mod/kinds.hpp>
#include <verify/objects.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace hf::tools {
namespace {

template <class T> T load(const pool_image& pool, std::uint64_t offset) {
    T out{};
    if (pool.has(offset, sizeof out)) std::memcpy(&out, pool.file().data() + offset, sizeof out);
    return out;
}

class all_blocks final : public table_visitor {
public:
    void on_block(block b) override { found.push_back(b); }
    void on_fault(const table_fault& fault) override {
        if (damaged_at == 0) damaged_at = fault.offset;
    }
    std::vector<block> found;
    std::uint64_t damaged_at = 0;
};

std::string text_of(const char (&name)[mod::name_bytes_max + 1]) {
    std::string text(name, ::strnlen(name, sizeof name));
    std::ranges::replace_if(text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return text;
}

/// Adds MOD's blocks to 'known'.
std::string held_by_mod(const pool_image& pool, std::size_t blocks,
                        std::unordered_set<std::uint64_t>& known) {
    const std::uint64_t at = pool.roots().anchor(engine_mod);
    if (at == 0) return {};
    const auto super = load<mod::superblock>(pool, at);
    const std::uint64_t cells_max = (pool.chunk_bytes() - sizeof super) / sizeof(mod::cell);
    if (super.magic != mod::superblock_magic || super.cell_count > cells_max)
        return fmt::format("the damaged superblock of MOD at {:#x}", at);
    known.insert(at);
    for (std::uint64_t i = 0; i < super.cell_count; ++i) {
        const auto c = load<mod::cell>(pool, at + sizeof super + i * sizeof(mod::cell));
        if (c.kind != 0 && c.kind != mod::builtin_kind::family &&
            c.kind >= mod::builtin_kind::users)
            return fmt::format("root \"{}\", whose kind {} is a program's own", text_of(c.name),
                               c.kind);
    }
    std::uint64_t arena = super.arenas;
    for (std::size_t n = 0; arena != 0; ++n) {
        const auto head = load<mod::arena_head>(pool, arena);
        if (n == blocks || head.magic != mod::arena_magic)
            return fmt::format("a damaged arena of MOD at {:#x}", arena);
        known.insert(arena);
        arena = head.next;
    }
    return {};
}

} // namespace

std::string held_in_place_by(const pool_image& pool) {
    const root_words roots = pool.roots();
    if (roots.root_offset != 0) return fmt::format("a root object of {} bytes", roots.root_bytes);
    if (roots.migration_offset != 0) return "a migration to another layout";
    std::uint32_t others = 0;
    for (std::uint32_t bit = 0; bit < engines_max; ++bit)
        if (roots.anchors[bit] != 0) others |= 1U << bit;
    others &= ~(std::uint32_t{engine_mod} | engine_simpo);
    if (others != 0) return "what is kept there of engine " + engine_names(others);
    all_blocks blocks;
    walk_tables(pool, blocks);
    if (blocks.damaged_at != 0)
        return fmt::format("damage in the allocator's tables at {:#x}", blocks.damaged_at);
    std::unordered_set<std::uint64_t> known;
    if (std::string mod = held_by_mod(pool, blocks.found.size(), known); !mod.empty()) return mod;
    const verify::objects_image objects = verify::read_objects(pool, false);
    if (!objects.faults.empty())
        return fmt::format("damage of {} at {:#x}", objects.faults[0].where,
                           objects.faults[0].offset);
    known.insert(roots.anchor(engine_simpo));
    for (const block& b : objects.blocks) known.insert(b.offset);
    std::erase_if(blocks.found, [&](const block& b) { return known.contains(b.offset); });
    if (blocks.found.empty()) return {};
    return fmt::format("{} blocks that no container and no persistent object has, the first one "
                       "at {:#x}, of {} bytes",
                       blocks.found.size(), blocks.found[0].offset, blocks.found[0].bytes);
}

} // namespace hf::tools
