// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vectors: every operation, of words, of elements of 32 bytes and of strings; slices and
// concatenations that share nodes within a vector and between two; batches and versions.
#include "mod_program.hpp"
#include <base/assert.hpp>
#include <mod/kinds.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/redo.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace hf;
using namespace hf::crash;
using u64 = std::uint64_t;
using wide = std::array<u64, 4>;

template <class T> T made(u64 from) {
    if constexpr (std::is_same_v<T, std::string>) {
        return std::string(20, static_cast<char>('a' + from % 26)); // one size of node
    } else if constexpr (std::is_same_v<T, wide>) {
        wide out;
        out.fill(from);
        return out;
    } else {
        return static_cast<T>(from);
    }
}
void add_to(state& s, u64 value) { s.add(value); }
void add_to(state& s, std::string_view value) { s.add(value); }
void add_to(state& s, const wide& value) {
    s.expect(std::ranges::count(value, value[0]) == 4, "an element is whole");
    s.add(value[0]);
}

/// Two vectors, "one" and "two".
template <class T> class vectors : public mod_program {
public:
    using vector = mod::vector<T>;
    vectors(const mod_variant& v, unsigned before) : mod_program(v), before_(before) {
        use_afterwards();
    }
    void setup(pool& p) override {
        std::vector<T> values;
        for (unsigned i = 0; i < before_; ++i) values.push_back(made<T>(i));
        expect(open(p, "one").append_range(values));
        values.resize(3);
        expect(open(p, "two").append_range(values));
    }

protected:
    vector open(pool& p, std::string_view name) const {
        auto v = vector::open(p, {name});
        HF_ASSERT(static_cast<bool>(v));
        v->set_durability(variant().when);
        return *v;
    }
    static void expect(const status& outcome) { HF_ASSERT(outcome.ok()); }
    void show(pool& p, state& s) override {
        for (const char* name : {"one", "two"}) {
            const vector v = open(p, name);
            s.add(v.size());
            for (const auto& value : v) add_to(s, value);
        }
    }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*open(p, "one").its_root(), *mod::find_kind(mod::builtin_kind::vector));
        found.add(*open(p, "two").its_root(), *mod::find_kind(mod::builtin_kind::vector));
        return found.count();
    }
    void use(pool& p, state& s) override {
        vector v = open(p, "two");
        state before, after;
        show(p, before);
        for (u64 i = 0; i < 20; ++i) expect(v.push_back(made<T>(500 + i)));
        for (u64 i = 0; i < 20; ++i) expect(v.set(v.size() - 1 - i, made<T>(600 + i)));
        for (u64 i = 0; i < 20; ++i) expect(v.pop_back());
        show(p, after);
        s.expect(before.text() == after.text(), "what was recovered can be used");
    }

private:
    unsigned before_;
};

/// An element at a time.
template <class T> class elements final : public vectors<T> {
public:
    using vectors<T>::vectors;
    /// All of it once before, so that there are arenas of each size: taking them has programs of
    /// its own, and multiplies the states of these.
    void setup(pool& p) override {
        vectors<T>::setup(p);
        for (unsigned i = 0; i < operations(0); ++i) run(p, 0, i);
    }
    unsigned operations(unsigned) const override { return 8; }
    void run(pool& p, unsigned, unsigned i) override {
        auto v = this->open(p, "one");
        if (i == 0) this->expect(v.set(v.size() / 2, made<T>(100)));
        if (i == 1) this->expect(v.push_back(made<T>(101)));
        if (i == 2) this->expect(v.swap(0, v.size() - 1));
        if (i == 3) this->expect(v.insert(v.size() / 3, made<T>(103)));
        if (i == 4) this->expect(v.pop_back());
        if (i == 5) this->expect(v.erase(1));
        if (i == 6)
            this->expect(v.update([](auto& batch) {
                for (u64 n = 0; n < 5; ++n) batch.push_back(made<T>(110 + n));
                batch.set(0, made<T>(120));
                batch.swap(1, batch.size() - 1);
                batch.pop_back();
            }));
        if (i == 7) this->expect(v.commit(v.snapshot().set(2, made<T>(130)).pop_back()));
    }
};

