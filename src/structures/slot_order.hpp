// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// slot_order<Slots>: which slots of a node are in use, and in which order. The slots themselves do
// not move: inserting or removing one overwrites the order and no other slot.
//
// Source: Mao, Kohler and Morris, EuroSys 2012 §4.6.2 (Masstree's permutation). Differs: a section
// overwrites it, so it need not be one word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hf::structures {

template <unsigned Slots> struct alignas(8) slot_order {
    static_assert(Slots >= 2 && Slots < 64);
    static constexpr unsigned capacity = (Slots + 8) / 8 * 8 - 1; // no padding

    std::uint8_t count;          // slots in use
    std::uint8_t slot[capacity]; // the first 'count': their numbers, in order; the others: anything

    constexpr bool full() const noexcept { return count == Slots; }

    /// A slot that is not in use. Requires: !full().
    constexpr unsigned free_slot() const noexcept {
        return static_cast<unsigned>(std::countr_one(used()));
    }

    constexpr slot_order with(unsigned position, unsigned added) const noexcept {
        slot_order made = *this;
        for (unsigned i = count; i > position; --i) made.slot[i] = slot[i - 1];
        made.slot[position] = static_cast<std::uint8_t>(added);
        ++made.count;
        return made;
    }

    constexpr slot_order without(unsigned position) const noexcept {
        slot_order made = *this;
        for (unsigned i = position; i + 1 < count; ++i) made.slot[i] = slot[i + 1];
        --made.count;
        return made;
    }

    constexpr slot_order first(unsigned slots) const noexcept {
        slot_order made = *this;
        made.count = static_cast<std::uint8_t>(slots);
        return made;
    }

    constexpr slot_order from(unsigned position) const noexcept {
        slot_order made{};
        for (unsigned i = position; i < count; ++i) made.slot[i - position] = slot[i];
        made.count = static_cast<std::uint8_t>(count - position);
        return made;
    }

    /// Whether 'count' and the slots in use are numbers they can be, each once.
    constexpr bool check() const noexcept {
        if (count > Slots) return false;
        for (unsigned i = 0; i < count; ++i)
            if (slot[i] >= Slots) return false;
        return std::popcount(used()) == count;
    }

private:
    constexpr std::uint64_t used() const noexcept {
        std::uint64_t bits = 0;
        for (unsigned i = 0; i < count; ++i) bits |= std::uint64_t{1} << slot[i];
        return bits;
    }
};

} // namespace hf::structures
