// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the measured sections do, as plain code: ours/sections.cpp compiles it into sections, once
// per engine, and every row's memory is compared with what it makes.
#pragma once

#include "sections_under_test.hpp"
#include <structures/namespace.hpp>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {
namespace plain_sections {

inline void nothing(section_object* o) {
    if (o->lines[0].word == ~std::uint64_t{0}) o->lines[1].word = 1; // never
}
inline void one(section_object* o) { o->lines[0].word += 1; }
inline void four(section_object* o) {
    o->lines[0].word += 1;
    o->lines[1].word += o->lines[0].word;
    o->lines[2].word ^= o->lines[1].word;
    o->lines[3].word += 3;
}
inline void many(section_object* o) {
    for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[i].word += i + 1;
}
inline void loop(section_object* o) {
    for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[o->places[i]].word += i + 1;
}

} // namespace plain_sections
} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench
