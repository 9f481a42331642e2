// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine redo, instrumented by hand: blocks taken, adopted, freed and freed again, logs that go on
// in the heap, bytes of one word under two locks, memory that changes between sections, two
// threads, sections of other engines before and behind, and sections that end as if they had never
// begun.
#include "redo_sections.hpp"

#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>

#include <new>

namespace {

class replaced final : public redo_program {
    void run(hf::pool& p, unsigned, unsigned i) override { replace(p.root<root>(), i % 2); }
};

/// The last word first: line by line, and no run goes on in the next line.
void add_to_many(root* r) {
    for (std::size_t w = many_words; w-- > 0;) store(&r->many[w], load(&r->many[w]) + 1);
}

/// The log continues in the heap; what is read there and then is what was stored.
class many_stores final : public redo_program {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned) override {
        root* r = p.root<root>();
        section([&] {
            add_to_many(r);
            hf_redo_copy(r->many + 1, r->many, sizeof r->many - 8);
            hf_redo_fill(r->bytes, 7, 3);
        });
    }
};

/// Words that move: runs of granules, at whose ends are parts of some, and one within that a store
/// made before.
class moved final : public redo_program {
    unsigned operations(unsigned) const override {
        return 5;
    } // the last two logs say nothing of it
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* const r = p.root<root>();
        section([&] {
            for (std::size_t w = 0; i == 0 && w < moving; ++w) store(&r->many[w], w + 1);
            if (i == 1 || i == 2) store(&r->many[moving / 2], std::uint64_t{100} + i);
            if (i == 1) hf_redo_copy(r->many + 1, r->many, (moving - 1) * 8);
            if (i == 2) hf_redo_copy(r->many, r->many + 3, (moving - 3) * 8);
            store(&r->count, load(&r->count) + 1);
        });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        s.add(r->count);
        // A move reads what its section has stored just before, lines behind the first.
        s.expect(r->count != 3 || r->many[moving / 2 + 1] == 101, "moved up with what was stored");
        s.expect(r->count != 4 || r->many[moving / 2 - 3] == 102, "moved down the same");
        for (std::size_t w = 0; w <= moving; ++w) s.add(r->many[w]);
        reach_all(p, s, r);
    }
    static constexpr std::size_t moving = 32; // lines that are within a run alone
};

/// More lines than a section leaves to the next: they are stored as a run, and a copy reads the
/// last of them. No end is a line's.
class moved_far final : public redo_program {
    static constexpr std::size_t put = 368, copied = 24, words = put + copied + 2;
    void setup(hf::pool& p) override {
        redo_program::setup(p);
        root* const r = p.root<root>();
        section([&] {
            auto* const far = static_cast<std::uint64_t*>(hf_alloc(words * 8));
            hf_note_store(far, words * 8);
            for (std::size_t w = 0; w < words; ++w) far[w] = 0;
            store(&r->loose, reinterpret_cast<cell*>(far));
        });
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned) override {
        root* const r = p.root<root>();
        section([&] {
            auto* const far = reinterpret_cast<std::uint64_t*>(load(&r->loose));
            std::uint64_t next[put];
            for (std::uint64_t& word : next) word = far[1] + 1;
            hf_redo_put(far + 1, next, sizeof next);
            hf_redo_copy(far + 1 + put, far + 1 + put - copied, copied * 8);
        });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        redo_program::describe(p, s);
        const auto* const far = reinterpret_cast<const std::uint64_t*>(p.root<root>()->loose);
        s.object(far);
        s.add(far[1]);
        for (std::size_t w = 1; w + 1 < words; ++w)
            s.expect(far[w] == far[1], "what moved far is whole");
        s.expect(far[0] == 0 && far[words - 1] == 0, "and nothing beside it");
    }
};

/// A staged block that holds 'value'.
cell* staged_with(hf::pool& p, std::uint64_t value) {
    auto* const staged = static_cast<cell*>(hf::staged::in(p, sizeof(cell))->release());
    cell words{};
    for (std::uint64_t& word : words.words) word = value;
    hf::staged::copy_words(staged, &words, sizeof words);
    return staged;
}

/// Staged blocks: one becomes the section's, one it frees again, as it does one of its own.
class adopted final : public redo_program {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        cell* staged[2];
        for (cell*& each : staged) each = staged_with(p, i + 5);
        section([&] {
            for (cell* each : staged) hf_adopt(each);
            if (i == 0)
                for (std::uint64_t& word : staged[0]->words) store(&word, load(&word) + 1);
            hf_free(staged[1]);
            hf_free(made(3));
            if (cell* old = load(&r->slots[1])) hf_free(old);
            store(&r->slots[1], staged[0]);
        });
    }
};

/// The runtime's own stores to a lock are not recorded: the same once more.
void again(hf::shared_mutex* lock) {
    auto* word = reinterpret_cast<std::uint64_t*>(lock);
    *word = *const_cast<volatile std::uint64_t*>(word);
}

