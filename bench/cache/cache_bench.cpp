// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cache_bench [SOCKET]: what gets and puts of mod::cache cost, beside an exact LRU of the standard
// library behind one lock, which forgets all when it ends, and, if the socket of a memcached is
// given, beside that: memcached -s SOCKET -m 64.
//
// Each has room for a quarter of the keys; keys are chosen as Zipf's law says, and what is missing
// is put. Prints the median of five rounds, in nanoseconds of this thread's processor time, but of
// memcached in passing time; and the share of hits.
#include <holdfast/mod/cache.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

using namespace hf;
using namespace hf::literals;
using u64 = std::uint64_t;

constexpr u64 keys = 100'000, requests = 200'000, rounds = 5;
constexpr std::size_t value_bytes = 100;

class exact_lru {
public:
    explicit exact_lru(u64 entries) : entries_(entries) {}
    std::optional<std::string> get(const std::string& key) {
        const std::scoped_lock held{lock_};
        const auto found = places_.find(key);
        if (found == places_.end()) return {};
        order_.splice(order_.end(), order_, found->second);
        return found->second->second;
    }
    void put(const std::string& key, const std::string& value) {
        const std::scoped_lock held{lock_};
        if (const auto found = places_.find(key); found != places_.end()) {
            order_.splice(order_.end(), order_, found->second);
            found->second->second = value;
            return;
        }
        if (places_.size() == entries_) {
            places_.erase(order_.front().first);
            order_.pop_front();
        }
        places_[key] = order_.insert(order_.end(), {key, value});
    }

private:
    u64 entries_;
    std::mutex lock_;
    std::list<std::pair<std::string, std::string>> order_;
    std::unordered_map<std::string, std::list<std::pair<std::string, std::string>>::iterator>
        places_;
};

class memcached {
public:
    explicit memcached(const char* path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::strncpy(at.sun_path, path, sizeof at.sun_path - 1);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
            std::perror(path), std::exit(1);
    }
    memcached(memcached&&) = delete;
    ~memcached() { ::close(socket_); }
    std::optional<std::string> get(const std::string& key) {
        send("get " + key + "\r\n");
        const std::string answer = received("END\r\n");
        const auto line = answer.find("\r\n");
        if (!answer.starts_with("VALUE")) return {};
        return answer.substr(line + 2, answer.size() - line - 2 - std::strlen("\r\nEND\r\n"));
    }
    void put(const std::string& key, const std::string& value) {
        send("set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n");
        (void)received("STORED\r\n");
    }

private:
    void send(const std::string& text) {
        if (::send(socket_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
            std::perror("send"), std::exit(1);
    }
    std::string received(std::string_view end) {
        std::string all;
        char part[4096];
        while (!all.ends_with(end)) {
            const auto bytes = ::recv(socket_, part, sizeof part, 0);
            if (bytes <= 0) std::perror("recv"), std::exit(1);
            all.append(part, static_cast<std::size_t>(bytes));
        }
        return all;
    }
    int socket_;
};

/// Holdfast's, with the same face.
class ours {
public:
    ours(const char* path, hf::mode mode, u64 entries)
        : pool_(opened(path, mode)), cache_(made(pool_, entries)) {}
    std::optional<std::string> get(const std::string& key) { return cache_.get(key); }
    void put(const std::string& key, const std::string& value) {
        if (const status kept = cache_.put(key, value); !kept.ok())
            std::puts(kept.what().c_str()), std::exit(1);
    }

private:
    static pool opened(const char* path, hf::mode mode) {
        open_options how;
        how.layout = "cache bench/1";
        how.mode = mode;
        how.creation = create::always_new;
        how.create_bytes = 64_MiB;
        how.engines = {mod::engine()};
        auto found = pool::open(path, how);
        if (!found) std::puts(found.error().what().c_str()), std::exit(1);
        return *std::move(found);
    }
    static mod::cache made(const pool& in, u64 entries) {
        auto found =
            mod::cache::open(in, "cache", {.max_bytes = entries * 160}); // of 8 + 100 bytes
        if (!found) std::puts(found.error().what().c_str()), std::exit(1);
        return *found;
    }
    pool pool_;
    mod::cache cache_;
};

double median(std::vector<double> of) {
    std::ranges::sort(of);
    return of[of.size() / 2];
}

double now_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <class Cache>
void measure(const char* name, Cache& cache, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
    std::vector<double> sums(keys);
    double sum = 0;
    for (u64 i = 0; i < keys; ++i) sums[i] = sum += std::pow(static_cast<double>(i + 1), -0.99);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> to(0, sum);
    const auto key_of = [](u64 n) { return std::to_string(10'000'000 + n); };
    const std::string value(value_bytes, 'v');
    std::vector<std::string> wanted(requests);
    for (auto& key : wanted)
        key = key_of(static_cast<u64>(std::ranges::upper_bound(sums, to(random)) - sums.begin()));
    u64 hits = 0, asked = 0;
    std::vector<double> get_ns, put_ns;
    const auto timed = [clock](std::vector<double>& into, auto&& each, const auto& all) {
        const double from = now_ns(clock);
        for (const auto& key : all) each(key);
        into.push_back((now_ns(clock) - from) / static_cast<double>(all.size()));
    };
    for (u64 round = 0; round < rounds; ++round) {
        for (const auto& key : wanted) {
            const bool hit = cache.get(key).has_value();
            if (round > 0) hits += hit, ++asked;
            if (!hit) cache.put(key, value);
        }
        timed(get_ns, [&](const auto& key) { (void)cache.get(key); }, wanted);
        std::vector<std::string> fresh;
        for (u64 i = 0; i < keys / 4; ++i) fresh.push_back(key_of(keys * (round + 2) + i));
        timed(put_ns, [&](const auto& key) { cache.put(key, value); }, fresh); // each evicts
    }
    std::printf("%-22s get %6.0f ns   put that evicts %6.0f ns   hits %4.1f %%\n", name,
                median(get_ns), median(put_ns),
                100 * static_cast<double>(hits) / static_cast<double>(asked));
}

} // namespace

int main(int argc, char** argv) {
    const char* folder = std::getenv("TMPDIR");
    const std::string path = std::string(folder != nullptr ? folder : "/dev/shm") +
                             "/cache_bench." + std::to_string(::getpid());
    for (const auto mode : {hf::mode::process, hf::mode::pmem}) {
        ours cache(path.c_str(), mode, keys / 4);
        ::unlink(path.c_str());
        measure(mode == hf::mode::process ? "mod::cache, process" : "mod::cache, pmem", cache);
    }
    exact_lru exact(keys / 4);
    measure("std:: LRU, volatile", exact);
    if (argc < 2) return 0;
    memcached other(argv[1]);
    measure("memcached, socket", other, CLOCK_MONOTONIC);
}
