// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine redo, two threads. One changes what the other's section has left, whose mark is due, and
// goes on until only that section's log still knows of it. That log must not be replayed then.
#include "redo_sections.hpp"

#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>

namespace {

enum class what : std::uint8_t {
    word,            // is stored over
    word_before,     // the same, of the section before the last
    own_memory,      // is stored over
    block_taken,     // is freed, unlinked by nobody
    block_changed,   // is freed, and taken anew
    lock_inside,     // of new memory is taken
    other_engine,    // stores over a word
    both_directions, // each stores over the other's
    there_and_back   // each replaces the other's block, and stores over what it has become
};

void add_to_all(cell* c) {
    for (std::uint64_t& word : c->words) store(&word, load(&word) + 1);
}

class handed_over final : public redo_program {
public:
    explicit handed_over(what which, bool eadr = false) : which_(which) {
        options_.expert.eadr = eadr;
    }

private:
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override {
        if (which_ == what::both_directions || which_ == what::there_and_back) return 2;
        if (thread == 0) return which_ == what::word_before ? 2 : 1;
        return which_ == what::block_changed ? 4 : which_ == what::lock_inside ? 1 : 3;
    }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        root* const r = p.root<root>();
        if (i == 0 || which_ == what::both_directions || which_ == what::there_and_back) {
            in_turn([&] {
                if (which_ == what::there_and_back && i == 1) change(r);
                else if (which_ == what::there_and_back) leave(r, thread);
                else if (thread == 0 || which_ == what::both_directions) leave(r, thread);
                else change(r);
            });
        } else if (which_ == what::other_engine) {
            hf::crash::add_by_clobber(&r->many[8 * thread]);
        } else if (which_ == what::block_changed && i == 3) {
            section([&] { store(&r->slots[1], made(9)); });
        } else { // on a line that nobody else stores to
            section([&] { store(&r->many[8 * thread], std::uint64_t{i}); });
        }
    }
    void leave(root* r, unsigned thread) {
        switch (which_) {
        case what::own_memory:
        case what::there_and_back:
        case what::lock_inside: return replace(r, 0);
        case what::block_taken: return section([&] { store(&r->loose, made(3)); });
        case what::block_changed:
            return section([&] {
                if (cell* const old = load(&r->slots[0])) add_to_all(old);
                else store(&r->count, load(&r->count) + 1);
            });
        default:
            return section([&] {
                store(&r->count, load(&r->count) + 1);
                std::uint64_t* const own = &r->many[8 * thread + 1];
                store(own, load(own) + 1);
            });
        }
    }
    void change(root* r) {
        switch (which_) {
        case what::own_memory:
        case what::there_and_back: return section([&] { add_to_all(load(&r->slots[0])); });
        case what::block_taken:
            return section([&] {
                if (cell* const loose = load(&r->loose)) hf_free(loose);
                else store(&r->many[16], std::uint64_t{1});
            });
        case what::block_changed:
            return section([&] {
                hf_free(load(&r->slots[0]));
                store(&r->slots[0], static_cast<cell*>(nullptr));
            });
        case what::lock_inside: {
            r->slots[0]->lock.lock();
            // The runtime's own stores to a lock are not recorded: the same once more.
            auto* const word = reinterpret_cast<std::uint64_t*>(&r->slots[0]->lock);
            *word = *const_cast<volatile std::uint64_t*>(word);
            return r->slots[0]->lock.unlock();
        }
        case what::other_engine: return hf::crash::add_by_clobber(&r->count);
        default: return leave(r, 1);
        }
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        for (const cell* c : r->slots) {
            s.add(c == nullptr ? 0 : c->words[0]);
            for (std::size_t i = 0; c != nullptr && i < cell_words; ++i)
                s.expect(c->words[i] == c->words[0], "a cell is whole");
        }
        s.add(r->count);
        for (std::size_t i = 0; i <= 16; ++i) s.add(r->many[i]);
        reach_all(p, s, r);
    }

    what which_;
};

/// A thread ends, and another takes its lane and goes on from what it has left.
class thread_ended final : public redo_program {
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread + 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        in_turn([&] {
            if (i == 0) replace(p.root<root>(), 0);
            else section([&] { add_to_all(p.root<root>()->slots[0]); });
            if (thread == 0) end_thread(p);
        });
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("redo/thread ended", std::make_unique<thread_ended>());
    const auto add = [](const char* name, what which) {
        hf::crash::add(std::string("redo/handed over, ") + name,
                       std::make_unique<handed_over>(which));
    };
    add("word", what::word);
    add("word before", what::word_before);
    add("own memory", what::own_memory);
    add("block taken", what::block_taken);
    add("block changed", what::block_changed);
    add("lock inside", what::lock_inside);
    add("other engine", what::other_engine);
    add("both directions", what::both_directions);
    add("there and back", what::there_and_back);
    hf::crash::add("redo/handed over, eadr", std::make_unique<handed_over>(what::word, true));
    return true;
}();

} // namespace
