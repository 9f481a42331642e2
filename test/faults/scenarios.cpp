// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scenarios.hpp"

#include "world.hpp"
#include <pool/header.hpp>

#include <holdfast/clobber.hpp>
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

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "faults: cannot prepare: %s\n", why.c_str());
    ::_exit(2);
}

/// What 'body' leaves of the pool at 'path' when its process is killed at the end of it.
void killed(const std::function<void()>& body) {
    const int how = in_child([&] {
        body();
        ::kill(::getpid(), SIGKILL);
    });
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGKILL) give_up("the child was not killed");
}

origin made_by(const std::string& path, const open_options& options, bool clobber,
               std::string_view script) {
    ::unlink(path.c_str());
    const int how = in_child([&] {
        progress came;
        auto p = pool::open(path, options);
        if (!p) give_up(p.error().what());
        perform(*p, clobber, script, came);
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
origin with_pending(const std::string& path, const open_options& options, bool clobber,
                    char operation) {
    origin made = made_by(path, options, clobber, "Rppqs");
    put_in_place(made, path);
    killed([&] {
        auto p = pool::open(path, options);
        world* w = p->root<world>();
        std::thread other{[&] {
            wait_at_the_end = true;
            steps_left = 3;
            push(clobber, &w->lists[1]);
        }};
        while (!one_waits) std::this_thread::yield();
        steps_left = operation == 'n' ? 500 : 4;
        if (operation == 'n') renumber(clobber, w);
        else pop(clobber, &w->lists[0]);
    });
    if (clobber) {
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
        // Behind everything that is in use; read back, it is the zeros that were there.
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
    // Left open, a pool's bytes are put into another file: a copy.
    open_options pending_plain = plain, pending_in_pmem = plain;
    pending_plain.salvage = pending_in_pmem.salvage = true;
    pending_in_pmem.mode = mode::pmem;
    open_options pmem = plain, always_new = plain, prefault = plain, small = plain,
                 unsealed = plain, power = plain;
    pmem.mode = mode::pmem;
    always_new.creation = create::always_new;
    prefault.prefault = true;
    unsealed.seal = false;
    power.mode = mode::power;
    small.max_bytes = small.create_bytes; // cannot grow: allocations find the pool full

    const origin nothing;
    const origin clean = made_by(path, plain, true, "Rppqnsl");
    // No chunk is free: the first slab that is needed makes it grow, and stands where the seal was.
    const origin full = made_by(path, plain, true, "Rpnsthll");
    origin holed = made_by(path, unsealed, true, "Rppq");
    holed.with_hole = true;

    add({"create", nothing, plain, true, medium::tmpfs, "Rp", errc::ok, true});
    add({"create_disk", nothing, always_new, true, medium::disk, "Rp", errc::ok, true});
    add({"create_dax", nothing, pmem, true, medium::dax, "Rp", errc::ok, true});
    add({"create_named", nothing, always_new, true, medium::named, "Rp", errc::ok, true});
    add({"create_linked", nothing, plain, true, medium::linked, "Rp", errc::ok, true});
    add({"create_prefault", nothing, prefault, true, medium::tmpfs, "R"});
    add({"power_create", nothing, power, true, medium::disk, "Rp", errc::ok, true});
    add({"power_create_named", nothing, power, true, medium::named, "Rp", errc::ok, true});
    add({"power_open", clean, power, true, medium::disk, "Rpo", errc::ok, true});
    add({"open", clean, plain, true, medium::tmpfs, "Rp", errc::ok, true});
    add({"open_disk", clean, plain, true, medium::disk, "Rp", errc::ok, true});
    add({"open_and_die", clean, plain, true, medium::tmpfs, "RpK"});
    add({"create_and_die", nothing, plain, true, medium::tmpfs, "RpK"});
    add({"open_pmem", clean, pmem, true, medium::tmpfs, "Rp"});
    add({"open_holes", holed, plain, true, medium::disk, "Rp", errc::ok, true});
    for (const bool clobber : {true, false}) {
        const std::string suffix = clobber ? "_clobber" : "_undo";
        add({"work" + suffix, nothing, plain, clobber, medium::tmpfs, everything});
        add({"work_pmem" + suffix, clean, pmem, clobber, medium::tmpfs, everything});
        // Engine clobber must complete a section, and could not without room for its log.
        add({"work_full" + suffix, nothing, small, clobber, medium::tmpfs,
             clobber ? "Rphplhaqfo" : "Rphplhaqfon"});
        add({"grow" + suffix, clean, plain, clobber, medium::tmpfs, filling, errc::ok, true});
        add({"grow_disk" + suffix, clean, plain, clobber, medium::disk, filling, errc::ok, true});
        add({"grow_slab" + suffix, full, plain, clobber, medium::tmpfs, "Rausuqp", errc::ok, true});
        add({"grow_slab_disk" + suffix, full, plain, clobber, medium::disk, "Rausuqp", errc::ok,
             true});
        add({"grow_dax" + suffix, clean, pmem, clobber, medium::dax, filling});
        for (const char operation : {'o', 'n'}) {
            const std::string of = operation == 'o' ? "pending_pop" : "pending_renumber";
            const origin pending = with_pending(path, plain, clobber, operation);
            add({of + suffix, pending, pending_plain, clobber, medium::tmpfs, "Rp", errc::ok,
                 true});
            if (operation == 'n')
                add({of + "_disk" + suffix, pending, pending_plain, clobber, medium::disk, "Rp"});
        }
        add({"pending_pmem" + suffix, with_pending(path, pmem, clobber, 'n'), pending_in_pmem,
             clobber, medium::tmpfs, "Rp"});
    }
    const origin pending = with_pending(path, plain, true, 'o');
    for (scenario& one : refusals(clean, pending)) add(std::move(one));
    return all;
}

} // namespace hf::faults
