// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a log that leads into MOD's own blocks is refused, or harmless, whatever it stores there:
// it is bounded by blocks of the heap, and those are among them. Method: a pending section of
// engine undo, written by hand, whose old bytes are another superblock's.
#include <log/lane.hpp>
#include <mod/format.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

class ModLog : public ::testing::Test {
protected:
    ~ModLog() override { ::unlink(path_.c_str()); }
    result<pool> open() const {
        open_options o;
        o.layout = "mod_log_test/1";
        o.create_bytes = 1_MiB;
        o.engines = {undo::engine(), mod::engine()};
        return pool::open(path_, o);
    }
    using put = std::function<void(void* at, const void* bytes, std::uint64_t count)>;
    /// A killed process's pool, whose log has what 'forge' puts there.
    void leave(const std::function<void(mod::superblock&, const put&)>& forge) const {
        ::unlink(path_.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = open();
            if (!p) ::_exit(1);
            auto all = numbers::open(*p, {"numbers"});
            if (!all) ::_exit(2);
            for (std::uint64_t i = 0; i < 10; ++i) (void)all->insert(i, i);
            pool_file& file = *p->internals().file;
            const std::uint64_t epoch = p->internals().lanes[1].epoch + 1;
            start_lane(file, 1, epoch - 1);
            const begin_payload begin{epoch, 1, 1, engine_undo, 0, 0};
            lane_writer_in log(ordered_medium(file.medium()));
            log.start(lane_start(file, 1, epoch));
            log.append(record_kind::begin, in_order_bit, sizeof begin, &begin, sizeof begin);
            forge(
                *reinterpret_cast<mod::superblock*>(file.base() + file.roots()->anchor(engine_mod)),
                [&](void* at, const void* bytes, std::uint64_t count) {
                    log.append(record_kind::old_bytes, p->offset_of(at), count, bytes, count);
                });
            ::kill(::getpid(), SIGKILL);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        ASSERT_TRUE(WIFSIGNALED(how)) << how;
    }
    void expect_refused() const {
        const auto p = open();
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
    }
    /// A redo record that names one cell.
    static void put_redo(mod::superblock& super, const put& to, std::uint64_t cell,
                         std::uint64_t word) {
        mod::redo_record r = super.redo;
        r.count = 1;
        r.number = 1000;
        r.entries[0] = {cell, word};
        r.check = mod::redo_check(r);
        to(&super.redo, &r, offsetof(mod::redo_record, entries) + sizeof r.entries[0]);
    }
    const std::string path_ = "/dev/shm/hf_mod_log_test." + std::to_string(::getpid());
};

TEST_F(ModLog, ThatNamesACellOutsideOfThePoolIsRefused) {
    leave([](mod::superblock& super, const put& to) {
        put_redo(super, to, std::uint64_t{1} << 40, 0x41);
    });
    expect_refused();
}

TEST_F(ModLog, ThatNamesMemoryOfTheProcessStoresNothingThere) {
    constexpr std::uintptr_t at = 0x500000000000;
    void* const mine = ::mmap(reinterpret_cast<void*>(at), 4096, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(mine, reinterpret_cast<void*>(at));
    leave([](mod::superblock& super, const put& to) {
        const auto cells = reinterpret_cast<std::uintptr_t>(&super + 1);
        const std::uintptr_t target = at + 128 + cells % sizeof(mod::cell);
        put_redo(super, to, (target - cells) / sizeof(mod::cell) & ((std::uint64_t{1} << 57) - 1),
                 0x4141414141414141);
    });
    expect_refused();
    for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(static_cast<const char*>(mine)[i], 0) << i;
    ::munmap(mine, 4096);
}

TEST_F(ModLog, ThatCountsMoreCellsThanThereAreIsRefused) {
    for (const unsigned bits : {32U, 40U}) {
        leave([&](mod::superblock& super, const put& to) {
            const std::uint64_t count = std::uint64_t{1} << bits;
            to(&super.cell_count, &count, sizeof count);
        });
        expect_refused();
    }
}

TEST_F(ModLog, ThatMakesACellAMemberOfNoFamilyIsRefused) {
    leave([](mod::superblock& super, const put& to) {
        auto* const first = reinterpret_cast<mod::cell*>(&super + 1);
        mod::cell changed = *first;
        changed.family = 0x77777777;
        changed.members = 200;
        changed.member = 199;
        to(first, &changed, sizeof changed);
    });
    expect_refused();
}

TEST_F(ModLog, ThatExchangesPartsOfTheSuperblockIsRefused) {
    leave([](mod::superblock& super, const put& to) {
        const std::uint64_t super_at = registry::pool_of(&super)->offset_of(&super);
        mod::exchange_record r{};
        r.number = 1000;
        r.bytes = 8;
        for (auto& e : r.elements) e.at = super_at + offsetof(mod::superblock, cell_count);
        r.check = mod::exchange_check(r);
        to(&super.exchanges[0], &r, sizeof r);
    });
    expect_refused();
}

/// A block of the application's is no node.
TEST_F(ModLog, ThatExchangesBytesOfAnotherStructureIsRefused) {
    leave([](mod::superblock& super, const put& to) {
        const std::uint64_t others = registry::pool_of(&super)->offset_of(hf_alloc(64));
        mod::exchange_record r{};
        r.number = 1000;
        r.bytes = 8;
        r.elements[0] = {others, 0x4141414141414141};
        r.elements[1] = {others + 8, 0x4141414141414141};
        r.check = mod::exchange_check(r);
        to(&super.exchanges[0], &r, sizeof r);
    });
    expect_refused();
}

} // namespace
