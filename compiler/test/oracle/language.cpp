// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++ as people write it, under the oracle: what a section may be made of works, byte for byte.
#include "oracle.hpp"

#include <holdfast/tx.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

using oracle::at;

// The pool that hf::tx is given: the oracle has one.
extern "C" {
const void* hf_pool_base(const hf_pool*) noexcept { return oracle::pool; }
void hf_section_in(const void*) noexcept {}
}
static const hf_pool* const the_pool = nullptr;

namespace {

template <class T> void fill(T* values, int count, long seed) {
    for (int i = 0; i < count; ++i) values[i] = T(seed + 7 * i + i * i);
}

struct tree {
    tree* left;
    tree* right;
    long key;
    long weight;
};

/// A balanced tree of 'count' nodes, in the pool from 'offset' on.
tree* grow(std::size_t offset, int first, int last) {
    if (first > last) return nullptr;
    const int middle = (first + last) / 2;
    tree* t = at<tree>(offset) + middle;
    *t = {grow(offset, first, middle - 1), grow(offset, middle + 1, last), 10L * middle, 1};
    return t;
}

} // namespace

// --- Templates -----------------------------------------------------------------------------------

template <class T, std::size_t N> struct ring {
    T slot[N];
    std::size_t head, count;
    HF_TXFUNC bool push(T value) noexcept {
        if (count == N) return false;
        slot[(head + count++) % N] = value;
        return true;
    }
    HF_TXFUNC std::optional<T> pop() noexcept {
        if (count == 0) return std::nullopt;
        T value = slot[head];
        slot[head] = T{};
        head = (head + 1) % N;
        --count;
        return value;
    }
};
SCENARIO(template_push, [] { at<ring<int, 3>>(0)->head = 2; }, [] { at<ring<int, 3>>(0)->push(7); })
SCENARIO(
    template_pop, [] { *at<ring<long, 3>>(0) = {{4, 5, 6}, 2, 3}; },
    [] { (void)at<ring<long, 3>>(0)->pop(); })

template <std::integral... Ts> HF_TXFUNC void add_all(long* to, Ts... values) noexcept {
    ((*to = *to * 3 + long(values)), ...);
}
SCENARIO(
    variadic_template, [] { *at<long>(0) = 2; }, [] { add_all(at<long>(0), 4, 5L, short(6), 7u); })

template <class Compare> HF_TXFUNC void sort_by(long* a, int n, Compare less) noexcept {
    std::sort(a, a + n, less);
}
SCENARIO(
    sort_by_lambda, [] { fill(at<long>(0), 21, -90); },
    [] {
        const long pivot = *at<long>(80);
        sort_by(at<long>(0), 21,
                [pivot](long x, long y) { return std::abs(x - pivot) < std::abs(y - pivot); });
    })

// --- Member functions, operators, constructors, destructors ----------------------------------------

class account {
  public:
    explicit account(long cents) noexcept : cents_(cents) {}
    HF_TXFUNC account& operator+=(long cents) noexcept {
        cents_ += cents;
        touched();
        return *this;
    }
    HF_TXFUNC static void move(account* from, account* to, long cents) noexcept {
        *from += -cents; // joins this section
        *to += cents;
    }

  private:
    void touched() noexcept { ++changes_; }
    long cents_;
    long changes_ = 0;
};
SCENARIO(member_operator, [] { new (at<account>(0)) account(500); }, [] { *at<account>(0) += 20; })
SCENARIO(
    static_member,
    [] {
        new (at<account>(0)) account(500);
        new (at<account>(32)) account(7);
    },
    [] { account::move(at<account>(0), at<account>(32), 20); })
SCENARIO(
    static_member_same, [] { new (at<account>(0)) account(500); },
    [] { account::move(at<account>(0), at<account>(0), 20); })

struct counted {
    long* live;
    explicit counted(long* l) noexcept : live(l) { ++*live; }
    counted(const counted& other) noexcept : live(other.live) { *live += 10; }
    ~counted() { *live *= 2; }
};
HF_TXFUNC void scopes(long* live) noexcept {
    counted a{live};
    {
        counted b{a};
        live[1] = *live;
    }
    live[2] = *live;
}
SCENARIO(destructors, [] { *at<long>(0) = 3; }, [] { scopes(at<long>(0)); })

struct point {
    long x, y, z;
    point operator+(const point& p) const noexcept { return {x + p.x, y + p.y, z + p.z}; }
};
HF_TXFUNC point shift(point* to, point by) noexcept { return *to = *to + by; }
SCENARIO(
    aggregates_by_value, [] { *at<point>(0) = {1, 2, 3}; },
    [] { (void)shift(at<point>(0), {10, 20, 30}); })

// --- Lambdas -------------------------------------------------------------------------------------

