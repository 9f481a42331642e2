// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every structure of MOD stands on, seen through lists of blocks: roots that come into being,
// commits of one root, of siblings and of unrelated ones, nodes retired and used again, shared
// nodes, arenas taken and turned to other sizes, snapshots, a full pool, and all of it again after
// an unclean end.
#include "mod_program.hpp"
#include <mod/block_list.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace {

using namespace hf;
using namespace hf::crash;
namespace list = hf::mod::block_list;
using mod::shadow;

[[maybe_unused]] const bool kind_known = (mod::add_kind(list::kind), true);

/// Some lists: roots "a", "b" … and members "x", "y" of the family "f".
class lists : public mod_program {
public:
    lists(const mod_variant& v, std::string names) : mod_program(v), names_(std::move(names)) {}

protected:
    mod::root* root(mod::store& in, char name) const {
        const std::string_view text(&name, 1);
        if (name < 'x') return opened(in.open({text}, list::kind, 0));
        return opened(in.open({text, "f", {"x", "y"}}, list::kind, 0));
    }
    mod::root* root(pool& p, char name) const { return root(mod::store::in(p), name); }

    void push(pool& p, char to, std::uint64_t value, std::uint32_t words = 1) const {
        expect(list::updated(*root(p, to), [&](shadow& s, std::uint64_t w) {
            return list::push(s, w, value, words);
        }));
    }
    /// One node in use, and an arena of another size without one.
    void leave_empty_arena(pool& p) const {
        push(p, 'a', 1, 20);
        push(p, 'a', 2, 13);
        pop(p, 'a');
        push(p, 'a', 3, 20);
        pop(p, 'a');
    }
    void pop(pool& p, char from) const { expect(list::updated(*root(p, from), list::pop)); }
    void clear(pool& p, char what) const { expect(list::updated(*root(p, what), list::clear)); }
    void set(pool& p, char in, std::uint64_t index, std::uint64_t value) const {
        expect(list::updated(*root(p, in), [&](shadow& s, std::uint64_t w) {
            return list::set(s, w, index, value);
        }));
    }
    static mod::version pushed(mod::root& to, std::uint64_t value) {
        return to.read().updated(
            [&](shadow& s, std::uint64_t w) { return list::push(s, w, value); });
    }
    static mod::version popped(mod::root& from) { return from.read().updated(list::pop); }
    static void expect(const status& outcome) { HF_ASSERT(outcome.ok()); }

    void show(pool& p, state& s) override {
        for (const char name : names_) {
            const mod::root* r = root(p, name);
            std::vector<std::uint64_t> values;
            s.expect(list::values(r->base(), r->word(), values), "a list is whole");
            s.add(values.size());
            for (const std::uint64_t v : values) s.add(v);
        }
    }
    std::uint64_t reachable(pool& p) override {
        std::set<mod::ref> seen;
        for (const char name : names_) {
            const mod::root* r = root(p, name);
            mod::ref n = list::first_of(r->word());
            for (; n != 0 && seen.insert(n).second;) n = list::at(r->base(), n)->next;
        }
        return seen.size() + parents(p);
    }
    /// Nodes that the trace took for free would be overwritten here, and lists be torn.
    void use(pool& p, state& s) override {
        for (const char name : names_) {
            mod::root* r = root(p, name);
            std::vector<std::uint64_t> before, after;
            s.expect(list::values(r->base(), r->word(), before), "a list is whole");
            for (std::uint64_t i = 0; i < 3; ++i) push(p, name, 1000 + i, 1 + 40 * (i == 2));
            pop(p, name);
            s.expect(list::values(r->base(), r->word(), after) &&
                         after.size() == before.size() + 2 &&
                         std::equal(before.begin(), before.end(), after.begin() + 2),
                     "a list that was recovered can be added to");
        }
    }
    const std::string& names() const { return names_; }

private:
    std::string names_;
};