/// A reader that comes while an element is stored in place stores it, too; and what it holds stays.
class helped_along final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return 1 + thread; }
    /// That the second thread stores to the element, too, makes its accesses points of turns.
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, "one");
        if (thread == 0) expect(v.set(7, 100));
        else if (i == 0) hold(v);
        else expect(v.set(7, 101));
    }

private:
    static void hold(vector& v) {
        const auto held = v.snapshot();
        const u64 before = held[7];
        (void)v.snapshot();
        HF_ASSERT(held[7] == before);
    }
};

/// A reader beside a store in place that is durable on return notes, durably, what it saw.
class seen_in_place final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(pool& p, unsigned thread, unsigned) override {
        auto one = open(p, "one"), two = open(p, "two");
        if (thread == 0) return expect(one.set(7, 100));
        if (one.snapshot()[7] == 100) expect(two.push_back(100));
    }
    /// The threads' changes of different vectors may be lost apart, with this exception.
    void show(pool& p, state& s) override {
        const vector one = open(p, "one"), two = open(p, "two");
        for (const u64 value : one) s.add(value);
        if (variant().when == mod::durability::on_return)
            s.expect(two.size() == 3 || one[7] == 100, "what was seen has stayed");
    }
};

/// Elements stored in place, and not where somebody could see it.
template <class T> class stored_in_place final : public vectors<T> {
public:
    using vectors<T>::vectors;
    unsigned operations(unsigned) const override { return 7; }
    void run(pool& p, unsigned, unsigned i) override {
        auto v = this->open(p, "one");
        const auto set = [&](std::size_t at, u64 value) {
            this->expect(v.set(at, made<T>(value)));
        };
        if (i == 0) set(0, 100);
        if (i == 1) set(v.size() - 1, 101);
        if (i == 2) set(1, 102);
        if (i == 3 || i == 4) {
            const auto held = v.snapshot();
            const T before = held[1];
            set(1, 103 + i);
            HF_ASSERT(held[1] == before);
        }
        if (i == 5) this->expect(v.push_back(made<T>(110)));
        if (i == 6) set(v.size() - 1, 111);
    }
};

/// Elements exchanged in place, beside single stores in place, and copies.
template <class T> class exchanged final : public vectors<T> {
public:
    using vectors<T>::vectors;
    unsigned operations(unsigned) const override { return 10; }
    void run(pool& p, unsigned, unsigned i) override {
        auto v = this->open(p, "one"), w = this->open(p, "two");
        if (i == 0) this->expect(v.swap(0, v.size() - 1));
        if (i == 1) this->expect(v.swap(1, 0));
        if (i == 2) this->expect(v.swap(2, 1));           // over the first one's record
        if (i == 3) this->expect(v.set(1, made<T>(100))); // copied: a record names it
        if (i == 4) this->expect(v.set(1, made<T>(101)));
        if (i == 5) this->expect(v.swap(0, 2)); // behind what is not durable
        if (i == 6) this->expect(w.swap(0, 2));
        if (i == 7) this->expect(v.swap(v.size() / 2, 1));
        if (i == 8) {
            const auto held = v.snapshot();
            const T before = held[1];
            this->expect(v.swap(1, 3));
            HF_ASSERT(held[1] == before);
        }
        if (i == 9) this->expect(v.swap(2, 1));
    }
};

/// Elements change places, or were about to when a reader came; then their nodes are given up and
/// made anew, as another version's.
class exchanged_long_ago final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 5 : 1; }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, "one");
        if (thread == 1) return (void)v.snapshot();
        if (i == 0) return expect(v.swap(0, 1));
        std::optional<vector::version> held;
        if (i < 4) held = v.snapshot();
        expect(v.set(0, 100 + i));
    }
};

