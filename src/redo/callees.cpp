// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What indirect calls of sections reach, in the form of engine redo. In a file of its own: programs
// without such calls do not link it.
#include <section/callees.hpp>

namespace hf::redo {
namespace {
constinit callee_table callees;
} // namespace
} // namespace hf::redo

extern "C" {

void hf_redo_register_callees(const hf_callees_row* rows, std::uint64_t count) noexcept {
    hf::redo::callees.add(rows, count);
}

void hf_redo_forget_callees(const hf_callees_row* rows, std::uint64_t count) noexcept {
    hf::redo::callees.forget(rows, count);
}

const void* hf_redo_callee(const void* function, const char* where) noexcept {
    return hf::redo::callees.instance_of(function, where);
}

} // extern "C"
