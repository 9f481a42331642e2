// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections do that lists, maps and banks do not: logs that go on in the heap, staged blocks,
// memory freed by one section and reused by the next, marks left to later sections, sections that
// store nothing, both engines in one pool, growth, a full pool. Instrumented by hand, for both
// engines, so that each step is where it looks to be.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>
#include <section/section.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <cstring>
#include <span>

namespace {

constexpr std::size_t cell_words = 25; // 200 bytes: four lines

constexpr std::size_t array_words = 130; // more than 16 lines
// With a begin record and a head before it, this many logged bytes leave less in a lane's half than
// the record that continues the log elsewhere needs.
constexpr std::size_t brim_bytes = 1904;

/// A block whose words all hold the same value, when it is whole.
struct cell {
    std::uint64_t words[cell_words];
};
/// Each slot on lines of its own, as locks would keep them apart.
struct slot {
    cell* at;
    std::uint64_t value;
    std::uint32_t half[2];
    std::uint64_t pair[2];
    std::uint64_t other_lines[11];
};
struct root {
    slot slots[4];
    std::uint64_t log_a[brim_bytes / 8], log_b[24], log_c[array_words];
};

// What the plugin would emit, by engine.
template <bool Clobber> void log(void* to, std::size_t bytes) {
    if (Clobber) hf_clobber_log(to, bytes);
    else hf_undo_log(to, bytes);
}
template <bool Clobber, class T> void store(T* to, T value) {
    log<Clobber>(to, sizeof(T));
    *const_cast<volatile T*>(to) = value;
}
void fill_fresh(cell* to, std::uint64_t value) {
    cell from;
    for (std::uint64_t& word : from.words) word = value;
    hf_note_store(to, sizeof *to);
    std::memcpy(to, &from, sizeof from);
}

/// Runs a body of either engine as a section; Args names its txfunc.
template <bool Clobber, class Args> void section(const Args& args) {
    const hf_txfunc& function = Args::function();
    if (Clobber) {
        hf_clobber_begin(&function, &args);
        Args::template body<true>(args);
        hf_clobber_commit();
    } else {
        hf_undo_begin(&function, &args);
        Args::template body<false>(args);
        hf_undo_commit();
    }
}
template <class Args> void again(const void* packed) {
    Args::template body<true>(*static_cast<const Args*>(packed));
}
template <class Args> const hf_txfunc& described(std::uint64_t id, const char* name) {
    static const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER},
                                    {8, sizeof(Args) - 8, HF_ARG_VALUE}};
    static const hf_txfunc function{HF_ABI_VERSION, sizeof(Args), id, 1,          name,
                                    "here",         schema,       2,  again<Args>};
    return function;
}

/// A new cell, one above the old one in the slot, which is freed.
struct replace {
    slot* in;
    std::uint64_t unused;
    static const hf_txfunc& function() { return described<replace>(2001, "replace"); }
    template <bool Clobber> static void body(const replace& a) {
        cell* old = a.in->at;
        auto* fresh = static_cast<cell*>(hf_alloc(sizeof(cell)));
        fill_fresh(fresh, old->words[cell_words - 1] + 1);
        store<Clobber>(&a.in->at, fresh);
        hf_free(old);
    }
};

/// A staged cell goes into the slot; the one that was there is freed.
struct adopt_cell {
    slot* in;
    cell* staged;
    static const hf_txfunc& function() { return described<adopt_cell>(2002, "adopt_cell"); }
    template <bool Clobber> static void body(const adopt_cell& a) {
        cell* old = a.in->at;
        hf_adopt(a.staged);
        store<Clobber>(&a.in->at, a.staged);
        if (old != nullptr) hf_free(old);
    }
};

/// value += by; what it has read it overwrites.
struct add_to {
    slot* in;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<add_to>(2003, "add_to"); }
    template <bool Clobber> static void body(const add_to& a) {
        store<Clobber>(&a.in->value, a.in->value + a.by);
    }
};