/// A reader that comes while two elements change places makes both do, and notes, durably, what it
/// saw.
class seen_exchanged final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(pool& p, unsigned thread, unsigned) override {
        auto one = open(p, "one"), two = open(p, "two");
        if (thread == 0) return expect(one.swap(7, 8));
        const auto held = one.snapshot();
        const u64 seen = held[7];
        const bool whole = seen + held[8] == 15;
        (void)one.snapshot();
        const bool still = held[7] == seen && held[8] == 15 - seen;
        if (seen == 8) expect(two.push_back(whole && still ? 100 : 13));
    }
    /// The threads' changes of different vectors may be lost apart, with this exception.
    void show(pool& p, state& s) override {
        const vector one = open(p, "one"), two = open(p, "two");
        s.expect(one[7] + one[8] == 15 && one[7] != one[8], "both have changed places, or neither");
        for (const u64 value : one) s.add(value);
        s.expect(two.size() == 3 || (one[7] == 8 && two.back() == 100), "what was seen has stayed");
    }
};

/// A reader makes two elements change places that lie in two lines.
class exchange_helped_along final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return 1 + thread; }
    /// That the second thread stores to the elements, too, makes the accesses points of turns.
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, "one");
        if (thread == 1 && i == 0) return (void)v.snapshot();
        expect(v.swap(7, 8));
    }
};

/// Two threads exchange elements of two vectors, by the same two records.
class exchanged_in_turns final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return 2 - thread; }
    bool buffered(unsigned thread, unsigned i) const override {
        return thread == 0 && mod_program::buffered(thread, i);
    }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, thread == 0 ? "one" : "two");
        // A thread's update of another vector that is durable by the next section may be lost
        // before later updates.
        if (thread == 1) v.set_durability(mod::durability::on_return);
        expect(v.swap(i, i + 1));
    }
};

/// Two threads exchange elements of one vector, and one stores one.
class exchanged_between final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return 2 - thread; }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, "one");
        if (thread == 1) return expect(v.swap(1, 2));
        expect(i == 0 ? v.swap(0, 1) : v.set(1, 100));
    }
};

/// Exchanges of two vectors take turns with a commit to both, which has a record of its own, with
/// elements that are stored alone and with versions that are held; and go on after a recovery, with
/// numbers and records used again.
class exchanged_again final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned operations(unsigned) const override { return 7; }
    void run(pool& p, unsigned, unsigned i) override {
        auto v = open(p, "one"), w = open(p, "two");
        if (i == 0) return expect(v.swap(0, 1));
        if (i == 1) return expect(w.swap(0, 1)); // both pending, by both records
        if (i == 2) return push_to_both(p, v, w);
        if (i == 3) return expect(w.swap(1, 2));
        if (i == 4) return expect(v.set(1, 100));
        const auto held = w.snapshot();
        const u64 before = held[0];
        if (i == 5)
            expect(v.swap(1, 2)); // over the older record, while a version of the other is held
        if (i == 6) expect(w.swap(0, 1)); // copied
        HF_ASSERT(held[0] == before);
    }
    unsigned operations_after() const override { return 3; }
    void run_after(pool& p, unsigned i) override {
        auto v = open(p, "one"), w = open(p, "two");
        if (i == 0) expect(v.swap(0, 1));
        if (i == 1) expect(w.swap(0, 1));
        if (i == 2) expect(v.swap(1, 2));
        mod::store::in(p).settle();
    }

private:
    void use(pool&, state&) override {} // the operations after a recovery are that, and are failed
    static void push_to_both(pool& p, vector& v, vector& w) {
        const auto one = v.snapshot().push_back(7), two = w.snapshot().push_back(8);
        expect(mod::store::in(p).commit({{v.its_root(), &one}, {w.its_root(), &two}}));
    }
};

