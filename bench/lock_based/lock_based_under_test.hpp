// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the benchmarks of structures with locks of their own drive: one interface over the five of
// JUSTDO §7, built once per engine. The virtual call costs every engine the same nanosecond or two.
#pragma once

#include "../map_under_test.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::bench {

enum class lock_based : std::uint8_t { queue, stack, priority, map, vector };

/// Whether elements come and go; else those that are there get other values.
constexpr bool comes_and_goes(lock_based which) {
    return which != lock_based::map && which != lock_based::vector;
}

/// As the command line says it: jd-queue …
std::string_view name_of(lock_based which);
const std::vector<lock_based>& all_lock_based();
std::optional<lock_based> lock_based_named(std::string_view name);

struct lock_based_options {
    lock_based which = lock_based::queue;
    map_options file; // directory, mode, prefault, keys that there can be, value_bytes of the map
};

/// Any number of threads.
class lock_based_under_test {
public:
    virtual ~lock_based_under_test() = default;
    /// Adds an element: at the back, on top, by its key. False: the pool is full.
    virtual bool insert(std::uint64_t key, const void* value) noexcept = 0;
    /// Removes the next one, if there is one: the first, the newest, the one of the least key.
    virtual void remove() noexcept = 0;
    /// Gives 'key' another value if it is there.
    virtual void overwrite(std::uint64_t key, const void* value) noexcept = 0;
    virtual map_facts facts() const = 0;
    /// Whether the structure's own invariants hold, while nobody changes it.
    virtual bool check() const = 0;
};

/// Engines by name; null for an unknown name.
std::unique_ptr<lock_based_under_test> make_lock_based(std::string_view engine,
                                                       const lock_based_options& options);
std::vector<std::string> engines_for(lock_based which);

} // namespace hf::bench
