// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks and queues: every operation, of elements that share a line, that need one each, and of
// strings; batches, versions, and an element that moves from one to the other.
#include "mod_program.hpp"

#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/stack.hpp>

#include <algorithm>
#include <array>

namespace {

using namespace hf;
using namespace hf::crash;

using wide = std::array<std::uint64_t, 9>;

template <class T> T made(std::uint64_t from) {
    if constexpr (std::is_same_v<T, std::string>) {
        return std::string(5 + from % 40, static_cast<char>('a' + from % 26));
    } else if constexpr (std::is_same_v<T, wide>) {
        wide out;
        out.fill(from);
        return out;
    } else {
        return from;
    }
}

void add_to(state& s, std::uint64_t value) { s.add(value); }
void add_to(state& s, std::string_view value) { s.add(value); }
void add_to(state& s, const wide& value) {
    s.expect(std::ranges::count(value, value[0]) == 9, "an element is whole");
    s.add(value[0]);
}

template <class Handle> const mod::kind& kind_of() {
    if constexpr (requires(Handle h) { h.top(); }) return mod::detail::stack_kind;
    else return mod::detail::queue_kind;
}

/// One stack or queue.
template <class Handle> class sequence : public mod_program {
public:
    using T = typename Handle::value_type;
    sequence(const mod_variant& v, unsigned before) : mod_program(v), before_(before) {
        use_afterwards();
    }
    /// All of it once before, so that there are arenas of each size (mod_store_program.cpp has
    /// programs for taking them).
    void setup(pool& p) override {
        for (unsigned i = 0; i < before_; ++i) expect(open(p).push(made<T>(i)));
        for (unsigned i = 0; i < operations(0); ++i) run(p, 0, i);
        expect(open(p).clear());
        for (unsigned i = 0; i < before_; ++i) expect(open(p).push(made<T>(i)));
    }
    unsigned operations(unsigned) const override { return 7; }
    void run(pool& p, unsigned, unsigned i) override {
        Handle h = open(p);
        if (i < 2) expect(h.push(made<T>(10 + i)));
        if (i == 2) HF_ASSERT(static_cast<bool>(h.pop()));
        if (i == 3)
            expect(h.update([](auto& batch) {
                for (std::uint64_t n = 0; n < 9; ++n) batch.push(made<T>(20 + n));
                for (unsigned n = 0; n < 3; ++n) HF_ASSERT(batch.pop().has_value());
                batch.push(made<T>(29));
            }));
        if (i == 4) {
            const auto now = h.snapshot();
            expect(h.commit(now.push(made<T>(30)).pop().push(made<T>(31))));
        }
        if (i == 5) expect(h.clear());
        if (i == 6) expect(h.push(made<T>(32)));
    }

protected:
    Handle open(pool& p) const {
        auto h = Handle::open(p, {"one"});
        HF_ASSERT(static_cast<bool>(h));
        h->set_durability(variant().when);
        return *h;
    }
    static void expect(const status& outcome) { HF_ASSERT(outcome.ok()); }
    void show(pool& p, state& s) override {
        const auto now = open(p).snapshot();
        s.add(now.size());
        for (const auto& value : now) add_to(s, value);
    }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*open(p).its_root(), kind_of<Handle>());
        return found.count();
    }
    void use(pool& p, state& s) override {
        Handle h = open(p);
        const auto before = h.size();
        for (unsigned i = 0; i < 9; ++i) expect(h.push(made<T>(100 + i)));
        while (h.size() > before) HF_ASSERT(static_cast<bool>(h.pop()));
        state ignored;
        show(p, ignored); // its elements are whole
        s.expect(h.size() == before, "what was recovered can be used");
    }

private:
    unsigned before_;
};

/// Elements move from a queue to a stack: as roots that have nothing to do with each other, and as
/// members of a family.
class moves : public mod_program {
public:
    moves(const mod_variant& v, bool siblings) : mod_program(v), siblings_(siblings) {}
    bool buffered(unsigned, unsigned) const override {
        return siblings_ && mod_program::buffered(0, 0);
    }
    void setup(pool& p) override {
        for (std::uint64_t i = 0; i < 3; ++i) HF_ASSERT(queued(p).push(i).ok());
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(pool& p, unsigned, unsigned) override {
        auto from = queued(p);
        auto to = stacked(p);
        const auto was = from.snapshot();
        const auto less = was.pop();
        const auto more = to.snapshot().push(was.front());
        const status outcome =
            mod::store::in(p).commit({{from.its_root(), &less}, {to.its_root(), &more}});
        HF_ASSERT(outcome.ok());
    }

private:
    template <class Handle> Handle open(pool& p, std::string_view name) const {
        auto h = siblings_ ? Handle::open(p, {name, "both", {"queue", "stack"}})
                           : Handle::open(p, {name});
        HF_ASSERT(static_cast<bool>(h));
        h->set_durability(variant().when);
        return *h;
    }
    mod::queue<std::uint64_t> queued(pool& p) const {
        return open<mod::queue<std::uint64_t>>(p, "queue");
    }
    mod::stack<std::uint64_t> stacked(pool& p) const {
        return open<mod::stack<std::uint64_t>>(p, "stack");
    }
    void show(pool& p, state& s) override {
        s.add(queued(p).size());
        for (const auto value : queued(p).snapshot()) s.add(value);
        for (const auto value : stacked(p).snapshot()) s.add(value);
    }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*queued(p).its_root(), mod::detail::queue_kind);
        found.add(*stacked(p).its_root(), mod::detail::stack_kind);
        return found.count() + parents(p);
    }
    bool siblings_;
};

using u64 = std::uint64_t;
[[maybe_unused]] const bool added =
    add_variants<sequence<mod::stack<u64>>>("stack/words", 7U) &&
    add_variants<sequence<mod::stack<wide>>>("stack/wide", 1U) &&
    add_variants<sequence<mod::stack<std::string>>>("stack/strings", 2U) &&
    add_variants<sequence<mod::queue<u64>>>("queue/words", 7U) &&
    add_variants<sequence<mod::queue<wide>>>("queue/wide", 1U) &&
    add_variants<sequence<mod::queue<std::string>>>("queue/strings", 2U) &&
    add_variants<moves>("queue to stack/unrelated", false) &&
    add_variants<moves>("queue to stack/siblings", true);

} // namespace
