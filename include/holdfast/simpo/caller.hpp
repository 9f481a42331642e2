// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that are made once however often they are repeated.  SIMPO §3.3.2  docs/guide/simpo.md
//
//     auto me = hf::simpo::caller<row>::of(rows, 42);  // an object with object_options::callers
//     auto total = me->call<&row::take>(17, 10);       // after a crash the same line answers the same,
//     auto again = me->call<&row::take>(17, 10);       // and takes nothing a second time
//
// 'caller' is for programs that may have to repeat a call because its answer was lost: a client
// that numbers its calls. 'retraced' is for a deterministic program that runs again from its
// beginning after a crash.
//
// (1) What the object keeps of a caller is part of the object, in its copies and in its log: no
//     crash, checkpoint or truncation separates them.
// (2) A call is made if its number is greater than that of the caller's last call that was made.
#pragma once

#include <holdfast/simpo.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace hf::simpo {

namespace detail {

/// Reads each byte of a P; not a constant expression if a byte is no part of its value (padding).
template <class P> constexpr bool reads_all_bytes() {
    const auto bytes = std::bit_cast<std::array<std::byte, sizeof(P)>>(P{});
    bool zero = true;
    for (const std::byte each : bytes) zero &= each == std::byte{0};
    return zero || !zero;
}
template <class P>
concept constant_value = requires { typename std::bool_constant<(static_cast<void>(P{}), true)>; };
template <class P>
concept constant_bytes = requires { typename std::bool_constant<reads_all_bytes<P>()>; };

/// Whether a P is known to have bytes that may differ while its values do not.
template <class P> constexpr bool is_padded() {
    if constexpr (std::has_unique_object_representations_v<P>) return false;
    else if constexpr (std::is_same_v<P, long double>) return true;
    else if constexpr (std::is_trivially_copyable_v<P> && constant_value<P>)
        return !constant_bytes<P>;
    else return false;
}
template <class Arguments> inline constexpr bool any_padded = false;
template <class... P> inline constexpr bool any_padded<packed<P...>> = (is_padded<P>() || ...);

} // namespace detail

/// A handle on an object as one caller uses it. Copies are handles on the same one.
///
/// Requires: the caller is not dismissed, and the object not destroyed.
/// Threads:  one at a time for each identifier: its calls are logged in the order of their numbers.
///           Any number of identifiers at once.
/// Source:   SIMPO §3.1.2, 'potid', and §3.3.2. Differs: src/simpo/README.md.
template <class T> class caller {
    template <auto F> using returns = typename detail::member_function<decltype(F)>::returns;

public:
    /// The caller `id` of the object. An object that does not know it learns of it now.
    ///
    /// Ordering: 1 point if it is new, and commits the group; else 0.
    /// Crash:    the object knows it or does not; durable on return.
    /// Errors:   limit_reached (object_options::callers), bad_argument (0).
    static result<caller> of(object<T> on, std::uint64_t id) {
        if (status s = detail::add_caller(on.internals(), id); !s.ok()) return s;
        return caller(on, id);
    }
    /// Forgets the caller and its results, which makes room for another one. If a call of this
    /// caller comes again, it looks like the call of a new caller.
    ///
    /// Ordering: 1 point.
    /// Crash:    the object knows it or does not; durable on return.
    /// Errors:   not_found.
    static status dismiss(object<T> on, std::uint64_t id) {
        return detail::dismiss(on.internals(), id);
    }

    /// The number of its last call that was made, which survives; 0 before the first. After a crash
    /// the caller repeats its calls behind that one.
    ///
    /// Ordering: 1 point if calls are pending, as it commits the group; else 0.
    /// Errors:   not_found: it was dismissed.
    result<std::uint64_t> last() const { return detail::last_of(on_.internals(), id_); }

    /// As object::defer, of its call `number`. The call is not made if its number is not greater
    /// than that of the last one.
    ///
    /// Crash:    lost, unless its group has been committed: its caller repeats all calls behind
    ///           last().
    template <auto F, class... Args> void defer(std::uint64_t number, Args&&... args) {
        defer_by<F>(
            [&](const detail::function& f, const std::uint64_t* words) {
                detail::defer_once(on_.internals(), f, {id_, number}, words);
            },
            std::forward<Args>(args)...);
    }
    /// As object::call, of its call `number`. Makes the call now, or, if it was made before,
    /// returns the answer that it had then. A const F is logged, too. Returns a `status` if F
    /// returns nothing, else a result<R>.
    ///
    /// Requires: no argument has padding, or its bytes are the same each time: they are compared.
    /// Ordering: 1 point. If the call was made before: 1 if calls are pending, else 0.
    /// Crash:    all of the group, this call and its kept result included, or none of it; durable
    ///           on return.
    /// Errors:   not_found: the call was made, and its result is no longer among those that are
    ///           kept (object_options::results), or it was a deferred one; or the caller was
    ///           dismissed. bad_argument: the call was made, and was a call of another function, or
    ///           with other arguments; or its result is larger than object_options::result_bytes.
    ///           Nothing is logged then.
    template <auto F, class... Args> auto call(std::uint64_t number, Args&&... args) {
        return call_in<F>(false, number, std::forward<Args>(args)...);
    }

private:
    template <class> friend class retraced;
    template <class> friend class remote; // share.hpp

    caller(object<T> on, std::uint64_t id) noexcept : on_(on), id_(id) {}
    template <auto F> static void check() {
        object<T>::template check_logged<F>();
        static_assert(detail::member_function<decltype(F)>::arguments::words + 2 <=
                          argument_words_max,
                      "the arguments of a call that may be repeated take at most 58 words of 8 "
                      "bytes");
    }
    template <auto F, class... Args>
    auto call_in(bool all, std::uint64_t number, Args&&... args) {
        return call_by<F>(
            [&](const detail::function& f, const std::uint64_t* words, std::uint64_t* kept) {
                return detail::call_once(on_.internals(), f, {id_, number}, words, all, kept);
            },
            std::forward<Args>(args)...);
    }
    /// Defers F by 'log', which gets the function and its arguments.
    template <auto F, class Log, class... Args> static auto defer_by(Log&& log, Args&&... args) {
        using traits = detail::member_function<decltype(F)>;
        check<F>();
        static_assert(std::is_void_v<returns<F>>,
                      "a deferred function returns nothing: use call for one that does");
        static_assert(!traits::is_const,
                      "a deferred function changes the object, and this one is const: use call");
        const auto words = traits::arguments::store(std::forward<Args>(args)...);
        return log(detail::registered<T, F>::entry, words.data());
    }
    /// Calls F by 'make', which gets the function, its arguments and room for its result.
    template <auto F, class Make, class... Args>
    static auto call_by(Make&& make, Args&&... args)
        -> std::conditional_t<std::is_void_v<returns<F>>, status, result<returns<F>>> {
        using traits = detail::member_function<decltype(F)>;
        using entry = detail::registered<T, F>;
        check<F>();
        static_assert(!detail::any_padded<typename traits::arguments>,
                      "arguments of a call that may be repeated are compared as bytes: none has "
                      "padding between its members");
        static_assert(
            entry::kept.has_value(),
            "a kept result has at most 512 bytes, of a trivially copyable type other than an "
            "address");
        const auto words = traits::arguments::store(std::forward<Args>(args)...);
        std::array<std::uint64_t, entry::kept.value_or(0) + std::size_t{1}> kept{};
        status s = make(entry::entry, words.data(), kept.data());
        if constexpr (std::is_void_v<returns<F>>) {
            return s;
        } else {
            if (!s.ok()) return s;
            const std::uint64_t* from = kept.data();
            return detail::packed<>::template load<returns<F>>(from);
        }
    }

    object<T> on_;
    std::uint64_t id_;
};

