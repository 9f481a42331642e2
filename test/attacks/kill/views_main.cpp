// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kill_views: processes that look at persistent objects beside a writer (simpo::view), and kills of
// readers, of the writer, of both, at moments drawn from a seed. test/attacks/kill/README.md
//
// The writer defers, commits and checkpoints as fast as it can, by two threads on one object and by
// one on another, whose groups are of four calls. Their logs are so short that they go round all
// the time. Besides, an object is made, destroyed and made again, while readers look for it. For a
// reader the cells of each object add up, groups are whole, nothing is older than what was
// acknowledged before it looked, and nothing is less than it has seen. What any reader has seen is
// still there when another writer follows one that was killed.
#include "beside_harness.hpp"

#include <holdfast/author/mod/store.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/table.hpp>
#include <holdfast/simpo/view.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <sched.h>
#include <thread>

namespace {

using namespace hf::literals;
using kill_test::broken;
using kill_test::u64;

constexpr unsigned group = 4;

/// Cells that add up to the sum of what was added.
class ledger {
public:
    static constexpr hf::simpo::class_name simpo_class{"ledger", 1};
    void add(u64 n) noexcept {
        cells_[count_ % cells_.size()] += n;
        count_ += 1;
        sum_ += n;
    }
    void add_wide(std::array<u64, 20> all) noexcept { add(all[19]); } // a record of several lines
    u64 add_and_count(u64 n) noexcept { return add(n), count_; }
    u64 count() const noexcept { return count_; }
    bool adds_up() const noexcept {
        u64 all = 0;
        for (const u64 c : cells_) all += c;
        return all == sum_;
    }

private:
    std::array<u64, 1500> cells_{};
    u64 sum_ = 0, count_ = 0;
};
using object = hf::simpo::object<ledger>;
using view = hf::simpo::view<ledger>;

struct words {
    std::array<std::atomic<u64>, 2> told,
        seen; // counts: acknowledged to the writer; found by a reader
    std::atomic<u64> looks, changed, overtaken, others;
};
constexpr const char* names[] = {"by two", "by one"};

void raise(std::atomic<u64>& word, u64 to) {
    for (u64 was = word; was < to && !word.compare_exchange_weak(was, to);) {}
}

class views final : public kill_test::beside_test {
public:
    views() : beside_test({.pause_us = 40'000, .writers_kills = 5}) {}

private:
    hf::open_options options() const override;
    void begin(u64 number) override;
    void make(hf::pool& pool) override;
    void settle_in(bool reads) override {
        if (apart_) keep_apart(reads);
    }
    void write(hf::pool& pool, std::mt19937_64& chance) override;
    void read(hf::pool& pool, std::mt19937_64& chance) override;
    bool is_whole(hf::pool& pool) override;
    bool say(u64 kills) const override;

    static void keep_apart(bool reads);
    void change_another(hf::pool& pool, std::mt19937_64& chance) const;
    void look_at(unsigned which, view& at, u64& count, u64& version);
    void look_at_another(hf::pool& pool);

    u64 log_bytes_ = 1_KiB;
    bool apart_ = false, with_mod_ = false;
    words& words_ = kill_test::shared_words<words>();
};

hf::open_options views::options() const {
    hf::open_options how;
    how.layout = "views/1";
    how.engines = {hf::simpo::engine()};
    if (with_mod_) how.engines.push_back(hf::mod::engine());
    return how;
}

void views::begin(u64 number) {
    log_bytes_ = number % 4 < 2 ? 1_KiB : 64_KiB;
    apart_ = number % 8 < 4;
    with_mod_ = number % 3 == 1; // which says that a pool may be read, too
    for (const unsigned which : {0U, 1U}) words_.told[which] = words_.seen[which] = 0;
}

void views::make(hf::pool& pool) {
    for (const char* name : names)
        if (auto made = object::create(pool, name, hf::simpo::object_options{log_bytes_}); !made)
            broken(made.error());
}

/// The object of readers that looks for one in vain, finds it, and another one in its place.
void views::change_another(hf::pool& pool, std::mt19937_64& chance) const {
    const hf::simpo::object_options how{log_bytes_};
    if (chance() % 3 == 0) (void)hf::simpo::drop(pool, "another");
    else if (chance() % 3 == 0)
        (void)hf::simpo::remake<ledger, ledger>(pool, "another", how,
                                                [](const ledger& was) { return was; });
    else (void)object::create(pool, "another", how);
    auto found = object::find(pool, "another");
    for (u64 n = chance() % 40; found && n > 0; --n) found->defer<&ledger::add>(n);
    if (found) found->sync();
}

void views::write(hf::pool& pool, std::mt19937_64& chance) {
    auto by_two = object::find(pool, names[0]), by_one = object::find(pool, names[1]);
    if (!by_two || !by_one) broken("objects that were made", 2, 0);
    std::atomic<bool> stop = false;
    std::thread other([&] {
        for (u64 n = 0; !stop; ++n) {
            by_two->defer<&ledger::add>(n);
            if (n % 7 == 0) raise(words_.told[0], by_two->call<&ledger::add_and_count>(n));
            if (n % 1000 == 0) by_two->checkpoint();
        }
    });
    for (u64 until = chance() % 20'000 + 1000; until-- > 0;) {
        by_two->defer<&ledger::add_wide>(std::array<u64, 20>{until});
        if (chance() % 16 == 0) by_two->sync();
        for (unsigned i = 1; i < group; ++i) by_one->defer<&ledger::add>(until + i);
        raise(words_.told[1], by_one->call<&ledger::add_and_count>(until));
        if (chance() % 64 == 0) change_another(pool, chance);
    }
    stop = true;
    other.join();
}

/// One look at each; 'least': what readers and the writer have seen already.
void views::look_at(unsigned which, view& at, u64& count, u64& version) {
    const u64 told = words_.told[which], seen = words_.seen[which];
    const hf::status s = at.refresh();
    ++words_.looks;
    if (s.code() == hf::errc::in_use) ++words_.overtaken;
    else if (!s.ok()) broken(s);
    if (!at->adds_up()) broken("cells that add up", 1, 0);
    if (at->count() < count) broken("what this reader has seen", count, at->count());
    if (at.version() < version) broken("the version that it had", version, at.version());
    if (s.ok() && at->count() < std::max(told, seen))
        broken("what was known when it looked", std::max(told, seen), at->count());
    if (which == 1 && at->count() % group != 0) broken("calls of whole groups", 0, at->count());
    if (at.version() != version) ++words_.changed;
    count = at->count();
    version = at.version();
    raise(words_.seen[which], count);
}

void views::look_at_another(hf::pool& pool) {
    const auto another = view::open(pool, "another");
    ++words_.others;
    if (another && !(*another)->adds_up()) broken("cells of another", 1, 0);
    if (!another && another.error().code() != hf::errc::not_found &&
        another.error().code() != hf::errc::in_use)
        broken(another.error());
}

void views::read(hf::pool& pool, std::mt19937_64& chance) {
    for (u64 views = chance() % 20 + 1; views-- > 0;) {
        std::array<std::optional<view>, 2> at;
        std::array<u64, 2> count{}, version{};
        for (unsigned which : {0U, 1U}) {
            auto found = view::open(pool, names[which]);
            if (found) at[which].emplace(std::move(*found));
            else if (found.error().code() != hf::errc::in_use) broken(found.error());
            else ++words_.overtaken;
        }
        for (u64 looks = chance() % 100; looks-- > 0;) {
            const auto which = static_cast<unsigned>(chance() % 2);
            if (at[which]) look_at(which, *at[which], count[which], version[which]);
            if (chance() % 32 == 0) look_at_another(pool);
        }
    }
}

/// Writers on the first processor that there is, readers on the last: else both may have one, and
/// take turns.
void views::keep_apart(bool reads) {
    cpu_set_t all, one;
    if (::sched_getaffinity(0, sizeof all, &all) != 0) return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && (reads || CPU_COUNT(&one) == 0); ++cpu) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
    }
    ::sched_setaffinity(0, sizeof one, &one);
}

bool views::is_whole(hf::pool& pool) {
    for (const unsigned which : {0U, 1U}) {
        const u64 least = std::max<u64>(words_.told[which], words_.seen[which]);
        auto found = object::find(pool, names[which]);
        if (!found) broken(found.error());
        const u64 count = found->call<&ledger::count>();
        if (count < least) broken("what was acknowledged or seen", least, count);
        if (!found->call<&ledger::adds_up>()) broken("cells that add up", 1, 0);
    }
    return true;
}

bool views::say(u64 kills) const {
    const auto number = [](const std::atomic<u64>& n) {
        return static_cast<unsigned long long>(n);
    };
    std::printf("%llu looks, %llu of them at something new, %llu overtaken to the end, %llu looks "
                "at an object that comes and goes",
                number(words_.looks), number(words_.changed), number(words_.overtaken),
                number(words_.others));
    return words_.changed > 10 * kills && words_.overtaken < words_.looks / 10;
}

} // namespace

int main(int argc, char** argv) { return views().run(argc, argv); }