/// A block that a section has made changes as soon as the section has ended: a lock in it, or
/// anything where the section was settled. Lines of it that were not written back are still in the
/// caches when the block has another owner.
class changed_between final : public redo_program {
    unsigned operations(unsigned) const override { return 8; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 1) {
            r->slots[0]->lock.lock();
            again(&r->slots[0]->lock);
            r->slots[0]->lock.unlock();
        } else if (i == 3) {
            hf::settle(p);
            r->slots[0]->before[0] = 1;
        } else {
            replace(r, 0);
        }
    }
};

/// The same of a lock that was taken before the staged cell that it is in got its sum.
class staged_locked final : public redo_program {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        auto* const staged = new (hf::staged::in(p, sizeof(cell))->release()) cell{};
        for (std::uint64_t& word : staged->words) word = i + 5;
        staged->lock.lock();
        hf::staged::note_written(staged, sizeof *staged);
        section([&] {
            hf_adopt(staged);
            if (cell* old = load(&r->slots[1])) hf_free(old);
            store(&r->slots[1], staged);
        });
        staged->lock.unlock();
        again(&staged->lock);
    }
};

/// Threads' bytes lie in one word. (None waits for another: of three that did, not every order
/// would be tried.)
class shared_word final : public redo_program {
public:
    shared_word(unsigned threads, unsigned operations)
        : threads_(threads), operations_(operations) {
        options_.max_threads = threads;
    }

private:
    unsigned threads() const override { return threads_; }
    unsigned operations(unsigned) const override { return operations_; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        std::uint8_t* byte = p.root<root>()->bytes + thread;
        section([&] { store(byte, static_cast<std::uint8_t>(load(byte) + i + 1)); });
    }
    unsigned threads_, operations_;
};

/// Two threads, a lock: each goes on from what the other has left, and frees what it made.
class by_turns final : public redo_program {
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        in_turn([&] { replace(p.root<root>(), 0); });
    }
};

/// One thread's second section runs beside the other thread's, which has the lock of the first one:
/// what that one stored is not stored again by recovery once the other has gone on from it.
class beside_the_next final : public redo_program {
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 2 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        root* const r = p.root<root>();
        if (thread == 0 && i == 1) return section([&] { store(&r->bytes[0], std::uint8_t{1}); });
        in_turn([&] { section([&] { store(&r->count, load(&r->count) + 1); }); });
    }
};

/// Two threads that share a heap only.
class side_by_side final : public redo_program {
    void setup(hf::pool& p) override {
        for (unsigned slot = 0; slot < 2; ++slot) replace(p.root<root>(), slot);
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        cell** slot = &p.root<root>()->slots[thread];
        section([&] {
            cell* const old = load(slot);
            store(slot, made(old->words[0] + 1));
            hf_free(old);
        });
    }
};

/// Sections of engine clobber before and behind, in one lane.
class with_clobber final : public redo_program {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        i % 2 == 1 ? replace(r, 0) : hf::crash::add_by_clobber(&r->count);
    }
};

/// Blocks that go to others outside of sections while a log may be replayed that frees them, or may
/// be executed again that names them as staged.
class handed_out : public redo_program {
protected:
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        s.add(r->count);
        s.add(r->even);
        reach_all(p, s, r);
    }
};

/// The section after the one that frees has a fence more, for memory whose sum it cannot log.
class handed_out_after_two_fences final : public handed_out {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0)
            section([&] {
                hf_free(load(&r->slots[0]));
                store(&r->slots[0], static_cast<cell*>(nullptr));
            });
        else if (i == 1) {
            cell* const staged = staged_with(p, 5);
            section([&] {
                hf_adopt(staged);
                store(&staged->words[1], std::uint64_t{6});
                store(&r->slots[1], staged);
            });
        } else static_cast<void>(hf_alloc(sizeof(cell)));
    }
};

/// A section that changes nothing frees what it has adopted, and another engine's section has
/// named.
class handed_out_unadopted final : public handed_out {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) {
            staged_ = hf::staged::in(p, sizeof(cell))->release();
            hf::crash::add_by_clobber(&r->count);
        } else if (i == 1)
            section([&] {
                hf_adopt(staged_);
                hf_free(staged_);
            });
        else static_cast<void>(hf_alloc(sizeof(cell)));
    }
    void* staged_ = nullptr;
};

/// Sections that end as if they had never begun, and others that work with what those had taken.
class aborted : public redo_program {
public:
    explicit aborted(bool thrown) : thrown_(thrown) {}

protected:
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* const r = p.root<root>();
        if (i % 2 == 0)
            take_back([&] {
                cell* const old = load(&r->slots[0]);
                hf_free(made(4));
                store(&r->slots[0], made(load(&old->words[3]) + 1));
                store(&r->slots[1], made(9));
                store(&r->count, load(&r->count) + 7);
                store(&r->even, load(&r->even) + 1);
                hf_free(old);
            });
        else replace(r, i / 2);
    }
    template <class Body> void take_back(Body&& body) {
        hf_redo_begin(&described, nullptr);
        if (!thrown_) hf_abort_section();
        body();
        if (thrown_) hf_redo_abort();
        else hf_redo_commit();
    }

private:
    bool thrown_;
};

