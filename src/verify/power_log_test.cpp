// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool that was left open in mode power is examined as the next open would find it, its log
// included, and never repaired without it. Method: a process that ends in the middle; logs cut,
// exchanged and taken away.
#include <verify/power_log.hpp>
#include <verify/test_pools.hpp>

#include <fmt/format.h>

namespace {

using namespace hf;
using namespace hf::test;
using namespace hf::verify;

class PowerLogOfPool : public Pools {
protected:
    void SetUp() override {
        Pools::SetUp();
        options.mode = mode::power;
        options.create_bytes = options.max_bytes = 128_KiB;
        make_pool(3);
    }
    void leave_open() {
        ASSERT_TRUE(in_child([&] {
            pool p = open_good();
            auto* l = p.root<list_sections::list>();
            for (unsigned n = 0; n < 8; ++n) list_sections::push(true, l, l->count + 1);
            ::_exit(0);
        }));
    }
    report examined(depth how = depth::tables) {
        auto file = read_file::open(path);
        if (!file) throw std::runtime_error(file.error().what());
        may_repair = repairable(path, *file).ok();
        return examine_with_log(path, *file, how);
    }
    bool may_repair = false;
};

TEST_F(PowerLogOfPool, IsPartOfWhatIsExamined) {
    EXPECT_EQ(examined(depth::deep).outcome, verdict::good);
    EXPECT_TRUE(may_repair);
    const report closed = examined();
    leave_open();
    const bytes file = read_all(path), log = read_all(path + "-power");
    const report r = examined();
    EXPECT_EQ(r.outcome, verdict::not_verifiable) << lines_of(r);
    EXPECT_EQ(r.blocks, closed.blocks + 8) << lines_of(r);
    ASSERT_FALSE(r.notes.empty());
    EXPECT_NE(r.notes[0].find("left open in mode power: examined with"), std::string::npos)
        << lines_of(r);
    EXPECT_EQ(r.notes[0].find(" 0 groups"), std::string::npos) << lines_of(r);
    EXPECT_FALSE(may_repair);
    EXPECT_EQ(read_all(path), file) << "examining has written";
    EXPECT_EQ(read_all(path + "-power"), log);
}

TEST_F(PowerLogOfPool, ThatIsMissingCutOrOfACopyIsAFinding) {
    std::filesystem::copy_file(path, path + ".copy");
    leave_open();
    const bytes log = read_all(path + "-power");
    const auto expect_finding = [&](const std::string& why) {
        const report r = examined();
        EXPECT_EQ(r.outcome, verdict::damaged) << lines_of(r);
        ASSERT_EQ(r.findings.size(), 1U) << lines_of(r);
        EXPECT_EQ(r.findings[0].where, path + "-power");
        EXPECT_NE(r.findings[0].found.find(why), std::string::npos) << lines_of(r);
        EXPECT_FALSE(may_repair);
    };
    std::filesystem::remove(path + "-power");
    expect_finding("its log is missing");
    write_all(path + "-power", bytes(log.begin(), log.begin() + 10'000));
    expect_finding("expected");
    const std::string real = path;
    path += ".copy";
    leave_open();
    path = real;
    std::filesystem::rename(path + ".copy-power", path + "-power");
    expect_finding("the log is that of a copy of the pool");
    write_all(path + "-power", log);
    EXPECT_EQ(examined().outcome, verdict::not_verifiable);
}

TEST_F(PowerLogOfPool, OfAFileThatWasCutIsNotPutOverIt) {
    leave_open();
    std::filesystem::resize_file(path, 40'000);
    EXPECT_EQ(examined().outcome, verdict::damaged);
}

TEST_F(PowerLogOfPool, KeepsAPoolWithoutAHeaderFromARepair) {
    leave_open();
    bytes file = read_all(path);
    std::fill(file.begin(), file.begin() + 8192, std::byte{0});
    write_all(path, file);
    (void)examined();
    EXPECT_FALSE(may_repair);
}

} // namespace