/// Two threads: one exchanges elements of two vectors, the other stores elements of both and lets a
/// version go.
class exchanged_beside final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return 2 - thread; }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto v = open(p, "one"), w = open(p, "two");
        if (thread == 0) return expect(i == 0 ? v.swap(0, 1) : w.swap(0, 1));
        { const auto held = w.snapshot(); }
        expect(v.set(1, 100));
    }
};

/// One thread stores an element in place, another one settles it, and writes down that it saw it.
class settled_in_place final : public vectors<u64> {
public:
    using vectors<u64>::vectors;
    bool buffered(unsigned thread, unsigned i) const override {
        return thread == 0 && mod_program::buffered(0, i);
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(pool& p, unsigned thread, unsigned) override {
        auto one = open(p, "one"), two = open(p, "two");
        bool seen = false;
        in_turn([&] {
            seen = one[1] == 100;
            if (thread == 0) expect(one.set(1, 100));
        });
        if (thread == 0) return;
        hf::settle(p);
        expect(two.push_back(seen ? 77 : 88));
        hf::settle(p);
    }
    void show(pool& p, state& s) override {
        vectors::show(p, s);
        const vector one = open(p, "one"), two = open(p, "two");
        s.expect(two.back() != 77 || one[1] == 100, "what was settled is there");
    }

private:
    void use(pool&, state&) override {}
};

/// Two threads: an element stored in place is in another thread's vector too, or was until a commit
/// that a failure may undo.
class in_place_beside final : public vectors<u64> {
public:
    enum what { appended, given_up };
    in_place_beside(const mod_variant& v, what how) : vectors(v, 20), how_(how) {}
    unsigned threads() const override { return 2; }
    void setup(pool& p) override {
        vectors::setup(p);
        if (how_ == given_up) expect(open(p, "two").append(open(p, "one").snapshot()));
    }
    unsigned operations(unsigned thread) const override {
        return thread == 1 && how_ == given_up ? 2 : 1;
    }
    bool buffered(unsigned thread, unsigned i) const override {
        return (thread == 0 || how_ == given_up) && mod_program::buffered(thread, i);
    }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto one = open(p, "one");
        if (thread == 0) return expect(how_ == appended ? one.set(7, 100) : one.clear());
        auto two = open(p, "two");
        if (how_ == appended) { // what it appends is durable on return too
            two.set_durability(mod::durability::on_return);
            status done;
            while ((done = two.append(one.snapshot())).code() == errc::conflict) {}
            return expect(done);
        }
        expect(two.set(10, 101 + i)); // the first had it as its eighth
    }
    /// The threads' changes of different vectors may be lost apart.
    void show(pool& p, state& s) override {
        const vector one = open(p, "one"), two = open(p, "two");
        s.expect(one.size() == 20 || (one.empty() && how_ == given_up), "the first is one of two");
        for (std::size_t i = 0; i < one.size(); ++i)
            s.expect(one[i] == i || (i == 7 && one[i] == 100), "nobody else stores to the first");
        if (how_ == appended) s.add(one[7]);
        s.add(two.size());
        for (const u64 value : two) s.add(value);
    }

private:
    what how_;
};

const hf_txfunc counting{HF_ABI_VERSION, 0, 2401, 1, "count", "here", nullptr, 0, nullptr};

