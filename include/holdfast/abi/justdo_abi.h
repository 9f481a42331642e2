// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine justdo: the calls of compiled code and of the library interface (holdfast/justdo.hpp). A
// section runs from a thread's outermost lock to its last unlock. If a crash cuts it short, the
// next open resumes it where it was: at a resume point, in a function that finds its values in a
// persistent frame.
//
// A thread has in its pool a log of one line, a lock intention log, a lock ownership log, and a
// stack of frames (docs/format/justdo.md). The line's program counter names the depth of the stack,
// the resume point of the topmost frame's function, and which of that frame's two snapshots counts.
// A *step* moves the program counter:
//
//   1. write what the step will do beside the active entry: address, value, size
//   2. store the program counter: it names the new entry and the resume point behind the step
//   3. do it: the store, the copy, the change of the lock log, the block taken or freed
//
// After a failure behind 2, resumption does 3 again, which is idempotent, and goes on at the resume
// point. So between two steps a function may only load, compute, and prepare what resumption at the
// next point will read. That may be memory that the function has just allocated, or slots of its
// frame that no resume point reads that may still count (written once in the section's run, or of
// the snapshot that does not count). It notes those stores (hf_justdo_note): the next step makes
// them durable before it moves the program counter.
//
// Outside of a section the calls act without a log: a function may be called with a lock held and
// without.
#ifndef HOLDFAST_JUSTDO_ABI_H
#define HOLDFAST_JUSTDO_ABI_H

#include <holdfast/abi/holdfast_abi.h>

