// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange's order book in a pool: a table of Boost.MultiIndex with three indices. A section
// takes one order and makes its trades, or takes an order away. No line of the library is changed.
#define _LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION // which Boost wants of libc++
#define NAME "multi_index"
#define LAYOUT "multi_index/2"
#include "program.h"

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/mem_fun.hpp>
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

constexpr unsigned long first_of_buyers = 1ul << 63;

struct order {
    unsigned long number;
    unsigned price, left, owner;
    bool buys;
    // Sellers, the cheapest first; then buyers, the highest price first. Of one price, the oldest
    // comes first.
    unsigned long turn() const {
        const unsigned long by_price = buys ? ~price & 0xffffffu : price;
        return (buys ? first_of_buyers : 0) | by_price << 36 | number;
    }
    bool operator==(const order&) const = default;
};
using by_number = bmi::hashed_unique<bmi::member<order, unsigned long, &order::number>>;
using by_turn = bmi::ordered_unique<bmi::const_mem_fun<order, unsigned long, &order::turn>>;
using by_owner = bmi::ordered_non_unique<bmi::member<order, unsigned, &order::owner>>;
template <template <class> class Allocator>
using book_of = bmi::multi_index_container<order, bmi::indexed_by<by_number, by_turn, by_owner>,
                                           Allocator<order>>;

template <template <class> class Allocator> struct exchange {
    book_of<Allocator> orders;
    unsigned long traded = 0; // pieces
    unsigned long turnover = 0;

    // Returns the order that has its turn first on the other side, or null.
    const order* best_against(const order& o) {
        auto& turns = orders.template get<1>();
        const auto at = turns.lower_bound(o.buys ? 0 : first_of_buyers);
        return at == turns.end() || at->buys == o.buys ? nullptr : &*at;
    }
    void place(order o, bool killed) {
        while (o.left > 0) {
            const order* const best = best_against(o);
            if (best == nullptr || (o.buys ? best->price > o.price : best->price < o.price)) break;
            const unsigned pieces = std::min(o.left, best->left);
            o.left -= pieces;
            traded += pieces;
            turnover += static_cast<unsigned long>(pieces) * best->price;
            const auto at = orders.template get<0>().find(best->number);
            if (best->left == pieces) orders.template get<0>().erase(at);
            else orders.template get<0>().modify(at, [pieces](order& b) { b.left -= pieces; });
        }
        if (killed) hf_crash_point("middle");
        if (o.left > 0) orders.insert(o);
    }
    // All that 'owner' has in the book.
    void cancel(unsigned owner) {
        auto& owners = orders.template get<2>();
        const auto [from, to] = owners.equal_range(owner);
        owners.erase(from, to);
    }
    void step(unsigned long step, bool killed) {
        const unsigned x = mixed(step);
        const bool buys = x & 1;
        const unsigned owner = (x >> 1) % 512, spread = (x >> 10) % 1024;
        if (x % 37 == 0) cancel(owner);
        const unsigned price = buys ? 99'200 + spread : 99'900 + spread;
        place({step, price, 1 + (x >> 20) % 100, owner, buys}, killed);
    }
    bool operator==(const auto& other) const {
        const auto equal = [](const auto& a, const auto& b) {
            return std::equal(a.begin(), a.end(), b.begin(), b.end());
        };
        return traded == other.traded && turnover == other.turnover &&
               equal(orders.template get<1>(), other.orders.template get<1>()) &&
               equal(orders.template get<2>(), other.orders.template get<2>());
    }
};

struct root {
    unsigned long done;
    exchange<pool_allocator>* all;
};

HF_TXFUNC void begin(root* r) {
    r->all = new (hf_alloc(sizeof(exchange<pool_allocator>))) exchange<pool_allocator>;
}

HF_TXFUNC void change(root* r, unsigned long step, int killed) {
    r->all->step(step, killed);
    ++r->done;
}

static void opened(root* r) {
    if (r->all == nullptr) begin(r);
}

static int same(root* r) {
    exchange<std::allocator> model;
    for (unsigned long i = 0; i < r->done; ++i) model.step(i, false);
    return *r->all == model;
}

PROGRAM_MAIN
