// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JUSTDO logging without the compiler plugin: the interface of the paper.  JUSTDO §6, Figs. 4-6
// docs/guide/justdo.md
//
// A *routine* is a type that names its arguments, locals and returns, and whose run() holds one
// failure-atomic section, from its first lock to its last unlock, written out step by step:
//
//     static void run(hf::justdo::object& jd, const arguments& given, const locals& my, returns&
//     out) {
//         HF_JUSTDO_BEGIN(jd);
//         HF_JUSTDO_STEP(lock(given.from->lock));
//         HF_JUSTDO_STEP(store(&given.from->balance, given.from->balance - given.amount));
//         HF_JUSTDO_STEP(unlock(given.from->lock));
//         HF_JUSTDO_END;
//         out.success = true;
//     }
//
// After a crash the next open calls run() again, which jumps behind its last step. So:
//
// (1) What one step leaves for a later one is in the pool, in 'given' or in 'my'. These lie in the
//     thread's frame in the pool; 'given' is a copy, and 'my' begins as zeros. Both are const: in a
//     section only steps change them. A variable of the function's own is lost. C++ refuses one
//     that is initialised between two steps of one block, because a jump would bypass it.
// (2) Code between two steps may run again: it only loads, computes, and fills blocks that run()
//     has just allocated (object::written). Code before HF_JUSTDO_BEGIN runs again, too.
// (3) Code behind the last unlock does not run again after a crash: 'out' serves the caller alone.
// (4) 'name' and 'version' identify the routine of a frame for the next process. Give a routine
//     whose text has changed another version: its points are numbered by its lines. A build with
//     another version refuses the pool while such a section is pending.
//
// The paper's words: jd_root is root, jd_obj is object, jd_lock, jd_store and jd_unlock are steps,
// set_locs<Locals>() is 'locals', JD_ROUTINE_ON_ENTRY is HF_JUSTDO_BEGIN, and recover() is
// pool::open. Differs: arguments are copied by the library, locals are const, so that forgetting
// either does not compile; a section may span calls of other routines (HF_JUSTDO_CALL).
#pragma once

#include <holdfast/abi/justdo_abi.h>
#include <holdfast/lock.hpp>
#include <holdfast/result.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

namespace hf {

class pool;

namespace justdo {

class object;

namespace detail {

/// Ends the process: the routine breaks the interface's rules.
[[noreturn]] void broken_routine(const char* name, const char* what) noexcept;

/// The part of a routine's call that is in the pool.
template <class Routine> struct alignas(16) frame {
    typename Routine::arguments given;
    typename Routine::locals local;
};

constexpr std::uint64_t hash(const char* text, std::uint64_t from = 0xcbf29ce484222325ULL) {
    for (; *text != 0; ++text) from = (from ^ static_cast<unsigned char>(*text)) * 0x100000001b3ULL;
    return from;
}
/// Compilers differ in how they count the lines of a step that spans several.
constexpr std::uint64_t compiler_kind =
#if defined(__clang__)
    1;
#else
    2;
#endif

template <class Routine> struct registered;

} // namespace detail

/// One thread's handle. It runs routines; inside of one, it makes the routine's steps.
///
/// Steps: each is written as HF_JUSTDO_STEP(step), changes nothing but the pool, and is done when
///        it returns. A crash behind it does not repeat it. After a crash before it, run() resumes
///        and does it.
/// Cost:  an entry of 24 bytes and the program counter. Modes process and eADR: no ordering point
///        that waits; pmem: one ordering point, and the lines written.
/// Threads: used by the thread that made it.
class object {
public:
    /// Runs the routine, to its end. 'given' may lie anywhere.
    ///
    /// Ordering: the sum of its steps'.
    /// Crash:    before its first lock nothing of it survives; after that all of it does.
    /// Errors:   none: if a routine breaks the rules, or finds no room for its frame, the process
    ///           ends with a message.
    /// Source:   JUSTDO §6.3. Differs: arguments and returns have types.
    template <class Routine>
    typename Routine::returns call(const typename Routine::arguments& given) {
        (void)detail::registered<Routine>::done;
        return run_routine<Routine>(pool_, &given);
    }

