// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model finds exactly what the axioms allow, on every litmus test. Both agree with the
// literature. Each rule of the model matters: at least one test detects each broken model, in which
// one rule is broken.
#include <check/litmus/enumerator.hpp>
#include <check/litmus/litmus.hpp>
#include <check/litmus/machine.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <ranges>

namespace hf::check::litmus {
namespace {

constexpr unsigned drawn = 500;

TEST(Litmus, ModelAndEnumeratorAgreeOnEveryTest) {
    const litmus_result r = run_litmus(drawn);
    EXPECT_EQ(r.differences, 0u) << r.text;
    EXPECT_EQ(r.unmet, 0u) << r.text;
    EXPECT_GE(table().size(), 150u);
    EXPECT_EQ(r.tests, table().size() + drawn);
    EXPECT_GE(std::ranges::count_if(table(), [](auto& t) { return !t.expected.empty(); }), 40);
    RecordProperty("tests", static_cast<int>(r.tests));
    RecordProperty("expectations", static_cast<int>(r.expectations));
    RecordProperty("outcomes", static_cast<int>(r.outcomes));
}

TEST(Litmus, TestsAreNotWrittenTwice) {
    std::set<std::string> names, texts;
    for (const litmus_test& t : table()) {
        EXPECT_TRUE(names.insert(t.name).second) << t.name;
        EXPECT_TRUE(texts.insert(std::to_string(static_cast<int>(t.domain)) + t.text).second)
            << t.text;
    }
}

TEST(Litmus, ADifferenceIsShown) {
    const program p = parse("x=1; a=x");
    const outcomes some{.crash = {"01"}, .done = {}, .final = {"11"}};
    const outcomes other{.crash = {"0_"}, .done = {}, .final = {"11"}};
    EXPECT_EQ(difference(p, some, other), "  crash, model only:      x=0 a=1\n"
                                          "  crash, enumerator only: x=0 a=_\n");
    EXPECT_EQ(difference(p, some, some), "");
}

// Broken memories and broken rules -------------------------------------------------------------

struct true_memory : persistent_memory {
    using persistent_memory::persistent_memory;
};
struct flush_completes_at_issue : true_memory {
    using true_memory::true_memory;
    void flush(unsigned, std::size_t line) { flush_now(line); }
};
struct flush_ignored : true_memory {
    using true_memory::true_memory;
    void flush(unsigned, std::size_t) {}
};
struct clflush_ignored : true_memory {
    using true_memory::true_memory;
    void flush_now(std::size_t) {}
};
struct fence_of_any_thread : true_memory {
    using true_memory::true_memory;
    void fence(unsigned) {
        for (unsigned t = 0; t < 3; ++t) true_memory::fence(t);
    }
};
struct fence_ignored : true_memory {
    using true_memory::true_memory;
    void fence(unsigned) {}
};
struct fence_forgets_nt : true_memory { // flushes complete, non-temporal stores do not
    using true_memory::true_memory;
    void nt_store(unsigned, std::size_t at, const void* bytes, std::size_t n) {
        true_memory::nt_store(9, at, bytes, n);
    }
};
struct nt_is_ordinary : true_memory {
    using true_memory::true_memory;
    void nt_store(unsigned, std::size_t at, const void* bytes, std::size_t n) {
        store(at, bytes, n);
    }
};
struct nt_of_same_value_dropped : true_memory {
    using true_memory::true_memory;
    void nt_store(unsigned thread, std::size_t at, const void* bytes, std::size_t n) {
        std::uint64_t value;
        std::memcpy(&value, bytes, sizeof value);
        if (newest(at / line_bytes)[at % line_bytes / word_bytes] != value)
            true_memory::nt_store(thread, at, bytes, n);
    }
};
struct nt_is_durable : true_memory {
    using true_memory::true_memory;
    void nt_store(unsigned, std::size_t at, const void* bytes, std::size_t n) {
        true_memory::nt_store(9, at, bytes, n);
        true_memory::fence(9);
    }
};
struct tears_in_one_order : true_memory { // of a 16-byte store
    using true_memory::true_memory;
    void store(std::size_t at, const void* bytes, std::size_t n) {
        for (std::size_t i = 0; i < n; i += word_bytes)
            true_memory::store(at + i, static_cast<const std::byte*>(bytes) + i, word_bytes);
    }
};
struct words_are_independent : true_memory { // a line persists any mixture of its versions
    using true_memory::true_memory;
    std::vector<line_content> possible(std::size_t line) const {
        const auto versions = true_memory::possible(line);
        std::set<line_content> out(versions.begin(), versions.end());
        for (unsigned w = 0; w < 3; ++w) {
            const auto before = out;
            for (line_content c : before)
                for (const line_content& v : versions) {
                    c[w] = v[w];
                    out.insert(c);
                }
        }
        return {out.begin(), out.end()};
    }
};
struct only_newest_or_oldest : true_memory { // forgets contents in between
    using true_memory::true_memory;
    std::vector<line_content> possible(std::size_t line) const {
        const auto versions = true_memory::possible(line);
        return {versions.front(), versions.back()};
    }
};
struct flush_covers_what_comes_later : true_memory {
    using true_memory::true_memory;
    std::vector<std::pair<unsigned, std::size_t>> flushed;
    void flush(unsigned thread, std::size_t line) { flushed.emplace_back(thread, line); }
    void fence(unsigned thread) {
        for (auto [t, line] : flushed)
            if (t == thread) flush_now(line);
        std::erase_if(flushed, [&](auto f) { return f.first == thread; });
        true_memory::fence(thread);
    }
};

struct locked_is_no_fence : px86 {
    static bool fences(const instruction& i) { return i.what == op::mfence; }
};
struct mfence_is_no_fence : px86 {
    static bool fences(const instruction& i) { return px86::fences(i) && i.what != op::mfence; }
};
struct mfence_overtakes_stores : px86 {
    static bool drains(const instruction& i) { return px86::drains(i) && i.what != op::mfence; }
};
struct loads_wait_for_stores : px86 { // sequential consistency
    static bool drains(const instruction&) { return true; }
};
struct flush_overtakes_stores_to_its_line : px86 {
    static bool ordered(const instruction& first, const instruction& second) {
        const bool weak = second.what == op::clwb || second.what == op::clflushopt;
        return !(weak && first.what == op::store) && px86::ordered(first, second);
    }
};
struct flush_waits_for_all_stores : px86 {
    static bool ordered(const instruction& first, const instruction& second) {
        const bool weak = second.what == op::clwb || second.what == op::clflushopt;
        return (weak && first.what == op::store) || px86::ordered(first, second);
    }
};
struct sfence_overtakes_flushes : px86 {
    static bool ordered(const instruction& first, const instruction& second) {
        const bool weak = first.what == op::clwb || first.what == op::clflushopt;
        return !(weak && second.what == op::sfence) && px86::ordered(first, second);
    }
};
struct clflush_is_unordered : px86 {
    static bool ordered(const instruction& first, const instruction& second) {
        const bool either = first.what == op::clflush && second.what == op::store;
        return !either && px86::ordered(first, second);
    }
};
struct nt_keeps_program_order : px86 {
    static bool ordered(const instruction& first, const instruction& second) {
        return first.what == op::nt_store || second.what == op::nt_store ||
               px86::ordered(first, second);
    }
};
struct stores_pass_stores : px86 { // no total store order
    static bool ordered(const instruction& first, const instruction& second) {
        const bool other_lines = first.line() != second.line();
        return !(first.what == op::store && second.what == op::store && other_lines) &&
               px86::ordered(first, second);
    }
};

using exploration = std::function<outcomes(const program&, hf::domain)>;

template <class Memory, class Rules = px86>
outcomes explore_broken(const program& of, hf::domain d) {
    const std::vector<std::byte> zeros(of.lines * line_bytes);
    return machine<Memory, Rules>(of, Memory(d, zeros)).run();
}
outcomes explore_as(hf::domain as, const program& of, hf::domain d, hf::domain when) {
    return explore(of, d == when ? as : d);
}

/// The number of tests of the table that detect a difference between exploration and axioms.
unsigned detections(const exploration& explored) {
    static const std::vector<outcomes> right = [] {
        std::vector<outcomes> out;
        for (const litmus_test& t : table()) out.push_back(enumerate(parse(t.text), t.domain));
        return out;
    }();
    unsigned out = 0;
    for (std::size_t i = 0; i < right.size(); ++i)
        out += explored(parse(table()[i].text), table()[i].domain) != right[i];
    return out;
}

TEST(Litmus, WrappingTheTrueMemoryBreaksNothing) {
    EXPECT_EQ(detections(explore_broken<true_memory>), 0u);
}

TEST(Litmus, EveryBrokenModelIsDetected) {
    using enum hf::domain;
    using std::placeholders::_1, std::placeholders::_2;
    const std::vector<std::pair<std::string, exploration>> broken{
        {"flush completes at issue", explore_broken<flush_completes_at_issue>},
        {"flush ignored", explore_broken<flush_ignored>},
        {"clflush ignored", explore_broken<clflush_ignored>},
        {"flush completed by any thread's fence", explore_broken<fence_of_any_thread>},
        {"fence ignored", explore_broken<fence_ignored>},
        {"fence forgets non-temporal stores", explore_broken<fence_forgets_nt>},
        {"non-temporal stores are ordinary", explore_broken<nt_is_ordinary>},
        {"non-temporal store of same value dropped", explore_broken<nt_of_same_value_dropped>},
        {"non-temporal stores are durable at once", explore_broken<nt_is_durable>},
        {"no prefix order in a line", explore_broken<words_are_independent>},
        {"16-byte stores tear in one order", explore_broken<tears_in_one_order>},
        {"no line persists in part", explore_broken<only_newest_or_oldest>},
        {"flush covers later stores", explore_broken<flush_covers_what_comes_later>},
        {"locked operation is no fence", explore_broken<persistent_memory, locked_is_no_fence>},
        {"mfence is no fence", explore_broken<persistent_memory, mfence_is_no_fence>},
        {"mfence overtakes", explore_broken<persistent_memory, mfence_overtakes_stores>},
        {"no store buffer", explore_broken<persistent_memory, loads_wait_for_stores>},
        {"flush overtakes stores to its line",
         explore_broken<persistent_memory, flush_overtakes_stores_to_its_line>},
        {"flush waits for all stores",
         explore_broken<persistent_memory, flush_waits_for_all_stores>},
        {"sfence overtakes flushes", explore_broken<persistent_memory, sfence_overtakes_flushes>},
        {"stores overtake clflush", explore_broken<persistent_memory, clflush_is_unordered>},
        {"non-temporal stores in order", explore_broken<persistent_memory, nt_keeps_program_order>},
        {"stores overtake stores", explore_broken<persistent_memory, stores_pass_stores>},
        {"eADR taken for ADR", std::bind(explore_as, adr, _1, _2, eadr)},
        {"eADR taken for process", std::bind(explore_as, process, _1, _2, eadr)},
        {"process taken for eADR", std::bind(explore_as, eadr, _1, _2, process)},
        {"ADR taken for eADR", std::bind(explore_as, eadr, _1, _2, adr)},
    };
    for (const auto& [name, explored] : broken) {
        const unsigned by = detections(explored);
        EXPECT_GT(by, 0u) << "undetected: " << name;
        std::printf("%-42s detected by %3u of %zu tests\n", name.c_str(), by, table().size());
    }
}

} // namespace
} // namespace hf::check::litmus
