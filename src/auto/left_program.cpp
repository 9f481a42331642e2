// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that end early, between others: by an exception that leaves them, by hf::abort_section,
// and by an exception that they catch, after which they go on. Where the medium keeps order they
// have stored in place by then.
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/tx.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>

namespace {

constexpr unsigned words_count = 9;

struct item {
    item* next;
    std::uint64_t value;
};
struct root {
    item* first;
    std::uint64_t count, sum;
    std::uint64_t words[words_count];
};

struct early {
    std::uint64_t value;
};

void push(root* r, std::uint64_t value) {
    item* const i = hf::make<item>(r->first, value);
    if (i == nullptr) throw early{0};
    r->first = i;
    ++r->count;
    r->sum += value;
}
void pop(root* r) {
    item* const gone = r->first;
    r->first = gone->next;
    --r->count;
    r->sum -= gone->value;
    hf::destroy(gone);
}

/// Throws what it finds too large, when everything else is done.
HF_TXFUNC void push_all(root* r, std::uint64_t first, std::uint64_t count, std::uint64_t largest) {
    for (std::uint64_t value = first; value < first + count; ++value) push(r, value);
    for (std::uint64_t& word : r->words) word += first;
    if (first + count > largest) throw early{first};
}
HF_TXFUNC void pop_or_not(root* r, bool enough) {
    pop(r);
    for (std::uint64_t& word : r->words) word += 100;
    push(r, 77);
    if (!enough) hf::abort_section();
}
HF_TXFUNC void add_or_not(root* r, std::uint64_t more, bool enough) {
    for (std::uint64_t& word : r->words) word += more;
    if (!enough) hf::abort_section();
}
HF_TXFUNC void catches(root* r) {
    for (std::uint64_t value = 1; value < 4; ++value) try {
            pop(r);
            if (value == 2) throw early{value};
            push(r, value);
        } catch (const early& e) {
            push(r, e.value * 10);
        }
}

class left_program final : public hf::crash::pool_program {
public:
    left_program() : pool_program({.layout = "crash/left", .engines = hf::engines_of_build()}) {}
    void setup(hf::pool& p) override { push_all(p.root<root>(), 1, 3, 10); }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        root* const r = p.root<root>();
        if (i == 0) {
            try {
                push_all(r, 20, 2, 10);
            } catch (const early&) {}
            push_all(r, 5, 1, 10);
        } else if (i == 1) {
            add_or_not(r, 8, false);
            add_or_not(r, 7, true);
        } else if (i == 2) {
            pop_or_not(r, false);
            pop_or_not(r, true);
        } else {
            catches(r);
        }
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* r = p.root<root>();
        std::uint64_t count = 0, sum = 0;
        for (const item* i = r->first; i != nullptr; i = i->next) {
            s.add(i->value);
            s.object(i);
            ++count;
            sum += i->value;
        }
        s.expect(count == r->count && sum == r->sum, "count and sum are the list's");
        for (const std::uint64_t word : r->words)
            s.expect(word == r->words[0], "words go together");
        s.add(r->words[0]);
    }
};

[[maybe_unused]] const bool added =
    (hf::crash::add("left early", std::make_unique<left_program>()), true);

} // namespace
