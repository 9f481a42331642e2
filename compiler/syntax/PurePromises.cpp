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

/// What a store changes, as far as that shows: the variable or 'this' that the
/// expression names, through members and elements; and whether it goes through a
/// pointer or reference.
struct Target {
  const VarDecl *Variable = nullptr;
  bool IsThis = false;
  bool IsThrough = false;
};

bool isArray(const Expr *E) {
  return E->IgnoreParenImpCasts()->getType()->isArrayType();
}

/// The class's operator that leads to what the object holds or points to.
const CXXOperatorCallExpr *access(const Expr *E) {
  const auto *Call = dyn_cast<CXXOperatorCallExpr>(E);
  if (!Call)
    return nullptr;
  const OverloadedOperatorKind Kind = Call->getOperator();
  return Kind == OO_Subscript || Kind == OO_Arrow ||
                 (Kind == OO_Star && Call->getNumArgs() == 1)
             ? Call
             : nullptr;
}

Target targetOf(const Expr *E, bool Through) {
  for (;;) {
    E = E->IgnoreParenCasts();
    if (const auto *Member = dyn_cast<MemberExpr>(E)) {
      Through |= Member->isArrow();
      E = Member->getBase();
    } else if (const auto *Element = dyn_cast<ArraySubscriptExpr>(E)) {
      E = Element->getBase();
      Through |= !isArray(E);
    } else if (const auto *Of = dyn_cast<UnaryOperator>(E)) {
      if (Of->getOpcode() == UO_Deref)
        Through = true;
      else if (Of->getOpcode() == UO_AddrOf)
        Through = false;
      else if (!Of->isIncrementDecrementOp())
        return {};
      E = Of->getSubExpr();
    } else if (const auto *Sum = dyn_cast<BinaryOperator>(E);
               Sum && Sum->isAdditiveOp()) {
      E = Sum->getRHS()->getType()->isPointerType() ? Sum->getRHS()
                                                    : Sum->getLHS();
    } else if (const CXXOperatorCallExpr *Call = access(E)) {
      Through = false; // an array holds its elements, an iterator does not
      E = Call->getArg(0);
    } else {
      break;
    }
  }
  if (isa<CXXThisExpr>(E))
    return {nullptr, true, true};
  const auto *Name = dyn_cast<DeclRefExpr>(E);
  const auto *Variable = Name ? dyn_cast<VarDecl>(Name->getDecl()) : nullptr;
  if (Variable && Variable->getType()->isReferenceType())
    Through = true;
  return {Variable, false, Through};
}

/// How many of the arguments, from the first, a well-known function of the
/// library stores to.
unsigned storesOf(const FunctionDecl &Function) {
  if (Function.getMemoryFunctionKind() != 0)
    return 1;
  if (!Function.isInStdNamespace() || !Function.getIdentifier())
    return 0;
  return Function.getName() == "swap"       ? 2
         : Function.getName() == "exchange" ? 1
                                            : 0;
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
  /// Declarations alone: bodies are looked at where there is a promise.
  bool TraverseStmt(Stmt *) { return true; }

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
      return !E->isAssignmentOp() ||
             Check.look(*E->getLHS(), false, E->getOpcode() == BO_Assign);
    }
    bool VisitUnaryOperator(UnaryOperator *E) {
      return !E->isIncrementDecrementOp() || Check.look(*E->getSubExpr());
    }
    bool VisitCXXOperatorCallExpr(CXXOperatorCallExpr *E) {
      const OverloadedOperatorKind Kind = E->getOperator();
      return !(E->isAssignmentOp() || Kind == OO_PlusPlus ||
               Kind == OO_MinusMinus) ||
             Check.look(*E->getArg(0), false, Kind == OO_Equal);
    }
    bool VisitCXXNewExpr(CXXNewExpr *E) {
      return E->getNumPlacementArgs() != 1 ||
             Check.lookBehind(*E->getPlacementArg(0));
    }
    bool VisitCallExpr(CallExpr *E) {
      const FunctionDecl *Callee = E->getDirectCallee();
      const unsigned Stores = Callee ? storesOf(*Callee) : 0;
      for (unsigned I = 0; I < Stores && I < E->getNumArgs(); ++I)
        Check.lookBehind(*E->getArg(I));
      return true;
    }
    /// The functions of a local class have objects and parameters of their own.
    bool TraverseCXXRecordDecl(CXXRecordDecl *) { return true; }

  private:
    PromiseCheck &Check;
  };

  /// A store to what a pointer leads to, or to a reference.
  bool lookBehind(const Expr &Argument) {
    return look(Argument,
                Argument.getType()->isPointerType() && !isArray(&Argument));
  }
  /// 'Keeps': it may keep a result, which it need not find again.
  bool look(const Expr &StoredTo, bool Through = false, bool Keeps = false) {
    const Target To = targetOf(&StoredTo, Through);
    const bool IsParameter = To.Variable && isa<ParmVarDecl>(To.Variable) &&
                             To.Variable->getDeclContext() == Of;
    if (To.IsThis || (IsParameter && To.IsThrough))
      report(*Of, StoredTo.getExprLoc(), "stores to what it was given");
    else if (To.Variable && !To.Variable->hasLocalStorage() && !Keeps)
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
