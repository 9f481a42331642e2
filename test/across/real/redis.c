/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Redis' sorted set in a pool: its skip list, by its own allocator's names. The hash table that finds a member's score is
 * an array here: Redis' keeps addresses of functions. No line of it is changed; the rest of the server is not linked.
 */
#include "program.h"

#define NO_MALLOC_USABLE_SIZE
#include "zmalloc.h"

void* zmalloc(size_t bytes) { return pool_malloc(bytes); }
void* zmalloc_usable(size_t bytes, size_t* usable) {
    *usable = bytes;
    return pool_malloc(bytes);
}
void* ztrymalloc_usable(size_t bytes, size_t* usable) { return zmalloc_usable(bytes, usable); }
void* zrealloc(void* block, size_t bytes) { return pool_realloc(block, bytes); }
void* zrealloc_usable(void* block, size_t bytes, size_t* usable) {
    *usable = bytes;
    return pool_realloc(block, bytes);
}
void zfree(void* block) { pool_free(block); }
void _serverAssert(const char* what, const char* file, int line) { __builtin_trap(); }

#include "sds.c"
#include "t_zset.c"

#define MEMBERS 4096u

struct root {
    unsigned long done;
    zskiplist* all;
    unsigned score_of[MEMBERS]; /* 0: not there */
};

HF_TXFUNC void begin(struct root* r) { r->all = zslCreate(); }

/* Adds a member, changes its score, or removes it. */
HF_TXFUNC void change(struct root* r, unsigned x, int killed) {
    const unsigned member = x % MEMBERS, score = (x >> 12) + 1, before = r->score_of[member];
    char name[16];
    for (int i = 0; i < 16; ++i) name[i] = (char)('a' + (member >> i / 2) % 16);
    sds text = sdsnewlen(name, sizeof name);
    if (before == 0) zslInsert(r->all, score, sdsdup(text));
    else if (x % 3 != 0) zslUpdateScore(r->all, before, text, score);
    else zslDelete(r->all, before, text, NULL);
    if (killed) hf_crash_point("middle");
    r->score_of[member] = before != 0 && x % 3 == 0 ? 0 : score;
    sdsfree(text);
    r->done += 1;
}

/* The list has the members that the array has, in order, and knows each one's rank. */
static int whole(const struct root* r) {
    unsigned long there = 0, rank = 0;
    double last = 0;
    for (unsigned i = 0; i < MEMBERS; ++i) there += r->score_of[i] != 0;
    for (zskiplistNode* n = r->all->header->level[0].forward; n; n = n->level[0].forward) {
        if (n->score < last || zslGetRank(r->all, n->score, n->ele) != ++rank) return 0;
        last = n->score;
    }
    return rank == there && r->all->length == there;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    struct root* r = (struct root*)root_of(argv[1], "redis/1", sizeof *r);
    if (!r->all) begin(r);
    const unsigned long steps = strtoul(argv[2], NULL, 10);
    const unsigned long killed = argc > 3 ? strtoul(argv[3], NULL, 10) : ~0UL;
    struct half_way half = half_of(r->done, steps);
    for (unsigned long i = r->done; i < steps; ++i) {
        passes(&half, i);
        change(r, mixed(i), i == killed);
    }
    const double ns = ns_of(&half);
    /* A model of the scores. */
    static unsigned score_of[MEMBERS];
    for (unsigned long i = 0; i < r->done; ++i) {
        const unsigned x = mixed(i), member = x % MEMBERS, score = (x >> 12) + 1;
        score_of[member] = score_of[member] != 0 && x % 3 == 0 ? 0 : score;
    }
    return verdict("redis", r->done,
                   whole(r) && memcmp(score_of, r->score_of, sizeof score_of) == 0, ns);
}
