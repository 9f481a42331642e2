// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call inside a failure-atomic section means to the analysis.
#ifndef HOLDFAST_COMPILER_CALLS_H
#define HOLDFAST_COMPILER_CALLS_H

#include "analysis/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"
#include <string>

namespace holdfast {

enum class CallKind {
  Body,      ///< the callee's body is visible: call an instrumented clone of it
  Elsewhere, ///< of a function of another file that has a version for sections
  Alloc,     ///< hf_alloc: returns memory that no input lives in
  Preserve,  ///< hf_vlog_preserve
  NoAccess,  ///< touches no memory of the application
  Reads,     ///< reads through its pointer arguments, writes nothing
  Writes,    ///< memcpy and relatives: writes a range (see Accesses.h)
  Logs,      ///< the runtime's version of a library function: reads through its
             ///< arguments, logs what it overwrites
  Terminates, ///< does not come back: abort, a failed assertion
  Throws,     ///< the standard library's out-of-line throw
  Locks,      ///< takes or releases a lock of the pool: only for sections that
              ///< go on where they were; Why says it to others
  Unrepeatable, ///< touches no memory of the application, but may do something
                ///< else when it is run again, or throw: only for sections that
                ///< are never re-executed and can be taken back; Why says it
  Scratch, ///< takes or gives back memory outside of the pool: only for sections
           ///< that never run again; Why says it to others
  Indirect, ///< of whatever an address leads to: only where the runtime finds the
            ///< instance of it (DispatchCalls.h); Why says it to others
  Forbidden, ///< cannot be re-executed; Why says it to the user
};

struct CallMeaning {
  CallKind Kind;
  std::string Why; ///< of a Forbidden, Unrepeatable, Scratch, Indirect or Locks
                   ///< call
};

CallMeaning classifyCall(const llvm::CallBase &Call);

/// Returns which argument of a function of the library that throws, or makes an
/// exception, is a text; -1: none.
int thrownText(const llvm::CallBase &Call);

/// Whether the call makes, copies or destroys a standard exception, which is its
/// first argument, out of sight.
bool changesException(const llvm::CallBase &Call);

/// Whether it calls a clock, a source of random numbers or the like.
bool isVarying(const llvm::CallBase &Call);

/// Whether it asks where the thread's errno lies: not in a pool.
bool isErrno(const llvm::CallBase &Call);

/// Whether a call of a declared function may be left by an exception; of others
/// their body says it.
bool mayUnwind(const llvm::CallBase &Call);

/// The function a call names, through casts and aliases; null for an indirect
/// call.
llvm::Function *calledFunction(const llvm::CallBase &Call);

/// Whether it says of stores to come that they need no log. It touches no memory.
inline bool isSelection(const llvm::CallBase &Call) {
  const llvm::Function *Callee = calledFunction(Call);
  return Callee &&
         llvm::is_contained({LogFreeName, LazyName}, Callee->getName());
}

/// The function of the runtime that sections call instead of the C library's of
/// this name; empty: none.
std::string runtimeVersionOf(llvm::StringRef Name);

/// The library's function as its header names it: the one that a function of the
/// runtime of this name stands for, or this name's own.
std::string libraryNameOf(llvm::StringRef Name);

/// The function of the runtime that ends the process where the operator new of
/// this name throws; empty: none. For sections that no exception may leave.
llvm::StringRef quietNewOf(llvm::StringRef Name);

/// Which argument of a call of such a function is a function that is called
/// back; -1: none.
int calledBack(const llvm::CallBase &Call);

/// The C library's memcpy, strcpy and relatives, by the shape of their
/// arguments.
struct RangeWriter {
  llvm::StringRef Name;
  int Destination;
  int Source; ///< -1: none
  int Length; ///< -1: FixedBytes, or strlen(source) + 1 where that is 0
  uint64_t FixedBytes = 0;
};
const RangeWriter *findRangeWriter(const llvm::CallBase &Call);

} // namespace holdfast

#endif
