// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequence_run.hpp"

#include "../measured.hpp"
#include "../temporary_file.hpp"
#include "../workload.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace hf::bench {
namespace {

enum class step : std::uint32_t { push, pop, get, set, swap };
struct planned {
    step what;
    std::uint32_t index;
    std::uint64_t value; // swap: the other index
};

std::vector<planned> plan(const run_options& options, sequence which) {
    std::mt19937_64 random(1);
    std::vector<planned> all(options.ops);
    const auto elements = static_cast<std::uint32_t>(options.records);
    std::uint64_t there = options.records;
    for (planned& one : all) {
        one = {step::set, static_cast<std::uint32_t>(random() % elements), random()};
        if (which == sequence::vecswap) { // never the same element twice
            one.what = step::swap;
            one.value = (one.index + 1 + one.value % (elements - 1)) % elements;
        } else if (which == sequence::vector) {
            if (one.value % 100 < options.read_percent) one.what = step::get;
        } else {
            one.what = there == 0 || one.value >> 63 == 0 ? step::push : step::pop;
            there = one.what == step::push ? there + 1 : there - 1;
        }
    }
    return all;
}

bool carry_out(sequence_under_test& on, const planned& one) {
    std::uint64_t value = 0;
    switch (one.what) {
    case step::push: return on.push(one.value);
    case step::pop: return on.pop(value);
    case step::get: return on.get(one.index, value);
    case step::set: return on.set(one.index, one.value);
    case step::swap: return on.swap(one.index, one.value);
    }
    return false;
}

} // namespace

nlohmann::ordered_json run_sequence(const run_options& options, sequence which) {
    if (options.threads != 1) give_up(options.name + " runs with one thread");
    if (options.records < 2 || options.records > UINT32_MAX) give_up("--records is 2 to 2^32 - 1");
    const std::vector<planned> todo = plan(options, which);
    sequence_options sized{which, options.records, 0, options.map};
    sized.pushes = static_cast<std::uint64_t>(
        std::ranges::count(todo, step::push, [](const planned& one) { return one.what; }));
    sized.file.mode = mode_named(options.mode);
    install_latency(options);
    const std::unique_ptr<sequence_under_test> on = make_sequence(options.engine, sized);
    if (on == nullptr) give_up(options.engine + ": no such engine for " + options.name);
    for (std::uint64_t i = 0; i < options.records; ++i)
        if (!on->push(scrambled(i))) give_up("the pool is full");
    const measured result = measure_threads(1, [&](unsigned) {
        return std::ranges::all_of(todo, [&](const planned& one) { return carry_out(*on, one); });
    });
    const map_facts facts = on->facts();

    nlohmann::ordered_json out = speed_of(options, result, facts);
    out["structure"] = options.name;
    out["records"] = options.records;
    out["value_bytes"] = sizeof(std::uint64_t);
    out["read_percent"] = options.read_percent;
    add_memory(out, on->memory());
    add_machine(out, options, facts);
    return out;
}

} // namespace hf::bench
