// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "body.hpp"

#include "known.hpp"
#include "walk.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>

#include <algorithm>

namespace hf::classify {

void walk::find(clang::SourceLocation at, std::string what) {
    finding found{place_of(context_, at), std::move(what)};
    const bool twice = std::ranges::any_of(out_.findings, [&](const finding& other) {
        return other.at == found.at && other.what == found.what;
    });
    if (!twice) out_.findings.push_back(std::move(found));
}

namespace {

bool is_trivial(const clang::FunctionDecl& f) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&f);
    if (method == nullptr || !f.isTrivial()) return false;
    return llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl>(method) ||
           method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator();
}

} // namespace

void walk::calls(clang::SourceLocation at, const clang::FunctionDecl* callee) {
    if (callee == nullptr) return find(at, "calls through a pointer");
    if (is_trivial(*callee) || is_allowed(*callee)) return;
    if (callee->hasAttr<clang::WeakAttr>() || callee->hasAttr<clang::IFuncAttr>() ||
        callee->hasAttr<clang::AliasAttr>())
        return find(at, "calls " + name_of(*callee) + "(), which the linker may replace");
    const clang::FunctionDecl* seen = all_.of(*callee);
    if (seen == nullptr) return find(at, explain(*callee));
    const call made{place_of(context_, at), seen};
    const bool twice = std::ranges::any_of(out_.calls, [&](const call& other) {
        return other.at == made.at && other.callee == made.callee;
    });
    if (!twice) out_.calls.push_back(made);
}

void walk::destroys(clang::SourceLocation at, clang::QualType type) {
    const auto* record = context_.getBaseElementType(type)->getAsCXXRecordDecl();
    if (record == nullptr || !record->hasDefinition() || record->hasTrivialDestructor()) return;
    const clang::CXXDestructorDecl* destructor = record->getDestructor();
    if (destructor == nullptr) return find(at, "destroys what cannot be seen");
    calls(at, destructor);
}

/// Constants that every run of the same program has: anything else that outlives the call is a
/// finding.
void walk::names(clang::SourceLocation at, const clang::VarDecl& variable) {
    if (variable.hasLocalStorage()) return;
    const std::string name = variable.getQualifiedNameAsString();
    if (variable.getTLSKind() != clang::VarDecl::TLS_None)
        return find(at, "names " + name + ", which is thread-local");
    if (name == "std::cout" || name == "std::cerr" || name == "std::clog" || name == "std::cin" ||
        name == "stdout" || name == "stderr" || name == "stdin")
        return find(at, "does I/O through " + name);
    const clang::QualType type = variable.getType();
    const char* const kind = variable.isStaticLocal() ? "a static local" : "a global";
    if (type->isReferenceType() || (type.isConstant(context_) && holds_address(type, context_)))
        return find(at, "names " + name + ", " + kind + " that holds an address");
    const auto* record = context_.getBaseElementType(type)->getAsCXXRecordDecl();
    if (!type.isConstant(context_) || (record != nullptr && record->hasMutableFields()))
        return find(at, "names " + name + ", " + kind + " that may change");
    const clang::VarDecl* with_value = nullptr;
    if (variable.getAnyInitializer(with_value) == nullptr || with_value == nullptr)
        return find(at, "names " + name + ", whose value is not visible");
    if (with_value->hasAttr<clang::WeakAttr>())
        return find(at, "names " + name + ", which the linker may replace");
    if (!with_value->hasConstantInitialization())
        find(at, "names " + name + ", " + kind + " whose value each run computes anew");
}

void walk::declares(const clang::Decl& declared) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&declared);
    if (variable == nullptr) return; // types, using, static_assert, prototypes
    const clang::SourceLocation at = variable->getLocation();
    if (!variable->hasLocalStorage()) return names(at, *variable);
    if (variable->getType().isVolatileQualified()) find(at, "uses volatile memory");
    if (variable->getType()->isVariablyModifiedType())
        find(at, "has an array whose length is not constant");
    if (const auto* cleanup = variable->getAttr<clang::CleanupAttr>())
        calls(at, cleanup->getFunctionDecl());
    visit(variable->getInit());
    destroys(at, variable->getType());
    if (const auto* parts = llvm::dyn_cast<clang::DecompositionDecl>(variable))
        for (const clang::BindingDecl* part : parts->bindings())
            if (const clang::VarDecl* held = part->getHoldingVar()) declares(*held);
}

/// Members and bases: what a destructor destroys without saying so.
void walk::destroys_members(const clang::CXXDestructorDecl& destructor) {
    const clang::CXXRecordDecl& record = *destructor.getParent();
    if (record.isUnion()) return;
    for (const auto* field : record.fields()) destroys(destructor.getLocation(), field->getType());
    for (const auto& base : record.bases()) destroys(destructor.getLocation(), base.getType());
}

body walk::function(const clang::FunctionDecl& f) {
    out_.name = name_of(f);
    for (const clang::ParmVarDecl* parameter : f.parameters())
        destroys(parameter->getLocation(), parameter->getType());
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(&f))
        for (const clang::CXXCtorInitializer* each : constructor->inits()) visit(each->getInit());
    if (const auto* destructor = llvm::dyn_cast<clang::CXXDestructorDecl>(&f))
        destroys_members(*destructor);
    visit(f.getBody());
    return std::move(out_);
}

body look_into(const clang::FunctionDecl& f, const definitions& all) {
    return walk(f.getASTContext(), all).function(f);
}

} // namespace hf::classify
