// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hand-instrumented list (section/list_sections.hpp), on both engines and in every domain:
// values preserved in the log, blocks allocated and freed, inputs overwritten.
#include <check/pool_program.hpp>
#include <section/list_sections.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

namespace {

using namespace hf::list_sections;

struct variant {
    const char* name;
    bool clobber;
    hf::mode mode;
    bool eadr;
};

class list_program : public hf::crash::pool_program {
public:
    explicit list_program(const variant& v)
        : pool_program({.layout = "crash/list",
                        .engines = {hf::clobber::engine(), hf::undo::engine()},
                        .mode = v.mode,
                        .eadr = v.eadr}),
          clobber_(v.clobber) {}
    void setup(hf::pool& p) override { p.root<list>(); }
    unsigned operations(unsigned) const override { return 5; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        list* l = p.root<list>();
        if (i == 2 || i == 3) pop(clobber_, l);
        else push(clobber_, l, l->count + 1);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const list* l = p.root<list>();
        std::uint64_t nodes = 0, sum = 0;
        for (const node* n = l->head; n != nullptr && nodes <= l->count; n = n->next) {
            char text[240];
            text_of(n->value, text);
            s.expect(std::memcmp(text, n->text, sizeof text) == 0, "a node's text is whole");
            s.object(n);
            s.add(n->value);
            sum += n->value;
            ++nodes;
        }
        s.expect(nodes == l->count, "count is the number of nodes");
        s.expect(sum == l->sum, "sum is the sum of values");
    }

private:
    bool clobber_;
};

/// Nobody has made the root before the description asks for it: after a failure that is a store
/// like any other, and an operation goes on from there.
class described_first final : public list_program {
public:
    using list_program::list_program;
    void setup(hf::pool&) override {}
    unsigned operations(unsigned) const override { return 1; }
    unsigned operations_after() const override { return 1; }
    void run_after(hf::pool& p, unsigned i) override { run(p, 0, i); }
};

[[maybe_unused]] const bool added = [] {
    for (const variant& v : {variant{"clobber", true, hf::mode::pmem, false},
                             variant{"clobber eadr", true, hf::mode::pmem, true},
                             variant{"clobber process", true, hf::mode::process, false},
                             variant{"undo", false, hf::mode::pmem, false},
                             variant{"undo eadr", false, hf::mode::pmem, true},
                             variant{"undo process", false, hf::mode::process, false}}) {
        hf::crash::add(std::string("list/") + v.name, std::make_unique<list_program>(v));
        if (!v.clobber)
            hf::crash::add(std::string("list/described first/") + v.name,
                           std::make_unique<described_first>(v));
    }
    return true;
}();

} // namespace
