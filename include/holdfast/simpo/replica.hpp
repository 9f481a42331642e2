// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One object in the pools of several machines: its calls go through a stream, and each pool makes
// all of them.  SIMPO §3.3.1  docs/guide/replication.md
//
//     hf::simpo::redis_stream stream("127.0.0.1", 6379, "accounts"); // holdfast/simpo/redis.hpp
//     auto mine = hf::simpo::replica<accounts>::open(pool, "all", stream);
//     for (;;) {
//         auto leads = mine->step(100ms);             // makes the calls of another leader
//         if (leads && *leads) answer(mine->call<&accounts::add>(7U, 100));
//     }
//
// (1) A call is in the stream before any pool has it, the leader's included.
// (2) A position is an epoch and a number in it. The stream takes none that is not greater than its
//     last one. A leader begins with the first position of the next epoch, and numbers its calls
//     from a random number on: if the stream is lost, no position of another one is the same.
// (3) A pool makes the calls of the stream in their order, each once. Its position is part of the
//     call's own record in the object's log.
// (4) Each entry names the call before it. A replica that lacks that one refuses to go on.
// (5) A leader adds an entry only behind the last one that it has seen; the stream compares that in
//     the same step. So it leads no longer when another one does, whatever it believes, nor when
//     the stream has lost an entry.
#pragma once

