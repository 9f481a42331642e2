// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "../temporary_file.hpp"
#include "corpus.hpp"
#include "floor.hpp"
#include "model.hpp"

#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <algorithm>
#include <chrono>

namespace hf::bench::plain {
namespace {

struct build {
    const char* name;
    subjects (*all)();
    const hf::engine* (*engine)() = nullptr; // null: in an arena
    floor_fences fences = floor_fences::one;
};
const build every[] = {
    {"none", hf_bench_plain_none},
    {"floor-1f", hf_bench_plain_floor, nullptr, floor_fences::one},
    {"floor-2f", hf_bench_plain_floor, nullptr, floor_fences::two},
    {"undo", hf_bench_plain_undo, hf::undo::engine},
    {"clobber", hf_bench_plain_clobber, hf::clobber::engine},
    {"redo", hf_bench_plain_redo, hf::redo::engine},
};
constexpr std::uint64_t pool_bytes = 64 << 20;

struct root {
    std::byte bytes[root_bytes];
};

/// Different numbers for different ones, in no order: a finaliser of SplitMix64, which is a bijection.
std::uint64_t key_of(std::uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}
std::uint64_t value_of(std::uint64_t number) { return number % 128; } // a string's element, too

void add(persist::counters& to, const persist::counters& before, const persist::counters& now) {
    to.fences += now.fences - before.fences;
    to.flushes += now.flushes - before.flushes;
    to.nt_stores += now.nt_stores - before.nt_stores;
    to.ordering_points += now.ordering_points - before.ordering_points;
    to.log_entries += now.log_entries - before.log_entries;
    to.log_bytes += now.log_bytes - before.log_bytes;
    to.pm_bytes += now.pm_bytes - before.pm_bytes;
    to.kept_entries += now.kept_entries - before.kept_entries;
}

/// Runs 'one(i)' for each i of [first, first + count) and puts them down to 'to'.
template <class Operation>
void measure(row& to, std::uint64_t first, std::uint64_t count, const Operation& one) {
    const persist::counters before = persist::thread_counters();
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = first; i < first + count; ++i) one(i);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    add(to.events, before, persist::thread_counters());
    to.seconds += elapsed.count();
    to.sections += count;
}

ran run_at(void* root, const subject& of, const run_options& options) {
    const std::uint64_t records =
        of.erase == nullptr ? 1 : std::min(options.records, of.elements_max);
    model should(of.is);
    bool answers = true;
    ran result;
    result.rows.push_back({std::string(of.name) + " " + of.insert_name});
    if (of.erase != nullptr) result.rows.push_back({std::string(of.name) + " " + of.erase_name});

    of.create(root, 2 * records);
    const auto insert = [&](std::uint64_t i) { of.insert(root, key_of(i), value_of(i)); };
    const auto inserted = [&](std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = first; i < first + count; ++i) should.insert(key_of(i), value_of(i));
    };
    measure(result.before, 0, records, insert);
    inserted(0, records);
    // The oldest go. A batch is in and out again before the clock is looked at.
    for (std::uint64_t done = 0; done < options.ops;) {
        const std::uint64_t count = std::min({options.batch, options.ops - done, records});
        measure(result.rows[0], records + done, count, insert);
        inserted(records + done, count);
        if (of.erase != nullptr) {
            measure(result.rows[1], done, count,
                    [&](std::uint64_t i) { answers &= of.erase(root, key_of(i)); });
            for (std::uint64_t i = done; i < done + count; ++i) answers &= should.erase(key_of(i));
        }
        done += count;
    }
    result.difference = should.difference(of, root);
    if (!answers) result.difference += "; an element was not found";
    return result;
}

} // namespace

const std::vector<std::string>& builds() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const build& each : every) all.emplace_back(each.name);
        return all;
    }();
    return names;
}

std::vector<subject> corpus() {
    const subjects all = hf_bench_plain_none();
    return {all.first, all.first + all.count};
}

ran run(std::string_view name, std::size_t number, const run_options& options) {
    const build& b = *std::ranges::find(every, name, &build::name);
    const subject& of = b.all().first[number];
    if (b.engine == nullptr) {
        const bool durable = b.all == hf_bench_plain_floor && options.mode == hf::mode::pmem;
        arena memory(options.directory, pool_bytes, durable, b.fences);
        return run_at(memory.root(), of, options);
    }
    const temporary_file file(options.directory, "plain");
    hf::open_options how;
    how.layout = "bench/plain/1";
    how.create_bytes = pool_bytes;
    how.max_bytes = 4 * pool_bytes;
    how.mode = options.mode;
    how.prefault = true;
    how.engines = {b.engine()};
    how.seal = false; // nobody opens it again
    auto pool = hf::pool::open(file.path(), how);
    if (!pool) give_up(pool.error().what());
    return run_at(pool->root<root>(), of, options);
}

} // namespace hf::bench::plain
