// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verdict.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>

#include <iterator>
#include <set>

namespace hf::classify {
namespace {

constexpr std::uint64_t argument_words_max = 60; // holdfast/simpo.hpp

std::string type_text(clang::QualType type, const clang::ASTContext& in) {
    clang::PrintingPolicy policy(in.getLangOpts());
    policy.SuppressTagKeyword = true;
    return type.getAsString(policy);
}

/// One by one what SIMPO and hf::simpo::object ask of a deferrable function's type.
class interface_check {
public:
    interface_check(const clang::CXXMethodDecl& f, std::vector<reason>& to)
        : f_(f), in_(f.getASTContext()), to_(to) {}

    void all() {
        const clang::SourceLocation at = f_.getLocation();
        if (!f_.getReturnType()->isVoidType())
            add(at,
                "returns " + type_text(f_.getReturnType(), in_) + ", which the caller waits for");
        if (f_.isConst()) add(at, "is const: there is nothing to log");
        if (f_.isVolatile()) add(at, "is volatile");
        if (f_.getRefQualifier() != clang::RQ_None) add(at, "is declared with & or &&");
        if (f_.isVariadic()) add(at, "takes unnamed arguments");
        if (f_.isVirtual()) add(at, "is virtual");
        const auto* type = f_.getType()->castAs<clang::FunctionProtoType>();
        if (!f_.isConst() && !type->isNothrow())
            add(at, "is not noexcept: recovery calls it again, and nobody catches");
        std::uint64_t words = 0;
        for (const clang::ParmVarDecl* each : f_.parameters()) words += parameter(*each);
        if (words > argument_words_max)
            add(at, "takes " + std::to_string(words) + " words of arguments, of 60 at most",
                kind::argument);
    }

private:
    void add(clang::SourceLocation at, std::string what, kind is = kind::interface) {
        const place here = place_of(in_, at);
        to_.push_back({is, here, std::move(what), {}, here});
    }
    void add(const clang::ParmVarDecl& p, const std::string& what) {
        add(p.getLocation(), "its argument " + p.getNameAsString() + what, kind::argument);
    }

    /// The words that it takes in a record. A const reference is a value: the record keeps a copy.
    std::uint64_t parameter(const clang::ParmVarDecl& p) {
        clang::QualType type = p.getType();
        if (const auto* reference = type->getAs<clang::ReferenceType>()) {
            if (type->isRValueReferenceType() || !reference->getPointeeType().isConstQualified())
                return add(p, " is a reference to what the caller has"), 0;
            type = reference->getPointeeType();
        }
        type = type.getUnqualifiedType();
        if (type->isIncompleteType()) return add(p, " is of no complete type"), 0;
        if (type->isArrayType()) add(p, " is an array, which no record holds: take a std::array");
        else if (holds_address(type, in_))
            add(p, " holds an address (" + type_text(type, in_) + ")");
        else if (!type.isTriviallyCopyableType(in_))
            add(p, " is not trivially copyable (" + type_text(type, in_) + ")");
        return (static_cast<std::uint64_t>(in_.getTypeSizeInChars(type).getQuantity()) + 7) / 8;
    }

