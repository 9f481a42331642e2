// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of statements and expressions, by clang's names for them. A kind in none of these lists is
// a finding (body.hpp, 2).
#include "walk.hpp"

#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprConcepts.h>
#include <clang/AST/StmtOpenMP.h>

namespace hf::classify {

void walk::children(const clang::Stmt& s) {
    for (const clang::Stmt* child : s.children()) visit(child);
}

void walk::visit(const clang::Stmt* s) {
    if (s == nullptr) return;
    if (const auto* e = llvm::dyn_cast<clang::Expr>(s)) {
        check_type(*e);
        if (visit_call(*e) || visit_object(*e) || visit_indirect(*e) || visit_operand(*e)) return;
    }
    if (visit_leaf(*s) || visit_plain(*s) || visit_statement(*s) || visit_refused(*s)) return;
    find(s->getBeginLoc(), std::string("has a construct that classify does not know (") +
                               s->getStmtClassName() + ")");
}

/// Checks what can be wrong with any expression: its type, and how it rounds.
void walk::check_type(const clang::Expr& e) {
    if (llvm::isa<clang::InitListExpr, clang::ParenListExpr>(e)) return;
    const clang::QualType type = e.getType();
    if (type.isVolatileQualified()) find(e.getExprLoc(), "uses volatile memory");
    if (type->isAtomicType()) find(e.getExprLoc(), "uses atomics");
    if (!type->isFloatingType() || !llvm::isa<clang::BinaryOperator, clang::CastExpr>(e)) return;
    const clang::FPOptions options = e.getFPFeaturesInEffect(context_.getLangOpts());
    if (options.getAllowFEnvAccess() || options.getRoundingMode() == llvm::RoundingMode::Dynamic)
        find(e.getExprLoc(), "uses the floating-point mode");
}

/// Nothing below them is evaluated.
bool walk::visit_leaf(const clang::Stmt& s) {
    using namespace clang;
    return isa<NullStmt, BreakStmt, ContinueStmt, GotoStmt, IntegerLiteral, FloatingLiteral,
               CharacterLiteral, StringLiteral, CXXBoolLiteralExpr, CXXNullPtrLiteralExpr,
               GNUNullExpr, ImaginaryLiteral, FixedPointLiteral, CXXThisExpr, ImplicitValueInitExpr,
               NoInitExpr, CXXScalarValueInitExpr, UnaryExprOrTypeTraitExpr, CXXNoexceptExpr,
               TypeTraitExpr, ArrayTypeTraitExpr, ExpressionTraitExpr, RequiresExpr,
               ConceptSpecializationExpr, SizeOfPackExpr, OffsetOfExpr, PredefinedExpr,
               ArrayInitIndexExpr>(s);
}

/// Their effects are those of their parts.
bool walk::visit_plain(const clang::Stmt& s) {
    using namespace clang;
    const bool plain =
        isa<CompoundStmt, ReturnStmt, WhileStmt, DoStmt, ForStmt, CXXForRangeStmt, SwitchStmt,
            CaseStmt, DefaultStmt, LabelStmt, AttributedStmt, CXXTryStmt, ParenExpr,
            ArraySubscriptExpr, UnaryOperator, ConditionalOperator, ExprWithCleanups,
            MaterializeTemporaryExpr, StmtExpr, CompoundLiteralExpr, CXXStdInitializerListExpr,
            CXXPseudoDestructorExpr>(s);
    if (plain) children(s);
    return plain;
}

/// Known, and never part of a deferrable function.
bool walk::visit_refused(const clang::Stmt& s) {
    using namespace clang;
    const char* why = nullptr;
    if (isa<CXXThrowExpr>(s)) why = "throws";
    if (isa<CXXCatchStmt>(s)) why = "catches an exception";
    if (isa<CXXDeleteExpr>(s)) why = "allocates or frees memory outside of the object (delete)";
    if (isa<CXXTypeidExpr, CXXDynamicCastExpr>(s)) why = "asks for a type at run time";
    if (isa<AtomicExpr>(s)) why = "uses atomics";
    if (isa<AsmStmt>(s)) why = "has assembler";
    if (isa<VAArgExpr>(s)) why = "takes unnamed arguments";
    if (isa<CoroutineBodyStmt, CoroutineSuspendExpr, CoreturnStmt>(s)) why = "is a coroutine";
    if (isa<AddrLabelExpr, IndirectGotoStmt>(s)) why = "jumps to an address";
    if (isa<OMPExecutableDirective>(s)) why = "runs in several threads";
    if (isa<SourceLocExpr>(s)) why = "asks where it stands in the source";
    if (why == nullptr) return false;
    find(s.getBeginLoc(), why);
    if (!isa<CoroutineBodyStmt, OMPExecutableDirective>(s)) children(s);
    return true;
}

bool walk::visit_statement(const clang::Stmt& s) {
    if (const auto* declared = llvm::dyn_cast<clang::DeclStmt>(&s)) {
        for (const clang::Decl* each : declared->decls()) declares(*each);
        return true;
    }
    if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(&s)) return visit_if(*branch), true;
    return false;
}

namespace {

/// Whether a jump may lead into it, past the condition before it.
bool has_label(const clang::Stmt* s) {
    if (s == nullptr) return false;
    if (llvm::isa<clang::LabelStmt, clang::SwitchCase>(s)) return true;
    for (const clang::Stmt* child : s->children())
        if (has_label(child)) return true;
    return false;
}

} // namespace

