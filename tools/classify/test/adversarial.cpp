// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that look deferrable and are not, and such that look otherwise and are. '//! deferrable' or a line
// '//! instant: TEXT @mark' for each reason stands above a function; the mark is on the line that is the cause.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

int changing = 1;
const int fixed = 7;
constexpr int table[] = {1, 2, 3};
const int computed = std::rand();
extern const int elsewhere;
thread_local int mine;
constinit int set_once = 3;
int* const to_changing = &changing;
int& by_other_name = changing;
constexpr int& constant_name = changing;
struct cached {
    mutable int hits = 0;
    int value = 1;
};
const cached cache{};
volatile int device;
void unseen();
int unseen_number();
[[gnu::weak]] void replaced() {}
void log_it(int value) { std::cout << value; } //@cout
void log_later(int value) { log_it(value); }   //@log_later
int identity(int value) { return value; }
struct logged {
    logged() noexcept {}
    ~logged() { ++changing; } //@logged
};
struct holder {
    logged inner;
};
struct from_number {
    from_number(int n) : n(n) { changing = n; }   //@from_number
    operator int() const { return changing + n; } //@to_int
    int n;
};
struct quiet {
    quiet(int n) : n(n) {}
    operator int() const { return n; }
    int n;
};
struct with_pointer {
    int* p = nullptr;
};
struct nested_pointer {
    int a = 0;
    struct {
        std::array<with_pointer, 2> inner;
    } more;
};
struct wide {
    std::array<std::uint64_t, 61> words;
};
struct pair {
    int a, b;
    auto operator<=>(const pair&) const = default;
};
struct not_trivial {
    not_trivial() = default;
    not_trivial(const not_trivial& o) : n(o.n) {}
    int n = 0;
};
struct base_with_virtual {
    virtual void f() noexcept {}
    void g() noexcept { f(); }
};
struct overloaded {
    int n;
    overloaded& operator+=(int m) {
        n += m + changing; //@plus
        return *this;
    }
};
int take(int a, int b = std::rand()) { return a + b; } //@default
template <class T> void recurse(T& at, int n) {
    if (n > 0) recurse(at, n - 1);
    at += n;
}
void odd(int& at, int n);
void even(int& at, int n) {
    if (n > 0) odd(at, n - 1);
}
void odd(int& at, int n) {
    at += 1;
    if (n > 0) even(at, n - 1);
}
void odd_log(int n);
void even_log(int n) {
    if (n > 0) odd_log(n - 1); //@even_log
}
void odd_log(int n) {
    if (n == 3) changing = 1; //@odd_log
    if (n > 0) even_log(n - 1);
}
consteval int doubled(int n) { return 2 * n; }
template <class D> struct counted {
    //! deferrable
    void tick() noexcept { static_cast<D*>(this)->step(); }
    //! instant: calls subject::leak(), which names changing, a global that may change @crtp
    void tick_out() noexcept { static_cast<D*>(this)->leak(); }
};
struct plain_base {
    //! deferrable
    void reset() noexcept { kept = 0; }
    //! instant: names changing, a global that may change @base_out
    void reset_out() noexcept { kept = changing; } //@base_out
    int kept = 0;
};
union either {
    std::uint64_t bits;
    double value;
};
union punned {
    std::uintptr_t bits;
    int* p;
};
struct flags {
    unsigned a : 3, b : 5;
};

