// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "generate.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/QualTypeNames.h>
#include <clang/Basic/SourceManager.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <map>
#include <set>

namespace hf::classify {
namespace {

/// Names that the generated class has for itself.
const std::set<std::string> own_names{"create",     "find",   "destroy",     "sync",
                                      "checkpoint", "object", "object_type", "on_"};
/// Names that the generated functions use.
const std::set<std::string> used_names{"beside", "on_"};

class writer {
public:
    writer(const classified& of, llvm::raw_ostream& to)
        : of_(of), in_(of.of->getASTContext()), to_(to), short_name_(of.of->getNameAsString()),
          type_("::" + of.of->getQualifiedNameAsString()), calls_(short_name_ + "_calls") {}

    void all() {
        for (const verdict& v : of_.functions) ++named_[v.name];
        const std::string space = space_of();
        if (!space.empty()) to_ << "namespace " << space << " {\n\n";
        begin();
        for (const verdict& v : of_.functions) function(v);
        end();
        if (!space.empty()) to_ << "\n} // namespace " << space << "\n";
    }

private:
    std::string space_of() const {
        const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(of_.of->getDeclContext());
        while (space != nullptr && space->isInline()) // the enclosing one finds the class, too
            space = llvm::dyn_cast<clang::NamespaceDecl>(space->getDeclContext());
        return space == nullptr || space->isAnonymousNamespace()
                   ? ""
                   : space->getQualifiedNameAsString();
    }

    void begin() {
        to_ << "/// Calls of a persistent `" << short_name_
            << "`, each deferred if it may be. Copies are handles on the\n"
            << "/// same object; any thread may use them. See hf::simpo::object for order, "
               "crashes and errors.\n"
            << "class " << calls_ << " {\npublic:\n"
            << "    using object_type = hf::simpo::object<" << type_ << ">;\n\n"
            << "    explicit " << calls_ << "(object_type on) noexcept : on_(on) {}\n";
        forward("create", "(pool, name, options or nothing, constructor arguments)");
        forward("find", "(pool, name)");
        to_ << "    template <class... Args> static hf::status destroy(hf::pool& in, const "
               "Args&... given) {\n"
            << "        return object_type::destroy(in, given...);\n    }\n";
    }

    void forward(const std::string& name, const std::string& takes) {
        to_ << "    /// " << takes << "\n"
            << "    template <class... Args> static hf::result<" << calls_ << "> " << name
            << "(hf::pool& in, const Args&... given) {\n"
            << "        auto got = object_type::" << name << "(in, given...);\n"
            << "        if (!got) return got.error();\n"
            << "        return " << calls_ << "(*got);\n    }\n";
    }

    void function(const verdict& v) {
        to_ << "\n    // " << v.at.text() << "\n";
        if (const std::string why = unfit(v); !why.empty()) {
            to_ << "    // " << v.signature << ": no call, " << why << "\n";
            return;
        }
        const bool defers = v.deferrable();
        to_ << "    /// "
            << (defers ? "Deferrable: logged, and made before any later call."
                : v.function->isConst()
                    ? "Instant, and not logged: commits and makes what was deferred before."
                : v.repeatable()
                    ? "Instant: commits what was deferred, and itself; durable on return."
                    : "Instant, but recovery may call it again, and it would not do the same.")
            << "\n";
        for (const reason& each : v.reasons) to_ << "    /// - " << each.text() << "\n";
        to_ << "    " << (defers ? "void " : "auto ") << v.name << "(" << parameters(v, true)
            << ") {\n"
            << "        " << (defers ? "on_.defer<" : "return on_.call<") << pointer_to(v) << ">("
            << parameters(v, false) << ");\n    }\n";
        if (defers) beside(v);
    }

    /// The same with a dependency hint.
    void beside(const verdict& v) {
        const bool bare = v.function->getNumParams() == 0;
        to_ << "    /// The same beside calls of other hints (hf::simpo::object::defer_beside).\n"
            << "    void " << v.name << "(hf::simpo::hint beside" << (bare ? "" : ", ")
            << parameters(v, true) << ") {\n"
            << "        on_.defer_beside<" << pointer_to(v) << ">(beside" << (bare ? "" : ", ")
            << parameters(v, false) << ");\n    }\n";
    }

    /// Why object has no way to call it.
    std::string unfit(const verdict& v) const {
        const clang::CXXMethodDecl& f = *v.function;
        if (!f.getDeclName().isIdentifier()) return "an operator: use object()";
        if (own_names.contains(v.name)) return "its name is one of this class's own: use object()";
        if (f.isTemplateInstantiation() && f.getPrimaryTemplate())
            return "a template: use object()";
        const clang::QualType returns = f.getReturnType();
        if (returns->isReferenceType() || returns->isPointerType())
            return "it returns an address, which means nothing once the object is let go";
        if (f.getRefQualifier() != clang::RQ_None || f.isVolatile() || f.isVariadic())
            return "of its qualifiers or unnamed arguments";
        if (std::ranges::any_of(f.parameters(), [](const auto* p) { return hidden(p->getType()); }))
            return "the type of an argument is private to the class: use object()";
        if (f.isConst()) return "";
        for (const reason& each : v.reasons)
            if (each.is == kind::argument) return each.what;
        if (!f.getType()->castAs<clang::FunctionProtoType>()->isNothrow())
            return "it is not noexcept, and recovery calls it again";
        return "";
    }

