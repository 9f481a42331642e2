// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and layouts shared by the compiler plugin and the runtime. Nothing else crosses between
// them. Changing anything here changes HF_ABI_VERSION.
#ifndef HOLDFAST_ABI_H
#define HOLDFAST_ABI_H

#include <stddef.h>
#include <stdint.h>

#define HF_ABI_VERSION 1u
// hf_txfunc::abi_version: the version is its lowest byte, above that stands the bit of the
// function's engine (engines.def); 0: not said.
#define HF_ABI_VERSION_MASK 0xffu
#define HF_ABI_ENGINE_SHIFT 8u
// What a section records of its arguments at most: the compiler refuses a function that takes more.
#define HF_ARGS_BYTES_MAX 1024u

#ifdef __cplusplus
#define HF_NOEXCEPT noexcept
#define HF_NORETURN [[noreturn]]
extern "C" {
#else
#define HF_NOEXCEPT
#define HF_NORETURN _Noreturn
#endif

enum hf_arg_kind {
    HF_ARG_VALUE = 0, // copied as it is (integers, floating point, by-value aggregates)
    HF_ARG_POOL_POINTER =
        1,               // must be null or point into the section's pool when the section begins
    HF_ARG_PRESERVED = 2 // volatile pointer whose only use is vlog_preserve's first argument
};

// One argument inside the packed argument block.
struct hf_arg {
    uint32_t offset_bytes;
    uint32_t size_bytes;
    uint32_t kind; // enum hf_arg_kind
};

// One failure-atomic function of this build. The plugin emits one constant per txfunc and a global
// constructor that registers it.
struct hf_txfunc {
    uint32_t abi_version;
    uint32_t args_bytes; // size of the packed argument block
    uint64_t id;         // XXH3-64 of the linker name: which function a log record names
    uint64_t version;    // hash of its instrumented body, callees and argument schema
    const char* name;    // linker name
    const char* where;   // "file:line"
    const struct hf_arg* args;
    uint64_t args_count;
    void (*re_execute)(const void* packed_args); // calls the body, not the entry
};
void hf_txfunc_register(const struct hf_txfunc* function) HF_NOEXCEPT;
// A shared library that is unloaded takes back what it has registered, in its last global
// destructor: the runtime must not look there any more. The other ..._forget functions do the same.
void hf_txfunc_forget(const struct hf_txfunc* function) HF_NOEXCEPT;

// What sections of a file call in others, by the name of its version for sections: each such file
// says so when it is loaded. A version for another engine ends the process.
struct hf_section_call {
    const void* version;   // null: the other file is built for another engine
    const char* built_for; // the other file's engine
    const char* name;      // linker name
    const char* where;     // the call, "file:line"
};
void hf_section_calls(const char* engine, const struct hf_section_call* rows,
                      uint64_t count) HF_NOEXCEPT;

// Engine clobber. begin returns 1 when it opened a section (commit must follow), 0 when it joined
// the section that is already open on this thread.
int hf_clobber_begin(const struct hf_txfunc* function, const void* packed_args) HF_NOEXCEPT;
void hf_clobber_commit(void) HF_NOEXCEPT;
// Before a clobber write: the old bytes are in the log when it returns. Also notes the store.
void hf_clobber_log(const void* address, uint64_t bytes) HF_NOEXCEPT;
// Before any other store that may reach PM: an output, or fresh memory. Every engine has its own.
void hf_clobber_note(const void* address, uint64_t bytes) HF_NOEXCEPT;

// Engine undo: the same shape, every store logged. In modes process and power a section can be
// taken back: commit_or_throw, abort and callee are those of engine redo, below. Only the forms
// that hf_auto_begin chooses call them.
int hf_undo_begin(const struct hf_txfunc* function, const void* packed_args) HF_NOEXCEPT;
void hf_undo_commit(void) HF_NOEXCEPT;
void hf_undo_commit_or_throw(void);
void hf_undo_abort(void) HF_NOEXCEPT;
void hf_undo_log(const void* address, uint64_t bytes) HF_NOEXCEPT;
void hf_undo_note(const void* address, uint64_t bytes) HF_NOEXCEPT;

// Where the section's old words go, in a medium that keeps order (src/log/word_log.hpp): the next
// entry, the end of the room for entries, the word that says how far the log counts, the pool's
// first byte, and the offset below which a whole word lies in it. Elsewhere, and outside of
// sections of engine undo, there is no room: next is limit. Then memory that the section took,
// which needs no entry: of the block that it stored to last, and of the one before; no bytes: none
// is known.
struct hf_word_log {
    char* next;
    char* limit;
    uint64_t* logged;
    char* base;
    uint64_t words_end;
    struct hf_memory {
        char* first;
        uint64_t bytes;
    } fresh[2];
};
// An entry of old bytes that fit a word: [HF_OLD_WORD_KIND + how many:8][offset from the pool's
// first byte:56], then the bytes, from the lowest on.
#define HF_OLD_WORD_KIND 0x80u
#define HF_WORD_ENTRY_BYTES 16u
extern __thread struct hf_word_log hf_words __attribute__((tls_model("initial-exec")));

// Engine selective: as undo, but of stores to bytes that one of these was called for in the section
// before. Each also notes the stores. log_free: the old bytes need no log. lazy: the new ones need
// not be durable at the commit, either; if the pool was opened without
// hf::selective::options::rebuild the old bytes are in the log when it returns. Both do nothing
// outside of sections, and are left out of those of other engines.
int hf_selective_begin(const struct hf_txfunc* function, const void* packed_args) HF_NOEXCEPT;
void hf_selective_commit(void) HF_NOEXCEPT;
void hf_selective_log(const void* address, uint64_t bytes) HF_NOEXCEPT;
void hf_selective_note(const void* address, uint64_t bytes) HF_NOEXCEPT;
void hf_log_free(const void* address, uint64_t bytes) HF_NOEXCEPT;
void hf_lazy(const void* address, uint64_t bytes) HF_NOEXCEPT;

// Engine redo: what a section stores waits in a buffer for its commit. These stand in place of
// accesses that may reach PM. The address itself is where they lead when it is volatile memory, or
// was allocated by the section.
int hf_redo_begin(const struct hf_txfunc* function, const void* packed_args) HF_NOEXCEPT;
void hf_redo_note(const void* address, uint64_t bytes) HF_NOEXCEPT;
// A section that is doomed (hf_abort_section) ends here and leaves no trace. A section whose log
// finds no room in the pool leaves none either. commit then ends the process; commit_or_throw, for
// functions that an exception may leave, throws std::bad_alloc. abort: an exception leaves the
// section.
void hf_redo_commit(void) HF_NOEXCEPT;
void hf_redo_commit_or_throw(void);
void hf_redo_abort(void) HF_NOEXCEPT;
// Where to store 'bytes' bytes: all of them, and before the next call. Until then the memory there
// has no meaning. Requires: 'bytes' <= 16.
void* hf_redo_write(void* address, uint64_t bytes) HF_NOEXCEPT;
// Stores bytes from volatile memory; copies, as memmove does; fills.
void hf_redo_put(void* to, const void* from, uint64_t bytes) HF_NOEXCEPT;
void hf_redo_copy(void* to, const void* from, uint64_t bytes) HF_NOEXCEPT;
void hf_redo_fill(void* to, int byte, uint64_t bytes) HF_NOEXCEPT;
// Where the bytes can be read that the section sees at 'address': before it stores anything else,
// and at most HF_REDO_READS reads later.
const void* hf_redo_read(const void* address, uint64_t bytes) HF_NOEXCEPT;
// The same up to a terminating zero, which is among them.
const void* hf_redo_read_string(const void* address) HF_NOEXCEPT;
#define HF_REDO_READS 8
// The instance for sections of the function that an indirect call would reach, at 'where' in the
// source. If the function has no instance, the process ends: the section leaves no trace.
const void* hf_redo_callee(const void* function, const char* where) HF_NOEXCEPT;
// What indirect calls may reach: each module lists the functions whose addresses it takes.
struct hf_callees_row {
    const void* function; // the address that others know
    const void* instance; // null: it may not run in a section
    const char* name;     // linker name
    const char* why;      // it may not; null where it may
};
void hf_redo_register_callees(const struct hf_callees_row* rows, uint64_t count) HF_NOEXCEPT;
void hf_redo_forget_callees(const struct hf_callees_row* rows, uint64_t count) HF_NOEXCEPT;
const void* hf_undo_callee(const void* function, const char* where) HF_NOEXCEPT;
void hf_undo_register_callees(const struct hf_callees_row* rows, uint64_t count) HF_NOEXCEPT;
void hf_undo_forget_callees(const struct hf_callees_row* rows, uint64_t count) HF_NOEXCEPT;
// For each granule of 16 bytes, whether a load of at most 16 that begins there may meet bytes in
// the buffer: bit (address / 16) % 64 of word (address / 1024) % HF_REDO_FILTER_WORDS. 0: read the
// bytes at their own address. The thread's open section has the words, which do not move until it
// ends.
#define HF_REDO_FILTER_WORDS 512
extern __thread const uint64_t* hf_redo_filter __attribute__((tls_model("initial-exec")));

// Begins a function that is compiled for two engines: undo in modes process and power, redo in mode
// pmem, or if the pool was opened without engine undo. Returns HF_SECTION_OPENED when
// it opened a section, whose commit must follow, and HF_SECTION_IN_ORDER when the form of undo must
// run. In a section that it joined, the form is that section's.
int hf_auto_begin(const struct hf_txfunc* function, const void* packed_args) HF_NOEXCEPT;
#define HF_SECTION_OPENED 1
#define HF_SECTION_IN_ORDER 2

// Ahead of hf_clobber_log or hf_undo_log, or of a note that replaces them: puts the bytes into the
// log. The section will store to all of them. They are durable when the next of those two has
// returned. Notes no store.
void hf_log_ahead(const void* address, uint64_t bytes) HF_NOEXCEPT;
// The note of the engine whose section is open; outside of sections it does nothing. For code that
// is instrumented by hand: the compiler names the engine.
void hf_note_store(const void* address, uint64_t bytes) HF_NOEXCEPT;

// The runtime calls that a section may make; the plugin knows them by name and treats them as
// touching no memory of the application (hf_alloc returns fresh memory, never aliased).
void* hf_alloc(size_t bytes) HF_NOEXCEPT;      // null when the pool is full
void hf_free(void* block) HF_NOEXCEPT;         // takes effect at commit; null does nothing
void hf_adopt(void* staged_block) HF_NOEXCEPT; // a staged block becomes allocated at commit
const void* hf_vlog_preserve(const void* volatile_bytes, size_t bytes) HF_NOEXCEPT;
void hf_crash_point(const char* name) HF_NOEXCEPT;
// Dooms the open section, which goes on: at its end it leaves no trace of what it has stored in the
// pool, allocated, adopted and freed there. Engine redo, and engine undo where the medium keeps
// order; the compiler asks for redo. Outside a section it stops the process.
void hf_abort_section(void) HF_NOEXCEPT;
// Stops the process unless the open section works on the pool that 'address' lies in. Outside a
// section it does nothing.
void hf_section_in(const void* address) HF_NOEXCEPT;
// Ends the process: code that has no way to learn that the pool is full has asked for 'bytes'.
HF_NORETURN void hf_pool_full(size_t bytes) HF_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
