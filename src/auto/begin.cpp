// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of functions that are compiled for two engines: the medium chooses when a section
// begins. From there on it is a section of that engine, and nothing else knows of the choice.
#include <redo/protocol.hpp>
#include <section/thread.hpp>
#include <undo/protocol.hpp>

namespace hf {
namespace {

/// The section that the function joins, or the thread's in the pool that its arguments name.
const section& section_of_call(const hf_txfunc& function, const void* args) {
    if (current_section != nullptr) return *current_section;
    if (const section* const at_hand = section_at_hand()) return *at_hand;
    return section_for(engine_rows::redo, function, args);
}

/// Whether the form of engine undo runs: where a failure leaves stores in their order, or a section
/// as a whole.
bool runs_by_undo(const section& in) noexcept {
    if (!in.keeps_order() && !in.medium().loses_batches()) return false;
    if (current_section != nullptr) return &in.engine() == &engine_rows::undo;
    return (in.pool().engine_bits & engine_rows::undo.bit) != 0;
}

/// Apart, so that what is nearly always enough saves no registers.
[[gnu::noinline]] int begin_otherwise(const hf_txfunc& function, const void* args) noexcept {
    return without_exceptions("hf_auto_begin", [&] {
        if (!runs_by_undo(section_of_call(function, args))) return int{redo::begin(function, args)};
        return HF_SECTION_IN_ORDER | int{begin_section<undo::undo_protocol>(function, args)};
    });
}

} // namespace
} // namespace hf

extern "C" int hf_auto_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    if (hf::word_protocol::begin_again(hf::engine_rows::undo, *function)) [[likely]]
        return HF_SECTION_OPENED | HF_SECTION_IN_ORDER;
    return hf::begin_otherwise(*function, packed_args);
}
