// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list whose nodes are filled before their section, past the caches (hf::staged::copy_words),
// built once per engine: the section that links a node logs its address, and its bytes are durable
// with that.
#include <check/pool_program.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace {

struct node {
    node* next;
    std::uint64_t value[12]; // one number over and over, across a line's end
};
struct list {
    node* newest;
    std::uint64_t count;
};

HF_TXFUNC void link(list* to, node* staged, std::uint64_t count) noexcept {
    hf::staged::adopt(staged);
    to->newest = staged;
    to->count = count;
}

HF_TXFUNC void drop(list* from) noexcept {
    node* gone = from->newest;
    from->newest = gone->next;
    --from->count;
    hf::destroy(gone);
}

void push(list* to, std::uint64_t number) {
    node image{to->newest, {}};
    for (std::uint64_t& word : image.value) word = number;
    hf::staged fresh = hf::staged::near(to, sizeof(node));
    if (!fresh) return;
    hf::staged::copy_words(fresh.get(), &image, sizeof image);
    link(to, fresh.as<node>(), to->count + 1);
    fresh.release();
}

/// 'steps': 'i' pushes, 'd' drops.
class staged_program final : public hf::crash::pool_program {
public:
    staged_program(unsigned before, std::string steps)
        : pool_program({.layout = "crash/staged", .engines = hf::engines_of_build()}),
          before_(before), steps_(std::move(steps)) {}

    void setup(hf::pool& p) override {
        for (unsigned i = 0; i < before_; ++i) push(p.root<list>(), 1 + i);
    }
    unsigned operations(unsigned) const override { return static_cast<unsigned>(steps_.size()); }
    void run(hf::pool& p, unsigned, unsigned i) override {
        if (steps_[i] == 'i') push(p.root<list>(), 100 + i);
        else drop(p.root<list>());
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* l = p.root<list>();
        std::uint64_t nodes = 0;
        for (const node* each = l->newest; each != nullptr && nodes <= l->count;
             each = each->next) {
            ++nodes;
            s.object(each);
            for (const std::uint64_t word : each->value) s.add(word);
        }
        s.expect(nodes == l->count, "the count of nodes");
    }

private:
    unsigned before_;
    std::string steps_;
};

[[maybe_unused]] const bool added = [] {
    const auto add = [](const char* what, unsigned before, const char* steps) {
        hf::crash::add(std::string("staged/") + what + "/" + std::string(hf::engine_of_build()),
                       std::make_unique<staged_program>(before, steps));
    };
    add("push", 0, "iii");
    add("drop and push", 2, "didi"); // in freed memory
    return true;
}();

} // namespace