/// Preserves and stores a kilobyte: its records reach far into the lane.
struct set_words {
    std::uint64_t* words;
    const std::uint64_t* from;
    static const hf_txfunc& function() { return described<set_words>(2004, "set_words"); }
    template <bool Clobber> static void body(const set_words& a) {
        const std::uint64_t* from = hf::vlog_preserve(a.from, 24);
        log<Clobber>(a.words, 24 * 8);
        std::memcpy(a.words, from, 24 * 8);
    }
};

/// Stores nothing.
struct look {
    slot* in;
    std::uint64_t unused;
    static const hf_txfunc& function() { return described<look>(2005, "look"); }
    template <bool Clobber> static void body(const look&) {}
};

/// Overwrites more than a lane holds of what it has read, some of it twice: the log goes on in the
/// heap, and what follows there (blocks taken, one given back) must be found again.
struct change_all {
    root* r;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<change_all>(2006, "change_all"); }
    template <bool Clobber> static void change(std::uint64_t* words, std::uint64_t by) {
        log<Clobber>(words, array_words * 8);
        std::uint64_t to[array_words]; // stored whole: an event a line, not a word
        for (std::size_t i = 0; i < array_words; ++i) to[i] = words[i] * 3 + by;
        std::memcpy(words, to, sizeof to);
    }
    template <bool Clobber> static void body(const change_all& a) {
        change<Clobber>(a.r->log_c, a.by);
        change<Clobber>(a.r->log_a, a.by); // no room for this one
        cell* old = a.r->slots[1].at;
        auto* other = static_cast<cell*>(hf_alloc(1000)); // a class of its own, from a free chunk
        fill_fresh(other, a.by);
        store<Clobber>(&a.r->slots[1].at, other);
        if (old != nullptr) hf_free(old);
        replace::body<Clobber>({&a.r->slots[0], 0});
        change<Clobber>(a.r->log_c, a.by + 1);
    }
};

/// Fills its lane to the brim.
struct brim {
    root* r;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<brim>(2010, "brim"); }
    template <bool Clobber> static void body(const brim& a) {
        log<Clobber>(a.r->log_a, brim_bytes);
        std::uint64_t to[brim_bytes / 8];
        for (std::size_t i = 0; i < brim_bytes / 8; ++i) to[i] = a.r->log_a[i] + a.by;
        std::memcpy(a.r->log_a, to, sizeof to);
        store<Clobber>(&a.r->slots[0].value, a.r->slots[0].value + 1);
    }
};

/// Parts of words, and words logged alone and then with a neighbour.
struct parts {
    slot* in;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<parts>(2011, "parts"); }
    template <bool Clobber> static void body(const parts& a) {
        for (std::uint32_t& half : a.in->half)
            store<Clobber>(&half, half + static_cast<std::uint32_t>(a.by));
        store<Clobber>(&a.in->pair[0], a.in->pair[0] + a.by);
        log<Clobber>(a.in->pair, sizeof a.in->pair);
        for (std::uint64_t& one : a.in->pair) one += a.by;
    }
};

/// Two blocks, one of which the section gives up again before it takes the other.
struct take_two {
    slot* in;
    std::uint64_t value;
    static const hf_txfunc& function() { return described<take_two>(2007, "take_two"); }
    template <bool Clobber> static void body(const take_two& a) {
        auto* one = static_cast<cell*>(hf_alloc(sizeof(cell)));
        hf_free(one);
        auto* two = static_cast<cell*>(hf_alloc(sizeof(cell)));
        fill_fresh(two, a.value);
        cell* old = a.in->at;
        store<Clobber>(&a.in->at, two);
        if (old != nullptr) hf_free(old);
    }
};

/// A block so small that two threads take theirs from one chunk; pair[0] leads to it.
struct take_small {
    slot* in;
    std::uint64_t value;
    static const hf_txfunc& function() { return described<take_small>(2013, "take_small"); }
    template <bool Clobber> static void body(const take_small& a) {
        auto* fresh = static_cast<std::uint64_t*>(hf_alloc(48));
        hf_note_store(fresh, sizeof *fresh);
        *fresh = a.value;
        store<Clobber>(&a.in->pair[0], reinterpret_cast<std::uint64_t>(fresh));
    }
};

