// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server's pools, closed cleanly, left open, and killed in each of its sections: opened by its
// store's class, and used as its clients use them. One program per engine, as the server has.
#include "base_pools.hpp"
#include <kv/store/pool_check.hpp>
#include <verify/examine.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace hf::hostile {
namespace {

constexpr unsigned keys = 300;

std::string path_of(const std::string& name) {
    return "/dev/shm/holdfast_hostile_server." + std::to_string(::getpid()) + "." + name;
}
std::string key_of(unsigned n) { return "key " + std::to_string(n * 7919); }
std::string value_of(unsigned n) { return std::string(n * 37 % 900, 'v'); }

bool damage_told = false; // by the store that is open

kv::store_options options_for(const std::string& path, bool make) {
    kv::store_options how;
    how.path = path;
    how.max_bytes = 1_MiB;
    how.create = make;
    how.clock = [] { return std::uint32_t{1'000'000}; };
    how.on_damage = [](const std::string&) { damage_told = true; };
    return how;
}

/// A client's requests to a store. The sum keeps every read.
class client {
public:
    explicit client(kv::store& of) : of_(&of), counted_(&of.counted().join()) {}

    void set(unsigned n) { (void)write(kv::verb::set, key_of(n), value_of(n)); }
    void set_number() { (void)write(kv::verb::set, "number", "41"); }
    void ask_all() {
        for (unsigned n = 0; n < keys; ++n)
            (void)of_->get(key_of(n), *counted_, [&](const kv::item_view& it) {
                for (std::size_t i = 0; i < it.value.size(); i += 64)
                    sum += static_cast<unsigned char>(it.value[i]);
            });
        std::uint64_t bytes = 0;
        sum += of_->item_count() + of_->sample_classes(bytes).size();
    }
    void change() {
        for (unsigned n = 0; n < keys; n += 5) set(n + 2);
        for (unsigned n = 0; n < keys; n += 9) {
            kv::request gone;
            const std::string key = key_of(n);
            gone.what = kv::verb::remove;
            gone.key = key;
            (void)of_->remove(key, *counted_);
            (void)write(kv::verb::append, key_of(n + 1), "more");
            (void)of_->touch(key_of(n + 3), 100, *counted_);
            kv::change done;
            gone.what = kv::verb::incr;
            gone.delta = 1;
            const std::string counter = n == 0 ? "number" : key_of(n + 4);
            gone.key = counter;
            (void)of_->change_number(gone, *counted_, done);
        }
        for (unsigned n = keys; n < keys + 40; ++n) set(n);
        for (unsigned n = 0; n < 20; ++n) of_->reap(*counted_);
        of_->flush_all(5);
    }
    std::uint64_t sum = 0;

private:
    kv::outcome write(kv::verb what, const std::string& key, const std::string& value) {
        kv::request r;
        r.what = what;
        r.key = key;
        r.value_bytes = static_cast<std::uint32_t>(value.size());
        kv::change done;
        return of_->write(r, value, *counted_, done);
    }
    kv::store* of_;
    kv::thread_counts* counted_;
};

void read_file(const std::string& path, std::vector<std::byte>& to) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    to.resize(text.size());
    std::memcpy(to.data(), text.data(), text.size());
}

/// Whether `verify --deep` calls the closed pool good.
bool good(const std::string& path) {
    std::vector<std::byte> file;
    read_file(path, file);
    return verify::examine(file, verify::depth::deep).outcome == verify::verdict::good;
}

/// Opens, asks, changes, closes; 'whole' is what check_pool() finds.
void serve_once(const std::string& path, serving& so_far, bool& whole) {
    damage_told = false;
    auto store = kv::store::open(options_for(path, false));
    if (!store) {
        so_far.refused = store.error().code();
        so_far.why = store.error().what();
        if (so_far.why.empty()) so_far.wrong = "a refusal without a word";
        if (whole) so_far.wrong = "whole, and after a clean close: " + so_far.why;
        return;
    }
    so_far.opened = true;
    so_far.sections_pending += (*store)->pool().recovered().sections_pending;
    client some(**store);
    whole = kv::check_pool(**store).whole();
    some.ask_all();
    some.change();
    some.ask_all();
    if (whole && !kv::check_pool(**store).whole())
        so_far.wrong = "whole, and no more after its use";
    store->reset();
    if (damage_told && good(path)) so_far.wrong = "damaged for the store, good after its close";
}

serving served(const std::string& path) {
    serving so_far;
    bool whole = false;
    serve_once(path, so_far, whole);
    if (so_far.opened && so_far.wrong.empty()) serve_once(path, so_far, whole);
    return so_far;
}

/// Runs 'work' in a child process, which ends by leaving its pools as they are, or is killed.
void in_child(const std::function<bool()>& work, bool killed) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work() ? 0 : 3);
    int how = 0;
    ::waitpid(child, &how, 0);
    if (killed ? WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL
               : WIFEXITED(how) && WEXITSTATUS(how) == 0)
        return;
    std::fprintf(stderr, "hostile: cannot make the server's pool\n");
    std::exit(2);
}

bool fill(const std::string& path, bool closed) {
    auto made = kv::store::open(options_for(path, true));
    if (!made) return false;
    client some(**made);
    for (unsigned n = 0; n < keys; ++n) some.set(n);
    for (unsigned n = 0; n < keys; n += 4) some.set(n + 1);
    some.set_number();
    if (!closed) (void)made->release(); // for nobody: the process ends
    return true;
}

/// Ends in the section that passes this crash point.
bool change_until(const char* crash_point, const std::string& path) {
    ::setenv("HOLDFAST_CRASH_AT", crash_point, 1);
    auto opened = kv::store::open(options_for(path, false));
    if (!opened) return false;
    client some(**opened);
    some.change();
    return true;
}

struct kind {
    const char* name;
    bool closed;
    const char* crash_point; // in a section of the server's; null: between two
};
constexpr kind kinds[] = {
    {"server", true, nullptr},
    {"server, left open", false, nullptr},
#ifndef HF_KV_MOD // whose sections these are
    {"server, inserting", false, "kv_insert"},
    {"server, replacing", false, "kv_replace"},
    {"server, removing", false, "kv_remove"},
    {"server, counting", false, "kv_number"},
#endif
};

} // namespace

std::vector<base_pool> make_base_pools() {
    std::vector<base_pool> out;
    std::atexit([] { // children end by _exit
        for (const kind& of : kinds) ::unlink(path_of(of.name).c_str());
    });
    for (const kind& of : kinds) {
        base_pool& pool = out.emplace_back();
        pool.name = of.name;
        pool.sealed = of.closed;
        pool.served = served;
        pool.path = path_of(of.name);
        ::unlink(pool.path.c_str());
        in_child([&] { return fill(pool.path, of.closed); }, false);
        if (of.crash_point != nullptr)
            in_child([&] { return change_until(of.crash_point, pool.path); }, true);
        read_file(pool.path, pool.bytes);
    }
    return out;
}

} // namespace hf::hostile
