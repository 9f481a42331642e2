// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cli/command.hpp>

#include <CLI/CLI.hpp>

namespace hf::cli {

option option::required() const {
    of_->required();
    return *this;
}

option option::type_name(const char* name) const {
    of_->type_name(name);
    return *this;
}

option option::group(const std::string& name) const {
    of_->group(name);
    return *this;
}

option option::show_default() const {
    of_->capture_default_str();
    return *this;
}

option option::show_default(const char* text) const {
    of_->default_str(text);
    return *this;
}

option option::one_of(std::initializer_list<const char*> words) const {
    of_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
    return *this;
}

option option::check(std::function<std::string(const std::string&)> problem) const {
    of_->check(std::move(problem));
    return *this;
}

option option::needs(option other) const {
    of_->needs(other.of_);
    return *this;
}

option option::excludes(option other) const {
    of_->excludes(other.of_);
    return *this;
}

option option::separated_by(char separator) const {
    of_->delimiter(separator)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    return *this;
}

option option::between_reals(double least, double most) const {
    of_->check(CLI::Range(least, most));
    return *this;
}

option option::between_integers(std::int64_t least, std::int64_t most) const {
    of_->check(CLI::Range(least, most));
    return *this;
}

option option::between_naturals(std::uint64_t least, std::uint64_t most) const {
    of_->check(CLI::Range(least, most));
    return *this;
}

option command::flag(const char* names, bool& to, const char* what) const {
    return option(of_->add_flag(names, to, what));
}

option command::count(const char* names, int& to, const char* what) const {
    return option(of_->add_flag(names, to, what));
}

option command::value(const char* names, std::string& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, std::vector<std::string>& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, int& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, long& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, unsigned& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, unsigned long& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::value(const char* names, double& to, const char* what) const {
    return option(of_->add_option(names, to, what));
}

option command::choice(const char* names, unsigned& to, const std::vector<std::string>& words,
                       const char* what) const {
    const auto to_place = [words](std::string& word) -> std::string {
        for (std::size_t place = 0; place < words.size(); ++place)
            if (words[place] == word) {
                word = std::to_string(place);
                return "";
            }
        return CLI::IsMember(words)(word); // says which there are
    };
    return option(of_->add_option(names, to, what)->transform(CLI::Validator(to_place, "")));
}

command command::subcommand(const char* name, const char* what) const {
    return command(of_->add_subcommand(name, what));
}

void command::callback(std::function<void()> run) const { of_->callback(std::move(run)); }

void command::footer(const char* text) const { of_->footer(text); }

void command::takes_rest() const { of_->prefix_command(); }

std::vector<std::string> command::rest() const { return of_->remaining(); }

void command::without_help() const { of_->set_help_flag(""); }

program::program(const char* what, const char* name) : command(new CLI::App(what, name)) {}

program::~program() { delete of_; }

void program::version(const char* names, const std::string& text) const {
    of_->set_version_flag(names, text);
}

void program::last_value_counts() const {
    of_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void program::wants_subcommand() const { of_->require_subcommand(1); }

std::vector<std::string> program::subcommands() const {
    std::vector<std::string> names;
    for (const CLI::App* each : of_->get_subcommands({})) names.push_back(each->get_name());
    return names;
}

bool program::has_option(const char* name) const {
    return of_->get_option_no_throw(name) != nullptr;
}

void program::read(int argc, char** argv) const {
    try {
        of_->parse(argc, argv);
    } catch (const CLI::RuntimeError& left) { // of code that speaks CLI11's own language
        throw leave{left.get_exit_code()};
    } catch (const CLI::Success& asked) { // --help, --version
        throw leave{of_->exit(asked)};
    } catch (const CLI::ParseError& wrong) {
        throw wrong_usage(wrong.what());
    }
}

std::optional<int> program::read_or_say(int argc, char** argv) const {
    try {
        read(argc, argv);
    } catch (const leave& left) {
        return left.status;
    } catch (const wrong_usage& wrong) {
        of_->exit(CLI::ParseError(wrong.what(), CLI::ExitCodes::BaseClass));
        return 2;
    }
    return std::nullopt;
}

} // namespace hf::cli