/// Frees the slot's block, whatever its size.
struct drop {
    slot* in;
    std::uint64_t unused;
    static const hf_txfunc& function() { return described<drop>(2008, "drop"); }
    template <bool Clobber> static void body(const drop& a) {
        cell* old = a.in->at;
        store<Clobber>(&a.in->at, static_cast<cell*>(nullptr));
        hf_free(old);
    }
};

/// A block of 'bytes' into the slot; where there is no room, says so.
struct take {
    slot* in;
    std::uint64_t bytes;
    static const hf_txfunc& function() { return described<take>(2009, "take"); }
    template <bool Clobber> static void body(const take& a) {
        auto* fresh = static_cast<cell*>(hf_alloc(a.bytes));
        if (fresh != nullptr) {
            fill_fresh(fresh, 7);
            store<Clobber>(&a.in->at, fresh);
        } else { // an output: nothing restores it for a re-execution that fares otherwise
            if (Clobber) hf_note_store(&a.in->pair[0], 8);
            else hf_undo_log(&a.in->pair[0], 8);
            a.in->pair[0] = 1000;
        }
    }
};

/// Preserves two words, one after the other, and stores a number made of both.
struct preserve_twice {
    slot* in;
    const std::uint64_t* from;
    static const hf_txfunc& function() { return described<preserve_twice>(2012, "preserve_twice"); }
    template <bool Clobber> static void body(const preserve_twice& a) {
        const std::uint64_t first = *hf::vlog_preserve(a.from);
        const std::uint64_t second = *hf::vlog_preserve(a.from + 1);
        hf_note_store(&a.in->value, 8);
        a.in->value = 10 * first + second;
        hf_note_store(&a.in->pair[1], 8);
        a.in->pair[1] = first;
    }
};

/// Stores over much that it has not read: words, parts of words and lines, some of them twice, one
/// of them read afterwards; and does what the others do.
struct spoil {
    root* r;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<spoil>(2014, "spoil"); }
    template <class T> static void blind(T* to, T value) {
        hf_note_store(to, sizeof(T));
        *const_cast<volatile T*>(to) = value;
    }
    template <bool> static void body(const spoil& a) {
        slot& in = a.r->slots[0];
        blind(&in.pair[0], a.by);
        store<true>(&in.pair[0], in.pair[0] + in.value);
        store<true>(&in.value, in.value + a.by);
        blind(&in.half[1], static_cast<std::uint32_t>(a.by));
        replace::body<true>({&in, 0});
        blind(&in.pair[0], a.by);
        hf_note_store(a.r->log_b, sizeof a.r->log_b);
        std::uint64_t to[24];
        for (std::uint64_t& word : to) word = a.by;
        std::memcpy(a.r->log_b, to, sizeof to);
        blind(&in.half[0], static_cast<std::uint32_t>(a.by));
        blind(&in.pair[1], a.by);
    }
};

/// Keeps a word ahead of an input that is logged, and one behind it.
struct spoil_less {
    slot* in;
    std::uint64_t by;
    static const hf_txfunc& function() { return described<spoil_less>(2015, "spoil less"); }
    template <bool> static void body(const spoil_less& a) {
        spoil::blind(&a.in->pair[0], a.by);
        store<true>(&a.in->value, a.in->value + a.by);
        spoil::blind(&a.in->pair[1], a.by);
    }
};

[[maybe_unused]] const bool registered = [] {
    for (const hf_txfunc* f :
         {&replace::function(), &adopt_cell::function(), &add_to::function(),
          &set_words::function(), &look::function(), &change_all::function(), &take_two::function(),
          &drop::function(), &take::function(), &brim::function(), &parts::function(),
          &preserve_twice::function(), &take_small::function(), &spoil::function(),
          &spoil_less::function()})
        hf_txfunc_register(f);
    return true;
}();

