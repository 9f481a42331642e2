// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that recurse, of engines justdo and ido: a tree is built, summed and added to, each call
// with a frame of its own.
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>

#include <string>

namespace {

struct node {
    node* left;
    node* right;
    std::uint64_t key, sum;
};
struct forest {
    node* root;
    std::uint64_t count;
};

__attribute__((noinline)) node* build(forest* in, std::uint64_t depth, std::uint64_t key) noexcept {
    if (depth == 0) return nullptr;
    node* const made = hf::make<node>(nullptr, nullptr, key, 0ul);
    if (made == nullptr) return nullptr;
    in->count += 1;
    made->left = build(in, depth - 1, 2 * key);
    made->right = build(in, depth - 1, 2 * key + 1);
    return made;
}
__attribute__((noinline)) std::uint64_t add_up(node* n) noexcept {
    if (n == nullptr) return 0;
    n->sum += add_up(n->left) + add_up(n->right) + n->key;
    n->key ^= n->sum;
    return n->sum;
}
// Some of the functions that its loop calls return without having stored anything.
__attribute__((noinline)) void spread(node* n, std::uint64_t by, std::uint64_t times) noexcept {
    if (n == nullptr) return;
    for (std::uint64_t i = 0; i < times; ++i) {
        n->sum += by + i;
        spread(i % 2 == 0 ? n->left : n->right, by * 2, times);
    }
}

HF_TXFUNC void plant(forest* in, std::uint64_t depth) noexcept { in->root = build(in, depth, 1); }
HF_TXFUNC void count(forest* in) noexcept { in->count = add_up(in->root); }
HF_TXFUNC void add_to_all(forest* in, std::uint64_t times) noexcept { spread(in->root, 1, times); }

class recursion final : public hf::crash::pool_program {
public:
    explicit recursion(hf::mode mode)
        : pool_program({.layout = "crash/recursion",
                        .engines = hf::engines_of_build(),
                        .mode = mode,
                        .max_threads = 1}) {}

    void setup(hf::pool& p) override { p.root<forest>(); }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (i == 0) plant(p.root<forest>(), 2);
        else if (i == 1) count(p.root<forest>());
        else add_to_all(p.root<forest>(), 4);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const forest* const in = p.root<forest>();
        s.add(in->count);
        add(in->root, s);
    }

private:
    static void add(const node* n, hf::crash::state& s) {
        s.add(n != nullptr);
        if (n == nullptr) return;
        s.object(n);
        s.add(n->key);
        s.add(n->sum);
        add(n->left, s);
        add(n->right, s);
    }
};

[[maybe_unused]] const bool added = [] {
    const std::string engine(hf::engine_of_build());
    hf::crash::add("recursion/pmem/" + engine, std::make_unique<recursion>(hf::mode::pmem));
    hf::crash::add("recursion/process/" + engine, std::make_unique<recursion>(hf::mode::process));
    return true;
}();

} // namespace
