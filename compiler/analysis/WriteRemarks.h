// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What was decided about each write of a section, as remarks with its line, where the compiler is asked for them:
//
//   -Rpass=holdfast            writes that need no log, and why
//   -Rpass-missed=holdfast     writes whose old bytes are logged
//   -Rpass-analysis=holdfast   of these, the ones that the program could call lazy (BackPointers.h)
#ifndef HOLDFAST_COMPILER_WRITEREMARKS_H
#define HOLDFAST_COMPILER_WRITEREMARKS_H

#include "analysis/ClobberWrites.h"

namespace holdfast {

void remarkOnWrites(llvm::Function &F, llvm::ArrayRef<LoggedWrite> Writes,
                    const EngineInfo &Engine);

} // namespace holdfast

#endif
