/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Redis' sorted set in a pool, whole: the packed list of a small one, and the skip list with the
 * hash table (dict) of a large one, by the functions that ZADD, ZINCRBY, ZREM, ZSCORE and ZRANK
 * call. Its allocator's names take memory of the pool. No line of it is changed; the rest of the
 * server is not linked.
 */
#define NAME "redis"
#define LAYOUT "redis/2"
#include "program.h"

#define NO_MALLOC_USABLE_SIZE
#include "zmalloc.h"

// [memory]
void* zmalloc(size_t bytes) { return pool_malloc(bytes); }
// [/memory]
void* zcalloc(size_t bytes) { return pool_calloc(1, bytes); }
void* ztrycalloc(size_t bytes) { return zcalloc(bytes); }
void* zmalloc_usable(size_t bytes, size_t* usable) {
    if (usable) *usable = bytes;
    return pool_malloc(bytes);
}
void* ztrymalloc_usable(size_t bytes, size_t* usable) { return zmalloc_usable(bytes, usable); }
void* zrealloc(void* block, size_t bytes) { return pool_realloc(block, bytes); }
void* zrealloc_usable(void* block, size_t bytes, size_t* usable) {
    if (usable) *usable = bytes;
    return pool_realloc(block, bytes);
}
void zfree(void* block) { pool_free(block); }
size_t zmalloc_usable_size(void* block) { return pool_size(block); }
#include "server.h"
void _serverAssert(const char* what, const char* file, int line) { __builtin_trap(); }
void _serverAssertWithInfo(const client* c, const robj* o, const char* what, const char* file,
                           int line) {
    __builtin_trap();
}
void _serverPanic(const char* file, int line, const char* what, ...) { __builtin_trap(); }

// [table]
/* Redis' tables of functions are variables of the server, and a dict keeps the address of its own.
 * This one is in the pool: every start of the program fills it with this program's functions. */
static dictType* type_in_pool(void);
#define zsetDictType (*type_in_pool())
// [/table]

#include "dict.c"
#include "listpack.c"
#include "sds.c"
#include "siphash.c"
#include "t_zset.c"
#include "util.c"

#define MEMBERS 4096u

struct root {
    unsigned long done;
    robj* board;
    dictType type;
};
static struct root* the_root;
static dictType* type_in_pool(void) { return &the_root->type; }

struct redisServer server;

uint64_t dictSdsHash(const void* key) { return dictGenHashFunction(key, (int)sdslen((sds)key)); }
int dictSdsKeyCompare(dict* d, const void* a, const void* b) { return sdscmp((sds)a, (sds)b) == 0; }

/* From which on a smaller table does. */
int htNeedsResize(dict* d) {
    return dictSlots(d) > DICT_HT_INITIAL_SIZE && dictSize(d) * 10 < dictSlots(d);
}

/* As object.c makes one. */
HF_TXFUNC void begin(struct root* r) {
    robj* board = zcalloc(sizeof *board);
    board->type = OBJ_ZSET;
    board->encoding = OBJ_ENCODING_LISTPACK;
    board->refcount = 1;
    board->ptr = lpNew(0);
    r->board = board;
}

static sds sds_of(unsigned member) {
    char name[16];
    name_of(member, name);
    return sdsnewlen(name, sizeof name);
}

/* ZADD of a member, ZINCRBY where it is there, or ZREM. */
HF_TXFUNC void change(struct root* r, unsigned long step, int killed) {
    const unsigned x = mixed(step);
    sds member = sds_of(x % MEMBERS);
    const double score = (x >> 12) + 1;
    double now;
    int did;
    const int there = zsetScore(r->board, member, &now) == C_OK;
    if (there && x % 3 == 0) zsetDel(r->board, member);
    else
        zsetAdd(r->board, score, member, there && x % 3 == 1 ? ZADD_IN_INCR : ZADD_IN_NONE, &did,
                &now);
    if (killed) hf_crash_point("middle");
    sdsfree(member);
    r->done += 1;
}

static double score_of[MEMBERS]; /* a model: 0 is not there */

/* Every member has its score, and the rank that a count of the smaller ones gives. */
HF_TXFUNC int holds_model(struct root* r) {
    unsigned long there = 0;
    for (unsigned i = 0; i < MEMBERS; ++i) {
        sds member = sds_of(i);
        double score = 0;
        zsetScore(r->board, member, &score);
        if (score != score_of[i]) return 0;
        there += score != 0;
        if (score != 0 && i % 16 == 0) {
            long rank = 0;
            for (unsigned k = 0; k < MEMBERS; ++k) {
                sds other = sds_of(k);
                rank += score_of[k] != 0 && (score_of[k] < score ||
                                             (score_of[k] == score && sdscmp(other, member) < 0));
                sdsfree(other);
            }
            if (zsetRank(r->board, member, 0) != rank) return 0;
        }
        sdsfree(member);
    }
    return zsetLength(r->board) == there;
}

// [opened]
static void opened(struct root* r) {
    the_root = r;
    r->type = (dictType){.hashFunction = dictSdsHash, .keyCompare = dictSdsKeyCompare};
    server.zset_max_listpack_entries = 128;
    server.zset_max_listpack_value = 64;
    if (!r->board) begin(r);
}
// [/opened]

static int same(struct root* r) {
    for (unsigned long i = 0; i < r->done; ++i) {
        const unsigned x = mixed(i);
        double* score = &score_of[x % MEMBERS];
        if (*score != 0 && x % 3 == 0) *score = 0;
        else *score = (*score != 0 && x % 3 == 1 ? *score : 0) + (x >> 12) + 1;
    }
    return holds_model(r);
}

PROGRAM_MAIN
