// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the plugin that clang alone can load: what it refuses stands in
// the program's text.
#include "PurePromises.h"
#include "StoredTypes.h"

#include "clang/AST/ASTConsumer.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

using namespace clang;

namespace holdfast {
namespace {

class SyntaxChecks : public ASTConsumer {
public:
  explicit SyntaxChecks(DiagnosticsEngine &Diagnostics)
      : Diagnostics(Diagnostics) {}

  void HandleTranslationUnit(ASTContext &Context) override {
    if (Diagnostics.hasErrorOccurred())
      return;
    checkStoredTypes(Context, Diagnostics);
    checkPurePromises(Context, Diagnostics);
  }

private:
  DiagnosticsEngine &Diagnostics;
};

class SyntaxAction : public PluginASTAction {
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &Compiler,
                                                 llvm::StringRef) override {
    return std::make_unique<SyntaxChecks>(Compiler.getDiagnostics());
  }
  bool ParseArgs(const CompilerInstance &,
                 const std::vector<std::string> &) override {
    return true;
  }
  // Before code is made: a mistake has no second error behind it.
  ActionType getActionType() override { return AddBeforeMainAction; }
};

FrontendPluginRegistry::Add<SyntaxAction>
    Added("holdfast-syntax", "refuses what the text of a program shows");

} // namespace
} // namespace holdfast
