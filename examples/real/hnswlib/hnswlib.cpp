// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A vector index of hnswlib in a pool. A section adds a vector, changes one, marks one deleted, and
// gives the index more room. Searches run outside of sections, as they store to volatile memory
// alone. No line of it is changed; macros give its containers, and what it makes itself, memory of
// the pool. It needs no locks and atomic counters here, and an exception ends the process.
#define NAME "hnswlib"
#define LAYOUT "hnswlib/2"
#include "program.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <stdexcept>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#ifdef HOLDFAST_UNINSTRUMENTED
template <class T> using pool_allocator = std::allocator<T>;
#else
#include <holdfast/allocator.hpp>
template <class T> using pool_allocator = hf::allocator<T>;
#endif

struct in_pool {};
inline void* operator new(std::size_t bytes, in_pool) { return pool_malloc(bytes); }
inline void* operator new[](std::size_t bytes, in_pool) { return pool_malloc(bytes); }

namespace std {
struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
    bool try_lock() noexcept { return true; }
};
// The index' own vectors are of levels and of locks. What a search collects is volatile.
template <class T>
using vector_memory =
    conditional_t<is_same_v<T, int> || is_same_v<T, no_mutex>, pool_allocator<T>, allocator<T>>;
template <class T, class A = vector_memory<T>> using pool_vector = vector<T, A>;
template <class K, class V>
using pool_map = unordered_map<K, V, hash<K>, equal_to<K>, pool_allocator<pair<const K, V>>>;
// A standard one stores its own address in its memory. A local one would leave that in the pool.
template <class K> struct pool_set : vector<K, pool_allocator<K>> {
    auto find(K key) {
        return std::find_if(this->begin(), this->end(), [key](K k) { return k == key; });
    }
    void insert(K key) {
        if (find(key) == this->end()) this->push_back(key);
    }
    void erase(K key) {
        if (const auto at = find(key); at != this->end()) vector<K, pool_allocator<K>>::erase(at);
    }
};
template <class T, class C = pool_vector<T>, class L = less<typename C::value_type>>
using pool_queue = priority_queue<T, C, L>;
template <class T> struct plain {
    T value;
    constexpr plain(T v = 0) : value(v) {}
    operator T() const { return value; }
    T operator++(int) { return value++; }
    T operator--(int) { return value--; }
    plain& operator+=(T more) { return value += more, *this; }
    plain& operator-=(T less) { return value -= less, *this; }
    T load() const { return value; }
};
} // namespace std
#define mutex no_mutex
// Scratch of each search: volatile memory, but the object that holds it.
#include "visited_list_pool.h"
namespace std {
template <> struct default_delete<hnswlib::VisitedListPool> {
    void operator()(hnswlib::VisitedListPool* lists) const {
        lists->~VisitedListPool();
        pool_free(lists);
    }
};
} // namespace std
// [macros]
#define atomic plain
#define free(block) pool_free(block)
#define malloc(bytes) pool_malloc(bytes)
#define new new (in_pool{})
#define priority_queue pool_queue
#define realloc(block, bytes) pool_realloc(block, bytes)
#define throw __builtin_trap(), (void)
#define unordered_map pool_map
#define unordered_set pool_set
#define vector pool_vector
#include "hnswlib.h"
// [/macros]
#undef atomic
#undef free
#undef malloc
#undef new
#undef throw
#undef vector

constexpr unsigned dimensions = 32, ef = 64;
using index_of = hnswlib::HierarchicalNSW<float>;

struct root {
    unsigned long done;
    index_of* all;
};
static hnswlib::L2Space space(dimensions);

// Vector number 'label', as it is after so many updates.
static void vector_of(unsigned long label, unsigned updates, float* to) {
    for (unsigned i = 0; i < dimensions; ++i)
        to[i] = static_cast<float>(mixed((label * 64 + updates) * dimensions + i) % 1000);
}

// Which label each step is about: of eight, one updates an earlier vector; of forty, one marks one
// deleted.
static bool updates(unsigned long step) { return step % 8 == 7; }
static bool deletes(unsigned long step) { return step % 40 == 38; }
static unsigned long label_of(unsigned long step) {
    return updates(step) || deletes(step) ? step / 2 / 8 * 8 : step;
}