class section_program : public hf::crash::pool_program {
public:
    section_program()
        : pool_program({.layout = "crash/section",
                        .engines = {hf::clobber::engine(), hf::undo::engine()}}) {}
    void setup(hf::pool& p) override { p.root<root>(); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        for (const slot& each : r->slots) {
            for (const std::uint64_t n : {each.value, each.pair[0], each.pair[1]}) s.add(n);
            for (const std::uint32_t n : each.half) s.add(n);
            s.add(each.at == nullptr ? 0 : each.at->words[0]);
            if (each.at == nullptr) continue;
            s.object(each.at);
            for (const std::uint64_t word : each.at->words)
                s.expect(word == each.at->words[0], "a cell is whole");
        }
        const std::span<const std::uint64_t> arrays[] = {r->log_a, r->log_b, r->log_c};
        for (const auto words : arrays) {
            s.add(words.front());
            s.add(words.back());
            for (const std::uint64_t word : words.first(24))
                s.expect(word == words[0], "an array is whole");
            for (const std::uint64_t word : words.last(24)) s.add(word);
        }
    }

protected:
    /// A cell in a slot before the run.
    static void put(slot& in, std::uint64_t value) { section<false>(take_two{&in, value}); }
    static cell* staged_cell(hf::pool& p, std::uint64_t value) {
        auto* block = static_cast<cell*>(hf::staged::in(p, sizeof(cell))->release());
        cell from;
        for (std::uint64_t& word : from.words) word = value;
        hf::staged::copy(p, block, &from, sizeof from);
        hf::staged::persist(p, &block->words[12], 8); // durable as a whole all the same
        return block;
    }
};

template <bool Clobber> class reuse final : public section_program {
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i < 3) section<Clobber>(replace{&r->slots[0], 0});
        else section<Clobber>(take{&r->slots[i - 2], sizeof(cell)}); // two that were freed
    }
};

template <bool Clobber> class own_block final : public section_program {
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<Clobber>(take_two{&p.root<root>()->slots[0], i + 1});
    }
};

template <bool Clobber> class adopting final : public section_program {
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        section<Clobber>(adopt_cell{&r->slots[i % 2], staged_cell(p, i + 1)});
    }
};

template <bool Clobber> class part_words final : public section_program {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<Clobber>(parts{&p.root<root>()->slots[0], i + 1});
    }
};

template <bool Clobber> class to_the_brim final : public section_program {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<Clobber>(brim{p.root<root>(), i + 1});
    }
};

/// A recovered pool is worked on and fails again: lanes' epochs and blocks are used a second time,
/// by a function with the arguments that the torn section had.
template <bool Clobber> class goes_on final : public section_program {
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned) override {
        section<Clobber>(replace{&p.root<root>()->slots[0], 0});
    }
    unsigned operations_after() const override { return 2; }
    void run_after(hf::pool& p, unsigned) override { run(p, 0, 0); }
};

/// Sections of engine clobber that recovery rolls back.
class rolled_back final : public section_program {
public:
    explicit rolled_back(hf::mode mode) {
        options_.mode = mode; // and caches that outlive the failure
        options_.expert.eadr = mode == hf::mode::pmem;
        options_.recovery = hf::recovery_policy::roll_back;
    }
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<true>(spoil{p.root<root>(), i + 2});
    }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned) override { section<true>(spoil{p.root<root>(), 2}); }
};

/// Sections that are completed where what they keep is durable only by chance: nobody reads it.
class kept_by_chance final : public section_program {
public:
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<true>(spoil_less{&p.root<root>()->slots[0], i + 2});
    }
};

/// Sections that keep nothing of what they overwrite unread: the first store in place alone says
/// that one is pending.
class keeps_nothing final : public section_program {
public:
    keeps_nothing() { options_.engines[0] = hf::clobber::engine({.keep_overwritten = false}); }
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<true>(spoil_less{&p.root<root>()->slots[0], i + 2});
    }
};

/// A block is staged during a section that does not adopt it, then given back, and its memory goes
/// to whoever comes next.
template <bool Clobber> class given_back final : public section_program {
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) {
            cell* unwanted = staged_cell(p, 9);
            section<Clobber>(add_to{&r->slots[0], 5});
            hf::staged(unwanted).reset();
        } else section<Clobber>(take_two{&r->slots[i], i});
    }
};

