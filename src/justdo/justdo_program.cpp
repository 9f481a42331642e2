// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine justdo: sections as a compiler would leave them (justdo/test_support.hpp), in every
// persistence domain. Transfers under two locks, with one thread and with two that go in opposite
// directions; a list under a lock that does not free itself; a recursion; copies that overlap. Two
// threads' sections may be pending together, of this engine, and are resumed in either order, or
// one of them of engine clobber.
#include "justdo_sections.hpp"
#include <justdo/test_support.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>

#include <string>
#include <vector>

namespace {

namespace by_hand = hf::justdo::by_hand;

using justdo_program = hf::justdo::crash_program;

struct bank {
    by_hand::account accounts[2];
};

/// From the first account to the second; the second thread's go back.
class transfers final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override {
        for (auto& a : p.root<bank>()->accounts) a.balance = 100;
        hf::persist::persist(p.domain(), p.root<bank>(), sizeof(bank));
    }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 2 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        auto& a = p.root<bank>()->accounts;
        by_hand::transfer(&a[thread], &a[1 - thread], 10 + 3 * thread + i);
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override {
        auto& a = p.root<bank>()->accounts;
        by_hand::transfer(&a[1], &a[0], 1);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        std::uint64_t sum = 0;
        for (const auto& a : p.root<bank>()->accounts) s.add(a.balance), sum += a.balance;
        s.expect(sum == 200, "no money is lost or made");
        add_own_blocks(p, s);
    }
};

void describe_list(const by_hand::list& on, hf::crash::state& s) {
    std::uint64_t nodes = 0;
    for (const by_hand::node* n = on.head; n != nullptr && ++nodes < 9; n = n->next) {
        s.add(n->value);
        s.object(n);
    }
    s.expect(nodes == on.count, "the count is that of the nodes");
    s.expect(on.lock.taken == 0, "the lock is free");
    s.add(nodes);
}

/// Locks hand over hand: a thread may walk behind another one, and be cut short there with it.
class walks final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override { p.root<bank>(); }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 2 : 1; }
    void run(hf::pool& p, unsigned, unsigned) override { by_hand::walk(p.root<bank>()->accounts); }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override {
        auto& a = p.root<bank>()->accounts;
        by_hand::transfer(&a[1], &a[0], 0);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto& a = p.root<bank>()->accounts;
        for (const auto& one : a) s.add(one.balance);
        s.expect(a[0].balance == a[1].balance, "whoever passes the first account passes both");
        add_own_blocks(p, s);
    }
};

struct row {
    by_hand::account accounts[4];
};
/// Stores in a row: of those that recovery makes again two may have been lost.
class stamps final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override { p.root<row>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        by_hand::stamp(p.root<row>()->accounts, 7);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto& a = p.root<row>()->accounts;
        for (const auto& one : a) {
            s.add(one.balance);
            s.expect(one.balance == a[0].balance, "all bear one stamp");
        }
        add_own_blocks(p, s);
    }
};

struct branch {
    by_hand::account accounts[3];
};
/// From the first account to the second, while the other thread moves on to the third what it has
/// there: each may be cut short with a lock of its own, and want the other's.
class chain final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override {
        for (auto& a : p.root<branch>()->accounts) a.balance = 100;
        hf::persist::persist(p.domain(), p.root<branch>(), sizeof(branch));
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        auto& a = p.root<branch>()->accounts;
        by_hand::transfer(&a[thread], &a[thread + 1], 10 + thread);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        for (const auto& a : p.root<branch>()->accounts) s.add(a.balance);
        add_own_blocks(p, s);
    }
};

/// The first thread pushes, the second one pops; one alone does both.
class lists final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override { by_hand::push(p.root<by_hand::list>(), 1); }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 3 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        auto* const on = p.root<by_hand::list>();
        if (thread == 1 || i == 1) by_hand::pop(on);
        else by_hand::push(on, 2 + i);
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { by_hand::push(p.root<by_hand::list>(), 9); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        describe_list(*p.root<by_hand::list>(), s);
        add_own_blocks(p, s);
    }
};

struct alignas(64) two_lists {
    struct alignas(64) one {
        by_hand::list list;
    } of[2];
};
/// Each thread pushes on a list of its own: they share nothing but the allocator, and a chunk that
/// both fill first. With 'Pop' the first thread pops: nobody gets what it frees before its section
/// has taken another step.
template <bool Pop> class apart final : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override {
        auto* const lists = p.root<two_lists>();
        if (Pop) by_hand::push(&lists->of[0].list, 1);
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        by_hand::list* const on = &p.root<two_lists>()->of[thread].list;
        if (Pop && thread == 0) by_hand::pop(on);
        else by_hand::push(on, 5 + thread);
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override {
        by_hand::push(&p.root<two_lists>()->of[0].list, 9);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        for (const auto& one : p.root<two_lists>()->of) describe_list(one.list, s);
        add_own_blocks(p, s);
    }
};

