// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bank of the examples, built once per engine: two locks a transfer, all kinds of pairs.
#include <check/pool_program.hpp>

#include <holdfast/engines.hpp>

#include <examples/bank.hpp>

namespace {

class bank_program : public hf::crash::pool_program {
public:
    bank_program() : pool_program({.layout = bank::layout, .engines = hf::engines_of_build()}) {}
    void setup(hf::pool& p) override { bank::create(p.root<bank::branch>(), 3, 100); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* b = p.root<bank::branch>();
        s.expect(bank::total(b) == static_cast<std::int64_t>(100 * b->count), "no cents are lost");
        for (std::uint64_t i = 0; i < b->count; ++i)
            s.add(static_cast<std::uint64_t>(b->accounts[i].cents));
        if (b->accounts != nullptr) s.object(b->accounts);
    }
};

class bank_create final : public bank_program {
    void setup(hf::pool& p) override { p.root<bank::branch>(); }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override {
        bank::create(p.root<bank::branch>(), 3, 100);
    }
};

class bank_transfer final : public bank_program {
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        bank::transfer(p.root<bank::branch>(), i, (i + 1) % 3, 10 + i);
    }
};

/// Transfers that share an account: in any order, both or one or none.
class bank_two_threads final : public bank_program {
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        if (thread == 0) bank::transfer(p.root<bank::branch>(), 0, 1, 5);
        else bank::transfer(p.root<bank::branch>(), 1, 2, 7);
    }
};

class bank_apart final : public bank_program {
    void setup(hf::pool& p) override { bank::create(p.root<bank::branch>(), 4, 100); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        bank::transfer(p.root<bank::branch>(), 2 * thread, 2 * thread + 1, 5);
    }
};

[[maybe_unused]] const bool added = [] {
    const std::string engine(hf::engine_of_build());
    hf::crash::add("bank/create/" + engine, std::make_unique<bank_create>());
    hf::crash::add("bank/transfer/" + engine, std::make_unique<bank_transfer>());
    hf::crash::add("bank/two threads/" + engine, std::make_unique<bank_two_threads>());
    hf::crash::add("bank/apart/" + engine, std::make_unique<bank_apart>());
    return true;
}();

} // namespace
