// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <check/litmus/machine.hpp>

#include <cstddef>
#include <vector>

namespace hf::check::litmus {

bool px86::ordered(const instruction& first, const instruction& second) {
    const auto is = [](const instruction& i, op what) { return i.what == what; };
    const auto is_weak_flush = [&](const instruction& i) {
        return is(i, op::clwb) || is(i, op::clflushopt);
    };
    if (is(first, op::sfence) || is(second, op::sfence)) return true;
    if (is(first, op::nt_store) || is(second, op::nt_store)) {
        const bool stores = (is(first, op::nt_store) || is(first, op::store)) &&
                            (is(second, op::nt_store) || is(second, op::store));
        return stores && (first.touches(second.word) || second.touches(first.word));
    }
    if (is_weak_flush(second)) return !is_weak_flush(first) && first.line() == second.line();
    if (is_weak_flush(first)) return is(second, op::clflush) && first.line() == second.line();
    return true; // stores and clflush, among themselves
}

outcomes explore(const program& of, hf::domain d) {
    const std::vector<std::byte> zeros(of.lines * line_bytes);
    return machine<persistent_memory, px86>(of, persistent_memory(d, zeros)).run();
}

} // namespace hf::check::litmus