/// The store comes into being with its first root; then further roots, and a family.
class roots_made final : public lists {
public:
    explicit roots_made(const mod_variant& v) : lists(v, "axb") {}
    unsigned operations(unsigned) const override { return 5; }
    bool buffered(unsigned, unsigned i) const override {
        return i != 3 && mod_program::buffered(0, i);
    }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) root(p, 'a');
        if (i == 1) push(p, 'a', 1);
        if (i == 2) push(p, 'x', 2);
        if (i == 3) root(p, 'b'); // durable when it returns, with everything before it
        if (i == 4)               // two arenas in one commit
            expect(list::updated(*root(p, 'b'), [](shadow& s, std::uint64_t w) {
                return list::push(s, list::push(s, w, 3, 13), 4, 25);
            }));
    }
};

/// One root: nodes added, replaced, given up, used again.
class one_root : public lists {
public:
    explicit one_root(const mod_variant& v) : lists(v, "a") { use_afterwards(); }
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 3; ++i) push(p, 'a', i);
    }
    unsigned operations(unsigned) const override { return 7; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) push(p, 'a', 10);
        if (i == 1) set(p, 'a', 2, 11);
        if (i == 2) push(p, 'a', 12); // not in the memory of nodes that 'set' gave up just now
        if (i == 3) pop(p, 'a');
        if (i == 4) set(p, 'a', 1, 13);
        if (i == 5) clear(p, 'a');
        if (i == 6) push(p, 'a', 14);
    }
};

/// Updates that count when settle() has returned, the store's or the pool's.
class settled final : public lists {
public:
    settled(const mod_variant& v, bool all) : lists(v, "ab"), all_(all) {}
    bool buffered(unsigned, unsigned i) const override {
        return i % 2 == 0 && mod_program::buffered(0, i);
    }
    void setup(pool& p) override { root(p, 'a'), root(p, 'b'); }
    unsigned operations(unsigned) const override { return 4; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i % 2 == 0) push(p, i == 0 ? 'a' : 'b', i);
        else if (all_) hf::settle(p);
        else mod::store::in(p).settle();
    }
    bool all_;
};

/// Another thread settles updates, and writes down how many it saw: a failure that leaves this
/// leaves them.
class settled_beside final : public lists {
public:
    explicit settled_beside(const mod_variant& v) : lists(v, "ab") {}
    unsigned threads() const override { return 2; }
    bool buffered(unsigned thread, unsigned i) const override {
        return thread == 0 && mod_program::buffered(0, i);
    }
    void setup(pool& p) override { push(p, 'a', 0), push(p, 'b', 1); }
    unsigned operations(unsigned thread) const override { return 2 - thread; }
    void run(pool& p, unsigned thread, unsigned i) override {
        std::size_t seen = 0;
        in_turn([&] { // what it sees has returned
            if (thread == 0) push(p, 'a', i + 1);
            seen = values(p, 'a').size();
        });
        if (thread == 0) return;
        hf::settle(p);
        push(p, 'b', seen);
        hf::settle(p);
    }
    void show(pool& p, state& s) override {
        lists::show(p, s);
        const std::vector<std::uint64_t> a = values(p, 'a'), b = values(p, 'b');
        s.expect(*std::ranges::max_element(b) <= a.size(), "what was settled is there");
    }

private:
    std::vector<std::uint64_t> values(pool& p, char of) const {
        const mod::version now = root(p, of)->read();
        std::vector<std::uint64_t> found;
        HF_ASSERT(list::values(now.base(), now.word(), found));
        return found;
    }
};

