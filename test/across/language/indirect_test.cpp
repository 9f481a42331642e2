// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a function that a section of engine redo calls by address is part of the section, in
// whichever file of the program it is. A function that cannot run in a section ends the process
// before anything has changed; the message says which function it is, why it cannot, and where it
// is called. Method: functions, virtual functions and closures of another file are called by
// sections that commit, that are left by exceptions, and by processes that die.
#include "indirect.hpp"
#include "support.hpp"

#include <holdfast/tx.hpp>

#include <functional>
#include <stdexcept>

namespace language_test {

// The loader chooses one of its versions by the processor.
__attribute__((target_clones("avx2", "default"))) void raise_all(long* first, long by) {
    for (int i = 0; i < 2; ++i) first[i] += by;
}

namespace {

HF_TXFUNC long by_processor(cell* c, long by) {
    long both[2] = {c->value, by};
    raise_all(both, 10);
    c->value = both[0] + both[1];
    raise_all(&c->value, 1); // and the count behind it
    return c->value;
}

HF_TXFUNC long calls(cell* c, change what, long by) {
    c->value += 1;
    const long seen = what(c, by);
    return seen * 10 + c->count;
}

// [visits]
HF_TXFUNC void visits(cell* c, visitor* v) {
    c->value = 5;
    v->visit(c); // of whatever class, in whichever file; its stores are the section's
}
// [/visits]

HF_TXFUNC void runs(cell* c, const std::function<void(cell*)>& what) {
    for (int i = 0; i < 3; ++i) what(c);
}

class indirect : public pools {
protected:
    /// In a process of its own, which has no part in a pool that its parent has open.
    void call_alone(change what) {
        hf::pool p = open(first);
        (void)calls(p.root<cell>(), what, 4);
    }
    void expect_nothing_happened() {
        hf::pool p = open(first);
        EXPECT_EQ(p.root<cell>()->value, 0);
        EXPECT_EQ(p.root<cell>()->count, 0);
    }
};

TEST_F(indirect, FunctionOfAnotherFileIsPartOfTheSection) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    EXPECT_EQ(calls(c, add_to, 4), 51);
    EXPECT_EQ(calls(c, add_to, 5), 112);
    EXPECT_EQ(c->value, 11);
    EXPECT_EQ(c->count, 2);
}

TEST_F(indirect, FunctionOfSeveralVersionsIsPartOfTheSection) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    EXPECT_EQ(by_processor(c, 4), 25);
    EXPECT_EQ(c->value, 25);
    EXPECT_EQ(c->count, 1);
}

TEST_F(indirect, VirtualFunctionOfAnotherFileIsPartOfTheSection) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    visits(c, &counter());
    EXPECT_EQ(c->count, 5);
}

TEST_F(indirect, FunctionObjectIsPartOfTheSection) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    long times = 0;
    runs(c, [&times](cell* of) { of->value += ++times; });
    EXPECT_EQ(c->value, 6);
    runs(c, [c](cell* of) { of->count = c->value += of->count + 1; });
    EXPECT_EQ(c->value, 6 + 1 + 8 + 16);
}

TEST_F(indirect, SectionLeftThroughAddressHasNotHappened) {
    hf::pool p = open(first);
    auto* const c = p.root<cell>();
    EXPECT_THROW((void)calls(c, throws, 4), std::runtime_error);
    EXPECT_EQ(c->value, 0);
    EXPECT_EQ(c->count, 0);
    EXPECT_EQ(calls(c, add_to, 4), 51);
}

TEST_F(indirect, WhatMayNotRunInSectionsIsRefusedByNameReasonAndPlace) {
    EXPECT_DEATH(call_alone(prints),
                 "indirect_test.cpp:[0-9]+: a section calls .*says.* by its address, which cannot "
                 "run in a section: input or output by 'printf'.*indirect_elsewhere.cpp:");
    expect_nothing_happened();
}

TEST_F(indirect, WhatNoFileHasIsRefused) {
    EXPECT_DEATH(
        call_alone(no_body_here),
        "indirect_test.cpp:[0-9]+: a section calls .* expected a version of it for sections");
    EXPECT_DEATH(call_alone(nullptr), "a section calls a function by a null pointer");
    expect_nothing_happened();
}

} // namespace
} // namespace language_test