/// The same, where the second thread's section is one of engine clobber: run again, it takes a
/// block before the first one's section has gone on.
class beside_clobber final : public justdo_program {
public:
    beside_clobber(hf::justdo::variant how, unsigned threads) : justdo_program(how, threads) {
        options_.engines.push_back(hf::clobber::engine());
    }
    void setup(hf::pool& p) override { p.root<two_lists>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        auto& lists = *p.root<two_lists>();
        if (thread == 0) return by_hand::push(&lists.of[0].list, 5);
        const push_args args{&lists.of[1].list, 6};
        hf_clobber_begin(&push_again, &args);
        push_again.re_execute(&args);
        hf_clobber_commit();
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        for (const auto& one : p.root<two_lists>()->of) describe_list(one.list, s);
        add_own_blocks(p, s);
    }

private:
    struct push_args {
        by_hand::list* on;
        std::uint64_t value;
    };
    template <class T> static void store(T* to, T value) {
        hf_clobber_log(to, sizeof(T));
        *const_cast<volatile T*>(to) = value;
    }
    /// As the plugin would instrument it. No other thread uses its list.
    static void push(const void* packed) {
        const auto& a = *static_cast<const push_args*>(packed);
        auto* fresh = static_cast<by_hand::node*>(hf_alloc(sizeof(by_hand::node)));
        hf_note_store(fresh, sizeof *fresh);
        fresh->next = a.on->head;
        fresh->value = a.value;
        store(&a.on->head, fresh);
        store(&a.on->count, a.on->count + 1);
    }
    static constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
    static constexpr hf_txfunc push_again{
        HF_ABI_VERSION, sizeof(push_args), 4101, 1, "push", "by_hand", schema, 2, push};
    [[maybe_unused]] static inline const bool registered = (hf_txfunc_register(&push_again), true);
};

/// Sections of engine redo before and behind, under the same locks: the log of such a section
/// represents its stores until the next section's log does.
class behind_redo final : public justdo_program {
public:
    behind_redo(hf::justdo::variant how, unsigned threads) : justdo_program(how, threads) {
        options_.engines.push_back(hf::redo::engine());
    }
    void setup(hf::pool& p) override {
        for (auto& a : p.root<bank>()->accounts) a.balance = 100;
        hf::persist::persist(p.domain(), p.root<bank>(), sizeof(bank));
    }
    unsigned operations(unsigned thread) const override {
        return threads_ == 1 ? 3 : thread == 0 ? 2 : 1;
    }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        auto& a = p.root<bank>()->accounts;
        if (thread == 1 || (threads_ == 1 && i == 1)) return by_hand::transfer(&a[0], &a[1], 10);
        a[0].lock.lock();
        a[1].lock.lock();
        hf_redo_begin(&moving, nullptr);
        store(&a[0].balance, load(&a[0].balance) - 3);
        store(&a[1].balance, load(&a[1].balance) + 3);
        hf_redo_commit();
        a[1].lock.unlock();
        a[0].lock.unlock();
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        std::uint64_t sum = 0;
        for (const auto& a : p.root<bank>()->accounts) s.add(a.balance), sum += a.balance;
        s.expect(sum == 200, "no money is lost or made");
        add_own_blocks(p, s);
    }

private:
    static std::uint64_t load(const std::uint64_t* from) {
        return *static_cast<const std::uint64_t*>(hf_redo_read(from, sizeof *from));
    }
    static void store(std::uint64_t* to, std::uint64_t value) {
        *static_cast<std::uint64_t*>(hf_redo_write(to, sizeof value)) = value;
    }
    static constexpr hf_txfunc moving{HF_ABI_VERSION, 0,       4102, 1,      "move",
                                      "by_hand",      nullptr, 0,    nullptr};
};

