// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no flush, fence or log byte of a lock-based structure comes or goes unnoticed.
// Method: a fixed sequence of operations on a new pool, per engine (this file is built once for
// each) and mode; what each kind of operation cost in all is compared with golden/lock_based.txt.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <structures/growing_vector.hpp>
#include <structures/list_map.hpp>
#include <structures/locked_stack.hpp>
#include <structures/sorted_list.hpp>
#include <structures/two_lock_queue.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <unistd.h>

namespace {

using word = std::uint64_t;
constexpr word operations = 200; // of each kind

struct all {
    hf::structures::two_lock_queue<word> queue;
    hf::structures::locked_stack<word> stack;
    hf::structures::sorted_list<word, word> list;
    hf::structures::list_map<word, word, 64> map;
    hf::structures::growing_vector vector;
};

using lines = std::map<std::string, std::string>; // "engine mode operation" -> the counts

template <class F> void measure(lines& to, std::string_view mode, std::string_view operation,
                                F each) {
    const hf::persist::counters a = hf::persist::thread_counters();
    for (word i = 0; i < operations; ++i) each(i * 0x9e3779b97f4a7c15ULL >> 32, i);
    const hf::persist::counters b = hf::persist::thread_counters();
    to[fmt::format("{} {} {}", hf::engine_of_build(), mode, operation)] =
        fmt::format("{} {} {} {} {} {}", b.flushes - a.flushes, b.fences - a.fences,
                    b.ordering_points - a.ordering_points, b.log_entries - a.log_entries,
                    b.log_bytes - a.log_bytes, b.pm_bytes - a.pm_bytes);
}

void run(lines& to, hf::mode mode, std::string_view name) {
    const std::string path = fmt::format("/dev/shm/holdfast-golden-locked.{}", ::getpid());
    hf::open_options options;
    options.layout = "golden/1";
    options.mode = mode;
    options.creation = hf::create::always_new;
    options.engines = hf::engines_of_build();
    auto pool = hf::pool::open(path, options);
    ::unlink(path.c_str());
    ASSERT_TRUE(pool) << pool.error().what();
    auto* const r = pool->root<all>();
    word key = 0, value = 0;
    r->stack.push(0); // the thread's lane or log, once and for all
    r->stack.pop(&value);
    measure(to, name, "queue-in", [&](word k, word) { r->queue.enqueue(k); });
    measure(to, name, "queue-out", [&](word, word) { r->queue.dequeue(&value); });
    measure(to, name, "stack-in", [&](word k, word) { r->stack.push(k); });
    measure(to, name, "stack-out", [&](word, word) { r->stack.pop(&value); });
    measure(to, name, "priority-in", [&](word k, word i) { r->list.insert(k, i); });
    measure(to, name, "priority-out", [&](word, word) { r->list.remove_min(&key, &value); });
    measure(to, name, "map-in", [&](word k, word i) { r->map.insert(k, i); });
    measure(to, name, "map-assign", [&](word k, word i) { r->map.insert(k, i + 1); });
    measure(to, name, "map-replace", [&](word k, word i) { r->map.replace(k, i + 2); });
    measure(to, name, "map-out", [&](word k, word) { r->map.erase(k); });
    measure(to, name, "vector-in", [&](word k, word) { r->vector.push_back(k); });
    measure(to, name, "vector-set", [&](word k, word i) { r->vector.set(i, k + 1); });
    measure(to, name, "vector-get", [&](word, word i) { r->vector.get(i, &value); });
    EXPECT_EQ(r->queue.size() + r->stack.size() + r->list.size() + r->map.size(), 0U);
    EXPECT_EQ(r->vector.size(), operations);
}

TEST(lock_based_golden_test, CostsWhatTheFileSays) {
    lines golden;
    std::ifstream file(HF_GOLDEN_FILE);
    for (std::string one; std::getline(file, one);) {
        if (one.empty() || one[0] == '#') continue;
        std::size_t end = 0;
        for (int words = 0; words < 3; ++words) end = one.find(' ', end) + 1;
        golden[one.substr(0, end - 1)] = one.substr(end);
    }
    lines now;
    run(now, hf::mode::process, "process");
    run(now, hf::mode::pmem, "pmem");
    if (std::getenv("HOLDFAST_GOLDEN_WRITE") == nullptr) {
        for (const auto& [id, counts] : now) EXPECT_EQ(golden[id], counts) << id;
        return;
    }
    for (const auto& [id, counts] : now) golden[id] = counts;
    std::ofstream out(HF_GOLDEN_FILE);
    out << fmt::format("# Lock-based structures, 8-byte words: events per {} operations.\n",
                       operations)
        << "# engine mode operation flushes fences ordering_points log_entries log_bytes "
           "pm_bytes\n";
    for (const auto& [id, counts] : golden) out << id << ' ' << counts << '\n';
}

} // namespace
