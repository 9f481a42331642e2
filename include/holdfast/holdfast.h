/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Holdfast for C, and for C++ built with another standard library than Holdfast's own: no type of
 * the standard library crosses this interface.
 *
 *   HF_TXFUNC void add(struct counter *c, long n) { c->value += n; }
 *
 *   hf_pool *pool;
 *   struct hf_open_options options = {.layout = "counter/1"};
 *   if (hf_pool_open("counter.hf", &options, &pool) != HF_OK) return puts(hf_error_text()), 1;
 *   struct counter *c;
 *   if (hf_pool_root(pool, sizeof *c, (void **)&c) == HF_OK) add(c, 42);
 *   hf_pool_close(pool);
 *
 * Sections may call hf_alloc, hf_free, hf_vlog_preserve, hf_abort_section and hf_crash_point
 * (holdfast_abi.h). Link the program with the C++ standard library (-lstdc++). */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/author/mark.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 is success; the others are hf::errc, in its order. */
typedef enum hf_status {
    HF_OK,
    HF_NOT_FOUND,
    HF_EXISTS,
    HF_NOT_A_POOL,
    HF_TRUNCATED,
    HF_CORRUPT,
    HF_WRONG_VERSION,
    HF_UNKNOWN_FEATURE,
    HF_WRONG_LAYOUT,
    HF_MISSING_ENGINE,
    HF_FUNCTION_CHANGED,
    HF_IN_USE,
    HF_PERMISSION,
    HF_MODE_UNAVAILABLE,
    HF_TORN,
    HF_ADDRESS_TAKEN,
    HF_POOL_FULL,
    HF_LIMIT_REACHED,
    HF_BAD_ARGUMENT,
    HF_IO_ERROR,
    HF_POISONED,
    HF_CONFLICT,
    HF_NOT_INSTRUMENTED
} hf_status;

enum hf_mode { HF_MODE_PROCESS, HF_MODE_PMEM, HF_MODE_POWER };
enum hf_recovery { HF_RECOVERY_COMPLETE, HF_RECOVERY_ROLL_BACK };
enum hf_creation { HF_CREATE_IF_MISSING, HF_CREATE_NEVER, HF_CREATE_ALWAYS_NEW };

typedef struct hf_pool hf_pool;

/* A pool on its way from the layout that it was made with to the one that the program has now: as
 * hf::migration; docs/guide/migration.md. The function changes the pool by sections, or by updates
 * of MOD containers. If a crash cuts it short, the next open calls it again, and it goes on with
 * what it finds. When it returns HF_OK, the pool gets its new layout and its new root at once.
 * hf_pool_open returns any other value, with the sentence of the function's last failing call if
 * that returned the same; the pool then opens for this migration only. */
typedef struct hf_migration hf_migration;
typedef hf_status (*hf_migrate_function)(hf_migration* of, void* context);

/* Zeros, or no options, are the defaults of hf::open_options, except that a new pool begins with 1
 * MiB. Every open gets all engines that the library was built with. */
struct hf_open_options {
    const char* layout; /* the application's layout name, at most 63 bytes; null: "" */
    uint64_t layout_hash;
    uint64_t create_bytes; /* 0: 1 MiB, which grows to max_bytes */
    uint64_t max_bytes;    /* 0: 64 times create_bytes, or 4 GiB if that is 0, too */
    int creation;          /* enum hf_creation */
    int mode;              /* enum hf_mode */
    unsigned max_threads;
    int salvage;
    int recovery; /* enum hf_recovery */
    int read_only;
    int shared; /* with read_only: only MOD's structures can be read, only engine mod is given */
    hf_migrate_function migrate; /* null: a pool of another layout is refused */
    void* migrate_context;
};

/* What a copy took: hf_pool_copy_to. */
struct hf_copied {
    uint64_t bytes;          /* of the copy's file */
    double pause_ms;         /* for so long every thread of this process stood still */
    uint64_t bytes_in_pause; /* copied meanwhile */
};

/* hf::statistics, without the sizes of blocks: <holdfast/statistics.hpp> says what each is. */
struct hf_statistics {
    uint64_t sections, ordering_points, flushes, log_entries, log_bytes,
        pm_bytes; /* of this process */
    uint64_t size_bytes, max_bytes, used_bytes, free_bytes, metadata_bytes,
        blocks; /* of the pool */
    uint64_t generation, sections_recovered;
    double open_ms;
};

/* What recovery did when the pool was opened: hf::recovery_report, without the separate engines. */
struct hf_recovered {
    uint32_t sections_pending; /* found unfinished: the sum of those below, without no_room */
    uint32_t re_executed, replayed, resumed, rolled_back, discarded;
    uint32_t no_room; /* of those rolled back: the pool had no room to complete them */
};

/* As hf::pool::open; 'options' may be null. '*pool' is null unless it returns HF_OK.
 *
 * Errors: as hf::pool::open, and HF_BAD_ARGUMENT for a null path; hf_error_text() has the
 *         sentence. */
hf_status hf_pool_open(const char* path, const struct hf_open_options* options,
                       hf_pool** pool) HF_NOEXCEPT;