#include <holdfast/simpo.hpp>

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hf::simpo {

/// A place in a stream. Epochs count from 1, to 2^24. A leader begins with number 0. Its calls
/// count from a random number of at most 2^39 on, to 2^40.
struct stream_position {
    std::uint64_t epoch = 0, number = 0;
    auto operator<=>(const stream_position&) const = default;
};

/// A log that outlives its readers and writers, as hf::simpo::redis_stream. One replica uses it,
/// one thread at a time.
class call_stream {
public:
    struct entry {
        stream_position at;
        std::string call; // number 0: that a leader begins
    };
    virtual ~call_stream() = default;
    /// Keeps an entry at this position, if the stream's last one is at `behind`: compares and keeps
    /// in one step. False: the last one is another, and the stream stays as it was.
    /// Errors: whether it has the entry is not known.
    virtual result<bool> append(stream_position at, std::string_view call,
                                stream_position behind) = 0;
    /// Entries behind this position, at most so many. Waits for the first one.
    virtual result<std::vector<entry>> read(stream_position after, std::size_t most,
                                            std::chrono::milliseconds wait) = 0;
    /// The last entry's position, also where that one is trimmed; {0, 0}: there was none.
    virtual result<stream_position> last() = 0;
    /// Notes, for as long, that the leader of this epoch is alive.
    virtual status keep_lease(std::uint64_t epoch, std::chrono::milliseconds length) = 0;
    virtual result<bool> has_lease(std::uint64_t epoch) = 0;
};

struct replica_options {
    /// How long a leader may be silent before another replica takes over. Too short a time costs
    /// changes of leaders, and no call.
    std::chrono::milliseconds lease{2000};
    /// What an object that is made gets, and room for one more caller: the stream.
    object_options object{.result_bytes = 64};
};

namespace detail {
class replication; // src/simpo/replica.cpp
std::shared_ptr<replication> replicate(core& on, call_stream& through, const replica_options& how,
                                       std::uint64_t last);
result<std::uint64_t> last_in_stream(core& on);
status leave_stream(core& on);
result<bool> step(replication& of, std::chrono::milliseconds wait);
bool leads(const replication& of) noexcept;
status call_through(replication& of, const function& f, const std::uint64_t* arguments,
                    std::uint64_t* result);
status confirm(replication& of);
} // namespace detail

/// An object as one replica of it. Copies are handles on the same one.
///
/// Requires: the stream outlives it; other code changes the object in no pool.
/// Threads:  any, at once.
template <class T> class replica {
    template <auto F> using returns = typename detail::member_function<decltype(F)>::returns;

public:
    /// The object of this name, or a new one, T(args...). It follows.
    ///
    /// Errors:   as object::find and object::create; limit_reached: it was made without room for a
    ///           caller (object_options::callers).
    template <class... Args>
    static result<replica> open(pool& in, std::string_view name, call_stream& through,
                                const replica_options& how = {}, const Args&... args) {
        auto found = object<T>::find(in, name);
        if (!found && found.error().code() == errc::not_found) {
            object_options its = how.object;
            ++its.callers;
            found = object<T>::create(in, name, its, args...);
        }
        if (!found) return found.error();
        auto last = detail::last_in_stream(found->internals());
        if (!last) return last.error();
        return replica(*found, detail::replicate(found->internals(), through, how, *last));
    }

    /// The object of this name belongs to no stream any more: its state begins another one. Needed
    /// where the stream was lost. The pools of the others are made from a copy of this one.
    ///
    /// Requires: no replica of the object is open.
    /// Ordering: 1 point.
    /// Errors:   as object::find.
    static status leave(pool& in, std::string_view name) {
        auto found = object<T>::find(in, name);
        return found ? detail::leave_stream(found->internals()) : found.error();
    }

    /// Call it again and again. A follower makes the calls that have come, or waits for one. If the
    /// leader is silent it takes over, and has made all calls of the stream when it does. A leader
    /// notes that it is alive, and returns at once. Returns whether this one leads.
    ///
    /// Cost:     one question to the stream, two more when nothing has come.
    /// Ordering: 1 point, if calls have come.
    /// Errors:   conflict: the stream does not have the call behind this pool's last one, is
    ///           trimmed beyond it, or ends before it. Make this pool from a copy of another one.
    ///           function_changed, wrong_layout, corrupt: of a call that this build cannot make.
    ///           Those of the stream; step() again. After an error it follows.
    result<bool> step(std::chrono::milliseconds wait) { return detail::step(*of_, wait); }
    /// What step() has returned, if no call was refused since.
    bool leads() const noexcept { return detail::leads(*of_); }

    /// Puts the call of F into the stream, makes it here, and returns its result: a `status` if F
    /// returns nothing, else a result<R>.
    ///
    /// Ordering: 1 point, behind the stream's answer.
    /// Crash:    durable in the stream and in this pool on return. Killed before that, it is in the
    ///           stream or not; then each replica makes it, or none does.
    /// Errors:   conflict: this one does not lead, or the stream does not end where it left it; the
    ///           call is not made.
    ///           bad_argument: its result is larger than object_options::result_bytes; not made.
    ///           Those of the stream: whether it is made is not known here, and this one follows.
    template <auto F, class... Args> auto call(Args&&... args) {
        using traits = detail::member_function<decltype(F)>;
        using entry = detail::registered<T, F>;
        object<T>::template check_logged<F>();
        static_assert(traits::arguments::words + 2 <= argument_words_max,
                      "the arguments of a replicated call take at most 58 words of 8 bytes");
        static_assert(entry::kept.has_value(),
                      "a replicated call returns at most 512 bytes, of a trivially copyable type "
                      "other than an address");
        const auto words = traits::arguments::store(std::forward<Args>(args)...);
        std::array<std::uint64_t, entry::kept.value_or(0) + std::size_t{1}> kept{};
        status s = detail::call_through(*of_, entry::entry, words.data(), kept.data());
        if constexpr (std::is_void_v<returns<F>>) {
            return s;
        } else {
            if (!s.ok()) return result<returns<F>>(std::move(s));
            const std::uint64_t* from = kept.data();
            return result<returns<F>>(detail::packed<>::template load<returns<F>>(from));
        }
    }
    /// Makes the const call of F, if this one leads: with each call that any leader has answered
    /// before. A follower's local() asks nobody, and may be late.
    ///
    /// Cost:     one question to the stream.
    /// Errors:   conflict: it does not lead. Those of the stream.
    template <auto F, class... Args> result<returns<F>> read(Args&&... args) {
        static_assert(detail::member_function<decltype(F)>::is_const,
                      "this function changes the object: use call");
        if (status s = detail::confirm(*of_); !s.ok()) return s;
        return on_.template call<F>(std::forward<Args>(args)...);
    }
    /// The object in this pool. Only const functions are called here.
    object<T> local() const noexcept { return on_; }

private:
    replica(object<T> on, std::shared_ptr<detail::replication> of) noexcept
        : on_(on), of_(std::move(of)) {}

    object<T> on_;
    std::shared_ptr<detail::replication> of_;
};

} // namespace hf::simpo
