// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two threads whose sections are pending together: one, alone, has left its mark out, and the
// other's first section changes what that one had read, frees what it took, or takes what it freed.
// Instrumented by hand. The second thread's lane may be recovered before the first one's, whatever
// order recovery takes lanes in: the programs exist twice, with lanes exchanged. The other section
// may be one of engine undo, and both may be open at a time. And what a torn log must not do to the
// sections that follow in its lane.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>
#include <section/section.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <cstring>
#include <new>
#include <sched.h>

namespace {

struct node {
    node* next;
    std::uint64_t value;
};
struct stack {
    node* head;
    std::uint64_t count;
};

// What the plugin would emit, by engine.
template <bool Clobber = true, class T> void store(T* to, T value) {
    if (Clobber) hf_clobber_log(to, sizeof(T));
    else hf_undo_log(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
}

struct push_args {
    stack* on;
    std::uint64_t value;
};
template <bool Clobber> void push_body(const void* packed) {
    const auto& a = *static_cast<const push_args*>(packed);
    auto* fresh = static_cast<node*>(hf_alloc(sizeof(node)));
    hf_note_store(fresh, sizeof(node));
    fresh->next = a.on->head;
    fresh->value = a.value;
    store<Clobber>(&a.on->head, fresh);
    store<Clobber>(&a.on->count, a.on->count + 1);
}
template <bool Clobber> void pop_body(const void* packed) {
    stack* on = *static_cast<stack* const*>(packed);
    node* first = on->head;
    if (first == nullptr) return;
    hf_free(first); // takes effect at the commit; named by the log before anything is stored
    store<Clobber>(&on->head, first->next);
    store<Clobber>(&on->count, on->count - 1);
}

const hf_arg push_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
const hf_txfunc push_desc{
    HF_ABI_VERSION, sizeof(push_args), 2101, 1, "push", "here", push_schema, 2, push_body<true>};
const hf_arg pop_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc pop_desc{HF_ABI_VERSION, sizeof(stack*), 2102, 1, "pop", "here", pop_schema, 1,
                         pop_body<true>};
[[maybe_unused]] const bool registered =
    (hf_txfunc_register(&push_desc), hf_txfunc_register(&pop_desc), true);

template <class Args> void section_of(const hf_txfunc& function, const Args& args) {
    hf_clobber_begin(&function, &args);
    function.re_execute(&args);
    hf_clobber_commit();
}
/// Engine undo never runs a section again: the function names it for reports.
template <class Args>
void undo_section(const hf_txfunc& function, void (*body)(const void*), const Args& args) {
    hf_undo_begin(&function, &args);
    body(&args);
    hf_undo_commit();
}
void push(stack* on, std::uint64_t value) { section_of(push_desc, push_args{on, value}); }
void pop(stack* on) { section_of(pop_desc, on); }
void undo_push(stack* on, std::uint64_t value) {
    undo_section(push_desc, push_body<false>, push_args{on, value});
}
void undo_pop(stack* on) { undo_section(pop_desc, pop_body<false>, on); }

class pending_program : public hf::crash::pool_program {
public:
    explicit pending_program(bool exchanged)
        : pool_program(
              {.layout = "crash/pending", .engines = {hf::clobber::engine(), hf::undo::engine()}}),
          exchanged_(exchanged) {}
    void setup(hf::pool& p) override {
        p.root<stack>();
        push(p.root<stack>(), 1);
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override {
        return exchanged_ && thread == 0 ? 2 : 1;
    }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        // A thread takes its lane with the first thing that it does.
        if (exchanged_ && thread == 0 && i == 0) {
            (void)hf::staged::in(p, 8);
            ::sched_yield();
            return;
        }
        in_turn([&] {
            if ((thread == 0) != exchanged_) first(p.root<stack>());
            else second(p.root<stack>());
        });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const stack* on = p.root<stack>();
        std::uint64_t nodes = 0;
        for (const node* n = on->head; n != nullptr && ++nodes < 9; n = n->next) {
            s.add(n->value);
            s.object(n);
        }
        s.expect(nodes == on->count, "the count is that of the nodes");
    }

private:
    virtual void first(stack* on) { push(on, 2); }
    virtual void second(stack* on) = 0;
    bool exchanged_;
};

class pop_after final : public pending_program {
    using pending_program::pending_program;
    void second(stack* on) override { pop(on); }
};
class push_after final : public pending_program {
    using pending_program::pending_program;
    void second(stack* on) override { push(on, 3); }
};
class push_after_pop final : public pending_program {
    using pending_program::pending_program;
    void first(stack* on) override { pop(on); }
    void second(stack* on) override { push(on, 3); }
};

// The other thread's section is of another engine.
class undo_pop_after final : public pending_program {
    using pending_program::pending_program;
    void second(stack* on) override { undo_pop(on); }
};
class undo_push_after_pop final : public pending_program {
    using pending_program::pending_program;
    void first(stack* on) override { pop(on); }
    void second(stack* on) override { undo_push(on, 3); }
};
class push_after_undo_pop final : public pending_program {
    using pending_program::pending_program;
    void first(stack* on) override { undo_pop(on); }
    void second(stack* on) override { push(on, 3); }
};

/// Sections of both engines are open at a time, on stacks of their own in one heap.
class side_by_side final : public hf::crash::pool_program {
public:
    side_by_side()
        : pool_program({.layout = "crash/side by side",
                        .engines = {hf::clobber::engine(), hf::undo::engine()}}) {}

private:
    struct root {
        alignas(64) stack of[2]; // one line
    };
    void setup(hf::pool& p) override {
        for (stack& on : p.root<root>()->of) push(&on, 1);
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        stack* on = &p.root<root>()->of[thread];
        if (thread == 0) i == 0 ? pop(on) : push(on, 2);
        else i == 0 ? undo_pop(on) : undo_push(on, 3);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        for (const stack& on : p.root<root>()->of) {
            std::uint64_t nodes = 0;
            for (const node* n = on.head; n != nullptr && ++nodes < 9; n = n->next) {
                s.add(n->value);
                s.object(n);
            }
            s.add(nodes);
            s.expect(nodes == on.count, "the count is that of the nodes");
        }
    }
};

struct counter {
    std::uint64_t value;
};
void increment_body(const void* packed) {
    counter* c = *static_cast<counter* const*>(packed);
    store(&c->value, c->value + 1);
}
const hf_txfunc increment_desc{
    HF_ABI_VERSION, sizeof(counter*), 2103, 1, "increment", "here", pop_schema, 1, increment_body};
void increment(counter* c) { section_of(increment_desc, c); }

class counting_program : public hf::crash::pool_program {
public:
    counting_program()
        : pool_program({.layout = "crash/counting",
                        .engines = {hf::clobber::engine(), hf::undo::engine()}}) {}
    void setup(hf::pool& p) override {
        hf_txfunc_register(&increment_desc);
        p.root<counter>();
    }
    void describe(hf::pool& p, hf::crash::state& s) override { s.add(p.root<counter>()->value); }
    /// What these programs store plainly may have been in the caches only.
    void recover(hf::pool& p) override {
        hf::persist::persist(p.domain(), p.root<counter>(), sizeof(counter));
    }
};

/// A power failure leaves old bytes that a section logged, but not the begin record before them.
/// The pool is recovered, works on, and is failed again: that record must never follow from another
/// begin record.
class torn_off final : public counting_program {
public:
    enum class before { none, stored, lost };
    /// A section before it has left its mark out, which was stored all the same; or is lost, too:
    /// that section is re-executed.
    explicit torn_off(before it) : before_(it) {}
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        counter* c = p.root<counter>();
        if (i == 0) {
            if (before_ != before::none) increment(c);
            else (void)hf::staged::in(p, 8); // takes the lane
        }
        if (i == 1) {
            leave_old_bytes(p);
            if (before_ == before::lost) lose_mark(p);
            hf::crash::take_over(p, options());
        }
        if (i == 2) { // nothing is due any more
            c->value = 12;
            hf::persist::persist(p.domain(), &c->value, sizeof c->value);
        }
        if (i == 3) increment(c);
    }

private:
    /// The log of the lane's next section, whose first record never arrives.
    static void leave_old_bytes(hf::pool& p) {
        hf::pool_file& file = *p.internals().file;
        counter* c = p.root<counter>();
        const std::uint64_t epoch = p.internals().lanes[0].epoch + 1;
        const hf::begin_payload head{
            epoch, increment_desc.id, increment_desc.version, hf::engine_clobber, 0, sizeof c};
        std::byte payload[sizeof head + sizeof c];
        std::memcpy(payload, &head, sizeof head);
        std::memcpy(payload + sizeof head, &c, sizeof c);
        const hf::lane_position at = hf::lane_start(file, 0, epoch);
        alignas(8) std::byte records[512] = {};
        hf::lane_writer_in log{hf::fenced_medium(hf::medium(hf::domain::adr))};
        std::byte* const end = records + sizeof records;
        log.start({records, end, at.chain, end});
        log.append(hf::record_kind::begin, 0, sizeof payload, payload, sizeof payload);
        const std::uint64_t torn = hf::lane_writer::record_bytes(sizeof payload);
        log.append(hf::record_kind::old_bytes, p.internals().offset_of(&c->value), 8, &c->value, 8);
        hf::persist::copy(p.domain(), at.next + torn, records + torn,
                          hf::lane_writer::record_bytes(8));
        hf::persist::fence(p.domain());
    }
    static void lose_mark(hf::pool& p) {
        hf::lane_header* const lane = hf::lane_at(*p.internals().file, 0);
        hf::persist::store_word(hf::domain::adr, &lane->committed,
                                p.internals().lanes[0].epoch - 1);
        hf::persist::fence(hf::domain::adr);
    }
    before before_;
};

/// Plain stores between sections: to what a section left whose mark was due, once it is settled.
class settled final : public counting_program {
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        counter* c = p.root<counter>();
        if (i != 1) return increment(c);
        hf::settle(p);
        c->value = 12;
        hf::persist::persist(p.domain(), &c->value, sizeof c->value);
    }
};

