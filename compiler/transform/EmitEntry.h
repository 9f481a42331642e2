// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_EMITENTRY_H
#define HOLDFAST_COMPILER_EMITENTRY_H

#include "analysis/Arguments.h"
#include "analysis/Names.h"

#include "llvm/IR/GlobalVariable.h"

namespace holdfast {

/// What a section runs, compiled for one engine.
struct SectionForm {
  llvm::Function *Body;
  const EngineInfo *Engine;
};

/// Makes 'Txfunc' open a section around one of the forms, and emits its
/// descriptor, which it returns. 'Forms': those of the options' engine.
llvm::GlobalVariable *emitEntry(llvm::Function &Txfunc,
                                llvm::ArrayRef<SectionForm> Forms,
                                const ArgumentBlock &Arguments,
                                uint64_t Version,
                                const SectionOptions &Options);

/// Emits a constructor of the module that calls this function of the runtime with
/// each list of arguments.
void emitAtLoad(llvm::Module &M, llvm::StringRef Name,
                llvm::ArrayRef<llvm::SmallVector<llvm::Value *, 2>> Arguments);

/// Emits the module's constructor that calls the runtime's function 'Register'
/// with each of 'Descriptors', and, where the module may be unloaded, a destructor
/// that does so with 'Forget'.
void emitRegistration(llvm::Module &M, llvm::StringRef Register,
                      llvm::StringRef Forget,
                      llvm::ArrayRef<llvm::GlobalVariable *> Descriptors);

/// The same, if the program has those functions, with a table and how many rows
/// that has.
void emitWeakRegistration(llvm::Module &M, llvm::StringRef Register,
                          llvm::StringRef Forget, llvm::Constant &Table,
                          uint64_t Rows);

// Parts of descriptors of every kind.

/// Returns "file:line" of the function, of a closure that it runs if that is what
/// it is for.
std::string placeInSource(const llvm::Function &Txfunc,
                          const llvm::Function &Body);
llvm::Constant *emitText(llvm::Function &Txfunc, llvm::StringRef Text);
llvm::Constant *emitText(llvm::Module &M, llvm::StringRef Text,
                         const llvm::Twine &Name = "hf_text");
/// Emits the constant that describes 'Txfunc', for one engine, into its COMDAT group.
llvm::GlobalVariable *emitDescriptor(llvm::Function &Txfunc,
                                     const EngineInfo &Engine,
                                     llvm::Constant &Contents);
/// Deletes the function's body, and nothing else of it.
void emptyFunction(llvm::Function &F);

} // namespace holdfast

#endif