/// Many steps, one commit: what the batch has made it changes in place.
class batch final : public lists {
public:
    explicit batch(const mod_variant& v) : lists(v, "a") {}
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 2; ++i) push(p, 'a', i);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root& a = *root(p, 'a');
        if (i != 1)
            return expect(list::updated(a, [&](shadow& s, std::uint64_t w) {
                w = list::push(s, w, 20 + i);
                w = list::set(s, w, 1, 30 + i);
                w = list::set(s, w, 2, 40 + i);
                w = list::push(s, w, 50 + i);
                return list::pop(s, w);
            }));
        mod::version next = a.read().derived();
        next.set_word(list::set(next.work(), next.word(), 1, 60));
        next.set_word(list::push(next.work(), next.word(), 61));
        next.done();
        const mod::version further = next.updated(list::pop); // not of its nodes in place
        const mod::version last =
            further.updated([](shadow& s, std::uint64_t w) { return list::set(s, w, 0, 62); });
        expect(a.commit(last));
    }
};

/// Two roots whose words swing together, by one word.
class siblings : public lists {
public:
    explicit siblings(const mod_variant& v) : lists(v, "xy") {}
    void setup(pool& p) override { push(p, 'x', 1), push(p, 'y', 2); }
    unsigned operations(unsigned) const override { return 4; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root &x = *root(p, 'x'), &y = *root(p, 'y');
        if (i == 0) push(p, 'x', 10);
        if (i == 1 || i == 3) { // an element moves
            const mod::version from = popped(x), to = pushed(y, 10 + i);
            expect(mod::store::in(p).commit({{&x, &from}, {&y, &to}}));
        }
        if (i == 2) pop(p, 'y');
    }
};

/// Two roots, and a family and a root, that change together by a record of their words.
class unrelated : public lists {
public:
    explicit unrelated(const mod_variant& v) : lists(v, "abx") {}
    bool buffered(unsigned, unsigned i) const override {
        return (i == 1 || i == 3) && mod_program::buffered(0, i);
    }
    void setup(pool& p) override { push(p, 'a', 1), push(p, 'b', 2), push(p, 'x', 3); }
    unsigned operations(unsigned) const override { return 5; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root &a = *root(p, 'a'), &b = *root(p, 'b'), &x = *root(p, 'x');
        if (i == 0 || i == 2) { // an element moves
            const mod::version from = popped(i == 0 ? a : b), to = pushed(i == 0 ? b : a, 10 + i);
            expect(
                mod::store::in(p).commit({{&a, i == 0 ? &from : &to}, {&b, i == 0 ? &to : &from}}));
        }
        if (i == 1) push(p, 'a', 11); // past the record: redoing it would lose this
        if (i == 3) push(p, 'x', 13);
        if (i == 4) {
            const mod::version from = popped(x), to = pushed(b, 14), third = pushed(a, 15);
            expect(mod::store::in(p).commit({{&x, &from}, {&b, &to}, {&a, &third}}));
        }
    }
};

/// One list takes another's nodes: they have two parents, and one again.
class sharing : public lists {
public:
    explicit sharing(const mod_variant& v) : lists(v, "abc") { use_afterwards(); }
    bool buffered(unsigned, unsigned i) const override {
        return i != 3 && mod_program::buffered(0, i);
    }
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 3; ++i) push(p, 'a', i);
        push(p, 'b', 9);
        push(p, 'c', 8);
        expect(root(p, 'c')->commit(list::taken_over(root(p, 'a')->read(), *root(p, 'c'))));
    }
    unsigned operations(unsigned) const override { return 6; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root &a = *root(p, 'a'), &b = *root(p, 'b');
        if (i == 0) expect(b.commit(list::taken_over(a.read(), b)));
        if (i == 1) pop(p, 'a'); // b holds what a gives up
        if (i == 2) set(p, 'b', 1, 20);
        if (i == 3) { // moves the rest: shared once more, and given up
            const mod::version from = a.read();
            const mod::version to = list::taken_over(from, b);
            const mod::version empty = from.updated(list::clear);
            expect(mod::store::in(p).commit({{&b, &to}, {&a, &empty}}));
        }
        if (i == 4) set(p, 'b', 1, 21);
        if (i == 5) clear(p, 'b');
    }
};

