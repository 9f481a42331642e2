// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every structure of MOD, one for each thread: single updates, batches, a stack and a queue that
// are siblings and pass elements on, a map and a vector that change together without being
// siblings. Their contents follow from the operations before, so verification repeats these on
// standard containers.
// journal: only 'started' and 'acked'.
#include "workload.hpp"

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace kill_test {
namespace {

using namespace hf;
using u64 = std::uint64_t;

constexpr std::size_t size_max = 300; // of each structure
constexpr unsigned writers_max = 4;   // a small pool has 24 roots; further threads read

std::string text_of(u64 n) { return std::string(n % 100, static_cast<char>('a' + n % 26)); }

/// A thread's structures.
struct structures {
    mod::map<u64, u64> map;
    mod::set<std::string> set;
    mod::vector<u64> vector;
    mod::stack<u64> stack;
    mod::queue<std::string> queue;

    static structures open(pool& in, unsigned thread, journal& log) {
        const std::string t = std::to_string(thread);
        const std::string names[] = {"map" + t, "set" + t, "vector" + t, "family" + t};
        const auto opened = [&]<class T>(result<T> one) {
            if (!one) log.fail("%s", one.error().what().c_str()), std::fflush(stdout), std::abort();
            return *one;
        };
        const mod::place stack{"stack", names[3], {"stack", "queue"}};
        const mod::place queue{"queue", names[3], {"stack", "queue"}};
        return {opened(mod::map<u64, u64>::open(in, {names[0]})),
                opened(mod::set<std::string>::open(in, {names[1]})),
                opened(mod::vector<u64>::open(in, {names[2]})),
                opened(mod::stack<u64>::open(in, stack)),
                opened(mod::queue<std::string>::open(in, queue))};
    }
};

/// The same in memory.
struct model {
    std::map<u64, u64> map;
    std::set<std::string> set;
    std::vector<u64> vector;
    std::vector<u64> stack;
    std::deque<std::string> queue;
};

enum class op { assign, erase, put, take, append, change, cut, push, batch, pass, pop, both };
struct operation {
    op what;
    u64 key, value;
};
operation operation_of(const journal& log, unsigned thread, u64 n) {
    const u64 r = mix(log.seed, thread, n);
    return {static_cast<op>(r % 12), (r >> 8) % size_max, r >> 20};
}

void apply(model& to, const operation& o) {
    switch (o.what) {
    case op::assign: to.map[o.key] = o.value; break;
    case op::erase: to.map.erase(o.key); break;
    case op::put: to.set.insert(text_of(o.key)); break;
    case op::take: to.set.erase(text_of(o.key)); break;
    case op::append:
        if (to.vector.size() < size_max) to.vector.push_back(o.value);
        break;
    case op::change:
        if (o.key < to.vector.size()) to.vector[o.key] = o.value;
        break;
    case op::cut:
        if (to.vector.size() > size_max / 2)
            to.vector.erase(to.vector.begin(), to.vector.begin() + 40);
        break;
    case op::push:
        if (to.stack.size() < size_max) to.stack.push_back(o.value);
        break;
    case op::batch:
        if (to.queue.size() < size_max)
            for (u64 i = 0; i < 3; ++i) to.queue.push_back(text_of(o.key + i));
        break;
    case op::pass:
        if (to.stack.empty()) break;
        to.queue.push_back(text_of(to.stack.back()));
        to.stack.pop_back();
        break;
    case op::pop:
        if (!to.queue.empty()) to.queue.pop_front();
        break;
    case op::both:
        if (to.vector.empty()) break;
        to.map[o.key] = to.vector.back();
        to.vector.pop_back();
        break;
    }
}

status apply(structures& to, const operation& o) {
    const auto done = [](const auto& outcome) { return outcome ? status() : outcome.error(); };
    switch (o.what) {
    case op::assign: return done(to.map.insert_or_assign(o.key, o.value));
    case op::erase: return done(to.map.erase(o.key));
    case op::put: return done(to.set.insert(text_of(o.key)));
    case op::take: return done(to.set.erase(text_of(o.key)));
    case op::append: return to.vector.size() < size_max ? to.vector.push_back(o.value) : status();
    case op::change: return o.key < to.vector.size() ? to.vector.set(o.key, o.value) : status();
    case op::cut: return to.vector.size() > size_max / 2 ? to.vector.drop(40) : status();
    case op::push: return to.stack.size() < size_max ? to.stack.push(o.value) : status();
    case op::batch:
        if (to.queue.size() >= size_max) return {};
        return to.queue.update([&](auto& batch) {
            for (u64 i = 0; i < 3; ++i) batch.push(text_of(o.key + i));
        });
    case op::pass:
        return mod::update(std::tie(to.stack, to.queue), [](auto& stack, auto& queue) {
            if (const auto top = stack.pop()) queue.push(text_of(*top));
        });
    case op::pop: return to.queue.empty() ? status() : done(to.queue.pop());
    case op::both:
        return mod::update(std::tie(to.map, to.vector), [&](auto& map, auto& vector) {
            if (vector.empty()) return;
            map.insert_or_assign(o.key, vector.back());
            vector.pop_back();
        });
    }
    return {};
}

/// The first difference; null: none.
const char* difference(const structures& is, const model& expected) {
    std::map<u64, u64> map;
    for (const auto& [key, value] : is.map) map.emplace(key, value);
    if (map != expected.map || is.map.size() != map.size()) return "map";
    std::set<std::string> set;
    for (const auto key : is.set) set.emplace(key);
    if (set != expected.set || is.set.size() != set.size()) return "set";
    if (!std::ranges::equal(is.vector, expected.vector)) return "vector";
    std::vector<u64> stack;
    for (const u64 value : is.stack.snapshot()) stack.insert(stack.begin(), value);
    if (stack != expected.stack) return "stack";
    std::deque<std::string> queue;
    for (const auto value : is.queue.snapshot()) queue.emplace_back(value);
    return queue != expected.queue ? "queue" : nullptr;
}

class mod_load final : public workload {
public:
    const char* name() const override { return "mod"; }
    void shape(open_options& o, u64 round) const override {
        o.layout = "kill-mod/1";
        o.create_bytes = round % 2 == 0 ? 1 << 20 : 8 << 20; // the small one grows under fire
        o.max_bytes = 64 << 20;
        o.engines.push_back(mod::engine());
    }
    void prepare(pool& in, journal& log) override {
        for (unsigned t = 0; t < writers(log); ++t) (void)structures::open(in, t, log);
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        structures mine = structures::open(in, thread % writers_max, log);
        if (thread >= writers_max) read(mine, log);
        thread_journal& journal = log.of[thread];
        for (;;) {
            const operation o = operation_of(log, thread, journal.acked.load());
            journal.start();
            if (const status s = apply(mine, o); !s.ok())
                log.fail("%s", s.what().c_str()), std::abort();
            journal.ack();
        }
    }
    void verify(pool& in, journal& log) override;

private:
    static unsigned writers(const journal& log) { return std::min(log.threads, writers_max); }
    /// Snapshots, beside their writer.
    [[noreturn]] static void read(const structures& of, journal& log) {
        for (;;) {
            const auto map = of.map.snapshot();
            for (const auto& [key, value] : map)
                if (!map.contains(key)) log.fail("a snapshot of a map is torn");
            const auto queue = of.queue.snapshot();
            for (const auto text : queue)
                if (!text.empty() && text.front() != text.back())
                    log.fail("a snapshot of a queue is torn");
        }
    }
    static void verify(pool& in, journal& log, unsigned thread);
};

void mod_load::verify(pool& in, journal& log, unsigned thread) {
    thread_journal& mine = log.of[thread];
    const structures is = structures::open(in, thread, log);
    model expected;
    for (u64 n = 0; n < mine.acked.load(); ++n) apply(expected, operation_of(log, thread, n));
    const char* wrong = difference(is, expected);
    if (mine.unfinished()) {
        ++log.pending;
        if (wrong == nullptr) {
            ++log.discarded; // or it changed nothing
            mine.started.store(mine.acked.load());
            return;
        }
        apply(expected, operation_of(log, thread, mine.acked.load()));
        wrong = difference(is, expected);
        mine.settle();
    }
    if (wrong == nullptr) return;
    ++log.lost;
    log.fail("lost: the %s of thread %u is not as %llu operations left it", wrong, thread,
             static_cast<unsigned long long>(mine.acked.load()));
}

void mod_load::verify(pool& in, journal& log) {
    mod::store& store = mod::store::in(in);
    // At once, while the trace still runs; and again when it has given back the free nodes that it
    // found.
    for (unsigned t = 0; t < writers(log) && log.failures == 0; ++t) verify(in, log, t);
    if (const status s = store.wait_for_trace(); !s.ok()) log.fail("trace: %s", s.what().c_str());
    if (const status s = store.collect(); !s.ok()) log.fail("collect: %s", s.what().c_str());
    if (const status s = store.verify(); !s.ok()) log.fail("verify: %s", s.what().c_str());
    for (unsigned t = 0; t < writers(log) && log.failures == 0; ++t) verify(in, log, t);
    struct census_of {
        block_census blocks;
        journal& log;
    } all{block_census(in), log};
    store.for_each_block(
        [](void* to, const void* block) {
            auto& seen = *static_cast<census_of*>(to);
            if (!seen.blocks.reach(block, 1)) seen.log.fail("a block of MOD is not allocated");
        },
        &all);
    all.blocks.report_leaks(in, log);
}

} // namespace

std::vector<workload*> workloads() {
    static mod_load only;
    return {&only, &cache_workload()};
}

} // namespace kill_test
