// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table of Boost.MultiIndex in a pool, with three indices. No line of it is changed.
#define _LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION // which Boost wants of libc++
#include "program.h"

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/member.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>

#include <algorithm>
#include <memory>
#include <new>

#ifdef HOLDFAST_UNINSTRUMENTED
template <class T> using pool_allocator = std::allocator<T>;
#else
#include <holdfast/allocator.hpp>
template <class T> using pool_allocator = hf::allocator<T>;
#endif

namespace bmi = boost::multi_index;

struct item {
    unsigned long number;
    unsigned weight, owner;
    bool operator==(const item&) const = default;
};
using by_number = bmi::hashed_unique<bmi::member<item, unsigned long, &item::number>>;
using by_weight = bmi::ordered_non_unique<bmi::member<item, unsigned, &item::weight>>;
using by_owner = bmi::ordered_non_unique<bmi::member<item, unsigned, &item::owner>>;
template <template <class> class Allocator>
using table_of = bmi::multi_index_container<item, bmi::indexed_by<by_number, by_weight, by_owner>,
                                            Allocator<item>>;
using table = table_of<pool_allocator>;
using model_table = table_of<std::allocator>;

struct root {
    unsigned long done;
    table* all;
};

HF_TXFUNC void begin(root* r) { r->all = new (hf_alloc(sizeof(table))) table; }

// Adds an item, changes its weight, or takes away the lightest of an owner.
template <class Table> void change_table(Table& all, unsigned x, bool killed) {
    const unsigned long number = x % 8192;
    const auto found = all.template get<0>().find(number);
    if (found == all.template get<0>().end()) {
        all.insert(item{number, x >> 7, (x >> 3) % 512});
        return;
    }
    if (x % 5 != 0) {
        all.template get<0>().modify(found, [x](item& i) { i.weight = x >> 7; });
        if (killed) hf_crash_point("middle");
        return;
    }
    auto& owners = all.template get<2>();
    owners.erase(owners.find(found->owner));
}

HF_TXFUNC void change(root* r, unsigned x, bool killed) {
    change_table(*r->all, x, killed);
    ++r->done;
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    auto* const r = static_cast<root*>(root_of(argv[1], "multi_index/1", sizeof(root)));
    if (r->all == nullptr) begin(r);
    const unsigned long steps = std::strtoul(argv[2], nullptr, 10);
    const unsigned long killed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : ~0UL;
    half_way half = half_of(r->done, steps);
    for (unsigned long i = r->done; i < steps; ++i) {
        passes(&half, i);
        change(r, mixed(i), i == killed);
    }
    const double ns = ns_of(&half);
    model_table model;
    for (unsigned long i = 0; i < r->done; ++i) change_table(model, mixed(i), false);
    const bool same = std::equal(model.get<1>().begin(), model.get<1>().end(),
                                 r->all->get<1>().begin(), r->all->get<1>().end()) &&
                      std::equal(model.get<2>().begin(), model.get<2>().end(),
                                 r->all->get<2>().begin(), r->all->get<2>().end());
    return verdict("multi_index", r->done, same, ns);
}
