// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers of the standard library in sections, under the oracle. What libstdc++ keeps in its shared
// library is in <holdfast/libstdcxx.hpp>.
#include "oracle.hpp"

#include <holdfast/allocator.hpp>
#include <holdfast/libstdcxx.hpp>

#include <cstdlib>
#include <deque>
#include <forward_list>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <new>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

using oracle::at;

extern "C" void hf_pool_full(std::size_t) noexcept { std::abort(); }

namespace {

template <class T> using alloc = hf::allocator<T>;
using vector = std::vector<long, alloc<long>>;
using string = std::basic_string<char, std::char_traits<char>, alloc<char>>;
using deque = std::deque<long, alloc<long>>;
using hash_map = std::unordered_map<long, long, std::hash<long>, std::equal_to<>,
                                    alloc<std::pair<const long, long>>>;

template <class T> T* make() { return ::new (at<T>(64)) T; }

} // namespace

HF_TXFUNC void push(vector* v, long x) noexcept { v->push_back(x); }
SCENARIO(
    vector_in_place,
    [] {
        make<vector>()->reserve(4);
        at<vector>(64)->assign({3, 1, 4});
    },
    [] { push(at<vector>(64), 7); })
SCENARIO(
    vector_grows, [] { make<vector>()->assign({3, 1, 4, 1}); }, [] { push(at<vector>(64), 7); })
HF_TXFUNC void edit(vector* v) noexcept {
    v->insert(v->begin() + 1, v->back());
    v->erase(v->begin());
    (*v)[1] += (*v)[0];
    v->resize(6, (*v)[1]);
}
SCENARIO(vector_edited, [] { make<vector>()->assign({3, 1, 4, 1}); }, [] { edit(at<vector>(64)); })

HF_TXFUNC void append(string* s, char c) noexcept {
    s->insert(0, 1, c);
    *s += *s;
    s->replace(2, 3, "--");
}
SCENARIO(string_short, [] { *make<string>() = "abc"; }, [] { append(at<string>(64), 'x'); })
SCENARIO(
    string_grows, [] { *make<string>() = "a text of some length"; },
    [] { append(at<string>(64), 'x'); })

#if !defined(_LIBCPP_VERSION) // its blocks are as large as the oracle's heap
HF_TXFUNC void turn(deque* d) noexcept {
    d->push_front(d->back());
    d->pop_back();
    d->push_back((*d)[1]);
}
SCENARIO(deque_turns, [] { make<deque>()->assign(3, 8); }, [] { turn(at<deque>(64)); })
#endif

HF_TXFUNC void put(hash_map* m, long key, long value) noexcept { (*m)[key] += value; }
HF_TXFUNC void drop(hash_map* m, long key) noexcept { m->erase(key); }
static void some_hashed() {
    auto& m = *make<hash_map>();
    for (long i = 0; i < 5; ++i) m[17 * i] = i;
}
SCENARIO(hash_map_first, [] { make<hash_map>(); }, [] { put(at<hash_map>(64), 3, 4); })
SCENARIO(hash_map_new_key, some_hashed, [] { put(at<hash_map>(64), 3, 4); })
SCENARIO(hash_map_old_key, some_hashed, [] { put(at<hash_map>(64), 34, 4); })
SCENARIO(hash_map_erase, some_hashed, [] { drop(at<hash_map>(64), 17); })
HF_TXFUNC void rehash(hash_map* m) noexcept {
    for (long i = 0; i < 8; ++i) (*m)[i * i] -= i;
}
SCENARIO(hash_map_rehashes, some_hashed, [] { rehash(at<hash_map>(64)); })

using map = std::map<long, long, std::less<>, alloc<std::pair<const long, long>>>;
using set = std::multiset<long, std::greater<>, alloc<long>>;
using list = std::list<long, alloc<long>>;
using forward_list = std::forward_list<long, alloc<long>>;

HF_TXFUNC void put(map* m, long key, long value) noexcept { (*m)[key] += value; }
HF_TXFUNC void drop(map* m, long key) noexcept { m->erase(key); }
template <int Count> static void some_mapped() {
    auto& m = *make<map>();
    for (long i = 0; i < Count; ++i) m[10 * i] = i;
}
SCENARIO(map_first, [] { make<map>(); }, [] { put(at<map>(64), 3, 4); })
SCENARIO(map_rotates_left, some_mapped<8>, [] { put(at<map>(64), 80, 4); })
SCENARIO(map_rotates_twice, some_mapped<2>, [] { put(at<map>(64), 5, 4); })
SCENARIO(map_old_key, some_mapped<8>, [] { put(at<map>(64), 30, 4); })
SCENARIO(map_erase_leaf, some_mapped<8>, [] { drop(at<map>(64), 70); })
SCENARIO(map_erase_inner, some_mapped<12>, [] { drop(at<map>(64), 30); })
SCENARIO(map_erase_root, some_mapped<7>, [] { drop(at<map>(64), 30); })
HF_TXFUNC void many(map* m) noexcept {
    for (long i = 0; i < 4; ++i) (*m)[i * 7 % 60] += i;
    m->erase(m->lower_bound(10), m->upper_bound(30));
}
SCENARIO(map_many, some_mapped<6>, [] { many(at<map>(64)); })
HF_TXFUNC void clear(map* m) noexcept { m->clear(); }
SCENARIO(map_clear, some_mapped<6>, [] { clear(at<map>(64)); })

HF_TXFUNC void put(set* s, long key) noexcept {
    s->insert(key);
    s->erase(s->begin());
}
SCENARIO(multiset_turns, [] { make<set>()->insert({5, 3, 5, 9}); }, [] { put(at<set>(64), 5); })

HF_TXFUNC void edit(list* l) noexcept {
    l->push_front(l->back());
    l->splice(l->begin(), *l, std::next(l->begin(), 2), l->end());
    l->erase(std::next(l->begin()));
#if defined(_LIBCPP_VERSION)
    l->sort();
#else // sorts by way of lists on the stack, which nodes then point to: refused
    l->reverse();
#endif
}
SCENARIO(list_edited, [] { make<list>()->assign({5, 3, 8, 1}); }, [] { edit(at<list>(64)); })
HF_TXFUNC void edit(forward_list* l) noexcept {
    l->push_front(4);
    l->reverse();
}
SCENARIO(
    forward_list_edited, [] { make<forward_list>()->assign({5, 3, 8, 1}); },
    [] { edit(at<forward_list>(64)); })
