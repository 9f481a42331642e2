/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * CRoaring's bitmaps in a pool, as its authors ship them in one file, by its own memory hook; no line of it is
 * changed, what a section may not have is switched off before it. It chooses functions by what the processor has, AVX2 and AVX-512, while the program runs.
 */
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
static void* pool_calloc(size_t count, size_t bytes) {
    void* block = pool_malloc(count * bytes);
    return block ? memset(block, 0, count * bytes) : NULL;
}

HF_TXFUNC void begin(struct root* r) {
    r->some = roaring_bitmap_create();
    r->others = roaring_bitmap_create();
}

/* Adds and removes single values and ranges, and now and then makes one bitmap of both. */
HF_TXFUNC void change(struct root* r, unsigned long step, unsigned x, int killed) {
    unsigned low = x % (1u << 22);
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

static int same(const roaring_bitmap_t* b, const unsigned char* expected) {
    const char* why = NULL;
    if (!roaring_bitmap_internal_validate(b, &why)) return puts(why), 0;
    unsigned long count = 0;
    for (unsigned i = 0; i < sizeof some; i++) {
        count += expected[i];
        if (roaring_bitmap_contains(b, i) != expected[i]) return printf("value %u\n", i), 0;
    }
    return roaring_bitmap_get_cardinality(b) == count;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    roaring_init_memory_hook((roaring_memory_t){pool_malloc, pool_realloc, pool_calloc, pool_free,
                                                line_malloc, line_free});
    struct root* r = root_of(argv[1], "croaring/1", sizeof *r);
    if (!r->some) begin(r);
    unsigned long steps = strtoul(argv[2], NULL, 10),
                  killed = argc > 3 ? strtoul(argv[3], NULL, 10) : ~0ul;
    struct half_way half = half_of(r->done, steps);
    for (unsigned long i = r->done; i < steps; i++) {
        passes(&half, i);
        change(r, i, mixed(i), i == killed);
    }
    double ns = ns_of(&half);
    for (unsigned long i = 0; i < r->done; i++) model(i, mixed(i));
    return verdict("croaring", r->done, same(r->some, some) && same(r->others, others), ns);
}
