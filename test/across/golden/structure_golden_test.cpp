// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no flush, fence or log byte of a structure comes or goes unnoticed.
// Method: a fixed sequence of operations on a new pool, per structure and engine (this file is
// built once for each) and mode; what each kind of operation cost in all is compared with
// golden/<structure>.txt.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <structures/bytes_key.hpp>

#include <holdfast/engines.hpp>
#include HF_GOLDEN_HEADER

#include <holdfast/alloc.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/pool.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <unistd.h>

namespace {

using counters = hf::persist::counters;
using value = std::array<std::uint64_t, 32>;
using key = HF_GOLDEN_KEY;
using map = hf::structures::HF_GOLDEN_STRUCTURE<key, value>;

constexpr std::uint64_t operations = 4000; // of each kind

[[maybe_unused]] void make_key(std::uint64_t number, std::uint64_t& made) { made = number; }
[[maybe_unused]] void make_key(std::uint64_t number, hf::structures::bytes_key<32>& made) {
    fmt::format_to(&made.bytes[0], "user{:028}", number);
}

// Sums as they are, not divided: an exact comparison, readable as events per 4000 operations.
std::string line(std::string_view mode, std::string_view operation, const counters& a,
                 const counters& b) {
    return fmt::format("{} {} {} {} {} {} {} {} {}", hf::engine_of_build(), mode, operation,
                       b.flushes - a.flushes, b.fences - a.fences,
                       b.ordering_points - a.ordering_points, b.log_entries - a.log_entries,
                       b.log_bytes - a.log_bytes, b.pm_bytes - a.pm_bytes);
}

template <class F> std::string measured(std::string_view mode, std::string_view operation, F each) {
    const counters before = hf::persist::thread_counters();
    for (std::uint64_t i = 0; i < operations; ++i) {
        key k;
        make_key(i * 0x9e3779b97f4a7c15ULL, k);
        each(k, i);
    }
    return line(mode, operation, before, hf::persist::thread_counters());
}

/// Computes again what the structure stores lazily with engine selective.
template <class Map> std::function<void(hf::pool&)> rebuild_of() {
    if constexpr (requires(Map& of, hf::pool& in) { of.rebuild(in); })
        return [](hf::pool& p) { p.root<Map>()->rebuild(p); };
    else return nullptr;
}

std::vector<std::string> run(hf::mode mode, std::string_view name) {
    const std::string path = fmt::format("/dev/shm/holdfast-golden-{}.{}", name, getpid());
    hf::open_options options;
    options.layout = "golden/1";
    options.mode = mode;
    options.expert.eadr = name == "eadr";
    options.creation = hf::create::always_new;
    hf::engine_options engines;
    if (name == "next") engines.undo.durable = hf::durability::by_next_section;
    engines.selective.rebuild = rebuild_of<map>();
    options.engines = hf::engines_of_build(engines);
    std::vector<std::string> lines;
    auto pool = hf::pool::open(path, options);
    std::remove(path.c_str());
    if (!pool) {
        ADD_FAILURE() << pool.error().what();
        return lines;
    }
    auto* tested = pool->root<map>();
    // Starts the thread's lane, once and for all: a line and a fence.
    hf::return_spare_blocks(*pool);
    const auto insert = [&](const key& k, std::uint64_t i) { tested->insert(k, value{i}); };
    value found;
    lines.push_back(measured(name, "insert-growing", insert));
    lines.push_back(measured(name, "assign", insert));
    lines.push_back(measured(name, "find", [&](const key& k, auto) { tested->find(k, &found); }));
    lines.push_back(measured(name, "erase", [&](const key& k, auto) { tested->erase(k); }));
    lines.push_back(measured(name, "insert-grown", insert));
    EXPECT_TRUE(tested->check());
    EXPECT_EQ(tested->size(), operations);
    return lines;
}

// All engines' lines in one file, so that they can be read side by side.
std::map<std::string, std::string> read_golden() {
    std::map<std::string, std::string> lines; // "engine mode operation" -> line
    std::ifstream file(HF_GOLDEN_FILE);
    for (std::string one; std::getline(file, one);) {
        if (one.empty() || one[0] == '#') continue;
        std::size_t end = 0;
        for (int words = 0; words < 3; ++words) end = one.find(' ', end) + 1;
        lines[one.substr(0, end)] = one;
    }
    return lines;
}

void write_golden(const std::map<std::string, std::string>& lines) {
    std::ofstream file(HF_GOLDEN_FILE);
    file << fmt::format("# {}, {}-byte keys, 256-byte values: events per {} operations.\n",
                        HF_GOLDEN_NAME, sizeof(key), operations)
         << "# engine mode operation flushes fences ordering_points log_entries log_bytes "
            "pm_bytes\n";
    for (const auto& one : lines) file << one.second << '\n';
}

TEST(HF_GOLDEN_TEST, CostsWhatTheFileSays) {
    std::map<std::string, std::string> golden = read_golden();
    const bool writing = std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr;
    std::vector<std::pair<hf::mode, std::string_view>> all{{hf::mode::process, "process"},
                                                           {hf::mode::pmem, "pmem"}};
    // For caches that persist: the paper's own domain.
    if (hf::resumes_sections()) all.emplace_back(hf::mode::pmem, "eadr");
    // The option changes something for this engine only.
    if (hf::engine_of_build() == "undo") all.emplace_back(hf::mode::pmem, "next");
    for (const auto& [mode, name] : all)
        for (const std::string& one : run(mode, name)) {
            std::size_t end = 0;
            for (int words = 0; words < 3; ++words) end = one.find(' ', end) + 1;
            if (writing) golden[one.substr(0, end)] = one;
            else EXPECT_EQ(golden[one.substr(0, end)], one);
        }
    if (writing) write_golden(golden);
}

} // namespace
