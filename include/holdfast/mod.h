/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Durable map, ordered map, set, vector, stack, queue and cache of byte strings, for C; Python's
 * module uses them. Any C11 compiler will do: they need no plugin and no failure-atomic functions.
 *
 *   hf_mod_map *prices;
 *   if (hf_mod_map_open(pool, "prices", &prices) != HF_OK) return puts(hf_error_text()), 1;
 *   hf_mod_map_put(prices, hf_text("apple"), hf_text("1.20"), NULL);
 *   hf_bytes price;
 *   if (hf_mod_map_get(prices, hf_text("apple"), &price) == HF_OK)
 *       printf("%.*s\n", (int)price.bytes, (const char *)price.data);
 *
 * (1) A call that changes something is one failure-atomic section: a crash keeps the state before
 *     it or the state after it. A call that fails changes nothing.
 * (2) Ordering: 1 point a change, durable when the thread's next change or hf_pool_settle()
 *     returns; 2 points, durable on return, after ..._set_durability(…, HF_MOD_ON_RETURN). In mode
 *     process a killed process loses neither.
 * (3) Any threads may change one structure: the changes wait for each other. Reads of the structure
 *     itself (count, get, …) must not run beside a change of it. Reads of a snapshot or a cursor
 *     may, and see the version that was current when it was made.
 * (4) Bytes that a read returns are the pool's own memory: do not change them. Those of a structure
 *     are valid until its next change, those of a snapshot or a cursor until it is closed. What
 *     take and pop return is a copy, valid until the thread's next take or pop.
 * (5) With hf_open_options read_only and shared another process may write. A handle then shows the
 *     structure as it was when the handle was first read; a snapshot shows the current version.
 * (6) The caller closes handles, snapshots and cursors before their pool. */
#ifndef HOLDFAST_MOD_H
#define HOLDFAST_MOD_H

#include <holdfast/holdfast.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any bytes, zeros too. 'data' may be null if 'bytes' is 0. */
typedef struct hf_bytes {
    const void* data;
    size_t bytes;
} hf_bytes;

static inline hf_bytes hf_text(const char* text) {
    hf_bytes all;
    all.data = text;
    all.bytes = strlen(text);
    return all;
}

/* When a change survives a power failure (mode pmem). */
enum hf_mod_durability { HF_MOD_BY_NEXT_SECTION, HF_MOD_ON_RETURN };

typedef struct hf_mod_map hf_mod_map;
typedef struct hf_mod_ordered_map hf_mod_ordered_map;
typedef struct hf_mod_set hf_mod_set;
typedef struct hf_mod_vector hf_mod_vector;
typedef struct hf_mod_stack hf_mod_stack;
typedef struct hf_mod_queue hf_mod_queue;

/* A version of a structure. It stays readable as long as it is open, whatever changes meanwhile. */
typedef struct hf_mod_map_snapshot hf_mod_map_snapshot;
typedef struct hf_mod_ordered_map_snapshot hf_mod_ordered_map_snapshot;
typedef struct hf_mod_set_snapshot hf_mod_set_snapshot;
typedef struct hf_mod_vector_snapshot hf_mod_vector_snapshot;
typedef struct hf_mod_stack_snapshot hf_mod_stack_snapshot;
typedef struct hf_mod_queue_snapshot hf_mod_queue_snapshot;

/* Goes through a version, once, and keeps that version readable. */
typedef struct hf_mod_cursor hf_mod_cursor;

/* Gives the next element (of a map: its key) and a map's value, and moves on.
 *
 * Errors: HF_NOT_FOUND at the end. 'value' may be null. */
hf_status hf_mod_cursor_next(hf_mod_cursor* cursor, hf_bytes* element, hf_bytes* value) HF_NOEXCEPT;
void hf_mod_cursor_close(hf_mod_cursor* cursor) HF_NOEXCEPT;

/* Follows every reference of every structure. Compares what it reaches with the memory known to be
 * in use, with the counts of shared nodes, and with the structures' counts. Changes of any thread
 * wait.
 *
 * Cost:   reads every node once.
 * Errors: HF_CORRUPT, and hf_error_text() has the place; HF_MISSING_ENGINE: a kind of structure
 *         that this program does not know. */
hf_status hf_mod_verify(hf_pool* pool) HF_NOEXCEPT;

