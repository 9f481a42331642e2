// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: several processes call one object, each call is made once though any of them ends, and
// nothing that a client stores in what it shares with the server hurts anybody. Method: clients in
// this process and in others, which are killed; requests of any bytes in a ring.
// test/attacks/kill/shared_main.cpp kills at moments that nobody chooses.
#include <pool/other_process.hpp>
#include <simpo/ring.hpp>
#include <simpo/test_support.hpp>

#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/share.hpp>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <random>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::simpo {
namespace {

using hf::test::other_process;
using u64 = std::uint64_t;

/// Tickets, and how many each has had.
class desk {
public:
    static constexpr class_name simpo_class{"desk", 1};
    void pass(u64 who) noexcept { count(who); }
    void pass_wide(u64 who, std::array<u64, 40> all) noexcept { count(who), check_ += all[39]; }
    u64 draw(u64 who) noexcept { return count(who), given_; }
    bool flip(bool up) noexcept { return std::exchange(up_, up); }
    void clear() noexcept { *this = {}; }
    std::array<u64, 64> wide() noexcept { return {given_}; }
    u64 given() const noexcept { return given_; }
    u64 of(u64 who) const noexcept { return each_[who % each_.size()]; }
    bool whole() const noexcept {
        u64 sum = 0;
        for (const u64 n : each_) sum += n;
        return sum == given_;
    }

private:
    void count(u64 who) noexcept { ++each_[who % each_.size()], ++given_; }
    std::array<u64, 64> each_{};
    u64 given_ = 0, check_ = 0;
    bool up_ = false;
};

/// As large, and of the same version.
class other_desk {
public:
    static constexpr class_name simpo_class{"other desk", 1};
    u64 break_it(u64 by) noexcept { return words_[0] = by; }

private:
    std::array<u64, sizeof(desk) / 8> words_{};
};
static_assert(sizeof(other_desk) == sizeof(desk));

constexpr object_options for_eight{.callers = 8, .results = 2, .result_bytes = 16};

class SimpoShare : public test::PoolTest {
protected:
    SimpoShare() {
        offer<other_desk, &other_desk::break_it>();
        offer<desk, &desk::flip>();
    }
    void open() {
        in.open();
        if (!object<desk>::find(in.pool(), "it")) (void)in.make<desk>(for_eight);
    }
    void open_and_serve() {
        open();
        const status s = serve(in.pool());
        ASSERT_TRUE(s.ok()) << s.what();
    }
    client connect() {
        auto made = client::connect(in.path());
        if (!made) fatal("%s", made.error().what().c_str());
        return std::move(*made);
    }
    static remote<desk> as(client& over, u64 id) {
        auto made = remote<desk>::of(over, "it", id);
        if (!made) fatal("%s", made.error().what().c_str());
        return *made;
    }
    template <class T> static std::string refused(const result<T>& made) {
        return made ? "" : std::string(name(made.error().code()));
    }
    u64 given() { return in.get<desk>().call<&desk::given>(); }
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoShare, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoShare, AClientCallsAsACallerDoes) {
    open_and_serve();
    client over = connect();
    auto r = as(over, 7);
    EXPECT_EQ(*r.last(), 0U);
    EXPECT_EQ(*r.call<&desk::draw>(1, 5U), 1U);
    EXPECT_EQ(*r.call<&desk::draw>(1, 5U), 1U) << "made once";
    for (u64 n = 2; n < 202; ++n) {
        ASSERT_TRUE(r.defer<&desk::pass>(n, 6U).ok());
        ASSERT_TRUE(r.defer<&desk::pass_wide>(n, 6U, (std::array<u64, 40>{n})).ok())
            << "not made: its number is not greater";
    }
    EXPECT_EQ(*r.call<&desk::of>(300, 6U), 200U);
    EXPECT_EQ(*r.last(), 300U);
    EXPECT_EQ(given(), 201U);
    EXPECT_EQ(*r.call<&desk::flip>(301, true), false);
    EXPECT_EQ(*r.call<&desk::flip>(302, true), true);
    EXPECT_EQ(refused(r.call<&desk::draw>(1, 5U)), "not_found") << "two results are kept";
    EXPECT_EQ(refused(r.call<&desk::flip>(302, false)), "bad_argument") << "another argument";
    EXPECT_EQ(refused(r.call<&desk::wide>(303)), "bad_argument") << "a large result";
    ASSERT_TRUE(r.call<&desk::clear>(304).ok());
    EXPECT_EQ(given(), 0U);
    in.crash();
    EXPECT_EQ(given(), 0U);
    EXPECT_EQ(*caller<desk>::of(in.get<desk>(), 7)->last(), 304U);
    EXPECT_EQ(name(r.call<&desk::clear>(305).code()), "io_error") << "the server has ended";
}

TEST_P(SimpoShare, OneGroupHasTheCallsOfAll) {
    open();
    auto on = in.get<desk>();
    for (const u64 id : {1U, 2U, 3U, 4U}) ASSERT_TRUE(caller<desk>::of(on, id));
    const auto& draw = detail::registered<desk, &desk::draw>::entry;
    (void)detail::registered<desk, &desk::draw>::done;
    const u64 who = 9;
    std::array<u64, 5> tickets{};
    std::array<detail::one_call, 5> calls;
    for (u64 i = 0; i < 5; ++i)
        calls[i] = {&draw, {i == 4 ? 99 : i + 1, 1}, &who, &tickets[i], false, {}};
    const u64 before = persist::thread_counters().ordering_points;
    on.internals().call_all_once(calls);
    EXPECT_EQ(persist::thread_counters().ordering_points - before, 1U);
    EXPECT_EQ(tickets, (std::array<u64, 5>{1, 2, 3, 4, 0}));
    EXPECT_EQ(name(calls[4].said.code()), "not_found") << "an unknown caller stops no other one";
    calls[4].said = {};
    on.internals().call_all_once(calls);
    EXPECT_EQ(tickets, (std::array<u64, 5>{1, 2, 3, 4, 0}));
    in.crash();
    EXPECT_EQ(given(), 4U);
}

TEST_P(SimpoShare, AGroupIsAsLongAsTheLogHasRoom) {
    in.open();
    auto on = in.make<desk>(object_options{.log_bytes = 1_KiB, .callers = 100});
    for (u64 id = 1; id <= 100; ++id) ASSERT_TRUE(caller<desk>::of(on, id));
    const auto& draw = detail::registered<desk, &desk::draw>::entry;
    std::array<u64, 100> tickets{};
    std::vector<detail::one_call> calls;
    const u64 who = 9;
    for (u64 i = 0; i < 100; ++i)
        calls.push_back({&draw, {i + 1, 1}, &who, &tickets[i], false, {}});
    on.internals().call_all_once(calls);
    for (u64 i = 0; i < 100; ++i) EXPECT_EQ(tickets[i], i + 1) << calls[i].said.what();
    in.crash();
    EXPECT_EQ(given(), 100U);
    for (u64 id = 1; id <= 100; ++id)
        EXPECT_EQ(*caller<desk>::of(in.get<desk>(), id)->call<&desk::draw>(1, who), id);
}

TEST_P(SimpoShare, ProcessesCallAtOnce) {
    open_and_serve();
    constexpr u64 calls = 3000;
    std::vector<std::unique_ptr<other_process>> all;
    for (u64 id = 1; id <= 3; ++id)
        all.push_back(std::make_unique<other_process>([&, id](char) {
            client over = connect();
            auto r = as(over, id);
            u64 last = 0;
            for (u64 n = 1; n <= calls; ++n) {
                if (n % 3 != 0) {
                    if (!r.defer<&desk::pass>(n, id).ok()) return false;
                    continue;
                }
                const auto ticket = r.call<&desk::draw>(n, id);
                if (!ticket || *ticket < last + 3) return false; // his own three at least
                last = *ticket;
            }
            return true;
        }));
    std::vector<std::thread> ask;
    for (auto& each : all) ask.emplace_back([&] { EXPECT_TRUE(each->do_it('c')); });
    auto mine = caller<desk>::of(in.get<desk>(), 8); // and the server's own threads
    for (u64 n = 1; n <= calls; ++n) EXPECT_TRUE(mine->call<&desk::draw>(n, 8U));
    for (auto& each : ask) each.join();
    while (!all.empty()) all.pop_back(); // the later ones hold the earlier ones' channels
    EXPECT_EQ(given(), 4 * calls);
    for (u64 id = 1; id <= 3; ++id) EXPECT_EQ(in.get<desk>().call<&desk::of>(id), calls);
}

TEST_P(SimpoShare, ACallerIsOfOneConnection) {
    open_and_serve();
    std::optional<client> over;
    other_process first([&](char) {
        over = connect();
        auto r = as(*over, 3);
        return r.defer<&desk::pass>(1, 3U).ok() && r.call<&desk::draw>(2, 3U);
    });
    ASSERT_TRUE(first.do_it('c'));
    client mine = connect();
    EXPECT_EQ(refused(remote<desk>::of(mine, "it", 3)), "in_use");
    EXPECT_EQ(*as(mine, 4).call<&desk::draw>(1, 3U), 3U);
    EXPECT_EQ(*as(mine, 4).call<&desk::draw>(1, 3U), 3U) << "the connection that has it";
    first.kill();
    auto r = as(mine, 3);
    EXPECT_EQ(*r.last(), 2U);
    EXPECT_EQ(*r.call<&desk::draw>(2, 3U), 2U);
    EXPECT_EQ(*r.call<&desk::draw>(3, 3U), 4U);
}

status prepare(hf::pool& pool) {
    auto found = object<desk>::find(pool, "it");
    if (!found) found = object<desk>::create(pool, "it", for_eight);
    return found ? status{} : found.error();
}

TEST_P(SimpoShare, TheNextOneServes) {
    std::optional<client> over;
    const auto does = [&](char) {
        auto made = client::join(in.path(), in.how, prepare);
        if (!made) return false;
        over = std::move(*made);
        return true;
    };
    other_process first(does);
    ASSERT_TRUE(first.do_it('j'));
    auto mine = client::join(in.path(), in.how, prepare);
    ASSERT_TRUE(mine) << mine.error().what();
    EXPECT_EQ(mine->pool(), nullptr);
    auto r = as(*mine, 1);
    EXPECT_EQ(*r.call<&desk::draw>(1, 1U), 1U);
    ASSERT_TRUE(r.defer<&desk::pass>(2, 1U).ok());
    EXPECT_EQ(*r.call<&desk::draw>(3, 1U), 3U);
    first.kill();
    EXPECT_EQ(refused(r.call<&desk::draw>(4, 1U)), "io_error");
    EXPECT_EQ(refused(client::connect(in.path())), "not_found");
    mine = client::join(in.path(), in.how, prepare);
    ASSERT_TRUE(mine) << mine.error().what();
    ASSERT_NE(mine->pool(), nullptr);
    auto again = as(*mine, 1);
    EXPECT_EQ(*again.last(), 3U);
    EXPECT_EQ(*again.call<&desk::draw>(3, 1U), 3U) << "its answer";
    EXPECT_EQ(*again.call<&desk::draw>(4, 1U), 4U);
    std::optional<result<client>> next;
    other_process third([&](char) { // it is killed without a goodbye
        next = client::connect(in.path());
        return bool(*next) && as(**next, 2).call<&desk::draw>(1, 2U);
    });
    ASSERT_TRUE(third.do_it('c'));
    third.kill();
    EXPECT_EQ(*again.call<&desk::draw>(5, 1U), 6U);
}

TEST_P(SimpoShare, ErrorsSayWhatIsWrong) {
    EXPECT_EQ(refused(client::connect(in.path())), "not_found");
    open();
    EXPECT_EQ(name(stop_serving(in.pool()).code()), "not_found");
    EXPECT_EQ(name(serve(in.pool(), {.clients = 0}).code()), "bad_argument");
    const std::string socket = in.path() + ".socket";
    std::ofstream(socket) << "mine";
    EXPECT_EQ(name(serve(in.pool()).code()), "exists");
    EXPECT_EQ(std::filesystem::file_size(socket), 4U);
    EXPECT_EQ(refused(client::connect(in.path())), "not_found");
    std::filesystem::remove(socket);
    ASSERT_TRUE(serve(in.pool(), {.clients = 2}).ok());
    EXPECT_EQ(name(serve(in.pool()).code()), "exists");
    struct stat is{};
    ASSERT_EQ(::stat(socket.c_str(), &is), 0);
    EXPECT_EQ(is.st_mode & 0777, 0600U);
    client one = connect(), two = connect();
    EXPECT_EQ(refused(client::connect(in.path())), "limit_reached");
    EXPECT_EQ(refused(remote<desk>::of(one, "that", 1)), "not_found");
    EXPECT_EQ(refused(remote<desk>::of(one, "", 1)), "bad_argument");
    EXPECT_EQ(refused(remote<desk>::of(one, std::string(64, 'a'), 1)), "bad_argument");
    EXPECT_EQ(refused(remote<desk>::of(one, std::string_view("it\0x", 4), 1)), "bad_argument");
    EXPECT_EQ(refused(remote<other_desk>::of(one, "it", 1)), "wrong_layout");
    EXPECT_EQ(refused(remote<desk>::of(one, "it", 0)), "bad_argument");
    for (u64 id = 1; id <= 8; ++id) (void)as(one, id);
    EXPECT_EQ(refused(remote<desk>::of(one, "it", 9)), "limit_reached");
    for (u64 more = 8; more < 64; ++more) {
        const std::string name = std::to_string(more);
        ASSERT_TRUE(object<desk>::create(in.pool(), name, for_eight));
        ASSERT_TRUE(remote<desk>::of(one, name, 1));
    }
    EXPECT_EQ(refused(remote<desk>::of(two, "it", 1)), "in_use");
    EXPECT_EQ(refused(remote<desk>::of(one, "8", 2)), "limit_reached") << "handles";
    ASSERT_TRUE(stop_serving(in.pool()).ok());
    EXPECT_FALSE(std::filesystem::exists(socket));
    in.how.read_only = true;
    in.open();
    EXPECT_EQ(name(serve(in.pool()).code()), "permission");
    EXPECT_EQ(refused(client::connect("/dev/shm/no such directory/pool.hf")), "not_found");
    EXPECT_EQ(refused(client::connect("/dev/shm/" + std::string(90, 'p'))), "bad_argument");
}

TEST_P(SimpoShare, AnObjectThatHasEndedIsGone) {
    open_and_serve();
    client over = connect();
    auto r = as(over, 1);
    ASSERT_TRUE(object<desk>::destroy(in.pool(), "it").ok());
    EXPECT_EQ(refused(r.call<&desk::draw>(1, 1U)), "not_found");
    const auto defers = [&] { // a refused call's answer makes room, too
        for (u64 n = 2; n < 3 * ring_requests; ++n)
            if (!r.defer<&desk::pass>(n, 1U).ok()) return false;
        return refused(r.call<&desk::draw>(1000, 1U)) == "not_found";
    };
    auto all = std::async(std::launch::async, defers);
    EXPECT_EQ(all.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_TRUE(stop_serving(in.pool()).ok()); // lets one go that waits
    EXPECT_TRUE(all.get());
}

TEST_P(SimpoShare, AClientReachesTheFileAtItsPath) {
    const std::string path = in.path(), moved = path + ".moved";
    open_and_serve();
    client first = connect();
    auto r = as(first, 1);
    EXPECT_EQ(*r.call<&desk::draw>(1, 1U), 1U);
    std::filesystem::rename(path, moved);
    EXPECT_EQ(refused(client::connect(path)), "not_found") << "another file's server";
    EXPECT_EQ(*r.call<&desk::draw>(2, 1U), 2U) << "a connection stays";
    std::optional<client> made;
    other_process next([&](char) {
        auto here = client::join(path, in.how, prepare);
        if (here) made = std::move(*here);
        return made && made->pool() != nullptr;
    });
    ASSERT_TRUE(next.do_it('j'));
    ASSERT_TRUE(stop_serving(in.pool()).ok());
    EXPECT_EQ(name(serve(in.pool()).code()), "not_found") << "its name is another file's";
    in.close();
    EXPECT_EQ(*as(first = connect(), 1).last(), 0U) << "the new pool";
    std::filesystem::rename(moved, path);
    EXPECT_EQ(refused(client::connect(path)), "not_found");
    open_and_serve();
    first = connect();
    EXPECT_EQ(*as(first, 1).last(), 2U);
}

TEST_P(SimpoShare, ALinkLeadsToTheServer) {
    const std::string link = in.path() + ".link";
    std::filesystem::create_symlink("pool.hf", link);
    open_and_serve();
    EXPECT_EQ(refused(client::connect(link)), "");
    in.close();
    in.how.expert.follow_symlinks = true;
    auto here = hf::pool::open(link, in.how);
    ASSERT_TRUE(here) << here.error().what();
    ASSERT_TRUE(serve(*here).ok());
    EXPECT_EQ(refused(client::connect(in.path())), "");
    EXPECT_EQ(refused(client::connect(link)), "");
}

TEST_P(SimpoShare, AGuardedPoolIsServed) {
    open();
    ASSERT_TRUE(caller<desk>::of(in.get<desk>(), 1));
    in.close();
    in.how.expert.guard_marks = true; // calls fault, and the guard handles that
    other_process server([&](char) {
        open();
        return serve(in.pool()).ok();
    });
    ASSERT_TRUE(server.do_it('s'));
    client over = connect();
    auto r = as(over, 1);
    for (u64 n = 1; n <= 20; ++n) ASSERT_EQ(refused(r.call<&desk::draw>(n, 1U)), "") << n;
}

TEST_P(SimpoShare, AnotherUsersSocketIsInTheWay) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root leaves a socket as another user";
    const auto directory = std::filesystem::path(in.path()).parent_path();
    ASSERT_EQ(::chmod(directory.c_str(), 01777), 0);
    other_process roots([&](char) {
        open();
        return serve(in.pool()).ok();
    });
    ASSERT_TRUE(roots.do_it('s'));
    roots.kill();
    ASSERT_EQ(::chown(in.path().c_str(), 65534, 65534), 0);
    other_process others([&](char order) {
        if (order == 'u') return ::setuid(65534) == 0;
        if (order == 'c') {
            auto over = client::connect(in.path());
            return !over && over.error().code() == errc::permission &&
                   over.error().what().find("found one of user 0") != std::string::npos;
        }
        open();
        const status s = serve(in.pool());
        return s.code() == errc::permission &&
               s.what().find("found one of user 0") != std::string::npos;
    });
    ASSERT_TRUE(others.do_it('u'));
    EXPECT_TRUE(others.do_it('c'));
    EXPECT_TRUE(others.do_it('s'));
}

TEST_P(SimpoShare, WithoutDescriptorsTheServerRests) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    other_process server([&](char order) {
        if (order == 's') {
            open();
            return serve(in.pool()).ok();
        }
        if (order == 'l') { // no further descriptor
            const int next = ::dup(STDIN_FILENO);
            ::close(next);
            const rlimit few{static_cast<rlim_t>(next), before.rlim_max};
            return next > 0 && ::setrlimit(RLIMIT_NOFILE, &few) == 0;
        }
        if (order == 'm') return ::setrlimit(RLIMIT_NOFILE, &before) == 0;
        const std::clock_t start = std::clock(); // of this process's threads
        ::usleep(500'000);
        return std::clock() - start < CLOCKS_PER_SEC / 10;
    });
    ASSERT_TRUE(server.do_it('s'));
    ASSERT_TRUE(server.do_it('l'));
    auto where = socket_name::of(in.path());
    ASSERT_TRUE(where);
    auto waits = own_socket::of([] { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    ASSERT_EQ(::connect(waits.get(), where->address(), socket_name::address_bytes), 0);
    EXPECT_TRUE(server.do_it('t')) << "it tries all the time";
    ASSERT_TRUE(server.do_it('m'));
    greeting said{};
    EXPECT_EQ(::recv(waits.get(), &said, sizeof said, 0), ssize_t{sizeof said});
}

TEST_P(SimpoShare, AChildOfForkHasNoPart) {
    open_and_serve();
    std::optional<client> over;
    over = connect();
    auto r = as(*over, 1);
    EXPECT_TRUE(r.call<&desk::draw>(1, 1U));
    other_process child([&](char) { // it lives on, and keeps no end of the sockets
        return refused(r.call<&desk::draw>(2, 1U)) == "in_use";
    });
    EXPECT_TRUE(child.do_it('c'));
    over.reset();
    over = connect();
    r = as(*over, 1);
    EXPECT_EQ(*r.call<&desk::draw>(2, 1U), 2U);
    ASSERT_TRUE(stop_serving(in.pool()).ok());
    EXPECT_EQ(refused(r.call<&desk::draw>(3, 1U)), "io_error");
}

// What a client may store.

/// A connection whose requests are made by hand.
class by_hand {
public:
    explicit by_hand(client over) : over_(std::move(over)), shared_(shared_of(over_.internals())) {}
    segment& shared() { return shared_; }
    request& next() { return next_; }
    void post() {
        const std::size_t at = turn_ % ring_requests;
        request_line& line = shared_.ring[at];
        std::memcpy(line.head, &next_, sizeof line.head);
        std::memcpy(line.arguments, next_.arguments, sizeof line.arguments);
        std::memcpy(shared_.more[at], next_.arguments, sizeof next_.arguments);
        line.turn.store(++turn_, std::memory_order_release);
        wake();
    }
    /// The server looks.
    void wake() {
        shared_.server_sleeps = 1;
        wake_server(over_.internals());
    }
    /// The code of the answer.
    std::string answer() {
        while (shared_.said.turn.load(std::memory_order_acquire) != turn_) ::sched_yield();
        return std::string(name(static_cast<errc>(shared_.said.code)));
    }
    void attach(u64 id) {
        attachment a{id, 1, sizeof(desk), "it", "desk"};
        request& r = next();
        std::memcpy(r.arguments, &a, sizeof a);
        r.words = sizeof a / 8;
        r.kind = std::uint8_t(request_kind::attach);
        post();
    }
    template <class T, auto F> void call(u64 number, u64 argument) {
        const auto& f = detail::registered<T, F>::entry;
        next() = {number, f.id,      f.schema, f.version, f.words, std::uint8_t(request_kind::call),
                  0,      {argument}};
    }

private:
    client over_;
    segment& shared_;
    u64 turn_ = 0;
    request next_{};
};

TEST_P(SimpoShare, WhatMakesNoSenseIsRefused) {
    open_and_serve();
    client good = connect();
    auto r = as(good, 1);
    u64 n = 0;
    const auto refused_alone = [&](const char* expected, auto&& spoil) {
        by_hand bad(connect());
        bad.attach(2);
        ASSERT_EQ(bad.answer(), "ok");
        bad.call<desk, &desk::draw>(++n, 2);
        spoil(bad.next());
        const bool deferred = bad.next().kind == std::uint8_t(request_kind::defer);
        bad.post();
        if (!deferred) {
            EXPECT_EQ(bad.answer(), expected);
        }
        bad.call<desk, &desk::draw>(++n, 2);
        bad.post();
        EXPECT_EQ(bad.answer(), expected) << "for good";
        EXPECT_EQ(*r.call<&desk::draw>(++n, 1U), given()) << "the other one goes on";
    };
    using byte = std::uint8_t;
    for (const byte kind : {byte{0}, byte{5}, byte{255}})
        refused_alone("corrupt", [&](request& q) { q.kind = kind; });
    for (const u64 handle : {u64{1}, u64{64}, ~u64{0}})
        refused_alone("corrupt", [&](request& q) { q.handle = handle; });
    for (const byte words : {byte{59}, byte{255}})
        refused_alone("corrupt", [&](request& q) { q.words = words; });
    for (const byte words : {byte{0}, byte{2}, byte{58}})
        refused_alone("function_changed", [&](request& q) { q.words = words; });
    refused_alone("function_changed", [&](request& q) { ++q.function; });
    refused_alone("function_changed", [&](request& q) { ++q.schema; });
    refused_alone("function_changed", [&](request& q) { ++q.version; });
    refused_alone("function_changed", [&](request& q) {
        ++q.version;
        q.kind = std::uint8_t(request_kind::defer);
    });
    refused_alone("function_changed", [&](request& q) { // as large, and of another class
        q.function = detail::registered<other_desk, &other_desk::break_it>::entry.id;
    });
    refused_alone("corrupt", [&](request& q) {
        const auto& flip = detail::registered<desk, &desk::flip>::entry;
        q.function = flip.id, q.schema = flip.schema, q.version = flip.version;
        q.arguments[0] = 2; // no bool
    });
    refused_alone("corrupt", [&](request& q) { // names without an end
        q.kind = std::uint8_t(request_kind::attach);
        q.words = sizeof(attachment) / 8;
        std::memset(q.arguments, 'x', sizeof(attachment));
    });
    EXPECT_TRUE(in.get<desk>().call<&desk::whole>());
    EXPECT_EQ(in.get<desk>().call<&desk::of>(2U), 0U);
}

TEST_P(SimpoShare, AnyBytesHurtNobodyElse) {
    open_and_serve();
    client good = connect();
    auto r = as(good, 1);
    u64 n = 0;
    constexpr unsigned seed = 20260129;
    std::mt19937_64 chance(seed);
    SCOPED_TRACE(seed);
    for (int round = 0; round < 16; ++round) {
        by_hand bad(connect());
        bad.attach(2);
        ASSERT_EQ(bad.answer(), "ok");
        auto* const bytes = reinterpret_cast<unsigned char*>(&bad.shared());
        std::jthread spoils([&, seed_here = chance()](const std::stop_token& stop) {
            std::mt19937_64 here(seed_here);
            while (!stop.stop_requested()) { // while the server reads
                for (std::size_t i = 0; i < 50; ++i) {
                    auto& line = bad.shared().ring[here() % ring_requests];
                    const u64 how = here() % 4;
                    const auto any = static_cast<std::byte>(here());
                    if (how == 0) line.head[offsetof(request, words)] = any;
                    else if (how == 1) line.head[offsetof(request, kind)] = any & std::byte{7};
                    else if (how == 2) line.turn = here() % 200;
                    else bytes[here() % sizeof(segment)] = static_cast<unsigned char>(here());
                }
                bad.wake();
            }
        });
        for (int i = 0; i < 20; ++i) {
            bad.call<desk, &desk::draw>(static_cast<u64>(i) + 1, 2);
            bad.post();
            const auto ticket = r.call<&desk::draw>(++n, 1U);
            ASSERT_TRUE(ticket) << ticket.error().what();
        }
    }
    auto on = in.get<desk>();
    EXPECT_EQ(on.call<&desk::of>(1U) >= n, true);
    EXPECT_EQ(*r.last(), n);
    in.open();
    EXPECT_EQ(*caller<desk>::of(in.get<desk>(), 1)->last(), n);
}

} // namespace
} // namespace hf::simpo
