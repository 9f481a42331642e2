// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `holdfast bench section` drives: sections so short that nothing but the section costs
// anything. Engines, a floor that is written by hand and libpmemobj do the same to the same memory.
// A call is one by address for all of them.
#pragma once

#include "../map_under_test.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf::bench {

inline constexpr std::uint64_t section_lines = 64;
inline constexpr unsigned section_threads = 2;

struct section_node {
    section_node* next;
    std::uint64_t value;
};

/// The object to which one thread's sections store.
struct section_object {
    struct line {
        std::uint64_t word;
        std::uint64_t unused[7];
    };
    line lines[section_lines];
    std::uint64_t places[section_lines]; // of the lines: all 0, unknown to any compiler
    section_node* first;
    std::uint64_t unused[7];
};
struct section_root {
    section_object of_thread[section_threads];
};

using section_call = void(section_object* of);
struct section_calls {
    section_call* nothing; // reads a word, and would store another one
    section_call* one;     // adds 1 to a word
    section_call* four;    // changes four words, on a line each
    section_call* many;    // changes 64 words, on a line each
    section_call* loop;    // adds to one word, 64 times
    section_call* node;    // two sections: make a node and link it; unlink it and free it
};

class sections_under_test {
public:
    explicit sections_under_test(const section_calls& of) : calls(of) {}
    virtual ~sections_under_test() = default;
    /// Zero-filled at first.
    virtual section_root* root() noexcept = 0;
    /// Called on each thread before it calls sections.
    virtual void enter(unsigned /*thread*/) noexcept {}
    virtual map_facts facts() const = 0;

    const section_calls calls;
};

/// Engines and peers by name; null if the mode does not have it.
std::unique_ptr<sections_under_test> make_sections(std::string_view engine,
                                                   const map_options& file);
/// Their names, the floor's first.
std::vector<std::string> engines_for_sections(hf::mode mode);

// Each in a source of its own.
using make_named_sections = std::unique_ptr<sections_under_test>(const map_options& file);
make_named_sections make_sections_by_hand, make_sections_by_hand_1f, make_sections_pmdk;
make_named_sections make_sections_none, make_sections_undo, make_sections_clobber,
    make_sections_redo, make_sections_auto, make_sections_selective, make_sections_justdo,
    make_sections_ido;

} // namespace hf::bench