/// What the memory of a block given back is reused for outside sections. Blocks that the program
/// itself may lose are named, whoever has them.
class given_back_at_once : public section_program {
public:
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) {
            cell* unwanted = staged_cell(p, 9);
            section<true>(add_to{&p.root<root>()->slots[0], 5});
            hf::staged(unwanted).reset();
        } else hf_alloc(sizeof(cell));
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const root* r = p.root<root>();
        s.add(r->slots[0].value);
        s.add(r->slots[0].pair[1]);
        reach_all(p, s, r);
    }
};

/// A block that a section took is given back outside one, while the section's mark is still due.
class freed_at_once final : public given_back_at_once {
    void setup(hf::pool& p) override { put(p.root<root>()->slots[1], 3); }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) section<true>(take{&r->slots[0], sizeof(cell)});
        if (i == 1) hf_free(r->slots[0].at);
        if (i == 2) hf_free(r->slots[1].at);
    }
};

/// A block staged during a section is adopted outside one, while the section's mark is still due.
class adopted_at_once final : public given_back_at_once {
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) {
            staged_ = staged_cell(p, 9);
            section<true>(add_to{&p.root<root>()->slots[0], 5});
        } else hf::staged::adopt(staged_);
    }
    cell* staged_ = nullptr;
};

template <bool Clobber> class long_log final : public section_program {
public:
    long_log() { options_.create_bytes = options_.max_bytes = hf::operator""_KiB(96); }

private:
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<Clobber>(change_all{p.root<root>(), i + 1});
    }
};

/// Between two sections of one half of the lane one that stores nothing, and so never fences.
class nothing_stored final : public section_program {
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        std::uint64_t from[24];
        for (std::uint64_t& word : from) word = i + 1;
        if (i % 2 == 1) section<true>(look{&r->slots[0], 0});
        else if (i == 4) section<true>(set_words{r->log_a, from});
        else section<true>(add_to{&r->slots[0], 5}); // twice the same: records fit each other
    }
};

/// Engines take turns in one lane: an undo section begins where a clobber section left its mark.
class both_engines final : public section_program {
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        slot& in = p.root<root>()->slots[0];
        if (i == 0) section<true>(replace{&in, 0});
        if (i == 1) section<false>(add_to{&in, 3});
        if (i == 2) section<true>(add_to{&in, 4});
        if (i == 3) section<false>(replace{&in, 0});
        if (i == 4) section<true>(replace{&in, 0});
    }
};

/// Neighbours in one chunk, each taken by another thread.
template <bool Clobber> class same_chunk final : public section_program {
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        section<Clobber>(take_small{&p.root<root>()->slots[thread], thread + 1});
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        for (const slot& each : p.root<root>()->slots) {
            const auto* block = reinterpret_cast<const std::uint64_t*>(each.pair[0]);
            s.add(block == nullptr ? 0 : *block);
            if (block != nullptr) s.object(block);
        }
    }
};

/// What one thread frees is the only room for the other: not before the mark is durable.
class freed_for_other final : public section_program {
    void setup(hf::pool& p) override {
        root* r = p.root<root>();
        section<false>(take{&r->slots[0], 4 * 4096});
        section<false>(take{&r->slots[1], 3 * 4096});
        for (std::uint64_t& word : r->slots[0].at->words) word = 3;
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        root* r = p.root<root>();
        if (thread == 0) section<false>(drop{&r->slots[0], 0});
        else section<false>(take{&r->slots[2], 4 * 4096});
    }
};

/// One thread alone leaves its mark; the next changes what that one had read.
class mark_left final : public section_program {
    void setup(hf::pool& p) override { put(p.root<root>()->slots[0], 1); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 2 : 1; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        slot* in = &p.root<root>()->slots[0];
        in_turn([&] {
            if (thread == 0 && i == 0) section<true>(replace{in, 0});
            else section<true>(add_to{in, thread + 1});
        });
    }
};

