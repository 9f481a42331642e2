// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the scenarios keep in their pools, and the sections that change it: as the compiler plugin
// would instrument them, written by hand for both engines. Every section copes with an allocation
// that finds no room by changing nothing.
#pragma once

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
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

template <bool Clobber, class T> void store_over_input(T* to, T value) {
    step();
    if (Clobber) hf_clobber_log(to, sizeof(T));
    else hf_undo_log(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
    step();
}
template <class T> void store_fresh(T* to, T value) {
    hf_note_store(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
}

struct push_args {
    list* l;
    const char* text;
};
template <bool Clobber> void push_body(const push_args& a) {
    const char* text = vlog_preserve(a.text, sizeof(node::text));
    auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
    if (n == nullptr) return;
    store_fresh(&n->next, a.l->head);
    store_fresh(&n->value, a.l->count + 1);
    hf_note_store(n->text, sizeof n->text);
    std::memcpy(n->text, text, sizeof n->text);
    store_over_input<Clobber>(&a.l->head, n);
    store_over_input<Clobber>(&a.l->count, a.l->count + 1);
    store_over_input<Clobber>(&a.l->sum, a.l->sum + a.l->count);
}

template <bool Clobber> void pop_body(list* const& l) {
    node* n = l->head;
    if (n == nullptr) return;
    store_over_input<Clobber>(&l->count, l->count - 1);
    store_over_input<Clobber>(&l->sum, l->sum - n->value);
    store_over_input<Clobber>(&l->head, n->next);
    hf_free(n);
    step();
}

template <bool Clobber> void renumber_body(world* const& w) {
    for (std::uint64_t i = 0; i < numbers_count; ++i)
        store_over_input<Clobber>(&w->numbers[i], w->numbers[i] + i + 1);
    store_over_input<Clobber>(&w->version, w->version + 1);
}

struct adopt_args {
    world* w;
    unsigned char* blob;
    std::uint64_t bytes;
};
template <bool Clobber> void adopt_body(const adopt_args& a) {
    const std::uint64_t i = a.w->blob_count;
    hf_adopt(a.blob);
    store_over_input<Clobber>(&a.w->blobs[i], a.blob);
    store_over_input<Clobber>(&a.w->blob_bytes[i], a.bytes);
    store_over_input<Clobber>(&a.w->blob_count, i + 1);
}

template <bool Clobber> void drop_body(world* const& w) {
    const std::uint64_t i = w->blob_count - 1;
    hf_free(w->blobs[i]);
    store_over_input<Clobber>(&w->blob_count, i);
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
                                 again<push_args, push_body<true>>};
inline const hf_txfunc pop_desc{HF_ABI_VERSION,
                                sizeof(list*),
                                2002,
                                1,
                                "pop",
                                "world.hpp",
                                list_schema,
                                1,
                                again<list*, pop_body<true>>};
inline const hf_txfunc renumber_desc{HF_ABI_VERSION,
                                     sizeof(world*),
                                     2003,
                                     1,
                                     "renumber",
                                     "world.hpp",
                                     list_schema,
                                     1,
                                     again<world*, renumber_body<true>>};
inline const hf_txfunc adopt_desc{HF_ABI_VERSION,
                                  sizeof(adopt_args),
                                  2004,
                                  1,
                                  "adopt",
                                  "world.hpp",
                                  adopt_schema,
                                  3,
                                  again<adopt_args, adopt_body<true>>};
inline const hf_txfunc drop_desc{HF_ABI_VERSION,
                                 sizeof(world*),
                                 2005,
                                 1,
                                 "drop",
                                 "world.hpp",
                                 list_schema,
                                 1,
                                 again<world*, drop_body<true>>};

/// Runs a section of the engine asked for.
template <class Args, void Clobbering(const Args&), void Undoing(const Args&)>
void in_section(bool clobber, const hf_txfunc& function, const Args& args) {
    if (clobber) {
        hf_clobber_begin(&function, &args);
        Clobbering(args);
        hf_clobber_commit();
    } else {
        hf_undo_begin(&function, &args);
        Undoing(args);
        hf_undo_commit();
    }
}

inline void text_of(std::uint64_t value, char (&text)[sizeof(node::text)]) {
    for (std::size_t i = 0; i < sizeof text; ++i)
        text[i] = static_cast<char>('a' + (value + i) % 26);
}
inline void push(bool clobber, list* l) {
    char text[sizeof(node::text)];
    text_of(l->count + 1, text);
    in_section<push_args, push_body<true>, push_body<false>>(clobber, push_desc, {l, text});
}
inline void pop(bool clobber, list* l) {
    in_section<list*, pop_body<true>, pop_body<false>>(clobber, pop_desc, l);
}
inline void renumber(bool clobber, world* w) {
    in_section<world*, renumber_body<true>, renumber_body<false>>(clobber, renumber_desc, w);
}
inline void adopt(bool clobber, world* w, void* blob, std::uint64_t bytes) {
    in_section<adopt_args, adopt_body<true>, adopt_body<false>>(
        clobber, adopt_desc, {w, static_cast<unsigned char*>(blob), bytes});
}
inline void drop(bool clobber, world* w) {
    in_section<world*, drop_body<true>, drop_body<false>>(clobber, drop_desc, w);
}
inline const bool registered = (hf_txfunc_register(&push_desc), hf_txfunc_register(&pop_desc),
                                hf_txfunc_register(&renumber_desc), hf_txfunc_register(&adopt_desc),
                                hf_txfunc_register(&drop_desc), true);

} // namespace hf::faults
