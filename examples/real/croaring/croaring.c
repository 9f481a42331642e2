/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * CRoaring's bitmaps in a pool, as its authors ship them in one file, by its own memory hook. No
 * line of it is changed; what a section may not have is switched off before it. It chooses
 * functions by what the processor has while it runs.
 */
#define NAME "croaring"
#define LAYOUT "croaring/1"
#include "program.h"

#define CROARING_ATOMIC_IMPL 1 /* none: one thread counts references */
#include "roaring.h"
#undef CROARING_ASMBITMANIPOPTIMIZATION      /* a section has no assembly that does anything … */
HF_PURE int croaring_hardware_support(void); /* … and this answers the same whenever it is asked */
#include "roaring.c"

struct root {
    unsigned long done;
    roaring_bitmap_t *some, *others;
};

/* The library asks for lines of 32 or 64 bytes. */
static void* line_malloc(size_t alignment, size_t bytes) {
    char* block = pool_malloc(bytes + alignment + sizeof(void*));
    if (!block) return NULL;
    char* at = block + sizeof(void*);
    at += -(size_t)at & (alignment - 1);
    ((void**)at)[-1] = block;
    return at;
}
static void line_free(void* at) {
    if (at) pool_free(((void**)at)[-1]);
}

HF_TXFUNC void begin(struct root* r) {
    r->some = roaring_bitmap_create();
    r->others = roaring_bitmap_create();
}

/* Adds and removes single values and ranges, and now and then makes one bitmap of both. */
HF_TXFUNC void change(struct root* r, unsigned long step, int killed) {
    const unsigned x = mixed(step), low = x % (1u << 22);
    if (step % 3 != 2) roaring_bitmap_add(r->some, low);
    else roaring_bitmap_remove(r->some, low);
    if (step % 7 == 3) roaring_bitmap_add_range(r->others, low, low + x % 5000);
    if (killed) hf_crash_point("middle");
    if (step % 11 == 5) roaring_bitmap_remove_range(r->others, low, low + 700);
    if (step % 37 == 36) roaring_bitmap_or_inplace(r->some, r->others);
    if (step % 53 == 52) roaring_bitmap_andnot_inplace(r->some, r->others);
    if (step % 97 == 96) {
        roaring_bitmap_run_optimize(r->some);
        roaring_bitmap_t* both = roaring_bitmap_and(r->some, r->others);
        roaring_bitmap_xor_inplace(r->others, both);
        roaring_bitmap_free(both);
    }
    r->done = step + 1;
}

/* The same on plain bytes, one for each value. */
static unsigned char some[1 << 22 | 8192], others[sizeof some];
static void model(unsigned long step, unsigned x) {
    unsigned low = x % (1u << 22);
    some[low] = step % 3 != 2;
    if (step % 7 == 3) memset(others + low, 1, x % 5000);
    if (step % 11 == 5) memset(others + low, 0, 700);
    for (unsigned i = 0; i < sizeof some && step % 37 == 36; i++) some[i] |= others[i];
    for (unsigned i = 0; i < sizeof some && step % 53 == 52; i++) some[i] &= !others[i];
    for (unsigned i = 0; i < sizeof some && step % 97 == 96; i++) others[i] ^= some[i] & others[i];
}

static int equal(const roaring_bitmap_t* b, const unsigned char* expected) {
    const char* why = NULL;
    if (!roaring_bitmap_internal_validate(b, &why)) return puts(why), 0;
    unsigned long count = 0;
    for (unsigned i = 0; i < sizeof some; i++) {
        count += expected[i];
        if (roaring_bitmap_contains(b, i) != expected[i]) return printf("value %u\n", i), 0;
    }
    return roaring_bitmap_get_cardinality(b) == count;
}

static void opened(struct root* r) {
    roaring_init_memory_hook((roaring_memory_t){pool_malloc, pool_realloc, pool_calloc, pool_free,
                                                line_malloc, line_free});
    if (!r->some) begin(r);
}

static int same(struct root* r) {
    for (unsigned long i = 0; i < r->done; i++) model(i, mixed(i));
    return equal(r->some, some) && equal(r->others, others);
}

PROGRAM_MAIN
