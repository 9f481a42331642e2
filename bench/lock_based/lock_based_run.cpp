// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lock_based_run.hpp"

#include "../measured.hpp"
#include "../temporary_file.hpp"
#include "../workload.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace hf::bench {
namespace {

enum class step : std::uint8_t { insert, remove, overwrite };
struct planned {
    step what;
    std::uint64_t key;
};

std::vector<planned> plan(const run_options& options, lock_based which, unsigned thread) {
    std::mt19937_64 random(1 + thread);
    const std::uint64_t keys = options.records * 5 / 4;
    std::vector<planned> all(options.ops / options.threads +
                             (thread < options.ops % options.threads));
    for (planned& one : all) {
        one = {step::overwrite, random()};
        if (!comes_and_goes(which)) one.key %= keys;
        else one.what = one.key % 2 != 0 ? step::insert : step::remove;
    }
    return all;
}

bool carry_out(lock_based_under_test& on, const planned& one, const noise& values) {
    switch (one.what) {
    case step::insert: return on.insert(one.key, values.value_of(one.key));
    case step::remove: on.remove(); return true;
    case step::overwrite: on.overwrite(one.key, values.value_of(one.key)); return true;
    }
    return false;
}

} // namespace

nlohmann::ordered_json run_lock_based(const run_options& options, lock_based which) {
    std::vector<std::vector<planned>> todo;
    std::uint64_t insertions = 0;
    for (unsigned w = 0; w < options.threads; ++w) {
        todo.push_back(plan(options, which, w));
        insertions += static_cast<std::uint64_t>(std::ranges::count(
            todo.back(), step::insert, [](const planned& one) { return one.what; }));
    }
    lock_based_options sized{which, options.map};
    sized.file.keys = options.records + insertions;
    sized.file.mode = mode_named(options.mode);
    install_latency(options);
    const std::unique_ptr<lock_based_under_test> on = make_lock_based(options.engine, sized);
    if (on == nullptr) give_up(options.engine + ": no such engine for " + options.name);
    const noise values(std::max<std::size_t>(8, sized.file.value_bytes));
    for (std::uint64_t i = 0; i < options.records; ++i) // a vector's keys are its indices
        if (!on->insert(which == lock_based::priority ? scrambled(i) : i, values.value_of(i)))
            give_up("the pool is full");
    const measured result = measure_threads(options.threads, [&](unsigned w) {
        return std::ranges::all_of(todo[w],
                                   [&](const planned& one) { return carry_out(*on, one, values); });
    });
    if (!on->check()) give_up(options.name + " is not whole");
    const map_facts facts = on->facts();

    nlohmann::ordered_json out = speed_of(options, result, facts);
    out["structure"] = options.name;
    out["records"] = options.records;
    out["value_bytes"] = sized.file.value_bytes;
    out["read_percent"] = 0;
    add_machine(out, options, facts);
    return out;
}

} // namespace hf::bench
