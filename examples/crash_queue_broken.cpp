// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the crash checker says of a mistake: an operation that somebody added to queue.hpp in a
// hurry. For docs/guide/crash-checking.md.
#include "queue.hpp"

#include <holdfast/clobber.hpp>
#include <holdfast/author/crash.hpp>

namespace {

// [broken]
/// Gives the newest job away again. (Not failure-atomic, and not durable either.)
void take_back(queue::jobs* q) noexcept {
    q->put -= 1;
    hf_free(q->text[q->put % queue::jobs::capacity]);
}
// [/broken]

class broken_queue final : public hf::crash::program {
    hf::open_options options() const override {
        hf::open_options o;
        o.layout = "queue/1";
        o.create_bytes = o.max_bytes = 64 << 10;
        o.mode = hf::mode::pmem;
        o.max_threads = 1;
        o.engines = {hf::clobber::engine()};
        return o;
    }
    void setup(hf::pool& p) override {
        for (std::uint64_t i = 0; i < 2; ++i) queue::put(p.root<queue::jobs>(), i);
    }
    unsigned operations(unsigned) const override { return 1; }
    void run(hf::pool& p, unsigned, unsigned) override { take_back(p.root<queue::jobs>()); }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* q = p.root<queue::jobs>();
        s.add(q->put - q->taken);
        for (std::uint64_t i = q->taken; i != q->put; ++i)
            s.object(q->text[i % queue::jobs::capacity]);
    }
};
HF_CRASH_PROGRAM(broken_queue, "take back");

} // namespace
