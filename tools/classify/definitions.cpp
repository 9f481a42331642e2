// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "body.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Index/USRGeneration.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>

namespace hf::classify {
namespace {

std::string symbol_of(const clang::FunctionDecl& f) {
    llvm::SmallString<128> out;
    return clang::index::generateUSRForDecl(&f, out) ? std::string() : out.str().str();
}

class collector : public clang::RecursiveASTVisitor<collector> {
public:
    explicit collector(std::map<std::string, const clang::FunctionDecl*>& to) : to_(to) {}
    bool shouldVisitTemplateInstantiations() const { return true; }
    bool shouldVisitImplicitCode() const { return false; }
    bool VisitFunctionDecl(clang::FunctionDecl* f) {
        if (!f->doesThisDeclarationHaveABody() || f->isDependentContext()) return true;
        if (!f->isExternallyVisible())
            return true; // another file's function of this name is another one
        const std::string name = symbol_of(*f);
        if (!name.empty()) to_.try_emplace(name, f);
        return true;
    }

private:
    std::map<std::string, const clang::FunctionDecl*>& to_;
};

bool record_holds_address(const clang::CXXRecordDecl& record, const clang::ASTContext& in) {
    const clang::CXXRecordDecl* defined = record.getDefinition();
    if (defined == nullptr || defined->isDynamicClass()) return true;
    for (const auto& base : defined->bases())
        if (holds_address(base.getType(), in)) return true;
    for (const auto* field : defined->fields())
        if (holds_address(field->getType(), in)) return true;
    return false;
}

} // namespace

place place_of(const clang::ASTContext& in, clang::SourceLocation at) {
    const clang::SourceManager& sources = in.getSourceManager();
    at = sources.getExpansionLoc(at);
    place out;
    out.line = sources.getExpansionLineNumber(at);
    out.of_system = sources.isInSystemHeader(at);
    const auto file = sources.getFileEntryRefForID(sources.getFileID(at));
    if (!file) return {"(no file)", 0, true};
    llvm::SmallString<256> name = file->getFileEntry().tryGetRealPathName();
    if (name.empty()) name = file->getName();
    llvm::SmallString<256> here, real;
    if (!llvm::sys::fs::current_path(here) && !llvm::sys::fs::real_path(here, real)) {
        real += "/";
        llvm::StringRef rest = name;
        if (rest.consume_front(real)) name = llvm::SmallString<256>(rest);
    }
    out.file = name.str().str();
    return out;
}

void definitions::add(clang::ASTContext& file) {
    collector(by_name_).TraverseDecl(file.getTranslationUnitDecl());
}

const clang::FunctionDecl* definitions::of(const clang::FunctionDecl& f) const {
    const clang::FunctionDecl* found = nullptr;
    if (f.hasBody(found)) return found;
    if (!f.isExternallyVisible()) return nullptr;
    const auto at = by_name_.find(symbol_of(f));
    return at == by_name_.end() ? nullptr : at->second;
}

bool holds_address(clang::QualType type, const clang::ASTContext& in) {
    type = type.getCanonicalType();
    if (type->isAnyPointerType() || type->isReferenceType() || type->isMemberPointerType() ||
        type->isNullPtrType() || type->isBlockPointerType() || type->isFunctionType())
        return true;
    if (type->isDependentType()) return true;
    if (const clang::ArrayType* array = in.getAsArrayType(type))
        return holds_address(array->getElementType(), in);
    if (const auto* atomic = type->getAs<clang::AtomicType>())
        return holds_address(atomic->getValueType(), in);
    if (const auto* record = type->getAsCXXRecordDecl()) return record_holds_address(*record, in);
    if (type->isVoidType()) return false; // bytes, to which no address can be converted
    return !(type->isIntegralOrEnumerationType() || type->isFloatingType() ||
             type->isVectorType() || type->isAnyComplexType());
}

std::string name_of(const clang::FunctionDecl& f) {
    if (const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&f);
        method != nullptr && method->getParent()->isLambda())
        return "lambda";
    std::string out;
    llvm::raw_string_ostream to(out);
    clang::PrintingPolicy policy(f.getASTContext().getLangOpts());
    policy.SuppressUnwrittenScope = true; // inline and unnamed namespaces
    policy.SuppressInlineNamespace = true;
    f.printQualifiedName(to, policy);
    return out;
}

} // namespace hf::classify