/// Sections of more than the pool has room for: it grows in one.
template <bool Clobber> class grow_inside final : public section_program {
public:
    grow_inside() { options_.max_bytes = hf::operator""_KiB(96); }

private:
    void setup(hf::pool& p) override {
        // One of the ten chunks is the root's and one is for cells; one is left.
        root* r = p.root<root>();
        section<false>(take{&r->slots[1], 7 * 4096});
        put(r->slots[0], 1);
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) section<Clobber>(take{&r->slots[2], 2 * 4096});
        else section<Clobber>(replace{&r->slots[0], 0});
        if (r->slots[2].at == nullptr) hf::fatal("the pool has not grown");
    }
};

/// No chunk is left: blocks come from one that an earlier open of the pool has used in part.
template <bool Clobber> class used_chunk final : public section_program {
    void setup(hf::pool& p) override {
        root* r = p.root<root>();
        section<false>(take{&r->slots[1], 8 * 4096});
        put(r->slots[0], 1);
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        section<Clobber>(take{&p.root<root>()->slots[2 + i], sizeof(cell)});
    }
};

/// The room that a section did not find may be there when it is re-executed.
class no_room final : public section_program {
    void setup(hf::pool& p) override {
        root* r = p.root<root>();
        section<false>(take{&r->slots[1], 4 * 4096});
        section<false>(take{&r->slots[2], 3 * 4096});
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) section<true>(drop{&r->slots[1], 0});
        else section<true>(take{&r->slots[3], 4 * 4096}); // that memory waits for the mark
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        // Whether there was room depends on what else was at hand, not on the section alone.
        const slot* in = p.root<root>()->slots;
        s.expect(in[3].at == nullptr || in[3].pair[0] == 0, "room, or none: not both");
        s.add(in[1].at == nullptr ? 0 : 1);
        s.add(in[3].at == nullptr && in[3].pair[0] == 0 ? 0 : 1);
        for (int i : {1, 2, 3})
            if (in[i].at != nullptr) s.object(in[i].at);
    }
};

/// A chunk of cells becomes free, is trimmed, and serves a large block.
template <bool Clobber> class trimmed final : public section_program {
    void setup(hf::pool& p) override {
        root* r = p.root<root>();
        section<false>(take{&r->slots[1], 5 * 4096});
        put(r->slots[0], 1);
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* r = p.root<root>();
        if (i == 0) section<Clobber>(drop{&r->slots[1], 0});
        if (i == 1) hf::return_spare_blocks(p);
        if (i == 2) section<Clobber>(take{&r->slots[2], 5 * 4096});
    }
};

/// The process dies in a section; another takes the pool up as it lies in the caches, recovers it
/// and works on. What recovery left undone shows when the power fails later.
class killed : public given_back_at_once {
public:
    /// lane_left: nobody takes the lane in which it died, whose next section would forget that one.
    explicit killed(bool clobber, bool lane_left = false)
        : clobber_(clobber), lane_left_(lane_left) {}
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) {
            p.internals().lanes[0].taken = lane_left_; // by another thread, then
            die_in_section(p);
            hf::crash::take_over(p, options());
        }
        if (i == 1) hf_alloc(sizeof(cell));
        if (i == 2) section<true>(add_to{&p.root<root>()->slots[0], 5});
    }

protected:
    virtual void die_in_section(hf::pool& p) {
        const take args{&p.root<root>()->slots[0], sizeof(cell)};
        if (clobber_) {
            hf_clobber_begin(&take::function(), &args);
            take::body<true>(args);
        } else {
            hf_undo_begin(&take::function(), &args);
            take::body<false>(args);
        }
    }
    bool clobber_, lane_left_;
};

/// It dies before its inputs are all in the log: recovery discards the section, and the block that
/// was staged meanwhile is free.
class discarded final : public killed {
public:
    explicit discarded(bool lane_left) : killed(true, lane_left) {}

private:
    void die_in_section(hf::pool& p) override {
        staged_cell(p, 9);
        const std::uint64_t from[2] = {3, 4};
        const preserve_twice args{&p.root<root>()->slots[0], from};
        hf_clobber_begin(&preserve_twice::function(), &args);
        hf::vlog_preserve(from);
    }
};

