// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A slot that nobody can reach is filled outside of sections (hf::staged::copy_words, staged::copy)
// while a log, of the same thread or of another one, still needs it as it was: of each engine whose
// sections leave their marks out.
#include <check/pool_program.hpp>
#include <check/take_over.hpp>
#include <redo/redo_sections.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/undo.hpp>

#include <array>
#include <string>

namespace {

constexpr std::size_t slot_words = 8;
struct ring {
    alignas(64) std::uint64_t put;
    alignas(64) std::uint64_t taken;
    std::uint64_t sum;
    alignas(64) std::uint64_t slot[slot_words];
};

enum class by : std::uint8_t { undo, redo, clobber };

/// What a section of each engine does with a word.
template <by Engine> std::uint64_t get(const std::uint64_t* from) {
    if constexpr (Engine == by::redo) return load(from);
    return *from;
}
template <by Engine> void put(std::uint64_t* to, std::uint64_t value) {
    if constexpr (Engine == by::redo) return store(to, value);
    if constexpr (Engine == by::undo) hf_undo_log(to, sizeof value);
    if constexpr (Engine == by::clobber) hf_clobber_log(to, sizeof value);
    *const_cast<volatile std::uint64_t*>(to) = value;
}

/// The slot is full from here on.
template <by Engine> void made_body(const void* packed) {
    ring* const r = *static_cast<ring* const*>(packed);
    put<Engine>(&r->put, get<Engine>(&r->put) + 1);
}
/// And free from here on: what was in it is read, and one of its words stored over.
template <by Engine> void take_body(const void* packed) {
    ring* const r = *static_cast<ring* const*>(packed);
    put<Engine>(&r->sum, get<Engine>(&r->sum) * 10 + get<Engine>(&r->slot[0]));
    put<Engine>(&r->slot[slot_words - 1], 0);
    put<Engine>(&r->taken, get<Engine>(&r->taken) + 1);
}
const hf_arg ring_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc made_desc{HF_ABI_VERSION,        8, 2801, 1, "made", "here", ring_schema, 1,
                          made_body<by::clobber>};
const hf_txfunc take_desc{HF_ABI_VERSION,        8, 2802, 1, "take", "here", ring_schema, 1,
                          take_body<by::clobber>};

template <by Engine>
void run_section(const hf_txfunc& function, void (*body)(const void*), ring* r) {
    if constexpr (Engine == by::redo) return section([&] { body(&r); });
    if constexpr (Engine == by::undo) {
        hf_undo_begin(&function, &r);
        body(&r);
        return hf_undo_commit();
    }
    if constexpr (Engine == by::clobber) {
        hf_clobber_begin(&function, &r);
        body(&r);
        return hf_clobber_commit();
    }
}
template <by Engine> void made(ring* r) { run_section<Engine>(made_desc, made_body<Engine>, r); }
template <by Engine> void take(ring* r) { run_section<Engine>(take_desc, take_body<Engine>, r); }

enum class fills : std::uint8_t { words, copy };

template <by Engine> class refilled : public hf::crash::pool_program {
public:
    refilled(fills how, bool eadr)
        : pool_program(
              {.layout = "crash/refilled",
               .engines = {hf::undo::engine({.durable = Engine == by::undo
                                                            ? hf::durability::by_next_section
                                                            : hf::durability::on_return}),
                           hf::redo::engine(), hf::clobber::engine()},
               .eadr = eadr}),
          how_(how) {}

protected:
    bool buffered(unsigned, unsigned) const override { return Engine == by::undo; }
    void setup(hf::pool& p) override {
        fill(p, 7);
        made<Engine>(p.root<ring>());
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        ring* const r = p.root<ring>();
        if (i % 2 == 0) return take<Engine>(r);
        fill(p, 5);
        made<Engine>(r);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const ring* const r = p.root<ring>();
        for (const std::uint64_t value : {r->put, r->taken, r->sum}) s.add(value);
        if (r->put == r->taken) return;
        s.add(r->slot[0]);
        for (const std::uint64_t word : r->slot)
            s.expect(word == r->slot[0], "what fills the slot is whole");
    }
    void fill(hf::pool& p, std::uint64_t value) {
        std::array<std::uint64_t, slot_words> words;
        words.fill(value);
        std::uint64_t* const slot = p.root<ring>()->slot;
        if (how_ == fills::words) return hf::staged::copy_words(slot, words.data(), sizeof words);
        hf::staged::copy(p, slot, words.data(), sizeof words);
        hf::staged::persist(p, slot, sizeof words);
    }

    fills how_;
};

/// One thread takes, another one fills: the log that needs the slot is of another lane.
template <by Engine> class refilled_beside final : public refilled<Engine> {
public:
    using refilled<Engine>::refilled;

private:
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        ring* const r = p.root<ring>();
        this->in_turn([&] {
            const bool full = r->put != r->taken;
            if (thread == 0 && full) take<Engine>(r);
            if (thread == 1 && !full) {
                this->fill(p, 5);
                made<Engine>(r);
            }
        });
    }
};

