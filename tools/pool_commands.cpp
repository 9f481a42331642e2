// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool_commands.hpp"

#include "contents.hpp"
#include "lost_bytes.hpp"
#include "pool_report.hpp"
#include "rebase.hpp"
#include "removed_files.hpp"
#include <base/engines.hpp>
#include <mod/compaction.hpp>
#include <open/engine.hpp>
#include <open/pool_impl.hpp>
#include <open/sealing.hpp>
#include <pool/copying.hpp>
#include <pool/os_file.hpp>
#include <verify/image.hpp>
#include <verify/mending.hpp>
#include <verify/pointers.hpp>
#include <verify/power_log.hpp>
#include <verify/read_file.hpp>

#include <holdfast/engines.hpp>
#include <holdfast/migration.hpp>
#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::tools {
namespace {

using verify::depth;
using verify::verdict;

struct asked {
    std::string path, output, to, from = "-", other;
    bool blocks = false, json = false, deep = false, pointers = false, in_place = false,
         roll_back = false, force = false;
};

[[noreturn]] void leave(verdict with) { throw cli::leave{static_cast<int>(with)}; }

[[noreturn]] void refuse(const status& why) {
    fmt::print(stderr, "{}\n", why.what());
    leave(verdict::unreadable);
}

verify::read_file opened(const asked& a) {
    answer_lost_bytes();
    auto file = verify::read_file::open(a.path);
    if (!file && file.error().code() == errc::not_found)
        if (const std::string removed = working_on_removed(a.path); !removed.empty())
            refuse({errc::not_found, file.error().what() + "; " + removed});
    if (!file) refuse(file.error());
    return std::move(*file);
}

verify::report examined(const asked& a, verify::read_file& file, depth how) {
    verify::report found = verify::examine_with_log(a.path, file, how);
    if (file.in_use())
        found.notes.insert(found.notes.begin(), "in use: " + file.user() + " has the pool open");
    else if (std::string removed = working_on_removed(a.path); !removed.empty())
        found.notes.insert(found.notes.begin(), std::move(removed));
    return found;
}

void info(const asked& a) {
    auto file = opened(a);
    const verify::report found = examined(a, file, depth::structure);
    const bool told = found.has_header && found.outcome != verdict::damaged;
    space blocks = told ? space_of(verify::pool_image(file.bytes(), found.header)) : space{};
    struct stat about{};
    if (::stat(a.path.c_str(), &about) == 0)
        blocks.disk_bytes = static_cast<std::uint64_t>(about.st_blocks) * 512;
    print_info(a.path, found, blocks, a.json);
    leave(told ? verdict::good : found.outcome);
}

/// Each word that leads nowhere is a finding: nobody asks for them by chance.
void add_stray_words(verify::report& to, const verify::read_file& file) {
    constexpr std::size_t most = 1000;
    if (!to.has_header || to.outcome == verdict::unreadable) return;
    for (const auto& w :
         verify::find_stray_words(verify::pool_image(file.bytes(), to.header), most)) {
        to.outcome = verdict::damaged;
        to.findings.push_back({w.offset,
                               fmt::format("block {:#x}, {} bytes", w.in.offset, w.in.bytes),
                               "a number, or an address of an object in the pool",
                               fmt::format("{:#x}, which leads {}", w.word, w.leads)});
    }
}

void verify_to(const asked& a, depth how) {
    auto file = opened(a);
    verify::report found = examined(a, file, how);
    if (a.pointers) add_stray_words(found, file);
    print_verdict(a.path, found, how, a.json);
    leave(found.outcome);
}

void dump_blocks(const asked& a) {
    auto file = opened(a);
    const verify::report found = examined(a, file, depth::structure);
    if (!found.has_header) {
        print_verdict(a.path, found, depth::structure, a.json);
        leave(found.outcome);
    }
    print_dump(file.bytes(), found.header, a.json);
    if (found.outcome != verdict::damaged) leave(verdict::good);
    fmt::print(stderr, "{}: damaged, and shown as far as it goes: holdfast check says where\n",
               a.path);
    leave(verdict::damaged);
}

/// Those of all engines whose state is in the pool. With others, a command that is killed here
/// would leave the pool to a program that has them.
std::vector<engine_ptr> its_engines(const verify::read_file& file, const pool_header& header) {
    std::uint32_t bits = header.engines;
    if (verify::pool_image(file.bytes(), header).roots().anchor(engine_mod) != 0)
        bits |= engine_mod;
    std::vector<engine_ptr> its = all_engines();
    std::erase_if(its, [&](const engine_ptr& e) { return (e->bit() & bits) == 0; });
    return its;
}

/// Opens the pool, whosever it is, and closes it: what was pending is gone.
void roll_back(const asked& a) {
    open_options how;
    std::optional<std::uint32_t> gone;
    {
        auto file = opened(a);
        const verify::report found = examined(a, file, depth::structure);
        if (!found.has_header) {
            print_verdict(a.path, found, depth::structure, a.json);
            leave(found.outcome);
        }
        how.layout = found.header.layout;
        how.layout_hash = found.header.layout_hash;
        how.mode = static_cast<hf::mode>(found.header.mode);
        how.engines = its_engines(file, found.header);
        if (is_migrating(found.header)) { // and stays so: it is the program's
            how.layout = found.header.next_layout;
            how.layout_hash = found.header.next_layout_hash;
            how.migrate = [&gone](migration& m) {
                gone = m.in().recovered().rolled_back;
                return status{errc::conflict, "left under way"};
            };
        }
    }
    how.creation = create::never;
    how.expert.relocate = relocation::if_taken;
    how.recovery = recovery_policy::roll_back;
    how.salvage = a.force;
    {
        const auto pool = hf::pool::impl::open_with(a.path, how);
        if (!pool && !gone) refuse(pool.error());
        if (pool) {
            gone = pool->recovered().rolled_back;
            for (const std::string& warning : pool->warnings()) fmt::print(stderr, "{}\n", warning);
        }
    }
    if (a.json) fmt::print("{{\"rolled_back\": {}}}\n", *gone);
    else fmt::print("{}: {} pending sections rolled back\n", a.path, *gone);
    leave(verdict::good);
}

/// An earlier repair's journal stays: it may be the only place that has what stood in the pool at
/// first.
result<verify::repair_plan> mend_in_place(const std::string& path) {
    constexpr unsigned journals_max = 1000;
    const std::string journal = path + ".repair-journal";
    auto done = verify::mend_in_place(path, journal);
    for (unsigned n = 2; !done && done.error().code() == errc::exists && n <= journals_max; ++n)
        done = verify::mend_in_place(path, fmt::format("{}.{}", journal, n));
    return done;
}

/// The pool is sound afterwards, or as sound as it can be made.
void repair(const asked& a) {
    if (a.roll_back) return roll_back(a);
    answer_lost_bytes();
    const std::string changed = a.in_place         ? a.path
                                : a.output.empty() ? a.path + ".repaired"
                                                   : a.output;
    if (const status may = verify::repairable(a.path, opened(a)); !may.ok()) refuse(may);
    verify::repair_plan plan;
    if (a.in_place) {
        auto done = mend_in_place(a.path);
        if (!done) refuse(done.error());
        plan = std::move(*done);
    } else {
        const auto file = opened(a);
        if (file.in_use()) refuse({errc::in_use, a.path + ": in_use: open in " + file.user()});
        plan = verify::plan_repair(file.bytes());
        if (plan.possible && !plan.nothing_to_do())
            if (status done = verify::mend_copy(a.path, changed, plan); !done.ok()) refuse(done);
    }
    const bool made = plan.possible && !plan.nothing_to_do();
    auto after = verify::read_file::open(made ? changed : a.path);
    if (!after) refuse(after.error());
    const verify::report found = verify::examine(after->bytes(), depth::deep);
    print_repair(made ? changed : a.path, plan, found, a.json);
    leave(found.outcome);
}

/// A command that makes a pool small must not damage it.
status whole(const std::string& path, const os_file& made) {
    const auto file = verify::read_file::of_locked(path, made.descriptor());
    if (!file) return file.error();
    const verify::report found = verify::examine(file->bytes(), depth::deep);
    if (found.outcome == verdict::good) return {};
    print_verdict(path, found, depth::deep, false);
    return {errc::corrupt, path + ": corrupt: the compacted pool does not verify; the pool stays"};
}

/// For a pool, whosever it is.
open_options its_options(const asked& a) {
    open_options how;
    auto file = opened(a);
    const verify::report found = examined(a, file, depth::structure);
    if (!found.has_header) {
        print_verdict(a.path, found, depth::structure, a.json);
        leave(found.outcome);
    }
    if (is_migrating(found.header))
        refuse({errc::conflict, a.path + ": conflict: on its way to another layout: its program "
                                         "brings it there first"});
    how.layout = found.header.layout;
    how.layout_hash = found.header.layout_hash;
    how.mode = static_cast<hf::mode>(found.header.mode);
    how.engines = its_engines(file, found.header);
    how.creation = create::never;
    how.expert.relocate = relocation::if_taken;
    return how;
}

/// The lines of a pool's contents. Returns what of it is damaged.
std::vector<std::string> contents_of(const std::string& path,
                                     const std::function<void(std::string)>& to) {
    asked a;
    a.path = path;
    pool_header header;
    {
        auto file = opened(a);
        const verify::report found = examined(a, file, depth::structure);
        if (!found.has_header) {
            print_verdict(path, found, depth::structure, false);
            leave(found.outcome);
        }
        header = found.header;
    }
    std::optional<open_options> recovering;
    if (header.open != 0 && !is_migrating(header)) recovering = its_options(a);
    auto faults = read_contents(path, header, recovering, to);
    if (!faults) refuse(faults.error());
    return std::move(*faults);
}

void say_damaged(const std::string& path, const std::vector<std::string>& faults) {
    for (const std::string& fault : faults) fmt::print(stderr, "{}: {}\n", path, fault);
}

void dump(const asked& a) {
    if (a.blocks) return dump_blocks(a);
    const auto faults =
        contents_of(a.path, [](const std::string& line) { fmt::print("{}\n", line); });
    say_damaged(a.path, faults);
    leave(faults.empty() ? verdict::good : verdict::damaged);
}

void load(const asked& a) {
    std::ifstream file;
    if (a.from != "-") {
        file.open(a.from);
        if (!file)
            refuse(
                {errc::not_found, fmt::format("{}: not_found: {}", a.from, std::strerror(errno))});
    }
    const auto loaded = load_contents(a.path, a.from == "-" ? std::cin : file);
    if (!loaded) refuse(loaded.error());
    if (a.json) fmt::print("{{\"elements\": {}}}\n", *loaded);
    else fmt::print("{}: {} elements\n", a.path, *loaded);
    leave(verdict::good);
}

/// Returns whether the lines have all that is in the pool; says so otherwise.
bool say_unlisted(const std::string& path, const std::vector<std::string>& lines) {
    if (std::ranges::none_of(lines, [](const auto& l) { return l.starts_with(unlisted_line); }))
        return true;
    fmt::print(stderr,
               "{}: not compared: the root object and what it leads to, whose types only its "
               "program knows (holdfast print shows them)\n",
               path);
    return false;
}

/// What only one of the pools has: its lines, sorted, behind - or +.
void diff(const asked& a) {
    std::vector<std::string> first, second, only;
    auto faults = contents_of(a.path, [&](std::string line) { first.push_back(std::move(line)); });
    say_damaged(a.path, faults);
    const auto more =
        contents_of(a.other, [&](std::string line) { second.push_back(std::move(line)); });
    say_damaged(a.other, more);
    std::ranges::sort(first);
    std::ranges::sort(second);
    std::ranges::set_symmetric_difference(first, second, std::back_inserter(only));
    for (const std::string& line : only)
        fmt::print("{} {}\n", std::ranges::binary_search(first, line) ? '-' : '+', line);
    if (!faults.empty() || !more.empty()) leave(verdict::unreadable);
    const bool here = say_unlisted(a.path, first), there = say_unlisted(a.other, second);
    if (!only.empty()) leave(verdict::damaged);
    leave(here && there ? verdict::good : verdict::not_verifiable);
}

void trim(const asked& a) {
    auto pool = hf::pool::impl::open_with(a.path, its_options(a));
    if (!pool) refuse(pool.error());
    for (const std::string& warning : pool->warnings()) fmt::print(stderr, "{}\n", warning);
    const auto given = pool->trim();
    if (!given) refuse(given.error());
    if (a.json) fmt::print("{{\"given_back\": {}}}\n", *given);
    else fmt::print("{}: {} bytes given back\n", a.path, *given);
    pool = status{}; // closed before the command ends
    leave(verdict::good);
}

void compact(const asked& a) {
    const open_options how = its_options(a);
    const auto made =
        mod::compact_pool(a.path, how, [&](const os_file& file) { return whole(a.path, file); });
    std::uint32_t others = 0; // compaction cannot recover their work
    for (const engine_ptr& its : how.engines) others |= its->bit() & ~engine_mod;
    if (!made && made.error().code() == errc::missing_engine && others != 0)
        refuse({errc::conflict,
                fmt::format("{}: conflict: expected MOD's containers alone, found a pool that was "
                            "left open with engine {}: its program opens and closes it first; or "
                            "use `holdfast trim`, which moves nothing",
                            a.path, engine_names(others))});
    if (!made) refuse(made.error());
    if (a.json)
        fmt::print("{{\"bytes_before\": {}, \"bytes\": {}, \"nodes\": {}}}\n", made->bytes_before,
                   made->bytes_after, made->nodes);
    else
        fmt::print("{}: {} bytes, before {}; {} nodes moved together\n", a.path, made->bytes_after,
                   made->bytes_before, made->nodes);
    leave(verdict::good);
}

void rebase(const asked& a) {
    const auto moved = rebase_pool(a.path, its_options(a));
    if (!moved) refuse(moved.error());
    if (a.json) fmt::print("{{\"from\": \"{:#x}\", \"to\": \"{:#x}\"}}\n", moved->from, moved->to);
    else fmt::print("{}: moved from {:#x} to {:#x}\n", a.path, moved->from, moved->to);
    leave(verdict::good);
}

/// Shows how far a copy is, where somebody looks.
void show_progress(void*, std::uint64_t done, std::uint64_t total) {
    fmt::print(stderr, "\rcopied {} of {} MiB{}", done >> 20, total >> 20,
               done == total ? "\n" : "");
}

/// Seals and examines the copy before it has its name: nothing keeps it that holdfast verify would
/// call damaged.
status sound(const std::string& path, const os_file& copy) {
    if (status ok = seal_copy(copy); !ok.ok()) return ok;
    const auto file = verify::read_file::of_locked(path, copy.descriptor());
    if (!file) return file.error();
    const verify::report found = verify::examine(file->bytes(), depth::tables);
    if (found.outcome != verdict::damaged && found.has_header) return {};
    print_verdict(path, found, depth::tables, false);
    return {errc::corrupt,
            path +
                ": corrupt: no copy is made of a damaged pool; holdfast repair makes a mended one"};
}

void copy(const asked& a) {
    answer_lost_bytes();
    copy_options how;
    if (::isatty(STDERR_FILENO) != 0 && !a.json) how.progress = show_progress;
    const auto made =
        copy_pool_file(a.path, a.to, how, [&](const os_file& file) { return sound(a.path, file); });
    if (!made) refuse(made.error());
    if (a.json)
        fmt::print(
            "{{\"bytes\": {}, \"in_use\": {}, \"pause_ms\": {:.3f}, \"bytes_in_pause\": {}}}\n",
            made->bytes, made->in_use, made->pause_ms, made->bytes_in_pause);
    else if (made->in_use)
        fmt::print("{}: {} bytes, of one moment: its process stood still for {:.1f} ms\n", a.to,
                   made->bytes, made->pause_ms);
    else fmt::print("{}: {} bytes\n", a.to, made->bytes);
    leave(verdict::good);
}

cli::command add(const cli::command& app, const char* name, const char* what,
                 std::shared_ptr<asked> a, void (*run)(const asked&)) {
    const cli::command command = app.subcommand(name, what);
    command.value("POOL", a->path, "the pool's file").required();
    command.flag("--json", a->json, "print one JSON object");
    command.callback([a, run] { run(*a); });
    return command;
}

} // namespace