/// An object as one thread of a deterministic program uses it. After a crash the program runs again
/// from its beginning. Calls that survived are not made again, and return their earlier answers.
/// Behind the last of them the program goes on with new calls.
///
/// Requires: what a thread calls, and with which arguments, depends on its identity and on answers
///           from the objects, and on nothing else. If threads learn of each other through more
///           than one object, sync an object before another one shows what was deferred there.
/// Threads:  one. Each thread of the program has a handle of its own for each object, under the
///           same identity each time.
/// Source:   SIMPO §3.3.2, recovery of a deterministic application. Differs: src/simpo/README.md.
template <class T> class retraced {
public:
    /// The handle of the thread `identity`, at its program's beginning. Ordering, crash: as
    /// caller::of.
    ///
    /// Errors:   as caller::of and caller::last.
    static result<retraced> of(object<T> on, std::uint64_t identity) {
        auto found = caller<T>::of(on, identity);
        if (!found) return found.error();
        const auto last = found->last();
        if (!last) return last.error();
        return retraced(*found, *last);
    }
    /// Ends the program's run: the next run begins afresh. Ordering, crash: as caller::dismiss.
    ///
    /// Errors:   not_found.
    static status end(object<T> on, std::uint64_t identity) {
        return caller<T>::dismiss(on, identity);
    }

    /// As object::defer; does nothing if the call survived an earlier run.
    template <auto F, class... Args> void defer(Args&&... args) {
        if (++number_ > last_) by_.template defer<F>(number_, std::forward<Args>(args)...);
    }
    /// As object::call; if the call survived an earlier run, returns the answer that it had then.
    ///
    /// Errors:   limit_reached: the object keeps no more results of one run
    ///           (object_options::results). Nothing is logged, and the thread cannot go on.
    ///           bad_argument, not_found: as caller::call; the program is not deterministic.
    template <auto F, class... Args> auto call(Args&&... args) {
        return by_.template call_in<F>(true, ++number_, std::forward<Args>(args)...);
    }
    /// Whether the next call is new: no earlier run has made it.
    bool caught_up() const noexcept { return number_ >= last_; }

private:
    retraced(caller<T> by, std::uint64_t last) noexcept : by_(by), last_(last) {}
    caller<T> by_;
    std::uint64_t last_, number_ = 0;
};

} // namespace hf::simpo