class subject : public counted<subject>, public plain_base {
public:
    // ---- the object, arguments, locals, constants
    //! deferrable
    void step() noexcept { ++n_; }
    //! deferrable
    void constants() noexcept { n_ = fixed + table[1] + doubled(4); }
    //! deferrable
    void mutable_member() noexcept { ++hits_; }
    //! deferrable
    void reference_to_own() noexcept {
        int& alias = n_;
        int* p = &cells_[1];
        alias = *p;
    }
    //! deferrable
    void by_value(pair p) noexcept { n_ += p.a * p.b; }
    //! deferrable
    void by_const_reference(const pair& p) noexcept { n_ += p.a; }
    //! deferrable
    void compares_arguments(pair a, pair b) noexcept { n_ = a < b ? 1 : a != b; }
    //! deferrable
    void sorts() noexcept { std::sort(cells_.begin(), cells_.end()); }
    //! deferrable
    void sorts_by_lambda(int around) noexcept {
        std::sort(cells_.begin(), cells_.end(),
                  [&](int a, int b) { return std::abs(a - around) < std::abs(b - around); });
    }
    //! deferrable
    void sorts_by_ranges() noexcept { std::ranges::sort(cells_); }
    //! deferrable
    void numeric() noexcept { n_ = std::accumulate(cells_.begin(), cells_.end(), 0); }
    //! deferrable
    void mathematics(double x) noexcept {
        x_ = std::sqrt(x) + std::sin(x) + std::pow(x, 2.0) + std::fabs(x_);
    }
    //! deferrable
    void copies() noexcept {
        int local[4];
        std::memcpy(local, cells_.data(), sizeof local);
        std::memmove(cells_.data() + 4, local, sizeof local);
        std::memset(bytes_, 0, sizeof bytes_);
    }
    //! deferrable
    void copies_by_algorithm() noexcept {
        std::copy(cells_.begin(), cells_.begin() + 4, cells_.begin() + 4);
        std::fill_n(bytes_, 8, std::byte{1});
    }
    //! deferrable
    void places_new() noexcept { ::new (static_cast<void*>(bytes_)) pair{1, 2}; }
    //! deferrable
    void union_of_numbers() noexcept {
        either e;
        e.value = x_;
        n_ = static_cast<int>(e.bits);
    }
    //! deferrable
    void bit_fields() noexcept { flags_.a = flags_.b + 1; }
    //! deferrable
    void bit_casts() noexcept { x_ = std::bit_cast<double>(std::uint64_t{42}) + std::popcount(7U); }
    //! deferrable
    void recursion() noexcept { recurse(n_, 3); }
    //! deferrable
    void mutual_recursion() noexcept { even(n_, 5); }
    //! deferrable
    void quiet_conversion() noexcept {
        const quiet q = 3;
        n_ = q;
    }
    //! deferrable
    void optional_local() noexcept {
        std::optional<int> found;
        for (const int each : cells_)
            if (each > 3) found = each;
        n_ = found.value_or(0);
    }
    //! deferrable
    void tuple_local() noexcept {
        auto [a, b] = std::tuple(n_, 2);
        n_ = a + b;
    }
    //! deferrable
    void never_at_run_time() noexcept {
        if (std::is_constant_evaluated()) changing = 1;
        if constexpr (sizeof(int) == 3) unseen();
        if consteval {
            changing = 2;
        }
        static_assert(sizeof(unseen_number()) == 4);
        n_ = sizeof(changing);
    }
    //! deferrable
    void span_local() noexcept {
        const std::span<int> all(cells_);
        for (int& each : all.subspan(2)) each = 0;
    }
    //! deferrable
    void own_generator(std::uint32_t seed) noexcept {
        std::minstd_rand draw(seed);
        n_ = static_cast<int>(draw());
    }
    //! deferrable
    void static_constant() noexcept {
        static constexpr std::array<int, 3> primes{2, 3, 5};
        n_ = primes[n_ % 3];
    }
    //! deferrable
    void generic_lambda() noexcept {
        const auto add = [this](auto by) { n_ += by; };
        add(1);
        add(2L);
    }
    //! deferrable
    void switches(int k) noexcept {
        switch (k) {
        case 0: n_ = 1; break;
        case doubled(1): n_ = 2; [[fallthrough]];
        default: n_ = 3;
        }
    }
    //! deferrable
    void swaps() noexcept { std::swap(cells_[0], cells_[1]); }
    //! deferrable
    void text() noexcept { n_ = static_cast<int>(std::string_view("constant").size()); }

