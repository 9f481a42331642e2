// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sources.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Parse/Parser.h>
#include <clang/Sema/Scope.h>
#include <clang/Sema/Sema.h>
#include <clang/Tooling/CompilationDatabase.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <set>

namespace hf::classify {
namespace {

using arguments = clang::tooling::CommandLineArguments;

bool is_header(llvm::StringRef file) {
    const llvm::StringRef end = llvm::sys::path::extension(file);
    return end == ".h" || end == ".hpp" || end == ".hh" || end == ".hxx" || end == ".inc";
}

/// The compiler's plugin says nothing of a class, and is built into the compiler's process, not
/// into this one.
arguments without_plugins(const arguments& given, llvm::StringRef) {
    arguments out;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const llvm::StringRef word = given[i];
        if (word.starts_with("-fplugin") || word.starts_with("-fpass-plugin") ||
            word.starts_with("--holdfast-") || word.starts_with("-Rpass"))
            continue;
        if (word == "-mllvm" || (word == "-Xclang" && i + 1 < given.size() &&
                                 llvm::StringRef(given[i + 1]).starts_with("-load"))) {
            ++i;
            continue;
        }
        out.push_back(given[i]);
    }
    return out;
}

/// Public headers beside an installed program.
std::string installed_headers() {
    const std::string program = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
    const llvm::StringRef prefix =
        llvm::sys::path::parent_path(llvm::sys::path::parent_path(program));
    llvm::SmallString<256> out = prefix;
    llvm::sys::path::append(out, "include");
    llvm::SmallString<256> one = out;
    llvm::sys::path::append(one, "holdfast", "simpo.hpp");
    return llvm::sys::fs::exists(one) ? out.str().str() : std::string();
}

std::unique_ptr<clang::tooling::CompilationDatabase> commands(const request& asked,
                                                              const std::string& file) {
    using namespace clang::tooling;
    if (asked.build_folder.empty()) {
        arguments flags = asked.flags;
        if (!asked.flags_given) flags = {"-std=c++20"};
        if (is_header(file)) flags.insert(flags.begin(), {"-x", "c++"});
        return std::make_unique<FixedCompilationDatabase>(".", flags);
    }
    std::string why;
    auto out = CompilationDatabase::loadFromDirectory(asked.build_folder, why);
    if (!out) {
        llvm::errs() << "holdfast classify: " << asked.build_folder
                     << ": no compile_commands.json that can be read\n";
        return nullptr;
    }
    return inferMissingCompileCommands(std::move(out)); // of headers: their neighbours'
}

/// Null if it does not compile; the compiler has said why.
std::unique_ptr<clang::ASTUnit> parse(const request& asked, const std::string& file) {
    const auto by = commands(asked, file);
    if (!by) return nullptr;
    clang::tooling::ClangTool tool(*by, file);
    tool.appendArgumentsAdjuster(without_plugins);
    arguments more{"-w", "-Qunused-arguments", "-resource-dir", HF_CLANG_RESOURCES};
    if (const std::string headers = installed_headers(); !headers.empty())
        more.insert(more.end(), {"-idirafter", headers});
    tool.appendArgumentsAdjuster(clang::tooling::getInsertArgumentAdjuster(
        more, clang::tooling::ArgumentInsertPosition::BEGIN));
    parsed out;
    const bool done = tool.buildASTs(out) == 0 && out.size() == 1;
    if (done && !out[0]->getDiagnostics().hasErrorOccurred()) return std::move(out[0]);
    llvm::errs() << "holdfast classify: " << file << ": what does not compile is not classified\n";
    return nullptr;
}

class class_finder : public clang::RecursiveASTVisitor<class_finder> {
public:
    class_finder(const std::vector<std::string>& names,
                 std::vector<const clang::CXXRecordDecl*>& to)
        : names_(names), to_(to) {}
    bool shouldVisitTemplateInstantiations() const { return true; }
    bool VisitCXXRecordDecl(clang::CXXRecordDecl* record) {
        if (!record->isThisDeclarationADefinition() || record->isDependentContext() ||
            record->isLambda() || !wanted(*record))
            return true;
        std::string name;
        llvm::raw_string_ostream to(name);
        record->getNameForDiagnostic(to, record->getASTContext().getPrintingPolicy(), true);
        if (seen_.insert(to.str()).second) to_.push_back(record);
        return true;
    }

private:
    bool wanted(const clang::CXXRecordDecl& record) const {
        const auto& sources = record.getASTContext().getSourceManager();
        if (sources.isInSystemHeader(record.getLocation())) return false;
        if (!names_.empty())
            return std::ranges::find(names_, record.getNameAsString()) != names_.end() ||
                   std::ranges::find(names_, record.getQualifiedNameAsString()) != names_.end();
        return std::ranges::any_of(record.decls(), [](const clang::Decl* each) {
            const auto* member = llvm::dyn_cast<clang::VarDecl>(each);
            return member != nullptr && member->getDeclName().isIdentifier() &&
                   member->getName() == "simpo_class";
        });
    }

    const std::vector<std::string>& names_;
    std::vector<const clang::CXXRecordDecl*>& to_;
    std::set<std::string> seen_;
};

/// Member functions of a class template have bodies only where they are used: asks for the others,
/// too.
void instantiate_members(clang::Sema& by, const clang::CXXRecordDecl& record) {
    if (record.getTemplateInstantiationPattern() != nullptr)
        for (clang::CXXMethodDecl* each : record.methods())
            if (!each->isDefined() && each->getTemplateInstantiationPattern() != nullptr)
                by.InstantiateFunctionDefinition(each->getLocation(), each, true, true);
    for (const auto& base : record.bases())
        if (const auto* of = base.getType()->getAsCXXRecordDecl(); of && of->hasDefinition())
            instantiate_members(by, *of->getDefinition());
}

void instantiate_members(clang::ASTUnit& file, const clang::CXXRecordDecl& record) {
    if (!file.hasSema()) return;
    clang::Sema& by = file.getSema();
    // A function that does not compile has no body then; nobody sees its errors.
    by.getDiagnostics().setClient(new clang::IgnoringDiagConsumer, true);
    // A for over a range, or memcpy in an assignment of clang's own, asks clang 19 for the parser's
    // scope, and the parser is gone: that of another one, which parses nothing.
    clang::Parser scoped(file.getPreprocessor(), by, false);
    scoped.EnterScope(clang::Scope::DeclScope);
    by.TUScope = by.getCurScope();
    instantiate_members(by, record);
    by.PerformPendingInstantiations();
    by.TUScope = nullptr;
}

} // namespace

parsed parse(const request& asked) {
    parsed out;
    for (const std::string& file : asked.files) {
        if (!llvm::sys::fs::is_regular_file(file)) {
            llvm::errs() << "holdfast classify: " << file << ": there is no such file\n";
            return {};
        }
        out.push_back(parse(asked, file));
        if (!out.back()) return {};
    }
    return out;
}

std::vector<const clang::CXXRecordDecl*> find_classes(const parsed& files,
                                                      const std::vector<std::string>& names) {
    std::vector<const clang::CXXRecordDecl*> out;
    class_finder finder(names, out);
    for (const auto& file : files) {
        const std::size_t before = out.size();
        finder.TraverseDecl(file->getASTContext().getTranslationUnitDecl());
        for (std::size_t i = before; i < out.size(); ++i) instantiate_members(*file, *out[i]);
    }
    return out;
}

} // namespace hf::classify
