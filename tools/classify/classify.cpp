// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says which member functions of persistent classes are deferrable.  SIMPO §3.1.1  docs/guide/simpo.md
// A program of its own, with clang's libraries in it; the holdfast command runs it.
#include "generate.hpp"
#include "lint.hpp"
#include "report.hpp"
#include "sources.hpp"
#include "verdict.hpp"

#include <clang/AST/ASTContext.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <optional>

namespace hf::classify {
namespace {

// Exit statuses.
constexpr int fine = 0, complained = 1, cannot_run = 2;

constexpr const char* usage =
    R"(Says which member functions of persistent classes (hf::simpo::object) are deferrable, and why others are not.

Usage: holdfast classify FILE... [OPTIONS] [-- COMPILER FLAGS]

  FILE                   C++ sources or headers; calls are followed from one into another
  --class NAME           only this class, with or without a simpo_class; may be repeated
  -p FOLDER              flags of each file from FOLDER/compile_commands.json
  --json                 print one JSON object
  --lint                 complain where a source defers a function that is not deferrable, or lets object::call log one
                         that recovery could not call again
  --expect-deferrable F,G   complain of these functions that are not deferrable: f, or row::f
  --generate HEADER      write the calling interface, NAME_calls for class NAME, into HEADER, and print no list
  --help                 print this
  -- FLAGS               compiler flags for all files; none: -std=c++20

A function is deferrable if it is noexcept, returns nothing, and takes values without addresses in them. It and all
that it calls read and write only its object, its arguments, locals and constants. A body that is not visible counts
as one that does more. Not checked: undefined behaviour, and whether another C library's mathematics rounds alike.

Exit status: 0; 1 with a complaint; 2 where a file does not compile or there is nothing to classify.
)";

int refuse(const std::string& why) {
    llvm::errs() << "holdfast classify: " << why << "\n";
    return cannot_run;
}

void split(llvm::StringRef list, std::vector<std::string>& to) {
    llvm::SmallVector<llvm::StringRef> parts;
    list.split(parts, ',', -1, false);
    for (const llvm::StringRef part : parts) to.push_back(part.trim().str());
}

/// Takes an option with a word.
bool take_word(llvm::StringRef option, const std::string& word, request& to) {
    if (option == "--class") to.classes.push_back(word);
    else if (option == "-p") to.build_folder = word;
    else if (option == "--generate") to.header = word;
    else if (option == "--expect-deferrable") split(word, to.expected);
    else return false;
    return true;
}

/// The exit status, if there is nothing to do.
std::optional<int> read_arguments(int argc, char** argv, request& to) {
    for (int i = 1; i < argc; ++i) {
        llvm::StringRef word = argv[i];
        if (word == "--") {
            to.flags.assign(argv + i + 1, argv + argc);
            to.flags_given = true;
            break;
        }
        if (word == "--help" || word == "-h") return llvm::outs() << usage, fine;
        if (word == "--json") to.json = true;
        else if (word == "--lint") to.lint = true;
        else if (!word.starts_with("-")) to.files.push_back(word.str());
        else {
            const auto [option, value] = word.split('=');
            request unused;
            if (!take_word(option, "", unused))
                return refuse("no option '" + word.str() + "' (holdfast classify --help)");
            const bool joined = word.contains('=');
            if (!joined && i + 1 == argc)
                return refuse(word.str() + ": expected a word after it, found the end");
            take_word(option, joined ? value.str() : argv[++i], to);
        }
    }
    if (to.files.empty()) return refuse("expected a file, found none (holdfast classify --help)");
    if (to.flags_given && !to.build_folder.empty())
        return refuse("expected flags from -p or from behind --, found both");
    return {};
}

std::vector<classified> classify_all(const parsed& files, const request& asked, effects& with) {
    std::vector<classified> out;
    for (const clang::CXXRecordDecl* each : find_classes(files, asked.classes)) {
        classified done{each, "", place_of(each->getASTContext(), each->getLocation()),
                        classify(*each, with)};
        llvm::raw_string_ostream name(done.name);
        each->getNameForDiagnostic(name, each->getASTContext().getPrintingPolicy(), true);
        name.flush();
        out.push_back(std::move(done));
    }
    return out;
}

/// Checks --expect-deferrable: each name is a function, and every function of that name deferrable.
bool as_expected(const std::vector<classified>& classes, const std::vector<std::string>& names) {
    bool out = true;
    for (const std::string& name : names) {
        bool there = false;
        for (const classified& each : classes)
            for (const verdict& v : each.functions) {
                if (name != v.name && name != each.name + "::" + v.name) continue;
                there = true;
                if (v.deferrable()) continue;
                out = false;
                llvm::errs() << v.at.text() << ": error: " << each.name << "::" << v.name
                             << " is not deferrable\n";
                for (const reason& why : v.reasons) llvm::errs() << "    " << why.text() << "\n";
            }
        if (there) continue;
        out = false;
        llvm::errs() << "holdfast classify: no class has a public function '" << name << "'\n";
    }
    return out;
}

int missing_class(const std::vector<classified>& found, const request& asked) {
    for (const std::string& name : asked.classes)
        if (std::ranges::none_of(found, [&](const classified& each) {
                return each.of->getNameAsString() == name ||
                       each.of->getQualifiedNameAsString() == name;
            }))
            return refuse("the files define no class '" + name +
                          "' (a class template: none that is used)");
    if (found.empty() && !asked.lint)
        return refuse("no class in the files has a simpo_class: name one with --class");
    return fine;
}

int run(const request& asked) {
    const parsed files = parse(asked);
    if (files.empty()) return cannot_run;
    definitions all;
    for (const auto& file : files) all.add(file->getASTContext());
    effects with(all);
    const std::vector<classified> classes = classify_all(files, asked, with);
    if (const int status = missing_class(classes, asked); status != fine) return status;
    std::vector<complaint> complaints;
    if (asked.lint) complaints = lint(files, with);
    if (asked.json) {
        print_json(classes, complaints);
    } else {
        if (!asked.lint && asked.header.empty()) print(classes);
        print(complaints);
    }
    if (!asked.header.empty())
        if (const std::string why = generate(classes, asked.header); !why.empty())
            return refuse(why);
    return complaints.empty() && as_expected(classes, asked.expected) ? fine : complained;
}

} // namespace
} // namespace hf::classify

int main(int argc, char** argv) {
    hf::classify::request asked;
    if (const auto status = hf::classify::read_arguments(argc, argv, asked)) return *status;
    return hf::classify::run(asked);
}