    // ---- the interface
    //! instant: returns int, which the caller waits for
    int returns() noexcept { return ++n_; }
    //! instant: is not noexcept
    void may_throw() { ++n_; }
    //! instant: is const
    void changes_nothing() const noexcept {}
    //! instant: its argument p holds an address (int *)
    void pointer(int* p) noexcept { n_ = *p; }
    //! instant: its argument r is a reference
    void reference(int& r) noexcept { r = n_; }
    //! instant: its argument r is a reference
    void expiring(pair&& r) noexcept { n_ = r.a; }
    //! instant: its argument text holds an address
    void view(std::string_view text) noexcept { n_ = static_cast<int>(text.size()); }
    //! instant: its argument all holds an address
    void span(std::span<const int> all) noexcept { n_ = static_cast<int>(all.size()); }
    //! instant: its argument p holds an address (nested_pointer)
    void nested(nested_pointer p) noexcept { n_ = p.a; }
    //! instant: its argument m holds an address
    void member_pointer(int pair::* m) noexcept { n_ = m == nullptr; }
    //! instant: its argument f holds an address
    //! instant: calls through a pointer @callback
    void callback(void (*f)(int)) noexcept { f(n_); } //@callback
    //! instant: its argument v is not trivially copyable
    void copied(not_trivial v) noexcept { n_ = v.n; }
    //! instant: takes 61 words of arguments, of 60 at most
    void too_wide(wide w) noexcept { n_ = static_cast<int>(w.words[0]); }
    //! instant: is declared with & or &&
    void qualified() & noexcept { ++n_; }

    // ---- what is outside of the object
    //! instant: names changing, a global that may change @reads
    void reads_global() noexcept { n_ = changing; } //@reads
    //! instant: names changing, a global that may change @address
    void takes_address() noexcept { n_ = *&changing; } //@address
    //! instant: names changing, a global that may change @escape
    void escapes() noexcept { changing = n_; } //@escape
    //! instant: names set_once, a global that may change @constinit
    void names_constinit() noexcept { n_ = set_once; } //@constinit
    //! instant: names computed, a global whose value each run computes anew @computed
    void computed_constant() noexcept { n_ = computed; } //@computed
    //! instant: names elsewhere, whose value is not visible @elsewhere
    void constant_elsewhere() noexcept { n_ = elsewhere; } //@elsewhere
    //! instant: names to_changing, a global that holds an address @to_changing
    void constant_pointer() noexcept { n_ = *to_changing; } //@to_changing
    //! instant: names by_other_name, a global that holds an address @other_name
    void global_reference() noexcept { n_ = by_other_name; } //@other_name
    //! instant: names constant_name, a global that holds an address @constant_name
    void constexpr_reference() noexcept { n_ = constant_name; } //@constant_name
    //! instant: names cache, a global that may change @cache
    void mutable_in_constant() noexcept { n_ = cache.hits; } //@cache
    //! instant: names mine, which is thread-local @mine
    void thread_local_variable() noexcept { n_ = mine; } //@mine
    //! instant: names device, a global that may change @device
    //! instant: uses volatile memory @device
    void volatile_global() noexcept { n_ = device; } //@device
    //! instant: uses volatile memory @volatile
    void volatile_view() noexcept { *static_cast<volatile int*>(&n_) = 1; } //@volatile
    //! instant: names count, a static local that may change @static_local
    //! instant: names count, a static local that may change @static_use
    void static_local() noexcept {
        static int count = 0; //@static_local
        n_ = ++count;         //@static_use
    }
    //! instant: names subject::shared_, a global that may change @shared
    void static_member() noexcept { n_ = shared_; } //@shared
    //! instant: calls log_it(), which does I/O through std::cout @cout
    void logs() noexcept { log_it(n_); }
    //! instant: calls log_later(), which calls log_it() (adversarial.cpp:{log_later}), which does I/O through std::cout @cout
    void logs_later() noexcept { log_later(n_); }
    //! instant: calls unseen(), whose body is not visible @unseen
    void calls_unseen() noexcept { unseen(); } //@unseen
    //! instant: calls replaced(), which the linker may replace @weak
    void calls_weak() noexcept { replaced(); } //@weak
    //! instant: draws a random number (rand) @rand
    void random() noexcept { n_ = std::rand(); } //@rand
    //! instant: reads the clock (time) @time
    void clock() noexcept { n_ = static_cast<int>(std::time(nullptr)); } //@time
    //! instant: reads the clock (std::chrono::steady_clock::now) @now
    void chrono() noexcept {
        n_ = std::chrono::steady_clock::now() > std::chrono::steady_clock::time_point{}; //@now
    }
    //! instant: uses errno @errno
    void error_number() noexcept { n_ = errno; } //@errno
    //! instant: uses the floating-point mode (fesetround) @fesetround
    void rounding_mode() noexcept { std::fesetround(FE_UPWARD); } //@fesetround
    //! instant: uses the floating-point mode (nearbyint) @nearbyint
    void rounds_by_mode() noexcept { x_ = std::nearbyint(x_); } //@nearbyint
    //! instant: uses the floating-point mode @fenv
    void fenv_access() noexcept {
#pragma STDC FENV_ACCESS ON
        x_ = x_ / 3; //@fenv
    }
    //! instant: asks the system (getenv) @getenv
    void environment() noexcept { n_ = std::getenv("HOME") != nullptr; } //@getenv
    //! instant: uses atomics
    //! instant: makes a number of an address
    void atomics() noexcept {
        std::atomic_ref<int> here(n_);
        here.fetch_add(1);
    }
    //! instant: uses atomics @sync
    void old_atomics() noexcept { __sync_fetch_and_add(&n_, 1); } //@sync
    //! instant: has assembler @asm
    void assembler() noexcept { asm volatile("nop"); } //@asm
    //! instant: may end the process, and recovery would call it again (__assert_fail) @assert
    void asserts() noexcept { assert(n_ > 0); } //@assert
    //! instant: ends the process, and recovery would call it again (abort) @abort
    void aborts() noexcept { std::abort(); } //@abort
    //! instant: throws @throw
    void throws() noexcept {
        if (n_ > 3) throw 1; //@throw
    }
    //! instant: calls std::array<int, 8>::at(), which may throw
    void checks_bounds(std::size_t i) noexcept { cells_.at(i) = 1; }

