// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The crash program of queue.hpp: what to run, and what to look at afterwards. Built with
// holdfast_crash_program(), run with `holdfast crash`.
#include "queue.hpp"

#include <holdfast/clobber.hpp>
#include <holdfast/author/crash.hpp>

// [program]
class queue_program : public hf::crash::program {
public:
    hf::open_options options() const override {
        hf::open_options o;
        o.layout = "queue/1";
        o.create_bytes = o.max_bytes = 64 << 10;     // small pools are explored faster
        o.mode = hf::mode::pmem;                     // power failures; the caches are lost
        o.max_threads = 1;
        o.engines = {hf::clobber::engine()};
        return o;
    }
    void setup(hf::pool& p) override { queue::put(p.root<queue::jobs>(), 0); }
    unsigned operations(unsigned) const override { return 4; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        auto* q = p.root<queue::jobs>();
        if (i == 1) queue::take(q);
        else queue::put(q, i + 1);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* q = p.root<queue::jobs>();
        s.expect(q->put - q->taken <= queue::jobs::capacity, "at most 'capacity' jobs");
        s.add(q->put - q->taken);
        for (std::uint64_t i = q->taken; i != q->put; ++i) {
            const char* text = q->text[i % queue::jobs::capacity];
            s.object(text);                          // allocated, and nothing else is: no leak
            s.add(static_cast<std::uint64_t>(text[0]));
        }
    }
};
HF_CRASH_PROGRAM(queue_program, "queue");
// [/program]
