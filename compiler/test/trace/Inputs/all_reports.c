/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Watches all memory and prints what is stored. */
#include <holdfast/abi/trace_abi.h>

#include <stdio.h>

struct hf_trace_region hf_trace_watched = {0, UINTPTR_MAX};

void hf_trace_load(const void* address, uint64_t bytes) { (void)address, (void)bytes; }
void hf_trace_store(const void* address, uint64_t bytes) {
    (void)address;
    printf("traced %d\n", (int)bytes);
}
void hf_trace_rmw(const void* address, uint64_t bytes) { (void)address, (void)bytes; }
void hf_trace_turn(const void* address, uint64_t bytes) { (void)address, (void)bytes; }
void hf_trace_fence(void) {}
