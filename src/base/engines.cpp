// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/engines.hpp>

#include <fmt/format.h>

#include <bit>

namespace hf {
namespace {

constexpr const engine_row* rows[] = {
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs) &engine_rows::name,
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
};

constexpr bool bits_are_apart() {
    std::uint32_t seen = 0;
    for (const engine_row* row : rows) {
        if ((row->bit & (row->bit - 1)) != 0 || (seen & row->bit) != 0) return false;
        if (row->bit >= 1u << engines_max) return false;
        seen |= row->bit;
    }
    return true;
}
static_assert(bits_are_apart(), "an engine has one bit of its own, or none");

} // namespace

std::span<const engine_row* const> engine_table() noexcept { return rows; }

const engine_row* engine_of(std::uint32_t bit) noexcept {
    for (const engine_row* row : rows)
        if (row->bit == bit && bit != 0) return row;
    return nullptr;
}

std::uint32_t bits_with_sections(std::uint32_t mask) noexcept {
    std::uint32_t bits = 0;
    for (const engine_row* row : rows)
        if (row->sections != engine_sections::none) bits |= row->bit & mask;
    return bits;
}

std::string engine_names(std::uint32_t mask) {
    std::string out;
    for (; mask != 0; mask &= mask - 1) {
        if (!out.empty()) out += ", ";
        const auto bit = static_cast<unsigned>(std::countr_zero(mask));
        const engine_row* row = engine_of(1u << bit);
        out += row != nullptr ? row->name : fmt::format("unknown engine bit {}", bit);
    }
    return out;
}

void recovery_report::add(const engine_recovery& more) {
    sections_pending += more.sections_pending;
    re_executed += more[recovery_verb::re_execute];
    replayed += more[recovery_verb::replay];
    resumed += more[recovery_verb::resume];
    rolled_back += more[recovery_verb::roll_back];
    discarded += more[recovery_verb::discard];
    no_room += more.no_room;
    engines.push_back(more);
}

} // namespace hf
