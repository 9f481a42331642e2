// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine undo whose sections leave their stores to the next one (undo::options::durable): memory
// that is freed and used again, locks in it, sections that store nothing, sections of other
// engines, other threads, a thread that ends, a process that dies.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>
#include <redo/redo_sections.hpp>

#include <holdfast/author/staged.hpp>
#include <holdfast/undo.hpp>

namespace {

// What the plugin would emit: logged at each store, or before the first one.
template <class T> void undo_store(T* to, T value) {
    hf_undo_log(to, sizeof value);
    *const_cast<volatile T*>(to) = value;
}
template <class T> void noted_store(T* to, T value) {
    hf_note_store(to, sizeof value);
    *const_cast<volatile T*>(to) = value;
}
const hf_txfunc undo_described{HF_ABI_VERSION, 0, 2301, 1, "left", "here", nullptr, 0, nullptr};
template <class Body> void undo_section(Body&& body) {
    hf_undo_begin(&undo_described, nullptr);
    body();
    hf_undo_commit();
}
void undo_count(std::uint64_t* count) {
    undo_section([&] {
        hf_log_ahead(count, sizeof *count);
        noted_store(count, *count + 1);
    });
}
/// Small: what a section leaves is missing in every combination.
struct left_cell {
    std::uint64_t words[2];
    hf::shared_mutex lock;
};
struct left_root {
    left_cell* slots[2];
    std::uint64_t count;
    alignas(64) std::uint64_t own[5 * 8];
};

/// A new cell in the slot, one above the old one, which is stored over and freed.
void undo_replace(left_root* r, unsigned slot) {
    undo_section([&] {
        left_cell* const old = r->slots[slot];
        undo_store(&r->count,
                   r->count + 1); // behind its fence memory may be given that was freed before
        hf_log_ahead(&r->slots[slot], sizeof old);
        auto* const fresh = static_cast<left_cell*>(hf_alloc(sizeof(left_cell)));
        const std::uint64_t value = old == nullptr ? 1 : old->words[1] + 1;
        for (std::uint64_t& word : fresh->words) noted_store(&word, value);
        noted_store(&r->slots[slot], fresh);
        if (old != nullptr) {
            undo_store(&old->words[0], std::uint64_t{0}); // a fence of its own
            hf_free(old);
        }
    });
}

class left : public hf::crash::pool_program {
protected:
    left()
        : pool_program({.layout = "crash/left",
                        .engines = {hf::undo::engine({.durable = hf::durability::by_next_section}),
                                    hf::redo::engine(), hf::clobber::engine()}}) {}
    void setup(hf::pool& p) override { undo_replace(p.root<left_root>(), 0); }
    bool buffered(unsigned, unsigned) const override { return true; }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const left_root* r = p.root<left_root>();
        for (const left_cell* c : r->slots) {
            s.add(c == nullptr ? 0 : c->words[0]);
            if (c == nullptr) continue;
            s.object(c);
            s.expect(c->words[0] == c->words[1], "a cell is whole");
        }
        s.add(r->count);
        for (const std::uint64_t word : r->own) s.add(word);
    }
};

class left_replaced final : public left {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned) override { undo_replace(p.root<left_root>(), 0); }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override {
        undo_replace(p.root<left_root>(), 0);
        hf::settle(p);
    }
};

/// One ordering point a section: only the next section's record says whether it was passed.
class left_counted final : public left {
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        undo_section([&] {
            hf_log_ahead(&r->count, sizeof r->count);
            hf_log_ahead(&r->own[8 * i], sizeof r->own[0]);
            noted_store(&r->own[8 * i], std::uint64_t{i} + 1);
            noted_store(&r->count, r->count + 1);
        });
    }
};

/// Between them a section that stores nothing, and so would have no fence; one begins with a block
/// staged, and is durable on return.
class left_to_nothing final : public left {
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        if (i % 2 == 0)
            return undo_section([&] { // two lines: both or neither
                undo_store(&r->count, r->count + 1);
                undo_store(&r->own[8], r->own[8] + 1);
            });
        const hf::staged staged = i == 1 ? std::move(*hf::staged::in(p, 48)) : hf::staged();
        undo_section([] {});
    }
};

/// The runtime's own stores to a lock are not recorded: the same once more.
void lock_and_unlock(hf::shared_mutex* lock) {
    lock->lock();
    auto* word = reinterpret_cast<std::uint64_t*>(lock);
    *word = *const_cast<volatile std::uint64_t*>(word);
    lock->unlock();
}

/// A lock in memory that the last section, or the one before it, has taken.
class left_locked final : public left {
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        if (i == 2 || i == 4) lock_and_unlock(&r->slots[i == 2 ? 0 : 1]->lock);
        if (i == 0) undo_replace(r, 0);
        else if (i == 3) undo_replace(r, 1);
        else undo_count(&r->count);
    }
};

/// A lock that a section has made where no fresh memory is, as a constructor does in an array.
class left_lock_made final : public left {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        auto* const lock = reinterpret_cast<hf::shared_mutex*>(&r->own[8]);
        if (i == 2) lock_and_unlock(lock);
        if (i % 2 == 1) return undo_count(&r->count);
        undo_section([&] {
            undo_store(&r->own[8], std::uint64_t{0});
            undo_store(&r->own[16], r->own[16] + 1);
        });
        lock_and_unlock(lock);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const left_root* r = p.root<left_root>();
        for (const left_cell* c : r->slots)
            if (c != nullptr) s.object(c);
        s.add(r->count);
        s.add(r->own[16]);
    }
};

