// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls, accesses and addresses that nobody spelled out (adversarial.cpp has the spelled ones).
#include <algorithm>
#include <array>
#include <bitset>
#include <cctype>
#include <charconv>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ranges>
#include <string_view>
#include <utility>
int g = 1;
int seed();
struct lazy {
    int v = ++g;
};
struct inh_base {
    inh_base(int x) { g = x; }
};
struct inh : inh_base {
    using inh_base::inh_base;
};
struct agg {
    int a = g;
    int b;
};
struct conv {
    operator bool() const { return g; }
};
struct arrow {
    int* operator->() { return &g; }
};
struct iter {
    int i;
    int operator*() { return g; }
    iter& operator++() {
        ++i;
        return *this;
    }
    bool operator!=(iter o) const { return i != o.i; }
};
struct range {
    iter begin() { return {0}; }
    iter end() { return {3}; }
};
struct spaceship {
    int n;
    int operator<=>(const spaceship& o) const { return g; }
    bool operator==(const spaceship&) const = default;
};
struct eq {
    bool operator==(const eq&) const { return g; }
};
struct holder_eq {
    eq e;
    bool operator==(const holder_eq&) const = default;
};
struct copy {
    copy() = default;
    copy(const copy&) { ++g; }
    copy& operator=(const copy&) {
        ++g;
        return *this;
    }
};
struct wrap_copy {
    copy c[2];
};
template <int& R> int by_ntt() { return R; }
template <int* P> int by_ntp() { return *P; }
template <auto F> int by_fn() { return F(); }
int impure() { return g; }
struct lit {
    int n;
};
lit operator""_l(unsigned long long) { return {g}; }
struct news {
    void* operator new(std::size_t);
    void operator delete(void*);
};
struct place_new {
    static void* operator new(std::size_t, void* p) { return &g; }
    int v = 0;
};
struct tup {
    int a;
};
template <> struct std::tuple_size<tup> {
    static constexpr int value = 1;
};
template <> struct std::tuple_element<0, tup> {
    using type = int;
};
template <std::size_t I> int get(const tup&) { return g; }
struct bomb {
    ~bomb() { ++g; }
};
struct base1 {
    bomb b;
};
struct derived1 : base1 {};
inline int inline_init = seed();
const int& cref = g;
static const int dyn = seed();
struct node {
    node* n;
};
struct opq {
    std::uint64_t a[2];
};
struct fnobj {
    int (*f)();
};
constexpr fnobj fo{impure};
constexpr int (*fp)() = impure;
namespace user {
double sin(double x) { return g; }
int abs(int x) { return g; }
void memset(void*, int, int) { g = 1; }
} // namespace user
class subject {
public:
    //! instant: which names g, a global that may change
    void default_member() noexcept {
        lazy l;
        n = l.v;
    }
    //! instant: which names g, a global that may change
    void inherited_constructor() noexcept { inh i(3); }
    //! instant: names g, a global that may change
    void designated() noexcept {
        agg a{.b = 2};
        n = a.a;
    }
    //! instant: which names g, a global that may change
    void array_of_aggregates() noexcept {
        agg a[3];
        n = a[1].a;
    }
    //! instant: names g, a global that may change
    void array_filler() noexcept {
        agg a[3] = {{1, 2}};
        n = a[1].a;
    }
    //! deferrable
    void parenthesised() noexcept {
        agg a(1);
        n = 1;
        agg b();
    }
    //! instant: which names g, a global that may change
    void condition() noexcept {
        conv c;
        if (c) n = 1;
    }
    //! instant: which names g, a global that may change
    void loop_condition() noexcept {
        conv c;
        while (c && n < 3) ++n;
    }
    //! instant: which names g, a global that may change
    void range_loop() noexcept {
        range r;
        for (int x : r) n += x;
    }
    //! instant: which names g, a global that may change
    void rewritten_comparison() noexcept { n = spaceship{1} < spaceship{2}; }
    //! instant: which names g, a global that may change
    void defaulted_comparison() noexcept { n = holder_eq{} != holder_eq{}; }
    //! instant: which names g, a global that may change
    void copied_array() noexcept {
        wrap_copy w;
        wrap_copy v = w;
    }
    //! instant: which names g, a global that may change
    void assigned_array() noexcept {
        wrap_copy w, v;
        v = w;
    }
    //! instant: which names g, a global that may change
    void captured_copy() noexcept {
        copy c;
        auto f = [c] {};
    }
    //! instant: which names g, a global that may change
    void reference_argument() noexcept { n = by_ntt<g>(); }
    //! instant: which names g, a global that may change
    void pointer_argument() noexcept { n = by_ntp<&g>(); }
    //! instant: which names g, a global that may change
    void function_argument() noexcept { n = by_fn<impure>(); }
    //! instant: which names g, a global that may change
    void literal_operator() noexcept { n = (3_l).n; }
    //! instant: allocates or frees memory outside of the object (news::operator new)
    void class_new() noexcept { new news; }
    //! instant: allocates or frees memory outside of the object (place_new::operator new)
    void class_placement_new() noexcept { new (bytes) place_new; }
    //! instant: which names g, a global that may change
    void structured_binding() noexcept {
        auto [a] = tup{1};
        n = a;
    }
    //! instant: which names g, a global that may change
    void destructor_of_base() noexcept { derived1 d; }
    //! instant: which names g, a global that may change
    void destructors_of_array() noexcept { derived1 d[2]; }
    //! instant: which names g, a global that may change
    void destructors_of_std_array() noexcept { std::array<derived1, 2> d; }
    //! instant: which names g, a global that may change
    void destroyed_at_once() noexcept { derived1{}; }
    //! instant: which names g, a global that may change
    void extended_temporary() noexcept { const derived1& d = derived1{}; }
    //! instant: names inline_init, a global that may change
    void inline_variable() noexcept { n = inline_init; }
    //! instant: names cref, a global that holds an address
    void constant_reference() noexcept { n = cref; }
    //! instant: names dyn, a global whose value each run computes anew
    void dynamic_constant() noexcept { n = dyn; }
    //! instant: calls through a pointer
    //! instant: names fo, a global that holds an address
    void constant_function_pointer() noexcept { n = fo.f(); }
    //! instant: calls through a pointer
    //! instant: names fp, a global that holds an address
    void constexpr_function_pointer() noexcept { n = fp(); }
    //! instant: which names g, a global that may change
    //! instant: which names g, a global that may change
    //! instant: which names g, a global that may change
    void names_of_the_library() noexcept {
        n = user::sin(1) + user::abs(2);
        user::memset(&n, 1, 2);
    }
    //! instant: names g, a global that may change
    void conditional_lvalue() noexcept {
        int x = 1;
        (n ? x : g) = 2;
    }
    //! instant: names g, a global that may change
    void comma() noexcept { n = (1, g); }
    //! instant: names g, a global that may change
    void short_conditional() noexcept { n = g ?: 2; }
    //! instant: names g, a global that may change
    void switch_variable() noexcept {
        switch (int q = g; q) {
        default: n = 1;
        }
    }
    //! instant: names g, a global that may change
    void if_variable() noexcept {
        if (int q = g) n = 1;
    }
    //! instant: names g, a global that may change
    void for_variable() noexcept {
        for (int i = g; i < 3; ++i) n = i;
    }
    //! instant: names g, a global that may change
    void statement_expression() noexcept {
        n = ({ g; });
    }
    //! instant: names g, a global that may change
    void captured_value() noexcept {
        auto f = [x = g] { return x; };
        n = f();
    }
    //! instant: names g, a global that may change
    void lambda_default() noexcept {
        auto f = [](int x = g) { return x; };
        n = f();
    }
    //! instant: calls through a pointer
    void lambda_as_pointer() noexcept {
        auto f = +[](int x) { return x; };
        n = f(1);
    }
    //! instant: names g, a global that may change
    void jumped_into() noexcept {
        if (false) {
        L:
            n = g;
        }
        if (n) goto L;
    }
    //! instant: names g, a global that may change
    void case_in_dead_branch() noexcept {
        switch (n) {
            if (false) {
            case 1: n = g;
            }
        }
    }
    //! instant: names g, a global that may change
    void dead_operand() noexcept { n = false ? g : 1; }
    //! instant: catches an exception
    void catches() noexcept {
        try {
            n = 1;
        } catch (...) {
            n = 2;
        }
    }
    //! instant: names g, a global that may change
    void list_in_range() noexcept {
        for (int x : {1, 2, g}) n += x;
    }
    //! deferrable
    void list_of_constants() noexcept { n = std::max({1, 2, 3}); }
    //! instant: which may throw (std::__throw_out_of_range_fmt)
    void bitset_checked() noexcept {
        std::bitset<8> b(3);
        b.set(2);
        n = b.count();
    }
    //! deferrable
    void complex() noexcept {
        std::complex<double> c(1, 2);
        c *= c;
        n = c.real();
    }
    //! instant: calls isdigit(), whose body is not visible
    void locale() noexcept { n = std::isdigit(n); }
    //! deferrable
    void to_chars() noexcept {
        char b[10];
        auto r = std::to_chars(b, b + 10, n);
        n = *b;
    }
    //! instant: which allocates or frees memory outside of the object (delete)
    //! instant: which allocates or frees memory outside of the object (operator new)
    void unique_pointer() noexcept { auto p = std::make_unique<int>(1); }
    //! deferrable
    void numbers_from_bytes() noexcept {
        opq o;
        std::memcpy(&o, bytes, sizeof o);
        n = o.a[0];
    }
    //! instant: takes what holds an address for another type (node for void)
    void pointer_from_copy() noexcept {
        node x{nullptr};
        std::memcpy(&x, bytes, sizeof x);
        x.n = nullptr;
    }
    //! instant: takes what holds an address for another type (node * for char)
    void pointer_from_algorithm() noexcept {
        auto c = reinterpret_cast<char*>(&n);
        node* x;
        std::copy(c, c + 8, reinterpret_cast<char*>(&x));
        x->n = 0;
    }
    //! instant: takes what holds an address for another type (node for char)
    void pointer_swapped() noexcept {
        node x{};
        std::swap_ranges((char*)&x, (char*)&x + 8, (char*)bytes);
    }
    //! instant: makes a number of an address
    void address_kept() noexcept {
        subject* p = this;
        kept = (std::uint64_t)p;
    }
    //! deferrable
    void null_test() noexcept {
        subject* p = this;
        kept = (p != nullptr);
    }
    //! instant: which makes a number of an address
    void address_hashed() noexcept {
        std::hash<subject*> h;
        kept = h(this);
    }
    //! instant: takes what holds an address for another type (subject * for const void)
    void address_copied() noexcept {
        subject* p = this;
        std::memcpy(&kept, &p, 8);
    }
    //! instant: takes what holds an address for another type (std::string_view for const void)
    void view_copied() noexcept {
        std::string_view v("x");
        std::memcpy(&kept, &v, 8);
    }
    //! instant: takes what holds an address for another type
    void closure_read() noexcept {
        auto f = [this] {};
        kept = *(std::uint64_t*)&f;
    }
    //! instant: which takes what holds an address for another type
    void address_bit_cast() noexcept {
        struct {
            subject* p;
        } l{this};
        auto b = std::bit_cast<std::uint64_t>(l);
        kept = b;
    }
    //! instant: uses a union that may hold an address (subject::union_copied()::(anonymous union)::u)
    //! instant: uses a union that may hold an address (subject::union_copied()::(anonymous union)::u)
    void union_copied() noexcept {
        union {
            subject* p;
            std::uint64_t u;
        } l;
        l.u = kept;
        auto m = l;
        kept = m.u;
    }
    //! instant: uses a union that may hold an address (subject::union_read()::(anonymous union)::u)
    void union_read() noexcept {
        union {
            subject* p;
            std::uint64_t u;
        } l{this};
        kept = l.u;
    }
    //! deferrable
    void ranges_find() noexcept {
        auto it = std::ranges::find(cells, 3);
        if (it != cells.end()) *it = 2;
    }
    //! deferrable
    void ranges_view() noexcept {
        for (int x : cells | std::views::filter([](int v) { return v > 1; })) n += x;
    }
    //! instant: which names g, a global that may change
    void ranges_view_out() noexcept {
        for (int x : cells | std::views::transform([](int v) { return v + g; })) n += x;
    }
    //! instant: uses volatile memory
    void volatile_argument(volatile int x) noexcept { n = x; }
    int n = 0;
    std::uint64_t kept = 0;
    std::array<int, 8> cells{};
    alignas(8) unsigned char bytes[64]{};
};
