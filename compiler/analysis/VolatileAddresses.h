// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses that mean nothing to another process, on their way into a pool.
#ifndef HOLDFAST_COMPILER_VOLATILEADDRESSES_H
#define HOLDFAST_COMPILER_VOLATILEADDRESSES_H

#include "analysis/Sections.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace holdfast {

/// Calls 'Stored' for each store to a pool of the address of a function, of a
/// constant or a virtual table, or of a number made of such an address or of a
/// local's. The same of scratch memory and of locals themselves, where sections
/// never run again: for others rules of their own refuse these. Calls 'Report' for
/// each store at a place that such a number chooses.
///
/// A pointer that may be a constant's as well as a pool's is reported; one that
/// may be a local's as well passes.
void findVolatileAddresses(const Sections &All, const FreshFunctions &Fresh,
                           SectionReport Report, SectionReport Stored);

} // namespace holdfast

#endif