/// A block that an aborted section has adopted is staged as before. It can be adopted, and given
/// back.
class aborted_staged final : public aborted {
public:
    aborted_staged() : aborted(false) {}

private:
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        root* const r = p.root<root>();
        cell* staged[2];
        for (cell*& each : staged) each = staged_with(p, 5);
        take_back([&] {
            for (cell* each : staged) hf_adopt(each);
            store(&staged[0]->words[2], std::uint64_t{8});
            hf_free(staged[1]);
            store(&r->slots[1], staged[0]);
        });
        section([&] {
            hf_adopt(staged[0]);
            store(&r->slots[1], staged[0]);
        });
        hf::staged(staged[1]).reset();
    }
};

/// A block that an aborted section had taken becomes allocated outside of sections at once: its log
/// must claim nothing then.
class aborted_at_once final : public aborted {
public:
    aborted_at_once() : aborted(true) {}

private:
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* const r = p.root<root>();
        if (i == 0)
            take_back([&] {
                store(&r->slots[1], made(9));
                hf_free(load(&r->slots[0]));
            });
        else static_cast<void>(hf_alloc(sizeof(cell)));
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        s.add(r->slots[0]->words[0]);
        s.expect(r->slots[1] == nullptr, "an aborted section has stored nothing");
        reach_all(p, s, r);
    }
};

/// One thread's section aborts, and what it took goes to the other: not before its mark is durable.
class aborted_trimmed final : public aborted {
public:
    aborted_trimmed() : aborted(true) {}

private:
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        in_turn([&] {
            root* const r = p.root<root>();
            if (thread == 1) return replace(r, 0);
            take_back([&] { store(&r->slots[1], made(9)); });
            hf::return_spare_blocks(p);
        });
    }
};

/// Nothing is lost: each takes more than half of what there is.
class aborted_often final : public aborted {
public:
    aborted_often() : aborted(false) {}

private:
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned) override {
        root* const r = p.root<root>();
        take_back([&] {
            void* const most = hf_alloc(9 * 4096);
            found_none_ = found_none_ || most == nullptr;
            store(&r->count, load(&r->count) + 1);
        });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        redo_program::describe(p, s);
        s.expect(!found_none_, "an aborted section gives back what it took");
    }
    bool found_none_ = false;
};

/// A log that finds no room is never whole, and the next section has what it had.
class no_room_for_log final : public redo_program {
    void setup(hf::pool& p) override {
        redo_program::setup(p);
        for (std::size_t bytes = 16 * 4096; bytes >= 16; bytes /= 2)
            for (void* taken = &taken; taken != nullptr;) section([&] { taken = hf_alloc(bytes); });
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* const r = p.root<root>();
        hf_redo_begin(&described, nullptr);
        if (i == 0) // what setup had at hand
            while (hf_alloc(4096) != nullptr) {}
        if (i == 1) add_to_many(r);
        store(&r->count, load(&r->count) + 1);
        try {
            hf_redo_commit_or_throw();
        } catch (const std::bad_alloc&) {}
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        s.add(r->count);
        s.expect(r->many[0] == 0, "a section without room for its log has not happened");
        for (std::uint64_t word : r->many) s.expect(word == r->many[0], "all of it or nothing");
        reach_all(p, s, r);
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("redo/replaced", std::make_unique<replaced>());
    hf::crash::add("redo/many stores", std::make_unique<many_stores>());
    hf::crash::add("redo/moved", std::make_unique<moved>());
    hf::crash::add("redo/moved far", std::make_unique<moved_far>());
    hf::crash::add("redo/adopted", std::make_unique<adopted>());
    hf::crash::add("redo/changed between", std::make_unique<changed_between>());
    hf::crash::add("redo/staged, locked", std::make_unique<staged_locked>());
    hf::crash::add("redo/shared word", std::make_unique<shared_word>(2U, 2U));
    hf::crash::add("redo/three threads", std::make_unique<shared_word>(3U, 1U));
    hf::crash::add("redo/by turns", std::make_unique<by_turns>());
    hf::crash::add("redo/beside the next", std::make_unique<beside_the_next>());
    hf::crash::add("redo/side by side", std::make_unique<side_by_side>());
    hf::crash::add("redo/with clobber", std::make_unique<with_clobber>());
    hf::crash::add("redo/handed out after two fences",
                   std::make_unique<handed_out_after_two_fences>());
    hf::crash::add("redo/handed out, unadopted", std::make_unique<handed_out_unadopted>());
    hf::crash::add("redo/aborted", std::make_unique<aborted>(false));
    hf::crash::add("redo/aborted by exception", std::make_unique<aborted>(true));
    hf::crash::add("redo/aborted, staged", std::make_unique<aborted_staged>());
    hf::crash::add("redo/aborted, at once", std::make_unique<aborted_at_once>());
    hf::crash::add("redo/aborted, trimmed", std::make_unique<aborted_trimmed>());
    hf::crash::add("redo/aborted often", std::make_unique<aborted_often>());
    hf::crash::add("redo/no room for log", std::make_unique<no_room_for_log>());
    return true;
}();

} // namespace
