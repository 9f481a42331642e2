// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that this build cannot resume is refused in words that say which build can and what else there
// is, with the file untouched; giving it up opens the pool, and nothing is lost but that section. Method: a pool
// left by a thread that died in a section, its bytes changed as another build would have left them.
#include <justdo/inspect.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/justdo.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;
namespace by_hand = hf::justdo::by_hand;
using namespace by_hand;

struct root {
    by_hand::account accounts[2];
    list nodes;
};

thread_local std::jmp_buf stopped;
thread_local std::uint32_t points_left;

class JustdoRefusal : public ::testing::Test {
protected:
    ~JustdoRefusal() override { ::unlink(path_.c_str()); }
    result<pool> try_open() {
        open_options o;
        o.layout = "justdo_refusal_test/1";
        o.create_bytes = o.max_bytes = 128_KiB;
        o.engines = {justdo::engine()};
        o.recovery = policy;
        o.salvage = salvage;
        return pool::open(path_, o);
    }
    /// Leaves a push open at its n-th point, behind two that are whole.
    void leave_open(std::uint32_t points) {
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        auto* r = p->root<root>();
        push(&r->nodes, 1), push(&r->nodes, 2);
        std::thread([&] {
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            if (setjmp(stopped) == 0) push(&r->nodes, 3);
        }).join();
        const auto super = justdo::superblock_of(*p->internals().file);
        for (const std::uint64_t offset : justdo::thread_words(*super))
            if (offset != 0 && block_in(*p, offset)->log.counter != 0) thread_at_ = offset;
        pool::impl::abandon(std::move(*p));
        ASSERT_NE(thread_at_, 0U);
    }
    static justdo::thread_block* block_in(pool& p, std::uint64_t offset) {
        return static_cast<justdo::thread_block*>(p.internals().at(offset));
    }
    template <class T> void change(std::uint64_t at, const std::function<void(T&)>& how) {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        T value;
        file.seekg(static_cast<std::streamoff>(at));
        file.read(reinterpret_cast<char*>(&value), sizeof value);
        how(value);
        file.seekp(static_cast<std::streamoff>(at));
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::string bytes() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void expect_refused(errc code, const std::vector<std::string>& words) {
        const std::string before = bytes();
        auto p = try_open();
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), code) << p.error().what();
        for (const std::string& word : words)
            EXPECT_NE(p.error().what().find(word), std::string::npos)
                << "'" << word << "' in: " << p.error().what();
        EXPECT_EQ(bytes(), before) << "the file was changed";
    }
    /// The way out of every refusal: the section stays half done, the rest is as it was.
    void give_up_and_go_on() {
        policy = recovery_policy::roll_back;
        expect_refused(errc::torn, {"salvage", "half done"});
        salvage = true;
        {
            auto p = try_open();
            ASSERT_TRUE(p) << p.error().what();
            ASSERT_EQ(p->warnings().size(), 1U);
            EXPECT_NE(p->warnings()[0].find("given up"), std::string::npos) << p->warnings()[0];
            auto* r = p->root<root>();
            EXPECT_EQ(r->nodes.head->value, 3U); // linked, and not counted
            push(&r->nodes, 4);                  // its lock is free
            pop(&r->nodes);
        }
        policy = recovery_policy::complete;
        salvage = false;
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().sections_pending, 0U);
    }

    const std::string path_ = "/dev/shm/hf_justdo_refusal." + std::to_string(::getpid());
    std::uint64_t thread_at_ = 0;
    recovery_policy policy = recovery_policy::complete;
    bool salvage = false;
};

constexpr const char* way_out = "holdfast repair --roll-back --force";
std::uint64_t frame_at(std::uint64_t thread) { return thread + sizeof(justdo::thread_block); }

TEST_F(JustdoRefusal, AnotherVersionOfTheFunctionNamesItAndBothVersions) {
    leave_open(2);
    change<justdo::frame_head>(frame_at(thread_at_),
                               [](auto& head) { head.function_version = 77; });
    expect_refused(errc::function_changed, {"push (by_hand)", "expected version 0x1", "found 0x4d",
                                            "the build that made it", way_out});
    give_up_and_go_on();
}

TEST_F(JustdoRefusal, AFunctionThatThisBuildDoesNotHaveIsNamedByItsNumber) {
    leave_open(2);
    change<justdo::frame_head>(frame_at(thread_at_), [](auto& head) { head.function_id = 0xabcd; });
    expect_refused(errc::function_changed, {"0xabcd", "the build that made it", way_out});
    give_up_and_go_on();
}

TEST_F(JustdoRefusal, AKindOfLockThatNobodyRegistered) {
    leave_open(2);
    change<justdo::lock_place>(thread_at_ + offsetof(justdo::thread_block, locks), [](auto& place) {
        place.owned = justdo::lock_word(9, justdo::lock_offset(place.owned));
    });
    expect_refused(errc::function_changed, {"kind 9", "not registered"});
}

TEST_F(JustdoRefusal, WordsThatAreNoLogAreCorruptAndThePoolCanBeOpenedWithoutThem) {
    using entry_change = std::function<void(justdo::thread_log&)>;
    const std::pair<const char*, entry_change> cases[] = {
        {"program counter", [](auto& log) { log.counter |= std::uint64_t{1} << 56; }},
        {"frame", [](auto& log) { log.counter += std::uint64_t{3} << 40; }},
        {"resume point", [](auto& log) { log.counter += 9; }},
        {"log entry",
         [](auto& log) {
             for (auto& e : log.entries) e.where |= std::uint64_t{1} << 40;
         }},
        {"log entry",
         [](auto& log) {
             for (auto& e : log.entries) e.where = std::uint64_t{99} << 56;
         }},
    };
    for (const auto& [word, how] : cases) {
        ::unlink(path_.c_str());
        thread_at_ = 0;
        leave_open(3);
        change<justdo::thread_log>(thread_at_, how);
        expect_refused(errc::corrupt, {word, way_out});
        give_up_and_go_on();
    }
}

/// Where the section took, or freed, a block when it was cut short, the heap is whole afterwards.
TEST_F(JustdoRefusal, GivenUpAtAnAllocationLeavesAWholeHeap) {
    leave_open(1); // behind its allocation
    policy = recovery_policy::roll_back;
    salvage = true;
    auto p = try_open();
    ASSERT_TRUE(p) << p.error().what();
    std::vector<void*> taken;
    for (int i = 0; i < 300; ++i) taken.push_back(hf_alloc(sizeof(node)));
    std::ranges::sort(taken);
    EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end());
    const auto* r = p->root<root>();
    for (const node* n = r->nodes.head; n != nullptr; n = n->next)
        EXPECT_EQ(std::ranges::count(taken, static_cast<const void*>(n)), 0);
}

} // namespace
