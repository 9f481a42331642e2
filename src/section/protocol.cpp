// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/names.hpp>
#include <section/protocol.hpp>
#include <section/section_in.hpp>

namespace hf {

template <class Medium> void* protocol_in<Medium>::alloc(std::uint64_t bytes) {
    const block b = in_.reserve(bytes);
    // A refusal for lack of room is an input of the section as well.
    in_.append(record_kind::alloc, b.offset, b.bytes);
    return b.offset == 0 ? nullptr : in_.take(b);
}

template <class Medium> void protocol_in<Medium>::free(block b) {
    in_.append(record_kind::free, b.offset, b.bytes);
}

template class protocol_in<ordered_medium>;
template class protocol_in<fenced_medium>;

const void* protocol::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    return in_.keep(volatile_bytes, bytes);
}

void protocol::doom() {
    std::uint32_t can = 0;
    for (const engine_row* row : engine_table())
        if (row->sections == engine_sections::buffered) can |= row->bit;
    fatal(
        "hf::abort_section: section %s (%s) runs on engine %s, which cannot take back what it has "
        "stored: build it with engine %s",
        readable_name(in_.function()->name), in_.function()->where, of_.name,
        engine_names(can).c_str());
}

void protocol::no_room_for_log() {
    in_.no_room_for_log(
        "the next open rolls the section back, or completes it where there is room");
}

} // namespace hf
