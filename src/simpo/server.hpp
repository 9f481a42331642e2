// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Serves the objects of an open pool to other processes.  SIMPO §3.4.1, objects that are shared
//
// (1) One thread makes the calls of all clients. In each round it copies what they have posted, up
//     to each one's first call that has an answer; then it makes those calls, those of an object in
//     one group. What a client posts behind a call comes in a later round.
// (2) A client that posts what cannot be a request, or defers what cannot be made, gets that error
//     for an answer, then and ever after: no call behind a refused one is made.
// (3) A caller of an object belongs to one connection. When its process has ended, nothing is taken
//     from that one's ring any more; only then another one gets the caller.
// (4) Whatever lies in a client's memory is copied once, into 'now' (ring.hpp, 2).
#pragma once

#include <simpo/core.hpp>
#include <simpo/ring.hpp>

#include <holdfast/simpo/share.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hf::simpo {

class objects;

class server {
public:
    /// Errors: as hf::simpo::serve. Throws std::bad_alloc.
    static result<std::unique_ptr<server>> start(objects& of, const pool_file& file,
                                                 const serve_options& how);
    ~server();
    server(const server&) = delete;

private:
    static constexpr std::size_t handles_max = 64; // of a client
    static constexpr std::size_t known_functions = 8;
    struct handle {
        detail::core* of;
        std::uint64_t caller;
        object_head shape{}; // version and size of its class, alone
        std::string class_text;
        std::array<const detail::function*, known_functions> known{};
    };
    struct unmap {
        void operator()(segment* which) const noexcept;
    };
    struct connected {
        own_socket socket;
        std::unique_ptr<segment, unmap> shared;
        std::uint64_t taken = 0;    // the turn of 'now'
        std::uint64_t answered = 0; // of the last answer
        request now{};
        std::vector<handle> handles;
        const detail::function* calls = nullptr; // the call that 'now' asks for; null: nothing
        std::array<std::uint64_t, result_words_max> result{};
        status refused; // ok, or the answer to everything (2)
        bool gone = false;
        bool worked = false; // in this round

        bool waits() const noexcept {
            const auto& place = shared->ring[taken % ring_requests];
            return place.turn.load(std::memory_order_acquire) == taken + 1;
        }
    };

    server(objects& of, const pool_file& file, const serve_options& how, socket_name name);
    status listen();
    void run();
    bool look(int timeout_ms);
    void say_sleeps(bool sleeps);
    bool anybody_waits() const noexcept;
    void accept_one();
    bool serve_round();
    void take_requests(connected& from);
    bool take_request(connected& from);
    bool attach(connected& from);
    bool last(connected& from);
    bool is_taken(const detail::core* of, std::uint64_t caller);
    result<const detail::function*> function_of(handle& on, const request& r) const;
    status make_usable(detail::core& of) const;
    void make_calls();
    void make_calls(detail::core& of);
    status malformed(const char* what) const;
    void refuse(connected& whom, status why);
    static void say(connected& to, const status& how, const std::uint64_t* words = nullptr,
                    std::uint32_t count = 0);

    objects* of_;
    const pool_file* file_;
    serve_options how_;
    socket_name name_;
    own_socket listening_, stopped_; // stopped_: the thread shall end
    bool rests_ = false;             // it could accept no client, and waits before it tries again
    file_place socket_{}, pool_{};   // what it has bound; what it serves
    std::vector<std::unique_ptr<connected>> clients_;
    std::vector<detail::one_call> group_; // of one object
    std::vector<connected*> whose_;
    std::thread thread_;
};

} // namespace hf::simpo
