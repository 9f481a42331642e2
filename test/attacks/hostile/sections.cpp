// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sections.hpp"

#include <holdfast/author/staged.hpp>

#include <cstring>

#define HOSTILE __attribute__((no_sanitize("undefined", "address")))

namespace hf::hostile {
namespace {

thread_local int steps_left = -1; // -1: never stop
thread_local void (*then_call)() = nullptr;

void step() {
    if (steps_left >= 0 && steps_left-- == 0) then_call();
}

template <class T> using as_stored = volatile T*;

// The calls that the plugin would emit around each store.
template <built_for E, class T> HOSTILE void store_over_input(T* to, T value) {
    step();
    if (E == built_for::redo) {
        std::memcpy(hf_redo_write(to, sizeof(T)), &value, sizeof(T));
        return step();
    }
    if (E == built_for::clobber) hf_clobber_log(to, sizeof(T));
    else hf_undo_log(to, sizeof(T));
    step();
    *const_cast<as_stored<T>>(to) = value;
}
template <built_for E, class T> HOSTILE T input(const T* from) {
    if (E != built_for::redo) return *from;
    T value;
    std::memcpy(&value, hf_redo_read(from, sizeof(T)), sizeof(T));
    return value;
}
template <class T> HOSTILE void store_fresh(T* to, T value) {
    hf_note_store(to, sizeof(T));
    *const_cast<as_stored<T>>(to) = value;
}
HOSTILE void copy_text(char* to, const char* from) {
    hf_note_store(to, sizeof(node::text));
    for (std::size_t i = 0; i < sizeof(node::text); ++i)
        const_cast<as_stored<char>>(to)[i] = from[i];
}

struct value_args {
    chain* c;
    std::uint64_t value;
    const char* text;
};
struct sweep_args {
    chain* c;
    std::uint64_t rounds;
};
struct adopt_args {
    chain* c;
    node* staged;
};

template <built_for E> HOSTILE node* new_node(const value_args& a) {
    const char* text = vlog_preserve(a.text, sizeof(node::text));
    step();
    auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
    step();
    store_fresh(&n->value, a.value);
    copy_text(n->text, text);
    return n;
}
template <built_for E> HOSTILE void push_body(const value_args& a) {
    node* n = new_node<E>(a);
    store_fresh(&n->next, input<E>(&a.c->head));
    store_over_input<E>(&a.c->head, n);
    store_over_input<E>(&a.c->count, input<E>(&a.c->count) + 1);
    store_over_input<E>(&a.c->sum, input<E>(&a.c->sum) + a.value);
}
template <built_for E> HOSTILE void pop_body(chain* c) {
    node* n = input<E>(&c->head);
    store_over_input<E>(&c->count, input<E>(&c->count) - 1);
    store_over_input<E>(&c->sum, input<E>(&c->sum) - n->value);
    store_over_input<E>(&c->head, n->next);
    hf_free(n);
    step();
}
template <built_for E> HOSTILE void replace_body(const value_args& a) {
    node* n = new_node<E>(a);
    node* old = input<E>(&a.c->head);
    store_fresh(&n->next, old->next);
    store_over_input<E>(&a.c->sum, input<E>(&a.c->sum) - old->value + a.value);
    store_over_input<E>(&a.c->head, n);
    hf_free(old);
    step();
}
template <built_for E> HOSTILE void sweep_body(const sweep_args& a) {
    for (std::uint64_t r = 0; r < a.rounds; ++r)
        for (std::uint64_t i = 0; i < cells_count; ++i)
            store_over_input<E>(&a.c->cells[i], input<E>(&a.c->cells[i]) + 1);
}
template <built_for E> HOSTILE void adopt_body(const adopt_args& a) {
    store_over_input<E>(&a.c->sum, input<E>(&a.c->sum) + a.staged->value);
    hf_adopt(a.staged);
    step();
    store_fresh(&a.staged->next, input<E>(&a.c->head));
    store_over_input<E>(&a.c->head, a.staged);
    store_over_input<E>(&a.c->count, input<E>(&a.c->count) + 1);
}

template <class Args, void (*Body)(const Args&)> void again(const void* packed) {
    Body(*static_cast<const Args*>(packed));
}
void pop_again(const void* packed) {
    pop_body<built_for::clobber>(*static_cast<chain* const*>(packed));
}

const hf_arg value_schema[] = {
    {0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}, {16, 8, HF_ARG_PRESERVED}};
const hf_arg pointer_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_arg sweep_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
const hf_arg adopt_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc push_desc{HF_ABI_VERSION,
                          24,
                          7001,
                          1,
                          "push",
                          "sections.cpp:1",
                          value_schema,
                          3,
                          again<value_args, push_body<built_for::clobber>>};
const hf_txfunc pop_desc{HF_ABI_VERSION, 8, 7002,     1, "pop", "sections.cpp:2",
                         pointer_schema, 1, pop_again};
const hf_txfunc replace_desc{HF_ABI_VERSION,
                             24,
                             7003,
                             1,
                             "replace",
                             "sections.cpp:3",
                             value_schema,
                             3,
                             again<value_args, replace_body<built_for::clobber>>};
const hf_txfunc sweep_desc{HF_ABI_VERSION,
                           16,
                           7004,
                           1,
                           "sweep",
                           "sections.cpp:4",
                           sweep_schema,
                           2,
                           again<sweep_args, sweep_body<built_for::clobber>>};
const hf_txfunc adopt_desc{HF_ABI_VERSION,
                           16,
                           7005,
                           1,
                           "adopt",
                           "sections.cpp:5",
                           adopt_schema,
                           2,
                           again<adopt_args, adopt_body<built_for::clobber>>};
const bool registered = [] {
    for (const hf_txfunc* f : {&push_desc, &pop_desc, &replace_desc, &sweep_desc, &adopt_desc})
        hf_txfunc_register(f);
    return true;
}();

template <class Args, class Clobber, class Undo, class Redo>
void run(built_for engine, const hf_txfunc& function, const Args& args, Clobber&& clobber,
         Undo&& undo, Redo&& redo) {
    switch (engine) {
    case built_for::clobber:
        hf_clobber_begin(&function, &args);
        clobber(args);
        step();
        return hf_clobber_commit();
    case built_for::undo:
        hf_undo_begin(&function, &args);
        undo(args);
        step();
        return hf_undo_commit();
    case built_for::redo:
        hf_redo_begin(&function, &args);
        redo(args);
        step();
        return hf_redo_commit();
    }
}

void nothing(const sweep_args&) {}

void text_of(std::uint64_t value, char* text) {
    for (std::size_t i = 0; i < sizeof(node::text); ++i)
        text[i] = static_cast<char>('a' + (value + i) % 26);
}

} // namespace

void stop_before_step(int n, void (*then)()) {
    steps_left = n;
    then_call = then;
}

void push(built_for engine, chain* c, std::uint64_t value) {
    char text[sizeof(node::text)];
    text_of(value, text);
    run(engine, push_desc, value_args{c, value, text}, push_body<built_for::clobber>,
        push_body<built_for::undo>, push_body<built_for::redo>);
}
void pop(built_for engine, chain* c) {
    run(engine, pop_desc, c, pop_body<built_for::clobber>, pop_body<built_for::undo>,
        pop_body<built_for::redo>);
}
void replace(built_for engine, chain* c, std::uint64_t value) {
    char text[sizeof(node::text)];
    text_of(value, text);
    run(engine, replace_desc, value_args{c, value, text}, replace_body<built_for::clobber>,
        replace_body<built_for::undo>, replace_body<built_for::redo>);
}
void sweep(built_for engine, chain* c, std::uint64_t rounds) {
    run(engine, sweep_desc, sweep_args{c, rounds}, sweep_body<built_for::clobber>,
        sweep_body<built_for::undo>, sweep_body<built_for::redo>);
}
void adopt(built_for engine, chain* c, node* staged) {
    run(engine, adopt_desc, adopt_args{c, staged}, adopt_body<built_for::clobber>,
        adopt_body<built_for::undo>, adopt_body<built_for::redo>);
}

void sweep_in_part(chain* c, std::uint64_t cells) {
    run(built_for::redo, sweep_desc, sweep_args{c, 1}, nothing, nothing, [=](const sweep_args& a) {
        for (std::uint64_t i = 0; i < cells; ++i)
            store_over_input<built_for::redo>(&a.c->cells[i],
                                              input<built_for::redo>(&a.c->cells[i]) + 1);
    });
}

chain* make_chain() {
    auto* c = static_cast<chain*>(hf_alloc(sizeof(chain)));
    auto* cells = static_cast<std::uint64_t*>(hf_alloc(cells_count * sizeof(std::uint64_t)));
    if (c == nullptr || cells == nullptr) return nullptr;
    std::memset(cells, 0, cells_count * sizeof(std::uint64_t));
    *c = {nullptr, 0, 0, cells};
    return c;
}

void destroy_chain(chain* c) {
    hf_free(c->cells);
    hf_free(c);
}

const char* fault(const chain* c, std::uint64_t first, std::uint64_t last) {
    std::uint64_t value = last, sum = 0;
    for (const node* n = c->head; n != nullptr; n = n->next, --value) {
        if (value + 1 == first) return "too many nodes";
        char text[sizeof(node::text)];
        text_of(value, text);
        if (n->value != value || std::memcmp(n->text, text, sizeof text) != 0)
            return "a wrong value or text";
        sum += n->value;
    }
    if (value + 1 != first) return "too few nodes";
    if (sum != c->sum || c->count != last + 1 - first) return "a wrong sum or count";
    return nullptr;
}

} // namespace hf::hostile