#ifdef __cplusplus
extern "C" {
#endif

// Constants and functions that a function with a frame names, or that another one names which it
// calls. Its frame may hold their addresses, as distances from where its program, or shared
// library, begins.
struct hf_justdo_constants {
    uint64_t layout;       // hash of these distances: hf_justdo_register puts it there
    uint64_t count;        // of addresses
    const void* const* at; // the first one is where it begins
};

// A function whose sections resume, or that such functions call. The plugin emits one constant for
// each and a global constructor that registers it.
struct hf_justdo_function {
    uint32_t abi_version; // HF_ABI_VERSION
    uint32_t frame_bytes; // of its frame, at most HF_JUSTDO_FRAME_BYTES_MAX
    uint64_t id;          // XXH3-64 of the linker name: which function a frame is of
    uint64_t version;  // hash of its instrumented body, callees and layout of the frame: the build
    const char* name;  // linker name
    const char* where; // "file:line"
    uint32_t points;   // its resume points are 1 … points, at most HF_JUSTDO_POINT_MAX
    uint32_t reserved; // zero
    // Calls the function; its arguments do not matter, hf_justdo_enter says where it goes on. Null:
    // it is never the outermost one.
    void (*resume)(void);
    struct hf_justdo_constants* constants; // null: it names none
};
void hf_justdo_register(const struct hf_justdo_function* function) HF_NOEXCEPT;
void hf_justdo_forget(const struct hf_justdo_function* function) HF_NOEXCEPT;

#define HF_JUSTDO_FRAME_BYTES_MAX 32768u
#define HF_JUSTDO_POINT_MAX 0x7fffffu
// A section holds as many locks, and nests as many calls, as the pool has room for.

// 'point' below: where the function goes on. With this bit its second snapshot counts there,
// without it the first. hf_justdo_enter returns the number with its bit.
#define HF_JUSTDO_SNAPSHOT 0x800000u

// First in a function: pushes its frame, of frame_bytes, at a line, with any content. 'in': an
// address of the pool that it works on; null, or an address in no pool: the process's only pool.
// '*resumed' is 0, or the point where it goes on: then its frame is as it was. If that is a point
// of hf_justdo_call, the function makes the call again, with any arguments.
void* hf_justdo_enter(const struct hf_justdo_function* function, const void* in,
                      uint32_t* resumed) HF_NOEXCEPT;
// Behind hf_justdo_enter: an argument that the function is certain to follow. It is null or leads
// into the pool; else the process ends with a message. 'number' counts from 0.
void hf_justdo_argument(const void* pointer, uint32_t number) HF_NOEXCEPT;
// Last in it: pops the frame.
void hf_justdo_leave(void) HF_NOEXCEPT;
// Before every call of a function that enters. While the called function has a frame, this one goes
// on at 'point', right before the call. All that it needs at 'point' and behind it is in its frame.
void hf_justdo_call(uint32_t point) HF_NOEXCEPT;

// Notes bytes that were stored in place, as the head of this file allows: durable before the next
// step. Also of no bytes: what the thread has stored so far is durable before the next step, and
// no resumption behind that stores it again.
void hf_justdo_note(const void* address, uint64_t bytes) HF_NOEXCEPT;

// Steps. Each moves the program counter, also where nothing is left to do (of no bytes, of a null
// pointer), and returns when it is done. Addresses lie in the pool of the section.
// Nothing is done: the program counter moves to 'point'.
void hf_justdo_point(uint32_t point) HF_NOEXCEPT;
// Stores the lowest 'bytes' bytes of 'value': 1, 2, 4 or 8.
void hf_justdo_store(void* address, uint64_t value, uint32_t bytes, uint32_t point) HF_NOEXCEPT;
// As memmove, from memory of the pool or, when the last step was hf_justdo_point, from a constant
// of the program; as memset.
void hf_justdo_copy(void* to, const void* from, uint64_t bytes, uint32_t point) HF_NOEXCEPT;
void hf_justdo_fill(void* to, int byte, uint64_t bytes, uint32_t point) HF_NOEXCEPT;
// Allocates, and stores the address in '*slot', of the pool (the frame is in it); null when the
// pool is full. The block is part of the log entry: resumption neither loses it nor takes another
// one.
void* hf_justdo_alloc(uint64_t bytes, void** slot, uint32_t point) HF_NOEXCEPT;
// Frees a block; null does nothing. No other thread gets the block before this thread's next step.
void hf_justdo_free(void* block, uint32_t point) HF_NOEXCEPT;

// A step in a medium that keeps order, as compiled code makes it in line: 'where', of an entry of
// the log, and 'value'; the program counter; the store. 'counter' is the program counter that names
// neither entry nor point; of the log it is the first word, with two entries of
// HF_JUSTDO_ENTRY_WORDS behind it, and its highest bit says which one is active. A word that begins
// at an offset below 'words_end' lies in the pool. In other media, and where a step does more, that
// is 0, and every step is a call.
struct hf_justdo_plain_steps {
    uint64_t* log;
    char* base; // the pool's first byte
    uint64_t words_end;
    uint64_t counter;
    uint64_t entries; // of the log, since the section began
    uint64_t bytes;   // stored to the pool and noted, since then
};
#define HF_JUSTDO_ENTRY_WORDS 3u
#define HF_JUSTDO_STORES 1u // highest byte of 'where' of a store; then its bytes:8, its offset:48
extern __thread struct hf_justdo_plain_steps hf_justdo_steps
    __attribute__((tls_model("initial-exec")));

// Locks. They lie in the pool. Recovery gives those that a section owned to the thread that resumes
// it. All that the section has stored is durable before it releases a lock. The last unlock ends
// the section, which is complete when that returns. A section holds a lock once.
enum hf_justdo_lock_kind {
    HF_JUSTDO_EXCLUSIVE = 0, // hf::shared_mutex, lock
    HF_JUSTDO_SHARED = 1,    // hf::shared_mutex, lock_shared
    HF_JUSTDO_NO_LOCK =
        2, // begins a section, or a part of one, without a lock; the address may be anything
    HF_JUSTDO_KINDS = 3, // from here on the application's own
    HF_JUSTDO_KINDS_MAX = 16
};
void hf_justdo_lock(void* lock, uint32_t kind, uint32_t point) HF_NOEXCEPT;
// 1: the lock is held, and resumption goes on at 'point'. 0: nothing has been done, and the program
// counter has not moved.
int hf_justdo_try_lock(void* lock, uint32_t kind, uint32_t point) HF_NOEXCEPT;
void hf_justdo_unlock(void* lock, uint32_t kind, uint32_t point) HF_NOEXCEPT;

// A lock of the application's. Registered before any pool is opened; 'kind', HF_JUSTDO_KINDS or
// above, is stored in pools and never changes its meaning.
struct hf_justdo_lock_calls {
    uint32_t kind;
    uint32_t shared; // 1: several sections may hold it by this kind
    uint32_t bytes;  // of the lock
    uint32_t reserved;
    const char* name;
    void (*lock)(void* lock); // waits; null: try_lock, until it is held
    int (*try_lock)(void* lock);
    void (*unlock)(void* lock);
    // Makes the lock free, whatever a process that died has left in it. Recovery calls it for every
    // lock that a section may have held, so such memory stays a lock, even when it is freed. Null:
    // the lock frees itself, as hf::shared_mutex does, which costs one ordering point less.
    void (*reset)(void* lock);
};
void hf_justdo_register_lock(const struct hf_justdo_lock_calls* calls) HF_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
