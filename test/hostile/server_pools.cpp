// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server's pools, closed cleanly and left open: opened by its store's class, and used as its
// clients use them. One program per engine, as the server has.
#include "../../apps/kv/pool_check.hpp"
#include "base_pools.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::hostile {
namespace {

constexpr unsigned keys = 300;

std::string path_of(bool closed) {
    return "/dev/shm/holdfast_hostile_server." + std::to_string(::getpid()) + (closed ? "" : "o");
}
std::string key_of(unsigned n) { return "key " + std::to_string(n * 7919); }
std::string value_of(unsigned n) { return std::string(n * 37 % 900, 'v'); }

kv::store_options options_for(const std::string& path, bool make) {
    kv::store_options how;
    how.path = path;
    how.max_bytes = 1_MiB;
    how.create = make;
    how.clock = [] { return std::uint32_t{1'000'000}; };
    return how;
}

/// What clients ask of a store. The sum keeps every read.
class client {
public:
    explicit client(kv::store& of) : of_(&of), counted_(&of.counted().join()) {}

    void set(unsigned n) { (void)write(kv::verb::set, key_of(n), value_of(n)); }
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
            std::uint64_t number = 0;
            gone.what = kv::verb::incr;
            gone.delta = 1;
            const std::string counter = key_of(n + 4);
            gone.key = counter;
            (void)of_->change_number(gone, *counted_, number);
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
        return of_->write(r, value, *counted_);
    }
    kv::store* of_;
    kv::thread_counts* counted_;
};

/// Opens, asks, changes, closes; then once more.
std::string served(const std::string& path, bool& opened) {
    opened = false;
    bool whole = false;
    for (unsigned times = 0; times < 2; ++times) {
        auto store = kv::store::open(options_for(path, false));
        if (!store) {
            const std::string why = store.error().what();
            if (why.empty()) return "a refusal without a word";
            return whole ? "whole, and after a clean close: " + why : "";
        }
        opened = true;
        client some(**store);
#ifdef HF_KV_MOD
        whole = kv::check_pool(**store).whole();
#endif
        some.ask_all();
        some.change();
        some.ask_all();
#ifdef HF_KV_MOD
        if (whole && !kv::check_pool(**store).whole()) return "whole, and no more after its use";
#endif
    }
    return {};
}

} // namespace

std::vector<base_pool> make_base_pools() {
    std::vector<base_pool> out;
    std::atexit([] { // children end by _exit
        for (const bool closed : {true, false}) ::unlink(path_of(closed).c_str());
    });
    for (const bool closed : {true, false}) {
        base_pool& pool = out.emplace_back();
        pool.name = closed ? "server" : "server, left open";
        pool.sealed = closed;
        pool.served = served;
        pool.path = path_of(closed);
        ::unlink(pool.path.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            auto made = kv::store::open(options_for(pool.path, true));
            if (!made) ::_exit(3);
            client some(**made);
            for (unsigned n = 0; n < keys; ++n) some.set(n);
            for (unsigned n = 0; n < keys; n += 4) some.set(n + 1);
            if (!closed) ::_exit(0);
            made->reset();
            ::_exit(0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) {
            std::fprintf(stderr, "hostile: cannot make the server's pool\n");
            std::exit(2);
        }
        std::ifstream in(pool.path, std::ios::binary);
        const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
        pool.bytes.resize(text.size());
        std::memcpy(pool.bytes.data(), text.data(), text.size());
    }
    return out;
}

} // namespace hf::hostile
