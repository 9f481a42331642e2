// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "../events.hpp"
#include "../temporary_file.hpp"
#include "corpus.hpp"
#include "floor.hpp"
#include "model.hpp"
#include "pmdk.hpp"

#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <algorithm>
#include <ctime>

namespace hf::bench::plain {
namespace {

/// libpmemobj has only one.
subjects of_pmdk() { return {&pmdk_textbook(), 1}; }

enum class memory_of : std::uint8_t { arena, engine, pmdk };
struct build {
    const char* name;
    subjects (*all)();
    memory_of memory;
    std::vector<hf::engine_ptr> (*engines)() = nullptr;
    floor_fences fences = floor_fences::one;
};
std::vector<hf::engine_ptr> undo() { return {hf::undo::engine()}; }
std::vector<hf::engine_ptr> undo_next() {
    return {hf::undo::engine({.durable = hf::durability::by_next_section})};
}
std::vector<hf::engine_ptr> clobber() { return {hf::clobber::engine()}; }
std::vector<hf::engine_ptr> redo() { return {hf::redo::engine()}; }
std::vector<hf::engine_ptr> both() { return {hf::undo::engine(), hf::redo::engine()}; }
const build every[] = {
    {"none", hf_bench_plain_none, memory_of::arena},
    {"by-hand", hf_bench_plain_by_hand, memory_of::arena},
    {"floor-1f", hf_bench_plain_floor, memory_of::arena, nullptr, floor_fences::one},
    {"floor-2f", hf_bench_plain_floor, memory_of::arena, nullptr, floor_fences::two},
    {"pmdk", of_pmdk, memory_of::pmdk},
    {"undo", hf_bench_plain_undo, memory_of::engine, undo},
    {"undo-next", hf_bench_plain_undo, memory_of::engine, undo_next},
    {"clobber", hf_bench_plain_clobber, memory_of::engine, clobber},
    {"redo", hf_bench_plain_redo, memory_of::engine, redo},
    {"auto", hf_bench_plain_auto, memory_of::engine, both},
};
constexpr std::uint64_t pool_bytes = 64 << 20;

struct root {
    std::byte bytes[root_bytes];
};

/// Different numbers for different ones, in no order: a finaliser of SplitMix64, which is a
/// bijection.
std::uint64_t key_of(std::uint64_t number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}
std::uint64_t value_of(std::uint64_t number) { return number % 128; } // a string's element, too

/// Processor time of the thread: other work of the machine is not measured.
double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Runs 'one(i)' for each i of [first, first + count) and puts them down to 'to'.
template <class Operation>
void measure(row& to, std::uint64_t first, std::uint64_t count, const Operation& one) {
    const persist::counters before = persist::thread_counters();
    const double start = processor_seconds();
    for (std::uint64_t i = first; i < first + count; ++i) one(i);
    to.seconds += processor_seconds() - start;
    add_events(to.events, before, persist::thread_counters());
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
        std::uint64_t count = std::min(options.batch, options.ops - done);
        if (of.erase != nullptr) count = std::min(count, records);
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

std::vector<std::string> builds(hf::mode mode) {
    std::vector<std::string> names;
    for (const build& each : every)
        if (mode == hf::mode::process || each.all != hf_bench_plain_by_hand)
            names.emplace_back(each.name);
    return names;
}

std::vector<subject> corpus() {
    const subjects all = hf_bench_plain_none();
    return {all.first, all.first + all.count};
}

bool has(std::string_view name, const subject& one) {
    const subjects all = std::ranges::find(every, name, &build::name)->all();
    return std::ranges::any_of(all.first, all.first + all.count, [&](const subject& each) {
        return std::string_view(each.name) == one.name;
    });
}

static ran run_in_pool(const subject& of, const build& b, const run_options& options) {
    const temporary_file file(options.directory, "plain");
    hf::open_options how;
    how.layout = "bench/plain/1";
    how.create_bytes = pool_bytes;
    how.max_bytes = 4 * pool_bytes;
    how.mode = options.mode;
    how.expert.prefault = true;
    how.engines = b.engines();
    how.expert.seal = false; // nobody opens it again
    auto pool = hf::pool::open(file.path(), how);
    if (!pool) give_up(pool.error().what());
    return run_at(pool->root<root>(), of, options);
}

ran run(std::string_view name, const subject& one, const run_options& options) {
    const build& b = *std::ranges::find(every, name, &build::name);
    const subjects all = b.all();
    const subject& of = *std::ranges::find(all.first, all.first + all.count,
                                           std::string_view(one.name), &subject::name);
    if (b.memory == memory_of::engine) return run_in_pool(of, b, options);
    if (b.memory == memory_of::pmdk) {
        const temporary_file file(options.directory, "plain");
        const pmdk_pool pool(file.path(), pool_bytes);
        return run_at(pool.root(), of, options);
    }
    const bool durable = b.all == hf_bench_plain_floor && options.mode == hf::mode::pmem;
    arena memory(options.directory, pool_bytes, durable, b.fences);
    return run_at(memory.root(), of, options);
}

} // namespace hf::bench::plain
