// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_beside: processes that read beside a writer (open_options::shared), and kills of readers, of
// the writer, of both, at moments drawn from a seed. test/attacks/kill/README.md
//
// The writer has a thread that gives all entries of a map the next number, in one update, and one
// that does so with a vector; it reclaims and closes at times. A reader finds the same number in
// all of a snapshot, no older than what was acknowledged before it took that; finds it again when
// it has kept the snapshot for a while; and has it still when the writer has been killed and
// another one has recovered the pool.
#include "beside_harness.hpp"

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/vector.hpp>

#include <cstdio>
#include <deque>
#include <thread>
#include <utility>

namespace {

using kill_test::broken;
using numbers = hf::mod::map<std::uint64_t, std::uint64_t>;
using row = hf::mod::vector<std::uint64_t>;

constexpr std::uint64_t entries = 100;
constexpr std::size_t kept_max = 4;

struct words {
    std::atomic<std::uint64_t> in_map, in_row; // acknowledged
    std::atomic<std::uint64_t> snapshots, checked_again;
};

template <class Version> std::uint64_t round_of(const Version& map) {
    std::uint64_t count = 0, round = 0;
    for (const auto& [key, value] : map) {
        if (count++ == 0) round = value;
        if (value != round) broken("an entry of a map's version", round, value);
    }
    if (count != entries || map.size() != entries)
        broken("entries of a map's version", entries, count);
    return round;
}
template <class Version> std::uint64_t round_of_row(const Version& list) {
    if (list.size() != entries) broken("elements of a vector's version", entries, list.size());
    for (std::uint64_t i = 0; i < entries; ++i)
        if (list[i] != list[0]) broken("an element of a vector's version", list[0], list[i]);
    return list[0];
}

void write_map(numbers& all, std::uint64_t round) {
    const hf::status done = all.update([&](auto& to) {
        for (std::uint64_t i = 0; i < entries; ++i) to.insert_or_assign(i, round);
    });
    if (!done.ok()) broken(done);
}
void write_row(row& list, std::uint64_t round) {
    const hf::status done = list.update([&](auto& to) {
        to.clear();
        for (std::uint64_t i = 0; i < entries; ++i) to.push_back(round);
    });
    if (!done.ok()) broken(done);
}

class beside final : public kill_test::beside_test {
public:
    beside() : beside_test({.pause_us = 12'000, .writers_kills = 4}) {}

private:
    hf::open_options options() const override {
        return {.layout = "beside/1", .engines = {hf::mod::engine()}};
    }
    void begin(std::uint64_t) override { words_.in_map = words_.in_row = 0; }
    void make(hf::pool& pool) override;
    void write(hf::pool& pool, std::mt19937_64& chance) override;
    void read(hf::pool& pool, std::mt19937_64& chance) override;
    bool is_whole(hf::pool& pool) override;
    bool say(std::uint64_t kills) const override;

    words& words_ = kill_test::shared_words<words>();
};

void beside::make(hf::pool& pool) {
    auto all = *numbers::open(pool, {"numbers"});
    auto list = *row::open(pool, {"row"});
    write_map(all, 0);
    write_row(list, 0);
}

void beside::write(hf::pool& pool, std::mt19937_64& chance) {
    auto all = *numbers::open(pool, {"numbers"});
    auto list = *row::open(pool, {"row"});
    std::atomic<bool> stop = false;
    std::thread other([&] { // one asks for readers while the other commits
        while (!stop) {
            const std::uint64_t round = words_.in_row + 1;
            write_row(list, round);
            words_.in_row = round;
        }
    });
    for (std::uint64_t until = chance() % 400 + 50; until-- > 0;) {
        const std::uint64_t round = words_.in_map + 1;
        write_map(all, round);
        words_.in_map = round;
        if (chance() % 50 == 0)
            if (hf::status s = hf::mod::store::in(pool).collect(); !s.ok()) broken(s);
    }
    stop = true;
    other.join();
}

void beside::read(hf::pool& pool, std::mt19937_64& chance) {
    const auto all = numbers::open(pool, {"numbers"});
    const auto list = row::open(pool, {"row"});
    if (!all) broken(all.error());
    if (!list) broken(list.error());
    std::deque<std::pair<numbers::version, std::uint64_t>> kept;
    const bool keeps = chance() % 2 == 0; // else nothing is held back between two snapshots
    for (std::uint64_t until = chance() % 3000; until-- > 0;) {
        const std::uint64_t least = words_.in_map, least_row = words_.in_row;
        const auto now = all->snapshot();
        const auto row_now = list->snapshot();
        const std::uint64_t round = round_of(now), also = round_of_row(row_now);
        ++words_.snapshots;
        if (round < least) broken("what was acknowledged, in a map", least, round);
        if (also < least_row) broken("what was acknowledged, in a vector", least_row, also);
        if (keeps && chance() % 16 == 0) kept.emplace_back(now, round);
        if (kept.size() <= kept_max) continue;
        if (const std::uint64_t still = round_of(kept.front().first); still != kept.front().second)
            broken("a version that was kept", kept.front().second, still);
        ++words_.checked_again;
        kept.pop_front();
    }
}

bool beside::is_whole(hf::pool& pool) {
    auto& store = hf::mod::store::in(pool);
    if (hf::status s = store.collect(); !s.ok()) broken(s);
    if (hf::status s = store.verify(); !s.ok()) broken(s);
    const auto expect = [](const char* what, std::uint64_t acknowledged, std::uint64_t found) {
        if (found < acknowledged || found > acknowledged + 1) broken(what, acknowledged, found);
    };
    expect("the round left in the map", words_.in_map,
           round_of(numbers::open(pool, {"numbers"})->snapshot()));
    expect("the round left in the vector", words_.in_row,
           round_of_row(row::open(pool, {"row"})->snapshot()));
    return store.account().retired == 0;
}

bool beside::say(std::uint64_t kills) const {
    std::printf("%llu snapshots, %llu versions kept and looked at again",
                static_cast<unsigned long long>(words_.snapshots),
                static_cast<unsigned long long>(words_.checked_again));
    return words_.snapshots > kills && words_.checked_again > 0;
}

} // namespace

int main(int argc, char** argv) { return beside().run(argc, argv); }