    // ---- memory
    //! instant: allocates or frees memory outside of the object (operator new) @new
    //! instant: allocates or frees memory outside of the object (delete) @new
    void allocates() noexcept { delete new int(3); } //@new
    //! instant: allocates or frees memory outside of the object (malloc) @malloc
    //! instant: allocates or frees memory outside of the object (free) @malloc
    void old_allocation() noexcept { std::free(std::malloc(3)); } //@malloc
    //! instant: calls std::vector<int>::push_back(), which
    //! instant: calls std::vector<int>::~vector(), which
    void vector_local() noexcept {
        std::vector<int> v; //@vector
        v.push_back(n_);
    }
    //! instant: allocates or frees memory outside of the object (operator new) @operator_new
    void operator_new() noexcept { ::operator new(8); } //@operator_new
    //! instant: makes a number of an address @number
    void address_as_number() noexcept {
        n_ = static_cast<int>(reinterpret_cast<std::uintptr_t>(this)); //@number
    }
    //! instant: makes an address of a number @from_number_cast
    void number_as_address() noexcept { *reinterpret_cast<int*>(kept_) = 1; } //@from_number_cast
    //! instant: takes what holds an address for another type @bytes
    void pointer_from_bytes() noexcept {
        int* p;
        std::memcpy(&p, bytes_, sizeof p); //@bytes
        *p = 1;
    }
    //! instant: takes what holds an address for another type @bit_cast
    void pointer_by_bit_cast() noexcept { *__builtin_bit_cast(int*, kept_) = 1; } //@bit_cast
    //! instant: takes what holds an address for another type @by_reference
    void pointer_by_reference() noexcept { *reinterpret_cast<int*&>(kept_) = 1; } //@by_reference
    //! instant: takes what holds an address for another type @void_star
    void pointer_behind_void() noexcept {
        void* all = &kept_;
        **static_cast<int**>(all) = 1; //@void_star
    }
    //! instant: uses a union that may hold an address (punned::p) @punned
    //! instant: uses a union that may hold an address (punned::bits) @punned_bits
    void pointer_by_union() noexcept {
        punned u;
        u.bits = kept_; //@punned_bits
        *u.p = 1;       //@punned
    }
    //! instant: uses a union that may hold an address (punned::bits) @leaked
    void address_by_union() noexcept {
        const punned u{.p = &n_};
        kept_ = u.bits; //@leaked
    }
    //! instant: makes an object that holds an address in bytes @placed
    void pointer_placed() noexcept { new (bytes_) with_pointer{&n_}; } //@placed
    //! instant: takes what holds an address for another type @reinterpreted
    void pointer_reinterpreted() noexcept {
        *reinterpret_cast<with_pointer*>(bytes_)->p = 1; //@reinterpreted
    }
    //! instant: casts const away @const_cast
    void const_cast_away(const pair& p) noexcept { const_cast<pair&>(p).a = n_; } //@const_cast
    //! instant: casts const away @c_cast
    void c_cast_away() noexcept { *(int*)&fixed = n_; } //@c_cast
    //! instant: compares where two objects lie @where
    void compares_places(int local) noexcept { n_ = &local < &n_; } //@where
    //! instant: goes through a pointer to a member @member
    void through_member_pointer() noexcept {
        int subject::* m = &subject::n_;
        this->*m = 1; //@member
    }

