// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent objects whose calls are logged, not their stores.  SIMPO §3  docs/guide/simpo.md
//
//     class row {
//     public:
//         static constexpr hf::simpo::class_name simpo_class{"row", 1};
//         void add(std::int64_t n) noexcept { for (auto& c : cells_) c += n; }
//         std::int64_t sum() const { return std::reduce(cells_.begin(), cells_.end()); }
//     private:
//         std::array<std::int64_t, 1024> cells_{};
//     };
//     auto r = hf::simpo::object<row>::create(pool, "r");
//     r->defer<&row::add>(10);             // logged, not run, and lost with a crash
//     auto total = r->call<&row::sum>();   // from here on the calls above survive; runs them; sums
//
// An object works in volatile memory. The pool holds a log of the calls that change it, and two
// copies of it; one copy stays whole while the other is written. Recovery takes the whole copy and
// makes the calls of committed groups behind it again, in their order.
//
// (1) The calls of one object are made one at a time, in the order in which they were logged. Calls
//     with different hints may be made side by side: their hints say that their order has no
//     effect.
// (2) A group is every call logged since the last commit, by any thread. It survives wholly or not
//     at all, and only together with all groups before it.
// (3) What a logged function does depends on the object and its arguments alone, because recovery
//     calls it again.
// (4) Recovery finds functions by name: their class's and their own, their class's version and
//     size, their parameters' kinds and sizes, and a version. A build that has no such function
//     refuses the pool.
#pragma once

#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace hf::simpo {

/// For open_options::engines.
engine_ptr engine() noexcept;

/// The name and version of a persistent class, as its static member 'simpo_class'.
struct class_name {
    const char*
        text; // 1 to 63 bytes; of no other class of the program, nor of another instantiation
    std::uint32_t version; // change it whenever the meaning of the members changes
};

/// Change a function's version when the function comes to do something else, by specialising this:
///     template <> inline constexpr std::uint16_t hf::simpo::function_version<&row::add> = 2;
template <auto Function> inline constexpr std::uint16_t function_version = 1;

/// Properties that an object keeps from its creation.
struct object_options {
    /// Size of its log: rounded up to a power of two from 1 KiB to 1 GiB. When the log is half
    /// full, the object makes a checkpoint.
    std::uint64_t log_bytes = 64ULL << 10;
    /// How many callers the object can know at a time, at most 65 535: their calls are made once,
    /// however often they are repeated (holdfast/simpo/caller.hpp).
    std::uint32_t callers = 0;
    /// Results that it keeps of each caller: at most 2^24, of at most 512 bytes. All of them are
    /// part of the object.
    std::uint32_t results = 1, result_bytes = 8;
};

/// What a deferred call is about, a row or a part: 1 to 65 535; 0: about all. At most 16 are made
/// side by side.
struct hint {
    std::uint16_t of;
};

/// Words of 8 bytes that the arguments of one call may take; each argument begins at a word.
inline constexpr std::size_t argument_words_max = 60;

/// Identifies a call that may be repeated: a number of its caller, greater than those of the
/// caller's earlier calls.
struct operation {
    std::uint64_t caller, number;
};

template <class T> class caller;  // holdfast/simpo/caller.hpp
template <class T> class replica; // holdfast/simpo/replica.hpp

