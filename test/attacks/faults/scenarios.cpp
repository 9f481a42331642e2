// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scenarios.hpp"

#include "world.hpp"
#include <pool/header.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/undo.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <sstream>
#include <sys/wait.h>
#include <thread>

namespace hf::faults {
namespace {

constexpr std::string_view everything = "RppqnosludaftQplp";
constexpr std::string_view filling = "Rpshhhn";

open_options usual() {
    open_options options;
    options.layout = "faults/1";
    options.create_bytes = 128_KiB;
    options.engines = {clobber::engine(), undo::engine()};
    return options;
}

/// Engine selective has what it stores lazily found again.
open_options given_to(by engine, open_options options) {
    if (engine == by::selective) {
        options.engines = {selective::engine({.rebuild = rebuild}), clobber::engine()};
    }
    return options;
}

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "faults: cannot prepare: %s\n", why.c_str());
    ::_exit(2);
}

/// Leaves the pool at 'path' as 'body' does when its process is killed at the end of it.
void killed(const std::function<void()>& body) {
    const int how = in_child([&] {
        body();
        ::kill(::getpid(), SIGKILL);
    });
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL) give_up("the child was not killed");
}

origin made_by(const std::string& path, const open_options& options, by engine,
               std::string_view script) {
    ::unlink(path.c_str());
    const int how = in_child([&] {
        progress came;
        auto p = pool::open(path, options);
        if (!p) give_up(p.error().what());
        perform(*p, engine, script, came);
        for (std::size_t i = 0; i < script.size(); ++i)
            if (came.operations[i] != outcome::done)
                give_up(fmt::format("operation {}", script[i]));
    });
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) give_up("the child failed");
    origin made;
    progress all_done;
    all_done.operations.fill(outcome::done);
    made.holds = replay({}, script, all_done, false);
    made.bytes = file_bytes(path);
    ::unlink(path.c_str());
    return made;
}

/// Two sections of two threads, both cut short: a renumbering or a pop, and a push.
origin with_pending(const std::string& path, const open_options& options, by engine,
                    char operation) {
    origin made = made_by(path, options, engine, "Rppqs");
    put_in_place(made, path);
    killed([&] {
        auto p = pool::open(path, options);
        world* w = p->root<world>();
        std::thread other{[&] {
            wait_at_the_end = true;
            steps_left = 3;
            push(engine, &w->lists[1]);
        }};
        while (!one_waits) std::this_thread::yield();
        steps_left = operation == 'n' ? 500 : 4;
        if (operation == 'n') renumber(engine, w);
        else pop(engine, &w->lists[0]);
    });
    if (engine == by::clobber) { // it completes them
        ++made.holds.list_count[1];
        if (operation == 'n') ++made.holds.version;
        else --made.holds.list_count[0];
    }
    made.bytes = file_bytes(path);
    ::unlink(path.c_str());
    return made;
}

origin edited(origin from, const std::function<void(std::string&)>& edit) {
    edit(from.bytes);
    return from;
}

std::vector<scenario> refusals(const origin& clean, const origin& pending) {
    std::vector<scenario> all;
    const auto add = [&](std::string name, origin from, errc code) -> open_options& {
        all.push_back({.name = "refuse_" + std::move(name),
                       .from = std::move(from),
                       .options = usual(),
                       .script = everything,
                       .refused_with = code});
        return all.back().options;
    };
    add("layout", clean, errc::wrong_layout).layout = "another/1";
    add("layout_hash", clean, errc::wrong_layout).layout_hash = 7;
    add("copied_while_open", pending, errc::torn);
    add("exists", clean, errc::exists).creation = create::always_new;
    add("missing_engine", pending, errc::missing_engine).engines = {};
    add("no_dax", clean, errc::mode_unavailable).mode = mode::pmem;
    all.back().on = medium::disk;
    add("truncated", edited(clean, [](std::string& b) { b.resize(100'000); }), errc::truncated);
    add("zeros", edited(clean, [](std::string& b) { b.assign(b.size(), '\0'); }), errc::not_a_pool);
    add("damaged", edited(clean, [](std::string& b) { b[100] = b[4196] = 'x'; }), errc::corrupt);
    return all;
}

/// The work of a section's engine: everything, and recovery after a kill.
std::vector<scenario> work_of(by engine, const std::string& path, const origin& clean,
                              const origin& full) {
    std::vector<scenario> all;
    const auto add = [&](scenario one) { all.push_back(std::move(one)); };
    const open_options plain = given_to(engine, usual());
    // Left open, a pool's bytes are put into another file: a copy.
    open_options pending_plain = plain, pmem = plain, small = plain;
    pending_plain.salvage = true;
    pmem.mode = mode::pmem;
    small.max_bytes = small.create_bytes; // cannot grow: allocations find the pool full
    open_options pending_in_pmem = pmem;
    pending_in_pmem.salvage = true;
    const origin nothing;
    const std::string suffix = engine == by::clobber ? "_clobber"
                               : engine == by::undo  ? "_undo"
                                                     : "_selective";
    add({"work" + suffix, nothing, plain, engine, medium::tmpfs, everything});
    add({"work_pmem" + suffix, clean, pmem, engine, medium::tmpfs, everything});
    // Engine clobber must complete a section, and could not without room for its log.
    add({"work_full" + suffix, nothing, small, engine, medium::tmpfs,
         engine == by::clobber ? "Rphplhaqfo" : "Rphplhaqfon"});
    add({"grow" + suffix, clean, plain, engine, medium::tmpfs, filling, errc::ok, true});
    add({"grow_disk" + suffix, clean, plain, engine, medium::disk, filling, errc::ok, true});
    add({"grow_slab" + suffix, full, plain, engine, medium::tmpfs, "Rausuqp", errc::ok, true});
    add({"grow_slab_disk" + suffix, full, plain, engine, medium::disk, "Rausuqp", errc::ok, true});
    // The first step begins an extent, the second one makes it longer.
    add({"grow_steps" + suffix, full, plain, engine, medium::tmpfs, "RGlGlp", errc::ok, true});
    add({"grow_steps_disk" + suffix, full, plain, engine, medium::disk, "RGlGlp", errc::ok, true});
    add({"grow_dax" + suffix, clean, pmem, engine, medium::dax, filling});
    for (const char operation : {'o', 'n'}) {
        const std::string of = operation == 'o' ? "pending_pop" : "pending_renumber";
        const origin pending = with_pending(path, plain, engine, operation);
        add({of + suffix, pending, pending_plain, engine, medium::tmpfs, "Rp", errc::ok, true});
        if (operation == 'n')
            add({of + "_disk" + suffix, pending, pending_plain, engine, medium::disk, "Rp"});
    }
    add({"pending_pmem" + suffix, with_pending(path, pmem, engine, 'n'), pending_in_pmem, engine,
         medium::tmpfs, "Rp"});
    return all;
}

} // namespace

int in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        body();
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    return how;
}

std::string file_bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

void put_in_place(const origin& from, const std::string& path) {
    ::unlink(path.c_str());
    if (from.bytes.empty()) return;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const auto count = static_cast<ssize_t>(from.bytes.size());
    if (fd < 0 || ::pwrite(fd, from.bytes.data(), from.bytes.size(), 0) != count)
        give_up("cannot write " + path);
    if (from.with_hole) {
        // Behind everything that is in use; read back, it is zeros as before.
        constexpr off_t hole_bytes = 8192;
        const off_t at = 118'784;
        if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, hole_bytes) != 0)
            give_up("cannot punch a hole");
    }
    ::close(fd);
}

