// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lock-based structures, built once per engine: a queue, a stack, a priority queue, a map and a
// vector, with one thread and with two.
#include <check/pool_program.hpp>
#include <structures/growing_vector.hpp>
#include <structures/list_map.hpp>
#include <structures/locked_stack.hpp>
#include <structures/sorted_list.hpp>
#include <structures/two_lock_queue.hpp>

#include <holdfast/engines.hpp>

#include <string>
#include <utility>
#include <vector>

namespace {

namespace structures = hf::structures;
using word = std::uint64_t;

/// An operation in the structure's own terms.
struct step {
    enum kind { in, out, least, change } what;
    word key = 0, value = 0;
};

void take(structures::two_lock_queue<word>& q, const step& s) {
    word found = 0;
    if (s.what == step::in) q.enqueue(s.key);
    else q.dequeue(&found);
}
void take(structures::locked_stack<word>& stack, const step& s) {
    word found = 0;
    if (s.what == step::in) stack.push(s.key);
    else stack.pop(&found);
}
void take(structures::sorted_list<word, word>& list, const step& s) {
    word key = 0, value = 0;
    if (s.what == step::in) list.insert(s.key, s.value);
    else if (s.what == step::out) list.erase(s.key);
    else list.remove_min(&key, &value);
}
using map = structures::list_map<word, word, 2>;
void take(map& m, const step& s) {
    if (s.what == step::in) m.insert(s.key, s.value);
    else if (s.what == step::change) m.replace(s.key, s.value);
    else m.erase(s.key);
}
bool changed = false; // the last 'change' of a vector found its element
void take(structures::growing_vector& v, const step& s) {
    if (s.what == step::in) v.push_back(s.value);
    else if (s.what == step::change) changed = v.set(s.key, s.value);
    else if (s.what == step::out || changed) v.set(s.key, s.value);
}

template <class Structure> class lock_based final : public hf::crash::pool_program {
public:
    using steps = std::vector<step>;
    lock_based(steps before, std::vector<steps> of_threads)
        : pool_program({.layout = "crash/lock based", .engines = hf::engines_of_build()}),
          before_(std::move(before)), of_threads_(std::move(of_threads)) {}

    void setup(hf::pool& p) override {
        for (const step& one : before_) take(*p.root<Structure>(), one);
    }
    unsigned threads() const override { return static_cast<unsigned>(of_threads_.size()); }
    unsigned operations(unsigned thread) const override {
        return static_cast<unsigned>(of_threads_[thread].size());
    }
    void run(hf::pool& p, unsigned thread, unsigned i) override {
        take(*p.root<Structure>(), of_threads_[thread][i]);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const of = p.root<Structure>();
        s.expect(of->check(), "the invariants of the structure");
        of->for_each([&](auto... each) { (s.add(each), ...); });
        of->for_each_block([&](const void* block) { s.object(block); });
    }

private:
    steps before_;
    std::vector<steps> of_threads_;
};

template <class Structure>
void add(const char* name, const char* what, std::vector<step> before,
         std::vector<std::vector<step>> of_threads) {
    hf::crash::add(
        std::string(name) + "/" + what + "/" + std::string(hf::engine_of_build()),
        std::make_unique<lock_based<Structure>>(std::move(before), std::move(of_threads)));
}

[[maybe_unused]] const bool added = [] {
    constexpr auto in = step::in, out = step::out, least = step::least, change = step::change;
    using queue = structures::two_lock_queue<word>;
    add<queue>("queue", "in and out", {}, {{{in, 1}, {in, 2}, {out}, {out}, {in, 3}}});
    add<queue>("queue", "two threads", {{in, 1}}, {{{in, 2}}, {{out}}});
    add<queue>("queue", "two threads, empty", {}, {{{in, 2}}, {{out}}});
    using stack = structures::locked_stack<word>;
    add<stack>("stack", "in and out", {{in, 1}}, {{{in, 2}, {out}, {out}, {in, 3}}});
    add<stack>("stack", "two threads", {{in, 1}}, {{{in, 2}}, {{out}}});
    using list = structures::sorted_list<word, word>;
    add<list>("priority", "in and out", {{in, 5, 50}},
              {{{in, 3, 30}, {in, 7, 70}, {in, 5, 51}, {least}, {out, 7}}});
    add<list>("priority", "two threads", {{in, 5, 50}, {in, 9, 90}}, {{{in, 7, 70}}, {{least}}});
    add<list>("priority", "neighbours", {{in, 5, 50}, {in, 9, 90}}, {{{out, 9}}, {{out, 5}}});
    add<map>("list map", "in and out", {{in, 1, 10}},
             {{{in, 2, 20}, {in, 3, 30}, {in, 1, 11}, {out, 3}}});
    add<map>("list map", "changed", {{in, 1, 10}, {in, 3, 30}},
             {{{change, 3, 31}, {change, 2, 20}, {change, 1, 11}}});
    add<map>("list map", "two threads", {{in, 1, 10}}, {{{in, 1, 11}}, {{out, 1}}});
    using vector = structures::growing_vector;
    add<vector>("vector", "grows", {}, {{{in, 0, 1}, {in, 0, 2}, {out, 0, 9}}});
    add<vector>(
        "vector", "next segment",
        {{in, 0, 1}, {in, 0, 2}, {in, 0, 3}, {in, 0, 4}, {in, 0, 5}, {in, 0, 6}, {in, 0, 7}},
        {{{in, 0, 8}, {in, 0, 9}, {out, 8, 90}}});
    add<vector>("vector", "two threads", {{in, 0, 1}}, {{{in, 0, 2}}, {{out, 0, 9}}});
    // The first element says whether the second one was there to be changed.
    add<vector>("vector", "changed as it is there", {{in, 0, 1}},
                {{{in, 0, 2}}, {{change, 1, 9}, {least, 0, 9}}});
    return true;
}();

} // namespace
