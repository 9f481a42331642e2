// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine redo, by chance: sequences, from fixed seeds, of what a program may do with a pool, one
// operation behind any other. Sections that replace blocks of all sizes, small ones and logs that
// go on in the heap, that only read, that end as if they had never begun, that adopt; sections of
// engine clobber; blocks that change hands outside of sections, hf::settle,
// hf::return_spare_blocks; and more of it after a recovery.
#include <check/pool_program.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr unsigned groups = 2; // of slots
constexpr unsigned slots = 3;  // in a group
constexpr std::size_t many_words = 200;
struct slot {
    std::uint64_t* block;
    std::uint64_t words;
};
struct group {
    slot held[slots];
    std::uint64_t count, clobbered;
    std::uint64_t many[many_words];
};
struct root {
    alignas(64) group all[groups];
};

template <class T> T load(const T* from) {
    T value;
    std::memcpy(&value, hf_redo_read(from, sizeof value), sizeof value);
    return value;
}
template <class T> void store(T* to, T value) {
    *static_cast<T*>(hf_redo_write(to, sizeof value)) = value;
}

const hf_txfunc described{HF_ABI_VERSION, 0, 2211, 1, "by chance", "here", nullptr, 0, nullptr};

void add_one(const void* packed) {
    std::uint64_t* const count = *static_cast<std::uint64_t* const*>(packed);
    hf_clobber_log(count, 8);
    *const_cast<volatile std::uint64_t*>(count) = *count + 1;
}
const hf_arg add_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc add_desc{HF_ABI_VERSION, 8, 2212, 1, "add_one", "here", add_schema, 1, add_one};
[[maybe_unused]] const bool registered = (hf_txfunc_register(&add_desc), true);

/// One number after the other from a seed.
class chance {
public:
    explicit chance(std::uint64_t seed) : state_(seed) {}
    unsigned below(unsigned limit) {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return static_cast<unsigned>((z ^ z >> 31) % limit);
    }

private:
    std::uint64_t state_;
};

