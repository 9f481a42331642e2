// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the oracles of all engines have in common: scenarios, their images, the program's end. Included once by
// each, which defines try_scenario() and print_image().
#pragma once

#include "oracle.hpp"

#include <holdfast/lock.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace oracle {

inline constexpr int never = 1 << 30;

/// Crashes the scenario everywhere, and adds to what is counted below.
void try_scenario(const scenario& s);
/// Prints what the scenario makes of the pool.
void print_image(const scenario& s);

namespace {

scenario* scenarios = nullptr;
int failures = 0;
long crashes = 0;
int nested_max; // crashes of each recovery

/// Prints a sum of the words of a pool, wherever it lies.
void print_sum(const scenario& s, const std::byte* of) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < pool_bytes; i += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, of + i, sizeof word);
        const std::uint64_t offset = word - reinterpret_cast<std::uintptr_t>(of);
        sum = (sum ^ (offset < pool_bytes ? offset : word)) * 0x100000001b3 + i;
    }
    std::printf("%s %016llx\n", s.name, static_cast<unsigned long long>(sum));
}

/// Every other word, by chance, is as it was. Requires: 'bytes' is a multiple of 8.
void lose_words(std::byte* is, const std::byte* was, std::size_t bytes, std::mt19937_64& random) {
    std::uint64_t lost = 0; // a bit each
    for (std::size_t i = 0; i < bytes; i += sizeof lost, lost >>= 1) {
        if (i % (64 * sizeof lost) == 0) lost = random();
        std::uint64_t now = 0, before = 0; // without a branch, which no processor would foresee
        std::memcpy(&now, is + i, sizeof now);
        std::memcpy(&before, was + i, sizeof before);
        now = (lost & 1) != 0 ? before : now;
        std::memcpy(is + i, &now, sizeof now);
    }
}

/// [--nested N] [--images] [scenario]
int run(int argc, char** argv) {
    const char* wanted = nullptr;
    bool images = false;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--nested") == 0 && i + 1 < argc)
            nested_max = std::atoi(argv[++i]);
        else if (std::strcmp(argv[i], "--images") == 0)
            images = true;
        else
            wanted = argv[i];
    }
    int count = 0;
    for (scenario* s = scenarios; s != nullptr; s = s->next) {
        if (wanted != nullptr && std::strcmp(wanted, s->name) != 0) continue;
        images ? print_image(*s) : try_scenario(*s);
        ++count;
    }
    if (images) return 0;
    std::printf("oracle: scenarios=%d crashes=%ld failures=%d\n", count, crashes, failures);
    return failures == 0 && count > 0 ? 0 : 1;
}

} // namespace

scenario::scenario(const char* name, void (*prepare)(), void (*run)())
    : name(name), prepare(prepare), run(run), next(scenarios) {
    scenarios = this;
}

} // namespace oracle

// Functions without sections take them, too; one thread has nothing to wait for.
namespace hf {
void shared_mutex::lock() noexcept {}
bool shared_mutex::try_lock() noexcept { return true; }
void shared_mutex::unlock() noexcept {}
void shared_mutex::lock_shared() noexcept {}
bool shared_mutex::try_lock_shared() noexcept { return true; }
void shared_mutex::unlock_shared() noexcept {}
} // namespace hf

extern "C" {
void hf_crash_point(const char*) noexcept {}
unsigned long oracle_digest(oracle::digested d) noexcept {
    return d.x[0] * 3 + (d.x[1] ^ d.x[2]) + d.x[3];
}
void* oracle_place(std::size_t offset) noexcept { return oracle::pool + offset; }
oracle::digested oracle_spread(unsigned long from) noexcept {
    return {{from, from * 3, from * 5, from * 7}};
}
}