struct link_args {
    stack* on;
    node* staged;
};
void link_body(const void* packed) {
    const auto& a = *static_cast<const link_args*>(packed);
    hf_adopt(a.staged);
    store(&a.on->head, a.staged);
    store(&a.on->count, a.on->count + 1);
}
const hf_arg link_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc link_desc{HF_ABI_VERSION, sizeof(link_args), 2104, 1,        "link",
                          "here",         link_schema,       2,    link_body};

/// A staged node is changed, and persisted, after the words that its section's log has the sum of.
class changed_after final : public pending_program {
public:
    changed_after() : pending_program(false) {}

private:
    void setup(hf::pool& p) override {
        hf_txfunc_register(&link_desc);
        pending_program::setup(p);
    }
    unsigned threads() const override { return 1; }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        stack* on = p.root<stack>();
        auto* fresh = static_cast<node*>(hf::staged::in(p, sizeof(node))->release());
        const node words{on->head, 5};
        hf::staged::copy_words(fresh, &words, sizeof words);
        fresh->value = i + 7;
        hf::persist::persist(p.domain(), &fresh->value, sizeof fresh->value);
        section_of(link_desc, link_args{on, fresh});
    }
    void second(stack*) override {}
};

/// A staged node's words have a sum in the section's log, and with them the lock behind them: that
/// changes as soon as the section has ended, or was taken before the sum was and is let go then.
class locked_after final : public pending_program {
public:
    explicit locked_after(bool held) : pending_program(false), held_(held) {}

private:
    struct locked_node {
        node words;
        hf::shared_mutex lock;
    };
    void setup(hf::pool& p) override {
        hf_txfunc_register(&link_desc);
        pending_program::setup(p);
    }
    unsigned threads() const override { return 1; }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        stack* on = p.root<stack>();
        if (i % 2 == 1) {
            if (!held_) made_->lock.lock();
            return made_->lock.unlock();
        }
        made_ = new (hf::staged::in(p, sizeof(locked_node))->release())
            locked_node{{on->head, i + 7}, {}};
        if (held_) made_->lock.lock();
        hf::staged::note_written(made_, sizeof *made_);
        section_of(link_desc, link_args{on, &made_->words});
    }
    void second(stack*) override {}
    bool held_;
    locked_node* made_ = nullptr;
};