    /// Steps. Take a lock of the pool; the first one begins the section.
    void lock(shared_mutex& which) { lock(&which, HF_JUSTDO_EXCLUSIVE); }
    void lock_shared(shared_mutex& which) { lock(&which, HF_JUSTDO_SHARED); }
    /// Steps. Release a lock: everything so far is durable by then. The last one ends the section.
    void unlock(shared_mutex& which) { unlock(&which, HF_JUSTDO_EXCLUSIVE); }
    void unlock_shared(shared_mutex& which) { unlock(&which, HF_JUSTDO_SHARED); }
    /// The same for locks of the application's own (hf_justdo_register_lock).
    void lock(void* which, std::uint32_t kind) { hf_justdo_lock(which, kind, take_point()); }
    void unlock(void* which, std::uint32_t kind) { hf_justdo_unlock(which, kind, take_point()); }

    /// Step. Stores a value of 1, 2, 4 or 8 bytes in the pool.
    template <class T> void store(T* to, std::type_identity_t<T> value) {
        static_assert(
            std::is_trivially_copyable_v<T> && sizeof(T) <= 8 && std::has_single_bit(sizeof(T)),
            "a step stores 1, 2, 4 or 8 bytes: copy() takes more, from memory of the pool");
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof value);
        hf_justdo_store(to, word, sizeof(T), take_point());
    }
    /// Step. Changes one of the routine's locals.
    template <class T> void set(const T& local, std::type_identity_t<T> value) {
        require_local(&local, sizeof local);
        store(const_cast<T*>(&local), value);
    }
    /// Step. As memmove, within the pool.
    template <class T> void copy(T* to, const T* from, std::size_t count = 1) {
        static_assert(std::is_trivially_copyable_v<T>);
        hf_justdo_copy(to, from, count * sizeof(T), take_point());
    }
    /// Step. As memset.
    void fill(void* to, int byte, std::size_t bytes) {
        hf_justdo_fill(to, byte, bytes, take_point());
    }
    /// Step. Allocates 'count' T and stores their address in a local; null when the pool is full.
    template <class T> void allocate(T* const& local, std::size_t count = 1) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
        require_local(&local, sizeof local);
        const std::size_t bytes =
            count > ~std::size_t{0} / sizeof(T) ? ~std::size_t{0} : count * sizeof(T);
        hf_justdo_alloc(bytes, reinterpret_cast<void**>(const_cast<T**>(&local)), take_point());
    }
    /// Step. Frees a block; null does nothing.
    void free(void* block) { hf_justdo_free(block, take_point()); }

    /// No step. Says that a block that the routine has allocated, and that nobody else can reach
    /// yet, has been filled: durable before the next step.
    template <class T> void written(const T* fresh, std::size_t count = 1) {
        hf_justdo_note(fresh, count * sizeof(T));
    }

    // For the macros below.
    /// Where run() goes on; 0: it begins.
    std::uint32_t resumed_at() const noexcept { return resumed_; }
    object& go_on_at(std::uint32_t point) noexcept { return point_ = point, *this; }
    void calls_at(std::uint32_t point) noexcept { hf_justdo_call(point); }
    [[noreturn]] void no_such_point() const noexcept {
        detail::broken_routine(name_,
                               "has no such point: its text has changed, and its version has not");
    }

private:
    friend class root;
    template <class Routine> friend struct detail::registered;

    explicit object(const void* pool) noexcept : pool_(pool) {}
    object(const void* pool, const char* name, const void* frame, std::size_t bytes,
           std::uint32_t resumed) noexcept
        : pool_(pool), name_(name), frame_(frame), frame_bytes_(bytes), resumed_(resumed) {}

    template <class Routine>
    static typename Routine::returns run_routine(const void* pool,
                                                 const typename Routine::arguments* given) {
        using frame = detail::frame<Routine>;
        std::uint32_t at = 0;
        void* const place = hf_justdo_enter(&detail::registered<Routine>::function, pool, &at);
        auto* const mine = std::launder(static_cast<frame*>(place));
        if (at == 0) {
            ::new (place) frame{*given, {}};
            hf_justdo_note(place, sizeof(frame));
        }
        object jd(pool, Routine::name, place, sizeof(frame), at);
        typename Routine::returns out{};
        Routine::run(jd, static_cast<const typename Routine::arguments&>(mine->given),
                     static_cast<const typename Routine::locals&>(mine->local), out);
        hf_justdo_leave();
        return out;
    }

