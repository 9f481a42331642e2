// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checker that prints each report. Built without trace mode.
#include "print_reports.hpp"

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/trace_abi.h>

#include <cstdio>

extern "C" {
__thread hf_word_log hf_words; // no room: each entry is a call
hf_trace_region hf_trace_watched = {0, 0};

static void say(const char* what, const void* address, uint64_t bytes) {
    const auto offset = reinterpret_cast<uintptr_t>(address) - hf_trace_watched.begin;
    std::printf("%s +%ld %lu\n", what, static_cast<long>(offset),
                static_cast<unsigned long>(bytes));
}
void hf_trace_load(const void* address, uint64_t bytes) { say("load", address, bytes); }
void hf_trace_store(const void* address, uint64_t bytes) {
    say("store", address, bytes);
    std::printf("  now %d\n", *static_cast<const char*>(address));
}
void hf_trace_rmw(const void* address, uint64_t bytes) { say("rmw", address, bytes); }
void hf_trace_fence() { std::puts("fence"); }

void hf_txfunc_register(const hf_txfunc*) noexcept {}
int hf_clobber_begin(const hf_txfunc*, const void*) noexcept {
    std::puts("begin");
    return 1;
}
void hf_clobber_commit() noexcept { std::puts("commit"); }
void hf_clobber_log(const void* address, uint64_t bytes) noexcept { say("log", address, bytes); }
void hf_clobber_note(const void* address, uint64_t bytes) noexcept { say("note", address, bytes); }
}

void watch(void* begin, unsigned long bytes) {
    hf_trace_watched = {reinterpret_cast<uintptr_t>(begin), bytes};
}
