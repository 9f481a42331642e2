// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache: puts with and without evictions, one that several entries make room for, a new time to
// live, an entry that has expired, erasing, and clearing. The next open counts what a crash left;
// that keeps within the bound, and can be used.
#include "mod_program.hpp"
#include <mod/kinds.hpp>

#include <holdfast/mod/cache.hpp>

#include <map>
#include <string>

namespace {

using namespace hf;
using namespace hf::crash;
using namespace std::chrono_literals;
using u64 = std::uint64_t;

constexpr u64 bound_bytes = 8 * 96; // eight of the small entries

u64 now_s = 1000;
u64 program_clock() noexcept { return now_s; }

class one_cache final : public mod_program {
public:
    explicit one_cache(const mod_variant& v) : mod_program(v) { use_afterwards(); }
    /// All of it once before, so that there are arenas of each size.
    void setup(pool& p) override {
        start_s_ = 1000;
        for (unsigned i = 0; i < operations(0); ++i) run(p, 0, i);
        expect(open(p).clear());
        fill(p);
        start_s_ = 2000;
    }
    unsigned operations(unsigned) const override { return 8; }
    void run(pool& p, unsigned, unsigned i) override {
        now_s = start_s_ + i;
        mod::cache c = open(p);
        if (i == 0) expect(c.put("first", value(1)));
        if (i == 1) expect(c.put("0", value(2), 2s));
        if (i == 2) HF_ASSERT(*c.touch("0", 2s));
        if (i == 3) expect(c.put("large", std::string(300, 'l'))); // several go
        if (i == 4) {
            HF_ASSERT(!*c.add("large", "not stored") && !*c.replace("none", "not stored"));
            HF_ASSERT(*c.erase("large"));
        }
        if (i == 5) HF_ASSERT(*c.add("0", value(3))); // it has expired, or was evicted
        if (i == 6) expect(c.clear());
        if (i == 7) HF_ASSERT(*c.add("last", value(4)));
    }

private:
    static std::string value(u64 n) { return std::string(50, static_cast<char>('a' + n)); }
    static void expect(const status& outcome) { HF_ASSERT(outcome.ok()); }
    mod::cache open(pool& p) const {
        auto c = mod::cache::open(
            p, "one",
            {.max_bytes = bound_bytes, .when_durable = variant().when, .clock_s = program_clock});
        HF_ASSERT(static_cast<bool>(c));
        return *c;
    }
    void fill(pool& p) {
        mod::cache c = open(p);
        for (u64 i = 0; i < 8; ++i) expect(c.put(std::to_string(i), value(i)));
        HF_ASSERT(c.size() == 8 && c.bytes() == bound_bytes);
    }
    static std::map<std::string, std::string> contents(const mod::cache& c) {
        std::map<std::string, std::string> all;
        c.for_each([&](std::string_view key, std::string_view value) {
            return all.emplace(key, value).second;
        });
        return all;
    }
    void show(pool& p, state& s) override {
        now_s = 0; // the newest entry's time counts, and nothing has expired beside it
        const mod::cache c = open(p);
        u64 bytes = 0;
        for (const auto& [key, value] : contents(c)) {
            s.add(key), s.add(value);
            s.expect(c.get(key) == value, "an entry is found under its key");
            bytes += c.bytes_of(key.size(), value.size());
        }
        s.expect(bytes <= c.bytes() && c.bytes() <= bound_bytes, "the bound holds");
    }
    std::uint64_t reachable(pool& p) override {
        node_census found(mod::store::in(p));
        found.add(*open(p).its_root(), mod::detail::cache_kind);
        return found.count();
    }
    void use(pool& p, state& s) override {
        mod::cache c = open(p);
        const auto before = contents(c);
        for (const auto& [key, value] : before) expect(c.put(key, value)); // in place of the same
        if (c.bytes() + c.bytes_of(4, 50) <= bound_bytes) {
            expect(c.put("used", value(5)));
            HF_ASSERT(*c.erase("used"));
        }
        s.expect(contents(c) == before, "what was recovered can be used");
    }
    u64 start_s_ = 0;
};

[[maybe_unused]] const bool added = add_variants<one_cache>("cache");

} // namespace