HF_TXFUNC void change(root* r, unsigned long step, int killed) {
    index_of& all = *r->all;
    float vector[dimensions];
    if (deletes(step)) {
        const auto found = all.label_lookup_.find(label_of(step));
        if (!all.isMarkedDeleted(found->second)) all.markDeletedInternal(found->second);
    } else {
        if (all.cur_element_count == all.max_elements_) all.resizeIndex(2 * all.max_elements_);
        vector_of(label_of(step), updates(step) ? static_cast<unsigned>(step / 8 % 63 + 1) : 0,
                  vector);
        all.addPoint(vector, label_of(step), -1);
    }
    if (killed) hf_crash_point("middle");
    ++r->done;
}

// [adopt]
// They are addresses in this process, and memory of it.
static void adopt(index_of* all) {
    all->fstdistfunc_ = space.get_dist_func();
    all->dist_func_param_ = space.get_dist_func_param();
    ::new (all->visited_list_pool_.get())
        hnswlib::VisitedListPool(1, static_cast<int>(all->max_elements_));
}
// [/adopt]

HF_TXFUNC void publish(root* r, index_of* all) { r->all = all; }

static void opened(root* r) {
    // Made outside of a section: until it is published, nobody needs it whole.
    if (r->all == nullptr)
        publish(r, ::new (pool_malloc(sizeof(index_of))) index_of(&space, 256, 8, 40));
    else adopt(r->all);
}

// Each vector that is not deleted is found by itself.
static bool finds(index_of& all, const std::vector<float>& vectors,
                  const std::vector<char>& deleted) {
    unsigned long there = 0, found = 0;
    all.ef_ = ef;
    for (unsigned long label = 0; label < deleted.size(); ++label) {
        if (deleted[label] != 0 || all.label_lookup_.find(label) == all.label_lookup_.end())
            continue;
        ++there;
        const float* const vector = &vectors[label * dimensions];
        auto nearest = all.index_of::searchKnn(vector, 1);
        found += !nearest.empty() && nearest.top().second == label && nearest.top().first == 0;
    }
    return found >= there * 0.97;
}

static int same(root* r) {
    std::vector<float> vectors(r->done * dimensions);
    std::vector<char> deleted(r->done), known(r->done);
    for (unsigned long step = 0; step < r->done; ++step) {
        const unsigned long label = label_of(step);
        if (deletes(step)) {
            deleted[label] = 1;
            continue;
        }
        if (updates(step)) deleted[label] = 0; // an update brings it back
        known[label] = 1;
        vector_of(label, updates(step) ? static_cast<unsigned>(step / 8 % 63 + 1) : 0,
                  &vectors[label * dimensions]);
    }
    index_of& all = *r->all;
    bool ok = all.cur_element_count ==
              static_cast<unsigned long>(std::count(known.begin(), known.end(), 1));
    for (unsigned long label = 0; ok && label < r->done; ++label) {
        const auto at = all.label_lookup_.find(label);
        if ((at != all.label_lookup_.end()) != (known[label] != 0)) return 0;
        if (known[label] == 0) continue;
        ok = all.isMarkedDeleted(at->second) == (deleted[label] != 0) &&
             std::memcmp(all.getDataByInternalId(at->second), &vectors[label * dimensions],
                         dimensions * sizeof(float)) == 0;
    }
    if (!ok || !finds(all, vectors, deleted)) return 0;
    // A file of the library's own, which any program with hnswlib reads, holds the same index.
    const std::string file = "/tmp/hf_hnswlib." + std::to_string(getpid());
    all.index_of::saveIndex(file);
    auto* const loaded = ::new (pool_malloc(sizeof(index_of))) index_of(&space);
    loaded->index_of::loadIndex(file, &space);
    std::remove(file.c_str());
    ok = loaded->cur_element_count == all.cur_element_count && finds(*loaded, vectors, deleted);
    loaded->~index_of();
    pool_free(loaded);
    return ok;
}

PROGRAM_MAIN