/// Nodes move to another root in one commit that gives them up first and takes them next.
class moved final : public lists {
public:
    explicit moved(const mod_variant& v) : lists(v, "ab") {}
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 3; ++i) push(p, 'a', i);
        push(p, 'b', 9);
    }
    bool buffered(unsigned, unsigned i) const override {
        return i != 0 && mod_program::buffered(0, i);
    }
    unsigned operations(unsigned) const override { return 4; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root &a = *root(p, 'a'), &b = *root(p, 'b');
        if (i == 3) return set(p, 'b', 1, 20);
        if (i > 0) return push(p, 'a', 30 + i); // not in the memory of what moved
        const mod::version from = a.read();
        const mod::version to = list::taken_over(from, b);
        const mod::version empty = from.updated(list::clear);
        expect(mod::store::in(p).commit({{&a, &empty}, {&b, &to}}));
    }
};

/// Two roots share nodes, and two threads give them up: the memory serves again when neither root's
/// word can lead to it after a failure. The second thread alone makes anything durable.
class shared_by_threads : public lists {
public:
    enum what { cleared, copied_first, popped_one };
    shared_by_threads(const mod_variant& v, what how) : lists(v, "ab"), how_(how) {
        use_afterwards();
    }
    unsigned threads() const override { return 2; }
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 2; ++i) push(p, 'a', i);
        push(p, 'b', 9);
        expect(root(p, 'b')->commit(list::taken_over(root(p, 'a')->read(), *root(p, 'b'))));
    }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 1 : 4; }
    void run(pool& p, unsigned thread, unsigned i) override {
        if (thread == 0) {
            if (how_ == popped_one) pop(p, 'a');
            else clear(p, 'a');
            return;
        }
        if (i == 0 && how_ == copied_first) set(p, 'b', 0, 20); // the node below is a's still
        else if (i == 0) push(p, 'b', 21);
        if (i == 1) clear(p, 'b');
        if (i > 1) // as many nodes as were given up
            expect(list::updated(*root(p, 'b'), [&](shadow& s, std::uint64_t w) {
                return list::push(s, list::push(s, w, 30 + i), 40 + i);
            }));
    }
    /// The first thread's work may be lost although the second's later sections are not: they write
    /// to other roots.
    void show(pool& p, state& s) override {
        std::vector<std::uint64_t> values;
        const mod::root *a = root(p, 'a'), *b = root(p, 'b');
        s.expect(list::values(a->base(), a->word(), values) && values.size() <= 2 &&
                     (values.empty() || values.back() == 0),
                 "the first list is what it was, or what it became");
        values.clear();
        s.expect(list::values(b->base(), b->word(), values), "a list is whole");
        for (const std::uint64_t v : values) s.add(v);
    }

private:
    what how_;
};

/// Shared nodes given up, recovered, shared and given up again, and failed again.
class shared_again final : public lists {
public:
    explicit shared_again(const mod_variant& v) : lists(v, "ab") {}
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 2; ++i) push(p, 'a', i);
        push(p, 'b', 9);
        expect(root(p, 'b')->commit(list::taken_over(root(p, 'a')->read(), *root(p, 'b'))));
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) clear(p, 'a');
        if (i == 1) pop(p, 'b');
        if (i == 2) push(p, 'b', 30);
    }
    unsigned operations_after() const override { return 5; }
    void run_after(pool& p, unsigned i) override {
        mod::root &a = *root(p, 'a'), &b = *root(p, 'b');
        if (i == 0) expect(a.commit(list::taken_over(b.read(), a)));
        if (i == 1) clear(p, 'b');
        if (i == 2) clear(p, 'a');
        if (i > 2) push(p, i == 3 ? 'b' : 'a', 40 + i);
        mod::store::in(p).settle();
    }
};