/* Closes cleanly. Null does nothing. */
void hf_pool_close(hf_pool* pool) HF_NOEXCEPT;
/* The root object, zero-filled by the first call.
 *
 * Errors: HF_POOL_FULL; HF_BAD_ARGUMENT: no bytes; HF_WRONG_LAYOUT: the pool's root has another
 *         size; HF_IN_USE: this process is a child of the one that opened the pool. */
hf_status hf_pool_root(hf_pool* pool, size_t bytes, void** root) HF_NOEXCEPT;
/* The pool's first byte. */
const void* hf_pool_base(const hf_pool* pool) HF_NOEXCEPT;
/* What recovery did when the pool was opened. */
struct hf_recovered hf_pool_recovered(const hf_pool* pool) HF_NOEXCEPT;

/* Copies the pool to a new file: all that is committed at one moment, while other threads work on.
 * As hf::pool::copy_to. 'copied' may be null.
 *
 * Errors: HF_EXISTS, HF_POOL_FULL (the disk), HF_PERMISSION (the system lets no process be
 *         stopped), HF_IO_ERROR, HF_BAD_ARGUMENT for a null path, HF_IN_USE in a child of the
 *         process that opened the pool, HF_MODE_UNAVAILABLE in mode power. */
hf_status hf_pool_copy_to(hf_pool* pool, const char* path, struct hf_copied* copied) HF_NOEXCEPT;

/* Makes all work that has returned durable, on any thread: sections, changes of MOD's structures,
 * deferred calls of persistent objects. In mode power it is on the disk. As hf::settle. Requires:
 * no section is open on this thread. */
void hf_pool_settle(hf_pool* pool) HF_NOEXCEPT;
/* Waits until the sections that hf_pool_open has resumed have ended, as hf::justdo::wait: before
 * reading without locks what they guard. Requires: this thread holds no lock of the pool. */
void hf_pool_wait_resumed(hf_pool* pool) HF_NOEXCEPT;

/* Gives the disk space of free chunks back to the file system, as hf::pool::trim. 'bytes' may be
 * null.
 *
 * Errors: HF_MODE_UNAVAILABLE (mode power; a file system without holes), HF_PERMISSION (read-only),
 *         HF_IN_USE in a child of the process that opened the pool, HF_IO_ERROR. */
hf_status hf_pool_trim(hf_pool* pool, uint64_t* bytes) HF_NOEXCEPT;

/* Why the pool did not grow at its last attempt, as hf::pool::why_full: for a caller of hf_alloc
 * that got no block.
 *
 * Errors: HF_POOL_FULL, HF_IO_ERROR; hf_error_text() says what to do. HF_OK: it has grown, or has
 *         not tried. */
hf_status hf_pool_why_full(const hf_pool* pool) HF_NOEXCEPT;

/* What the pool is doing, in numbers. Cost: reads the heap's tables, a 128th of the pool.
 *
 * Errors: HF_IO_ERROR: no memory. */
hf_status hf_pool_statistics(const hf_pool* pool, struct hf_statistics* found) HF_NOEXCEPT;

/* The pool, until the function returns; hf_pool_root gives the old root. Do not close it. */
hf_pool* hf_migration_pool(hf_migration* of) HF_NOEXCEPT;
/* The layout, and its hash, that the pool was made with. */
const char* hf_migration_from_layout(const hf_migration* of) HF_NOEXCEPT;
uint64_t hf_migration_from_hash(const hf_migration* of) HF_NOEXCEPT;
/* The new root object: zero-filled by the first call, later with what earlier tries have left
 * there. When the function returns HF_OK it replaces the old root, which is freed. If it was never
 * asked for, the old root stays. 3 ordering points, the first time.
 *
 * Errors: HF_WRONG_LAYOUT: an earlier try asked for another size; HF_POOL_FULL; HF_BAD_ARGUMENT: no
 *         bytes. */
hf_status hf_migration_new_root(hf_migration* of, size_t bytes, void** root) HF_NOEXCEPT;
/* A word of the pool, 0 at first, in which the function's sections count how far they have come. */
uint64_t* hf_migration_cursor(hf_migration* of) HF_NOEXCEPT;
/* The function returns this for a layout that it does not know, before it has changed anything.
 * The pool keeps that layout, and still opens for the programs that know it.
 *
 * Errors: HF_WRONG_LAYOUT, in any case. */
hf_status hf_migration_refuse(hf_migration* of) HF_NOEXCEPT;
/* Writes a line to the log, at most one a second. */
void hf_migration_report(hf_migration* of, uint64_t done, uint64_t total) HF_NOEXCEPT;

/* Where Holdfast's own log lines go (<holdfast/log.hpp>): they report what no call can return. */
enum hf_severity { HF_NOTE, HF_WARNING, HF_ERROR, HF_FATAL };
typedef void (*hf_log_function)(void* context, enum hf_severity level, const char* message);
/* Null, and the default: warnings and worse go to stderr. Requires: 'to' makes no call of
 * Holdfast. */
void hf_set_log(hf_log_function to, void* context) HF_NOEXCEPT;

/* Short stable name of a status: "wrong_layout". */
const char* hf_strerror(hf_status status) HF_NOEXCEPT;
/* The sentence about the last call of this thread that did not return HF_OK: what was expected and
 * what was found. Valid until this thread's next failing call. */
const char* hf_error_text(void) HF_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