    const clang::CXXMethodDecl& f_;
    const clang::ASTContext& in_;
    std::vector<reason>& to_;
};

/// Finds the places in a class that keep an address.
void find_addresses(const clang::CXXRecordDecl& record, std::vector<reason>& to) {
    const clang::ASTContext& in = record.getASTContext();
    const auto add = [&](clang::SourceLocation at, std::string what) {
        const place here = place_of(in, at);
        to.push_back({kind::layout, here, std::move(what), {}, here});
    };
    for (const auto& base : record.bases())
        if (const auto* of = base.getType()->getAsCXXRecordDecl(); of && of->hasDefinition())
            find_addresses(*of->getDefinition(), to);
    for (const auto* field : record.fields())
        if (holds_address(field->getType(), in))
            add(field->getLocation(), "member " + field->getNameAsString() + " holds an address (" +
                                          type_text(field->getType(), in) +
                                          "), which means nothing to the next process");
        else if (field->getType().isVolatileQualified())
            add(field->getLocation(), "member " + field->getNameAsString() + " is volatile");
}

std::vector<reason> layout_reasons(const clang::CXXRecordDecl& of) {
    std::vector<reason> out;
    const clang::ASTContext& in = of.getASTContext();
    const place here = place_of(in, of.getLocation());
    if (of.isDynamicClass())
        out.push_back({kind::layout, here, "the class has virtual functions or bases", {}, here});
    find_addresses(of, out);
    if (out.empty() && !in.getRecordType(&of).isTriviallyCopyableType(in))
        out.push_back({kind::layout, here, "the class is not trivially copyable", {}, here});
    return out;
}

bool is_candidate(const clang::CXXMethodDecl& f) {
    if (f.isImplicit() || f.isStatic() || f.isDeleted() || f.getAccess() != clang::AS_public)
        return false;
    if (llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl>(f)) return false;
    if (f.getDescribedFunctionTemplate() != nullptr) return false; // its versions are looked at
    return !f.isCopyAssignmentOperator() && !f.isMoveAssignmentOperator();
}

void collect(const clang::CXXRecordDecl& of, std::set<clang::DeclarationName>& hidden,
             std::vector<const clang::CXXMethodDecl*>& out) {
    std::set<clang::DeclarationName> own;
    const auto take = [&](const clang::CXXMethodDecl* f) {
        own.insert(f->getDeclName());
        if (is_candidate(*f) && !hidden.contains(f->getDeclName())) out.push_back(f);
    };
    for (const clang::Decl* each : of.decls()) {
        if (const auto* f = llvm::dyn_cast<clang::CXXMethodDecl>(each)) take(f);
        if (const auto* t = llvm::dyn_cast<clang::FunctionTemplateDecl>(each))
            for (const clang::FunctionDecl* version : t->specializations())
                if (const auto* f = llvm::dyn_cast<clang::CXXMethodDecl>(version)) take(f);
    }
    hidden.merge(own);
    for (const auto& base : of.bases()) {
        const auto* record = base.getType()->getAsCXXRecordDecl();
        if (base.getAccessSpecifier() == clang::AS_public && record && record->hasDefinition())
            collect(*record->getDefinition(), hidden, out);
    }
}

std::string signature_of(const clang::CXXMethodDecl& f) {
    const clang::ASTContext& in = f.getASTContext();
    std::string out = type_text(f.getReturnType(), in) + " " + f.getNameAsString() + "(";
    const char* between = "";
    for (const clang::ParmVarDecl* each : f.parameters()) {
        out += between + type_text(each->getType(), in);
        between = ", ";
    }
    return out + ")" + (f.isConst() ? " const" : "");
}

} // namespace

verdict classify(const clang::CXXRecordDecl& of, const clang::CXXMethodDecl& function,
                 effects& with) {
    verdict out{&function,
                function.getNameAsString(),
                signature_of(function),
                place_of(function.getASTContext(), function.getLocation()),
                {}};
    interface_check(function, out.reasons).all();
    for (reason& each : layout_reasons(of)) out.reasons.push_back(std::move(each));
    const clang::FunctionDecl* seen = with.all().of(function);
    if (seen == nullptr) {
        out.reasons.push_back({kind::effect,
                               out.at,
                               "has no visible body: name the file that defines it, too",
                               {},
                               out.at});
        return out;
    }
    std::vector<reason> done = with.of(*seen);
    out.reasons.insert(out.reasons.end(), std::make_move_iterator(done.begin()),
                       std::make_move_iterator(done.end()));
    return out;
}

std::vector<verdict> classify(const clang::CXXRecordDecl& of, effects& with) {
    std::set<clang::DeclarationName> hidden;
    std::vector<const clang::CXXMethodDecl*> functions;
    collect(of, hidden, functions);
    std::vector<verdict> out;
    for (const clang::CXXMethodDecl* each : functions) out.push_back(classify(of, *each, with));
    return out;
}

} // namespace hf::classify
