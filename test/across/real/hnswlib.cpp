// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An index of hnswlib in a pool: an insertion is one section. No line of it is changed; macros give
// its containers, and what it makes itself, memory of the pool. It needs no locks and atomic
// counters here, and an exception ends the process.
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
template <class T, class A = pool_allocator<T>> using pool_vector = vector<T, A>;
template <class T, class A = pool_allocator<T>> using pool_deque = deque<T, A>;
template <class K, class V>
using pool_map = unordered_map<K, V, hash<K>, equal_to<K>, pool_allocator<pair<const K, V>>>;
// A standard one stores its own address in its memory. A local one would leave that in the pool.
template <class K> struct pool_set : pool_vector<K> {
    auto find(K key) {
        return std::find_if(this->begin(), this->end(), [key](K k) { return k == key; });
    }
    void insert(K key) {
        if (find(key) == this->end()) this->push_back(key);
    }
    void erase(K key) {
        if (const auto at = find(key); at != this->end()) pool_vector<K>::erase(at);
    }
};
template <class T, class C = pool_vector<T>, class L = less<typename C::value_type>>
using pool_queue = priority_queue<T, C, L>;
struct no_mutex {
    void lock() noexcept {}
    void unlock() noexcept {}
    bool try_lock() noexcept { return true; }
};
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
#define atomic plain
#define deque pool_deque
#define free(block) pool_free(block)
#define malloc(bytes) pool_malloc(bytes)
#define mutex no_mutex
#define new new (in_pool{})
#define priority_queue pool_queue
#define realloc(block, bytes) pool_realloc(block, bytes)
#define throw __builtin_trap(), (void)
#define unordered_map pool_map
#define unordered_set pool_set
#define vector pool_vector
#include "hnswlib.h"
#undef atomic
#undef free
#undef malloc
#undef new
#undef throw
#undef vector

constexpr unsigned dimensions = 32, elements_max = 20000;
using index_of = hnswlib::HierarchicalNSW<float>;

struct root {
    unsigned long done;
    index_of* all;
};

static void point_of(unsigned long step, float* to) {
    for (unsigned i = 0; i < dimensions; ++i)
        to[i] = static_cast<float>(mixed(step * dimensions + i) % 1000);
}

// Outside of sections, as nothing needs an empty index that is whole.
static void begin(root* r, hnswlib::SpaceInterface<float>* space) {
    r->all = new (pool_malloc(sizeof(index_of))) index_of(space, elements_max, 8, 40);
}

HF_TXFUNC void change(root* r, const float* point, bool killed) {
    r->all->addPoint(point, r->done, -1);
    if (killed) hf_crash_point("middle");
    ++r->done;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    auto* const r = static_cast<root*>(root_of(argv[1], "hnswlib/1", sizeof(root)));
    hnswlib::L2Space space(dimensions);
    if (r->all == nullptr) begin(r, &space);
    // They are addresses in this process.
    r->all->fstdistfunc_ = space.get_dist_func();
    r->all->dist_func_param_ = space.get_dist_func_param();
    const unsigned long steps = std::strtoul(argv[2], nullptr, 10);
    const unsigned long killed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : ~0UL;
    float point[dimensions];
    half_way half = half_of(r->done, steps);
    for (unsigned long i = r->done; i < steps; ++i) {
        passes(&half, i);
        point_of(i, point);
        change(r, point, i == killed);
    }
    const double ns = ns_of(&half);
    bool same = r->all->cur_element_count.load() == r->done;
    for (unsigned long i = 0; i < r->done; ++i) {
        point_of(i, point);
        same = same && r->all->fstdistfunc_(point, r->all->getDataByInternalId(i),
                                            r->all->dist_func_param_) == 0;
    }
    return verdict("hnswlib", r->done, same, ns);
}
