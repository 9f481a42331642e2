// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the body of one function: what it does that recovery could not repeat, and which functions it
// calls.
//
// (1) A function is clean if its own body is, and each function that it calls. Circles of calls are
//     as clean as the code in them.
// (2) Anything unknown to the walk is a finding: statements, conversions, functions without a body.
//     A construct that a later clang adds makes a function instant, never deferrable.
// (3) Addresses lead to the object, the arguments, locals and constants, and nowhere else. So the
//     walk need not follow pointers: every way to make one that leads elsewhere is a finding. There
//     are six such ways: to name a global, and to read a pointer from the object (its class has
//     none), from an argument (it has none), from a number, from bytes that were something else
//     (casts, unions, placement new), or from a function that is not seen.
#pragma once

#include <clang/AST/Decl.h>
#include <clang/AST/Type.h>

#include <map>
#include <string>
#include <vector>

namespace hf::classify {

/// A line of a source file as it is printed: relative to the working directory if it lies below
/// that.
struct place {
    std::string file;
    unsigned line = 0;
    bool of_system = false; // a header that the compiler counts among the system's
    std::string text() const { return file + ":" + std::to_string(line); }
    auto operator<=>(const place&) const = default;
};
place place_of(const clang::ASTContext& in, clang::SourceLocation at);

struct finding {
    place at;
    std::string what; // "names total, a global that may change"
};
struct call {
    place at;
    const clang::FunctionDecl* callee; // has a body
};
struct body {
    std::string name;
    std::vector<finding> findings;
    std::vector<call> calls;
};

/// Finds definitions of functions in the other files that were given.
class definitions {
public:
    void add(clang::ASTContext& file);
    /// The declaration of it that has a body, or null.
    const clang::FunctionDecl* of(const clang::FunctionDecl& f) const;

private:
    std::map<std::string, const clang::FunctionDecl*>
        by_name_; // clang's name for a symbol in all files
};

/// Whether a value of this type holds an address, at any depth: pointers, references, pointers to
/// members, virtual functions. A type that is not complete does.
bool holds_address(clang::QualType type, const clang::ASTContext& in);

/// The name of a function as reasons say it.
std::string name_of(const clang::FunctionDecl& f);

/// Requires: 'f' has a body.
body look_into(const clang::FunctionDecl& f, const definitions& all);

} // namespace hf::classify