template <class Program> void add_twice(const std::string& name) {
    hf::crash::add(name, std::make_unique<Program>(false));
    hf::crash::add(name + ", lanes exchanged", std::make_unique<Program>(true));
}
[[maybe_unused]] const bool added = [] {
    add_twice<pop_after>("pending/push, pop");
    add_twice<push_after>("pending/push, push");
    add_twice<push_after_pop>("pending/pop, push");
    add_twice<undo_pop_after>("pending/push, pop by undo");
    add_twice<undo_push_after_pop>("pending/pop, push by undo");
    add_twice<push_after_undo_pop>("pending/pop by undo, push");
    hf::crash::add("pending/side by side", std::make_unique<side_by_side>());
    hf::crash::add("pending/settled", std::make_unique<settled>());
    hf::crash::add("pending/changed after", std::make_unique<changed_after>());
    hf::crash::add("pending/locked after", std::make_unique<locked_after>(false));
    hf::crash::add("pending/let go after", std::make_unique<locked_after>(true));
    hf::crash::add("pending/torn off", std::make_unique<torn_off>(torn_off::before::none));
    hf::crash::add("pending/torn off, one before",
                   std::make_unique<torn_off>(torn_off::before::stored));
    hf::crash::add("pending/torn off, one again",
                   std::make_unique<torn_off>(torn_off::before::lost));
    return true;
}();

} // namespace
