// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine undo where order is kept (log/word_log.hpp): halves of a word that two threads store to,
// ranges and words that are stored to again and again, a log that goes on in segments, memory that
// a section took, sections that are taken back.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <cstring>

namespace {

// What the plugin would emit.
template <class T> void store(T* to, T value) {
    hf_undo_log(to, sizeof value);
    *const_cast<volatile T*>(to) = value;
}
const hf_txfunc described{HF_ABI_VERSION, 0, 2401, 1, "words", "here", nullptr, 0, nullptr};
template <class Body> void section(Body&& body) {
    hf_undo_begin(&described, nullptr);
    body();
    hf_undo_commit();
}

constexpr std::size_t range_words = 5, many_words = 300; // more than a lane holds

struct cell {
    std::uint64_t words[4];
};
struct words_root {
    std::uint32_t half[2];
    std::uint64_t count[2]; // as many as each half
    std::uint64_t range[range_words];
    cell* slots[2];
    std::uint64_t many[many_words];
};

class words : public hf::crash::pool_program {
protected:
    words()
        : pool_program({.layout = "crash/words",
                        .engines = {hf::undo::engine()},
                        .bytes = hf::operator""_KiB(128),
                        .mode = hf::mode::process}) {}
    void setup(hf::pool& p) override { replace(p.root<words_root>(), 0); }
    unsigned operations(unsigned) const override { return 2; }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const words_root* r = p.root<words_root>();
        for (unsigned i = 0; i < 2; ++i) {
            s.add(r->half[i]);
            s.expect(r->half[i] == r->count[i], "a half and its count are stored together");
        }
        for (const std::uint64_t word : r->range) {
            s.add(word);
            s.expect(word == r->range[0], "a range is stored as a whole");
        }
        for (const std::uint64_t word : r->many) s.expect(word == r->many[0], "so are many words");
        s.add(r->many[0]);
        for (const cell* c : r->slots) {
            s.add(c == nullptr ? 0 : c->words[0]);
            if (c == nullptr) continue;
            s.object(c);
            for (const std::uint64_t word : c->words)
                s.expect(word == c->words[0], "a cell is whole");
        }
    }

    static cell* fresh(std::uint64_t value) {
        auto* const c = static_cast<cell*>(hf_alloc(sizeof(cell)));
        hf_undo_note(c, sizeof *c);
        for (std::uint64_t& word : c->words) word = value;
        return c;
    }
    static void put(words_root* r, unsigned slot) {
        cell* const old = r->slots[slot];
        store(&r->slots[slot], fresh(old == nullptr ? 1 : old->words[0] + 1));
        if (old == nullptr) return;
        store(&old->words[0], std::uint64_t{0});
        hf_free(old);
    }
    static void replace(words_root* r, unsigned slot) {
        section([&] { put(r, slot); });
    }
};

/// Each thread has half a word: what one takes back leaves the other's as it is.
class halves final : public words {
    unsigned threads() const override { return 2; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        words_root* const r = p.root<words_root>();
        section([&] {
            store(&r->half[thread], r->half[thread] + 1);
            store(&r->count[thread], r->count[thread] + 1);
        });
    }
};

/// A word has several entries, and the oldest counts.
class again_and_again final : public words {
    void run(hf::pool& p, unsigned, unsigned) override {
        words_root* const r = p.root<words_root>();
        section([&] {
            const std::uint64_t next = r->range[0] + 1;
            hf_undo_log(r->range, sizeof r->range);
            for (std::uint64_t& word : r->range) word = next;
            for (std::uint64_t& word : r->range) store(&word, word + 1);
            for (std::uint64_t i = 0; i < range_words; i += 2) store(&r->range[i], next);
            hf_undo_log(&r->range[1], 3 * sizeof r->range[0]);
            for (unsigned i = 1; i < 4; ++i) r->range[i] = next;
        });
    }
};

/// The log goes on in segments, more than once.
class many final : public words {
    void run(hf::pool& p, unsigned, unsigned) override {
        words_root* const r = p.root<words_root>();
        section([&] {
            put(r, 1);
            for (int twice = 0; twice < 2; ++twice) // more words than are remembered as logged
                for (std::uint64_t& word : r->many) store(&word, word + 1);
        });
    }
};

/// Memory that a section took is its own until it ends: the next one logs what it stores there.
class own_memory final : public words {
    void run(hf::pool& p, unsigned, unsigned i) override {
        words_root* const r = p.root<words_root>();
        if (i == 0) return replace(r, 1);
        section([&] {
            for (std::uint64_t& word : r->slots[1]->words) store(&word, word + 1);
        });
    }
};

/// Sections that end as if they had never begun, between others.
class taken_back final : public words {
    void run(hf::pool& p, unsigned, unsigned i) override {
        words_root* const r = p.root<words_root>();
        hf::staged kept = hf::staged::near(r, sizeof(cell));
        section([&] {
            put(r, i);
            put(r, 0);
            store(&r->half[0], 77U);
            hf_adopt(kept.get());
            store(&r->slots[1], static_cast<cell*>(kept.get()));
            hf_undo_log(r->range, sizeof r->range);
            std::memset(r->range, 7, sizeof r->range);
            hf_abort_section();
            put(r, 1);
        });
        const std::uint64_t before = r->slots[i] == nullptr ? 0 : r->slots[i]->words[0];
        replace(r, i);
        if (r->slots[i]->words[0] != before + 1) hf::fatal("the next section was taken back");
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("words/halves", std::make_unique<halves>());
    hf::crash::add("words/again and again", std::make_unique<again_and_again>());
    hf::crash::add("words/many", std::make_unique<many>());
    hf::crash::add("words/own memory", std::make_unique<own_memory>());
    hf::crash::add("words/taken back", std::make_unique<taken_back>());
    return true;
}();

} // namespace