namespace detail {

constexpr std::uint64_t hash(std::string_view text, std::uint64_t from = 0xcbf29ce484222325ULL) {
    for (const char c : text) from = (from ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return from;
}

/// "add" of &some::row::add, as the compiler writes it.
template <auto F> constexpr std::string_view function_text() {
    std::string_view text = __PRETTY_FUNCTION__;
    text.remove_prefix(text.find("F = ") + 4);
    text = text.substr(0, text.find_first_of(";]"));
    text.remove_prefix(text.rfind("::") + 2);
    return text.substr(0, text.find(')'));
}

template <class T> inline constexpr bool holds_address = std::is_pointer_v<T>;
template <class T> inline constexpr bool holds_address<std::basic_string_view<T>> = true;
template <class T, std::size_t N> inline constexpr bool holds_address<std::span<T, N>> = true;
template <class T> inline constexpr bool holds_address<std::reference_wrapper<T>> = true;

template <class P> inline constexpr bool changes_its_argument =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

/// One letter for a parameter's kind, which its schema has beside its size.
template <class P>
inline constexpr char kind_of = std::is_floating_point_v<P>                    ? 'f'
                                : std::is_same_v<P, bool>                      ? 'b'
                                : std::is_enum_v<P>                            ? 'e'
                                : std::is_integral_v<P> && std::is_signed_v<P> ? 'i'
                                : std::is_integral_v<P>                        ? 'u'
                                                                               : 'c';

/// What is known of a parameter when its function is not there.
struct parameter {
    char kind; // kind_of
    std::uint32_t bytes;
};

/// A call's arguments as words of a record.
template <class... P> struct packed {
    static constexpr std::size_t words = (std::size_t{0} + ... + ((sizeof(P) + 7) / 8));
    static constexpr bool fits = words <= argument_words_max;
    static constexpr bool copyable = (std::is_trivially_copyable_v<P> && ...);
    static constexpr bool no_array = (!std::is_array_v<P> && ...);
    static constexpr bool no_address =
        ((!holds_address<P> && !std::is_member_pointer_v<P> && !std::is_null_pointer_v<P>) && ...);
    static constexpr std::uint32_t schema() {
        std::uint64_t h = hash("arguments");
        [[maybe_unused]] const auto add = [&](char kind, std::size_t bytes) {
            h = hash(std::string_view(&kind, 1), h ^ bytes);
        };
        (add(kind_of<P>, sizeof(P)), ...);
        return static_cast<std::uint32_t>(h ^ h >> 32);
    }
    static constexpr std::array<parameter, sizeof...(P)> parameters = {
        parameter{kind_of<P>, sizeof(P)}...};
    using array = std::array<std::uint64_t, words == 0 ? 1 : words>;
    static array store(const P&... given) {
        array to{};
        [[maybe_unused]] std::size_t at = 0;
        ((std::memcpy(to.data() + at, &given, sizeof given), at += (sizeof(P) + 7) / 8), ...);
        return to;
    }
    template <class Q> static Q load(const std::uint64_t*& from) {
        std::array<std::byte, sizeof(Q)> bytes;
        std::memcpy(bytes.data(), from, sizeof(Q));
        from += (sizeof(Q) + 7) / 8;
        return std::bit_cast<Q>(bytes);
    }
    /// Calls 'f' with 'first' and the arguments.
    template <class Self, class F>
    static decltype(auto) apply(Self& first, F f, [[maybe_unused]] const std::uint64_t* from) {
        const std::tuple<P...> given{load<P>(from)...}; // braces: from left to right
        return std::apply([&](const P&... p) -> decltype(auto) { return (first.*f)(p...); }, given);
    }
};

template <class M> struct member_function;
template <class C, class R, bool N, class... P>
struct member_function<R (C::*)(P...) noexcept(N)> {
    using returns = R;
    using arguments = packed<std::remove_cvref_t<P>...>;
    static constexpr bool is_const = false, is_noexcept = N;
    static constexpr bool by_value = (!changes_its_argument<P> && ...);
};
template <class C, class R, bool N, class... P>
struct member_function<R (C::*)(P...) const noexcept(N)>
    : member_function<R (C::*)(P...) noexcept(N)> {
    static constexpr bool is_const = true;
};

/// A function that recovery can call again.
struct function {
    std::uint64_t id; // of its class's name and its own
    std::uint32_t schema;
    std::uint16_t version;
    std::uint8_t words; // of arguments
    const char* class_text;
    std::string_view text;
    void (*run)(void* object, const std::uint64_t* arguments) noexcept;
    const std::type_info* type = nullptr; // of the class; null: this file is built without
    const std::type_info* self = nullptr; // which<F>; null: likewise
    /// As 'run', and leaves the result there, zeros behind it. Null: the result is not plain bytes.
    void (*answer)(void* object, const std::uint64_t* arguments,
                   std::uint64_t* result) noexcept = nullptr;
    std::uint16_t result_words = 0;
    // The class's values in this build.
    std::uint32_t class_version = 0;
    std::uint64_t object_bytes = 0;
    std::span<const parameter> parameters{};
};
template <auto F> struct which {};
/// Ends the process with a message when another class, or another base or instantiation of the same
/// one, has a function of the same name, schema and version: recovery could not know which of them
/// was called.
void add_function(const function* f) noexcept;
/// The function's library is being unloaded.
void remove_function(const function* f) noexcept;
class registration {
public:
    explicit registration(const function* of) noexcept : of_(of) { add_function(of); }
    ~registration() { remove_function(of_); }
    registration(const registration&) = delete;

private:
    const function* of_;
};

template <class T> constexpr const std::type_info* type_of() {
#if defined(__cpp_rtti)
    return &typeid(T);
#else
    return nullptr;
#endif
}

/// Words of a result that can be kept; nothing if the result cannot be kept.
template <class R> constexpr std::optional<std::uint16_t> result_words() {
    if constexpr (std::is_void_v<R>) return std::uint16_t{0};
    else if constexpr (std::is_trivially_copyable_v<R> && !holds_address<R> &&
                       !std::is_member_pointer_v<R> && !std::is_reference_v<R> && sizeof(R) <= 512)
        return static_cast<std::uint16_t>((sizeof(R) + 7) / 8);
    else return std::nullopt;
}

template <class T, auto F> struct registered {
    using traits = member_function<decltype(F)>;
    static constexpr std::optional<std::uint16_t> kept = result_words<typename traits::returns>();
    static void answer(void* object, const std::uint64_t* arguments,
                       [[maybe_unused]] std::uint64_t* result) noexcept {
        if constexpr (kept && *kept != 0) {
            const typename traits::returns made =
                traits::arguments::apply(*std::launder(static_cast<T*>(object)), F, arguments);
            std::memset(result, 0, *kept * sizeof *result);
            std::memcpy(result, &made, sizeof made);
        } else {
            run(object, arguments);
        }
    }
    static void run(void* object, const std::uint64_t* arguments) noexcept {
        traits::arguments::apply(*std::launder(static_cast<T*>(object)), F, arguments);
    }
    static inline constinit const function entry{
        hash(function_text<F>(), hash("::", hash(T::simpo_class.text))),
        traits::arguments::schema(),
        function_version<F>,
        static_cast<std::uint8_t>(traits::arguments::words),
        T::simpo_class.text,
        function_text<F>(),
        run,
        type_of<T>(),
        type_of<which<F>>(),
        kept ? answer : nullptr,
        kept.value_or(std::uint16_t{0}),
        T::simpo_class.version,
        sizeof(T),
        traits::arguments::parameters};
    static inline const registration done{&entry};
};

/// Properties that a class's objects have in common.
struct class_shape {
    const char* text;
    std::uint32_t version;
    std::uint64_t bytes;
};

using body = void (*)(void* object, void* context);
class core; // of one object (src/simpo/core.hpp)
result<core*> create(pool& in, std::string_view name, const class_shape& what,
                     const object_options& how, body construct, void* context);
result<core*> find(pool& in, std::string_view name, const class_shape& what);
status destroy(pool& in, std::string_view name, const class_shape& what);
void defer(core& on, const function& f, const std::uint64_t* arguments, std::uint16_t hint);
/// Commits the group with the call of 'f', or, if 'f' is null, without one. Returns the object for
/// the caller, which makes that call, until end_call().
void* begin_call(core& on, const function* f, const std::uint64_t* arguments);
void end_call(core& on) noexcept;
class begun_call {
public:
    begun_call(core& on, const function* f, const std::uint64_t* arguments)
        : on_(on), object_(begin_call(on, f, arguments)) {}
    ~begun_call() { end_call(on_); }
    begun_call(const begun_call&) = delete;
    void* object() const noexcept { return object_; }

private:
    core& on_;
    void* object_;
};
void sync(core& on);
void checkpoint(core& on);
status add_caller(core& on, std::uint64_t id);
status dismiss(core& on, std::uint64_t id);
result<std::uint64_t> last_of(core& on, std::uint64_t id);
void defer_once(core& on, const function& f, operation which, const std::uint64_t* arguments);
/// 'result' has f.result_words. 'all': refuses a call whose result has no place beside the earlier
/// ones.
status call_once(core& on, const function& f, operation which, const std::uint64_t* arguments,
                 bool all, std::uint64_t* result);

} // namespace detail

/// A class whose objects can be persistent.
template <class T>
concept persistent_class = std::is_trivially_copyable_v<T> && alignof(T) <= 64 && requires {
    { T::simpo_class } -> std::convertible_to<class_name>;
};

/// A handle on an object of a pool; copies are handles on the same object. Valid until the pool is
/// closed or the object destroyed.
///
/// Requires: no function of an object uses a handle on that object.
/// Threads:  any, at once. Functions of one object never run side by side, except those of calls
///           that defer_beside has logged with different hints.
/// Source:   SIMPO §3.1. Differs: src/simpo/README.md.
template <class T> class object {
    static_assert(hf::detail::stored<T>::checked);
    static_assert(
        std::is_trivially_copyable_v<T>,
        "a persistent object is one block of bytes: its class is trivially copyable, without "
        "virtual functions, and holds no containers that allocate");
    static_assert(persistent_class<T>,
                  "a persistent class names itself: static constexpr hf::simpo::class_name "
                  "simpo_class{\"row\", 1}; and is aligned to 64 bytes at most");

public:
    /// Creates an object of this name, as T(args...).
    ///
    /// Ordering: 3 points; durable on return.
    /// Crash:    there is no such object, or the whole of it.
    /// Errors:   exists, pool_full, limit_reached, bad_argument (names have 1 to 63 bytes;
    ///           log_bytes), permission (the pool is open read-only), missing_engine, in_use (a
    ///           child of the process that opened the pool). Where other objects can make room
    ///           (simpo/swap.hpp): what kept them from it.
    template <class... Args>
        requires std::is_constructible_v<T, const Args&...>
    static result<object> create(pool& in, std::string_view name, const Args&... args) {
        return create(in, name, object_options{}, args...);
    }
    template <class... Args>
        requires std::is_constructible_v<T, const Args&...>
    static result<object> create(pool& in, std::string_view name, const object_options& how,
                                 const Args&... args) {
        const auto construct = [&](void* at) { ::new (at) T(args...); };
        return handle(detail::create(in, name, shape, how, invoke<decltype(construct)>,
                                     const_cast<void*>(static_cast<const void*>(&construct))));
    }
    /// The object of this name.
    ///
    /// Ordering: 0 points; for an object that is swapped out (simpo/swap.hpp), those of its return.
    /// Errors:   not_found; wrong_layout: the object has another class, version or size;
    ///           missing_engine, in_use. If it is swapped out, why it cannot come back:
    ///           bad_argument, io_error, corrupt, pool_full.
    static result<object> find(pool& in, std::string_view name) {
        return handle(detail::find(in, name, shape));
    }
    /// Ends the object and frees its memory.
    ///
    /// Requires: nobody uses a handle on it any more.
    /// Ordering: 2 points.
    /// Crash:    the object as it was, or none.
    /// Errors:   as find; permission.
    static status destroy(pool& in, std::string_view name) {
        return detail::destroy(in, name, shape);
    }

    /// Logs a call of F, a member function that returns nothing. The call is made before any later
    /// call of the object.
    ///
    /// Cost:     one record of 64 bytes, or more if the arguments take more than four words.
    /// Ordering: 0 points. If the log has no room, the caller ends the group and makes the next
    ///           checkpoint.
    /// Crash:    lost, unless its group has been committed.
    /// Errors:   none. On a pool that is open read-only, or in a child of the process that opened
    ///           it, the process ends with a message.
    /// Source:   SIMPO Fig. 4b.
    template <auto F, class... Args> void defer(Args&&... args) {
        log_deferred<F>(hint{0}, std::forward<Args>(args)...);
    }
    /// As defer, for a call that has nothing in common with calls of other hints. Threads that wait
    /// for the object may make it at the same time as those. It waits for earlier calls of its own
    /// hint, and for earlier calls of defer. Hints are not kept: recovery makes all calls in their
    /// order.
    ///
    /// Requires: no two calls of different hints touch the same member, unless both only read it.
    /// Source:   SIMPO §3.1.2, concurrency boosting. Differs: src/simpo/README.md.
    template <auto F, class... Args> void defer_beside(hint beside, Args&&... args) {
        log_deferred<F>(beside, std::forward<Args>(args)...);
    }

    /// Commits the group, makes its calls, then calls F and returns what F returns. A const F is
    /// not logged, may take any arguments, and waits for nothing if no call is pending.
    ///
    /// Cost:     flushes the lines of the group's records.
    /// Ordering: 1 point; 0 for a const F without a group. A checkpoint, each time half the log is
    ///           full, has 2.
    /// Crash:    all of the group, this call included, or none of it; durable on return.
    /// Errors:   as defer.
    /// Source:   SIMPO Fig. 4c. Differs: one point, because records carry checksums; F runs alone.
    template <auto F, class... Args> auto call(Args&&... args) {
        using traits = detail::member_function<decltype(F)>;
        using returns = typename traits::returns;
        static_assert(
            !std::is_reference_v<returns> && !std::is_pointer_v<returns>,
            "what a call returns outlives the moment in which the object stands still: no "
            "references, no pointers");
        if constexpr (traits::is_const) {
            const detail::begun_call here(*core_, nullptr, nullptr);
            return std::invoke(F, *std::launder(static_cast<const T*>(here.object())),
                               std::forward<Args>(args)...);
        } else {
            check_logged<F>();
            const auto words = traits::arguments::store(std::forward<Args>(args)...);
            const detail::begun_call here(*core_, &detail::registered<T, F>::entry, words.data());
            return traits::arguments::apply(*std::launder(static_cast<T*>(here.object())), F,
                                            words.data());
        }
    }

    /// Commits the group and makes its calls.
    ///
    /// Ordering: 1 point; 0 if no call is pending.
    /// Crash:    all of the group or none of it; durable on return.
    /// Source:   SIMPO §3.1, the empty instant function.
    void sync() { detail::sync(*core_); }
    /// As sync; then makes the object itself durable, so that recovery makes no call again.
    ///
    /// Cost:     writes the whole object.
    /// Ordering: 2 more than sync.
    void checkpoint() { detail::checkpoint(*core_); }

    detail::core& internals() const noexcept { return *core_; }

private:
    template <class> friend class caller;
    template <class> friend class replica;
    static constexpr detail::class_shape shape{T::simpo_class.text, T::simpo_class.version,
                                               sizeof(T)};

    explicit object(detail::core* of) noexcept : core_(of) {}
    static result<object> handle(result<detail::core*> found) {
        if (!found) return found.error();
        return object(*found);
    }
    template <class Body> static void invoke(void* place, void* context) {
        (*static_cast<Body*>(context))(place);
    }
    template <auto F, class... Args> void log_deferred(hint beside, Args&&... args) {
        using traits = detail::member_function<decltype(F)>;
        check_logged<F>();
        static_assert(std::is_void_v<typename traits::returns>,
                      "a deferred function returns nothing: use call for one that does");
        static_assert(!traits::is_const,
                      "a deferred function changes the object, and this one is const: use call");
        const auto words = traits::arguments::store(std::forward<Args>(args)...);
        detail::defer(*core_, detail::registered<T, F>::entry, words.data(), beside.of);
    }
    template <auto F> static void check_logged() {
        using traits = detail::member_function<decltype(F)>;
        static_assert(traits::is_noexcept,
                      "a logged function is noexcept: recovery calls it again, and nobody catches");
        static_assert(traits::by_value,
                      "a logged function takes values: what it does to an argument of the "
                      "caller's would not happen in recovery");
        static_assert(
            traits::arguments::copyable,
            "an argument of a logged function is kept as bytes: a trivially copyable type");
        static_assert(
            traits::arguments::no_address,
            "an argument of a logged function is no address: it means nothing to the next process");
        static_assert(traits::arguments::no_array,
                      "an argument of a logged function is no array: take a std::array");
        static_assert(traits::arguments::fits,
                      "the arguments of a logged function take at most 60 words of 8 bytes");
        (void)detail::registered<T, F>::done;
    }

    detail::core* core_;
};

} // namespace hf::simpo
