// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What crash programs of MOD have in common: the pool, when an update counts, and what must hold of
// the store whatever a structure shows: the trace is done, every reference holds, and the nodes in
// use are those that can be reached, no more and no fewer.
#pragma once

#include <base/assert.hpp>

#include <holdfast/crash.hpp>
#include <holdfast/mod/store.hpp>

#include <mod/store_impl.hpp>

#include <set>
#include <string>
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

class mod_program : public program {
public:
    explicit mod_program(const mod_variant& v) : variant_(v) {}

    open_options options() const override {
        open_options o;
        o.layout = "crash/mod";
        o.create_bytes = o.max_bytes = 64_KiB;
        o.mode = variant_.mode;
        o.eadr = variant_.eadr;
        o.max_threads = 2;
        o.engines = {mod::engine()};
        return o;
    }
    bool buffered(unsigned, unsigned) const override {
        return variant_.when == mod::durability::by_next_section;
    }
    void describe(pool& p, state& s) final {
        mod::store& store = mod::store::of(p);
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
    /// Goes on with a pool that was shown; what it shows of itself is no part of the state.
    virtual void use(pool&, state&) {}
    /// Parents of families: nodes too, once a member has been committed.
    static std::uint64_t parents(pool& p) {
        const mod::store::impl& in = mod::store::of(p).internals();
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
