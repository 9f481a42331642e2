// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What indirect calls of sections reach, in the form of engine undo. In a file of its own: programs
// without such calls do not link it.
#include <section/callees.hpp>

namespace hf::undo {
namespace {
constinit callee_table callees;
} // namespace
} // namespace hf::undo

extern "C" {

void hf_undo_register_callees(const hf_callees_row* rows, std::uint64_t count) noexcept {
    hf::undo::callees.add(rows, count);
}

void hf_undo_forget_callees(const hf_callees_row* rows, std::uint64_t count) noexcept {
    hf::undo::callees.forget(rows, count);
}

const void* hf_undo_callee(const void* function, const char* where) noexcept {
    return hf::undo::callees.instance_of(function, where);
}

} // extern "C"
