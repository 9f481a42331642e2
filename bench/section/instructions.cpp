// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "instructions.hpp"

#include "../temporary_file.hpp"

#include <csignal>
#include <ucontext.h>

namespace hf::bench {
namespace {

volatile std::uint64_t trapped = 0;
volatile greg_t last = 0;
void (*volatile called_at_each)() = nullptr;

/// Called behind each instruction, and behind each step of one that repeats itself: then that
/// instruction is still the next.
void trap(int, siginfo_t*, void* state) {
    const greg_t next = static_cast<ucontext_t*>(state)->uc_mcontext.gregs[REG_RIP];
    if (next != last) trapped = trapped + 1;
    last = next;
    called_at_each();
}

void nothing_at_each() {}
[[gnu::noinline]] void nothing_at_all(section_object*) { asm volatile(""); }

} // namespace

// Never compiled for one section alone: what is around a call is the same for each.
[[gnu::noinline]] std::uint64_t step(section_call* section, section_object* of, void (*at_each)()) {
    struct sigaction stepping{}, before{};
    stepping.sa_sigaction = trap;
    stepping.sa_flags = SA_SIGINFO;
    if (sigaction(SIGTRAP, &stepping, &before) != 0) give_up("cannot count instructions");
    trapped = 0;
    called_at_each = at_each;
    // Outside the red zone, which the compiler may use.
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    section(of);
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    const std::uint64_t count = trapped;
    sigaction(SIGTRAP, &before, nullptr);
    return count;
}

double instructions_of(section_call* section, section_object* of, std::uint64_t calls) {
    const std::uint64_t around = step(nothing_at_all, of, nothing_at_each) - 1; // it returns, too
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < calls; ++i) all += step(section, of, nothing_at_each) - around;
    return static_cast<double>(all) / static_cast<double>(calls);
}

} // namespace hf::bench