    std::uint32_t take_point() noexcept {
        if (point_ == 0) detail::broken_routine(name_, "makes a step outside of HF_JUSTDO_STEP");
        const std::uint32_t point = point_;
        point_ = 0;
        return point;
    }
    void require_local(const void* at, std::size_t bytes) const noexcept {
        const auto from = reinterpret_cast<std::uintptr_t>(frame_);
        const auto to = reinterpret_cast<std::uintptr_t>(at);
        if (to < from || to + bytes > from + frame_bytes_)
            detail::broken_routine(name_, "sets an object that is not one of its locals");
    }

    const void* pool_;
    const char* name_ = "no routine";
    const void* frame_ = nullptr;
    std::size_t frame_bytes_ = 0;
    std::uint32_t resumed_ = 0;
    std::uint32_t point_ = 0; // behind the step that is being made
};

/// Engine justdo of an open pool, for this interface: makes objects. Pending sections were
/// recovered when the pool was opened.
///
/// Source: JUSTDO §6.1. Differs: it is no object of the pool; the pool itself keeps the list of
///         threads.
class root {
public:
    /// Errors: missing_engine if the pool was opened without hf::justdo::engine(); permission if it
    ///         is open read-only.
    static result<root> in(pool& where);

    /// An object for the calling thread; its first call makes the thread's log and frames.
    ///
    /// Ordering: a few points, once a thread.
    /// Errors:   pool_full, limit_reached.
    result<object> new_object() const;

private:
    explicit root(pool& in) noexcept : pool_(&in) {}
    pool* pool_;
};

namespace detail {

template <class Routine> struct registered {
    static_assert(std::is_trivially_copyable_v<typename Routine::arguments> &&
                      std::is_trivially_copyable_v<typename Routine::locals>,
                  "arguments and locals lie in the pool as bytes");
    static_assert(sizeof(frame<Routine>) <= HF_JUSTDO_FRAME_BYTES_MAX,
                  "arguments and locals take more than a frame: keep large ones in the pool");

    static void resume() { object::run_routine<Routine>(nullptr, nullptr); }
    static constexpr std::uint64_t version() {
        constexpr std::uint64_t prime = 0x100000001b3ULL;
        return (((Routine::version * prime + sizeof(typename Routine::arguments)) * prime +
                 sizeof(frame<Routine>)) *
                prime) ^
               compiler_kind;
    }
    static inline const hf_justdo_function function{HF_ABI_VERSION,
                                                    sizeof(frame<Routine>),
                                                    hash(Routine::name, hash("routine ")),
                                                    version(),
                                                    Routine::name,
                                                    "a routine",
                                                    HF_JUSTDO_POINT_MAX,
                                                    0,
                                                    resume,
                                                    nullptr};
    static inline const bool done = (hf_justdo_register(&function), true);
};

} // namespace detail
} // namespace justdo
} // namespace hf

/// First in run(): resumes where the section was cut short.
#define HF_JUSTDO_BEGIN(jd)                                                                        \
    constexpr std::uint32_t hf_jd_line = __LINE__;                                                 \
    ::hf::justdo::object& hf_jd = (jd);                                                            \
    switch (hf_jd.resumed_at()) {                                                                  \
    default: hf_jd.no_such_point();                                                                \
    case 0: (void)0
/// One step of the object: HF_JUSTDO_STEP(store(&a->x, 1)). At most one a line. It is one
/// statement, also in a loop or a branch without braces; a resumed section leaves it as any other.
#define HF_JUSTDO_STEP(...)                                                                        \
    do {                                                                                           \
        hf_jd.go_on_at(__LINE__ - hf_jd_line).__VA_ARGS__;                                         \
        [[fallthrough]];                                                                           \
    case __LINE__ - hf_jd_line:;                                                                   \
    } while (false)
/// A statement that calls another routine, in the section or before it:
/// HF_JUSTDO_CALL(jd.call<add>({a})). While that routine runs, this one resumes at the call.
#define HF_JUSTDO_CALL(...)                                                                        \
    do {                                                                                           \
        hf_jd.calls_at(__LINE__ - hf_jd_line);                                                     \
        [[fallthrough]];                                                                           \
    case __LINE__ - hf_jd_line: __VA_ARGS__;                                                       \
    } while (false)
/// Behind the last unlock.
#define HF_JUSTDO_END                                                                              \
    }                                                                                              \
    (void)0
