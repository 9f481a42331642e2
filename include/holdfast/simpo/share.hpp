// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several processes write one persistent object.  docs/guide/simpo.md
//
//     auto here = hf::simpo::client::join(path, how, [](hf::pool& pool) { … });  // create objects
//     auto rows = hf::simpo::remote<row>::of(*here, "rows", 42);     // caller 42 of the object
//     auto total = rows->call<&row::take>(17, 10);      // its call 17; committed, and made once
//
// One process has the pool open, and serves it: a thread of that process makes the calls of all
// clients, through the objects' callers (caller.hpp). Calls of several clients end one group, and
// wait once. Another process reaches it through a socket beside the pool, POOL.socket, and a
// memory that it shares with the server alone.
//
// (1) A client has its answer when its call is committed.
// (2) Any process may be killed at any time. The next process opens the pool and serves it. A
//     client that repeats its calls, under their numbers, has each of them made once.
// (3) The server trusts nothing that a client stores. A client that stores what makes no sense gets
//     an error, and the others notice nothing.
#pragma once

#include <holdfast/simpo/caller.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hf::simpo {

struct serve_options {
    std::uint32_t clients = 64; // connections at a time, 1 to 1024
};

/// Serves the pool's objects to other processes of this user, until stop_serving() or the pool's
/// end. They call functions of classes that this program knows: those that it calls itself, and
/// those that it offers.
///
/// Requires: no object is destroyed or remade, and no library with its functions unloaded, while a
///           client uses it. A function checks what its arguments could break: they come from
///           outside.
/// Cost:     a thread, which spins for some microseconds before it sleeps; 36 KiB a client.
/// Errors:   exists: it is served already, or a file of another kind has the name POOL.socket;
///           bad_argument (clients; a pool without a file; a file name of more than 80 bytes),
///           permission (the pool is open read-only; POOL.socket is another user's), not_found (the
///           pool's file was renamed or removed), missing_engine, in_use, io_error.
status serve(pool& in, const serve_options& how = {});
/// Ends that; its clients' connections end. Errors: not_found: it is not served; missing_engine.
status stop_serving(pool& in);

/// Functions of T that clients may call, if this program calls them nowhere else.
template <class T, auto... F> void offer() noexcept { ((void)detail::registered<T, F>::done, ...); }

namespace detail {

class connection; // src/simpo/client.cpp
struct end_connection {
    void operator()(connection* which) const noexcept;
};
using connection_pointer = std::unique_ptr<connection, end_connection>;
result<connection_pointer> connect(const std::string& path);
result<std::uint64_t> attach(connection& over, std::string_view name, const class_shape& what,
                             std::uint64_t id);
result<std::uint64_t> last_of(connection& over, std::uint64_t on);
status defer_once(connection& over, const function& f, std::uint64_t on, std::uint64_t number,
                  const std::uint64_t* arguments);
status call_once(connection& over, const function& f, std::uint64_t on, std::uint64_t number,
                 const std::uint64_t* arguments, std::uint64_t* result);

} // namespace detail

/// A connection to the process that serves a pool.
///
/// Threads:  one at a time, with its handles; a thread may have a client of its own.
class client {
public:
    /// Errors:   not_found: no process serves the file at 'path'; permission: another user does, or
    ///           has left its socket there; limit_reached (serve_options::clients); bad_argument (the length of the file's
    ///           name); wrong_version (another build's protocol); io_error.
    static result<client> connect(const std::string& path);
    /// Connects. If no process serves the pool, opens it here with 'how', calls 'prepare', which
    /// creates the objects that are not there, and serves it. Then it is served as long as this
    /// client lives.
    ///
    /// Errors:   as connect, pool::open, 'prepare' and serve; in_use: a process has the pool, and
    ///           has not begun to serve it within some seconds.
    static result<client> join(const std::string& path, const open_options& how,
                               const std::function<status(pool&)>& prepare = {});

    /// The pool, if this process serves it for this client; else null.
    hf::pool* pool() const noexcept { return pool_.get(); }
    detail::connection& internals() const noexcept { return *over_; }

private:
    explicit client(detail::connection_pointer over) noexcept : over_(std::move(over)) {}
    std::unique_ptr<hf::pool> pool_;
    detail::connection_pointer over_; // ends first
};

/// A handle on an object of another process, as one caller uses it. Calls, numbers, results and
/// repetitions: as of caller<T>.
///
/// Requires: the client lives. No other connection has this caller.
/// Threads:  as its client.
/// Source:   SIMPO §3.4.1, objects that processes share. Differs: src/simpo/README.md.
template <class T> class remote {
    static_assert(persistent_class<T>);

public:
    /// The caller `id` of the object. An object that does not know it learns of it now. All handles
    /// of one client on one caller are the same.
    ///
    /// Ordering, crash: as caller::of.
    /// Errors:   as object::find and caller::of; in_use: another connection has this caller;
    ///           limit_reached: more than 64 handles of one client; io_error, as of call.
    static result<remote> of(client& over, std::string_view name, std::uint64_t id) {
        auto on = detail::attach(over.internals(), name,
                                 {T::simpo_class.text, T::simpo_class.version, sizeof(T)}, id);
        if (!on) return on.error();
        return remote(over.internals(), *on);
    }

    /// As caller::last. Errors: as call.
    result<std::uint64_t> last() const { return detail::last_of(*over_, on_); }

    /// As caller::defer, and does not wait for the server, unless 64 calls are on their way.
    ///
    /// Crash:    lost, if any process of the two ends, also cleanly, unless a later call() or last()
    ///           of this client has had its answer.
    /// Errors:   io_error: the server has ended. What the server refuses, it says at this client's
    ///           next call, and makes no call of the client behind the refused one.
    template <auto F, class... Args> status defer(std::uint64_t number, Args&&... args) {
        return caller<T>::template defer_by<F>(
            [&](const detail::function& f, const std::uint64_t* words) {
                return detail::defer_once(*over_, f, on_, number, words);
            },
            std::forward<Args>(args)...);
    }
    /// As caller::call. The calls of all clients that wait at that moment end one group.
    ///
    /// Ordering: 1 point, with the other clients'.
    /// Crash:    when it has returned a result, the call survives.
    /// Errors:   as caller::call; function_changed: the server's program has no such function;
    ///           io_error: the server has ended, and may have made the call: join again, and repeat
    ///           this client's calls behind last(), or this one.
    template <auto F, class... Args> auto call(std::uint64_t number, Args&&... args) {
        return caller<T>::template call_by<F>(
            [&](const detail::function& f, const std::uint64_t* words, std::uint64_t* kept) {
                return detail::call_once(*over_, f, on_, number, words, kept);
            },
            std::forward<Args>(args)...);
    }

private:
    remote(detail::connection& over, std::uint64_t on) noexcept : over_(&over), on_(on) {}
    detail::connection* over_;
    std::uint64_t on_;
};

} // namespace hf::simpo
