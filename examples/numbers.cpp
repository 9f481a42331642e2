// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list of numbers in a file. Every run pushes one more; kill it halfway and the next run finds
// nothing of that push:
//
//   $ example_numbers
//   1 numbers, sum 1
//   $ HOLDFAST_CRASH_AT=half-pushed example_numbers
//   Killed
//   $ example_numbers
//   2 numbers, sum 3
//
// Built with ENGINE clobber the next run finds the push completed: 3 numbers, sum 6.
// [program]
#include <holdfast/holdfast.hpp>

#include <cstdio>
#include <mutex>

struct node { node* next; unsigned long value; };
struct list { hf::mutex lock; node* head; unsigned long count, sum; };

// [push]
HF_TXFUNC bool push(list* l, unsigned long value) noexcept {
    node* n = hf::make<node>(l->head, value);      // kept if the push commits, freed otherwise
    if (n == nullptr) return false;                // the pool is full, and nothing has changed
    l->head = n;                                   // plain stores: the compiler puts into the log
    l->count += 1;                                 // what the chosen technique needs
    hf::crash_point("half-pushed");
    l->sum += value;
    return true;
}
// [/push]

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "numbers.hf", {.layout = "numbers/1"});
    if (!pool) return std::puts(pool.error().what().c_str()), 1;  // it says why
    list* l = pool->root<list>();                                 // whole: open has recovered it
    if (l == nullptr) return 1;                                   // no room; the log has said so
    std::scoped_lock held{l->lock};                               // held until push has committed
    if (!push(l, l->count + 1)) return std::puts("the pool is full"), 1;
    std::printf("%lu numbers, sum %lu\n", l->count, l->sum);      // durable since push returned
}
// [/program]