/// A snapshot keeps what commits after it retire. (An operation is several commits: what a failure
/// leaves must be whole, and no more is said.)
class snapshots final : public lists {
public:
    explicit snapshots(const mod_variant& v) : lists(v, "a") {}
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 3; ++i) push(p, 'a', i);
    }
    unsigned operations(unsigned) const override { return 4; }
    void run(pool& p, unsigned, unsigned i) override {
        mod::root& a = *root(p, 'a');
        const mod::version before = a.read();
        std::vector<std::uint64_t> values, again;
        HF_ASSERT(list::values(before.base(), before.word(), values));
        set(p, 'a', 2, 10 + i);
        set(p, 'a', 2, 20 + i);
        set(p, 'a', 1, 30 + i);
        push(p, 'a', 40 + i);
        HF_ASSERT(list::values(before.base(), before.word(), again) && values == again);
    }
    void show(pool& p, state& s) override {
        std::vector<std::uint64_t> values;
        const mod::root* a = root(p, 'a');
        s.expect(list::values(a->base(), a->word(), values), "a list is whole");
        s.expect(values.size() >= 3, "nothing is lost");
    }
};

/// Two threads that write to one root, or to members of a family; one after the other, by its lock.
/// A commit makes the other thread's word durable before it gives memory back.
class two_writers final : public lists {
public:
    two_writers(const mod_variant& v, std::string names) : lists(v, std::move(names)) {}
    unsigned threads() const override { return 2; }
    void setup(pool& p) override {
        for (const char name : names()) push(p, name, 1), push(p, name, 2);
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(pool& p, unsigned thread, unsigned i) override {
        const char name = names()[thread % names().size()];
        if (i == 0) set(p, name, 1, 10 + thread);
        else push(p, name, 20 + thread);
    }
};

/// Nodes of many sizes: arenas are taken, a node gets one of its own, an empty arena turns to
/// another size, and the pool is full in the end.
class arenas : public lists {
public:
    explicit arenas(const mod_variant& v) : lists(v, "a") {}
    void setup(pool& p) override {
        push(p, 'a', 1, 9);
        push(p, 'a', 2, 30); // leaves arenas without a node in use
        pop(p, 'a');
        push(p, 'a', 3, 50);
        pop(p, 'a');
    }
    unsigned operations(unsigned) const override { return 6; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) // two of a size, one of another
            expect(list::updated(*root(p, 'a'), [](shadow& s, std::uint64_t w) {
                return list::push(s, list::push(s, list::push(s, w, 7, 13), 8, 25), 9, 13);
            }));
        if (i == 1) push(p, 'a', 11, 21);
        if (i == 2) push(p, 'a', 12, 1000); // an arena of its own
        if (i == 3) pop(p, 'a');
        if (i == 4) push(p, 'a', 14, 900); // in the same place
        if (i == 5) fill(p);
    }

private:
    /// Until nothing fits; what did not fit has changed nothing.
    void fill(pool& p) const {
        mod::root& a = *root(p, 'a');
        const std::uint64_t before = a.word();
        const status outcome = list::updated(a, [&](shadow& s, std::uint64_t w) {
            while (!s.failed()) w = list::push(s, w, 15, 1000);
            return w;
        });
        HF_ASSERT(outcome.code() == errc::pool_full && a.word() == before);
        push(p, 'a', 16, 1000); // what was dropped serves again
    }
};

/// An empty arena turns to another size, and nodes of that are used after a failure.
class turned final : public lists {
public:
    explicit turned(const mod_variant& v) : lists(v, "a") {}
    void setup(pool& p) override { leave_empty_arena(p); }
    unsigned operations(unsigned) const override { return 1; }
    void run(pool& p, unsigned, unsigned) override { push(p, 'a', 10, 30); }
    unsigned operations_after() const override { return 2; }
    void run_after(pool& p, unsigned) override {
        push(p, 'a', 50, 30);
        mod::store::in(p).settle();
    }
    /// Collects nothing: no operation may depend on stores that are not watched.
    void describe(pool& p, state& s) override {
        mod::store& store = mod::store::in(p);
        s.expect(store.wait_for_trace().ok(), "the trace finds whole nodes");
        show(p, s);
        s.expect(store.verify().ok(), "every reference leads to a whole node");
        const auto object = [](void* to, const void* block) {
            static_cast<state*>(to)->object(block);
        };
        store.for_each_block(object, &s);
    }
};

