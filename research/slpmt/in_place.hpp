// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Updates in place whose random writes are off the commit's way (SLPMT §V-A): each store is lazy
// and logged, and the new value goes to the end of an array as well, eager and log-free. A commit
// writes the array's lines, which follow each other, and leaves the data in the cache. Recovery
// rolls back what is interrupted, then stores the array's values again, in order: no address is
// looked up anywhere else.
//
// (1) A line of the array is of one transaction and names it: it counts if that is resolved. No
//     transaction stores to another's lines: that would make the other's data durable at once
//     (machine.hpp, 3).
// (2) The array begins anew when everything lazy is durable, and says durably from which
//     transaction on: of the old lines some would take their words back.
// (3) Recovery ends by saying that the array is empty: the mark that it leaves (recovery.hpp, 3) is
//     above the tag of the interrupted transaction, whose lines would count from then on.
#pragma once

#include <base/line.hpp>
#include <slpmt/machine.hpp>
#include <slpmt/objects.hpp>

namespace hf::slpmt {

/// The place of the array: a line that says from which transaction on its lines count, then so many
/// lines.
struct update_array {
    std::uint64_t at;
    std::uint64_t lines;

    static constexpr std::uint64_t updates_per_line = 3;
    /// A line: its writer, and the bytes; a word more is unused.
    struct line {
        std::uint64_t tag;
        struct update {
            std::uint64_t offset, value; // 0: none
        } updates[updates_per_line];
        std::uint64_t unused;
    };
    static_assert(sizeof(line) == line_bytes);

    std::uint64_t line_at(std::uint64_t i) const { return at + (1 + i) * line_bytes; }
    std::uint64_t bytes() const { return (1 + lines) * line_bytes; }
};

/// Updates on a machine with one core.
class in_place_updates {
public:
    /// The ways to store data and the array. Other ways than the default are for tests that show
    /// why it is needed.
    struct stores {
        operands data = lazy_logged, array = log_free;
    };
    /// Starts with an array of zeros, or one that reapply() has been through.
    in_place_updates(machine& on, update_array to, stores how);
    in_place_updates(machine& on, update_array to) : in_place_updates(on, to, stores{}) {}

    /// Begins a transaction of at most this many stores, for which the array has lines.
    void begin(std::uint64_t stores_max);
    void store(std::uint64_t offset, std::uint64_t value);
    void commit();

private:
    void begin_anew();

    machine& on_;
    const update_array to_;
    const stores how_;
    std::uint64_t lines_used_ = 0, in_line_ = 0;
};

/// After the log has been applied: stores the values of resolved transactions again. May be
/// interrupted and done again.
void reapply(image& of, const layout& where, const update_array& from);

} // namespace hf::slpmt
