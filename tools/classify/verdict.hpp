// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which member functions of a class are deferrable, and why the others are not.  SIMPO §3.1.1
#pragma once

#include "body.hpp"

#include <clang/AST/DeclCXX.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hf::classify {

enum class kind {
    interface, // of the function's type: its result, its declaration
    argument,  // of what it takes: no value that a record can keep
    layout,    // of the class: its objects are no block of bytes without addresses
    effect,    // of what it does, or a function that it calls
};
const char* text_of(kind k);

/// Why a function is not deferrable.
struct reason {
    kind is;
    place at;         // in the function itself, or where it is declared
    std::string what; // "names total, a global that may change"
    struct step {
        place at; // the call
        std::string callee;
    };
    std::vector<step> steps; // through which callees, none for the function itself
    place cause;             // the line that does it
    /// "row.hpp:12: calls log(), which does I/O through std::cout (log.cpp:40)"
    std::string text() const;
};

struct verdict {
    const clang::CXXMethodDecl* function;
    std::string name;      // "count"
    std::string signature; // "void count(double)"
    place at;
    std::vector<reason> reasons; // none: deferrable
    bool deferrable() const { return reasons.empty(); }
    /// Whether recovery may call it again: what object::call asks of a function that is not const.
    bool repeatable() const;
};

/// The known effects of function bodies, each examined once.
class effects {
public:
    explicit effects(const definitions& all) : all_(all) {}
    /// For the function and what it calls: each of its lines that leads to a finding, by the
    /// shortest way.
    std::vector<reason> of(const clang::FunctionDecl& with_body);
    const definitions& all() const { return all_; }

private:
    const body& look(const clang::FunctionDecl& with_body);
    bool shortest_way(const call& first, reason& out);

    const definitions& all_;
    std::map<const clang::FunctionDecl*, std::unique_ptr<body>> known_;
};

/// For the public member functions of a class and of its public bases, except constructors,
/// destructors and assignments. For a member template, of the versions that are used.
std::vector<verdict> classify(const clang::CXXRecordDecl& of, effects& with);
/// For one of them, for objects of class 'of'.
verdict classify(const clang::CXXRecordDecl& of, const clang::CXXMethodDecl& function,
                 effects& with);

} // namespace hf::classify