/// A node that a version of one thread has made, in an arena that it turned to a large node's, is
/// committed by another.
class passed_on final : public lists {
public:
    explicit passed_on(const mod_variant& v) : lists(v, "a") {}
    unsigned threads() const override { return 2; }
    void setup(pool& p) override {
        leave_empty_arena(p);
        pool::impl::abandon(std::move(p)); // every open knows all arenas
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(pool& p, unsigned thread, unsigned) override {
        if (thread == 0) {
            made_ = root(p, 'a')->read().updated(
                [](shadow& s, std::uint64_t w) { return list::push(s, w, 9, 100); });
            for (unsigned i = 0; i < 3 && made_; ++i) std::this_thread::yield();
            made_.reset();
        } else if (made_) {
            const mod::version given = *std::exchange(made_, std::nullopt);
            expect(root(p, 'a')->commit(given));
        }
    }
    /// Whether the commit came in time is not judged.
    void show(pool& p, state& s) override {
        const mod::root* r = root(p, 'a');
        std::vector<std::uint64_t> values;
        s.expect(list::values(r->base(), r->word(), values), "a list is whole");
        mod::node_space& space = mod::store::in(p).internals().space();
        for (mod::ref n = list::first_of(r->word()); n != 0; n = list::at(r->base(), n)->next)
            s.expect(space.bytes_of(n) >= list::bytes_of(list::at(r->base(), n)->words),
                     "a node has room for its words");
    }

private:
    std::optional<mod::version> made_;
};

/// An empty arena turns to another size for a thread that makes nothing durable; another thread
/// takes nodes from it too.
class turned_by_another final : public lists {
public:
    explicit turned_by_another(const mod_variant& v) : lists(v, "ab") { use_afterwards(); }
    unsigned threads() const override { return 2; }
    void setup(pool& p) override {
        push(p, 'b', 1, 20);
        push(p, 'a', 2, 30);
        clear(p, 'a');
    }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 1 : 2; }
    void run(pool& p, unsigned thread, unsigned i) override {
        if (thread == 1) return push(p, 'b', 10 + i); // the smallest: an arena has many
        auto dropped = root(p, 'a')->write();
        list::push(dropped.work(), dropped.word(), 20);
    }
};

/// Lists beside blocks that do not belong to MOD.
class beside_blocks : public lists {
public:
    using lists::lists;

protected:
    static constexpr std::size_t block_bytes = 4096; // a chunk
    void show(pool& p, state& s) override {
        lists::show(p, s);
        struct seen {
            pool& p;
            state& s;
            std::set<const void*> ours;
        } all{p, s, {}};
        mod::store::in(p).for_each_block(
            [](void* to, const void* b) { static_cast<seen*>(to)->ours.insert(b); }, &all);
        for_each_block(
            p,
            [](void* to, const void* b, std::size_t bytes) {
                auto& a = *static_cast<seen*>(to);
                if (a.ours.contains(b)) return;
                a.s.object(b);
                a.s.add(bytes);
            },
            &all);
    }
};

/// The chunk of an arena that a crash left half taken is anybody's again.
class half_taken final : public beside_blocks {
public:
    explicit half_taken(const mod_variant& v) : beside_blocks(v, "a") {}
    bool buffered(unsigned, unsigned i) const override {
        return i != 0 && mod_program::buffered(0, i);
    }
    void setup(pool& p) override {
        push(p, 'a', 1);
        const mod::store::impl& in = mod::store::in(p).internals();
        void* free = hf_alloc(block_bytes);
        in.super()->taking = p.internals().offset_of(free);
        in.super()->taking_bytes = block_bytes;
        hf_free(free);
        pool::impl::abandon(std::move(p));
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) hf_alloc(block_bytes);
        if (i == 1) push(p, 'a', 2, 20); // an arena
    }
};

