// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "instructions.hpp"

#include "../temporary_file.hpp"

#include <csignal>
#include <ucontext.h>

namespace hf::bench {
namespace {

volatile std::uint64_t trapped = 0;
volatile greg_t last = 0;

/// Behind each instruction, and behind each step of one that repeats itself: that one is still the next.
void count(int, siginfo_t*, void* state) {
    const greg_t next = static_cast<ucontext_t*>(state)->uc_mcontext.gregs[REG_RIP];
    if (next != last) trapped = trapped + 1;
    last = next;
}

[[gnu::noinline]] void nothing_at_all(section_object*) { asm volatile(""); }

/// The instructions of a call and of the switching on and off around it.
[[gnu::noinline]] std::uint64_t stepped(section_call* section, section_object* of) {
    trapped = 0;
    // Not into the red zone, which the compiler may use.
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    section(of);
    asm volatile(
        "lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
            : "memory", "cc");
    return trapped;
}

} // namespace

double instructions_of(section_call* section, section_object* of, std::uint64_t calls) {
    struct sigaction counting{}, before{};
    counting.sa_sigaction = count;
    counting.sa_flags = SA_SIGINFO;
    if (sigaction(SIGTRAP, &counting, &before) != 0) give_up("cannot count instructions");
    const std::uint64_t around = stepped(nothing_at_all, of) - 1; // it has a return, too
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < calls; ++i) all += stepped(section, of) - around;
    sigaction(SIGTRAP, &before, nullptr);
    return static_cast<double>(all) / static_cast<double>(calls);
}

} // namespace hf::bench
