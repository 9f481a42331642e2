// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by crash programs of MOD: the pool, the moment when an update counts, and the rules for
// the store under every structure: the trace is done, every reference holds, and the nodes in use
// are exactly those that can be reached.
#pragma once

#include <base/assert.hpp>
#include <check/pool_program.hpp>
#include <check/shadow_trace.hpp>
#include <mod/store_impl.hpp>

#include <holdfast/author/mod/store.hpp>

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hf::crash {

/// How a program is run.
struct mod_variant {
    const char* name;
    hf::mode mode = hf::mode::pmem;
    bool eadr = false;
    mod::durability when = mod::durability::by_next_section;
};
inline constexpr mod_variant mod_variants[] = {
    {"adr"},
    {"adr on return", hf::mode::pmem, false, mod::durability::on_return},
    {"eadr", hf::mode::pmem, true},
    {"process", hf::mode::process},
};

/// Distinct nodes that words name, whatever the structure.
class node_census final : private mod::visitor {
public:
    explicit node_census(mod::store& in) : in_(in) {}
    void add(const mod::root& r, const mod::kind& what) {
        const std::size_t from = found_.size();
        what.top(*this, r.base(), r.word(), r.shape());
        for (std::size_t i = from; i < found_.size(); ++i) {
            const entry e = found_[i];
            const std::uint64_t bytes = in_.internals().space().bytes_of(e.at);
            what.children(*this, r.base() + std::uint64_t{e.at} * mod::granule_bytes, bytes,
                          e.context, r.shape());
        }
    }
    std::uint64_t count() const noexcept { return found_.size(); }

private:
    struct entry {
        mod::ref at;
        std::uint32_t context;
    };
    void node(mod::ref at, std::size_t, std::uint32_t context) override {
        at &= mod::ref_max;
        if (seen_.insert(at).second) found_.push_back({at, context});
    }
    mod::store& in_;
    std::set<mod::ref> seen_;
    std::vector<entry> found_;
};

/// The nodes that a cell's word leads to, from the memory alone: for the trace
/// (check/shadow_trace.hpp).
class led_to final : private mod::visitor {
public:
    using visit_node = check::shadow_trace::visit_node;
    static void follow(std::span<const std::byte> memory, std::size_t word,
                       const visit_node& visit) {
        const auto* at = reinterpret_cast<const mod::cell*>(memory.data() + word);
        led_to all(memory.data(), visit);
        if (at->kind != mod::builtin_kind::family) return all.from(*at, at->word);
        if (at->word == 0) return;
        const auto parent = static_cast<mod::ref>(at->word);
        visit(parent * mod::granule_bytes, at->members * sizeof(std::uint64_t));
        const auto* words = reinterpret_cast<const std::uint64_t*>(all.place(parent));
        for (std::uint32_t m = 0; m < at->members; ++m) all.from(at[1 + m], words[m]);
    }

private:
    led_to(const std::byte* base, const visit_node& visit) : base_(base), visit_(visit) {}
    void from(const mod::cell& root, std::uint64_t word) {
        if (root.kind == 0) return;
        const mod::kind& what = *mod::find_kind(root.kind);
        what.top(*this, base_, word, root.shape);
        for (; !left_.empty();) {
            const auto [at, context] = left_.back();
            left_.pop_back();
            const std::size_t bytes = slot_bytes(at);
            visit_(at * mod::granule_bytes, bytes);
            what.children(*this, place(at), bytes, context, root.shape);
        }
    }
    void node(mod::ref at, std::size_t, std::uint32_t context) override {
        at &= mod::ref_max;
        if (seen_.insert(at).second) left_.push_back({at, context});
    }
    const std::byte* place(mod::ref at) const {
        return base_ + std::uint64_t{at} * mod::granule_bytes;
    }
    /// Every node begins in the first chunk of its arena.
    std::size_t slot_bytes(mod::ref at) const {
        constexpr std::uint64_t chunk_bytes = 4096; // of pools as small as these
        const auto* head = reinterpret_cast<const mod::arena_head*>(
            base_ + round_down(at * mod::granule_bytes, chunk_bytes));
        HF_ASSERT(head->magic == mod::arena_magic);
        return head->slot_bytes;
    }

    const std::byte* base_;
    const visit_node& visit_;
    std::set<mod::ref> seen_;
    std::vector<std::pair<mod::ref, std::uint32_t>> left_;
};
[[maybe_unused]] inline const bool roots_followed =
    (check::shadow_trace::set_follower(led_to::follow), true);

class mod_program : public pool_program {
public:
    explicit mod_program(const mod_variant& v)
        : pool_program(
              {.layout = "crash/mod", .engines = {mod::engine()}, .mode = v.mode, .eadr = v.eadr}),
          variant_(v) {}

    bool buffered(unsigned, unsigned) const override {
        return variant_.when == mod::durability::by_next_section;
    }
    void describe(pool& p, state& s) override {
        mod::store& store = mod::store::in(p);
        s.expect(store.wait_for_trace().ok(), "the trace finds whole nodes");
        show(p, s);
        expect_whole(p, store, s);
        if (used_afterwards_) {
            use(p, s);
            expect_whole(p, store, s);
        }
        store.for_each_block(
            [](void* to, const void* block) { static_cast<state*>(to)->object(block); }, &s);
    }

protected:
    /// Shows the structures.
    virtual void show(pool& p, state& s) = 0;
    /// Nodes that can be reached from all roots.
    virtual std::uint64_t reachable(pool& p) = 0;
    /// Goes on with a pool that was shown; the results are no part of the state.
    virtual void use(pool&, state&) {}
    /// Parents of families: nodes too, once a member has been committed.
    static std::uint64_t parents(pool& p) {
        const mod::store::impl& in = mod::store::in(p).internals();
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; in.super() != nullptr && i < in.super()->cell_count; ++i) {
            const mod::cell& c = in.cells()[i];
            sum += c.kind == mod::builtin_kind::family && c.word != 0 ? 1 : 0;
        }
        return sum;
    }
    void use_afterwards() noexcept { used_afterwards_ = true; }

    template <class Opened> auto* opened(Opened&& root) const {
        HF_ASSERT(static_cast<bool>(root));
        (*root)->set_durability(variant_.when);
        return *root;
    }
    const mod_variant& variant() const noexcept { return variant_; }

private:
    void expect_whole(pool& p, mod::store& store, state& s) {
        s.expect(store.verify().ok(), "every reference leads to a whole node");
        s.expect(store.collect().ok(), "what is retired can be collected");
        const mod::store_account account = store.account();
        s.expect(account.retired == 0, "nothing retired is left after a collection");
        s.expect(account.nodes == reachable(p), "the nodes in use are those that are reached");
    }
    mod_variant variant_;
    bool used_afterwards_ = false;
};

/// Every variant of a program, "mod/<what>/<variant>".
template <class Program, class... Args>
bool add_variants(const std::string& what, const Args&... args) {
    for (const mod_variant& v : mod_variants)
        add("mod/" + what + "/" + v.name, std::make_unique<Program>(v, args...));
    return true;
}

} // namespace hf::crash
