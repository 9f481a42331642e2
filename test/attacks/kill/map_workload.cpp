// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Insert, overwrite, erase and find in one hash map, or red-black tree, from several threads with
// keys of their own: the locks and the allocator are shared. journal: last[k] is 1 + number of the
// last operation that changed key k, or 0; pending[0] is its value before the unfinished operation,
// pending[1] the key.
#include "workload.hpp"
#include <structures/hash_map.hpp>
#include <structures/rb_tree.hpp>

#include <holdfast/author/selective.hpp>

namespace kill_test {
namespace {

constexpr std::uint64_t keys = 1500; // of each thread

struct value {
    std::uint64_t word[32];
    bool operator==(const value&) const = default;
};
using map = hf::structures::hash_map<std::uint64_t, value>;
using tree = hf::structures::rb_tree<std::uint64_t, value>;

struct operation {
    std::uint64_t key; // within the thread
    bool erases;
    bool reads;
};

operation operation_of(const journal& log, unsigned thread, std::uint64_t n) {
    const std::uint64_t r = mix(log.seed, thread, n);
    // Phases that grow and phases that shrink, so that both blocks and buckets turn over.
    const unsigned erase_percent = n / 2000 % 2 == 0 ? 25 : 60;
    return {(r >> 32) % keys, r % 100 < erase_percent, r % 100 >= 90};
}
std::uint64_t key_of(unsigned thread, std::uint64_t key) {
    return std::uint64_t{thread} << 32 | key;
}
value value_of(const journal& log, unsigned thread, std::uint64_t n) {
    value v;
    for (std::uint64_t i = 0; i < 32; ++i) v.word[i] = mix(log.seed + i, thread, n);
    return v;
}

/// Is the key as operation 'last - 1' left it?
template <class Map>
bool as_left(Map& m, const journal& log, unsigned thread, std::uint64_t key, std::uint64_t last) {
    value found;
    const bool there = m.find(key_of(thread, key), &found);
    if (last == 0 || operation_of(log, thread, last - 1).erases) return !there;
    return there && found == value_of(log, thread, last - 1);
}

/// Counts each kind's blocks: the map's root names its buckets' segments, too.
void take_census(map& m, block_census& census, journal& log);
void take_census(tree& m, block_census& census, journal& log);

template <class Map> class map_load final : public workload {
public:
    explicit map_load(const char* name) : name_(name) {}
    const char* name() const override { return name_; }
    void shape(hf::open_options& o, std::uint64_t round) const override {
        o.layout = "kill-map/1";
        o.create_bytes = round % 2 == 0 ? 1 << 20 : 8 << 20; // the small one grows under fire
        o.max_bytes = (64 << 20) + records_ * record_bytes_max;
    }
    hf::engine_options engines() const override {
        hf::engine_options of;
        if constexpr (requires(Map& map, hf::pool& in) { map.rebuild(in); })
            of.selective.rebuild = [](hf::pool& p) { p.root<Map>()->rebuild(p); };
        return of;
    }
    bool fill(std::uint64_t records) override { return records_ = records, true; }
    void prepare(hf::pool& pool, journal& log) override {
        Map& m = *pool.root<Map>();
        for (std::uint64_t k = log.filled; k < records_; log.filled = ++k)
            if (!m.insert(key_of(threads_max, k), value_of(log, threads_max, k)))
                return log.fail("no room for record %llu", static_cast<unsigned long long>(k));
    }
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override;
    void verify(hf::pool& pool, journal& log) override;

private:
    static constexpr std::uint64_t record_bytes_max =
        640; // with its node, bucket, and room for buckets to double
    const char* name_;
    std::uint64_t records_ = 0;

    /// Counts those records that are there, each as it was put in.
    std::uint64_t verify_filled(Map& m, journal& log) const;
};

template <class Map> void map_load<Map>::run(hf::pool& pool, journal& log, unsigned thread) {
    Map& m = *pool.root<Map>();
    thread_journal& mine = log.of[thread];
    for (;;) {
        const std::uint64_t n = mine.acked.load(std::memory_order_relaxed);
        const operation op = operation_of(log, thread, n);
        mine.pending[0] = mine.last[op.key];
        mine.pending[1] = op.key;
        mine.start();
        bool done = false;
        if (op.reads) {
            if (!as_left(m, log, thread, op.key, mine.last[op.key]))
                log.fail("a live read saw a wrong value");
        } else if (op.erases) {
            m.erase(key_of(thread, op.key));
            done = true;
        } else {
            done = m.insert(key_of(thread, op.key),
                            value_of(log, thread, n)); // false: the pool is full
        }
        if (done) mine.last[op.key] = n + 1;
        mine.ack();
    }
}

template <class Map> void settle(Map& m, journal& log, unsigned thread) {
    thread_journal& mine = log.of[thread];
    if (!mine.unfinished()) return;
    const std::uint64_t n = mine.acked.load(), key = mine.pending[1];
    mine.last[key] = mine.pending[0];
    // An absent value is as right as a whole one; a value that is neither is found with the others.
    if (!operation_of(log, thread, n).reads && !as_left(m, log, thread, key, mine.last[key]) &&
        as_left(m, log, thread, key, n + 1))
        mine.last[key] = n + 1;
    mine.settle();
}

template <class Map> std::uint64_t map_load<Map>::verify_filled(Map& m, journal& log) const {
    value found;
    std::uint64_t k = 0;
    for (; k < records_ && m.find(key_of(threads_max, k), &found); ++k)
        if (!(found == value_of(log, threads_max, k)))
            ++log.lost, log.fail("lost: record %llu", static_cast<unsigned long long>(k));
    if (k < log.filled || k > log.filled + 1)
        ++log.lost, log.fail("%llu records, %llu expected", static_cast<unsigned long long>(k),
                             static_cast<unsigned long long>(log.filled.load()));
    return k;
}

template <class Map> void map_load<Map>::verify(hf::pool& pool, journal& log) {
    Map& m = *pool.root<Map>();
    if (!m.check()) log.fail("the map's invariants do not hold");
    std::uint64_t expected = verify_filled(m, log);
    for (unsigned t = 0; t < log.threads; ++t) {
        settle(m, log, t);
        for (std::uint64_t k = 0; k < keys; ++k) {
            const std::uint64_t last = log.of[t].last[k];
            if (last != 0 && !operation_of(log, t, last - 1).erases) ++expected;
            if (as_left(m, log, t, k, last)) continue;
            ++log.lost;
            log.fail("lost: thread %u key %llu is not as operation %llu left it", t,
                     static_cast<unsigned long long>(k), static_cast<unsigned long long>(last));
        }
    }
    if (m.size() != expected)
        log.fail("the map has %llu keys, expected %llu", static_cast<unsigned long long>(m.size()),
                 static_cast<unsigned long long>(expected));
    std::uint64_t counted = 0;
    m.for_each([&](const std::uint64_t&, const value&) { ++counted; });
    if (counted != expected) log.fail("walking the map finds another number of keys");
    block_census census(pool);
    take_census(m, census, log);
    if (!census.reach(&m, sizeof m)) log.fail("the root is in no block of its own");
    census.report_leaks(pool, log);
}

void take_census(map& m, block_census& census, journal& log) {
    m.for_each([&](const std::uint64_t& key, const value&) {
        const auto* node =
            reinterpret_cast<const std::byte*>(&key) - sizeof(hf::structures::hash_node);
        if (!census.reach(node, sizeof(hf::structures::hash_node) + sizeof key + sizeof(value)))
            log.fail("the node of key %#llx is in no block of its own",
                     static_cast<unsigned long long>(key));
    });
    // The rest belongs to the root: itself, and the segments of buckets that its words name.
    const auto* words = reinterpret_cast<void* const*>(&m);
    for (std::size_t i = 0; i < sizeof m / sizeof *words; ++i) census.reach_if_block(words[i]);
}

void take_census(tree& m, block_census& census, journal& log) {
    m.for_each_block([&](const void* block) {
        if (!census.reach(block, 1)) log.fail("%p is in no block of its own", block);
    });
}

} // namespace

workload& map_workload() {
    static map_load<map> only("map");
    return only;
}

workload& tree_workload() {
    static map_load<tree> only("tree");
    return only;
}

} // namespace kill_test