/// Arenas in chunks that others had before, and that are free now: their old entries mean nothing.
class where_others_were final : public beside_blocks {
public:
    where_others_were(const mod_variant& v, chunk_entry before)
        : beside_blocks(v, "a"), before_(before) {}
    void setup(pool& p) override {
        push(p, 'a', 1);
        const heap& blocks = p.internals().blocks.durable();
        for (unsigned i = 0; i < blocks.extent_count(); ++i) {
            const heap_extent& e = blocks.extent_at(i);
            for (std::uint64_t c = 0; c < e.chunks; ++c)
                if (blocks.chunk_empty(e, c)) e.entries[c] = before_.word;
        }
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(pool& p, unsigned, unsigned i) override { push(p, 'a', 2 + i, 20 * (i + 1)); }

private:
    chunk_entry before_;
};

/// Arenas without a node in use go back to the heap, from the middle of their list too, and serve
/// others.
class given_back : public beside_blocks {
public:
    explicit given_back(const mod_variant& v) : beside_blocks(v, "ab") {}
    bool buffered(unsigned, unsigned i) const override {
        return (i == 0 || i == 3) && mod_program::buffered(0, i);
    }
    void setup(pool& p) override {
        push(p, 'a', 1, 9);
        push(p, 'b', 2, 20);
        push(p, 'a', 3, 40);
    }
    unsigned operations(unsigned) const override { return 5; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) clear(p, 'a');
        if (i == 1 || i == 4) expect(mod::store::in(p).collect());
        if (i == 2) hf_alloc(block_bytes);
        if (i == 3) push(p, 'a', 4, 60);
    }
};

/// Every opening of the pool begins where a crash left it.
template <class Program> class after_a_crash final : public Program {
public:
    using Program::Program;
    void setup(pool& p) override {
        Program::setup(p);
        pool::impl::abandon(std::move(p));
    }
};

[[maybe_unused]] const bool added =
    add_variants<roots_made>("store/roots") && add_variants<one_root>("store/one root") &&
    add_variants<settled>("store/settle", false) &&
    add_variants<settled>("store/settle of the pool", true) &&
    add_variants<settled_beside>("store/settled beside") && add_variants<batch>("store/batch") &&
    add_variants<siblings>("store/siblings") && add_variants<unrelated>("store/unrelated") &&
    add_variants<sharing>("store/sharing") && add_variants<moved>("store/moved") &&
    add_variants<shared_by_threads>("store/shared by threads", shared_by_threads::cleared) &&
    add_variants<shared_by_threads>("store/shared by threads, copied",
                                    shared_by_threads::copied_first) &&
    add_variants<shared_by_threads>("store/shared by threads, in part",
                                    shared_by_threads::popped_one) &&
    add_variants<shared_again>("store/shared again") && add_variants<turned>("store/turned") &&
    add_variants<passed_on>("store/passed on") &&
    add_variants<turned_by_another>("store/turned by another") &&
    add_variants<snapshots>("store/snapshots") && add_variants<arenas>("store/arenas") &&
    add_variants<two_writers>("store/two writers", "a") &&
    add_variants<two_writers>("store/two writers of siblings", "xy") &&
    add_variants<half_taken>("store/half taken") &&
    add_variants<where_others_were>("store/where small blocks were", chunk_entry::slab(5)) &&
    add_variants<where_others_were>("store/where a large block was", chunk_entry::large(2)) &&
    add_variants<given_back>("store/given back") &&
    add_variants<after_a_crash<given_back>>("store/after a crash/given back") &&
    add_variants<after_a_crash<one_root>>("store/after a crash/one root") &&
    add_variants<after_a_crash<siblings>>("store/after a crash/siblings") &&
    add_variants<after_a_crash<unrelated>>("store/after a crash/unrelated") &&
    add_variants<after_a_crash<sharing>>("store/after a crash/sharing") &&
    add_variants<after_a_crash<arenas>>("store/after a crash/arenas");

} // namespace