std::vector<scenario> all_scenarios(const std::string& path) {
    std::vector<scenario> all;
    const auto add = [&](scenario one) { all.push_back(std::move(one)); };
    const open_options plain = usual();
    open_options pmem = plain, always_new = plain, prefault = plain, unsealed = plain,
                 power = plain;
    pmem.mode = mode::pmem;
    always_new.creation = create::always_new;
    prefault.expert.prefault = true;
    unsealed.expert.seal = false;
    power.mode = mode::power;

    const origin nothing;
    const origin clean = made_by(path, plain, by::clobber, "Rppqnsl");
    // No chunk is free: the pool grows for the first slab, which is then in the seal's place.
    const origin full = made_by(path, plain, by::clobber, "Rpnsthll");
    origin holed = made_by(path, unsealed, by::clobber, "Rppq");
    holed.with_hole = true;

    add({"create", nothing, plain, by::clobber, medium::tmpfs, "Rp", errc::ok, true});
    add({"create_disk", nothing, always_new, by::clobber, medium::disk, "Rp", errc::ok, true});
    add({"create_dax", nothing, pmem, by::clobber, medium::dax, "Rp", errc::ok, true});
    add({"create_named", nothing, always_new, by::clobber, medium::named, "Rp", errc::ok, true});
    add({"create_linked", nothing, plain, by::clobber, medium::linked, "Rp", errc::ok, true});
    add({"create_prefault", nothing, prefault, by::clobber, medium::tmpfs, "R"});
    add({"power_create", nothing, power, by::clobber, medium::disk, "Rp", errc::ok, true});
    add({"power_create_named", nothing, power, by::clobber, medium::named, "Rp", errc::ok, true});
    add({"power_open", clean, power, by::clobber, medium::disk, "Rpo", errc::ok, true});
    add({"power_open_selective", clean, given_to(by::selective, power), by::selective, medium::disk,
         "Rpo", errc::ok, true});
    add({"power_grow", clean, power, by::clobber, medium::disk, filling});
    add({"power_grow_slab", full, power, by::undo, medium::disk, "Rausuqp", errc::ok, true});
    add({"open", clean, plain, by::clobber, medium::tmpfs, "Rp", errc::ok, true});
    add({"open_disk", clean, plain, by::clobber, medium::disk, "Rp", errc::ok, true});
    add({"open_and_die", clean, plain, by::clobber, medium::tmpfs, "RpK"});
    add({"create_and_die", nothing, plain, by::clobber, medium::tmpfs, "RpK"});
    add({"open_pmem", clean, pmem, by::clobber, medium::tmpfs, "Rp"});
    add({"open_holes", holed, plain, by::clobber, medium::disk, "Rp", errc::ok, true});
    for (const by engine : {by::clobber, by::undo, by::selective})
        for (scenario& one : work_of(engine, path, clean, full)) add(std::move(one));
    const origin pending = with_pending(path, plain, by::clobber, 'o');
    for (scenario& one : refusals(clean, pending)) add(std::move(one));
    return all;
}

} // namespace hf::faults
