// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both sides of the restart benchmark. This file is built once per engine.
#include "../restart.hpp"

#include "../map_under_test.hpp"
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include <structures/engine_of_build.hpp>
#include <structures/hash_map.hpp>

#include <array>
#include <thread>
#include <vector>

namespace hf::bench {
namespace {

using value = std::array<std::byte, 256>;
using map = structures::hash_map<std::uint64_t, value>;

hf::pool open(const std::string& path, const restart_options& given) {
    map_options size;
    size.keys = 2 * given.items;
    hf::open_options options;
    options.layout = "bench/restart/1";
    options.create_bytes = pool_bytes(size);
    options.max_bytes = 16 * options.create_bytes;
    options.mode = given.mode == "pmem" ? hf::mode::pmem : hf::mode::process;
    options.engines = structures::engines_of_build();
    auto opened = hf::pool::open(path, options);
    if (!opened) give_up(opened.error().what());
    return std::move(*opened);
}

void insert_own(map& target, const restart_options& given, unsigned worker,
                std::atomic<std::uint64_t>& acknowledged) {
    const noise values(sizeof(value));
    for (std::uint64_t i = acknowledged.load();; ++i) {
        const std::uint64_t key = scrambled(i * given.threads + worker);
        if (!target.insert(key, *static_cast<const value*>(values.value_of(key))))
            give_up("the pool is full");
        acknowledged.store(i + 1, std::memory_order_release);
    }
}

} // namespace

void HF_STRUCTURES_JOIN(insert_forever_, HF_ENGINE)(const std::string& path,
                                                    const restart_options& given,
                                                    restart_progress& progress) {
    hf::pool opened = open(path, given);
    auto* target = opened.root<map>();
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < given.threads; ++w)
        workers.emplace_back(
            [&, w] { insert_own(*target, given, w, progress.acknowledged[w].keys); });
    for (std::thread& worker : workers) worker.join();
}

reopened HF_STRUCTURES_JOIN(reopen_, HF_ENGINE)(const std::string& path,
                                                const restart_options& given,
                                                const restart_progress& progress) {
    hf::pool opened = open(path, given);
    const auto* target = opened.root<map>();
    const noise values(sizeof(value));
    reopened seen{opened.recovered().open_ms,
                  opened.recovered().sections_pending,
                  opened.size_bytes(),
                  target->size(),
                  0,
                  target->check()};
    for (unsigned w = 0; w < given.threads; ++w)
        for (std::uint64_t i = 0; i < progress.acknowledged[w].keys.load(); ++i) {
            const std::uint64_t key = scrambled(i * given.threads + w);
            value found;
            if (!target->find(key, &found) ||
                std::memcmp(&found, values.value_of(key), sizeof found) != 0)
                ++seen.missing;
        }
    return seen;
}

} // namespace hf::bench
