// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// main() of a crash program: `holdfast crash PROGRAM [args]` runs it.
#include <check/program.hpp>
#include <check/races.hpp>
#include <check/recorder.hpp>
#include <check/report.hpp>
#include <cli/command.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace hf::crash;

struct asked {
    std::vector<std::string> names;
    std::string replay;
    bool json = false, list = false, races = false;
    unsigned first = 0; // of first_names
    unsigned mode = 0;  // of mode_names
    check_options options;
};

/// Exit status; the worst one of all programs counts.
enum outcome : int { no_violation = 0, violated = 1, wrong_usage = 2, not_complete = 3 };

using failure = hf::check::explore_options::failure;
const std::vector<std::string> first_names{"any", "power", "kill"}; // as the enumeration has them
static_assert(static_cast<int>(failure::power) == 1 && static_cast<int>(failure::kill) == 2);

const std::vector<std::string> mode_names{"its-own", "process", "pmem"};

void add_options(const hf::cli::command& app, asked& a) {
    check_options& o = a.options;
    app.value("names", a.names, "programs to check; all when none is named");
    app.flag("--list", a.list, "print the programs' names; with --json, their threads");
    app.flag("--json", a.json, "one JSON object per program");
    app.flag("--races", a.races,
             "fail nothing: look for words that threads use without a lock in common");
    app.value("--depth", o.explore.depth, "failures in a row").between(1, 4).show_default();
    app.value("--states", o.explore.states_max, "stop after this many states, per program");
    app.value("--seconds", o.explore.seconds_max, "stop after this long, per program");
    app.flag("--every-combination", o.explore.every_combination,
             "do not rely on checksums to tell torn records");
    app.choice("--first", a.first, first_names, "of several failures in a row: any, power, kill")
        .type_name("FAILURE");
    app.choice("--mode", a.mode, mode_names, "of every program's pool: its-own, process, pmem")
        .type_name("MODE");
    o.closes = true;
    app.flag("!--no-close", o.closes,
             "do not close recovered pools as well, and let the power fail after that");
    app.value("--close-one-in", o.close_one_in,
              "of the recoveries from the most failures in a row, close one in so many")
        .between(1, 1'000'000)
        .show_default();
    app.value("--preemptions", o.preemptions, "of each schedule of several threads").show_default();
    app.value("--schedules", o.schedules_random, "further schedules, at random");
    app.value("--seed", o.seed, "of random schedules").show_default();
    app.value("--replay", a.replay, "run one failure again, as a report names it");
    app.footer("Exit status: 0 no violation, 1 violation, 2 wrong usage, 3 no violation found, "
               "but not everything was explored.\nGuide: docs/guide/crash-checking.md");
}

/// The command that replays a failure: it has the options that decide which failure that is.
std::string replay_command(const char* self, const std::string& name, const program& given,
                           const check_options& o) {
    std::string out = fmt::format("holdfast crash {} '{}' --depth {}", self, name, o.explore.depth);
    if (o.explore.every_combination) out += " --every-combination";
    if (o.explore.first != failure::any)
        out += " --first " + first_names[static_cast<std::size_t>(o.explore.first)];
    if (o.mode) out += *o.mode == hf::mode::process ? " --mode process" : " --mode pmem";
    if (!o.closes) out += " --no-close";
    if (given.threads() > 1) out += fmt::format(" --preemptions {}", o.preemptions);
    if (o.schedules_random > 0)
        out += fmt::format(" --schedules {} --seed {}", o.schedules_random, o.seed);
    return out;
}

outcome look_for_races(const std::string& name, program& given, const asked& a) {
    const found_races found = find_races(name, given, a.options);
    fmt::print("{}", a.json ? for_programs(found) + "\n" : for_people(found));
    std::fflush(stdout);
    return found.passed() ? no_violation : violated;
}

outcome check_one(const char* self, const std::string& name, program& given, const asked& a) {
    const check_options& options = a.options;
    const checked_program checked = check_for_report(name, given, options);
    const hf::check::event_record& run = hf::check::recorder::last();
    fmt::print("{}", a.json ? for_programs(checked, run) + "\n"
                            : for_people(checked, run, replay_command(self, name, given, options)));
    std::fflush(stdout);
    if (!checked.passed()) return violated;
    return checked.found.complete ? no_violation : not_complete;
}

} // namespace

int main(int argc, char** argv) {
    const hf::cli::program app{
        "Fails each program at every event, in every way that memory allows"};
    asked a;
    add_options(app, a);
    if (const auto status = app.read_or_say(argc, argv)) return *status;
    a.options.explore.first = static_cast<failure>(a.first);
    if (a.mode != 0) a.options.mode = a.mode == 1 ? hf::mode::process : hf::mode::pmem;
    if (a.list) {
        // Which `holdfast crash` asks for before it believes that this is a crash program.
        if (std::getenv("HOLDFAST_CRASH_PROGRAM") != nullptr)
            fmt::print("holdfast crash program\n");
        for (const auto& [name, given] : programs())
            if (a.json) fmt::print("{}\n", listed_json(name, given->threads()));
            else fmt::print("{}\n", name);
        return no_violation;
    }
    if (a.names.empty())
        for (const auto& [name, given] : programs()) a.names.push_back(name);
    const replay_asked replay = parse_replay(a.replay);
    a.options.replay = replay.failures;
    a.options.replay_schedule = replay.by;
    if (!a.replay.empty() && (a.options.replay.empty() || a.names.size() != 1)) {
        fmt::print(stderr, "--replay wants one program and a failure such as 17:0,2/5:1\n");
        return wrong_usage;
    }
    bool violation = false, complete = true;
    for (const std::string& name : a.names) {
        const auto found = programs().find(name);
        if (found == programs().end()) {
            fmt::print(stderr, "no program '{}'; --list prints their names\n", name);
            return wrong_usage;
        }
        const outcome ended = a.races ? look_for_races(name, *found->second, a)
                                      : check_one(argv[0], name, *found->second, a);
        violation |= ended == violated;
        complete &= ended != not_complete;
    }
    // A run that was given up leaves this thread attached to a pool that is gone, under an observer
    // that is gone: nothing of it may run at exit.
    std::fflush(nullptr);
    std::_Exit(violation ? violated : complete ? no_violation : not_complete);
}
