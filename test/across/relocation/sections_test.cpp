// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section in a relocated pool sees the pointers that it has stored, moves them between the
// pool and volatile memory as pointers, and leaves no trace when it is taken back. Bytes that hide
// a pointer are refused, also where they have not left the section's write buffer yet.
// Method: each way to move one, in sections of the default engine, in every mode: functions that
// are not inlined keep the optimiser from answering for the memory. Words are looked at in halves,
// which relocatable code leaves as they are.
#include "fixture.hpp"

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/alloc.hpp>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <variant>
#include <vector>

namespace {

using namespace relocation_test;

struct three {
    std::uint64_t number;
    item* at;
    std::uint64_t other;
};
struct text {
    char digits[8];
    char* end;
};
struct chain {
    item* first;
    std::uint64_t links;
};
struct either {
    bool is_number;
    union {
        double number;
        item* at;
    };
};
using variant = std::variant<double, item*>;

// Helpers of the sections.
[[gnu::noinline]] void assign(three* to, const three* from) { *to = *from; }
[[gnu::noinline]] item* at_of(const three* from) { return from->at; }
[[gnu::noinline]] std::uint64_t number_at(const three* from) { return from->at->number; }
[[gnu::noinline]] void assign_array(item** to, item* const* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
/// The optimiser makes a copy of this loop: the arrays do not overlap.
[[gnu::noinline]] void copy_array(item** __restrict to, item* const* __restrict from,
                                  std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
[[gnu::noinline]] void assign_bytes(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}
[[gnu::noinline]] std::uint64_t word_at(const void* from) {
    return *static_cast<const std::uint64_t*>(from);
}
[[gnu::noinline]] void point(either* to, item* at) {
    to->is_number = false;
    to->at = at;
}
[[gnu::noinline]] double number_of(const either* from) {
    const either seen = *from; // the optimiser loads a double, whichever it is
    return seen.is_number ? seen.number * 2 : static_cast<double>(seen.at->number);
}
[[gnu::noinline]] int compared(const void* a, const void* b, std::size_t bytes) {
    return std::memcmp(a, b, bytes);
}
[[gnu::noinline]] HF_PURE three made_of(item* at) noexcept { return {3, at, 5}; }

// Sections. What they return goes by way of volatile memory.
HF_TXFUNC void store_and_look(three* to, const three* from, three* seen, item** at,
                              std::uint64_t* number) {
    assign(to, from);
    *at = at_of(to);
    *number = number_at(to);
    assign(seen, to);
    assign(to + 1, to);
}
HF_TXFUNC void store_array(item** to, item* const* from, item** seen) {
    assign_array(to, from, 32);
    copy_array(to + 32, from, 32);
    copy_array(to + 64, to + 32, 32); // stays in the pool
    assign_array(seen, to + 64, 32);
    copy_array(seen + 32, to + 64, 32);
}
HF_TXFUNC void store_made(three* to, item* at) {
    to->other = 1;
    ::new (static_cast<void*>(to)) three(made_of(at));
}
HF_TXFUNC void read_digits(text* in, long* value) {
    in->digits[0] = '7';
    *value = std::strtol(in->digits, &in->end, 10);
}
HF_TXFUNC void store_bytes(void* to, const void* from, std::size_t bytes) {
    assign_bytes(to, from, bytes);
}
HF_TXFUNC void load_bytes(three* in, const three* from, void* to) {
    assign(in, from);
    assign_bytes(to, in, sizeof *in);
}
HF_TXFUNC void load_word(three* in, const three* from, std::uint64_t* to) {
    assign(in, from);
    *to = word_at(&in->at);
}
HF_TXFUNC void compare(three* in, const three* from, int* to) {
    assign(in, from);
    *to = compared(in, from, sizeof *in);
}
HF_TXFUNC void store_either(variant* to, item* at, double number) {
    *to = number > 0 ? variant(number) : variant(at);
}
HF_TXFUNC void load_either(either* in, item* at, double* to) {
    point(in, at);
    *to = number_of(in);
}
HF_TXFUNC void scale(variant* in, double by, double* seen) {
    variant scaled = *in;
    if (double* number = std::get_if<double>(&scaled)) *number *= by;
    *in = scaled;
    *seen = std::get<double>(*in);
}
HF_TXFUNC void store_elsewhere(three* to, item* other) { to->at = other; }
HF_TXFUNC void change_and_abort(content* in, three* to, const three* from) {
    push(in, 7);
    assign(to, from);
    hf::abort_section();
}
HF_TXFUNC void change_and_throw(content* in, three* to, const three* from) {
    push(in, 7);
    assign(to, from);
    if (at_of(to) != nullptr) throw 7;
}
HF_TXFUNC void grow(chain* in) {
    auto* fresh = static_cast<item*>(hf_alloc(sizeof(item)));
    *fresh = {in->first, in->links, nullptr};
    if (in->first != nullptr) in->first->before = fresh;
    in->first = fresh;
    ++in->links;
}
HF_TXFUNC void shrink(chain* in) {
    item* const gone = in->first;
    in->first = gone->next;
    if (in->first != nullptr) in->first->before = nullptr;
    --in->links;
    hf_free(gone);
}

class Sections : public Relocation {
protected:
    // A child of fork() cannot use its parent's pool: code that will die runs in a process that
    // opens its own.
    Sections() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    ~Sections() override { GTEST_FLAG_SET(death_test_style, "fast"); }
    void SetUp() override {
        Relocation::SetUp();
        { auto created = open(original); }
        pool = open(original, hf::relocation::always);
        ASSERT_TRUE(pool && pool->relocated());
        in = pool->root<content>();
        push(in, 0);
        push(in, 1);
        one = in->first;
        two = one->next;
        room = hf_alloc(1024);
        std::memset(room, 0, 1024);
        here = {7, two, 9};
        // It dies without cleaning up.
        if (testing::internal::InDeathTestChild()) std::filesystem::remove_all(directory);
    }
    void TearDown() override {
        pool.reset();
        Relocation::TearDown();
    }

    static std::uint64_t raw(const void* at) {
        const auto* half = static_cast<const volatile std::uint32_t*>(at);
        return half[0] | std::uint64_t{half[1]} << 32;
    }
    /// The form of 'pointer' in the pool, as its first item shows it.
    std::uint64_t canonical(const void* pointer) const {
        return raw(&in->first) + reinterpret_cast<std::uint64_t>(pointer) -
               reinterpret_cast<std::uint64_t>(one);
    }
    template <class T> T* at() { return static_cast<T*>(room); }

    std::optional<hf::pool> pool;
    content* in = nullptr;
    item* one = nullptr;
    item* two = nullptr;
    void* room = nullptr;
    three here{};
};

TEST_P(Sections, SeeThePointersThatTheyHaveStored) {
    three seen{};
    item* found = nullptr;
    std::uint64_t number = 7;
    store_and_look(at<three>(), &here, &seen, &found, &number);
    EXPECT_EQ(found, two);
    EXPECT_EQ(number, 0u);
    EXPECT_TRUE(seen.number == 7 && seen.at == two && seen.other == 9);
    EXPECT_EQ(raw(&at<three>()[0].at), canonical(two));
    EXPECT_EQ(raw(&at<three>()[1].at), canonical(two));
    EXPECT_GE(canonical(two), HF_CANONICAL_LOW);
    EXPECT_LT(canonical(two), HF_CANONICAL_HIGH);
}

TEST_P(Sections, MoveArraysOfPointers) {
    item *from[32], *back[64] = {};
    for (std::size_t i = 0; i < 32; ++i) from[i] = i % 2 == 0 ? one : two;
    store_array(at<item*>(), from, back);
    EXPECT_EQ(std::memcmp(from, back, sizeof from), 0);
    EXPECT_EQ(std::memcmp(from, back + 32, sizeof from), 0);
    for (std::size_t i = 0; i < 96; ++i)
        EXPECT_EQ(raw(at<item*>() + i), canonical(from[i % 32])) << i;
}

TEST_P(Sections, StoreStructsThatFunctionsReturn) {
    store_made(at<three>(), one);
    EXPECT_EQ(raw(&at<three>()->at), canonical(one));
    EXPECT_TRUE(at<three>()->number == 3 && at<three>()->at == one && at<three>()->other == 5);
}

TEST_P(Sections, StorePointersThatTheLibraryReturns) {
    long value = 0;
    read_digits(at<text>(), &value);
    EXPECT_EQ(value, 7);
    EXPECT_EQ(raw(&at<text>()->end), canonical(at<text>()->digits + 1));
}

TEST_P(Sections, MoveOtherBytesFreely) {
    std::uint64_t from[16], back[16] = {};
    for (std::uint64_t i = 0; i < 16; ++i) from[i] = i * 0x9e3779b97f4a7c15ULL;
    store_bytes(room, from, sizeof from);
    store_bytes(back, room, sizeof back);
    EXPECT_EQ(std::memcmp(from, back, sizeof from), 0);
    three seen{};
    item* found = nullptr;
    std::uint64_t number = 0;
    store_and_look(at<three>() + 20, &here, &seen, &found, &number);
    store_bytes(at<three>() + 30, at<three>() + 20, sizeof seen); // both are the pool's
    EXPECT_EQ(raw(&at<three>()[30].at), canonical(two));
}

TEST_P(Sections, MoveNumbersThatMayBePointers) {
    auto* made = ::new (room) variant(1.0);
    store_either(made, nullptr, 2.5);
    double seen = 0;
    scale(made, 2, &seen);
    EXPECT_EQ(seen, 5);
    EXPECT_EQ(std::get<double>(*made), 5);
}

TEST_P(Sections, RefusePointersThatMayBeNumbers) {
    auto* made = ::new (room) variant(1.0);
    EXPECT_DEATH(store_either(made, one, -1),
                 "sections_test.cpp:[0-9]+: .*stored, but not as a pointer");
    double seen = 0;
    EXPECT_DEATH(load_either(at<either>(), one, &seen),
                 "sections_test.cpp:[0-9]+: at offset .*read, but not as a pointer");
}

TEST_P(Sections, RefuseBytesThatHideAPointer) {
    EXPECT_DEATH(store_bytes(room, &here, sizeof here),
                 "sections_test.cpp:[0-9]+: .*stored, but not as a pointer");
    three back{};
    EXPECT_DEATH(load_bytes(at<three>(), &here, &back),
                 "sections_test.cpp:[0-9]+: at offset .*read, but not as a pointer");
    std::uint64_t word = 0;
    EXPECT_DEATH(load_word(at<three>(), &here, &word), "read, but not as a pointer");
    int verdict = 0;
    EXPECT_DEATH(compare(at<three>(), &here, &verdict), "read, but not as a pointer");
    auto* other = reinterpret_cast<item*>(canonical(one)); // where the original would be
    EXPECT_DEATH(store_elsewhere(at<three>(), other), "a pointer to another pool");
}

TEST_P(Sections, LeaveNoTraceWhenTheyAreTakenBack) {
    const three before{1, one, 2};
    item* found = nullptr;
    three seen{};
    std::uint64_t number = 0;
    store_and_look(at<three>(), &before, &seen, &found, &number);
    change_and_abort(in, at<three>(), &here);
    EXPECT_THROW(change_and_throw(in, at<three>(), &here), int);
    EXPECT_EQ(at<three>()->at, one);
    EXPECT_EQ(raw(&at<three>()->at), canonical(one));
    EXPECT_TRUE(holds_list(in, 2));
    pool.reset();
    EXPECT_EQ(ordinary_code(original, 0, 2), 0);
}

TEST_P(Sections, OfSeveralThreadsWorkBesideEachOther) {
    constexpr unsigned threads = 4, rounds = 400;
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
        auto* mine = static_cast<chain*>(hf_alloc(sizeof(chain)));
        *mine = {};
        in->spare[t] = mine;
        all.emplace_back([mine] {
            for (unsigned i = 0; i < rounds; ++i) {
                grow(mine);
                if (i % 3 == 0) shrink(mine);
            }
        });
    }
    for (std::thread& each : all) each.join();
    const auto check = [](const content* of) {
        for (unsigned t = 0; t < threads; ++t) {
            const auto* its = static_cast<const chain*>(of->spare[t]);
            std::uint64_t left = rounds - (rounds + 2) / 3;
            EXPECT_EQ(its->links, left);
            const item* before = nullptr;
            for (const item* each = its->first; each != nullptr; before = each, each = each->next)
                EXPECT_TRUE(each->number == --left && each->before == before);
            EXPECT_EQ(left, 0u);
        }
    };
    check(in);
    pool.reset();
    auto again = open(original);
    ASSERT_TRUE(again && !again->relocated());
    check(again->root<content>());
}

TEST_P(Sections, ReadersFollowPointersElsewhereToo) {
    pool.reset();
    hf::open_options options = options_for(mode);
    options.read_only = true;
    options.expert.relocate = hf::relocation::always;
    auto reader = hf::pool::open(original, options);
    ASSERT_TRUE(reader) << reader.error().what();
    EXPECT_TRUE(reader->relocated());
    EXPECT_TRUE(holds_list(reader->root<content>(), 2));
}

INSTANTIATE_TEST_SUITE_P(In, Sections, modes_of_build(), name_of_mode);

} // namespace
