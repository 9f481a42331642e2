// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the benchmarks of stacks, queues and vectors drive: one interface over ours and the peers'.
// Elements have 8 bytes, as in MOD's Table 2; one thread, no locks.
#pragma once

#include "../map_under_test.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::bench {

/// vecswap: a vector; each operation exchanges two elements.
enum class sequence : std::uint8_t { stack, queue, vector, vecswap };
constexpr bool indexed(sequence which) {
    return which == sequence::vector || which == sequence::vecswap;
}

/// As the command line says it.
std::string_view name_of(sequence which);
const std::vector<sequence>& all_sequences();
std::optional<sequence> sequence_named(std::string_view name);

struct sequence_options {
    sequence which = sequence::stack;
    std::uint64_t elements = 1000000; // there before the clock starts
    std::uint64_t pushes = 0;         // that come then
    map_options file;                 // directory, mode, prefault, durability
};
/// With a pool's size for these elements; lists make nodes of 24 bytes.
map_options file_options(const sequence_options& options);

/// One of them. It answers false to an operation that a sequence of its kind does not have.
class sequence_under_test {
public:
    virtual ~sequence_under_test() = default;
    /// Adds an element: on top, at the back.
    virtual bool push(std::uint64_t value) noexcept = 0;
    /// Removes the next one. False if it is empty.
    virtual bool pop(std::uint64_t& value) noexcept = 0;
    virtual bool get(std::uint64_t index, std::uint64_t& value) noexcept = 0;
    virtual bool set(std::uint64_t index, std::uint64_t value) noexcept = 0;
    /// Two elements change places, failure-atomically. Requires: they are two.
    virtual bool swap(std::uint64_t one, std::uint64_t other) noexcept = 0;
    virtual map_facts facts() const = 0;
    virtual std::optional<memory_use> memory() { return std::nullopt; }
};

/// One that has no indices, and one that has nothing else but push.
class list_under_test : public sequence_under_test {
public:
    bool get(std::uint64_t, std::uint64_t&) noexcept final { return false; }
    bool set(std::uint64_t, std::uint64_t) noexcept final { return false; }
    bool swap(std::uint64_t, std::uint64_t) noexcept final { return false; }
};
class vector_under_test : public sequence_under_test {
public:
    bool pop(std::uint64_t&) noexcept final { return false; }
};

/// Engines and peers by name; null for an unknown name.
std::unique_ptr<sequence_under_test> make_sequence(std::string_view engine,
                                                   const sequence_options& options);
std::vector<std::string> engines_for(sequence which);

} // namespace hf::bench
