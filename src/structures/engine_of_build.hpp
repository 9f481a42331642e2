// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine that this translation unit is built for (HF_ENGINE), as text and as what pool::open
// wants. For tests, benchmarks and examples that are built once per engine.
#pragma once

#include <structures/namespace.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <string_view>
#include <vector>

#define HF_ENGINE_TEXT_(engine) #engine
#define HF_ENGINE_TEXT(engine) HF_ENGINE_TEXT_(engine)

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

constexpr std::string_view engine_of_build() { return HF_ENGINE_TEXT(HF_ENGINE); }

/// What open_options::engines should be for a program of this build.
inline std::vector<const hf::engine*> engines_of_build() {
    if (engine_of_build() == "clobber") return {hf::clobber::engine()};
    if (engine_of_build() == "undo") return {hf::undo::engine()};
    if (engine_of_build() == "redo") return {hf::redo::engine()};
    return {};
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
