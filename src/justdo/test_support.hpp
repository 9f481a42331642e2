// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions as a compiler would leave them, by hand: frames, resume points, steps. For tests and
// crash programs. A function stops dead at a point of the test's choice.
#pragma once

#include <holdfast/abi/justdo_abi.h>
#include <holdfast/lock.hpp>
#include <holdfast/pool.hpp>

#include <csetjmp>
#include <cstdint>

// Recovery runs these on damaged pools too. Their faults there come from the damage: no sanitizer
// reports them.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("undefined", "address"))),                 \
                             apply_to = function)
#endif

namespace hf::justdo::by_hand {

/// Called at every resume point that is passed: where a test stops it.
inline thread_local void (*at_point)(const char* function, std::uint32_t point) = nullptr;
inline void point(const char* function, std::uint32_t number) {
    if (at_point != nullptr) at_point(function, number);
}

struct alignas(64) account {
    hf::mutex lock;
    std::uint64_t balance;
};

/// A lock that no open frees: the next open finds it as it was left, unless it is reset.
struct plain_lock {
    std::uint64_t taken;
};
inline constexpr std::uint32_t plain_kind = HF_JUSTDO_KINDS;
inline const hf_justdo_lock_calls plain_calls{
    plain_kind,
    0,
    sizeof(plain_lock),
    0,
    "plain_lock",
    nullptr,
    [](void* at) -> int {
        auto& word = static_cast<plain_lock*>(at)->taken;
        std::uint64_t free = 0;
        return __atomic_compare_exchange_n(&word, &free, 1, false, __ATOMIC_ACQUIRE,
                                           __ATOMIC_RELAXED);
    },
    [](void* at) {
        __atomic_store_n(&static_cast<plain_lock*>(at)->taken, std::uint64_t{0}, __ATOMIC_RELEASE);
    },
    [](void* at) {
        __atomic_store_n(&static_cast<plain_lock*>(at)->taken, std::uint64_t{0}, __ATOMIC_RELEASE);
    }};

extern const hf_justdo_function transfer_function;
struct transfer_frame {
    account* from;
    account* to;
    std::uint64_t amount;
};
/// Takes the locks in the order of addresses.
inline void transfer(account* from, account* to, std::uint64_t amount) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<transfer_frame*>(hf_justdo_enter(&transfer_function, from, &resumed));
    const auto first = [&] { return f.from < f.to ? f.from : f.to; };
    const auto second = [&] { return f.from < f.to ? f.to : f.from; };
    switch (resumed) {
    case 0:
        f = {from, to, amount};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&first()->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1:
        point("transfer", 1);
        hf_justdo_lock(&second()->lock, HF_JUSTDO_EXCLUSIVE, 2);
        [[fallthrough]];
    case 2:
        point("transfer", 2);
        hf_justdo_store(&f.from->balance, f.from->balance - f.amount, 8, 3);
        [[fallthrough]];
    case 3:
        point("transfer", 3);
        hf_justdo_store(&f.to->balance, f.to->balance + f.amount, 8, 4);
        [[fallthrough]];
    case 4:
        point("transfer", 4);
        hf_justdo_unlock(&second()->lock, HF_JUSTDO_EXCLUSIVE, 5);
        [[fallthrough]];
    case 5: point("transfer", 5); hf_justdo_unlock(&first()->lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function transfer_function{HF_ABI_VERSION,
                                                  sizeof(transfer_frame),
                                                  4001,
                                                  1,
                                                  "transfer",
                                                  "by_hand",
                                                  6,
                                                  0,
                                                  [] { transfer(nullptr, nullptr, 0); },
                                                  nullptr};

extern const hf_justdo_function walk_function;
struct walk_frame {
    account* at; // of two
};
/// Adds one to each of two accounts, hand over hand. Ends with a lock in the second place of the
/// lock log.
inline void walk(account* first) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<walk_frame*>(hf_justdo_enter(&walk_function, first, &resumed));
    account* const a = resumed == 0 ? first : f.at;
    switch (resumed) {
    case 0:
        f = {first};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&a[0].lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_store(&a[0].balance, a[0].balance + 1, 8, 2); [[fallthrough]];
    case 2: hf_justdo_lock(&a[1].lock, HF_JUSTDO_EXCLUSIVE, 3); [[fallthrough]];
    case 3: hf_justdo_unlock(&a[0].lock, HF_JUSTDO_EXCLUSIVE, 4); [[fallthrough]];
    case 4: hf_justdo_store(&a[1].balance, a[1].balance + 1, 8, 5); [[fallthrough]];
    case 5: hf_justdo_unlock(&a[1].lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function walk_function{
    HF_ABI_VERSION, sizeof(walk_frame), 4007, 1, "walk", "by_hand", 6, 0, [] { walk(nullptr); },
    nullptr};

extern const hf_justdo_function stamp_function;
struct stamp_frame {
    account* on; // of four
    std::uint64_t value;
};
/// Stores to lines of their own with nothing in between that is waited for.
inline void stamp(account* on, std::uint64_t value) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<stamp_frame*>(hf_justdo_enter(&stamp_function, on, &resumed));
    switch (resumed) {
    case 0:
        f = {on, value};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&on->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_store(&f.on[0].balance, f.value, 8, 2); [[fallthrough]];
    case 2: hf_justdo_store(&f.on[1].balance, f.value, 8, 3); [[fallthrough]];
    case 3: hf_justdo_store(&f.on[2].balance, f.value, 8, 4); [[fallthrough]];
    case 4: hf_justdo_store(&f.on[3].balance, f.value, 8, 5); [[fallthrough]];
    case 5: hf_justdo_unlock(&f.on->lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function stamp_function{HF_ABI_VERSION,
                                               sizeof(stamp_frame),
                                               4009,
                                               1,
                                               "stamp",
                                               "by_hand",
                                               6,
                                               0,
                                               [] { stamp(nullptr, 0); },
                                               nullptr};

/// A list under a lock that does not free itself.
struct node {
    node* next;
    std::uint64_t value;
};
struct list {
    plain_lock lock;
    node* head;
    std::uint64_t count;
};

extern const hf_justdo_function push_function;
struct push_frame {
    list* on;
    std::uint64_t value;
    void* fresh;
};
inline void push(list* on, std::uint64_t value) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<push_frame*>(hf_justdo_enter(&push_function, on, &resumed));
    switch (resumed) {
    case 0:
        f = {on, value, nullptr};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.on->lock, plain_kind, 1);
        [[fallthrough]];
    case 1:
        point("push", 1);
        hf_justdo_alloc(sizeof(node), &f.fresh, 2);
        [[fallthrough]];
    case 2: {
        point("push", 2);
        // Nobody reads the block yet: it may be written any number of times.
        auto* fresh = static_cast<node*>(f.fresh);
        fresh->next = f.on->head;
        fresh->value = f.value;
        hf_justdo_note(fresh, sizeof *fresh);
        hf_justdo_store(&f.on->head, reinterpret_cast<std::uint64_t>(fresh), 8, 3);
        [[fallthrough]];
    }
    case 3:
        point("push", 3);
        hf_justdo_store(&f.on->count, f.on->count + 1, 8, 4);
        [[fallthrough]];
    case 4: point("push", 4); hf_justdo_unlock(&f.on->lock, plain_kind, 5);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function push_function{HF_ABI_VERSION,
                                              sizeof(push_frame),
                                              4002,
                                              1,
                                              "_Z4pushP4listm",
                                              "by_hand",
                                              5,
                                              0,
                                              [] { push(nullptr, 0); },
                                              nullptr};

extern const hf_justdo_function pop_function;
struct pop_frame {
    list* on;
    node* first;
};
/// Requires: the list has a node.
inline void pop(list* on) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<pop_frame*>(hf_justdo_enter(&pop_function, on, &resumed));
    switch (resumed) {
    case 0:
        f = {on, nullptr};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.on->lock, plain_kind, 1);
        [[fallthrough]];
    case 1:
        point("pop", 1);
        f.first = f.on->head; // written once: no resume point before reads it
        hf_justdo_note(&f.first, sizeof f.first);
        hf_justdo_store(&f.on->head, reinterpret_cast<std::uint64_t>(f.first->next), 8, 2);
        [[fallthrough]];
    case 2:
        point("pop", 2);
        hf_justdo_store(&f.on->count, f.on->count - 1, 8, 3);
        [[fallthrough]];
    case 3:
        point("pop", 3);
        hf_justdo_free(f.first, 4);
        [[fallthrough]];
    case 4: point("pop", 4); hf_justdo_unlock(&f.on->lock, plain_kind, 5);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function pop_function{
    HF_ABI_VERSION, sizeof(pop_frame), 4003, 1, "pop", "by_hand", 5, 0, [] { pop(nullptr); },
    nullptr};

/// Words that a recursion adds up, each call a frame; and a loop whose values change: two
/// snapshots.
struct table {
    hf::mutex lock;
    std::uint64_t word[40];
    std::uint64_t sum;
};

extern const hf_justdo_function add_function;
struct add_frame {
    table* of;
    std::uint64_t from;
};
/// Adds word[from] and those behind it, up to the eighth, to 'sum', the last one first.
inline void add(table* of, std::uint64_t from) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<add_frame*>(hf_justdo_enter(&add_function, of, &resumed));
    switch (resumed) {
    case 0:
        f = {of, from};
        hf_justdo_note(&f, sizeof f);
        if (f.from == 8) break;
        hf_justdo_call(1);
        [[fallthrough]];
    case 1:
        point("add", 1);
        add(f.of, f.from + 1);
        hf_justdo_store(&f.of->sum, f.of->sum + f.of->word[f.from], 8, 2);
        [[fallthrough]];
    case 2: point("add", 2);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function add_function{
    HF_ABI_VERSION, sizeof(add_frame), 4004, 1, "add", "by_hand", 2, 0, nullptr, nullptr};

extern const hf_justdo_function total_function;
struct total_frame {
    table* of;
    std::uint64_t rounds;
    std::uint64_t round[2]; // by snapshot
};
/// sum = 0, then 'rounds' times what add() adds.
inline void total(table* of, std::uint64_t rounds) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<total_frame*>(hf_justdo_enter(&total_function, of, &resumed));
    std::uint32_t snapshot = resumed & HF_JUSTDO_SNAPSHOT;
    const auto now = [&]() -> std::uint64_t& { return f.round[snapshot != 0]; };
    switch (resumed & ~HF_JUSTDO_SNAPSHOT) {
    case 0:
        f = {of, rounds, {0, 0}};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_store(&f.of->sum, 0, 8, 2); [[fallthrough]];
    case 2:
        while (now() != f.rounds) {
            hf_justdo_call(3 | snapshot);
            [[fallthrough]];
        case 3:
            add(f.of, 0);
            const std::uint64_t next = now() + 1;
            snapshot ^= HF_JUSTDO_SNAPSHOT;
            now() = next;
            hf_justdo_note(&now(), 8);
            hf_justdo_point(2 | snapshot);
        }
        hf_justdo_unlock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 4);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function total_function{HF_ABI_VERSION,
                                               sizeof(total_frame),
                                               4005,
                                               1,
                                               "total",
                                               "by_hand",
                                               4,
                                               0,
                                               [] { total(nullptr, 0); },
                                               nullptr};

extern const hf_justdo_function twice_function;
struct twice_frame {
    table* of;
};
/// Two calls with no step between them: the first one's frame counts until the program counter has
/// left it.
inline void twice(table* of) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<twice_frame*>(hf_justdo_enter(&twice_function, of, &resumed));
    switch (resumed) {
    case 0:
        f = {of};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&of->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_call(2); [[fallthrough]];
    case 2:
        add(f.of, 7);
        hf_justdo_call(3);
        [[fallthrough]];
    case 3: add(f.of, 6); hf_justdo_unlock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 4);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function twice_function{
    HF_ABI_VERSION, sizeof(twice_frame), 4008, 1, "twice", "by_hand", 4, 0, [] { twice(nullptr); },
    nullptr};

extern const hf_justdo_function shift_function;
struct shift_frame {
    table* of;
};
/// Moves words up by one, then down by two, which overlap; copies half; fills.
inline void shift(table* of) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<shift_frame*>(hf_justdo_enter(&shift_function, of, &resumed));
    std::uint64_t* const word = resumed == 0 ? of->word : f.of->word;
    switch (resumed) {
    case 0:
        f = {of};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_copy(word + 1, word, 39 * 8, 2); [[fallthrough]];
    case 2: hf_justdo_copy(word, word + 2, 38 * 8, 3); [[fallthrough]];
    case 3: hf_justdo_copy(word, word + 20, 8 * 8, 4); [[fallthrough]];
    case 4: hf_justdo_fill(word + 30, 0x11, 3 * 8, 5); [[fallthrough]];
    case 5: hf_justdo_unlock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function shift_function{
    HF_ABI_VERSION, sizeof(shift_frame), 4006, 1, "shift", "by_hand", 6, 0, [] { shift(nullptr); },
    nullptr};

/// Locks of both kinds, more than the first places of a lock log where few of these are used.
struct shelf {
    plain_lock plain[2];
    account accounts[2];
};

extern const hf_justdo_function grip_function;
struct grip_frame {
    shelf* on;
};
/// Adds one to each of two accounts. The locks are released in the order in which they were taken.
inline void grip(shelf* on) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<grip_frame*>(hf_justdo_enter(&grip_function, on, &resumed));
    shelf& s = *(resumed == 0 ? on : f.on);
    switch (resumed) {
    case 0:
        f = {on};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&s.plain[0], plain_kind, 1);
        [[fallthrough]];
    case 1: hf_justdo_lock(&s.accounts[0].lock, HF_JUSTDO_EXCLUSIVE, 2); [[fallthrough]];
    case 2:
        point("grip", 2);
        hf_justdo_lock(&s.plain[1], plain_kind, 3);
        [[fallthrough]];
    case 3:
        point("grip", 3);
        hf_justdo_store(&s.accounts[0].balance, s.accounts[0].balance + 1, 8, 4);
        [[fallthrough]];
    case 4: hf_justdo_lock(&s.accounts[1].lock, HF_JUSTDO_EXCLUSIVE, 5); [[fallthrough]];
    case 5: hf_justdo_unlock(&s.plain[0], plain_kind, 6); [[fallthrough]];
    case 6: hf_justdo_unlock(&s.accounts[0].lock, HF_JUSTDO_EXCLUSIVE, 7); [[fallthrough]];
    case 7:
        hf_justdo_store(&s.accounts[1].balance, s.accounts[1].balance + 1, 8, 8);
        [[fallthrough]];
    case 8: hf_justdo_unlock(&s.accounts[1].lock, HF_JUSTDO_EXCLUSIVE, 9); [[fallthrough]];
    case 9: hf_justdo_unlock(&s.plain[1], plain_kind, 10);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function grip_function{
    HF_ABI_VERSION, sizeof(grip_frame), 4010, 1, "grip", "by_hand", 10, 0, [] { grip(nullptr); },
    nullptr};

extern const hf_justdo_function dive_function;
struct dive_frame {
    table* of;
    std::uint64_t left;
    std::uint64_t words[250]; // in a small pool a block has room for one
};
/// Adds 'left', and what is below it, to 'sum', the last one first.
inline void dive(table* of, std::uint64_t left) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<dive_frame*>(hf_justdo_enter(&dive_function, of, &resumed));
    switch (resumed) {
    case 0:
        f.of = of;
        f.left = left;
        hf_justdo_note(&f, 16);
        if (f.left == 0) break;
        hf_justdo_call(1);
        [[fallthrough]];
    case 1:
        point("dive", 1);
        dive(f.of, f.left - 1);
        hf_justdo_store(&f.of->sum, f.of->sum + f.left, 8, 2);
        [[fallthrough]];
    case 2: point("dive", 2);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function dive_function{
    HF_ABI_VERSION, sizeof(dive_frame), 4011, 1, "dive", "by_hand", 2, 0, nullptr, nullptr};

extern const hf_justdo_function plunge_function;
struct plunge_frame {
    table* of;
};
/// Dives, adds word[7], which takes a short frame, and dives once more.
inline void plunge(table* of) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<plunge_frame*>(hf_justdo_enter(&plunge_function, of, &resumed));
    switch (resumed) {
    case 0:
        f = {of};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&of->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_call(2); [[fallthrough]];
    case 2:
        dive(f.of, 3);
        hf_justdo_call(3);
        [[fallthrough]];
    case 3:
        add(f.of, 7);
        hf_justdo_call(4);
        [[fallthrough]];
    case 4: dive(f.of, 2); hf_justdo_unlock(&f.of->lock, HF_JUSTDO_EXCLUSIVE, 5);
    }
    hf_justdo_leave();
}
inline const hf_justdo_function plunge_function{HF_ABI_VERSION,
                                                sizeof(plunge_frame),
                                                4012,
                                                1,
                                                "plunge",
                                                "by_hand",
                                                5,
                                                0,
                                                [] { plunge(nullptr); },
                                                nullptr};

inline const bool registered = [] {
    for (const hf_justdo_function* f :
         {&transfer_function, &push_function, &pop_function, &add_function, &total_function,
          &shift_function, &walk_function, &twice_function, &stamp_function, &grip_function,
          &dive_function, &plunge_function})
        hf_justdo_register(f);
    hf_justdo_register_lock(&plain_calls);
    return true;
}();

} // namespace hf::justdo::by_hand

#ifdef __clang__
#pragma clang attribute pop
#endif
