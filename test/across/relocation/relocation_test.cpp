// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a copy of a pool that is open opens beside it, whatever state it was copied in, works, and
// is an ordinary pool again afterwards; what cannot be recovered elsewhere is refused.
// Method: this program is built relocatable; all structures and a list are filled, copied, changed
// at the other address, and read by relocation_ordinary, which is not. Processes are killed inside
// sections, at the canonical address and elsewhere.
#include "fixture.hpp"
#include <open/pool_impl.hpp>

#include <fstream>
#include <sstream>

void relocation_test_ordinary(std::uint64_t* number) noexcept;

namespace {

using namespace relocation_test;
using hf::relocation;

std::string bytes_of(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
}

// What recovery does with a section that was cut short.
constexpr bool completes = hf::engine_of_build() == "clobber";
constexpr std::uint64_t completed = completes ? 1 : 0;
std::uint32_t recovered(const hf::recovery_report& report) {
    return completes ? report.re_executed : report.rolled_back + report.replayed;
}
/// One section was cut short. Where auto logs at a section's end, or in whole batches, nothing of
/// it need be there.
void expect_recovered(const hf::recovery_report& report, hf::mode mode) {
    const bool logs_at_end = hf::engine_of_build() == "auto" && mode != hf::mode::process;
    if (logs_at_end) EXPECT_LE(recovered(report), 1u);
    else EXPECT_EQ(recovered(report), 1u);
}

TEST_P(Relocation, ACopyOfAnOpenPoolWorksBesideIt) {
    auto first = open(original);
    ASSERT_TRUE(first);
    ASSERT_TRUE(fill(first->root<content>(), 0, 1000));
    make_copy(); // marked open
    auto second = open(copy, relocation::if_taken);
    ASSERT_TRUE(second);
    EXPECT_FALSE(first->relocated());
    ASSERT_TRUE(second->relocated());
    auto* there = second->root<content>();
    EXPECT_NE(static_cast<void*>(there), first->root<content>());
    EXPECT_TRUE(holds_all(there, 1000, 1000));
    EXPECT_TRUE(fill(there, 1000, 1700));
    EXPECT_TRUE(holds_all(there, 1700, 1700));
    for (std::uint64_t i = 1500; i < 1700; ++i) {
        const std::uint64_t key = key_of(i);
        EXPECT_TRUE(there->hash.erase(key) && there->red_black.erase(key) &&
                    there->avl.erase(key) && there->skips.erase(key) && there->leaves.erase(key));
    }
    // Neither sees the other.
    EXPECT_TRUE(holds_all(first->root<content>(), 1000, 1000));
    EXPECT_TRUE(fill(first->root<content>(), 1000, 1100));
    EXPECT_TRUE(holds_all(there, 1500, 1700));
    second.reset();
    EXPECT_EQ(ordinary_code(copy, 1500, 1700), 0);
    first.reset();
    EXPECT_EQ(ordinary_code(original, 1100, 1100), 0);
}

TEST_P(Relocation, ACleanCopyWorksBesideAnother) {
    {
        auto pool = open(original);
        ASSERT_TRUE(pool && fill(pool->root<content>(), 0, 100));
    }
    make_copy();
    const std::string third = directory + "/third.hf";
    make_copy(third);
    auto first = open(original, relocation::if_taken);
    auto second = open(copy, relocation::if_taken);
    auto last = open(third, relocation::if_taken);
    ASSERT_TRUE(first && second && last);
    EXPECT_FALSE(first->relocated()); // its address was free
    EXPECT_TRUE(second->relocated() && last->relocated());
    EXPECT_TRUE(fill(second->root<content>(), 100, 200));
    EXPECT_TRUE(holds_all(last->root<content>(), 100, 100));
    EXPECT_TRUE(holds_all(second->root<content>(), 200, 200));
}

TEST_P(Relocation, WithoutTheOptionATakenAddressIsRefused) {
    auto first = open(original);
    ASSERT_TRUE(first);
    make_copy();
    const std::string before = bytes_of(copy);
    const auto second = try_open(copy, relocation::never);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), hf::errc::address_taken);
    EXPECT_NE(second.error().what().find(original), std::string::npos) << second.error().what();
    EXPECT_NE(second.error().what().find("relocatable"), std::string::npos);
    EXPECT_EQ(bytes_of(copy), before);
}

TEST_P(Relocation, ASectionCutShortIsRecoveredElsewhere) {
    die_in("push", original, "never");
    make_copy();
    auto first = open(original);
    auto second = open(copy, relocation::if_taken);
    ASSERT_TRUE(first && second && second->relocated());
    expect_recovered(first->recovered(), mode);
    expect_recovered(second->recovered(), mode);
    EXPECT_TRUE(holds_all(second->root<content>(), 0, completed));
    second.reset();
    EXPECT_EQ(ordinary_code(copy, 0, completed), 0);
}

TEST_P(Relocation, ASectionCutShortElsewhereIsRecoveredByOrdinaryCode) {
    { auto pool = open(original); }
    die_in("push", original, "always");
    auto pool = open(original);
    ASSERT_TRUE(pool);
    expect_recovered(pool->recovered(), mode);
    EXPECT_TRUE(holds_all(pool->root<content>(), 0, completed));
}

TEST_P(Relocation, AddressesAmongTheBytesOfALogAreTranslated) {
    die_in("push_at", original, "never");
    make_copy();
    auto first = open(original);
    auto second = open(copy, relocation::if_taken);
    ASSERT_TRUE(first && second && second->relocated());
    expect_recovered(second->recovered(), mode);
    EXPECT_TRUE(holds_list(first->root<content>(), 1 + completed));
    EXPECT_TRUE(holds_list(second->root<content>(), 1 + completed));
    second.reset();
    EXPECT_EQ(ordinary_code(copy, 0, 1 + completed), 0);
}

