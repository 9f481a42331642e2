// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that were given, parsed, and the persistent classes in them.
#pragma once

#include "body.hpp"

#include <clang/AST/DeclCXX.h>
#include <clang/Frontend/ASTUnit.h>

#include <memory>
#include <string>
#include <vector>

namespace hf::classify {

/// The request of the command line.
struct request {
    std::vector<std::string> files;
    std::vector<std::string> classes;  // none: all that have a simpo_class
    std::vector<std::string> expected; // functions that have to be deferrable
    std::vector<std::string> flags;    // behind --
    std::string build_folder;          // -p
    std::string header;                // --generate
    bool flags_given = false, json = false, lint = false;
};

using parsed = std::vector<std::unique_ptr<clang::ASTUnit>>;

/// Parses all files. If one cannot be parsed, says why on the standard error output and returns
/// none.
parsed parse(const request& asked);

/// A class by one name may stand in several of the files; the first is taken.
std::vector<const clang::CXXRecordDecl*> find_classes(const parsed& files,
                                                      const std::vector<std::string>& names);

} // namespace hf::classify