    // ---- calls that are not written as such
    //! instant: calls through a pointer @function_pointer
    void function_pointer() noexcept {
        int (*f)(int) = identity;
        n_ = f(1); //@function_pointer
    }
    //! instant: makes a virtual call (base_with_virtual::f) @virtual
    void virtual_call(int) noexcept {
        base_with_virtual b;
        base_with_virtual& r = b;
        r.f(); //@virtual
    }
    //! instant: calls holder::~holder(), which calls logged::~logged()
    void destructor_of_member() noexcept { holder h; }
    //! instant: calls from_number::from_number(), which names changing @from_number
    //! instant: calls from_number::operator int(), which names changing @to_int
    void conversions() noexcept {
        const from_number f = 3;
        n_ = f;
    }
    //! instant: calls overloaded::operator+=(), which names changing @plus
    void overloaded_operator() noexcept {
        overloaded o{1};
        o += 2;
    }
    //! instant: draws a random number (rand) @default
    void default_argument() noexcept { n_ = take(1); }
    //! instant: calls lambda(), which names changing @lambda
    void lambda_out() noexcept {
        [&] { n_ = changing; }(); //@lambda
    }
    //! instant: calls std::sort(), which names changing, a global that may change @sort_out
    void sort_out() noexcept {
        std::sort(cells_.begin(), cells_.end(), [](int a, int b) {
            return a * changing < b; //@sort_out
        });
    }
    //! instant: calls even_log(), which calls odd_log() (adversarial.cpp:{even_log}), which names changing @odd_log
    void mutual_recursion_out() noexcept { even_log(4); }
    //! instant: calls logged::~logged(), which names changing @logged
    void temporary() noexcept { logged(), ++n_; }
    //! instant: calls std::function<int ()>::function()
    //! instant: calls std::function<int ()>::~function()
    //! instant: calls std::function<int ()>::operator()
    void erased_function() noexcept {
        std::function<int()> f = [] { return 1; };
        n_ = f();
    }
    //! instant: calls std::scoped_lock<std::mutex>::scoped_lock()
    //! instant: calls std::scoped_lock<std::mutex>::~scoped_lock()
    //! instant: names subject::lock_, a global that may change @lock
    void locks() noexcept {
        std::scoped_lock held(lock_); //@lock
        ++n_;
    }
    //! instant: calls subject::cleaned_up(), which names changing @cleanup
    void cleanup() noexcept { [[gnu::cleanup(cleaned_up)]] int local = 0; }
    //! instant: takes unnamed arguments
    //! instant: takes unnamed arguments (__builtin_va_start)
    //! instant: takes unnamed arguments @va
    //! instant: takes unnamed arguments (__builtin_va_end)
    void unnamed(int n, ...) noexcept {
        __builtin_va_list all;
        __builtin_va_start(all, n);
        n_ = __builtin_va_arg(all, int); //@va
        __builtin_va_end(all);
    }

    void leak() noexcept { n_ = changing; } //@crtp

private:
    static void cleaned_up(int*) { changing = 0; } //@cleanup
    static int shared_;
    static std::mutex lock_;
    int n_ = 0;
    mutable int hits_ = 0;
    double x_ = 0;
    std::uint64_t kept_ = 0;
    flags flags_{};
    std::array<int, 8> cells_{};
    alignas(8) std::byte bytes_[64]{};
};
