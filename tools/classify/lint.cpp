// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lint.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>

#include <set>

namespace hf::classify {
namespace {

struct use {
    clang::SourceLocation at;
    const clang::CXXMethodDecl* member; // defer, defer_beside or call, with its function
    bool operator<(const use& other) const {
        return std::pair(at, member) < std::pair(other.at, other.member);
    }
};

class use_finder : public clang::RecursiveASTVisitor<use_finder> {
public:
    bool shouldVisitTemplateInstantiations() const { return true; }
    bool VisitMemberExpr(clang::MemberExpr* e) {
        return take(e->getMemberLoc(), e->getMemberDecl());
    }
    bool VisitDeclRefExpr(clang::DeclRefExpr* e) { return take(e->getLocation(), e->getDecl()); }
    const std::set<use>& found() const { return found_; }

private:
    bool take(clang::SourceLocation at, const clang::ValueDecl* named) {
        const auto* member = llvm::dyn_cast<clang::CXXMethodDecl>(named);
        if (member == nullptr || !member->getDeclName().isIdentifier()) return true;
        if (member->getName() != "defer" && member->getName() != "defer_beside" &&
            member->getName() != "call")
            return true;
        const std::string of = member->getParent()->getQualifiedNameAsString();
        if (of == "hf::simpo::object" || of == "hf::simpo::caller" || of == "hf::simpo::retraced")
            found_.insert({at, member});
        return true;
    }
    std::set<use> found_;
};

/// T of object<T>, and F of its defer<F>, defer_beside<F> or call<F>.
bool arguments_of(const clang::CXXMethodDecl& member, const clang::CXXRecordDecl*& of,
                  const clang::CXXMethodDecl*& function) {
    const auto* object = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(member.getParent());
    const auto* given = member.getTemplateSpecializationArgs();
    if (object == nullptr || given == nullptr || given->size() == 0) return false;
    of = object->getTemplateArgs()[0].getAsType()->getAsCXXRecordDecl();
    if (given->get(0).getKind() != clang::TemplateArgument::Declaration) return false;
    function = llvm::dyn_cast<clang::CXXMethodDecl>(given->get(0).getAsDecl());
    return of != nullptr && function != nullptr;
}

/// Whether this is where a 'retraced' passes calls to its 'caller'.
bool is_ours(const clang::ASTContext& in, clang::SourceLocation at) {
    return in.getSourceManager().getFilename(at).ends_with("holdfast/simpo/caller.hpp");
}

} // namespace

std::vector<complaint> lint(const parsed& files, effects& with) {
    std::vector<complaint> out;
    std::set<std::pair<place, std::string>> told;
    for (const auto& file : files) {
        use_finder uses;
        uses.TraverseDecl(file->getASTContext().getTranslationUnitDecl());
        for (const use& each : uses.found()) {
            const clang::CXXRecordDecl* of = nullptr;
            const clang::CXXMethodDecl* function = nullptr;
            if (!arguments_of(*each.member, of, function)) continue;
            const bool defers = each.member->getName() != "call";
            const std::string by = each.member->getParent()->getNameAsString();
            if (!defers && function->isConst() && by == "object") continue; // not logged
            if (by != "object" && is_ours(file->getASTContext(), each.at))
                continue; // found in its user
            verdict found = classify(*of, *function, with);
            if (defers ? found.deferrable() : found.repeatable()) continue;
            std::string what =
                each.member->getNameAsString() + "<&" + name_of(*function) + ">: " +
                (defers ? "this function is not deferrable"
                        : "recovery may call this function again, and it would not do the same");
            place at = place_of(file->getASTContext(), each.at);
            if (!told.emplace(at, what).second) continue;
            out.push_back({std::move(at), std::move(what), std::move(found)});
        }
    }
    return out;
}

} // namespace hf::classify
