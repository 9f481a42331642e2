// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section takes nothing back that it has not logged, and a resumed one would do it again.
// So it makes no update. Method: sections of engines undo and justdo try each kind of update.
#include <mod/test_support.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/justdo_abi.h>
#include <holdfast/justdo.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>

namespace {

using namespace hf;
using map = mod::map<std::uint64_t, std::uint64_t>;
using row = mod::vector<std::uint64_t>;

const hf_arg schema[] = {{0, sizeof(void*), HF_ARG_POOL_POINTER}};
const hf_txfunc described{HF_ABI_VERSION, sizeof(void*), 2471, 1,      "updates",
                          "here",         schema,        1,    nullptr};

class ModInSection : public mod::test::PoolTest {
protected:
    void SetUp() override {
        in.how.engines = {mod::engine(), undo::engine(), justdo::engine()};
        in.make_new(GetParam());
    }
    static void refused(const status& s) {
        EXPECT_EQ(s.code(), errc::bad_argument);
        EXPECT_NE(s.what().find("inside a section"), std::string::npos) << s.what();
    }
    /// Tries each kind of update of a map with (1, 10), and of a vector with 10.
    void tries_all(map& all, row& list, const auto& changed) {
        refused(all.insert(2, 20).error());
        refused(all.update([](auto& to) { to.clear(); }));
        refused(all.commit(changed));
        refused(list.set(0, 20));
        refused(mod::update(std::tie(all, list), [](auto& a, auto&) { a.insert(3, 30); }));
        refused(map::open(in.pool(), {"another"}).error());
        refused(in.store().collect());
        EXPECT_EQ(*all.get(1), 10U);
        EXPECT_EQ(all.size(), 1U);
        EXPECT_EQ(list[0], 10U);
    }
};

TEST_P(ModInSection, NothingIsChangedButWhatTheSectionLogs) {
    auto all = in.get<map>({"all"});
    auto list = in.get<row>({"list"});
    ASSERT_TRUE(all.insert(1, 10) && list.push_back(10).ok());
    auto* const count = in.pool().root<std::uint64_t>();
    const auto changed = all.snapshot().insert_or_assign(1, 11);

    hf_undo_begin(&described, &count);
    hf_undo_log(count, sizeof *count);
    *const_cast<volatile std::uint64_t*>(count) = 20;
    tries_all(all, list, changed);
    hf_undo_commit();

    EXPECT_TRUE(all.insert(2, 20));
    EXPECT_TRUE(list.set(0, 20).ok());
    EXPECT_EQ(*count, 20U);
}

TEST_P(ModInSection, NothingIsChangedThatAResumedSectionWouldChangeAgain) {
    static const hf_justdo_function resumes{HF_ABI_VERSION, 8, 2472, 1,     "resumes",
                                            "here",         3, 0,    [] {}, nullptr};
    hf_justdo_register(&resumes);
    auto all = in.get<map>({"all"});
    auto list = in.get<row>({"list"});
    ASSERT_TRUE(all.insert(1, 10) && list.push_back(10).ok());
    const auto changed = all.snapshot().insert_or_assign(1, 11);
    auto* const count = in.pool().root<std::uint64_t>();

    std::uint32_t resumed = 0;
    static_cast<void>(hf_justdo_enter(&resumes, count, &resumed));
    hf_justdo_lock(count, HF_JUSTDO_NO_LOCK, 1);
    tries_all(all, list, changed);
    hf_justdo_unlock(count, HF_JUSTDO_NO_LOCK, 2);
    hf_justdo_leave();

    EXPECT_TRUE(all.insert(2, 20));
    EXPECT_TRUE(list.set(0, 20).ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, ModInSection,
                         testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& of) { return std::string(name(of.param)); });

} // namespace