/// What a dead process logged last must not pass for the log of the section that follows: same
/// function, same arguments, another input.
class same_again final : public killed {
public:
    same_again() : killed(true) {}
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        if (i == 0) return killed::run(p, thread, i);
        from_[0] = 5;
        section<true>(preserve_twice{&p.root<root>()->slots[0], from_});
    }

private:
    void die_in_section(hf::pool& p) override {
        from_[0] = 3;
        const preserve_twice args{&p.root<root>()->slots[0], from_};
        hf_clobber_begin(&preserve_twice::function(), &args);
        hf::vlog_preserve(from_);
    }
    std::uint64_t from_[2] = {0, 4};
};

/// A small block at once where a large one was: a crash leaves the block or none, never another.
class small_in_large final : public given_back_at_once {
    void setup(hf::pool& p) override {
        p.root<root>();
        hf_free(hf_alloc(6 * 4096));
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool&, unsigned, unsigned) override { hf_alloc(48); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        given_back_at_once::describe(p, s);
        s.add(hf::account(p).block_bytes);
    }
};

/// The root in memory that is not zero.
class used_root final : public section_program {
    void setup(hf::pool&) override {
        void* const used = hf_alloc(sizeof(root));
        std::memset(used, 0xff, sizeof(root));
        hf_free(used);
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { p.root<root>(); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        // Asking for the root would make it; made or not, it reads as zeros.
        if (hf::account(p).blocks == 0) return;
        const auto* bytes = reinterpret_cast<const unsigned char*>(p.root<root>());
        for (std::size_t i = 0; i < sizeof(root); ++i) s.expect(bytes[i] == 0, "the root is zero");
    }
};

template <template <bool> class Program> void add_both(const std::string& name) {
    hf::crash::add(name + "/clobber", std::make_unique<Program<true>>());
    hf::crash::add(name + "/undo", std::make_unique<Program<false>>());
}
[[maybe_unused]] const bool added = [] {
    add_both<reuse>("section/reuse");
    add_both<own_block>("section/own block");
    add_both<adopting>("section/adopt");
    add_both<given_back>("section/unstage");
    add_both<goes_on>("section/goes on");
    add_both<part_words>("section/parts of words");
    add_both<to_the_brim>("section/brim");
    add_both<long_log>("section/long log");
    add_both<same_chunk>("section/same chunk");
    add_both<grow_inside>("section/growth");
    add_both<trimmed>("section/trim");
    add_both<used_chunk>("section/used chunk");
    hf::crash::add("section/rolled back/process", std::make_unique<rolled_back>(hf::mode::process));
    hf::crash::add("section/rolled back/eadr", std::make_unique<rolled_back>(hf::mode::pmem));
    hf::crash::add("section/kept by chance", std::make_unique<kept_by_chance>());
    hf::crash::add("section/keeps nothing", std::make_unique<keeps_nothing>());
    hf::crash::add("section/unstage at once", std::make_unique<given_back_at_once>());
    hf::crash::add("section/free at once", std::make_unique<freed_at_once>());
    hf::crash::add("section/adopt at once", std::make_unique<adopted_at_once>());
    hf::crash::add("section/killed/clobber", std::make_unique<killed>(true));
    hf::crash::add("section/killed/undo", std::make_unique<killed>(false));
    hf::crash::add("section/killed, lane left/undo", std::make_unique<killed>(false, true));
    hf::crash::add("section/discarded", std::make_unique<discarded>(false));
    hf::crash::add("section/discarded, lane left", std::make_unique<discarded>(true));
    hf::crash::add("section/same again", std::make_unique<same_again>());
    hf::crash::add("section/small in large", std::make_unique<small_in_large>());
    hf::crash::add("section/used root", std::make_unique<used_root>());
    hf::crash::add("section/nothing stored", std::make_unique<nothing_stored>());
    hf::crash::add("section/both engines", std::make_unique<both_engines>());
    hf::crash::add("section/mark left", std::make_unique<mark_left>());
    hf::crash::add("section/freed for another", std::make_unique<freed_for_other>());
    hf::crash::add("section/no room", std::make_unique<no_room>());
    return true;
}();

} // namespace
