/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What code built in trace mode (plugin option -holdfast-trace) reports to the crash checker:
 * its loads and stores in one watched range of memory. The checker's library defines everything
 * named here; the plugin knows it by name.
 *
 * 1. A load is reported before it: the checker may still decide what will be read.
 * 2. A store is reported after it: the new bytes are in memory, and nothing else of that thread has
 *    happened since.
 * 3. The return address of a report belongs to the source line of its access.
 * 4. The checker clips a report that begins or ends outside the watched range: code reports a
 *    whole range (memcpy and the like) when any of its bytes may be watched. A single access is
 *    reported when its first byte is watched.
 * 5. Non-temporal stores, write-backs and fences that the persistence layer makes are not reported
 *    here but by its hook (holdfast/author/persist.hpp).
 */
#ifndef HOLDFAST_ABI_TRACE_H
#define HOLDFAST_ABI_TRACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read before every access, without synchronisation: change it while no other thread runs traced
 * code. All zero: nothing is reported but fences. */
struct hf_trace_region {
    uintptr_t begin; /* aligned to 64 bytes, so that no single access begins before it */
    uintptr_t bytes;
};
extern struct hf_trace_region hf_trace_watched;

void hf_trace_load(const void* address, uint64_t bytes);
void hf_trace_store(const void* address, uint64_t bytes);
/* A locked operation, which drains the store buffer like a fence. If it reads, hf_trace_load
 * comes before it; hf_trace_store does not come. */
void hf_trace_rmw(const void* address, uint64_t bytes);
/* A store follows. Option -holdfast-trace-turns. */
void hf_trace_turn(const void* address, uint64_t bytes);
/* After a non-temporal store. A load comes before one of less than whole words. */
void hf_trace_nt_store(const void* address, uint64_t bytes);
/* After clwb or clflushopt; after clflush. Of the line of 'address'. */
void hf_trace_flush(const void* address, uint64_t bytes);
void hf_trace_clflush(const void* address, uint64_t bytes);
/* After sfence or mfence, or what the compiler takes for one; with -holdfast-trace-locked also after
 * every locked operation. */
void hf_trace_fence(void);

#ifdef __cplusplus
}
#endif
#endif
