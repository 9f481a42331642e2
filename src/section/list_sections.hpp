// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list with push and pop as the compiler plugin would instrument them, written by hand for both
// engines, so that the engines are tested without the plugin. The process can be killed before any
// of their steps.
#pragma once

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <csignal>
#include <cstring>
#include <unistd.h>

namespace hf::list_sections {

struct node {
    node* next;
    std::uint64_t value;
    char text[240];
};
struct list {
    node* head;
    std::uint64_t count;
    std::uint64_t sum;
};

inline int steps_left = -1; // -1: never die
inline void step() {
    if (steps_left >= 0 && steps_left-- == 0) ::kill(::getpid(), SIGKILL);
}

// What the plugin would emit around each store, for either engine.
template <bool Clobber, class T> void store_over_input(T* to, T value) {
    step();
    if (Clobber) hf_clobber_log(to, sizeof(T));
    else hf_undo_log(to, sizeof(T));
    step();
    *const_cast<volatile T*>(to) = value;
    step();
}
template <class T> void store_fresh(T* to, T value) {
    hf_note_store(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
    step();
}

struct push_args {
    list* l;
    std::uint64_t value;
    const char* text;
};

template <bool Clobber> void push_body(const push_args& a) {
    const char* text = vlog_preserve(a.text, 240);
    step();
    auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
    step();
    store_fresh(&n->next, a.l->head);
    store_fresh(&n->value, a.value);
    hf_note_store(n->text, 240);
    std::memcpy(n->text, text, 240);
    step();
    store_over_input<Clobber>(&a.l->head, n);
    store_over_input<Clobber>(&a.l->count, a.l->count + 1);
    store_over_input<Clobber>(&a.l->sum, a.l->sum + a.value);
}

template <bool Clobber> void pop_body(list* l) {
    node* n = l->head;
    store_over_input<Clobber>(&l->count, l->count - 1);
    store_over_input<Clobber>(&l->sum, l->sum - n->value);
    store_over_input<Clobber>(&l->head, n->next);
    hf_free(n);
    step();
}

inline void push_again(const void* packed) {
    push_body<true>(*static_cast<const push_args*>(packed));
}
inline void pop_again(const void* packed) { pop_body<true>(*static_cast<list* const*>(packed)); }

inline const hf_arg push_schema[] = {
    {0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}, {16, 8, HF_ARG_PRESERVED}};
inline const hf_txfunc push_desc{HF_ABI_VERSION, sizeof(push_args), 1001, 1,         "push",
                                 "here",         push_schema,       3,    push_again};
inline const hf_arg pop_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
inline const hf_txfunc pop_desc{HF_ABI_VERSION, sizeof(list*), 1002, 1,        "pop",
                                "here",         pop_schema,    1,    pop_again};
inline const bool registered =
    (hf_txfunc_register(&push_desc), hf_txfunc_register(&pop_desc), true);

inline void text_of(std::uint64_t value, char (&text)[240]) {
    for (std::size_t i = 0; i < sizeof text; ++i)
        text[i] = static_cast<char>('a' + (value + i) % 26);
}

inline void push(bool clobber, list* l, std::uint64_t value) {
    char text[240];
    text_of(value, text);
    const push_args args{l, value, text};
    if (clobber) {
        hf_clobber_begin(&push_desc, &args);
        push_body<true>(args);
        step();
        hf_clobber_commit();
    } else {
        hf_undo_begin(&push_desc, &args);
        push_body<false>(args);
        step();
        hf_undo_commit();
    }
    std::memset(text, 0, sizeof text);
    step();
}

inline void pop(bool clobber, list* l) {
    if (clobber) {
        hf_clobber_begin(&pop_desc, &l);
        pop_body<true>(l);
        step();
        hf_clobber_commit();
    } else {
        hf_undo_begin(&pop_desc, &l);
        pop_body<false>(l);
        step();
        hf_undo_commit();
    }
    step();
}

/// What is wrong with a list that should hold 1..count from its end to its head, nothing leaked;
/// null when nothing is.
inline const char* fault(pool& p, std::uint64_t count) {
    list* l = p.root<list>();
    if (l->count != count) return "another count than expected";
    std::uint64_t nodes = 0, sum = 0;
    for (node* n = l->head; n != nullptr; n = n->next) {
        if (n->value != count - nodes) return "a wrong value";
        char text[240];
        text_of(n->value, text);
        if (std::memcmp(n->text, text, sizeof text) != 0) return "a wrong text";
        sum += n->value;
        if (++nodes > count) return "too many nodes";
    }
    if (nodes != count || sum != l->sum) return "too few nodes, or a wrong sum";
    if (account(p).blocks != count + 1) return "a block leaked or lost";
    return nullptr;
}

} // namespace hf::list_sections