    /// Whether only the class itself may name the type.
    static bool hidden(clang::QualType type) {
        const clang::TagDecl* tag = type.getNonReferenceType()->getAsTagDecl();
        return tag != nullptr &&
               (tag->getAccess() == clang::AS_private || tag->getAccess() == clang::AS_protected);
    }

    /// With a name, as it is declared: that of a function's address stands inside of its type.
    std::string type_text(clang::QualType type, std::string name = "") const {
        clang::PrintingPolicy policy(in_.getLangOpts());
        policy.SuppressTagKeyword = true;
        policy.SuppressUnwrittenScope = true;
        clang::TypeName::getFullyQualifiedType(type.getCanonicalType(), in_, true)
            .getAsStringInternal(name, policy);
        return name;
    }

    std::string parameters(const verdict& v, bool declared) const {
        std::string out;
        for (unsigned i = 0; i < v.function->getNumParams(); ++i) {
            const clang::ParmVarDecl& p = *v.function->getParamDecl(i);
            std::string name = p.getNameAsString();
            if (name.empty() || used_names.contains(name)) name = "argument_" + std::to_string(i);
            std::string text = name;
            if (declared) text = type_text(p.getType(), name);
            else if (p.getType()->isRValueReferenceType())
                text = "static_cast<" + type_text(p.getType()) + ">(" + name + ")";
            out += (i == 0 ? "" : ", ") + text;
        }
        return out;
    }

    std::string pointer_to(const verdict& v) const {
        const std::string of = type_text(in_.getRecordType(v.function->getParent())); // or a base
        const std::string name = "&" + of + "::" + v.name;
        if (named_.at(v.name) == 1) return name;
        std::string types;
        for (const auto* p : v.function->parameters())
            types += (types.empty() ? "" : ", ") + type_text(p->getType());
        const bool is_noexcept =
            v.function->getType()->castAs<clang::FunctionProtoType>()->isNothrow();
        return "static_cast<" + type_text(v.function->getReturnType()) + " (" + of + "::*)(" +
               types + ")" + (v.function->isConst() ? " const" : "") +
               (is_noexcept ? " noexcept" : "") + ">(" + name + ")";
    }

    void end() {
        to_ << "\n    /// Commits and makes what was deferred: SIMPO's empty instant function.\n"
            << "    void sync() { on_.sync(); }\n"
            << "    /// As sync; then writes the object itself to the pool.\n"
            << "    void checkpoint() { on_.checkpoint(); }\n"
            << "    object_type& object() noexcept { return on_; }\n\n"
            << "private:\n    object_type on_;\n};\n";
    }

    const classified& of_;
    const clang::ASTContext& in_;
    llvm::raw_ostream& to_;
    std::string short_name_, type_, calls_;
    std::map<std::string, int> named_;
};

bool of_template(const classified& each) {
    return llvm::isa<clang::ClassTemplateSpecializationDecl>(each.of);
}

std::string cannot(const classified& each) {
    if (of_template(each))
        return each.name + " is a version of a template: its calling interface is not generated";
    if (!llvm::isa<clang::NamespaceDecl, clang::TranslationUnitDecl>(each.of->getDeclContext()))
        return each.name + " is a member of something: its calling interface is not generated";
    for (const verdict& v : each.functions)
        for (const reason& r : v.reasons)
            if (r.is == kind::layout) return each.name + " cannot be persistent: " + r.text();
    const bool named = std::ranges::any_of(each.of->decls(), [](const clang::Decl* d) {
        const auto* member = llvm::dyn_cast<clang::VarDecl>(d);
        return member != nullptr && member->getNameAsString() == "simpo_class";
    });
    return named ? "" : each.name + " has no simpo_class";
}

} // namespace

std::string generate(const std::vector<classified>& classes, const std::string& header) {
    std::string text;
    llvm::raw_string_ostream to(text);
    to << "// Made by 'holdfast classify --generate': written again whenever the classes change.\n"
       << "#pragma once\n\n";
    std::set<std::string> headers;
    // A class may derive from one of a template, or have one beside it.
    const bool some_only = !std::ranges::all_of(classes, of_template);
    const auto left_out = [&](const classified& each) { return some_only && of_template(each); };
    for (const classified& each : classes) {
        const std::string why = cannot(each);
        if (left_out(each)) to << "// " << why << "\n";
        if (left_out(each)) continue;
        if (!why.empty()) return why;
        const clang::SourceManager& sources = each.of->getASTContext().getSourceManager();
        const auto file = sources.getFileID(sources.getExpansionLoc(each.of->getLocation()));
        if (file == sources.getMainFileID() &&
            !llvm::StringRef(each.at.file).contains_insensitive(".h"))
            to << "// Include this behind the definition of " << each.name << " (" << each.at.file
               << ").\n";
        else headers.insert(llvm::sys::path::filename(each.at.file).str());
    }
    for (const std::string& each : headers) to << "#include \"" << each << "\"\n";
    to << "\n#include <holdfast/simpo.hpp>\n";
    for (const classified& each : classes) {
        if (left_out(each)) continue;
        to << "\n";
        writer(each, to).all();
    }
    std::error_code failed;
    llvm::raw_fd_ostream out(header, failed);
    if (failed) return header + ": " + failed.message();
    out << to.str();
    out.close();
    if (!out.has_error()) return "";
    std::string why = header + ": " + out.error().message();
    out.clear_error();
    return why;
}

} // namespace hf::classify
