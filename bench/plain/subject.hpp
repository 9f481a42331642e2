// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A structure that somebody else wrote, or a textbook prints, and what is done with it. Its code is
// compiled into sections as it stands, once per build (HF_BENCH_BUILD); the sources say nothing of
// an engine.
//
// Only plain types are here: some subjects are built with libc++, and the program with libstdc++.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/txfunc.hpp>

#include <cstdint>

namespace hf::bench::plain {

/// The kind of the subject's volatile model.
enum class shape : std::uint8_t {
    keyed,    // std::map: insert stores a pair, or replaces its value; erase removes one
    queue,    // elements in order: insert appends, erase removes the first
    stack,    // the same, and erase removes the last
    added,    // words: 3 is added to each
    reversed, // words change places
    counted,  // words: each grows by one
    placed, // three words for each of 64 places: the value and the key of the last search that led there
};

/// Called with the address of each element, too: its block is known by that.
using visitor = void(void* to, const void* element, std::uint64_t key, std::uint64_t value);

struct subject {
    const char* name;
    shape is;
    const char* insert_name; // of the rows
    const char* erase_name;  // null: no such operation
    /// Each is one section. 'root' is zero-filled memory of the pool, 'root_bytes' of them.
    void (*create)(void* root, std::uint64_t room);
    bool (*insert)(void* root, std::uint64_t key, std::uint64_t value);
    bool (*erase)(void* root, std::uint64_t key);
    /// No section.
    void (*visit)(const void* root, void* to, visitor* each);
    /// If an operation moves a share of all elements: the most that a benchmark puts in.
    std::uint64_t elements_max = ~std::uint64_t{0};
};

inline constexpr std::uint64_t root_bytes = 1024;

struct subjects {
    const subject* first;
    std::uint64_t count;
};

} // namespace hf::bench::plain

// Sections and functions of a source file: the log distinguishes them by the linker's names.
#define HF_PLAIN_BEGIN(file)                                                                       \
    namespace hf::bench::plain {                                                                   \
    inline namespace HF_STRUCTURES_ENGINE {                                                        \
    namespace file {
#define HF_PLAIN_END                                                                               \
    }                                                                                              \
    }                                                                                              \
    }
