/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the real programs of 'make verify' share: a pool, its memory as malloc gives it, and one section after
 * another. HOLDFAST_CRASH_AT=middle in the environment kills the process in the section KILLED.
 *
 *   PROGRAM POOL STEPS [KILLED]
 *
 * It makes sections until STEPS are done, and then checks that the pool holds their results:
 * prints
 * "NAME: done=N ok". Started again after a kill it goes on from the pool's state.
 */
#pragma once
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In a section: a 16-byte aligned block of the pool, with its size in front. */
static void* pool_malloc(size_t bytes) {
    size_t* block = hf_alloc(bytes + 16);
    if (!block) return NULL;
    block[0] = bytes;
    return block + 2;
}

static void pool_free(void* block) {
    if (block) hf_free((size_t*)block - 2);
}

static size_t pool_size(void* block) { return block ? ((size_t*)block)[-2] : 0; }

static void* pool_realloc(void* old, size_t bytes) {
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
static unsigned mixed(unsigned long step) {
    unsigned long x = (step + 1) * 0x9e3779b97f4a7c15ul;
    x ^= x >> 31;
    x *= 0xbf58476d1ce4e5b9ul;
    return (unsigned)(x >> 33);
}

static void* root_of(const char* path, const char* layout, size_t bytes) {
    hf_pool* pool;
    struct hf_open_options options = {.layout = layout};
    void* root = NULL;
    if (hf_pool_open(path, &options, &pool) != HF_OK || hf_pool_root(pool, bytes, &root) != HF_OK) {
        fprintf(stderr, "%s\n", hf_error_text());
        exit(1);
    }
    return root;
}

static int verdict(const char* name, unsigned long done, int ok) {
    printf("%s: done=%lu %s\n", name, done, ok ? "ok" : "WRONG");
    return !ok;
}
