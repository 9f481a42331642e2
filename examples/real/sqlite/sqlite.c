/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * SQLite's in-memory database in a pool: connection, pages, schema and prepared statements are its
 * own allocations, and its own hook takes them from the pool. One section makes one transaction. No
 * line of it is changed; options and macros switch off what a section may not do. The connection
 * holds addresses of functions and constants, so the program is linked at fixed addresses (-no-
 * pie), and another build of it is refused.
 */
#define NAME "sqlite"
#define LAYOUT "sqlite/1"
#define FIXED_ADDRESSES
#include "program.h"

// [options]
#define SQLITE_THREADSAFE 0
#define SQLITE_DEFAULT_MEMSTATUS 0
#define SQLITE_OMIT_LOAD_EXTENSION 1
#define SQLITE_OMIT_WAL 1
#define SQLITE_MAX_MMAP_SIZE 0
#define SQLITE_TEMP_STORE 3     /* in memory, too */
#define SQLITE_API __attribute__((noinline)) /* else sections would be filled with all of it */
#define __has_extension(what) 0 /* no atomic operations */
#define volatile
#include "sqlite3.c"
// [/options]

#define ROWS 4096u

struct root {
    unsigned long done;
    sqlite3* db;
    sqlite3_stmt *begin, *commit, *put, *drop;
};

static void* take(int bytes) { return pool_malloc((size_t)bytes); }
static void* change_size(void* block, int bytes) { return pool_realloc(block, (size_t)bytes); }
static int size_of(void* block) { return (int)pool_size(block); }
static int rounded(int bytes) { return (bytes + 15) & ~15; }
static int memory_begins(void* unused) { return SQLITE_OK; }
static void memory_ends(void* unused) {}
// [memory]
static const sqlite3_mem_methods memory = {take,    pool_free,     change_size, size_of,
                                           rounded, memory_begins, memory_ends, NULL};
// [/memory]

static void must(int answer, int expected) {
    if (answer != expected) __builtin_trap();
}

HF_TXFUNC void begin(struct root* r) {
    must(sqlite3_open(":memory:", &r->db), SQLITE_OK);
    must(
        sqlite3_exec(
            r->db,
            "CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, visits INTEGER, weight INTEGER);"
            "CREATE INDEX by_weight ON items(weight)",
            NULL, NULL, NULL),
        SQLITE_OK);
    must(sqlite3_prepare_v2(r->db, "BEGIN", -1, &r->begin, NULL), SQLITE_OK);
    must(sqlite3_prepare_v2(r->db, "COMMIT", -1, &r->commit, NULL), SQLITE_OK);
    must(sqlite3_prepare_v2(r->db,
                            "INSERT INTO items VALUES(?1, ?2, 1, ?3)"
                            " ON CONFLICT(id) DO UPDATE SET visits = visits + 1, weight = ?3",
                            -1, &r->put, NULL),
         SQLITE_OK);
    must(sqlite3_prepare_v2(r->db, "DELETE FROM items WHERE id = ?1", -1, &r->drop, NULL),
         SQLITE_OK);
}

static void once(sqlite3_stmt* statement) {
    must(sqlite3_step(statement), SQLITE_DONE);
    must(sqlite3_reset(statement), SQLITE_OK);
}

// [change]
/* A transaction: a row is made or changed, and now and then another one goes. */
HF_TXFUNC void change(struct root* r, unsigned long step, int killed) {
    const unsigned x = mixed(step), id = x % ROWS;
    char name[16];
    name_of(id, name);
    once(r->begin);
    sqlite3_bind_int(r->put, 1, (int)id);
    sqlite3_bind_text(r->put, 2, name, sizeof name, SQLITE_TRANSIENT);
    sqlite3_bind_int(r->put, 3, (int)(x >> 12));
    once(r->put);
    if (killed) hf_crash_point("middle");
    if (x % 5 == 0) {
        sqlite3_bind_int(r->drop, 1, (int)((x >> 7) % ROWS));
        once(r->drop);
    }
    once(r->commit);
    r->done += 1;
}
// [/change]

struct row {
    int visits, weight;
};
static struct row model[ROWS];

/* What SQLite says of itself, and each row. A section, as a query changes the connection, too. */
HF_TXFUNC int holds_model(struct root* r) {
    sqlite3_stmt* asked;
    must(sqlite3_prepare_v2(r->db, "PRAGMA integrity_check", -1, &asked, NULL), SQLITE_OK);
    must(sqlite3_step(asked), SQLITE_ROW);
    int ok = strcmp((const char*)sqlite3_column_text(asked, 0), "ok") == 0;
    sqlite3_finalize(asked);
    must(sqlite3_prepare_v2(r->db, "SELECT id, visits, weight FROM items ORDER BY weight, id", -1,
                            &asked, NULL),
         SQLITE_OK);
    unsigned found = 0, expected = 0;
    while (sqlite3_step(asked) == SQLITE_ROW) {
        const struct row* row = &model[sqlite3_column_int(asked, 0)];
        ok = ok && sqlite3_column_int(asked, 1) == row->visits &&
             sqlite3_column_int(asked, 2) == row->weight;
        ++found;
    }
    sqlite3_finalize(asked);
    for (unsigned i = 0; i < ROWS; ++i) expected += model[i].visits != 0;
    return ok && found == expected;
}

static void opened(struct root* r) {
    must(sqlite3_config(SQLITE_CONFIG_MALLOC, &memory), SQLITE_OK);
    must(sqlite3_initialize(), SQLITE_OK);
    char first; /* seeds it from a file, which no section may read */
    sqlite3_randomness(sizeof first, &first);
    if (!r->db) begin(r);
}

static int same(struct root* r) {
    for (unsigned long i = 0; i < r->done; ++i) {
        const unsigned x = mixed(i);
        struct row* row = &model[x % ROWS];
        row->visits += 1;
        row->weight = (int)(x >> 12);
        if (x % 5 == 0) model[(x >> 7) % ROWS] = (struct row){0, 0};
    }
    return holds_model(r);
}

PROGRAM_MAIN