/* ---- Transactions: changes of several structures of a pool as one failure-atomic section.
 *
 *   hf_mod_transaction *both;
 *   hf_mod_transaction_begin(pool, &both);
 *   hf_mod_map_open_in(both, "stock", &stock);
 *   hf_mod_queue_open_in(both, "orders", &orders);
 *   ...                                                 changes, and reads that see them
 *   if (hf_mod_transaction_commit(both) != HF_OK) ...   nothing was changed
 *
 * What open_in gives is the structure as the transaction found it, with the transaction's changes.
 * Other handles, and the file, have none of them before the commit. Two handles of one structure
 * in one transaction see the same. Close such a handle at any time; use it only before the end.
 * Snapshots and cursors that are made through it stay readable until they are closed. */
typedef struct hf_mod_transaction hf_mod_transaction;

hf_status hf_mod_transaction_begin(hf_pool* pool, hf_mod_transaction** transaction) HF_NOEXCEPT;
/* Makes all changes, or none, and closes the transaction.
 *
 * Ordering: 2 points; of changes of one structure 1 (2); 0 without any.
 * Crash:    all of the changes or none.
 * Structures that it has only read count for nothing: another change of one may have come between.
 *
 * Errors:   HF_CONFLICT (another change of one that it changes came between), HF_POOL_FULL,
 *           HF_LIMIT_REACHED (more structures than a commit takes), those of a change: one that
 *           finds no room fails the transaction, with HF_CONFLICT if that is so as well. Nothing
 *           is changed.
 * Threads:  a transaction is used by one thread at a time. */
hf_status hf_mod_transaction_commit(hf_mod_transaction* transaction) HF_NOEXCEPT;
/* Gives all changes up. Null does nothing. */
void hf_mod_transaction_close(hf_mod_transaction* transaction) HF_NOEXCEPT;

/* ---- Structures. For each:
 *
 * open:     gives the structure of this name in the pool; makes an empty one if the name is new.
 *           One name is one structure, however often it is opened.
 *           Errors: HF_WRONG_LAYOUT when the name belongs to something else, HF_BAD_ARGUMENT
 *                   (names have 1 to 63 bytes), HF_POOL_FULL, HF_LIMIT_REACHED.
 * open_in:  the same in a transaction. A new structure is made at once, empty, whether the
 *           transaction is committed or not.
 * close:    closes the handle. Null does nothing.
 * snapshot: gives the current version. Never waits; one may be taken beside a change.
 *           Errors: HF_POOL_FULL when the process has no memory left.
 * iterate:  gives a cursor through the current version, or the snapshot's. Never waits.
 * clear:    leaves nothing. Cost: O(1); memory is reclaimed later.
 *
 * A change may fail with HF_POOL_FULL (no room, or longer than 1 GiB), HF_PERMISSION (the pool was
 * opened read-only), HF_IN_USE (a child of fork() cannot use its parent's pool) and HF_CORRUPT (a
 * structure of the pool is damaged: none can be changed). It changes nothing then. */

/* ---- Map: byte strings under byte strings; no order. */

hf_status hf_mod_map_open(hf_pool* pool, const char* name, hf_mod_map** map) HF_NOEXCEPT;
hf_status hf_mod_map_open_in(hf_mod_transaction* transaction, const char* name,
                             hf_mod_map** map) HF_NOEXCEPT;
