// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section cannot do if it goes on where a crash has stopped it.
#ifndef HOLDFAST_COMPILER_RESUMERULES_H
#define HOLDFAST_COMPILER_RESUMERULES_H

#include "analysis/Sections.h"

namespace holdfast {

/// Calls 'Report' with every place of the sections that cannot be resumed.
void findUnresumable(const Sections &All, SectionReport Report);

} // namespace holdfast

#endif
