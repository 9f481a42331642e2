// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accounts in the pools of several processes: docs/guide/replication.md
//
// usage: example_simpo_replica POOL REDIS-PORT STREAM [LEASE-MS]
//
// Reads lines 'ID add CLIENT NUMBER AMOUNT' and 'ID total'. It answers 'ID ok RESULT', 'ID no'
// where it does not lead, or 'ID lost' where it cannot know. 'ID state' asks what this replica has.
// [include]
#include <holdfast/simpo/redis.hpp>
#include <holdfast/simpo/replica.hpp>
// [/include]

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <poll.h>
#include <sstream>
#include <string>
#include <unistd.h>

using namespace std::chrono_literals;

// [class]
class accounts {
public:
    static constexpr hf::simpo::class_name simpo_class{"accounts", 1};

    std::int64_t add(std::uint32_t client, std::uint64_t number, std::int64_t amount) noexcept {
        asked& its = clients_[client % clients_.size()];
        ++calls_;
        if (number > its.number) {                 // else its answer was lost, and it asks again
            total_ += amount;
            trace_ = trace_ * 31 + static_cast<std::uint64_t>(amount);
            its = {number, total_};
        }
        return its.answer;
    }
    std::int64_t total() const noexcept { return total_; }
    std::uint64_t calls() const noexcept { return calls_; }
    std::uint64_t trace() const noexcept { return trace_; }

private:
    struct asked {
        std::uint64_t number = 0;
        std::int64_t answer = 0;
    };
    std::array<asked, 64> clients_{};
    std::int64_t total_ = 0;
    std::uint64_t calls_ = 0, trace_ = 0;
};
// [/class]

namespace {

int fail(const hf::status& why) {
    std::fprintf(stderr, "%s\n", why.what().c_str());
    return 1;
}

using replica = hf::simpo::replica<accounts>;

/// One line's answer.
std::string answer(replica& mine, const std::string& line) {
    std::istringstream words(line);
    std::string id, what;
    std::uint32_t client = 0;
    std::uint64_t number = 0;
    std::int64_t amount = 0;
    words >> id >> what >> client >> number >> amount;
    if (what == "state") {
        auto local = mine.local();
        return id + " ok " + std::to_string(local.call<&accounts::total>()) + " " +
               std::to_string(local.call<&accounts::calls>()) + " " +
               std::to_string(local.call<&accounts::trace>()) + " " +
               (mine.leads() ? "leads" : "follows");
    }
    // [call]
    const auto result = what == "add" ? mine.call<&accounts::add>(client, number, amount)
                                      : mine.read<&accounts::total>();
    if (result) return id + " ok " + std::to_string(*result);
    return id + (result.error().code() == hf::errc::conflict ? " no" : " lost");
    // [/call]
}

/// Lines of the standard input as far as they are there; false: it has ended.
bool serve(replica& mine) {
    static std::string rest;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (::poll(&input, 1, mine.leads() ? 20 : 0) > 0) {
        std::array<char, 4096> some{};
        const ssize_t got = ::read(STDIN_FILENO, some.data(), some.size());
        if (got <= 0) return false;
        rest.append(some.data(), static_cast<std::size_t>(got));
        std::size_t end = 0;
        while ((end = rest.find('\n')) != std::string::npos) {
            std::cout << answer(mine, rest.substr(0, end)) << std::endl;
            rest.erase(0, end + 1);
        }
        if (auto leads = mine.step(0ms); !leads) std::cerr << leads.error().what() << "\n";
    }
    return true;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s POOL REDIS-PORT STREAM [LEASE-MS]\n", argv[0]);
        return 2;
    }
    const std::chrono::milliseconds lease(argc > 4 ? std::atoi(argv[4]) : 2000);
    // [open]
    std::signal(SIGPIPE, SIG_IGN);
    auto pool = hf::pool::open(argv[1], {.layout = "accounts/1", .engines = {hf::simpo::engine()}});
    if (!pool) return fail(pool.error());
    hf::simpo::redis_stream stream("127.0.0.1", std::atoi(argv[2]), argv[3]);
    auto mine = replica::open(*pool, "all", stream, {.lease = lease});
    if (!mine) return fail(mine.error());
    // [/open]
    // [loop]
    while (serve(*mine)) {                     // answers what clients have asked
        const auto leads = mine->step(20ms);   // makes the calls of another leader, or takes over
        if (leads) continue;
        std::cerr << leads.error().what() << "\n";
        if (leads.error().code() != hf::errc::io_error) return 1; // not the stream's, which may come back
        ::usleep(20'000);
    }
    // [/loop]
}