void hf_mod_map_close(hf_mod_map* map) HF_NOEXCEPT;
void hf_mod_map_set_durability(hf_mod_map* map, enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_map_count(const hf_mod_map* map) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND. 'value' may be null. */
hf_status hf_mod_map_get(const hf_mod_map* map, hf_bytes key, hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_map_iterate(const hf_mod_map* map, hf_mod_cursor** cursor) HF_NOEXCEPT;

/* Inserts 'key', or replaces its value. '*inserted', which may be null: whether the key was new. */
hf_status hf_mod_map_put(hf_mod_map* map, hf_bytes key, hf_bytes value, int* inserted) HF_NOEXCEPT;
/* Inserts 'key' unless it is there. */
hf_status hf_mod_map_insert(hf_mod_map* map, hf_bytes key, hf_bytes value,
                            int* inserted) HF_NOEXCEPT;
/* Erases 'key' and gives a copy of its value (4), which may be null.
 *
 * Errors: HF_NOT_FOUND. */
hf_status hf_mod_map_take(hf_mod_map* map, hf_bytes key, hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_map_clear(hf_mod_map* map) HF_NOEXCEPT;

struct hf_mod_map_step {
    hf_bytes key, value;
    int erase; /* put, or erase the key if it is there */
};
/* Steps, in order, in one failure-atomic section.
 *
 * Ordering: 1 point for all of them (2). */
hf_status hf_mod_map_update(hf_mod_map* map, const struct hf_mod_map_step* steps,
                            size_t step_count) HF_NOEXCEPT;

hf_status hf_mod_map_snapshot_take(const hf_mod_map* map,
                                   hf_mod_map_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_map_snapshot_close(hf_mod_map_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_map_snapshot_count(const hf_mod_map_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_map_snapshot_get(const hf_mod_map_snapshot* snapshot, hf_bytes key,
                                  hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_map_snapshot_iterate(const hf_mod_map_snapshot* snapshot,
                                      hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Ordered map: as a map, in the order of the keys' bytes. Cursors go upwards. */

hf_status hf_mod_ordered_map_open(hf_pool* pool, const char* name,
                                  hf_mod_ordered_map** map) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_open_in(hf_mod_transaction* transaction, const char* name,
                                     hf_mod_ordered_map** map) HF_NOEXCEPT;
void hf_mod_ordered_map_close(hf_mod_ordered_map* map) HF_NOEXCEPT;
void hf_mod_ordered_map_set_durability(hf_mod_ordered_map* map,
                                       enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_ordered_map_count(const hf_mod_ordered_map* map) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND. 'value' may be null. */
hf_status hf_mod_ordered_map_get(const hf_mod_ordered_map* map, hf_bytes key,
                                 hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_iterate(const hf_mod_ordered_map* map,
                                     hf_mod_cursor** cursor) HF_NOEXCEPT;
/* A cursor through the keys from '*from' to before '*upto', downwards if 'backwards' is not 0. Null
 * is no bound.
 *
 * Cost: O(log n), and O(1) a step on average. */
hf_status hf_mod_ordered_map_range(const hf_mod_ordered_map* map, const hf_bytes* from,
                                   const hf_bytes* upto, int backwards,
                                   hf_mod_cursor** cursor) HF_NOEXCEPT;

/* As the map's. */
hf_status hf_mod_ordered_map_put(hf_mod_ordered_map* map, hf_bytes key, hf_bytes value,
                                 int* inserted) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_insert(hf_mod_ordered_map* map, hf_bytes key, hf_bytes value,
                                    int* inserted) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_take(hf_mod_ordered_map* map, hf_bytes key,
                                  hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_clear(hf_mod_ordered_map* map) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_update(hf_mod_ordered_map* map, const struct hf_mod_map_step* steps,
                                    size_t step_count) HF_NOEXCEPT;

hf_status hf_mod_ordered_map_snapshot_take(const hf_mod_ordered_map* map,
                                           hf_mod_ordered_map_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_ordered_map_snapshot_close(hf_mod_ordered_map_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_ordered_map_snapshot_count(const hf_mod_ordered_map_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_snapshot_get(const hf_mod_ordered_map_snapshot* snapshot, hf_bytes key,
                                          hf_bytes* value) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_snapshot_iterate(const hf_mod_ordered_map_snapshot* snapshot,
                                              hf_mod_cursor** cursor) HF_NOEXCEPT;
hf_status hf_mod_ordered_map_snapshot_range(const hf_mod_ordered_map_snapshot* snapshot,
                                            const hf_bytes* from, const hf_bytes* upto,
                                            int backwards, hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Set: different byte strings; no order. */

hf_status hf_mod_set_open(hf_pool* pool, const char* name, hf_mod_set** set) HF_NOEXCEPT;
hf_status hf_mod_set_open_in(hf_mod_transaction* transaction, const char* name,
                             hf_mod_set** set) HF_NOEXCEPT;
void hf_mod_set_close(hf_mod_set* set) HF_NOEXCEPT;
void hf_mod_set_set_durability(hf_mod_set* set, enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_set_count(const hf_mod_set* set) HF_NOEXCEPT;
/* HF_OK or HF_NOT_FOUND. */
hf_status hf_mod_set_find(const hf_mod_set* set, hf_bytes element) HF_NOEXCEPT;
hf_status hf_mod_set_iterate(const hf_mod_set* set, hf_mod_cursor** cursor) HF_NOEXCEPT;

/* '*inserted', which may be null: whether the element was new. */
hf_status hf_mod_set_insert(hf_mod_set* set, hf_bytes element, int* inserted) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND. */
hf_status hf_mod_set_erase(hf_mod_set* set, hf_bytes element) HF_NOEXCEPT;
hf_status hf_mod_set_clear(hf_mod_set* set) HF_NOEXCEPT;

struct hf_mod_set_step {
    hf_bytes element;
    int erase; /* insert, or erase, where that changes something */
};
/* As hf_mod_map_update. */
hf_status hf_mod_set_update(hf_mod_set* set, const struct hf_mod_set_step* steps,
                            size_t step_count) HF_NOEXCEPT;

hf_status hf_mod_set_snapshot_take(const hf_mod_set* set,
                                   hf_mod_set_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_set_snapshot_close(hf_mod_set_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_set_snapshot_count(const hf_mod_set_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_set_snapshot_find(const hf_mod_set_snapshot* snapshot,
                                   hf_bytes element) HF_NOEXCEPT;
hf_status hf_mod_set_snapshot_iterate(const hf_mod_set_snapshot* snapshot,
                                      hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Vector: byte strings by index, from 0. */

hf_status hf_mod_vector_open(hf_pool* pool, const char* name, hf_mod_vector** vector) HF_NOEXCEPT;
hf_status hf_mod_vector_open_in(hf_mod_transaction* transaction, const char* name,
                                hf_mod_vector** vector) HF_NOEXCEPT;
void hf_mod_vector_close(hf_mod_vector* vector) HF_NOEXCEPT;
void hf_mod_vector_set_durability(hf_mod_vector* vector, enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_vector_count(const hf_mod_vector* vector) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND past the end. */
hf_status hf_mod_vector_get(const hf_mod_vector* vector, uint64_t index,
                            hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_vector_iterate(const hf_mod_vector* vector, hf_mod_cursor** cursor) HF_NOEXCEPT;

/* Errors: HF_NOT_FOUND past the end. */
hf_status hf_mod_vector_set(hf_mod_vector* vector, uint64_t index, hf_bytes element) HF_NOEXCEPT;
hf_status hf_mod_vector_push(hf_mod_vector* vector, hf_bytes element) HF_NOEXCEPT;
/* Removes the last element and gives a copy of it (4), which may be null.
 *
 * Errors: HF_NOT_FOUND if the vector is empty. */
hf_status hf_mod_vector_pop(hf_mod_vector* vector, hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_vector_clear(hf_mod_vector* vector) HF_NOEXCEPT;
/* Replaces 'removed_count' elements, from 'index' on, by 'elements': inserts, erases, appends and
 * replaces, in one failure-atomic section.
 *
 * Ordering: 1 point for all of them (2).
 * Errors:   HF_NOT_FOUND when index + removed_count is past the end. */
hf_status hf_mod_vector_splice(hf_mod_vector* vector, uint64_t index, uint64_t removed_count,
                               const hf_bytes* elements, size_t element_count) HF_NOEXCEPT;

struct hf_mod_vector_step {
    uint64_t index;
    hf_bytes element;
};
/* Sets elements, in order, in one failure-atomic section. Errors: HF_NOT_FOUND past the end. */
hf_status hf_mod_vector_update(hf_mod_vector* vector, const struct hf_mod_vector_step* steps,
                               size_t step_count) HF_NOEXCEPT;

hf_status hf_mod_vector_snapshot_take(const hf_mod_vector* vector,
                                      hf_mod_vector_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_vector_snapshot_close(hf_mod_vector_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_vector_snapshot_count(const hf_mod_vector_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_vector_snapshot_get(const hf_mod_vector_snapshot* snapshot, uint64_t index,
                                     hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_vector_snapshot_iterate(const hf_mod_vector_snapshot* snapshot,
                                         hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Stack: last in, first out. Cursors go from the top down. */

hf_status hf_mod_stack_open(hf_pool* pool, const char* name, hf_mod_stack** stack) HF_NOEXCEPT;
hf_status hf_mod_stack_open_in(hf_mod_transaction* transaction, const char* name,
                               hf_mod_stack** stack) HF_NOEXCEPT;
void hf_mod_stack_close(hf_mod_stack* stack) HF_NOEXCEPT;
void hf_mod_stack_set_durability(hf_mod_stack* stack, enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_stack_count(const hf_mod_stack* stack) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND if the stack is empty. */
hf_status hf_mod_stack_peek(const hf_mod_stack* stack, hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_stack_iterate(const hf_mod_stack* stack, hf_mod_cursor** cursor) HF_NOEXCEPT;

hf_status hf_mod_stack_push(hf_mod_stack* stack, hf_bytes element) HF_NOEXCEPT;
/* The last of them comes to the top.
 *
 * Ordering: 1 point for all of them (2). */
hf_status hf_mod_stack_push_all(hf_mod_stack* stack, const hf_bytes* elements,
                                size_t element_count) HF_NOEXCEPT;
/* Removes the top element and gives a copy of it (4), which may be null.
 *
 * Errors: HF_NOT_FOUND if the stack is empty. */
hf_status hf_mod_stack_pop(hf_mod_stack* stack, hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_stack_clear(hf_mod_stack* stack) HF_NOEXCEPT;

hf_status hf_mod_stack_snapshot_take(const hf_mod_stack* stack,
                                     hf_mod_stack_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_stack_snapshot_close(hf_mod_stack_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_stack_snapshot_count(const hf_mod_stack_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_stack_snapshot_peek(const hf_mod_stack_snapshot* snapshot,
                                     hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_stack_snapshot_iterate(const hf_mod_stack_snapshot* snapshot,
                                        hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Queue: first in, first out. Cursors go from the front to the back. */

hf_status hf_mod_queue_open(hf_pool* pool, const char* name, hf_mod_queue** queue) HF_NOEXCEPT;
hf_status hf_mod_queue_open_in(hf_mod_transaction* transaction, const char* name,
                               hf_mod_queue** queue) HF_NOEXCEPT;
void hf_mod_queue_close(hf_mod_queue* queue) HF_NOEXCEPT;
void hf_mod_queue_set_durability(hf_mod_queue* queue, enum hf_mod_durability wanted) HF_NOEXCEPT;

uint64_t hf_mod_queue_count(const hf_mod_queue* queue) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND if the queue is empty. */
hf_status hf_mod_queue_peek(const hf_mod_queue* queue, hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_queue_iterate(const hf_mod_queue* queue, hf_mod_cursor** cursor) HF_NOEXCEPT;

hf_status hf_mod_queue_push(hf_mod_queue* queue, hf_bytes element) HF_NOEXCEPT;
/* The last of them comes to the back.
 *
 * Ordering: 1 point for all of them (2). */
hf_status hf_mod_queue_push_all(hf_mod_queue* queue, const hf_bytes* elements,
                                size_t element_count) HF_NOEXCEPT;
/* Removes the front element and gives a copy of it (4), which may be null.
 *
 * Errors: HF_NOT_FOUND if the queue is empty. */
hf_status hf_mod_queue_pop(hf_mod_queue* queue, hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_queue_clear(hf_mod_queue* queue) HF_NOEXCEPT;

hf_status hf_mod_queue_snapshot_take(const hf_mod_queue* queue,
                                     hf_mod_queue_snapshot** snapshot) HF_NOEXCEPT;
void hf_mod_queue_snapshot_close(hf_mod_queue_snapshot* snapshot) HF_NOEXCEPT;
uint64_t hf_mod_queue_snapshot_count(const hf_mod_queue_snapshot* snapshot) HF_NOEXCEPT;
hf_status hf_mod_queue_snapshot_peek(const hf_mod_queue_snapshot* snapshot,
                                     hf_bytes* element) HF_NOEXCEPT;
hf_status hf_mod_queue_snapshot_iterate(const hf_mod_queue_snapshot* snapshot,
                                        hf_mod_cursor** cursor) HF_NOEXCEPT;

/* ---- Cache: byte strings under byte strings, of a bounded number of bytes, which may expire.
 *
 *   struct hf_mod_cache_options how = {.max_bytes = 64 << 20, .ttl_s = 600};
 *   hf_mod_cache *pages;
 *   if (hf_mod_cache_open(pool, "pages", &how, &pages) != HF_OK) return puts(hf_error_text()), 1;
 *   hf_mod_cache_put(pages, hf_text("/index"), hf_text(html), 0);
 *   hf_bytes page;
 *   if (hf_mod_cache_get(pages, hf_text("/index"), &page) == HF_OK) send(page);
 *
 * <holdfast/mod/cache.hpp> says what counts as bytes, what is evicted, and how time passes. Other
 * than of the structures above, every call may be made on any thread at any time; reads do not wait
 * for changes. What get and get_or_compute return is a copy, valid until the thread's next take,
 * pop, get or get_or_compute. A cache takes no part in transactions. */
typedef struct hf_mod_cache hf_mod_cache;

#define HF_MOD_FOREVER UINT32_MAX

struct hf_mod_cache_options {
    uint64_t max_bytes; /* above 0 */
    uint32_t ttl_s;     /* of entries put with 0; 0 or HF_MOD_FOREVER: no end */
    enum hf_mod_durability when_durable;
};
struct hf_mod_cache_statistics {
    uint64_t hits, misses;
    uint64_t evictions;   /* entries that were alive */
    uint64_t expirations; /* expired entries that were removed or replaced */
    uint64_t not_stored;  /* computed values that a put refused */
};

/* Gives the cache of this name; makes it if it is missing.
 *
 * Cost:   reads every entry.
 * Errors: HF_BAD_ARGUMENT (max_bytes 0, a wrong name), HF_IN_USE (a cache of this name is open in
 *         this process), HF_WRONG_LAYOUT (the name belongs to something else), HF_POOL_FULL,
 *         HF_LIMIT_REACHED. */
hf_status hf_mod_cache_open(hf_pool* pool, const char* name,
                            const struct hf_mod_cache_options* options,
                            hf_mod_cache** cache) HF_NOEXCEPT;
void hf_mod_cache_close(hf_mod_cache* cache) HF_NOEXCEPT;

/* Errors: HF_NOT_FOUND: there is no such key, or it has expired. 'value' may be null. */
hf_status hf_mod_cache_get(hf_mod_cache* cache, hf_bytes key, hf_bytes* value) HF_NOEXCEPT;
/* HF_OK or HF_NOT_FOUND. Counts as no use. */
hf_status hf_mod_cache_find(const hf_mod_cache* cache, hf_bytes key) HF_NOEXCEPT;

/* put stores the value, in place of an older one, and makes room first, if it must; add stores it
 * unless the key is there; replace only if it is. '*stored', which may be null, says whether.
 * ttl_s: time to live in seconds; 0: the cache's; HF_MOD_FOREVER: no end.
 *
 * Ordering: 1 point, 2 with HF_MOD_ON_RETURN; 0 if nothing is stored.
 * Crash:    all of it, evictions included, or nothing.
 * Errors:   HF_BAD_ARGUMENT: the entry is larger than max_bytes; HF_POOL_FULL: no eviction made
 *           room; the key has its old value then. */
hf_status hf_mod_cache_put(hf_mod_cache* cache, hf_bytes key, hf_bytes value,
                           uint32_t ttl_s) HF_NOEXCEPT;
hf_status hf_mod_cache_add(hf_mod_cache* cache, hf_bytes key, hf_bytes value, uint32_t ttl_s,
                           int* stored) HF_NOEXCEPT;
hf_status hf_mod_cache_replace(hf_mod_cache* cache, hf_bytes key, hf_bytes value, uint32_t ttl_s,
                               int* stored) HF_NOEXCEPT;
/* Gives the entry another time to live, from now on. Errors: HF_NOT_FOUND; as put. */
hf_status hf_mod_cache_touch(hf_mod_cache* cache, hf_bytes key, uint32_t ttl_s) HF_NOEXCEPT;
/* Errors: HF_NOT_FOUND. */
hf_status hf_mod_cache_erase(hf_mod_cache* cache, hf_bytes key) HF_NOEXCEPT;

/* Gives a value for the key. It must stay valid until the function's caller has returned. */
typedef hf_status (*hf_mod_cache_make)(void* context, hf_bytes key, hf_bytes* value);
/* Gives the key's value; if it is missing, what 'make' gives, which is put. Of several threads that
 * ask for a missing key one calls 'make', and the others wait. A value that cannot be stored is
 * given all the same, and counted.
 *
 * Errors: what 'make' returns; HF_BAD_ARGUMENT: 'make' asks for its own key. */
hf_status hf_mod_cache_get_or_compute(hf_mod_cache* cache, hf_bytes key, uint32_t ttl_s,
                                      hf_mod_cache_make make, void* context,
                                      hf_bytes* value) HF_NOEXCEPT;

hf_status hf_mod_cache_clear(hf_mod_cache* cache) HF_NOEXCEPT;
/* Removes what has expired; '*removed_count', which may be null, says how many. */
hf_status hf_mod_cache_expire(hf_mod_cache* cache, uint64_t* removed_count) HF_NOEXCEPT;
/* A cursor through the keys and values that are alive, of the current version. */
hf_status hf_mod_cache_iterate(const hf_mod_cache* cache, hf_mod_cursor** cursor) HF_NOEXCEPT;

/* Entries, those that have expired and were not removed yet included. */
uint64_t hf_mod_cache_count(const hf_mod_cache* cache) HF_NOEXCEPT;
uint64_t hf_mod_cache_bytes(const hf_mod_cache* cache) HF_NOEXCEPT;
struct hf_mod_cache_statistics hf_mod_cache_read_statistics(const hf_mod_cache* cache) HF_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
