// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is done to MOD's part of a pool: its superblock and redo record, cells, the list of arenas,
// bitmaps, and nodes, whose words are mostly refs, counts and heights.
#include "mutation.hpp"
#include <mod/format.hpp>

#include <algorithm>

namespace hf::hostile {
namespace {

using mod::granule_bytes;
constexpr std::uint64_t word = sizeof(std::uint64_t);

void add_words(std::vector<std::uint64_t>& to, std::uint64_t from, std::uint64_t bytes) {
    for (std::uint64_t at = from; at + word <= from + bytes; at += word) to.push_back(at);
}

} // namespace

void pool_map::map_mod(std::span<const std::byte> file) {
    mod_super = load_from<hf::root_words>(file, root_words_offset).anchor(engine_mod);
    const auto super = load_from<mod::superblock>(file, mod_super);
    if (mod_super == 0 || super.magic != mod::superblock_magic) return;
    add_words(mod_super_words, mod_super, offsetof(mod::superblock, redo) + 12 * word);
    add_words(mod_super_words, mod_super + offsetof(mod::superblock, exchanges),
              sizeof super.exchanges);
    for (std::uint64_t i = 0; i < super.cell_count; ++i) {
        const std::uint64_t at = mod_super + sizeof super + i * sizeof(mod::cell);
        mod_cells.push_back(at);
        add_words(mod_cell_words, at, offsetof(mod::cell, name) + word);
    }
    for (std::uint64_t at = super.arenas; at != 0;) {
        const auto head = load_from<mod::arena_head>(file, at);
        mod_arenas.push_back(at);
        edges.push_back(at);
        add_words(mod_arena_words, at, offsetof(mod::arena_head, reserved) + word);
        add_words(mod_bitmap_words, at + sizeof head, (head.slots + 63) / 64 * word);
        const std::uint64_t slots = at + mod::slots_at(head.slots);
        for (std::uint32_t s = 0; s < head.slots; ++s) { // those that were ever used
            const std::uint64_t node = slots + std::uint64_t{s} * head.slot_bytes;
            bool used = false;
            for (std::uint64_t w = node; w < node + std::min(head.slot_bytes, 64U) && !used; w += 8)
                used = load_from<std::uint64_t>(file, w) != 0;
            if (used) mod_nodes.push_back({node, head.slot_bytes});
        }
        at = head.next;
    }
}

std::uint32_t mutator::interesting_ref(std::uint32_t old) {
    const auto node = [&] {
        return static_cast<std::uint32_t>(one_of(map_->mod_nodes).offset / granule_bytes);
    };
    const std::uint32_t top_bit = old & ~mod::ref_max;
    switch (pick(12)) {
    case 0: return 0;
    case 1: return old ^ ~mod::ref_max;
    case 2: return static_cast<std::uint32_t>((*random_)());
    case 3: return top_bit | static_cast<std::uint32_t>(interesting_offset() / granule_bytes);
    case 4: // the pool's last granules
        return top_bit |
               static_cast<std::uint32_t>(map_->header.max_bytes / granule_bytes - pick(12));
    case 5: return old + 1;
    case 6: return node() | (chance(50) ? 0 : ~mod::ref_max);
    default: return node() | top_bit; // a circle, or one node below several
    }
}

void mutator::mutate_mod() {
    switch (pick(16)) {
    case 0: return mutate_word(map_->mod_super_words, "superblock word");
    case 1:
    case 2: return mutate_mod_cell();
    case 3: return mutate_word(map_->mod_arena_words, "arena word");
    case 4: return mutate_word(map_->mod_bitmap_words, "bitmap word");
    case 5:
    case 6: return mutate_mod_list();
    case 7: return chance(50) ? forge_mod_record() : forge_mod_exchange();
    default: return mutate_mod_node();
    }
}

void mutator::mutate_mod_node() {
    const block node = one_of(map_->mod_nodes);
    if (chance(5)) { // another node's bytes
        const block other = one_of(map_->mod_nodes);
        const std::uint64_t bytes = std::min(node.bytes, other.bytes);
        for (std::uint64_t at = 0; at < bytes; at += word)
            store(node.offset + at, load<std::uint64_t>(other.offset + at));
        return note("node, copied", node.offset, other.offset);
    }
    // Heads count, refs lead: both are found at multiples of four.
    const std::uint64_t place = node.offset + (chance(35) ? pick(3) * 4 : pick(node.bytes / 4) * 4);
    const auto old = load<std::uint32_t>(place);
    switch (pick(4)) {
    case 0: store(place, static_cast<std::uint32_t>(interesting(old))); break;
    case 1: store(place + pick(4), static_cast<std::uint8_t>(interesting(old))); break;
    default: store(place, interesting_ref(old));
    }
    note("node word", place, load<std::uint32_t>(place));
}

void mutator::mutate_mod_cell() {
    if (map_->mod_cells.empty()) return mutate_byte();
    if (chance(40)) return mutate_word(map_->mod_cell_words, "cell word");
    const std::uint64_t at = one_of(map_->mod_cells);
    const auto old = load<std::uint64_t>(at);
    if (chance(50)) store(at, interesting_ref(static_cast<std::uint32_t>(old)));
    else store(at + 4, static_cast<std::uint32_t>(interesting(old >> 32)));
    if (chance(15)) store(at, load<std::uint64_t>(one_of(map_->mod_cells)));
    note("cell's word", at, load<std::uint64_t>(at));
}

/// The list of arenas, and the one half taken: circles, arenas left out, entries that are not
/// blocks.
void mutator::mutate_mod_list() {
    if (map_->mod_arenas.empty()) return mutate_byte();
    const auto any = [&]() -> std::uint64_t {
        if (chance(70)) return one_of(map_->mod_arenas);
        return chance(50) ? one_of(map_->blocks).offset : interesting_offset();
    };
    const std::uint64_t link = chance(60)
                                   ? one_of(map_->mod_arenas) + offsetof(mod::arena_head, next)
                                   : map_->mod_super + offsetof(mod::superblock, arenas);
    if (chance(70)) {
        store(link, any());
        note("list of arenas", link, load<std::uint64_t>(link));
    }
    if (chance(50)) {
        const std::uint64_t taking = map_->mod_super + offsetof(mod::superblock, taking);
        const block b = one_of(map_->blocks);
        store(taking, chance(50) ? b.offset : any());
        store(taking + word, chance(60) ? map_->header.chunk_bytes : b.bytes);
        note("arena half taken", taking, load<std::uint64_t>(taking));
    }
    if (chance(30))
        store<std::uint64_t>(map_->mod_super + offsetof(mod::superblock, clean), pick(2));
    if (chance(20))
        store<std::uint64_t>(map_->mod_super + offsetof(mod::superblock, shares), pick(2));
}

/// A commit of unrelated roots that would be durable.
void mutator::forge_mod_record() {
    mod::redo_record r{};
    r.number = chance(80) ? 1000 + pick(1000) : interesting(0);
    r.count = chance(90) ? 1 + pick(4) : pick(mod::redo_updates_max + 1);
    for (std::uint64_t i = 0; i < r.count; ++i) {
        const std::uint64_t cells = map_->mod_cells.size();
        r.entries[i].cell = chance(92) ? pick(cells) : interesting(cells);
        const std::uint64_t count = chance(60) ? pick(300) : interesting(1) & 0xffff'ffff;
        r.entries[i].word = count << 32 | interesting_ref(0);
    }
    r.check = mod::redo_check(r);
    store(map_->mod_super + offsetof(mod::superblock, redo), r);
    note("redo record", map_->mod_super, r.count);
}

/// Two elements that would be about to change places.
void mutator::forge_mod_exchange() {
    mod::exchange_record r{};
    r.number = chance(80) ? 1000 + pick(1000) : interesting(0);
    const std::uint64_t cells = map_->mod_cells.size();
    r.cell = static_cast<std::uint32_t>(chance(92) ? pick(cells) : interesting(cells));
    r.bytes = chance(90) ? 1U << pick(4) : static_cast<std::uint32_t>(interesting(8));
    for (auto& e : r.elements) {
        const std::uint64_t node = map_->mod_arenas.empty() ? 0 : one_of(map_->mod_arenas);
        e.at = chance(70) ? node + pick(512) * 8 : interesting(node);
        e.value = interesting(0);
    }
    r.check = mod::exchange_check(r);
    store(map_->mod_super + offsetof(mod::superblock, exchanges) + pick(2) * sizeof r, r);
    note("exchange record", map_->mod_super, r.bytes);
}

} // namespace hf::hostile