/// A kill between them, and in the section behind.
class left_lock_made_and_killed final : public left {
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        left_root* const r = p.root<left_root>();
        auto* const lock = reinterpret_cast<hf::shared_mutex*>(&r->own[8]);
        undo_section([&] {
            undo_store(&r->own[8], std::uint64_t{0});
            undo_store(&r->own[16], r->own[16] + 1);
        });
        lock_and_unlock(lock);
        const std::uint64_t made = r->own[16];
        hf::crash::take_over(p, options());
        if (p.root<left_root>()->own[16] != made) hf::fatal("a kill has taken what had returned");
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const left_root* r = p.root<left_root>();
        for (const left_cell* c : r->slots)
            if (c != nullptr) s.object(c);
        s.add(r->own[16]);
    }
};

/// What a section stored is stored over by plain code, which may be where hf::settle was called.
class left_settled final : public left {
    bool buffered(unsigned, unsigned i) const override { return i == 2; }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        if (i == 2) return undo_count(&r->count);
        if (i == 0) undo_replace(r, 0);
        hf::settle(p);
        if (i == 0) return;
        *const_cast<volatile std::uint64_t*>(&r->count) = r->count + 100;
        recover(p);
    }
    /// What plain code stored a killed process may not have persisted.
    void recover(hf::pool& p) override {
        hf::staged::persist(p, &p.root<left_root>()->count, sizeof(std::uint64_t));
    }
};

/// Sections of other engines behind and before, in one lane.
class left_to_others final : public left {
    bool buffered(unsigned, unsigned i) const override { return i % 2 == 0; }
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        left_root* const r = p.root<left_root>();
        if (i % 2 == 0) return undo_replace(r, 0);
        if (i == 1) return section([&] { store(&r->count, load(&r->count) + 1); });
        hf::crash::add_by_clobber(&r->count);
    }
};

/// Two threads, a lock: the second goes on from what the first has left, and from what is behind
/// it.
class left_handed_over final : public left {
public:
    explicit left_handed_over(bool ends) : ends_(ends) {}

private:
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return ends_ && thread == 0 ? 1 : 2; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        left_root* const r = p.root<left_root>();
        in_turn([&] {
            if (i == 0) undo_replace(r, 0);
            else undo_count(&r->count);
            if (ends_ && thread == 0) end_thread(p);
        });
    }
    bool ends_;
};

/// A kill takes no section that has returned.
class left_and_killed final : public left {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        undo_replace(p.root<left_root>(), 0);
        if (i != 1) return;
        const std::uint64_t count = p.root<left_root>()->count;
        hf::crash::take_over(p, options());
        if (p.root<left_root>()->count != count) hf::fatal("a kill has taken what had returned");
    }
};

struct pair_args {
    left_root* r;
};
void add_to_pair(const void* packed) {
    left_root* const r = static_cast<const pair_args*>(packed)->r;
    hf_clobber_log(&r->count, 8);
    *const_cast<volatile std::uint64_t*>(&r->count) = r->count + 1;
    noted_store(&r->own[8], r->count); // unread: there are no old bytes of it
}
const hf_txfunc pair_desc{HF_ABI_VERSION,        8, 2303,       1, "add_to_pair", "here",
                          hf::crash::add_schema, 1, add_to_pair};
[[maybe_unused]] const bool pair_registered = (hf_txfunc_register(&pair_desc), true);

/// Engine clobber in such a pool: its sections leave nothing (undo/protocol.hpp, 4).
class left_by_clobber final : public left {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned) override {
        const pair_args args{p.root<left_root>()};
        hf_clobber_begin(&pair_desc, &args);
        add_to_pair(&args);
        hf_clobber_commit();
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        left::describe(p, s);
        const left_root* r = p.root<left_root>();
        s.expect(r->own[8] == 0 || r->own[8] == r->count, "a section is whole");
    }
};

[[maybe_unused]] const bool added = [] {
    hf::crash::add("left/clobber", std::make_unique<left_by_clobber>());
    hf::crash::add("left/replaced", std::make_unique<left_replaced>());
    hf::crash::add("left/counted", std::make_unique<left_counted>());
    hf::crash::add("left/to nothing", std::make_unique<left_to_nothing>());
    hf::crash::add("left/locked", std::make_unique<left_locked>());
    hf::crash::add("left/lock made", std::make_unique<left_lock_made>());
    hf::crash::add("left/lock made and killed", std::make_unique<left_lock_made_and_killed>());
    hf::crash::add("left/settled", std::make_unique<left_settled>());
    hf::crash::add("left/to others", std::make_unique<left_to_others>());
    hf::crash::add("left/handed over", std::make_unique<left_handed_over>(false));
    hf::crash::add("left/thread ended", std::make_unique<left_handed_over>(true));
    hf::crash::add("left/killed", std::make_unique<left_and_killed>());
    return true;
}();

} // namespace