/// A branch that is never taken at run time says nothing: 'if constexpr', 'if consteval', and what
/// asks whether a constant is being computed.
void walk::visit_if(const clang::IfStmt& s) {
    visit(s.getInit());
    if (s.isConsteval()) return visit(s.isNonNegatedConsteval() ? s.getElse() : s.getThen());
    visit(s.getConditionVariableDeclStmt());
    visit(s.getCond());
    bool taken = false;
    const bool known = !s.getCond()->isValueDependent() &&
                       s.getCond()->EvaluateAsBooleanCondition(taken, context_);
    if (!known || taken || has_label(s.getThen())) visit(s.getThen());
    if (!known || !taken || has_label(s.getElse())) visit(s.getElse());
}

bool walk::visit_call(const clang::Expr& e) {
    using namespace clang;
    if (const auto* call = dyn_cast<CallExpr>(&e)) {
        children(e); // the callee and arguments, default ones included
        if (isa<CXXPseudoDestructorExpr>(call->getCallee()->IgnoreParens())) return true;
        const FunctionDecl* callee = call->getDirectCallee();
        const auto* method = dyn_cast_or_null<CXXMethodDecl>(callee);
        if (method != nullptr && method->isVirtual()) {
            const auto* member = dyn_cast<MemberExpr>(call->getCallee()->IgnoreParenImpCasts());
            if (member == nullptr || !member->hasQualifier()) {
                find(e.getExprLoc(), "makes a virtual call (" + name_of(*method) + ")");
                return true;
            }
        }
        calls(e.getExprLoc(), callee);
        return true;
    }
    if (const auto* made = dyn_cast<CXXConstructExpr>(&e)) {
        children(e);
        calls(e.getExprLoc(), made->getConstructor());
        return true;
    }
    if (const auto* inherited = dyn_cast<CXXInheritedCtorInitExpr>(&e))
        return calls(e.getExprLoc(), inherited->getConstructor()), true;
    return false;
}

bool walk::visit_object(const clang::Expr& e) {
    using namespace clang;
    if (const auto* temporary = dyn_cast<CXXBindTemporaryExpr>(&e)) {
        children(e);
        calls(e.getExprLoc(), temporary->getTemporary()->getDestructor());
        return true;
    }
    if (const auto* list = dyn_cast<InitListExpr>(&e)) {
        if (!list->isSemanticForm() && list->getSemanticForm()) list = list->getSemanticForm();
        for (const Expr* each : list->inits()) visit(each);
        visit(list->getArrayFiller());
        return true;
    }
    if (const auto* list = dyn_cast<CXXParenListInitExpr>(&e)) {
        for (const Expr* each : list->getInitExprs()) visit(each);
        visit(list->getArrayFiller());
        return true;
    }
    if (const auto* loop = dyn_cast<ArrayInitLoopExpr>(&e))
        return visit(loop->getCommonExpr()), visit(loop->getSubExpr()), true;
    if (const auto* lambda = dyn_cast<LambdaExpr>(&e)) { // its body is a call's, not its own
        for (const Expr* each : lambda->capture_inits()) visit(each);
        destroys(e.getExprLoc(), e.getType());
        return true;
    }
    if (const auto* made = dyn_cast<CXXNewExpr>(&e)) return visit_new(*made), true;
    return false;
}

/// Expressions that replace others.
bool walk::visit_indirect(const clang::Expr& e) {
    using namespace clang;
    if (const auto* given = dyn_cast<CXXDefaultArgExpr>(&e)) return visit(given->getExpr()), true;
    if (const auto* given = dyn_cast<CXXDefaultInitExpr>(&e)) return visit(given->getExpr()), true;
    if (const auto* given = dyn_cast<SubstNonTypeTemplateParmExpr>(&e))
        return visit(given->getReplacement()), true;
    if (const auto* opaque = dyn_cast<OpaqueValueExpr>(&e))
        return visit(opaque->getSourceExpr()), true;
    if (const auto* rewritten = dyn_cast<CXXRewrittenBinaryOperator>(&e))
        return visit(rewritten->getSemanticForm()), true;
    if (const auto* either = dyn_cast<BinaryConditionalOperator>(&e)) {
        visit(either->getCommon());
        visit(either->getFalseExpr());
        return true;
    }
    if (const auto* chosen = dyn_cast<GenericSelectionExpr>(&e))
        return visit(chosen->getResultExpr()), true;
    if (const auto* chosen = dyn_cast<ChooseExpr>(&e))
        return visit(chosen->getChosenSubExpr()), true;
    if (const auto* constant =
            dyn_cast<ConstantExpr>(&e)) { // of a consteval function: done already
        if (!constant->isImmediateInvocation()) visit(constant->getSubExpr());
        else if (holds_address(e.getType(), context_))
            find(e.getExprLoc(), "has a constant that holds an address");
        return true;
    }
    return false;
}

bool walk::visit_operand(const clang::Expr& e) {
    using namespace clang;
    if (const auto* named = dyn_cast<DeclRefExpr>(&e)) {
        if (const auto* variable = dyn_cast<VarDecl>(named->getDecl()))
            names(e.getExprLoc(), *variable);
        else if (isa<MSGuidDecl>(named->getDecl())) find(e.getExprLoc(), "names a global");
        else if (isa<TemplateParamObjectDecl>(named->getDecl()) &&
                 holds_address(e.getType(), context_))
            find(e.getExprLoc(), "names a template argument that holds an address");
        return true;
    }
    if (const auto* member = dyn_cast<MemberExpr>(&e)) return visit_member(*member), true;
    if (const auto* binary = dyn_cast<BinaryOperator>(&e)) return visit_binary(*binary), true;
    if (isa<CXXDynamicCastExpr>(&e)) return false;
    if (const auto* cast = dyn_cast<CastExpr>(&e)) return visit_cast(*cast), true;
    return false;
}

} // namespace hf::classify
