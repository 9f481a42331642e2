// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls by which a section's accesses go through its write buffer
// (holdfast/abi/holdfast_abi.h).
#ifndef HOLDFAST_COMPILER_BUFFERBUILDER_H
#define HOLDFAST_COMPILER_BUFFERBUILDER_H

#include "analysis/Engines.h"
#include "transform/AccessWalk.h"

namespace holdfast {

class BufferBuilder : public AccessBuilder {
public:
  /// Inserts before 'Point', on behalf of 'Access'.
  BufferBuilder(const EngineInfo &Engine, llvm::Instruction &Point,
                const llvm::Instruction &Access);

  /// Returns where 'Bytes' bytes can be read: until the section stores, and a
  /// few more such calls have been made. So it must stand before its use.
  llvm::Value *read(llvm::Value *Address, llvm::Value *Bytes);
  /// The same for at most ReadInLineMax bytes: looks into the buffer if the
  /// filter says so.
  llvm::Value *readInLine(llvm::Value *Filter, llvm::Value *Address,
                          llvm::Value *Bytes);
  static constexpr uint64_t ReadInLineMax = 16;
  /// Loads where the section's filter is, once for all of the function.
  llvm::Value *filter();
  llvm::Value *readString(llvm::Value *Address);
  /// Stores 'V' at 'Address', element by element where 'V' has padding.
  void store(llvm::Value *V, llvm::Value *Address, llvm::Align Known);
  void put(llvm::Value *To, llvm::Value *From, llvm::Value *Bytes);
  void copy(llvm::Value *To, llvm::Value *From, llvm::Value *Bytes);
  void fill(llvm::Value *To, llvm::Value *Byte, llvm::Value *Bytes);

  /// Returns how many bytes there are at 'Address' up to the first that equals
  /// 'Stop', which counts, but at most 'Most'. No byte behind that is read.
  llvm::Value *countUntil(llvm::Value *Address, llvm::Value *Stop,
                          llvm::Value *Most);
  /// Returns strlen of a string that readString has returned.
  llvm::Value *lengthOfString(llvm::Value *At);

  /// Makes a local variable of the function.
  llvm::AllocaInst *local(llvm::Type *T, llvm::MaybeAlign Known = {});
  /// Makes a value of 64 bits of a length.
  llvm::Value *word(llvm::Value *Length);
  llvm::Value *word(uint64_t Length) { return getInt64(Length); }

private:
  const EngineInfo &Engine;
  llvm::Instruction &Point;
  llvm::Function &F;
  llvm::Module &M;

  llvm::CallInst *call(llvm::StringRef Step, llvm::Type *Result,
                       llvm::ArrayRef<llvm::Value *> Arguments);
  llvm::Function *counter();
};

} // namespace holdfast

#endif
