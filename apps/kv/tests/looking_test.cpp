// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the store finds any damage in a pool's tables and items before it follows them, names its
// place, refuses the keys concerned and serves the others. Method: an open store's pool is damaged
// in one place and closed, which seals the damage, then opened, asked and changed.
#include <kv/server/session.hpp>
#include <kv/store/pool_check.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf::kv;
using hf::operator""_MiB;

std::vector<std::string> told; // of damage, by the store

class Looking : public testing::Test {
protected:
    void SetUp() override {
        told.clear();
        options_.path = "/dev/shm/holdfast-kv-looking-" + std::to_string(::getpid());
        options_.max_bytes = 16_MiB;
        options_.on_damage = [](const std::string& line) { told.push_back(line); };
        open();
        root().seed = 20260101; // every run finds the same items in the same places
        open();
        for (int i = 0; i < 20'000; ++i) set("key" + std::to_string(i));
    }
    void TearDown() override {
        items_.reset();
        ::unlink(options_.path.c_str());
    }
    void open() {
        items_.reset();
        auto opened = store::open(options_);
        ASSERT_TRUE(opened) << opened.error().what();
        items_ = std::move(*opened);
        counted_ = &items_->counted().join();
    }
    outcome set(const std::string& key) {
        request r;
        r.what = verb::set;
        r.key = key;
        const std::string value(100, 'v');
        r.value_bytes = 100;
        change done;
        return items_->write(r, value, *counted_, done);
    }
    bool get(const std::string& key) {
        return items_->get(key, *counted_, [](const item_view&) {});
    }
    std::string file() const {
        std::ifstream in(options_.path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    kv_root& root() { return *items_->pool().root<kv_root>(); }
    /// The table that is damaged: it has segments and long chains.
    hf::structures::hash_table& table() { return root().instances[7].table; }
    /// A link of its own that holds an item.
    item*& link() {
        for (auto*& each : table().small)
            if (each != nullptr) return reinterpret_cast<item*&>(each);
        ADD_FAILURE() << "no item";
        return reinterpret_cast<item*&>(table().small[0]);
    }
    std::string key_of_instance(unsigned number) {
        std::string found;
        hf::structures::for_each(&root().instances[number].table,
                                 [&](auto* node) { found = reinterpret_cast<item*>(node)->key(); });
        return found;
    }
    /// After 'damage', keys of instance 7 are refused, 'expected' is said, and others are served.
    void finds(const char* expected, const std::function<void()>& damage) {
        const std::string hit = key_of_instance(7), other = key_of_instance(8);
        damage();
        open();
        EXPECT_TRUE(get(other));
        EXPECT_EQ(set(other), outcome::stored);
        EXPECT_TRUE(told.empty());
        EXPECT_FALSE(get(hit));
        EXPECT_TRUE(items_->damaged(hit));
        EXPECT_FALSE(items_->damaged(other));
        EXPECT_EQ(set(hit), outcome::damaged);
        EXPECT_EQ(items_->remove(hit, *counted_), outcome::damaged);
        EXPECT_EQ(items_->touch(hit, 1, *counted_), outcome::damaged);
        ASSERT_EQ(told.size(), 1U);
        EXPECT_NE(told[0].find(expected), std::string::npos) << told[0];
        EXPECT_NE(told[0].find("instance 7"), std::string::npos) << told[0];
        std::uint64_t bytes = 0;
        (void)items_->sample_classes(bytes);
        store::place at(*items_);
        std::uint64_t met = 0;
        while (items_->visit_next(at, [&](std::string_view, const item_view&) { ++met; })) {}
        EXPECT_TRUE(at.damaged);
        EXPECT_EQ(met, items_->item_count());
        for (int i = 0; i < 300; ++i) items_->reap(*counted_);
        EXPECT_EQ(items_->damaged_instances(), 1U);
        EXPECT_FALSE(check_pool(*items_).whole());
        items_.reset();
        options_.look_through = true;
        const std::string before = file();
        const auto refused = store::open(options_);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), hf::errc::corrupt);
        EXPECT_TRUE(before == file()) << "a refused pool has changed";
    }

    /// After 'damage', every key is refused, and that is said once.
    void finds_everywhere(const char* expected, const std::function<void()>& damage) {
        const std::string hit = key_of_instance(7), other = key_of_instance(8);
        damage();
        open();
        EXPECT_FALSE(get(other));
        EXPECT_EQ(set(other), outcome::damaged);
        EXPECT_EQ(set(hit), outcome::damaged);
        EXPECT_TRUE(items_->damaged(other) && items_->damaged(hit));
        ASSERT_EQ(told.size(), 1U);
        EXPECT_NE(told[0].find(expected), std::string::npos) << told[0];
    }

    store_options options_;
    std::unique_ptr<store> items_;
    thread_counts* counted_ = nullptr;
};

TEST_F(Looking, LinkOutsideThePoolIsNotFollowed) {
    finds("an allocated block", [&] { link() = reinterpret_cast<item*>(0x40); });
}

TEST_F(Looking, LinkIntoABlockIsNotFollowed) {
    finds("an allocated block",
          [&] { link() = reinterpret_cast<item*>(reinterpret_cast<std::uintptr_t>(link()) + 16); });
}

TEST_F(Looking, FreeItemIsNotFollowed) {
    finds("an allocated block", [&] { hf_free(link()); });
}

TEST_F(Looking, CircleEnds) {
    finds("the end of a chain", [&] {
        item* const it = link();
        it->node.next = &it->node;
        table().shape |= 0xffff'ffff; // as many nodes as it takes
    });
}

TEST_F(Looking, ItemOfAnotherInstanceIsNone) {
    finds("an item of this instance", [&] {
        item* first = nullptr; // the last one's key is set before this one is looked at
        hf::structures::for_each(&root().instances[8].table, [&](auto* node) {
            if (first == nullptr) first = reinterpret_cast<item*>(node);
        });
        link() = first;
    });
}

TEST_F(Looking, SegmentIsNoItem) {
    finds("a block of its own",
          [&] { link() = reinterpret_cast<item*>(root().instances[8].table.segments[0]); });
}

TEST_F(Looking, SegmentOfAnotherInstanceIsNone) { // the first one has it
    finds_everywhere("a segment",
                     [&] { table().segments[2] = root().instances[3].table.segments[2]; });
}

TEST_F(Looking, SegmentThatIsTooSmallIsNone) {
    finds_everywhere("a segment", [&] {
        table().segments[2] = reinterpret_cast<hf::structures::hash_node**>(link());
    });
}

TEST_F(Looking, LengthBeyondTheBlockIsNotRead) {
    finds("fits into its block", [&] { link()->value_bytes = 1 << 30; });
}

TEST_F(Looking, KeyWithAnotherHashIsNone) {
    finds("has its hash", [&] { link()->bytes()[0] ^= 1; });
}

TEST_F(Looking, CountThatIsWrongIsFound) {
    finds("the count of nodes", [&] { table().shape += 1; });
}

TEST_F(Looking, WholePoolIsServedAfterALook) {
    options_.look_through = true;
    open();
    EXPECT_TRUE(get("key5"));
    items_.reset();
    ::unlink(options_.path.c_str());
    open(); // a new one
    EXPECT_EQ(set("key5"), outcome::stored);
    EXPECT_TRUE(told.empty());
}

TEST_F(Looking, LockThatTheFileSaysIsHeldIsFree) {
    const std::string key = key_of_instance(7);
    // For the generation that the next open will have.
    const auto word = (items_->pool().generation() + 1) << 32 | std::uint64_t{1} << 30;
    std::memcpy(static_cast<void*>(&root().instances[7].lock), &word, sizeof word);
    open();
    EXPECT_TRUE(get(key));
}

TEST_F(Looking, BlockInsideAnotherRefusesEveryKey) {
    hf::pool& pool = items_->pool();
    ASSERT_TRUE(hf::blocks_disjoint(pool));
    EXPECT_EQ(hf::block_bytes(pool, link()), hf::rounded_size(pool, item_bytes(4, 100)));
    EXPECT_EQ(hf::block_bytes(pool, this), 0U);
    EXPECT_EQ(hf::block_bytes(pool, nullptr), 0U);
    finds_everywhere("the allocator's tables", [&] {
        const std::uint64_t offset = pool.internals().offset_of(link());
        pool.internals().blocks.durable().set_bit({offset + 16, 16}, [](auto*) {});
    });
}

TEST_F(Looking, DamageIsNoMissForAClient) {
    const std::string hit = key_of_instance(7), other = key_of_instance(8);
    link()->value_bytes = 1 << 30;
    open();
    service serving;
    serving.items = items_.get();
    session talk(serving, *counted_, 0);
    byte_buffer out;
    const auto say = [&](const std::string& line) {
        out.clear();
        talk.run(line, out, 1 << 20);
        return std::string(out.view());
    };
    const std::string refused(reply::damaged);
    EXPECT_EQ(say("get " + hit + "\r\n"), refused);
    EXPECT_EQ(say("gat 1 " + hit + "\r\n"), refused);
    EXPECT_EQ(say("set " + hit + " 0 0 1\r\nx\r\n"), refused);
    EXPECT_EQ(say("append " + hit + " 0 0 1\r\nx\r\n"), refused);
    EXPECT_EQ(say("incr " + hit + " 1\r\n"), refused);
    EXPECT_EQ(say("delete " + hit + "\r\n"), refused);
    EXPECT_EQ(say("set " + other + " 0 0 1\r\nx\r\nget " + other + "\r\n"),
              "STORED\r\nVALUE " + other + " 0 1\r\nx\r\nEND\r\n");
}

// Readers and writers come to unseen instances at the same time.
TEST_F(Looking, ManyThreadsLookAtOnce) {
    open();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            thread_counts& counted = items_->counted().join();
            for (int i = 0; i < 20'000; ++i) {
                const std::string key = "key" + std::to_string((i * 7919 + t) % 20'000);
                EXPECT_TRUE(items_->get(key, counted, [](const item_view&) {}));
                request r;
                r.what = verb::set;
                const std::string fresh = "fresh" + std::to_string(i * 4 + t);
                r.key = fresh;
                change done;
                EXPECT_EQ(items_->write(r, {}, counted, done), outcome::stored);
            }
        });
    for (std::thread& each : threads) each.join();
    EXPECT_TRUE(told.empty());
    EXPECT_TRUE(check_pool(*items_).whole());
}

} // namespace
