// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Expressions that could make an address that leads elsewhere, or a value that the next run does
// not repeat (body.hpp, 3).
#include "known.hpp"
#include "walk.hpp"

#include <clang/AST/DeclCXX.h>

namespace hf::classify {

/// Placement new is clean only into existing memory and for a type without addresses: otherwise it
/// would make pointers of bytes that the object kept.
void walk::visit_new(const clang::CXXNewExpr& e) {
    for (const clang::Expr* each : e.placement_arguments()) visit(each);
    if (e.getArraySize()) visit(*e.getArraySize());
    visit(e.getInitializer());
    const clang::FunctionDecl* allocator = e.getOperatorNew();
    if (allocator == nullptr || !allocator->isReservedGlobalPlacementOperator())
        find(e.getBeginLoc(), allocator == nullptr ? "allocates" : explain(*allocator));
    else if (holds_address(e.getAllocatedType(), context_))
        find(e.getBeginLoc(), "makes an object that holds an address in bytes");
}

void walk::visit_member(const clang::MemberExpr& e) {
    visit(e.getBase());
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(e.getMemberDecl()))
        return names(e.getMemberLoc(), *variable);
    // Any member of it: to read a number where an address was written makes a number of an address.
    const auto* field = llvm::dyn_cast<clang::FieldDecl>(e.getMemberDecl());
    if (field != nullptr && field->getParent()->isUnion() &&
        holds_address(context_.getRecordType(field->getParent()), context_))
        find(e.getMemberLoc(),
             "uses a union that may hold an address (" + field->getQualifiedNameAsString() + ")");
}

namespace {

/// The variable, or 'this', that an address was taken of; null where a pointer came from elsewhere.
const void* origin(const clang::Expr* e, const void* self) {
    using namespace clang;
    for (e = e->IgnoreParenCasts(); e != nullptr; e = e->IgnoreParenCasts()) {
        if (isa<CXXThisExpr>(e)) return self;
        if (const auto* unary = dyn_cast<UnaryOperator>(e)) {
            if (unary->getOpcode() != UO_AddrOf && unary->getOpcode() != UO_Deref) return nullptr;
            e = unary->getSubExpr();
        } else if (const auto* element = dyn_cast<ArraySubscriptExpr>(e)) {
            e = element->getBase();
        } else if (const auto* member = dyn_cast<MemberExpr>(e)) {
            e = member->getBase();
        } else if (const auto* sum = dyn_cast<BinaryOperator>(e)) {
            if (!sum->isAdditiveOp()) return nullptr;
            e = sum->getLHS();
        } else if (const auto* named = dyn_cast<DeclRefExpr>(e)) {
            const QualType type = named->getDecl()->getType();
            return type->isPointerType() || type->isReferenceType() ? nullptr : named->getDecl();
        } else {
            return nullptr;
        }
    }
    return nullptr;
}

} // namespace

void walk::visit_binary(const clang::BinaryOperator& e) {
    children(e);
    if (e.isPtrMemOp()) return find(e.getOperatorLoc(), "goes through a pointer to a member");
    const bool ordered =
        e.isRelationalOp() || e.getOpcode() == clang::BO_Cmp || e.getOpcode() == clang::BO_Sub;
    if (!ordered || !e.getLHS()->getType()->isPointerType() ||
        !e.getRHS()->getType()->isPointerType())
        return;
    const void *left = origin(e.getLHS(), this), *right = origin(e.getRHS(), this);
    if (left != nullptr && right != nullptr && left != right)
        find(e.getOperatorLoc(), "compares where two objects lie");
}

