// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the scenarios keep in their pools, and the sections that change it: as the compiler plugin
// would instrument them, written by hand for each engine. Every section copes with an allocation
// that finds no room by changing nothing. With engine selective the sums follow from the lists, and
// an adopted blob's slot is free.
#pragma once

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <unistd.h>

namespace hf::faults {

struct node {
    node* next;
    std::uint64_t value;
    char text[64];
};
struct list {
    node* head;
    std::uint64_t count; // values are 1 … count, the newest first
    std::uint64_t sum;
};
inline constexpr std::size_t numbers_count = 400; // their log passes a lane of 4 KiB several times
inline constexpr std::size_t blobs_max = 12;
struct world {
    list lists[2];
    std::uint64_t version;                // times renumber() ran
    std::uint64_t numbers[numbers_count]; // version * (index + 1)
    std::uint64_t blob_count;
    unsigned char* blobs[blobs_max];     // adopted; blob i is filled with i + 1
    std::uint64_t blob_bytes[blobs_max]; // asked for
};

/// Steps that this thread's sections still take before the process is killed; -1: no end.
inline thread_local int steps_left = -1;
/// Instead of killing the process, the thread stays where it is until somebody else does.
inline thread_local bool wait_at_the_end = false;
inline std::atomic<bool> one_waits{false}; // such a thread has come to its end
inline void step() {
    if (steps_left < 0 || steps_left-- > 0) return;
    if (!wait_at_the_end) ::kill(::getpid(), SIGKILL);
    one_waits = true;
    for (;;) ::pause();
}

enum class by : std::uint8_t { clobber, undo, selective };

template <class T> void store_between_steps(T* to, T value,
                                            void (*note)(const void*, std::uint64_t)) {
    step();
    note(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
    step();
}
template <by Engine> constexpr auto logs = Engine == by::clobber ? hf_clobber_log
                                           : Engine == by::undo  ? hf_undo_log
                                                                 : hf_selective_log;
template <by Engine, class T> void store_over_input(T* to, T value) {
    store_between_steps(to, value, logs<Engine>);
}
/// To what rebuild() finds again.
template <by Engine, class T> void store_derived(T* to, T value) {
    store_between_steps(to, value, Engine == by::selective ? hf_lazy : logs<Engine>);
}
/// Stores to memory that nobody reads if the section is undone.
template <by Engine, class T> void store_in_free_slot(T* to, T value) {
    store_between_steps(to, value, Engine == by::selective ? hf_log_free : logs<Engine>);
}
template <class T> void store_fresh(T* to, T value) {
    hf_note_store(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
}

struct push_args {
    list* l;
    const char* text;
};
template <by Engine> void push_body(const push_args& a) {
    const char* text = vlog_preserve(a.text, sizeof(node::text));
    auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
    if (n == nullptr) return;
    store_fresh(&n->next, a.l->head);
    store_fresh(&n->value, a.l->count + 1);
    hf_note_store(n->text, sizeof n->text);
    std::memcpy(n->text, text, sizeof n->text);
    store_over_input<Engine>(&a.l->head, n);
    store_over_input<Engine>(&a.l->count, a.l->count + 1);
    store_derived<Engine>(&a.l->sum, a.l->sum + a.l->count);
}

template <by Engine> void pop_body(list* const& l) {
    node* n = l->head;
    if (n == nullptr) return;
    store_over_input<Engine>(&l->count, l->count - 1);
    store_derived<Engine>(&l->sum, l->sum - n->value);
    store_over_input<Engine>(&l->head, n->next);
    hf_free(n);
    step();
}

template <by Engine> void renumber_body(world* const& w) {
    for (std::uint64_t i = 0; i < numbers_count; ++i)
        store_over_input<Engine>(&w->numbers[i], w->numbers[i] + i + 1);
    store_over_input<Engine>(&w->version, w->version + 1);
}

struct adopt_args {
    world* w;
    unsigned char* blob;
    std::uint64_t bytes;
};
template <by Engine> void adopt_body(const adopt_args& a) {
    const std::uint64_t i = a.w->blob_count;
    hf_adopt(a.blob);
    store_in_free_slot<Engine>(&a.w->blobs[i], a.blob);
    store_in_free_slot<Engine>(&a.w->blob_bytes[i], a.bytes);
    store_over_input<Engine>(&a.w->blob_count, i + 1);
}

template <by Engine> void drop_body(world* const& w) {
    const std::uint64_t i = w->blob_count - 1;
    hf_free(w->blobs[i]);
    store_over_input<Engine>(&w->blob_count, i);
}

template <class Args, void Body(const Args&)> void again(const void* packed) {
    Body(*static_cast<const Args*>(packed));
}
inline const hf_arg list_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_PRESERVED}};
inline const hf_arg adopt_schema[] = {
    {0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}, {16, 8, HF_ARG_VALUE}};
inline const hf_txfunc push_desc{HF_ABI_VERSION,
                                 sizeof(push_args),
                                 2001,
                                 1,
                                 "push",
                                 "world.hpp",
                                 list_schema,
                                 2,
                                 again<push_args, push_body<by::clobber>>};
inline const hf_txfunc pop_desc{HF_ABI_VERSION,
                                sizeof(list*),
                                2002,
                                1,
                                "pop",
                                "world.hpp",
                                list_schema,
                                1,
                                again<list*, pop_body<by::clobber>>};
inline const hf_txfunc renumber_desc{HF_ABI_VERSION,
                                     sizeof(world*),
                                     2003,
                                     1,
                                     "renumber",
                                     "world.hpp",
                                     list_schema,
                                     1,
                                     again<world*, renumber_body<by::clobber>>};
inline const hf_txfunc adopt_desc{HF_ABI_VERSION,
                                  sizeof(adopt_args),
                                  2004,
                                  1,
                                  "adopt",
                                  "world.hpp",
                                  adopt_schema,
                                  3,
                                  again<adopt_args, adopt_body<by::clobber>>};
inline const hf_txfunc drop_desc{HF_ABI_VERSION,
                                 sizeof(world*),
                                 2005,
                                 1,
                                 "drop",
                                 "world.hpp",
                                 list_schema,
                                 1,
                                 again<world*, drop_body<by::clobber>>};

/// Runs a section of the engine asked for.
template <class Args, void Clobbering(const Args&), void Undoing(const Args&),
          void Selecting(const Args&)>
void in_section(by engine, const hf_txfunc& function, const Args& args) {
    switch (engine) {
    case by::clobber:
        hf_clobber_begin(&function, &args);
        Clobbering(args);
        return hf_clobber_commit();
    case by::undo:
        hf_undo_begin(&function, &args);
        Undoing(args);
        return hf_undo_commit();
    case by::selective:
        hf_selective_begin(&function, &args);
        Selecting(args);
        return hf_selective_commit();
    }
}

inline void text_of(std::uint64_t value, char (&text)[sizeof(node::text)]) {
    for (std::size_t i = 0; i < sizeof text; ++i)
        text[i] = static_cast<char>('a' + (value + i) % 26);
}
inline void push(by engine, list* l) {
    char text[sizeof(node::text)];
    text_of(l->count + 1, text);
    in_section<push_args, push_body<by::clobber>, push_body<by::undo>, push_body<by::selective>>(
        engine, push_desc, {l, text});
}
inline void pop(by engine, list* l) {
    in_section<list*, pop_body<by::clobber>, pop_body<by::undo>, pop_body<by::selective>>(
        engine, pop_desc, l);
}
inline void renumber(by engine, world* w) {
    in_section<world*, renumber_body<by::clobber>, renumber_body<by::undo>,
               renumber_body<by::selective>>(engine, renumber_desc, w);
}
inline void adopt(by engine, world* w, void* blob, std::uint64_t bytes) {
    in_section<adopt_args, adopt_body<by::clobber>, adopt_body<by::undo>,
               adopt_body<by::selective>>(engine, adopt_desc,
                                          {w, static_cast<unsigned char*>(blob), bytes});
}
inline void drop(by engine, world* w) {
    in_section<world*, drop_body<by::clobber>, drop_body<by::undo>, drop_body<by::selective>>(
        engine, drop_desc, w);
}
/// Finds the sums again: for selective::options::rebuild.
inline void rebuild(pool& in) {
    world* const w = in.root<world>();
    if (w == nullptr) return;
    hf_selective_begin(&renumber_desc, &w);
    for (list& l : w->lists) {
        std::uint64_t sum = 0;
        for (const node* n = l.head; n != nullptr; n = n->next) sum += n->value;
        hf_lazy(&l.sum, sizeof l.sum);
        l.sum = sum;
    }
    hf_selective_commit();
}
inline const bool registered = (hf_txfunc_register(&push_desc), hf_txfunc_register(&pop_desc),
                                hf_txfunc_register(&renumber_desc), hf_txfunc_register(&adopt_desc),
                                hf_txfunc_register(&drop_desc), true);

} // namespace hf::faults