class by_chance final : public hf::crash::pool_program {
public:
    explicit by_chance(unsigned seed)
        : pool_program({.layout = "crash/chance",
                        .engines = {hf::redo::engine(), hf::clobber::engine()},
                        .bytes = hf::operator""_KiB(192)}),
          seed_(seed) {}

private:
    void setup(hf::pool& p) override {
        for (group& g : p.root<root>()->all) {
            hf_redo_begin(&described, nullptr);
            replace(&g.held[0], 2, 1);
            replace(&g.held[1], 20, 1);
            hf_redo_commit();
        }
    }
    unsigned operations(unsigned) const override { return 6; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) apart_ = nullptr; // of another run
        act(p, i);
    }
    unsigned operations_after() const override { return 2; }
    void run_after(hf::pool& p, unsigned i) override {
        apart_ = nullptr; // of an open that has ended
        act(p, 100 + i);
    }

    void act(hf::pool& p, unsigned i) {
        chance c(seed_ * 1000 + i);
        const unsigned what = c.below(12);
        if (what == 0) return hf::settle(p);
        if (what == 1) return hf::return_spare_blocks(p);
        if (what == 2) return at_once(c);
        const unsigned which = c.below(groups);
        group& g = p.root<root>()->all[which];
        if (what == 3) clobbers(g);
        else if (what == 4) adopts(p, g, c);
        else changes(g, c, what);
    }

    /// A block that nothing in the pool leads to: its number is looked at.
    void at_once(chance& c) {
        if (apart_ != nullptr) hf_free(apart_);
        apart_ = apart_ != nullptr ? nullptr : hf_alloc(16u << c.below(8));
    }
    static void clobbers(group& g) {
        std::uint64_t* count = &g.clobbered;
        hf_clobber_begin(&add_desc, &count);
        add_one(&count);
        hf_clobber_commit();
    }
    static void adopts(hf::pool& p, group& g, chance& c) {
        const std::uint64_t words = 2u << c.below(5);
        auto* staged = static_cast<std::uint64_t*>(hf::staged::in(p, words * 8)->release());
        std::uint64_t filled[32];
        slot* const into = &g.held[c.below(slots)];
        for (std::uint64_t& word : filled)
            word = 50 + (into->block == nullptr ? 0 : into->block[0]);
        hf::staged::copy_words(staged, filled, words * 8);
        if (c.below(4) == 0) return hf::staged(staged).reset();
        hf_redo_begin(&described, nullptr);
        hf_adopt(staged);
        if (slot old = load(into); old.block != nullptr) hf_free(old.block);
        store(&into->block, staged);
        store(&into->words, words);
        if (c.below(3) == 0)
            for (std::uint64_t w = 0; w < words; ++w) store(staged + w, load(staged + w) + 1);
        hf_redo_commit();
    }
    static void replace(slot* in, std::uint64_t words, std::uint64_t value) {
        auto* const made = static_cast<std::uint64_t*>(hf_alloc(words * 8));
        if (made == nullptr) return;
        hf_note_store(made, words * 8);
        for (std::uint64_t w = 0; w < words; ++w) made[w] = value;
        if (auto* old = load(&in->block)) hf_free(old);
        store(&in->block, made);
        store(&in->words, words);
    }
    static void changes(group& g, chance& c, unsigned what) {
        hf_redo_begin(&described, nullptr);
        if (what == 5 && c.below(2) == 0) hf_abort_section();
        for (unsigned rest = what == 6 ? 0 : 1 + c.below(3); rest > 0; --rest) {
            slot* const in = &g.held[c.below(slots)];
            std::uint64_t* const old = load(&in->block);
            const std::uint64_t value = old == nullptr ? 1 : load(old) + 1;
            const unsigned how = c.below(5);
            if (how == 0 && old != nullptr) { // as it lies there
                for (std::uint64_t w = 0, n = load(&in->words); w < n; ++w) store(old + w, value);
            } else if (how == 1 && old != nullptr) {
                hf_free(old);
                store(&in->block, static_cast<std::uint64_t*>(nullptr));
            } else {
                replace(in, 2u << c.below(9), value);
            }
        }
        if (what == 6) static_cast<void>(load(&g.count)); // it only reads
        else store(&g.count, load(&g.count) + 1);
        if (what == 7)
            for (std::uint64_t& word : g.many) store(&word, load(&word) + 1);
        if (what == 8) hf_free(hf_alloc(24));
        hf_redo_commit();
    }

    /// Blocks that no slot leads to count as reached: their number is looked at.
    void describe(hf::pool& p, hf::crash::state& s) override {
        std::vector<const void*> blocks;
        hf::for_each_block(
            p,
            [](void* to, const void* block, std::size_t) {
                static_cast<std::vector<const void*>*>(to)->push_back(block);
            },
            &blocks);
        s.add(blocks.size());
        const root* const r = p.root<root>();
        for (const void* block : blocks)
            if (block != r) s.object(block);
        std::vector<const void*> held;
        for (const group& g : r->all) {
            for (const slot& in : g.held) {
                s.add(in.block == nullptr ? 0 : in.words);
                if (in.block == nullptr) continue;
                s.add(in.block[0]);
                s.expect(std::ranges::count(blocks, in.block) == 1, "a slot's block is allocated");
                s.expect(std::ranges::count(held, in.block) == 0, "in one slot");
                held.push_back(in.block);
                for (std::uint64_t w = 0; w < in.words; ++w)
                    s.expect(in.block[w] == in.block[0], "a block is whole");
            }
            s.add(g.count);
            s.add(g.clobbered);
            s.add(g.many[0]);
            for (std::uint64_t word : g.many) s.expect(word == g.many[0], "many words are whole");
        }
    }

    unsigned seed_;
    void* apart_ = nullptr; // allocated outside of sections
};

[[maybe_unused]] const bool added = [] {
    // The five of sixty that take least time to explore.
    for (unsigned seed : {13u, 17u, 24u, 29u, 44u})
        hf::crash::add("redo/chance " + std::to_string(seed), std::make_unique<by_chance>(seed));
    return true;
}();

} // namespace
