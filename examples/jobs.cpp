// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Jobs in a file, linked both ways, with engine selective: the way there is logged, the way back
// and the count are found again after a crash, by a function that nobody has written.
#include <holdfast/author/derived.hpp>
#include <holdfast/holdfast.hpp>

#include <cstdio>

// [structure]
struct job {
    unsigned long number;
    job *next, *previous;
};
struct queue {
    job* first;
    unsigned long count;
};

using recovery = hf::derived::recovery<hf::derived::links<&queue::first, &job::next>,
                                       hf::derived::parent<&job::previous>,
                                       hf::derived::count<&queue::count>>;

HF_TXFUNC bool push(queue* to, unsigned long number) noexcept {
    job* fresh = hf::make<job>(number, to->first, nullptr);
    if (fresh == nullptr) return false;
    if (to->first != nullptr) to->first->previous = fresh; // lazy, as if hf::lazy stood there
    to->first = fresh;                                     // logged
    hf::crash_point("half-pushed");
    to->count += 1; // lazy
    return true;
}
// [/structure]

int main() {
    // [open]
    hf::open_options options;
    options.layout = "jobs/1";
    options.engines = {hf::selective::engine({.rebuild = recovery::rebuild})};
    auto pool = hf::pool::open("jobs.hf", options);
    // [/open]
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().what().c_str()), 1;
    auto* all = pool->root<queue>();
    for (unsigned long number : {1UL, 2UL})
        if (!push(all, number)) return std::puts("full"), 1;
    std::printf("%lu jobs, %s\n", all->count,
                recovery::holds(*pool, *all) ? "linked both ways" : "linked wrongly");
}