void add_pool_commands(const cli::command& app, char**) {
    const auto a = std::make_shared<asked>(); // one subcommand runs
    add(app, "info", "what a pool's header says", a, info);
    add(app, "check", "quick: headers, root, log lanes", a,
        [](const asked& given) { verify_to(given, depth::structure); });
    cli::command command =
        add(app, "verify", "check, and the allocator's tables", a,
            [](const asked& given) { verify_to(given, given.deep ? depth::deep : depth::tables); });
    command.flag("--deep", a->deep, "and every block against the seal of the last close");
    command.flag("--pointers", a->pointers,
                 "and words that look like addresses and lead to no object");
    command = add(app, "dump", "what is in a pool, as lines of JSON", a, dump);
    command.flag("--blocks", a->blocks, "every block, every lane with its pending log, instead");
    command.footer("Containers of C++ and Python, and the bytes of persistent objects. A damaged "
                   "pool is written as far as it can be read; what cannot is said, and the exit "
                   "status is 1.");
    command = add(app, "load", "makes a pool of the lines that dump has written", a, load);
    command.value("FILE", a->from, "the lines; default: standard input");
    command.footer("For containers whose elements are strings, as those of Python, or of 4 or 8 "
                   "bytes. A line that is not as expected leaves no pool.");
    command = add(app, "diff", "what only one of two pools holds", a, diff);
    command.value("OTHER", a->other, "the other pool's file").required();
    command.footer("Exit status: 0 the same, 1 different, 2 one of them cannot be read whole, 3 no "
                   "difference was found, and a root object was not compared.");
    command = add(app, "copy", "the pool as it is now, while a process works on it", a, copy);
    command.value("TO", a->to, "the copy: a new file").required();
    command.footer("A process that has the pool open stands still for as long as the pool is "
                   "compared with its copy. What it was in the middle of, the copy's first open "
                   "recovers.");
    command =
        add(app, "compact", "a pool of MOD containers, made as small as what is in it", a, compact);
    const cli::command trimming =
        add(app, "trim", "gives the disk space of what is free back", a, trim);
    trimming.footer("For a pool that nobody has open: it is opened, which recovers it, and "
                    "closed. The file keeps its length, and takes its space again as it is "
                    "needed.");
    command.footer("For a pool that nobody has open and that holds nothing else. A small pool is "
                   "made beside it, examined, and put in its place: killed at any moment, the old "
                   "one stands or the new one. It needs room for both.");
    command = add(app, "rebase",
                  "gives a pool an address of its own, so that it can be open beside "
                  "its original or another pool",
                  a, rebase);
    command.footer("For a pool that nobody has open and that holds containers of MOD or Python and "
                   "persistent objects alone. Killed at any moment, it is where it was or has "
                   "moved.");
    command =
        add(app, "repair", "put right what can be known; objects are never changed", a, repair);
    const cli::option output =
        command.value("--output", a->output, "the mended copy; default POOL.repaired");
    command
        .flag("--in-place", a->in_place,
              "change the pool itself; old bytes go to POOL.repair-journal first")
        .excludes(output);
    const cli::option back =
        command.flag("--roll-back", a->roll_back,
                     "undo what a crash cut short, in the pool itself: for a pool that no program "
                     "can open");
    back.excludes(output);
    command
        .flag("--force", a->force,
              "with --roll-back: although some of it may not be known any more")
        .needs(back);
}

} // namespace hf::tools
