// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Command lines: a program's options and subcommands, and where their values go. CLI11 reads them:
// command.cpp alone includes it, because it takes longer to compile than most programs that use it.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace hf::cli {

/// Thrown: the program ends with this status, and everything is said.
struct leave {
    int status;
};

/// Thrown: the command line is wrong, and why.
struct wrong_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One option. Each function returns it, for the next one.
class option {
public:
    explicit option(CLI::Option* of) : of_(of) {}

    option required() const;
    option type_name(const char* name) const;
    option group(const std::string& name) const;
    option show_default() const;
    option show_default(const char* text) const;
    option one_of(std::initializer_list<const char*> words) const;
    /// 'problem' returns what is wrong with a value, or nothing.
    option check(std::function<std::string(const std::string&)> problem) const;
    option needs(option other) const;
    option excludes(option other) const;
    /// Many values: in one word, between separators, and each time that the option is there.
    option separated_by(char separator) const;
    template <class Number> option between(Number least, Number most) const {
        if constexpr (std::is_floating_point_v<Number>) return between_reals(least, most);
        else if constexpr (std::is_signed_v<Number>) return between_integers(least, most);
        else return between_naturals(least, most);
    }

private:
    option between_reals(double least, double most) const;
    option between_integers(std::int64_t least, std::int64_t most) const;
    option between_naturals(std::uint64_t least, std::uint64_t most) const;
    CLI::Option* of_;
};

/// A program or a subcommand. Where values go lives as long as it does.
class command {
public:
    explicit command(CLI::App* of) : of_(of) {}

    /// 'names' are like "-p,--port"; without a dash a place among the words. "!--name" sets a flag
    /// to false.
    option flag(const char* names, bool& to, const char* what = "") const;
    option count(const char* names, int& to, const char* what) const;
    option value(const char* names, std::string& to, const char* what = "") const;
    option value(const char* names, std::vector<std::string>& to, const char* what) const;
    option value(const char* names, int& to, const char* what) const;
    option value(const char* names, long& to, const char* what) const;
    option value(const char* names, unsigned& to, const char* what) const;
    option value(const char* names, unsigned long& to, const char* what) const;
    option value(const char* names, double& to, const char* what) const;
    /// One of the words; 'to' becomes its place among them.
    option choice(const char* names, unsigned& to, const std::vector<std::string>& words,
                  const char* what) const;

    command subcommand(const char* name, const char* what) const;
    /// Runs when the command line has been read; may throw leave and wrong_usage.
    void callback(std::function<void()> run) const;
    void footer(const char* text) const;
    /// What follows the words that it knows is left to it: rest().
    void takes_rest() const;
    std::vector<std::string> rest() const;
    /// --help is then no option of its own.
    void without_help() const;

    /// For code that speaks CLI11's own language.
    CLI::App& cli11() const { return *of_; }

protected:
    CLI::App* of_;
};

class program : public command {
public:
    explicit program(const char* what, const char* name = "");
    ~program();
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    void version(const char* names, const std::string& text) const;
    /// An option that is there twice has its last value, as with getopt, and is no mistake.
    void last_value_counts() const;
    void wants_subcommand() const;
    std::vector<std::string> subcommands() const;
    bool has_option(const char* name) const;

    /// Errors: throws wrong_usage, and leave for --help, --version and what a callback threw.
    void read(int argc, char** argv) const;
    /// The same, with the status to end with, 2 for wrong usage, which is said; nothing: goes on.
    std::optional<int> read_or_say(int argc, char** argv) const;
};

} // namespace hf::cli