/// Updates between sections of engine redo, whose stores wait for the next of them: each goes on
/// from what the other has left, in either order.
class between_sections final : public vectors<u64> {
public:
    between_sections(const mod_variant& v, unsigned before) : vectors(v, before) {
        options_.engines.push_back(redo::engine());
    }
    void setup(pool& p) override {
        vectors::setup(p);
        *p.root<u64>() = 1;
    }
    unsigned operations(unsigned) const override { return 6; }
    void run(pool& p, unsigned, unsigned i) override {
        u64* const count = p.root<u64>();
        auto v = open(p, "one");
        if (i == 1) return expect(v.set(0, 100 + *count)); // what a section has just counted
        if (i == 3) return expect(v.push_back(*count));
        hf_redo_begin(&counting, nullptr);
        const u64 next = *count + (i == 4 ? v.back() : 1); // what an update has just stored
        std::memcpy(hf_redo_write(count, sizeof next), &next, sizeof next);
        hf_redo_commit();
    }
    void show(pool& p, state& s) override {
        s.add(*p.root<u64>());
        vectors::show(p, s);
    }
};
/// An update that a section goes on from is durable on return: where the caches are lost, by its
/// choice.
bool add_between_sections() {
    for (const mod_variant& v : mod_variants)
        if (v.mode == mode::process || v.eadr || v.when == mod::durability::on_return)
            add(std::string("mod/vector/between sections/") + v.name,
                std::make_unique<between_sections>(
                    mod_variant{v.name, v.mode, v.eadr, mod::durability::on_return}, 5U));
    return true;
}

/// Many elements at once, shared where they can be.
template <class T> class pieces final : public vectors<T> {
public:
    using vectors<T>::vectors;
    /// The first two may have to note that nodes are shared.
    unsigned operations(unsigned) const override { return 9; }
    void run(pool& p, unsigned, unsigned i) override {
        auto v = this->open(p, "one"), w = this->open(p, "two");
        if (i == 0) this->expect(w.append(v.snapshot()));
        if (i == 1) { // a node of both
            const std::size_t there = w.size() - v.size();
            const T before(w[there]);
            this->expect(v.set(0, made<T>(100)));
            HF_ASSERT(w[there] == before);
        }
        if (i == 2) this->expect(w.commit(w.snapshot().append(w.snapshot()))); // twice the same
        if (i == 3) this->expect(w.set(1, made<T>(101)));
        if (i == 4) this->expect(v.drop(v.size() / 3));
        if (i == 5) this->expect(w.slice(2, w.size() - 2));
        if (i == 6) this->expect(w.clear()); // what v shares stays
        if (i == 7) this->expect(v.take(2));
        if (i == 8) this->expect(w.assign(std::vector<T>{made<T>(7), made<T>(8)}));
    }
};

[[maybe_unused]] const bool added =
    add_variants<elements<u64>>("vector/words", 40U) &&
    add_variants<stored_in_place<u64>>("vector/in place", 20U) &&
    add_variants<helped_along>("vector/in place, helped along", 20U) &&
    add_variants<seen_in_place>("vector/in place, seen", 20U) &&
    add_variants<exchanged<u64>>("vector/exchanged/words", 20U) &&
    add_variants<exchanged<std::uint16_t>>("vector/exchanged/halves", 5U) &&
    add_variants<exchanged_long_ago>("vector/exchanged, long ago", 5U) &&
    add_variants<seen_exchanged>("vector/exchanged, seen", 20U) &&
    add_variants<exchange_helped_along>("vector/exchanged, helped along", 20U) &&
    add_variants<exchanged_in_turns>("vector/exchanged, in turns", 5U) &&
    add_variants<exchanged_between>("vector/exchanged, between", 5U) && add_between_sections() &&
    add_variants<exchanged_again>("vector/exchanged, again", 5U) &&
    add_variants<exchanged_beside>("vector/exchanged, beside", 5U) &&
    add_variants<settled_in_place>("vector/in place, settled beside", 5U) &&
    add_variants<in_place_beside>("vector/in place, appended", in_place_beside::appended) &&
    add_variants<in_place_beside>("vector/in place, given up", in_place_beside::given_up) &&
    add_variants<elements<wide>>("vector/wide", 6U) &&
    add_variants<elements<std::string>>("vector/strings", 6U) &&
    add_variants<pieces<u64>>("vector/pieces/words", 40U) &&
    add_variants<pieces<std::string>>("vector/pieces/strings", 6U);

} // namespace
