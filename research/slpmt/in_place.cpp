// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <slpmt/in_place.hpp>
#include <slpmt/recovery.hpp>

namespace hf::slpmt {
namespace {

constexpr int identifiers =
    4; // so many empty transactions make everything lazy durable (SLPMT §III-C)
using line = update_array::line;

std::uint64_t place_of(std::uint64_t update) {
    return offsetof(line, updates) + update * sizeof(line::update);
}

} // namespace

in_place_updates::in_place_updates(machine& on, update_array to, stores how)
    : on_(on), to_(to), how_(how) {
    begin_anew();
}

void in_place_updates::begin_anew() { // upholds (2)
    for (int i = 0; i < identifiers; ++i) {
        on_.begin();
        on_.commit();
    }
    lines_used_ = 0;
    on_.begin();
    on_.store(to_.at, on_.resolved() + 2); // the next transaction's
    on_.commit();
}

void in_place_updates::begin(std::uint64_t stores_max) {
    const std::uint64_t lines =
        (stores_max + update_array::updates_per_line - 1) / update_array::updates_per_line;
    HF_ASSERT(lines <= to_.lines);
    if (lines_used_ + lines > to_.lines) begin_anew();
    on_.begin();
    in_line_ = update_array::updates_per_line;
}

void in_place_updates::store(std::uint64_t offset, std::uint64_t value) {
    on_.store(offset, value, how_.data);
    if (in_line_ == update_array::updates_per_line) { // upholds (1)
        const std::uint64_t at = to_.line_at(lines_used_++);
        for (in_line_ = 1; in_line_ < update_array::updates_per_line; ++in_line_)
            on_.store(at + place_of(in_line_), 0, how_.array);
        on_.store(at, on_.resolved() + 1, how_.array);
        in_line_ = 0;
    }
    const std::uint64_t at = to_.line_at(lines_used_ - 1) + place_of(in_line_++);
    on_.store(at + offsetof(line::update, offset), offset, how_.array);
    on_.store(at + offsetof(line::update, value), value, how_.array);
}

void in_place_updates::commit() { on_.commit(); }

void reapply(image& of, const layout& where, const update_array& from) {
    const std::uint64_t resolved = newest(of.bytes(), where.log_of(0)).tag;
    std::uint64_t tag = of.word(from.at).value;
    for (std::uint64_t i = 0; i < from.lines; ++i) {
        const std::uint64_t at = from.line_at(i), its = of.word(at).value;
        if (its < tag || its > resolved) break;
        tag = its;
        for (std::uint64_t u = 0; u < update_array::updates_per_line; ++u) {
            const std::uint64_t update = at + place_of(u);
            const std::uint64_t to = of.word(update + offsetof(line::update, offset)).value;
            if (to != 0) of.put(to, of.word(update + offsetof(line::update, value)).value);
        }
    }
    of.put(from.at, resolved + 2); // upholds (3)
}

} // namespace hf::slpmt