SCENARIO(
    tx_small, [] { *at<long>(0) = 41; }, [] { hf::tx(the_pool, [p = at<long>(0)] { *p += 1; }); })
SCENARIO(
    tx_large, [] { fill(at<long>(0), 9, 2); },
    [] {
        long *a = at<long>(0), *b = at<long>(16);
        std::array<long, 9> by{3, 1, 4, 1, 5, 9, 2, 6, 5};
        hf::tx(the_pool, [=] {
            for (std::size_t i = 0; i < by.size(); ++i) a[i] += by[i] * *b;
        });
    })
SCENARIO(
    tx_result, [] { *at<point>(0) = {1, 2, 3}; },
    [] {
        point* p = at<point>(0);
        const point old = hf::tx(the_pool, [p] { return std::exchange(*p, point{7, p->x, 9}); });
        if (old.z != 3) *at<long>(512) = 1; // nobody noted this
    })
SCENARIO(
    tx_mutable, [] { *at<long>(0) = 5; },
    [] {
        hf::tx(the_pool, [p = at<long>(0), step = 3L]() mutable {
            for (; step > 0; --step) *p = *p * step + 1;
        });
    })
SCENARIO(tx_nothing, [] {}, [] { hf::tx(the_pool, [] {}); })
SCENARIO(
    tx_preserves, [] { fill(at<char>(0), 64, 2); },
    [] {
        char text[24];
        for (char& c : text) c = char('a' + (&c - text));
        const char* from = text;
        hf::tx(the_pool, [from, to = at<char>(8)] {
            const char* kept = hf::vlog_preserve(from, 24);
            std::memmove(to + 3, to, 24);
            std::memcpy(to, kept, 24);
        });
    })
// A disengaged pointer is any bits: it is not followed, and not checked.
SCENARIO(
    tx_optional_pointer, [] { *at<long>(0) = 5; },
    [] {
        std::optional<long*> other;
        hf::tx(the_pool, [p = at<long>(0), other, zero = 0L] {
            *p += 2 + zero;
            if (other) **other += 3;
        });
    })
struct shelf {
    long book[4];
    void rotate() {
        shelf* self = this;
        hf::tx(the_pool, [self] { std::rotate(self->book, self->book + 1, self->book + 4); });
    }
    void stir(long by) {
        hf::tx(the_pool, [=, this] {
            auto twice = [by](long& x) noexcept { x = 2 * x + by; };
            std::for_each(book, book + 4, twice);
        });
    }
};
SCENARIO(tx_in_member, [] { fill(at<long>(0), 4, 9); }, [] { at<shelf>(0)->rotate(); })
SCENARIO(tx_this, [] { fill(at<long>(0), 4, 9); }, [] { at<shelf>(0)->stir(5); })

HF_TXFUNC void generic_lambda(long* a, int n) noexcept {
    auto fold = [&](auto&& self, int i) -> long {
        return i == n ? 0 : (a[i] = a[i] * 2 + self(self, i + 1));
    };
    fold(fold, 0);
}
SCENARIO(recursive_lambda, [] { fill(at<long>(0), 7, 1); }, [] { generic_lambda(at<long>(0), 7); })

// --- Recursion -----------------------------------------------------------------------------------

static long reweigh(tree* t) noexcept {
    if (t == nullptr) return 0;
    return t->weight = t->weight + reweigh(t->left) + reweigh(t->right);
}
HF_TXFUNC void weigh(tree* root) noexcept { reweigh(root); }
SCENARIO(recursive_helper, [] { grow(0, 0, 14); }, [] { weigh(at<tree>(0) + 7); })

HF_TXFUNC void flip(tree* t) noexcept { // calls itself: the first is the section, the rest join it
    if (t == nullptr) return;
    std::swap(t->left, t->right);
    flip(t->left);
    flip(t->right);
    t->weight++;
}
SCENARIO(recursive_txfunc, [] { grow(0, 0, 10); }, [] { flip(at<tree>(0) + 5); })

static void odd(long* p, int n) noexcept;
[[gnu::noinline]] static void even(long* p, int n) noexcept {
    if (n == 0) return;
    *p = *p * 3 + n;
    odd(p, n - 1);
    *p += 1;
}
[[gnu::noinline]] static void odd(long* p, int n) noexcept {
    if (n == 0) return;
    *p = *p * 5 - n;
    even(p, n - 1);
}
HF_TXFUNC void mutual(long* p, int n) noexcept { even(p, n); }
SCENARIO(mutual_recursion, [] { *at<long>(0) = 3; }, [] { mutual(at<long>(0), 9); })

static long deep(long* p, int n) noexcept {
    if (n == 0) return *p;
    const long below = deep(p, n - 1);
    if (n % 500 == 0) *p += below % 7;
    return below + 1;
}
HF_TXFUNC void very_deep(long* p, int n) noexcept { p[1] = deep(p, n); }
SCENARIO(deep_recursion, [] { *at<long>(0) = 3; }, [] { very_deep(at<long>(0), 4000); })

