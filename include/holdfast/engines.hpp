// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For open_options::engines. The engine that a translation unit is built for, as
// holdfast_instrument or the compiler's wrapper has chosen (docs/guide/choosing-an-engine.md). And
// all engines that keep state in pools, for programs that open any pool.
#pragma once

#include <holdfast/clobber.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <string_view>
#include <vector>

namespace hf {

/// For programs that open any pool. Throws std::bad_alloc.
std::vector<engine_ptr> all_engines();

/// The options of each engine that has any. Options of an engine that is not asked for have no
/// effect.
struct engine_options {
    hf::clobber::options clobber = {};
    hf::undo::options undo = {};
    hf::justdo::options justdo = {};
    hf::selective::options selective = {};
};

/// "clobber", "undo", "redo", "auto", "justdo", "ido", "selective"; "none" if failure-atomic
/// functions stay plain. "auto" is undo and redo: the pool's medium chooses between them.
[[maybe_unused]] static constexpr std::string_view engine_of_build() {
    return HF_ENGINE_TEXT(HF_ENGINE);
}

/// Whether sections of this build resume after a crash: only those of engine justdo, which is
/// compiled in two ways.
[[maybe_unused]] static constexpr bool resumes_sections() {
    return engine_of_build() == "justdo" || engine_of_build() == "ido";
}

/// The engine of this translation unit, or both of "auto", to name them beside others in
/// open_options::engines. (Leaving that empty names the engines of the whole program.) Empty: no
/// engine. Throws std::bad_alloc.
[[maybe_unused]] static inline std::vector<engine_ptr>
engines_of_build(const engine_options& how = {}) {
    if (engine_of_build() == "clobber") return {hf::clobber::engine(how.clobber)};
    if (engine_of_build() == "undo") return {hf::undo::engine(how.undo)};
    if (engine_of_build() == "redo") return {hf::redo::engine()};
    if (engine_of_build() == "auto") return {hf::undo::engine(how.undo), hf::redo::engine()};
    if (resumes_sections()) return {hf::justdo::engine(how.justdo)};
    if (engine_of_build() == "selective") return {hf::selective::engine(how.selective)};
    return {};
}

} // namespace hf
