// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list that is linked both ways, as plain code in sections. The links back, a position and the
// count follow from the links forward, as derived.hpp declares to the compiler. Insertions and
// removals at either end and between.
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/derived.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using word = std::uint64_t;

struct node {
    node* next;
    word value;
    word between[6]; // what is lazy has a line of its own
    node* previous;
    word sum; // of the values from here to the end
};
struct list {
    node* first;
    word between[7];
    word count;
};

word sum_from(const node& at) { return at.value + (at.next != nullptr ? at.next->sum : 0); }

using recovery = hf::derived::recovery<
    hf::derived::links<&list::first, &node::next>, hf::derived::parent<&node::previous>,
    hf::derived::value<&node::sum, sum_from>, hf::derived::count<&list::count>>;

/// The node at a place; null: none.
node* at(const list* in, word place) {
    node* found = in->first;
    while (found != nullptr && place-- != 0) found = found->next;
    return found;
}

/// Sums again from 'last' back to the first.
void sum_up(node* last) noexcept {
    for (node* each = last; each != nullptr; each = each->previous) each->sum = sum_from(*each);
}

HF_TXFUNC bool insert(list* in, word place, word value) noexcept {
    node* previous = place == 0 ? nullptr : at(in, place - 1);
    node* next = previous == nullptr ? in->first : previous->next;
    node* one = hf::make<node>();
    if (one == nullptr) return false;
    one->next = next;
    one->value = value;
    one->previous = previous;
    if (next != nullptr) next->previous = one;
    (previous == nullptr ? in->first : previous->next) = one;
    sum_up(one);
    ++in->count;
    return true;
}

HF_TXFUNC void remove(list* in, word place) noexcept {
    node* one = at(in, place);
    node* previous = one->previous;
    if (one->next != nullptr) one->next->previous = previous;
    (previous == nullptr ? in->first : previous->next) = one->next;
    sum_up(previous);
    --in->count;
    hf::destroy(one);
}

struct step {
    bool removes;
    word place;
};

class list_program final : public hf::crash::pool_program {
public:
    list_program(std::vector<step> steps, bool rebuilds)
        : pool_program({.layout = "crash/derived",
                        .engines = {rebuilds ? hf::selective::engine({.rebuild = recovery::rebuild})
                                             : hf::selective::engine()},
                        .max_threads = 64}),
          steps_(std::move(steps)) {}
    void setup(hf::pool& p) override {
        for (word i = 0; i < 3; ++i) insert(p.root<list>(), i, 10 + i);
    }
    unsigned operations(unsigned) const override { return static_cast<unsigned>(steps_.size()); }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (steps_[i].removes) remove(p.root<list>(), steps_[i].place);
        else insert(p.root<list>(), steps_[i].place, 20 + i);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        list* in = p.root<list>();
        s.expect(recovery::holds(p, *in), "what follows from the links");
        const node* previous = nullptr;
        word nodes = 0;
        for (const node* each = in->first; each != nullptr; each = each->next, ++nodes) {
            s.object(each);
            s.add(each->value);
            s.expect(each->previous == previous, "the way back");
            s.expect(each->sum == sum_from(*each), "the sum");
            previous = each;
        }
        s.expect(nodes == in->count, "the count");
    }

private:
    const std::vector<step> steps_;
};

[[maybe_unused]] const bool added = [] {
    const auto add = [](const std::string& name, const std::vector<step>& steps) {
        hf::crash::add("derived/" + name, std::make_unique<list_program>(steps, true));
        hf::crash::add("derived/" + name + ", logged",
                       std::make_unique<list_program>(steps, false));
    };
    constexpr bool removes = true;
    add("inserted first, between and last", {{!removes, 0}, {!removes, 2}, {!removes, 5}});
    add("removed between, first and last", {{removes, 1}, {removes, 0}, {removes, 0}});
    add("removed and inserted again", {{removes, 1}, {!removes, 1}});
    return true;
}();

} // namespace