/// A lock that does not settle marks itself, in memory for which the log of a section of engine
/// redo has a checksum.
class lock_in_redos final : public justdo_program {
public:
    lock_in_redos(hf::justdo::variant how, unsigned threads) : justdo_program(how, threads) {
        options_.engines.push_back(hf::redo::engine());
    }
    void setup(hf::pool& p) override { p.root<by_hand::list*>(); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        by_hand::list** const on = p.root<by_hand::list*>();
        if (i == 1) return by_hand::push(*on, 5);
        hf_redo_begin(&making, nullptr);
        auto* const made = static_cast<by_hand::list*>(hf_alloc(sizeof(by_hand::list)));
        hf_note_store(made, sizeof *made);
        new (made) by_hand::list{};
        *static_cast<by_hand::list**>(hf_redo_write(on, sizeof made)) = made;
        hf_redo_commit();
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        by_hand::list* const on = *p.root<by_hand::list*>();
        s.add(on != nullptr);
        if (on != nullptr) s.object(on), describe_list(*on, s);
        add_own_blocks(p, s);
    }

private:
    static constexpr hf_txfunc making{HF_ABI_VERSION, 0,       4103, 1,      "make",
                                      "by_hand",      nullptr, 0,    nullptr};
};

/// Sections with more locks than a thread's own block has places for: the lock log grows, twice,
/// and its growth is used at once. Two threads' logs may be growing when they are cut short, or one
/// waits for a lock of the other's.
class grips final : public justdo_program {
public:
    grips(hf::justdo::variant how, unsigned threads) : justdo_program(how, threads) {
        places_ = {.own = 2, .more = 1};
    }
    void setup(hf::pool& p) override { p.root<by_hand::shelf>(); }
    unsigned operations(unsigned) const override { return threads_ == 1 ? 2 : 1; }
    void run(hf::pool& p, unsigned, unsigned) override { by_hand::grip(p.root<by_hand::shelf>()); }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { by_hand::grip(p.root<by_hand::shelf>()); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto& on = *p.root<by_hand::shelf>();
        for (const auto& one : on.accounts) s.add(one.balance);
        s.expect(on.accounts[0].balance == on.accounts[1].balance, "both or none");
        for (const auto& one : on.plain) s.expect(one.taken == 0, "the lock is free");
        add_own_blocks(p, s);
    }
};

class words : public justdo_program {
public:
    using justdo_program::crash_program;
    void setup(hf::pool& p) override {
        auto* const t = p.root<by_hand::table>();
        for (std::uint64_t i = 0; i < 40; ++i) t->word[i] = i + 1;
        hf::persist::persist(p.domain(), t, sizeof *t);
    }
    unsigned operations(unsigned) const override { return 1; }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const t = p.root<by_hand::table>();
        for (const std::uint64_t w : t->word) s.add(w);
        s.add(t->sum);
        add_own_blocks(p, s);
    }
};
class recursion final : public words {
    using words::words;
    void run(hf::pool& p, unsigned, unsigned) override {
        by_hand::total(p.root<by_hand::table>(), 2);
    }
};
class calls final : public words {
    using words::words;
    void run(hf::pool& p, unsigned, unsigned) override { by_hand::twice(p.root<by_hand::table>()); }
};
/// Frames that the thread's own block has no room for.
class dives final : public words {
    using words::words;
    void run(hf::pool& p, unsigned, unsigned) override {
        by_hand::plunge(p.root<by_hand::table>());
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { by_hand::plunge(p.root<by_hand::table>()); }
};
class copies final : public words {
    using words::words;
    void run(hf::pool& p, unsigned, unsigned) override { by_hand::shift(p.root<by_hand::table>()); }
};

template <class Program> void add(const char* name, unsigned threads) {
    for (hf::justdo::variant how : hf::justdo::variants) {
        hf::crash::add(std::string("justdo/") + name + "/" + how.name,
                       std::make_unique<Program>(how, threads));
        how.backwards = true;
        if (threads > 1 && !how.eadr)
            hf::crash::add(std::string("justdo/") + name + ", backwards/" + how.name,
                           std::make_unique<Program>(how, threads));
    }
}
[[maybe_unused]] const bool added = [] {
    add<transfers>("transfer", 1);
    add<lists>("list", 1);
    add<recursion>("recursion", 1);
    add<calls>("two calls", 1);
    add<copies>("copies", 1);
    add<transfers>("two transfers", 2);
    add<lists>("push and pop", 2);
    add<stamps>("stores in a row", 1);
    add<walks>("walk", 1);
    add<grips>("grip", 1);
    add<grips>("two grips", 2);
    add<dives>("dive", 1);
    add<walks>("two walks", 2);
    add<chain>("chain", 2);
    add<apart<false>>("two lists", 2);
    add<apart<true>>("pop and push apart", 2);
    add<beside_clobber>("beside clobber", 2);
    add<behind_redo>("behind redo", 1);
    add<lock_in_redos>("lock in memory of redo", 1);
    add<behind_redo>("behind redo of another thread", 2);
    return true;
}();

} // namespace
