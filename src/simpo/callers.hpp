// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The callers whose calls an object makes once, however often they are repeated.  SIMPO §3.3.2
//
// (1) Whether a call is made depends on the table and the record alone, and making it changes both
//     the object and the table. Recovery makes calls again from a copy that holds both, so it
//     decides as the first time.
// (2) A call is made if its number is greater than the last one of its caller; without a caller's
//     entry nothing is called.
// (3) Nothing in the table is trusted: its shape bounds every index.
#pragma once

#include <simpo/format.hpp>

#include <holdfast/simpo.hpp>

#include <cstddef>
#include <cstdint>

namespace hf::simpo {

/// The table that lies there. Of the thread that holds the object's lock.
class caller_table {
public:
    caller_table(std::byte* at, const caller_shape& shape) noexcept : at_(at), shape_(shape) {}

    const caller_shape& shape() const noexcept { return shape_; }
    /// Null if the object does not know it.
    caller_entry* find(std::uint64_t id) const noexcept;
    /// The place for one more. Null if all places are taken.
    caller_entry* room() const noexcept { return find(0); }
    /// Nothing if it is there already, or there is no room.
    void add(std::uint64_t id) noexcept;
    void dismiss(std::uint64_t id) noexcept;
    bool full(const caller_entry& of) const noexcept { return of.results >= shape_.results; }
    /// The kept result of this call. Null if it is no longer kept, or never was.
    const result_head* result_of(const caller_entry& of, std::uint64_t number) const noexcept;
    /// The place of the caller's next result, from now on.
    result_head& next_result(caller_entry& of) noexcept;

private:
    caller_entry* entries() const noexcept { return reinterpret_cast<caller_entry*>(at_); }
    result_head& slot(const caller_entry& of, std::uint64_t result) const noexcept;

    std::byte* at_;
    caller_shape shape_;
};

/// The table of an object in memory that its layout describes.
inline caller_table table_of(std::byte* object, const object_head& h) noexcept {
    return {object + layout_of(h).table_offset, callers_of(h)};
}

/// Checksum of a call, to compare when its number comes again.
std::uint64_t sum_of_call(std::uint64_t function, std::uint32_t schema, std::uint16_t version,
                          const std::uint64_t* arguments, std::uint8_t words) noexcept;

/// Makes the logged call, which has an operation, if (2) requires it.
void make_operation(std::byte* object, caller_table callers, const record& r,
                    const detail::function* f) noexcept;
/// Makes the logged call if (2) requires it. 'f': the function, null if it has none.
inline void make_call(std::byte* object, const object_head& of, const record& r,
                      const detail::function* f) noexcept {
    if (operation_words(r.head.kind) != 0)
        return make_operation(object, table_of(object, of), r, f);
    if (f != nullptr) f->run(object, r.arguments); // else a group's end alone
}

} // namespace hf::simpo
