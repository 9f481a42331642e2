// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/litmus/enumerator.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace hf::check::litmus {
namespace {

enum kind : std::uint8_t { R, W, NT, U, MF, SF, FO, FL };

kind kind_of(op what) {
    switch (what) {
    case op::load: return R;
    case op::store: return W;
    case op::nt_store: return NT;
    case op::xchg:
    case op::add:
    case op::cas: return U;
    case op::mfence: return MF;
    case op::sfence: return SF;
    case op::clflushopt:
    case op::clwb: return FO;
    case op::clflush: return FL;
    }
    HF_ASSERT(false);
    return R;
}

// Whether program order is kept: always '+', never '-', for the same line 'l' or the same word 'w'.
constexpr std::array<std::string_view, 8> preserved{
    // R  W  NT U  MF SF FO FL   <- later; earlier:
    "+ + + + + + + +", // R
    "- + w + + + l +", // W
    "- w w + + + - -", // NT
    "+ + + + + + + +", // U
    "+ + + + + + + +", // MF
    "- + + + + + + +", // SF
    "- - - + + + - l", // FO
    "- + - + + + l +", // FL
};

struct event {
    instruction what;
    kind is;
    std::size_t thread, position; // in program order
};

/// One word of one store of the order so far: it may or may not persist.
struct atom {
    std::size_t event;
    unsigned word;
    char value;
    bool ordinary;
};

bool same_word(const instruction& a, const instruction& b) {
    return a.word < b.word + b.words && b.word < a.word + a.words;
}

bool must_precede(const event& a, const event& b) {
    if (a.thread != b.thread || a.position >= b.position) return false;
    const char how = preserved[a.is][2 * b.is];
    return how == '+' || (how == 'l' && a.what.line() == b.what.line()) ||
           (how == 'w' && same_word(a.what, b.what));
}

bool is_fence(kind is) { return is == SF || is == MF || is == U; }

class enumeration {
public:
    enumeration(const program& of, hf::domain d) : of_(of), domain_(d) {
        for (std::size_t t = 0; t < of.threads.size(); ++t)
            for (std::size_t i = 0; i < of.threads[t].size(); ++i)
                events_.push_back({of.threads[t][i], kind_of(of.threads[t][i].what), t, i});
        HF_ASSERT(events_.size() < 16);
        for (const event& later : events_) {
            before_.push_back(0);
            for (std::size_t e = 0; e < events_.size(); ++e)
                if (must_precede(events_[e], later)) before_.back() |= 1u << e;
        }
        registers_.assign(of.registers, unset);
        extend();
    }
    outcomes found;

private:
    bool placed(std::size_t e) const { return (placed_ >> e & 1) != 0; }

    bool may_come_next(std::size_t e) const { return !placed(e) && (before_[e] & ~placed_) == 0; }

    /// Continues the order so far in every way.
    void extend() {
        add_failures();
        for (std::size_t e = 0; e < events_.size(); ++e) {
            if (!may_come_next(e)) continue;
            const auto registers = registers_;
            const auto atoms = atoms_.size();
            place(e);
            extend();
            order_.pop_back();
            placed_ &= ~(1u << e);
            atoms_.resize(atoms);
            registers_ = registers;
        }
    }

    void place(std::size_t e) {
        const event& it = events_[e];
        char value = static_cast<char>('0' + it.what.value);
        bool stores = it.is == W || it.is == NT || it.is == U;
        if (it.is == R || it.is == U) {
            const char was = value_for(it);
            registers_[it.what.reg] = was;
            if (it.what.what == op::add) value = static_cast<char>(was + it.what.value);
            if (it.what.what == op::cas) stores = was == '0' + it.what.expected;
        }
        order_.push_back(e);
        placed_ |= 1u << e;
        for (unsigned w = 0; stores && w < it.what.words; ++w)
            atoms_.push_back({e, it.what.word + w, value, it.is != NT});
    }

