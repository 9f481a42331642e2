// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PurePromises.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/RecursiveASTVisitor.h"

using namespace clang;

namespace holdfast {
namespace {

bool isPromisedPure(const FunctionDecl &Function) {
  for (const auto *Mark : Function.specific_attrs<AnnotateAttr>())
    if (Mark->getAnnotation() == "holdfast.pure")
      return true;
  return false;
}

/// What an assignment stores to, as far as that shows: the variable that the
/// expression names, through members and elements; or whether it goes through a
/// pointer or reference that the function was given.
struct Target {
  const VarDecl *Variable = nullptr;
  bool IsThrough = false;
};

Target targetOf(const Expr *E) {
  bool Through = false;
  for (;;) {
    E = E->IgnoreParenCasts();
    if (const auto *Member = dyn_cast<MemberExpr>(E)) {
      Through |= Member->isArrow();
      E = Member->getBase();
    } else if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
      E = Element->getBase();
      Through |= !E->IgnoreParenImpCasts()->getType()->isArrayType();
    } else if (const auto *Of = dyn_cast<UnaryOperator>(E);
               Of && Of->getOpcode() == UO_Deref) {
      Through = true;
      E = Of->getSubExpr();
    } else if (const auto *Sum = dyn_cast<BinaryOperator>(E);
               Sum && Sum->isAdditiveOp()) {
      E = Sum->getLHS();
    } else {
      break;
    }
  }
  if (isa<CXXThisExpr>(E))
    return {nullptr, true};
  const auto *Name = dyn_cast<DeclRefExpr>(E);
  const auto *Variable = Name ? dyn_cast<VarDecl>(Name->getDecl()) : nullptr;
  if (Variable && Variable->getType()->isReferenceType())
    Through = true;
  return {Variable, Through};
}

class PromiseCheck : public RecursiveASTVisitor<PromiseCheck> {
public:
  explicit PromiseCheck(DiagnosticsEngine &Diagnostics)
      : Diagnostics(Diagnostics),
        Error(Diagnostics.getCustomDiagID(
            DiagnosticsEngine::Error,
            "'%0' is marked HF_PURE, but %1: a section takes its result for "
            "one that depends on the arguments alone, and logs nothing of what "
            "it stores. Let a section call it without the mark")) {}

  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitFunctionDecl(FunctionDecl *Function) {
    if (!isPromisedPure(*Function) || Function->isDependentContext())
      return true;
    if (Function->isFirstDecl() && Function->getReturnType()->isVoidType())
      report(*Function, Function->getLocation(), "returns nothing");
    if (Function->doesThisDeclarationHaveABody()) {
      Of = Function;
      Stores.TraverseStmt(Function->getBody());
    }
    return true;
  }

private:
  class StoreFinder : public RecursiveASTVisitor<StoreFinder> {
  public:
    explicit StoreFinder(PromiseCheck &Check) : Check(Check) {}
    bool VisitBinaryOperator(BinaryOperator *E) {
      return !E->isAssignmentOp() || Check.look(*E->getLHS());
    }
    bool VisitUnaryOperator(UnaryOperator *E) {
      return !E->isIncrementDecrementOp() || Check.look(*E->getSubExpr());
    }

  private:
    PromiseCheck &Check;
  };

  bool look(const Expr &StoredTo) {
    const Target To = targetOf(&StoredTo);
    const bool IsGiven = To.Variable
                             ? isa<ParmVarDecl>(To.Variable) && To.IsThrough
                             : To.IsThrough;
    if (IsGiven)
      report(*Of, StoredTo.getExprLoc(), "stores to what it was given");
    else if (To.Variable && !To.Variable->hasLocalStorage())
      report(*Of, StoredTo.getExprLoc(),
             "stores to '" + To.Variable->getNameAsString() +
                 "', which is no variable of its own");
    return true;
  }

  void report(const FunctionDecl &Function, SourceLocation At,
              const std::string &What) {
    Diagnostics.Report(At, Error) << Function.getNameAsString() << What;
  }

  DiagnosticsEngine &Diagnostics;
  const unsigned Error;
  const FunctionDecl *Of = nullptr; // whose body is looked at
  StoreFinder Stores{*this};
};

} // namespace

void checkPurePromises(ASTContext &Context, DiagnosticsEngine &Diagnostics) {
  PromiseCheck(Diagnostics).TraverseDecl(Context.getTranslationUnitDecl());
}

} // namespace holdfast
