// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two of the structures that come with persistent objects. docs/guide/simpo.md is cut from it.
#include <cstdio>
// [include]
#include <holdfast/simpo/heap.hpp>
#include <holdfast/simpo/queue.hpp>
// [/include]

namespace {

int fail(const hf::status& why) { return std::puts(why.what().c_str()), 1; }

/// The object of this name; made if it is missing.
template <class T> hf::result<hf::simpo::object<T>> get(hf::pool& pool, const char* name) {
    auto found = hf::simpo::object<T>::find(pool, name);
    if (found || found.error().code() != hf::errc::not_found) return found;
    return hf::simpo::object<T>::create(pool, name);
}

// [class]
struct job {
    unsigned number, priority;
    bool operator<(const job& than) const { return priority < than.priority; }
};
class urgent_jobs : public hf::simpo::heap<job, 1000> {
public: // "heap<c8,1000>" would be the name of every heap of 1000 structs of 8 bytes
    static constexpr hf::simpo::class_name simpo_class{"urgent_jobs", 1};
};
// [/class]

} // namespace

int main(int argc, char** argv) {
    auto pool = hf::pool::open(argc > 1 ? argv[1] : "jobs.hf",
                               {.layout = "jobs/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    // [use]
    using numbers = hf::simpo::queue<unsigned, 1000>;
    auto done = get<numbers>(*pool, "done");
    auto urgent = get<urgent_jobs>(*pool, "urgent");
    if (!done || !urgent) return fail(done ? urgent.error() : done.error());
    for (const unsigned priority : {3U, 1U, 2U})
        urgent->defer<&urgent_jobs::enheap>(job{10 + priority, priority}); // logged, and no more
    if (const auto first = urgent->call<&urgent_jobs::deheap>())           // all of it survives
        done->defer<&numbers::enqueue>(first->number);
    done->sync();
    // [/use]
    std::printf("%u urgent, %u done\n", urgent->call<&urgent_jobs::count>(),
                done->call<&numbers::count>());
}
