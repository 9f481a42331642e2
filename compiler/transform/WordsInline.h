// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_WORDSINLINE_H
#define HOLDFAST_COMPILER_WORDSINLINE_H

#include "analysis/Engines.h"

#include "llvm/IR/Function.h"

namespace holdfast {

/// Puts the common case of the engine's calls in 'F' in line: where the medium
/// keeps order and the log has room, a word's old bytes are two stores and the
/// store that counts them (hf_words), and a note is nothing. A call remains for
/// everything else.
void putWordsInLine(llvm::Function &F, const EngineInfo &Engine);

} // namespace holdfast

#endif
