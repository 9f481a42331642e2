// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libc++'s map, unordered_map and vector, changed together by threads with articles of their own:
// one lock, and tables that grow while they are killed. journal: last[k] is the amount of article
// k, 0 without one; pending holds it before the unfinished operation, its place, and after.
#include "workload.hpp"
#include <structures/container_sections.hpp>

namespace kill_test {
namespace {

constexpr std::uint64_t articles = 700; // of each thread

struct root {
    std::byte bytes[containers::root_bytes];
};

std::uint64_t article_of(unsigned thread, std::uint64_t place) {
    return mix(place) << 8 | thread; // out of order
}

class containers_load final : public workload {
public:
    const char* name() const override { return "containers"; }
    void shape(hf::open_options& o, std::uint64_t round) const override {
        o.layout = "kill-containers/1";
        o.create_bytes = round % 2 == 0 ? 1 << 20 : 8 << 20; // the small one grows under fire
        o.max_bytes = 64 << 20;
    }
    void prepare(hf::pool& pool, journal& log) override {
        root* r = pool.root<root>();
        if (r == nullptr || !containers::create(r)) log.fail("cannot make the containers");
    }
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override;
    void verify(hf::pool& pool, journal& log) override;
};

void containers_load::run(hf::pool& pool, journal& log, unsigned thread) {
    root* r = pool.root<root>();
    thread_journal& mine = log.of[thread];
    for (;;) {
        const std::uint64_t n = mine.acked.load(std::memory_order_relaxed);
        const std::uint64_t random = mix(log.seed, thread, n), place = (random >> 32) % articles;
        const unsigned remove_percent = n / 1500 % 2 == 0 ? 20 : 70; // grows and shrinks in turn
        const bool removes = random % 100 < remove_percent;
        const std::uint64_t added = 1 + (random >> 16) % 1000, before = mine.last[place];
        const std::uint64_t after = removes ? 0 : before + added;
        mine.pending[0] = before, mine.pending[1] = place, mine.pending[2] = after;
        mine.start();
        if (removes) {
            if (containers::remove(r, article_of(thread, place)) != (before != 0))
                log.fail("a removal found what is not there, or not what is");
        } else if (containers::add(pool, r, article_of(thread, place), added) != after) {
            log.fail("an addition returned a wrong amount");
        }
        mine.last[place] = after;
        mine.ack();
    }
}

void containers_load::verify(hf::pool& pool, journal& log) {
    root* r = pool.root<root>();
    block_census census(pool);
    if (!census.reach(r, sizeof *r)) log.fail("the root is in no block of its own");
    if (!containers::created(r)) {
        if (log.acknowledged() != 0) log.fail("lost: all containers");
        return census.report_leaks(pool, log);
    }
    if (!containers::whole(r)) log.fail("the containers do not agree");
    std::uint64_t expected = 0;
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& mine = log.of[t];
        if (mine.unfinished()) {
            const std::uint64_t place = mine.pending[1];
            mine.last[place] = mine.pending[0];
            if (containers::amount(r, article_of(t, place)) == mine.pending[2])
                mine.last[place] = mine.pending[2];
            mine.settle();
        }
        for (std::uint64_t place = 0; place < articles; ++place) {
            expected += mine.last[place] != 0 ? 1 : 0;
            const std::uint64_t found = containers::amount(r, article_of(t, place));
            if (found == mine.last[place]) continue;
            ++log.lost;
            log.fail("lost: thread %u article %llu: expected %llu, found %llu", t,
                     static_cast<unsigned long long>(place),
                     static_cast<unsigned long long>(mine.last[place]),
                     static_cast<unsigned long long>(found));
        }
    }
    if (containers::count(r) != expected)
        log.fail("there are %llu articles, expected %llu",
                 static_cast<unsigned long long>(containers::count(r)),
                 static_cast<unsigned long long>(expected));
    struct context {
        block_census& census;
        journal& log;
    } both{census, log};
    containers::for_each_block(r, &both, [](void* to, const void* block, std::size_t bytes) {
        auto& [c, l] = *static_cast<context*>(to);
        if (!c.reach(block, bytes)) l.fail("a container's block at %p is none of its own", block);
    });
    census.report_leaks(pool, log);
}

} // namespace

workload& containers_workload() {
    static containers_load only;
    return only;
}

} // namespace kill_test