    /// Axiom (1). Stores not placed yet come after all that are, and one thread's stores to a word
    /// keep their order, so the newest is the last in program order of those not placed, if any.
    char value_for(const event& load) const {
        const event* newest = nullptr;
        for (std::size_t e = 0; e < events_.size(); ++e) {
            const event& store = events_[e];
            if ((store.is == W || store.is == NT) && store.thread == load.thread &&
                store.position < load.position && same_word(store.what, load.what) && !placed(e))
                newest = &store; // events_ has each thread's events in program order
        }
        if (newest != nullptr) return static_cast<char>('0' + newest->what.value);
        return value_of(load.what.word, ~std::uint64_t{0});
    }

    /// The newest of the chosen stores to the word.
    char value_of(unsigned word, std::uint64_t chosen) const {
        char out = '0';
        for (std::size_t a = 0; a < atoms_.size(); ++a)
            if ((chosen >> a & 1) != 0 && atoms_[a].word == word) out = atoms_[a].value;
        return out;
    }

    /// Axioms (2) to (7) for a failure now: every set of stores that they allow.
    void add_failures() {
        std::vector<std::uint64_t> needs(atoms_.size());
        std::uint64_t held = 0;
        for (std::size_t a = 0; a < atoms_.size(); ++a) {
            needs[a] = needed_by(a);
            if (must_hold(atoms_[a])) held |= std::uint64_t{1} << a;
        }
        for (std::uint64_t set = 0; set < std::uint64_t{1} << atoms_.size(); ++set) {
            bool legal = (held & ~set) == 0;
            for (std::size_t a = 0; legal && a < atoms_.size(); ++a)
                legal = (set >> a & 1) == 0 || (needs[a] & ~set) == 0;
            if (legal) add(found.crash, set);
            if (legal && order_.size() == events_.size()) add(found.done, set);
        }
        if (order_.size() == events_.size()) add(found.final, ~std::uint64_t{0});
    }

    void add(std::set<outcome>& to, std::uint64_t set) const {
        outcome o;
        for (const unsigned word : of_.locations) o += value_of(word, set);
        to.insert(o + registers_);
    }

    /// Axioms (3) and (4): the atoms that must have persisted if this one has.
    std::uint64_t needed_by(std::size_t a) const {
        std::uint64_t out = 0;
        for (std::size_t b = 0; b < a; ++b) {
            const bool same_line =
                atoms_[a].word / words_per_line == atoms_[b].word / words_per_line;
            const bool both_ordinary = atoms_[a].ordinary && atoms_[b].ordinary;
            if (atoms_[a].word == atoms_[b].word ||
                (same_line && both_ordinary && atoms_[a].event != atoms_[b].event))
                out |= std::uint64_t{1} << b;
        }
        return out;
    }

    /// Axioms (5) to (7): whether the atom has persisted for certain.
    bool must_hold(const atom& a) const {
        if (domain_ == domain::process) return true;
        const auto stored = std::ranges::find(order_, a.event);
        if (!a.ordinary) return fenced_after(stored, events_[a.event]);
        if (domain_ == domain::eadr) return true;
        for (auto f = stored; f != order_.end(); ++f) {
            const event& flush = events_[*f];
            if ((flush.is != FO && flush.is != FL) || flush.what.line() != a.word / words_per_line)
                continue;
            if (flush.is == FL || fenced_after(f, flush)) return true;
        }
        return false;
    }

    bool fenced_after(std::vector<std::size_t>::const_iterator from, const event& of) const {
        return std::any_of(from, order_.end(), [&](std::size_t e) {
            const event& fence = events_[e];
            return is_fence(fence.is) && fence.thread == of.thread && fence.position > of.position;
        });
    }

    const program& of_;
    hf::domain domain_;
    std::vector<event> events_;
    std::vector<unsigned> before_;   // by event: those that must come before it
    std::vector<std::size_t> order_; // events, so far
    unsigned placed_ = 0;            // the same, as a set
    std::vector<atom> atoms_;        // of the order so far
    std::string registers_;
};

} // namespace

outcomes enumerate(const program& of, hf::domain d) { return std::move(enumeration(of, d).found); }

} // namespace hf::check::litmus
