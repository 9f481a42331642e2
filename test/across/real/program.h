/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the real programs of 'make verify' share: a pool, its memory as malloc gives it, and one section after
 * another. HOLDFAST_CRASH_AT=middle in the environment kills the process in the section KILLED.
 *
 *   PROGRAM POOL STEPS [KILLED]
 *
 * It makes sections until STEPS are done, and then checks that the pool holds their results:
 * prints
 * "NAME: done=N ok ns=T", where T is the processor time of a section, of the later half. Started again after a
 * kill it goes on from the pool's state. Built for engine none it is plain code, on malloc's memory.
 */
#pragma once
#include <holdfast/holdfast.h>

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

/* Another number for each step, the same in every run. */
static inline unsigned mixed(unsigned long step) {
    unsigned long x = (step + 1) * 0x9e3779b97f4a7c15ul;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ul;
    return (unsigned)(x >> 33);
}

/* The pool's root, with zeros at first. */
static inline void* root_of(const char* path, const char* layout, size_t bytes) {
#ifdef HOLDFAST_UNINSTRUMENTED
    return (void)path, (void)layout, calloc(1, bytes);
#else
    hf_pool* pool;
    struct hf_open_options options = {.layout = layout};
    void* root = NULL;
    if (hf_pool_open(path, &options, &pool) != HF_OK || hf_pool_root(pool, bytes, &root) != HF_OK) {
        fprintf(stderr, "%s\n", hf_error_text());
        exit(1);
    }
    return root;
#endif
}

/* Notes the processor's time when half of the sections are left. */
struct half_way {
    unsigned long steps, sections;
    double begin;
};
static inline double processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static inline struct half_way half_of(unsigned long done, unsigned long steps) {
    struct half_way half = {steps, (steps - done) / 2, processor_ns()};
    return half;
}
static inline void passes(struct half_way* half, unsigned long step) {
    if (step == half->steps - half->sections) half->begin = processor_ns();
}
static inline double ns_of(const struct half_way* half) {
    return half->sections ? (processor_ns() - half->begin) / (double)half->sections : 0;
}

static inline int verdict(const char* name, unsigned long done, int ok, double ns) {
    printf("%s: done=%lu %s ns=%.0f\n", name, done, ok ? "ok" : "WRONG", ns);
    return !ok;
}
