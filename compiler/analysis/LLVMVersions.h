// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the LLVM versions that the plugin is built for differ: 19 and 21. No
// other file asks for the version.
#ifndef HOLDFAST_COMPILER_LLVMVERSIONS_H
#define HOLDFAST_COMPILER_LLVMVERSIONS_H

#include "llvm/Analysis/CaptureTracking.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

#if LLVM_VERSION_MAJOR == 19
#include "llvm/ADT/MapVector.h"
#include "llvm/Transforms/Instrumentation.h"
#elif LLVM_VERSION_MAJOR == 21
#include "llvm/IR/CmpPredicate.h"
#include "llvm/Transforms/Utils/Instrumentation.h"
#else
#error "the plugin is written for LLVM 19 and 21"
#endif

namespace holdfast {

#if LLVM_VERSION_MAJOR == 19

constexpr llvm::Attribute::AttrKind NoCaptureKind = llvm::Attribute::NoCapture;
using ComparedBy = llvm::CmpInst::Predicate;
/// What GEPOperator::collectOffset fills.
using VariableOffsets = llvm::MapVector<llvm::Value *, llvm::APInt>;

inline llvm::StringRef targetTriple(const llvm::Module &M) {
  return M.getTargetTriple();
}

inline llvm::TypeBasedAAResult aliasesByType() {
  return llvm::TypeBasedAAResult();
}

/// Visits the uses that capture an address until one of them stops it.
struct CaptureVisitor : llvm::CaptureTracker {
  virtual bool stopsAt(const llvm::Use *U) = 0;
  bool captured(const llvm::Use *U) final { return stopsAt(U); }
};

#else

constexpr llvm::Attribute::AttrKind NoCaptureKind = llvm::Attribute::Captures;
using ComparedBy = llvm::CmpPredicate;
using VariableOffsets = llvm::SmallMapVector<llvm::Value *, llvm::APInt, 4>;

inline llvm::StringRef targetTriple(const llvm::Module &M) {
  return M.getTargetTriple().str();
}

inline llvm::TypeBasedAAResult aliasesByType() {
  return llvm::TypeBasedAAResult(/*UsingTypeSanitizer=*/false);
}

/// Visits the uses that capture an address, or a part of it, until one of them
/// stops it.
struct CaptureVisitor : llvm::CaptureTracker {
  virtual bool stopsAt(const llvm::Use *U) = 0;
  Action captured(const llvm::Use *U, llvm::UseCaptureInfo) final {
    return stopsAt(U) ? Stop : Continue;
  }
};

#endif

} // namespace holdfast

#endif