constexpr int refused = 10 + static_cast<int>(hf::errc::address_taken); // ordinary_main.cpp

TEST_P(Relocation, OrdinaryCodeRefusesALogMadeElsewhereThatItWouldMisread) {
    { auto pool = open(original); }
    die_in("push_at", original, "always");
    if (!completes) { // nobody reads the arguments
        EXPECT_EQ(ordinary_code(original, 0, 1 + completed), 0);
        return;
    }
    const std::string before = bytes_of(original);
    EXPECT_EQ(ordinary_code(original, 0, 2), refused);
    EXPECT_EQ(bytes_of(original), before);
    // It dies while it is recovered, at either address: the log keeps the form it had.
    die_in("push_at", original, "if_taken");
    die_in("push_at", original, "never");
    EXPECT_EQ(ordinary_code(original, 0, 2), refused);
    auto pool = open(original);
    ASSERT_TRUE(pool && !pool->relocated());
    EXPECT_EQ(pool->recovered().re_executed, 1u);
    EXPECT_TRUE(holds_list(pool->root<content>(), 2));
    pool.reset();
    EXPECT_EQ(ordinary_code(original, 0, 2), 0);
}

TEST_P(Relocation, ARecoveredPoolLogsWhereItIs) {
    { auto pool = open(original); }
    die_in("push_at", original, "always");
    die_in("push_at_again", original, "never"); // after it was recovered
    for (const relocation where : {relocation::if_taken, relocation::always}) {
        make_copy();
        auto pool = open(copy, where);
        ASSERT_TRUE(pool && pool->relocated() == (where == relocation::always));
        expect_recovered(pool->recovered(), mode);
        EXPECT_TRUE(holds_list(pool->root<content>(), 2 + 2 * completed));
        pool.reset();
        remove(copy);
    }
}

/// In a copy of the pool: the first lane's mark never became durable.
void lose_mark(const hf::pool& of, const std::string& copied) {
    std::fstream file(copied, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(of.internals().file->shape().lanes_offset));
    const std::uint64_t none = 0;
    file.write(reinterpret_cast<const char*>(&none), sizeof none);
}

TEST_P(Relocation, TheLastSectionOfEveryStructureIsRecoveredInACopy) {
    // Alone, a thread does not write the mark of its last section back: with the power it goes, and
    // the section is found pending.
    const bool has_marks = mode == hf::mode::pmem && hf::engine_of_build() != "undo";
    const std::uint64_t keys = has_marks ? 30 : 10;
    auto first = open(original);
    ASSERT_TRUE(first && fill(first->root<content>(), 0, 200));
    auto* in = first->root<content>();
    const auto last = [&](auto& map, int number) {
        const std::string name = copy + std::to_string(number);
        std::uint64_t added = 0;
        for (std::uint64_t i = 200; i < 200 + keys; ++i) { // some split, some rotate
            ASSERT_TRUE(map.insert(key_of(i), value_of(i)));
            make_copy(name);
            if (has_marks) lose_mark(*first, name);
            auto there = open(name, relocation::if_taken);
            ASSERT_TRUE(there && there->relocated());
            const auto offset =
                reinterpret_cast<std::byte*>(&map) - reinterpret_cast<std::byte*>(in);
            auto& same = *reinterpret_cast<std::remove_reference_t<decltype(map)>*>(
                reinterpret_cast<std::byte*>(there->root<content>()) + offset);
            EXPECT_TRUE(holds(same, i + 1));
            if (has_marks) added += recovered(there->recovered());
            there.reset();
            remove(name);
        }
        EXPECT_EQ(added, has_marks ? keys : 0u);
    };
    last(in->hash, 1);
    last(in->red_black, 2);
    last(in->avl, 3);
    last(in->skips, 4);
    last(in->leaves, 5);
}

TEST_P(Relocation, ASectionThatIsNotRelocatableIsRefused) {
    { auto pool = open(original); }
    EXPECT_DEATH(
        {
            auto pool = open(original, relocation::always);
            if (pool && pool->relocated()) relocation_test_ordinary(&pool->root<content>()->links);
        },
        "relocation_test_ordinary.*is not built relocatable");
}

INSTANTIATE_TEST_SUITE_P(In, Relocation, modes_of_build(), name_of_mode);

/// "die <pool> <where> <section> <mode>": opens the pool and dies where HOLDFAST_CRASH_AT says.
int victim(char** arguments) {
    const std::string where = arguments[1], section = arguments[2];
    hf::open_options options = options_for(static_cast<hf::mode>(std::stoi(arguments[3])));
    if (where == "always") options.expert.relocate = relocation::always;
    if (where == "if_taken") options.expert.relocate = relocation::if_taken;
    auto pool = hf::pool::open(arguments[0], options);
    if (!pool) return 1;
    auto* in = pool->root<content>();
    if (section != "push") {
        push(in, in->links);
        push_at(in, {in->first, in->links, section == "push_at" ? 0u : 1u});
    } else {
        push(in, in->links);
    }
    return 0;
}

} // namespace

int main(int count, char** arguments) {
    if (count == 6 && std::string(arguments[1]) == "die") return victim(arguments + 2);
    testing::InitGoogleTest(&count, arguments);
    return RUN_ALL_TESTS();
}
