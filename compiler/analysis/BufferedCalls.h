// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory the library functions that a section may call read and write
// through their arguments, as far as that can be known before the call: for
// engines that buffer writes. (Relatives of memcpy are in Calls.h.)
#ifndef HOLDFAST_COMPILER_BUFFEREDCALLS_H
#define HOLDFAST_COMPILER_BUFFEREDCALLS_H

#include "llvm/IR/InstrTypes.h"

namespace holdfast {

/// What a function does to the memory that one of its arguments points to.
struct ArgumentExtent {
  enum Kind {
    None,
    Bytes,  ///< reads 'Length' of them
    Until,  ///< reads up to one that equals 'Stop', but at most 'Length'
    String, ///< reads bytes up to a zero
    Result, ///< writes 'Width' bytes
    End,    ///< unless null: writes a pointer into argument 0, a String
    Append, ///< a String, behind which it copies the String of argument 1
  };
  Kind What = None;
  int Argument = -1;
  int Length = -1; ///< an argument; -1: no limit
  int Stop = -1;   ///< an argument; -1: a zero
  unsigned Width = 0;
};

struct BufferedCall {
  llvm::StringRef Name;
  ArgumentExtent Extents[2];
  /// The argument that the result points into, where it is not null; -1: none.
  int PointsInto = -1;

  const ArgumentExtent *extentOf(unsigned Argument) const;
};

/// Null when 'Call' is of another function, or of a body of its own.
const BufferedCall *findBufferedCall(const llvm::CallBase &Call);

} // namespace holdfast

#endif
