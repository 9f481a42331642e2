// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool of an older layout comes to a newer one when it is opened: elements move from the old root
// to the new one, or are changed where they stand and counted by the cursor; roots of many chunks,
// or none; maps. Instrumented by hand.
#include <base/assert.hpp>
#include <check/pool_program.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/mod/store.hpp>
#include <holdfast/migration.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/undo.hpp>

#include <cstdint>
#include <memory>
#include <tuple>

namespace {

constexpr std::uint64_t elements = 2;

struct node {
    std::uint64_t value;
    node* next;
};
struct old_root {
    node* first;
    std::uint64_t values[elements];
};
struct new_root {
    node* first;
    std::uint64_t sum, count, room[32];
};

template <class T> void store(T* to, T value) {
    hf_undo_log(to, sizeof *to);
    *const_cast<volatile T*>(to) = value;
}

const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc function{HF_ABI_VERSION, 8, 5101, 1, "migrate", "here", schema, 1, nullptr};

template <class F> void section(void* about, F&& stores) {
    hf_undo_begin(&function, &about);
    stores();
    hf_undo_commit();
}

void push(old_root* to, std::uint64_t value) {
    section(to, [&] {
        auto* n = static_cast<node*>(hf_alloc(sizeof(node)));
        store(&n->value, value);
        store(&n->next, to->first);
        store(&to->first, n);
    });
}

class migration_program : public hf::crash::pool_program {
public:
    explicit migration_program(hf::durability sections)
        : pool_program({.layout = "crash/migration/1",
                        .engines = {hf::undo::engine({.durable = sections})}}) {}
    hf::open_options options() const override {
        hf::open_options o = options_;
        o.layout = "crash/migration/2";
        o.migrate = [this](hf::migration& m) { return migrate(m); };
        return o;
    }
    hf::open_options made_with() const override { return options_; }
    unsigned operations(unsigned) const override { return 0; }
    void run(hf::pool&, unsigned, unsigned) override {}

protected:
    virtual hf::status migrate(hf::migration& m) const = 0;
};

/// Each section takes an element from the old list and gives it to the new one.
class moved final : public migration_program {
public:
    using migration_program::migration_program;
    void setup(hf::pool& p) override {
        auto* r = p.root<old_root>();
        for (std::uint64_t i = 1; i <= elements; ++i) push(r, i);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* r = p.root<new_root>();
        std::uint64_t sum = 0;
        for (const node* n = r->first; n != nullptr; n = n->next) {
            s.object(n);
            s.add(n->value);
            sum += n->value;
        }
        s.expect(r->count == elements && r->sum == sum, "count and sum of the new root");
    }

private:
    hf::status migrate(hf::migration& m) const override {
        auto* from = m.in().root<old_root>();
        auto made = m.new_root<new_root>();
        if (!made) return made.error();
        new_root* to = *made;
        while (from->first != nullptr)
            section(to, [&] {
                node* n = from->first;
                store(&from->first, n->next);
                store(&n->next, to->first);
                store(&to->first, n);
                store(&to->sum, to->sum + n->value);
                store(&to->count, to->count + 1);
            });
        return {};
    }
};

/// The root stays; only the cursor shows which of its values are new already.
class in_place final : public migration_program {
public:
    using migration_program::migration_program;
    void setup(hf::pool& p) override {
        auto* r = p.root<old_root>();
        for (std::uint64_t i = 0; i < elements; ++i)
            section(r, [&] { store(&r->values[i], i + 1); });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* r = p.root<old_root>();
        for (std::uint64_t i = 0; i < elements; ++i)
            s.expect(r->values[i] == 10 * (i + 1), "each value changed once");
    }

private:
    hf::status migrate(hf::migration& m) const override {
        auto* r = m.in().root<old_root>();
        for (std::uint64_t* i = m.cursor(); *i < elements;)
            section(r, [&] {
                store(&r->values[*i], 10 * r->values[*i]);
                store(i, *i + 1);
            });
        return {};
    }
};

/// Both roots are runs of chunks; there may be no old one.
class large final : public migration_program {
public:
    explicit large(bool has_old)
        : migration_program(hf::durability::on_return), has_old_(has_old) {}
    void setup(hf::pool& p) override {
        if (!has_old_) return;
        auto* r = p.root<large_old>();
        section(r, [&] { store(&r->last, std::uint64_t{7}); });
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* r = p.root<large_new>();
        s.expect(r->last == 42 && r->room[600] == 0, "the new root's values");
        s.expect(account(p).blocks == 1, "nothing but the new root");
    }

private:
    struct large_old {
        std::uint64_t room[600], last;
    };
    struct large_new {
        std::uint64_t room[1100], last;
    };
    hf::status migrate(hf::migration& m) const override {
        auto made = m.new_root<large_new>();
        if (!made) return made.error();
        const std::uint64_t last =
            has_old_ ? 35 + m.in().root<large_old>()->last : std::uint64_t{42};
        section(*made, [&] { store(&(*made)->last, last); });
        return {};
    }
    const bool has_old_;
};

/// Entries of a MOD map go to one of another type, each by an update of both.
class entries final : public migration_program {
public:
    entries() : migration_program(hf::durability::on_return) {
        options_.create_bytes = options_.max_bytes = hf::operator""_KiB(256);
        options_.engines.push_back(hf::mod::engine());
    }
    void setup(hf::pool& p) override {
        auto map = old_map::open(p, {"old"});
        for (std::uint64_t i = 1; i <= elements; ++i) HF_ASSERT(map->insert_or_assign(i, i));
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        auto from = old_map::open(p, {"old"});
        auto to = new_map::open(p, {"new"});
        s.expect(from && from->empty(), "nothing is left in the old map");
        s.expect(to && to->size() == elements, "each entry is in the new one");
        for (std::uint64_t i = 1; to && i <= elements; ++i)
            s.expect(to->contains(i) && to->get(i)->twice == 2 * i, "with its new value");
        hf::mod::store& store = hf::mod::store::in(p);
        s.expect(store.wait_for_trace().ok() && store.verify().ok(), "the store is whole");
        store.for_each_block(
            [](void* show, const void* block) {
                static_cast<hf::crash::state*>(show)->object(block);
            },
            &s);
    }

private:
    struct pair {
        std::uint64_t value, twice;
    };
    using old_map = hf::mod::map<std::uint64_t, std::uint64_t>;
    using new_map = hf::mod::map<std::uint64_t, pair>;
    hf::status migrate(hf::migration& m) const override {
        auto from = old_map::open(m.in(), {"old"});
        if (!from) return from.error();
        auto to = new_map::open(m.in(), {"new"});
        if (!to) return to.error();
        for (std::uint64_t i = 1; i <= elements; ++i) {
            const auto value = from->get(i);
            if (!value) continue;
            const hf::status s = hf::mod::update(std::tie(*from, *to), [&](auto& old, auto& now) {
                old.erase(i);
                now.insert_or_assign(i, pair{*value, 2 * *value});
            });
            if (!s.ok()) return s;
        }
        return {};
    }
};

[[maybe_unused]] const bool added = [] {
    using hf::durability;
    hf::crash::add("migration/moved", std::make_unique<moved>(durability::on_return));
    hf::crash::add("migration/moved, by the next section",
                   std::make_unique<moved>(durability::by_next_section));
    hf::crash::add("migration/large roots", std::make_unique<large>(true));
    hf::crash::add("migration/no old root", std::make_unique<large>(false));
    hf::crash::add("migration/entries of a map", std::make_unique<entries>());
    hf::crash::add("migration/in place", std::make_unique<in_place>(durability::on_return));
    return true;
}();

} // namespace
