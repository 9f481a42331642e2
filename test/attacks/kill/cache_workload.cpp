// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One cache that all threads put to, each under keys of its own. A key's value is a function of the
// number of its put. So an entry that is there is the last acknowledged one of its key, or the one
// that was under way. In one pool of three all keys fit, and none may be missing; in the others an
// entry that is missing was evicted, and the bound holds, and enough is left.
// journal: last[key] the number of the last acknowledged put, plus 1; 0 erased. pending[0] the key.
#include "workload.hpp"

#include <holdfast/mod/cache.hpp>

#include <map>
#include <memory>
#include <string>

namespace kill_test {
namespace {

using namespace hf;
using u64 = std::uint64_t;

constexpr u64 keys_max = 400;

/// Whether all keys of all threads fit the cache, and the pool.
bool all_fit = false;

/// Where all fit, an entry of more than 512 bytes takes a chunk of 4 KiB for itself.
u64 max_bytes() { return (all_fit ? 1024 : 256) << 10; }

struct operation {
    u64 key, bytes;
    bool erases, expires;
};
operation operation_of(const journal& log, unsigned thread, u64 n) {
    const u64 r = mix(log.seed, thread, n);
    const bool large = r % 64 == 0 && !all_fit;
    return {(r >> 8) % (all_fit ? 20 : keys_max), (r >> 20) % (large ? 40'000 : 900), r % 16 == 1,
            r % 16 == 2};
}
std::string key_of(unsigned thread, u64 key) {
    return std::to_string(thread) + " " + std::to_string(key);
}
/// What the thread's operation n stores.
std::string value_of(const journal& log, unsigned thread, u64 n) {
    std::string made = std::to_string(n) + ":";
    const u64 bytes = operation_of(log, thread, n).bytes;
    made.resize(std::max<u64>(made.size(), bytes), static_cast<char>('a' + n % 26));
    return made;
}

class cache_load final : public workload {
public:
    const char* name() const override { return "cache"; }
    void shape(open_options& o, u64 round) const override {
        o.layout = "kill-cache/1";
        o.create_bytes = 1 << 20;
        all_fit = round % 3 == 0;
        o.max_bytes = all_fit ? 16 << 20 : round % 2 == 0 ? 2 << 20 : 8 << 20;
        o.engines.push_back(mod::engine());
    }
    void prepare(pool& in, journal& log) override {
        cache_ = std::make_unique<mod::cache>(opened(in, log));
    }
    [[noreturn]] void run(pool&, journal& log, unsigned thread) override {
        thread_journal& mine = log.of[thread];
        for (;;) {
            const u64 n = mine.acked.load();
            const operation o = operation_of(log, thread, n);
            const std::string key = key_of(thread, o.key);
            mine.pending[0] = o.key;
            mine.start();
            const status s =
                o.erases ? erased(key)
                         : cache_->put(key, value_of(log, thread, n),
                                       o.expires ? std::chrono::seconds(1000) : mod::forever);
            if (!s.ok()) log.fail("%s", s.what().c_str()), std::abort();
            mine.last[o.key] = o.erases ? 0 : n + 1;
            mine.ack();
            // The last put is the one that is never evicted before the next.
            if (log.threads == 1 && !o.erases && !cache_->get(key)) log.fail("a put is not there");
        }
    }
    void verify(pool& in, journal& log) override;

private:
    static mod::cache opened(pool& in, journal& log) {
        auto made = mod::cache::open(in, "cache",
                                     {.max_bytes = max_bytes(),
                                      .when_durable = in.mode() == mode::process
                                                          ? mod::durability::by_next_section
                                                          : mod::durability::on_return});
        if (!made) log.fail("%s", made.error().what().c_str()), std::abort();
        return *made;
    }
    status erased(const std::string& key) {
        const auto done = cache_->erase(key);
        return done ? status() : done.error();
    }
    std::unique_ptr<mod::cache> cache_;
};

void cache_load::verify(pool& in, journal& log) {
    cache_.reset(); // of an earlier life, in this process
    const mod::cache is = opened(in, log);
    u64 bytes = 0;
    std::map<std::string, std::string, std::less<>> found;
    is.for_each([&](std::string_view key, std::string_view value) {
        bytes += is.bytes_of(key.size(), value.size());
        found.emplace(key, value);
        return true;
    });
    if (bytes != is.bytes() || found.size() != is.size())
        log.fail("%llu bytes of %zu entries are counted as %llu",
                 static_cast<unsigned long long>(bytes), found.size(),
                 static_cast<unsigned long long>(is.bytes()));
    if (is.bytes() > max_bytes())
        log.fail("%llu bytes are more than the bound", static_cast<unsigned long long>(is.bytes()));
    if (const status whole = mod::store::in(in).verify(); !whole.ok())
        log.fail("%s", whole.what().c_str());
    std::size_t known = 0;
    u64 acknowledged_bytes = 0;
    for (unsigned thread = 0; thread < log.threads; ++thread) {
        thread_journal& mine = log.of[thread];
        const u64 next = mine.acked.load();
        for (u64 key = 0; key < keys_max; ++key) {
            const bool under_way = mine.unfinished() && mine.pending[0] == key;
            const u64 last = mine.last[key];
            if (last != 0)
                acknowledged_bytes +=
                    is.bytes_of(key_of(thread, key).size(), value_of(log, thread, last - 1).size());
            const auto at = found.find(key_of(thread, key));
            if (at == found.end()) {
                const bool erased = under_way && operation_of(log, thread, next).erases;
                if (last == 0 || erased || !all_fit) continue; // erased, or evicted
                ++log.lost;
                log.fail("lost: key %llu of thread %u is not there",
                         static_cast<unsigned long long>(key), thread);
                continue;
            }
            ++known;
            const bool old = last != 0 && at->second == value_of(log, thread, last - 1);
            const bool replaced = under_way && !operation_of(log, thread, next).erases &&
                                  at->second == value_of(log, thread, next);
            if (replaced) mine.last[key] = next + 1;
            if (old || replaced) continue;
            ++log.lost;
            log.fail("lost: key %llu of thread %u has another value than its put %llu gave it",
                     static_cast<unsigned long long>(key), thread,
                     static_cast<unsigned long long>(last));
        }
        if (!mine.unfinished()) continue;
        ++log.pending;
        if (operation_of(log, thread, next).erases &&
            !found.contains(key_of(thread, mine.pending[0])))
            mine.last[mine.pending[0]] = 0;
        mine.settle();
    }
    if (known != found.size())
        log.fail("the cache has %zu entries that nobody put", found.size() - known);
    // Nothing is evicted as long as there is room; then no more than the next put needs.
    if (acknowledged_bytes > max_bytes() && is.bytes() < max_bytes() / 2) {
        ++log.lost;
        log.fail("lost: of %llu bytes put %llu are left",
                 static_cast<unsigned long long>(acknowledged_bytes),
                 static_cast<unsigned long long>(is.bytes()));
    }
}

} // namespace

workload& cache_workload() {
    static cache_load it;
    return it;
}

} // namespace kill_test
