// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sorted list whose order is a function pointer, changed by objects with virtual functions: what
// the sections store is stored by functions that they call by address. Engine redo's alone.
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>

namespace {

struct item {
    item* next;
    std::uint64_t value;
};
struct root {
    item* first;
    std::uint64_t count;
};

using order = bool (*)(const item*, const item*);
bool upwards(const item* a, const item* b) { return a->value < b->value; }

class change {
public:
    virtual ~change() = default;
    virtual void make(root* r, order before) const = 0;
};
class insertion final : public change {
public:
    explicit insertion(std::uint64_t value) : value_(value) {}
    void make(root* r, order before) const override {
        item* const i = hf::make<item>(nullptr, value_);
        if (i == nullptr) return;
        item** at = &r->first;
        while (*at != nullptr && before(*at, i)) at = &(*at)->next;
        i->next = *at;
        *at = i;
        ++r->count;
    }

private:
    std::uint64_t value_;
};
class doubling final : public change {
public:
    void make(root* r, order) const override {
        for (item* i = r->first; i != nullptr; i = i->next) i->value *= 2;
    }
};
class removal final : public change {
public:
    void make(root* r, order) const override {
        item* const gone = r->first;
        if (gone == nullptr) return;
        r->first = gone->next;
        --r->count;
        hf::destroy(gone);
    }
};

HF_TXFUNC void apply(root* r, const change* const* changes, unsigned count, order before) {
    for (unsigned i = 0; i < count; ++i) changes[i]->make(r, before);
}

class indirect_program final : public hf::crash::pool_program {
public:
    indirect_program()
        : pool_program({.layout = "crash/indirect", .engines = hf::engines_of_build()}) {}
    void setup(hf::pool& p) override {
        const insertion one(20), other(10);
        const change* const all[] = {&one, &other};
        apply(p.root<root>(), all, 2, upwards);
    }
    unsigned operations(unsigned) const override { return 2; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        const insertion middle(15), last(50);
        const doubling twice;
        const removal first;
        const change* const one[] = {&middle, &twice};
        const change* const other[] = {&first, &last, &twice};
        if (i == 0) apply(p.root<root>(), one, 2, upwards);
        else apply(p.root<root>(), other, 3, upwards);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* r = p.root<root>();
        std::uint64_t count = 0;
        for (const item* i = r->first; i != nullptr; i = i->next) {
            s.expect(i->next == nullptr || i->value <= i->next->value, "the list is in order");
            s.add(i->value);
            s.object(i);
            ++count;
        }
        s.expect(count == r->count, "the count is the list's");
    }
};

[[maybe_unused]] const bool added =
    (hf::crash::add("indirect calls", std::make_unique<indirect_program>()), true);

} // namespace