void walk::visit_cast(const clang::CastExpr& e) {
    using namespace clang;
    children(e);
    if (const auto* spelled = dyn_cast<ExplicitCastExpr>(&e)) removes_const(*spelled);
    switch (e.getCastKind()) {
    case CK_NoOp:
    case CK_LValueToRValue:
    case CK_ArrayToPointerDecay:
    case CK_FunctionToPointerDecay:
    case CK_BuiltinFnToFnPtr:
    case CK_NullToPointer:
    case CK_NullToMemberPointer:
    case CK_DerivedToBase:
    case CK_UncheckedDerivedToBase:
    case CK_ConstructorConversion:
    case CK_UserDefinedConversion:
    case CK_PointerToBoolean:
    case CK_MemberPointerToBoolean:
    case CK_ToVoid:
    case CK_ToUnion:
    case CK_VectorSplat:
    case CK_IntegralCast:
    case CK_IntegralToBoolean:
    case CK_IntegralToFloating:
    case CK_FloatingToIntegral:
    case CK_FloatingToBoolean:
    case CK_FloatingCast:
    case CK_BooleanToSignedIntegral:
    case CK_FloatingRealToComplex:
    case CK_FloatingComplexToReal:
    case CK_FloatingComplexToBoolean:
    case CK_FloatingComplexCast:
    case CK_FloatingComplexToIntegralComplex:
    case CK_IntegralRealToComplex:
    case CK_IntegralComplexToReal:
    case CK_IntegralComplexToBoolean:
    case CK_IntegralComplexCast:
    case CK_IntegralComplexToFloatingComplex: return;
    case CK_BitCast:
    case CK_LValueBitCast:
    case CK_LValueToRValueBitCast:
    case CK_BaseToDerived: return reinterprets(e);
    case CK_PointerToIntegral: return find(e.getExprLoc(), "makes a number of an address");
    case CK_IntegralToPointer: return find(e.getExprLoc(), "makes an address of a number");
    case CK_Dynamic: return find(e.getExprLoc(), "asks for a type at run time");
    case CK_AtomicToNonAtomic:
    case CK_NonAtomicToAtomic: return find(e.getExprLoc(), "uses atomics");
    default:
        find(e.getExprLoc(), std::string("has a conversion that classify does not know (") +
                                 e.getCastKindName() + ")");
    }
}

/// Bytes seen as another type: neither of the two has addresses in it.
void walk::reinterprets(const clang::CastExpr& e) {
    clang::QualType from = e.getSubExpr()->getType(), to = e.getType();
    if (e.getCastKind() == clang::CK_BitCast && from->isPointerType() && to->isPointerType()) {
        from = from->getPointeeType(); // the pointed-to types; the others are the bytes themselves
        to = to->getPointeeType();
    }
    if (e.getCastKind() == clang::CK_BaseToDerived && to->isPointerType())
        to = to->getPointeeType();
    const bool down = e.getCastKind() == clang::CK_BaseToDerived;
    if (down ? !holds_address(to, context_)
             : !holds_address(from, context_) && !holds_address(to, context_))
        return;
    clang::PrintingPolicy policy(context_.getLangOpts());
    policy.AnonymousTagLocations = false;
    policy.SuppressTagKeyword = true;
    find(e.getExprLoc(), "takes what holds an address for another type (" +
                             from.getAsString(policy) + " for " + to.getAsString(policy) + ")");
}

/// Writing a constant is undefined behaviour, and other memory may be written. A cast that removes
/// const is refused in the user's code, because declared const is then no promise; the standard
/// library's containers do it for their own elements.
void walk::removes_const(const clang::ExplicitCastExpr& e) {
    const bool of_library = place_of(context_, e.getExprLoc()).of_system;
    clang::QualType to = e.getTypeAsWritten(), from = e.getSubExprAsWritten()->getType();
    if (to->isReferenceType()) {
        to = to.getNonReferenceType();
    } else {
        if (!to->isPointerType() || !from->isPointerType()) return;
        to = to->getPointeeType();
        from = from->getPointeeType();
    }
    for (;;) {
        if (from.isConstQualified() && !to.isConstQualified() && !of_library)
            return find(e.getExprLoc(), "casts const away");
        if (from.isVolatileQualified() && !to.isVolatileQualified())
            return find(e.getExprLoc(), "uses volatile memory");
        if (!to->isPointerType() || !from->isPointerType()) return;
        to = to->getPointeeType();
        from = from->getPointeeType();
    }
}

} // namespace hf::classify
