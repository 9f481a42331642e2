/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the real programs share: a pool, its memory as malloc gives it, and one section after
 * another.
 *
 *   PROGRAM POOL STEPS [KILLED]
 *
 * makes the changes that are left until STEPS are done. Started again after a kill, it goes on from
 * the pool's state. It then compares the pool with a model, and prints
 *
 *   NAME: done=N ok open_ms=T made_ms=T ns=T
 *
 * open_ms is from opening the pool until the first change could begin, made_ms what the changes
 * took, ns the processor's time of a change, of the later half. HOLDFAST_CRASH_AT=middle in the
 * environment kills the process in the middle of section KILLED. With REPORT in the environment, it
 * prints how many changes are done, after each 16. Built for engine none, it is plain code on
 * malloc's memory, and holds nothing when it ends.
 *
 * A program defines NAME and LAYOUT before it includes this, FIXED_ADDRESSES where its pool holds
 * addresses of functions and constants, and then 'struct root' with its functions (below), and main
 * by PROGRAM_MAIN.
 */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include <holdfast/holdfast.h>

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef HOLDFAST_UNINSTRUMENTED
#define hf_alloc malloc
#define hf_free free
#endif

/* In a section: a 16-byte aligned block of the pool, with its size in front. */
static inline void* pool_malloc(size_t bytes) {
    size_t* block = (size_t*)hf_alloc(bytes + 16);
    if (!block) return NULL;
    block[0] = bytes;
    return block + 2;
}

static inline void pool_free(void* block) {
    if (block) hf_free((size_t*)block - 2);
}

static inline size_t pool_size(void* block) { return block ? ((size_t*)block)[-2] : 0; }

static inline void* pool_realloc(void* old, size_t bytes) {
    size_t had = pool_size(old);
    if (had >= bytes && old) return old;
    void* block = pool_malloc(bytes);
    if (block && old) {
        memcpy(block, old, had);
        pool_free(old);
    }
    return block;
}

static inline void* pool_calloc(size_t count, size_t bytes) {
    void* block = pool_malloc(count * bytes);
    return block ? memset(block, 0, count * bytes) : NULL;
}

/* Another number for each step, the same in every run. */
static inline unsigned mixed(unsigned long step) {
    unsigned long x = (step + 1) * 0x9e3779b97f4a7c15ul;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ul;
    return (unsigned)(x >> 33);
}

/* A name for each number below 65 536. */
static inline void name_of(unsigned number, char name[16]) {
    for (int i = 0; i < 16; ++i) name[i] = (char)('a' + (number >> i % 4 * 4) % 16);
}

// [build]
#ifdef FIXED_ADDRESSES
/* The program's build, as the linker has named it: -Wl,--build-id. */
static int add_build(struct dl_phdr_info* of, size_t bytes, void* to) {
    for (int i = 0; i < of->dlpi_phnum; ++i) {
        if (of->dlpi_phdr[i].p_type != PT_NOTE) continue;
        const char* note = (const char*)of->dlpi_addr + of->dlpi_phdr[i].p_vaddr;
        const char* const end = note + of->dlpi_phdr[i].p_memsz;
        while (note < end) {
            const ElfW(Nhdr)* const is = (const ElfW(Nhdr)*)note;
            const char* const words = note + sizeof *is + (is->n_namesz + 3) / 4 * 4;
            if (is->n_type == NT_GNU_BUILD_ID && is->n_descsz >= sizeof(uint64_t))
                memcpy(to, words, sizeof(uint64_t));
            note = words + (is->n_descsz + 3) / 4 * 4;
        }
    }
    return 1; /* the program itself comes first */
}
#endif
// [/build]

static inline uint64_t build(void) {
    uint64_t named = 0;
#ifdef FIXED_ADDRESSES
    dl_iterate_phdr(add_build, &named);
    if (named == 0) {
        fprintf(stderr,
                "%s: expected a build that has a name, found none: link with -Wl,--build-id\n",
                NAME);
        exit(1);
    }
#endif
    return named;
}

/* The pool's root, with zeros at first. */
static inline void* root_of(const char* path, size_t bytes) {
#ifdef HOLDFAST_UNINSTRUMENTED
    return (void)path, calloc(1, bytes);
#else
    hf_pool* pool;
    struct hf_open_options options = {.layout = LAYOUT, .layout_hash = build()};
    void* root = NULL;
    if (hf_pool_open(path, &options, &pool) != HF_OK || hf_pool_root(pool, bytes, &root) != HF_OK) {
        fprintf(stderr, "%s\n", hf_error_text());
        exit(1);
    }
    return root;
#endif
}

static inline double ns_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct root; /* its first member, 'unsigned long done', counts the changes */

/* After each opening: what belongs to this process. It makes what the root does not have yet. */
static void opened(struct root* r);
/* The section. With 'killed', it calls hf_crash_point("middle"). */
HF_TXFUNC void change(struct root* r, unsigned long step, int killed);
/* Whether the pool holds what a model of r->done changes says. */
static int same(struct root* r);

static inline int run(int argc, char** argv, size_t root_bytes) {
    if (argc < 3) return fprintf(stderr, "%s POOL STEPS [KILLED]\n", argv[0]), 2;
    const unsigned long steps = strtoul(argv[2], NULL, 10);
    const unsigned long killed = argc > 3 ? strtoul(argv[3], NULL, 10) : ~0UL;
    const double begun = ns_of(CLOCK_MONOTONIC);
    struct root* const r = (struct root*)root_of(argv[1], root_bytes);
    opened(r);
    const double ready = ns_of(CLOCK_MONOTONIC);
    const unsigned long* const done = (const unsigned long*)r;
    const unsigned long later = *done + (steps - *done) / 2;
    const int reports = getenv("REPORT") != NULL;
    double half = 0;
    while (*done < steps) {
        if (*done == later) half = ns_of(CLOCK_PROCESS_CPUTIME_ID);
        change(r, *done, *done == killed);
        if (reports && *done % 16 == 0) printf("%lu\n", *done), fflush(stdout);
    }
    const double each = steps > later && half != 0
                            ? (ns_of(CLOCK_PROCESS_CPUTIME_ID) - half) / (double)(steps - later)
                            : 0;
    const double made = ns_of(CLOCK_MONOTONIC) - ready;
    const int ok = same(r);
    printf("%s: done=%lu %s open_ms=%.2f made_ms=%.1f ns=%.0f\n", NAME, *done, ok ? "ok" : "WRONG",
           (ready - begun) / 1e6, made / 1e6, each);
    return !ok;
}

#define PROGRAM_MAIN                                                                               \
    int main(int argc, char** argv) { return run(argc, argv, sizeof(struct root)); }
