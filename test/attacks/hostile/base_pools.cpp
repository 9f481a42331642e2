// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base_pools.hpp"

#include "mutation.hpp"
#include "sections.hpp"
#include <justdo/room.hpp>
#include <justdo/test_support.hpp>

#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace hf::hostile {
namespace {

using setup = std::function<void(pool&, root_object&)>;

std::atomic<int> parked{0};
[[noreturn]] void park() {
    parked.fetch_add(1);
    for (;;) ::pause();
}

/// A section on a thread of its own that stops before its n-th step and stays open.
void left_open(int n, const std::function<void()>& section) {
    const int before = parked;
    std::thread([=] {
        stop_before_step(n, park);
        section();
        park(); // it had fewer steps: committed
    }).detach();
    while (parked == before) std::this_thread::yield();
}

void fill(pool& p, root_object& root, std::uint64_t nodes) {
    for (auto& c : root.chains) {
        c = make_chain();
        if (c == nullptr) return;
        for (std::uint64_t v = 1; v <= nodes; ++v)
            push(v % 2 == 0 ? built_for::clobber : built_for::undo, c, v);
    }
    std::vector<void*> blocks;
    for (std::size_t size : {16, 16, 16, 48, 48, 600, 600, 1300, 5000})
        if (void* b = hf_alloc(size)) {
            std::memset(b, static_cast<int>(size % 251), size);
            blocks.push_back(b);
        }
    for (std::size_t i = 0; i < blocks.size(); i += 3) hf_free(blocks[i]);
    return_spare_blocks(p);
}

/// Fills the first extent, so that the pool grows.
void grow(pool& p) {
    const std::uint64_t before = p.size_bytes();
    while (p.size_bytes() < before + 64_KiB)
        if (void* b = hf_alloc(3000)) std::memset(b, 7, 3000);
        else break;
}

void fail(const std::string& why) {
    std::fprintf(stderr, "hostile: cannot make the base pools: %s\n", why.c_str());
    std::exit(2);
}

/// The pool that 'work' leaves, in a child process that it may end.
base_pool made_by(const std::string& name, open_options options, bool sealed,
                  const std::function<void(pool&)>& work) {
    options.layout = "hostile/1";
    const std::string path = fmt::format("/dev/shm/holdfast_hostile.{}", ::getpid());
    ::unlink(path.c_str());
    const pid_t child = ::fork();
    if (child == 0) {
        auto p = pool::open(path, options);
        if (!p) ::_exit(3);
        work(*p);
        if (!sealed) ::_exit(0); // as a crash would
        { const pool closing = std::move(*p); }
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) fail(name);
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    ::unlink(path.c_str());
    base_pool out;
    out.name = name;
    out.options = options;
    out.sealed = sealed;
    out.bytes.resize(text.size());
    std::memcpy(out.bytes.data(), text.data(), text.size());
    out.options.creation = create::never;
    return out;
}

base_pool make(const std::string& name, open_options options, const setup& leave_open) {
    options.engines = {clobber::engine(), undo::engine(), redo::engine(), justdo::engine()};
    return made_by(name, options, leave_open == nullptr, [&](pool& p) {
        root_object* root = nullptr;
        std::thread([&] { // whose lane is free again afterwards
            root = p.root<root_object>();
            fill(p, *root, 3);
            if (options.max_bytes > options.create_bytes) grow(p);
        })
            .join();
        if (leave_open != nullptr) leave_open(p, *root);
    });
}

open_options sized(std::uint64_t bytes, std::uint64_t max_bytes, mode m = mode::process) {
    open_options o;
    o.create_bytes = bytes;
    o.max_bytes = max_bytes;
    o.mode = m;
    return o;
}

/// One pending section of each function, at an early, a middle and a late step.
void add_pending(std::vector<base_pool>& out, built_for engine, const char* engine_name) {
    const auto add = [&](const char* what, const setup& leave, std::uint64_t bytes = 64_KiB) {
        out.push_back(make(fmt::format("{} {}", engine_name, what), sized(bytes, bytes), leave));
    };
    for (int step : {1, 4, 6})
        add(fmt::format("push {}", step).c_str(),
            [=](pool&, root_object& r) { left_open(step, [&] { push(engine, r.chains[0], 4); }); });
    add("pop", [=](pool&, root_object& r) { left_open(5, [&] { pop(engine, r.chains[1]); }); });
    add("replace",
        [=](pool&, root_object& r) { left_open(7, [&] { replace(engine, r.chains[2], 9); }); });
    const auto sweep_open = [=](pool&, root_object& r) {
        left_open(700, [&] { sweep(engine, r.chains[3], 1); });
    };
    add("sweep", sweep_open, 128_KiB); // its log needs room
    add("adopt", [=](pool& p, root_object& r) {
        left_open(3, [&] {
            auto* n = static_cast<node*>(staged::in(p, sizeof(node))->release());
            n->value = 4;
            adopt(engine, r.chains[0], n);
        });
    });
}

void four_open(pool& p, root_object& r) {
    left_open(4, [&] { push(built_for::clobber, r.chains[0], 4); });
    left_open(3, [&] { pop(built_for::undo, r.chains[1]); });
    left_open(900, [&] { sweep(built_for::clobber, r.chains[2], 2); });
    left_open(3, [&] {
        auto* n = static_cast<node*>(staged::in(p, sizeof(node))->release());
        n->value = 4;
        adopt(built_for::undo, r.chains[3], n);
    });
}

/// Whether recovery would replay two logs of the first lane: its last two sections, neither of them
/// marked.
bool holds_two_logs(const base_pool& of) {
    const pool_map map(of);
    std::uint64_t epochs[2] = {};
    for (std::size_t half = 0; half < 2; ++half)
        if (!map.logs[half].heads.empty())
            epochs[half] =
                load_from<begin_payload>(of.bytes, map.logs[half].start + sizeof(record_head))
                    .epoch;
    const auto committed = load_from<lane_header>(of.bytes, map.header.lanes_offset).committed;
    const auto [earlier, newer] = std::minmax(epochs[0], epochs[1]);
    return earlier + 1 == newer && committed < earlier;
}

/// Sections of engine redo by one thread, and no close. Each leaves the lane to the next one's
/// begin record to mark in 'pmem' mode: a lane holds two logs, and recovery replays both.
void add_redo(std::vector<base_pool>& out) {
    const auto add = [&](const char* what, mode m,
                         const std::function<void(pool&, root_object&)>& work) {
        open_options options = sized(128_KiB, 128_KiB, m);
        options.engines = {clobber::engine(), undo::engine(), redo::engine(), justdo::engine()};
        out.push_back(made_by(fmt::format("redo {}", what), options, false, [&](pool& p) {
            root_object* const root = p.root<root_object>();
            for (auto& c : root->chains)
                if ((c = make_chain()) == nullptr) ::_exit(4);
            for (std::uint64_t v = 1; v <= 4; ++v) push(built_for::redo, root->chains[v % 2], v);
            work(p, *root);
        }));
        if (holds_two_logs(out.back()) != (m == mode::pmem)) fail(out.back().name);
    };
    const auto two = [](pool&, root_object& r) {
        pop(built_for::redo, r.chains[0]);
        replace(built_for::redo, r.chains[1], 9);
    };
    add("two logs, pmem", mode::pmem, two);
    add("committed", mode::process, two);
    add("two logs, the earlier long, pmem", mode::pmem, [](pool&, root_object& r) {
        sweep_in_part(r.chains[2], 280);
        push(built_for::redo, r.chains[1], 5);
    });
    add("two logs, the newer long, pmem", mode::pmem, [](pool& p, root_object& r) {
        auto* n = static_cast<node*>(staged::in(p, sizeof(node))->release());
        n->value = 4;
        adopt(built_for::redo, r.chains[3], n);
        sweep_in_part(r.chains[2], 280);
    });
}

thread_local std::uint32_t points_left;

/// A section of engine justdo on a thread of its own that stops at its n-th point and stays open.
void left_resumable(std::uint32_t n, const std::function<void()>& section) {
    const int before = parked;
    std::thread([=] {
        points_left = n;
        justdo::by_hand::at_point = [](const char*, std::uint32_t) {
            if (points_left-- == 0) park();
        };
        section();
        park(); // it had fewer points: it has ended
    }).detach();
    while (parked == before) std::this_thread::yield();
}

/// The objects of engine justdo's sections: a block that only their frames name.
struct alignas(64) resumable {
    justdo::by_hand::account accounts[4];
    justdo::by_hand::list lists[2];
    justdo::by_hand::table words;
    justdo::by_hand::shelf locks;
};

/// Sections of engine justdo that were cut short at each of their points: of every action, with
/// frames of one function and of a recursion, with locks of both sorts; several at a time; beside
/// those of other engines.
void add_justdo(std::vector<base_pool>& out) {
    using namespace justdo::by_hand;
    using work = std::function<void(resumable&)>;
    const auto add = [&](const std::string& name, const work& leave, bool others = false,
                         mode m = mode::process) {
        open_options options = sized(128_KiB, 128_KiB, m);
        options.engines = {justdo::engine(), clobber::engine(), undo::engine(), redo::engine()};
        out.push_back(made_by("justdo " + name, options, leave == nullptr, [&](pool& p) {
            root_object* root = nullptr;
            resumable* on = nullptr;
            std::thread([&] { // whose lane, and log, are free again afterwards
                root = p.root<root_object>();
                for (auto& c : root->chains)
                    if ((c = hostile::make_chain()) == nullptr) ::_exit(4);
                on = static_cast<resumable*>(hf_alloc(1024));
                if (on == nullptr) ::_exit(4);
                std::memset(static_cast<void*>(on), 0, 1024);
                for (auto& a : on->accounts) a.balance = 100;
                for (std::uint64_t v = 0; v < 40; ++v) on->words.word[v] = v;
                for (list& l : on->lists) push(&l, 1), push(&l, 2);
            })
                .join();
            if (others)
                left_open(4, [&] { hostile::push(built_for::clobber, root->chains[0], 4); });
            if (others) left_open(3, [&] { hostile::push(built_for::undo, root->chains[1], 4); });
            if (leave != nullptr) leave(*on);
        }));
        out.back().justdo = true;
    };
    static_assert(sizeof(resumable) <= 1024);
    const work push_3 = [](resumable& r) { left_resumable(3, [&] { push(&r.lists[0], 3); }); };
    add("at rest", nullptr);
    for (std::uint32_t n : {0U, 1U, 2U, 3U})
        add(fmt::format("push {}", n),
            [=](resumable& r) { left_resumable(n, [&] { push(&r.lists[0], 3); }); });
    for (std::uint32_t n : {1U, 3U})
        add(fmt::format("pop {}", n),
            [=](resumable& r) { left_resumable(n, [&] { pop(&r.lists[0]); }); });
    for (std::uint32_t n : {1U, 4U})
        add(fmt::format("transfer {}", n), [=](resumable& r) {
            left_resumable(n, [&] { transfer(&r.accounts[0], &r.accounts[1], 7); });
        });
    for (std::uint32_t n : {5U, 14U})
        add(fmt::format("recursion {}", n),
            [=](resumable& r) { left_resumable(n, [&] { total(&r.words, 2); }); });
    for (std::uint32_t n : {1U, 2U, 4U})
        add(fmt::format("copies {}", n),
            [=](resumable& r) { left_resumable(n, [&] { shift(&r.words); }); });
    const work four = [=](resumable& r) {
        push_3(r);
        left_resumable(1, [&] { pop(&r.lists[1]); });
        left_resumable(3, [&] { transfer(&r.accounts[2], &r.accounts[1], 7); });
        left_resumable(9, [&] { total(&r.words, 2); });
    };
    const work grown = [=](resumable& r) { // the lock log of one, the frames of the other
        justdo::places_in_use = {.own = 2, .more = 1};
        left_resumable(1, [&] { grip(&r.locks); });
        left_resumable(3, [&] { plunge(&r.words); });
    };
    add("grown", grown);
    add("four", four);
    add("four, pmem", four, false, mode::pmem);
    add("beside others", four, true);
}

/// MOD's structures of every kind: closed cleanly, and left open.
void add_mod(std::vector<base_pool>& out) {
    for (const mod_shape what : mod_shapes)
        for (const bool closed : {true, false}) {
            open_options options =
                sized(256_KiB, 512_KiB, what == mod_shape::maps ? mode::pmem : mode::process);
            options.engines = {mod::engine()};
            out.push_back(
                made_by(fmt::format("mod {}{}", hostile::name(what), closed ? "" : ", left open"),
                        options, closed, [&](pool& p) {
                            if (!fill_mod(p, what)) ::_exit(4);
                        }));
            out.back().mod = what;
        }
}

/// The same beside sections of every engine that are pending.
void add_mixed(std::vector<base_pool>& out) {
    for (const mod_shape what : mod_shapes) {
        open_options options = sized(512_KiB, 512_KiB);
        options.engines = {clobber::engine(), undo::engine(), redo::engine(), justdo::engine(),
                           mod::engine()};
        out.push_back(
            made_by(fmt::format("mixed {}", hostile::name(what)), options, false, [&](pool& p) {
                root_object* root = nullptr;
                std::thread([&] {
                    root = p.root<root_object>();
                    fill(p, *root, 3);
                }).join();
                if (!fill_mod(p, what)) ::_exit(4);
                four_open(p, *root);
            }));
        out.back().mod = what;
    }
}

} // namespace

std::vector<base_pool> make_base_pools() {
    std::vector<base_pool> out;
    out.push_back(make("at rest", sized(64_KiB, 64_KiB), nullptr));
    out.push_back(make("at rest, may grow", sized(64_KiB, 256_KiB), nullptr));
    out.push_back(make("at rest, pmem", sized(128_KiB, 128_KiB, mode::pmem), nullptr));
    add_pending(out, built_for::clobber, "clobber");
    add_pending(out, built_for::undo, "undo");
    out.push_back(make("four open", sized(128_KiB, 128_KiB), four_open));
    out.push_back(make("four open, pmem", sized(128_KiB, 128_KiB, mode::pmem), four_open));
    out.push_back(make("grown, four open", sized(64_KiB, 256_KiB), [](pool&, root_object& r) {
        left_open(4, [&] { push(built_for::clobber, r.chains[0], 4); });
        left_open(700, [&] { sweep(built_for::undo, r.chains[1], 1); });
    }));
    add_redo(out);
    add_justdo(out);
    add_mod(out);
    add_mixed(out);
    return out;
}

} // namespace hf::hostile