static std::size_t insert(tree** at_, long key) noexcept {
    if (*at_ == nullptr) {
        auto* made = static_cast<tree*>(hf_alloc(sizeof(tree)));
        if (made == nullptr) return 0;
        *made = {nullptr, nullptr, key, 1};
        *at_ = made;
        return 1;
    }
    (*at_)->weight++;
    return 1 + insert(key < (*at_)->key ? &(*at_)->left : &(*at_)->right, key);
}
HF_TXFUNC void put(tree** root, long key) noexcept { insert(root, key); }
SCENARIO(recursive_insert, [] { *at<tree*>(8) = grow(64, 0, 6); }, [] { put(at<tree*>(8), 44); })

// --- Virtual calls and function pointers that the compiler resolves -------------------------------

struct shape {
    virtual long grow(long by) noexcept = 0;
};
struct square final : shape {
    long side = 3;
    long grow(long by) noexcept override { return side += by; }
};
HF_TXFUNC void grow_final(square* s, long* sum) noexcept { *sum += s->grow(2) + s->grow(3); }
SCENARIO(
    virtual_of_final_class, [] { new (at<square>(0)) square; },
    [] { grow_final(at<square>(0), at<long>(64)); })

struct circle : shape {
    long radius = 5;
    long grow(long by) noexcept final { return radius *= by; }
};
HF_TXFUNC void grow_final_function(circle* c, long* sum) noexcept { *sum += c->grow(2); }
SCENARIO(
    virtual_final_function, [] { new (at<circle>(0)) circle; },
    [] { grow_final_function(at<circle>(0), at<long>(64)); })

struct blob : shape {
    long size = 7;
    long grow(long by) noexcept override { return size -= by; }
};
HF_TXFUNC void grow_qualified(blob* b, long* sum) noexcept { *sum += b->blob::grow(2); }
SCENARIO(
    virtual_qualified, [] { new (at<blob>(0)) blob; },
    [] { grow_qualified(at<blob>(0), at<long>(64)); })

// Closed alternatives instead of a hierarchy: what the diagnostic for virtual calls advises.
using any_shape = std::variant<square, circle>;
HF_TXFUNC void grow_any(any_shape* s, long* sum) noexcept {
    if (auto* q = std::get_if<square>(s))
        *sum += q->grow(2);
    else if (auto* c = std::get_if<circle>(s))
        *sum += c->grow(3);
}
SCENARIO(
    variant_instead, [] { new (at<any_shape>(0)) any_shape(circle{}); },
    [] { grow_any(at<any_shape>(0), at<long>(64)); })

#if !defined(UNRESOLVED) // by -O0, and where sanitizers check the type first
// The constructor is visible, hence the type.
HF_TXFUNC void grow_local(long* sum) noexcept {
    blob local;
    shape& s = local;
    *sum += s.grow(2);
}
SCENARIO(virtual_of_local, [] { *at<long>(64) = 3; }, [] { grow_local(at<long>(64)); })

static void doubled(long* p) noexcept { *p *= 2; }
static inline void apply(void (*f)(long*) noexcept, long* p) noexcept { f(p); }
HF_TXFUNC void known_pointer(long* p) noexcept { apply(doubled, p); }
SCENARIO(function_pointer_known, [] { *at<long>(0) = 3; }, [] { known_pointer(at<long>(0)); })
#endif

// --- Later standards -----------------------------------------------------------------------------

HF_TXFUNC void ranges_and_spans(long* a, std::size_t n) noexcept {
    std::span<long> all{a, n};
    for (long previous = 0; long& x : all) previous = std::exchange(x, x + previous);
    auto [low, high] = std::pair{all.front(), all.back()};
    all[n / 2] = low <=> high < 0 ? high : low;
}
SCENARIO(
    ranges_and_spans, [] { fill(at<long>(0), 8, 4); }, [] { ranges_and_spans(at<long>(0), 8); })

#if __cplusplus > 202002L
struct builder {
    long value;
    template <class Self> HF_TXFUNC auto& set(this Self& self, long v) noexcept {
        self.value = v + self.value;
        return self;
    }
};
SCENARIO(deducing_this, [] { *at<long>(0) = 3; }, [] { (void)at<builder>(0)->set(4); })

constexpr long pick(long x) noexcept {
    if consteval {
        return 1;
    } else {
        return x + 2;
    }
}
HF_TXFUNC void cpp23(long* p) noexcept {
    auto step = [] static noexcept { return 3L; };
    *p = pick(*p) * step() + static_cast<long>(7uz);
    if (*p < 0) std::unreachable();
}
SCENARIO(static_lambda_and_consteval, [] { *at<long>(0) = 3; }, [] { cpp23(at<long>(0)); })
#endif