/// The process dies when the slot is filled: a kill takes no section that has returned.
template <by Engine> class refilled_and_killed final : public refilled<Engine> {
public:
    using refilled<Engine>::refilled;

private:
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        take<Engine>(p.root<ring>());
        this->fill(p, 5);
        hf::crash::take_over(p, this->options());
        const ring* const r = p.root<ring>();
        if (r->taken != 1 || r->sum != 7) hf::fatal("a kill has taken what had returned");
    }
};

struct link_args {
    ring* on;
    std::uint64_t* staged;
};
void link_body(const void* packed) {
    const auto& a = *static_cast<const link_args*>(packed);
    hf_adopt(a.staged);
    put<by::clobber>(&a.on->sum, reinterpret_cast<std::uint64_t>(a.staged));
}
const hf_arg link_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc link_desc{HF_ABI_VERSION, sizeof(link_args), 2803, 1,        "link",
                          "here",         link_schema,       2,    link_body};

/// A staged block is filled, left alone by a section whose log has the sum of it, and filled again.
class refilled_staged final : public refilled<by::clobber> {
public:
    refilled_staged() : refilled(fills::words, false) {}

private:
    void setup(hf::pool& p) override { p.root<ring>(); }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        ring* const r = p.root<ring>();
        std::array<std::uint64_t, slot_words> words;
        words.fill(i + 1);
        if (i == 0)
            staged_ = static_cast<std::uint64_t*>(hf::staged::in(p, sizeof words)->release());
        hf::staged::copy_words(staged_, words.data(), sizeof words);
        if (i == 0) return made<by::clobber>(r);
        const link_args args{r, staged_};
        hf_clobber_begin(&link_desc, &args);
        link_body(&args);
        hf_clobber_commit();
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const ring* const r = p.root<ring>();
        s.add(r->put);
        s.add(r->sum != 0);
        if (r->sum == 0) return;
        const auto* const linked = reinterpret_cast<const std::uint64_t*>(r->sum);
        s.object(linked);
        for (std::size_t w = 0; w < slot_words; ++w)
            s.expect(linked[w] == 2, "what was staged is whole");
    }
    std::uint64_t* staged_ = nullptr;
};

template <by Engine> void add_all(const std::string& engine) {
    const auto add = [&](const char* name, auto program) {
        hf::crash::add("refilled/" + engine + name, std::move(program));
    };
    add("", std::make_unique<refilled<Engine>>(fills::words, false));
    add(", copied", std::make_unique<refilled<Engine>>(fills::copy, false));
    add(", eadr", std::make_unique<refilled<Engine>>(fills::words, true));
    add(", beside", std::make_unique<refilled_beside<Engine>>(fills::words, false));
    add(" and killed", std::make_unique<refilled_and_killed<Engine>>(fills::words, false));
}

[[maybe_unused]] const bool added = [] {
    for (const hf_txfunc* f : {&made_desc, &take_desc, &link_desc}) hf_txfunc_register(f);
    add_all<by::undo>("undo");
    add_all<by::redo>("redo");
    add_all<by::clobber>("clobber");
    hf::crash::add("refilled/staged", std::make_unique<refilled_staged>());
    return true;
}();

} // namespace
