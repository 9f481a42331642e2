// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `holdfast crash --races` says of a forgotten lock. For docs/guide/crash-checking.md.
#include <holdfast/holdfast.hpp>
#include <holdfast/author/crash.hpp>

#include <mutex>

namespace {

// [race]
struct counter {
    hf::mutex lock;
    long value;
};

HF_TXFUNC void add(counter* c, long n) noexcept { c->value += n; }

void add_under_lock(counter* c) {
    const std::scoped_lock held{c->lock};
    add(c, 1);
}
void add_in_a_hurry(counter* c) { add(c, 10); }
// [/race]

class two_adders final : public hf::crash::program {
    hf::open_options options() const override {
        hf::open_options o;
        o.layout = "counter/1";
        o.create_bytes = o.max_bytes = 64 << 10;
        o.max_threads = 2;
        o.engines = hf::engines_of_build();
        return o;
    }
    void setup(hf::pool& p) override { p.root<counter>(); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned thread, unsigned) override {
        auto* const c = p.root<counter>();
        if (thread == 0) add_under_lock(c);
        else add_in_a_hurry(c);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        s.add(static_cast<std::uint64_t>(p.root<counter>()->value));
    }
};
HF_CRASH_PROGRAM(two_adders, "two adders");

} // namespace
