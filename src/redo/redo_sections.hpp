// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What programs of engine redo share: sections instrumented by hand, and what they work on.
#pragma once

#include <check/pool_program.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>

#include <cstring>

namespace hf::crash {

inline void add_one(const void* packed) {
    std::uint64_t* const count = *static_cast<std::uint64_t* const*>(packed);
    hf_clobber_log(count, 8);
    *const_cast<volatile std::uint64_t*>(count) = *count + 1;
}
inline constexpr hf_arg add_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
inline constexpr hf_txfunc add_desc{HF_ABI_VERSION, 8,          2202, 1,      "add_one",
                                    "here",         add_schema, 1,    add_one};
[[maybe_unused]] inline const bool add_registered = (hf_txfunc_register(&add_desc), true);

/// A section of engine clobber.
inline void add_by_clobber(std::uint64_t* count) {
    hf_clobber_begin(&add_desc, &count);
    add_one(&count);
    hf_clobber_commit();
}

} // namespace hf::crash

namespace {

constexpr std::size_t cell_words = 9; // two lines, and into a granule's middle
struct cell {
    std::uint64_t words[cell_words];
    std::uint64_t before[8];
    hf::shared_mutex lock; // changes between sections; on a line that no word is on
    std::uint64_t behind[8];
};
// More than a lane holds. With 'count' behind them they are four full records of new bytes and a
// small one, which would still fit where the fourth does not.
constexpr std::size_t many_words = 200;
struct root {
    cell* slots[2];
    std::uint64_t count, even;
    std::uint8_t bytes[8];
    alignas(64) std::uint64_t many[many_words];
    cell* loose; // nothing holds that it is a cell still
};

// What the plugin would emit.
template <class T> T load(const T* from) {
    T value;
    std::memcpy(&value, hf_redo_read(from, sizeof value), sizeof value);
    return value;
}
template <class T> void store(T* to, T value) {
    *static_cast<T*>(hf_redo_write(to, sizeof value)) = value;
}

const hf_txfunc described{HF_ABI_VERSION, 0, 2201, 1, "redo", "here", nullptr, 0, nullptr};
template <class Body> void section(Body&& body) {
    hf_redo_begin(&described, nullptr);
    body();
    hf_redo_commit();
}

inline cell* made(std::uint64_t value) {
    auto* fresh = static_cast<cell*>(hf_alloc(sizeof(cell)));
    hf_note_store(fresh->words, sizeof fresh->words);
    for (std::uint64_t& word : fresh->words) word = value;
    return fresh;
}
/// A new cell in the slot, one above the old one, which is freed.
inline void replace(root* r, unsigned slot) {
    section([&] {
        cell* const old = load(&r->slots[slot]);
        store(&r->slots[slot], made(old == nullptr ? 1 : load(&old->words[3]) + 1));
        if (old != nullptr) hf_free(old);
        store(&r->count, load(&r->count) + 1);
        for (int twice = 0; twice < 2; ++twice) store(&r->even, load(&r->even) + 1);
    });
}

class redo_program : public hf::crash::pool_program {
public:
    redo_program()
        : pool_program({.layout = "crash/redo",
                        .engines = {hf::redo::engine(), hf::clobber::engine()},
                        .bytes = hf::operator""_KiB(128)}) {}
    void setup(hf::pool& p) override { replace(p.root<root>(), 0); }
    unsigned operations(unsigned) const override { return 3; }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        for (const cell* c : r->slots) {
            s.add(c == nullptr ? 0 : c->words[0]);
            if (c == nullptr) continue;
            s.object(c);
            for (std::uint64_t word : c->words) s.expect(word == c->words[0], "a cell is whole");
        }
        s.add(r->count);
        s.expect(r->even % 2 == 0, "a section sees what it stored");
        for (std::uint8_t byte : r->bytes) s.add(byte);
        s.add(r->many[0]);
        for (std::uint64_t word : r->many) s.expect(word == r->many[0], "so are many words");
    }
};

/// What the end of a thread does: the next one may have its lane.
inline void end_thread(hf::pool& p) {
    hf::attachment& own = hf::attach(p.internals());
    own.work.leave();
    own.pool->blocks.release_all(own.cache);
    own.pool->lanes[own.lane].taken = false;
}

} // namespace
