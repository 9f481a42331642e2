// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: engines behave as their table says (holdfast/abi/engines.def). JUSTDO and SIMPO keep
// sections and calls in blocks of their own; for their builds, src/justdo/refusal_test.cpp and
// src/simpo/refusal_test.cpp test this.
#include <base/engines.hpp>
#include <open/engine.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace hf {
namespace {

class EngineFacts : public testing::Test {
protected:
    EngineFacts() {
        char name[] = "/dev/shm/hf_engine_facts.XXXXXX";
        if (::mkdtemp(name) == nullptr) std::abort();
        folder_ = name;
    }
    ~EngineFacts() override { std::filesystem::remove_all(folder_); }

    std::string path_of(const engine_ptr& e, mode m) const {
        return folder_ + "/" + e->name() + std::to_string(int(m));
    }
    result<pool> open(const engine_ptr& e, mode m) {
        return pool::open(
            path_of(e, m),
            {.layout = "facts/1", .create_bytes = 1 << 20, .mode = m, .engines = {e}});
    }

private:
    std::string folder_;
};

TEST_F(EngineFacts, EveryEngineWorksInEveryMode) {
    for (const engine_ptr& e : all_engines())
        for (const mode m : {mode::process, mode::pmem, mode::power}) {
            const auto opened = open(e, m);
            EXPECT_TRUE(opened) << e->name() << ": " << opened.error().what();
        }
}

TEST_F(EngineFacts, ASectionOfAnUnknownFunctionIsRefusedWhereTheTableSaysItsBuild) {
    for (const engine_ptr& e : all_engines()) {
        const engine_sections sections = e->row().sections;
        if (sections == engine_sections::none || sections == engine_sections::steps) continue;
        auto opened = open(e, mode::process);
        ASSERT_TRUE(opened) << opened.error().what();
        pending_section section{};
        section.begin.engine = static_cast<std::uint16_t>(e->bit());
        section.begin.function_id = 0x1234;
        section.in_words = true; // as such a pool's sections are
        const status s = e->check(opened->internals(), section);
        const bool refused = s.code() == errc::function_changed;
        EXPECT_EQ(refused, e->row().build == recovery_build::its_build) << e->name();
        EXPECT_EQ(s.ok(), !refused) << e->name() << ": " << s.what();
    }
}

TEST_F(EngineFacts, APoolKeepsTheEngineThatItWasGiven) {
    auto owned = std::make_shared<int>();
    const std::weak_ptr<int> seen = owned;
    {
        const auto opened = open(
            selective::engine({.rebuild = [kept = std::move(owned)](pool&) {}}), mode::process);
        ASSERT_TRUE(opened) << opened.error().what();
        EXPECT_FALSE(seen.expired());
    }
    EXPECT_TRUE(seen.expired());
}

TEST_F(EngineFacts, AForgedAnchorIsRefusedWhoseverItIs) {
    for (unsigned slot = 0; slot < engines_max; ++slot) {
        {
            auto opened = open(undo::engine(), mode::process);
            ASSERT_TRUE(opened) << opened.error().what();
            opened->internals().file->roots()->anchors[slot] = 24;
            pool::impl::abandon(std::move(*opened));
        }
        const auto again = open(undo::engine(), mode::process);
        ASSERT_FALSE(again) << slot;
        EXPECT_EQ(again.error().code(), errc::corrupt);
        const std::string whose = "the superblock of engine " + engine_names(1U << slot);
        EXPECT_NE(again.error().what().find(whose), std::string::npos) << again.error().what();
        std::filesystem::remove(path_of(undo::engine(), mode::process));
    }
}

TEST_F(EngineFacts, ANumberThatIsNoneOfAnEnumerationIsRefusedByTheOpen) {
    const auto refused = [&](const open_options& o, const std::string& why) {
        const auto opened = pool::open(path_of(undo::engine(), mode::process), o);
        ASSERT_FALSE(opened) << why;
        EXPECT_EQ(opened.error().code(), errc::bad_argument) << why;
        EXPECT_NE(opened.error().what().find(why), std::string::npos) << opened.error().what();
    };
    open_options o;
    o.layout = "facts/1";
    o.create_bytes = 1 << 20;
    o.engines = {undo::engine({.durable = durability(7)})};
    refused(o, "undo::options::durable: expected by_next_section or on_return, found 7");
    o.engines = {undo::engine()};
    o.recovery = recovery_policy(2);
    refused(o, "recovery: expected complete or roll_back, found 2");
    o.recovery = recovery_policy::complete;
    o.expert.relocate = relocation(9);
    refused(o, "expert.relocate: expected never, if_taken or always, found 9");
    o.expert.relocate = relocation::never;
    o.creation = create(3);
    refused(o, "creation: expected if_missing, never or always_new, found 3");
    o.creation = create::if_missing;
    o.mode = mode(3);
    refused(o, "mode: expected process, pmem or power, found 3");
}

TEST_F(EngineFacts, WhatRunsAFunctionOnNeedsItsBuild) {
    for (const engine_row* row : engine_table())
        if (row->verb == recovery_verb::re_execute || row->verb == recovery_verb::resume)
            EXPECT_EQ(row->build, recovery_build::its_build) << row->name;
}

} // namespace
} // namespace hf
