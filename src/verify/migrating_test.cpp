// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool on its way to another layout is good wherever it was cut short, and a record that
// leads out of the heap is found, by the examination and by open. Method: a child that ends in the
// middle; the state after a cut behind the last header write is forged from that, step by step.
#include <verify/examine.hpp>
#include <verify/test_pools.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/migration.hpp>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::verdict;

struct new_root {
    std::uint64_t room[40];
};

struct third_root {
    std::uint64_t room[50];
};

class Migrating : public Pools {
protected:
    open_options next_;

    /// The pool of a process that dies when it has made the new root.
    bytes make_under_way() {
        make_pool();
        next_ = options;
        next_.layout = "verify_test/2";
        next_.root_bytes = sizeof(new_root);
        next_.migrate = [](migration& m) {
            auto made = m.new_root<new_root>();
            if (made) (*made)->room[0] = 42;
            return made ? status{} : made.error();
        };
        EXPECT_TRUE(in_child([&] {
            open_options cut = next_;
            cut.migrate = [&](migration& m) -> status {
                (void)next_.migrate(m);
                ::_exit(0);
            };
            (void)pool::open(path, cut);
        }));
        bytes file = read_all(path);
        EXPECT_TRUE(is_migrating(load<pool_header>(file, 0)));
        return file;
    }
    void expect_opens(const bytes& file) {
        expect_goes_on(file);
        write_all(path, file);
        auto p = pool::open(path, next_);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->root<new_root>()->room[0], 42);
        EXPECT_EQ(account(*p).blocks, blocks_);
    }
    /// To a third layout, by a program that never was in the second: the remaining steps of the
    /// first migration come first.
    void expect_goes_on(const bytes& file) {
        write_all(path, file);
        open_options third = next_;
        third.layout = "verify_test/3";
        third.root_bytes = sizeof(third_root);
        third.migrate = [](migration& m) -> status {
            EXPECT_EQ(m.from_layout(), "verify_test/2");
            EXPECT_EQ(*m.cursor(), 0);
            const auto* from = m.in().root<new_root>();
            EXPECT_TRUE(from != nullptr && from->room[0] == 42);
            auto made = m.new_root<third_root>();
            return made ? status{} : made.error();
        };
        auto p = pool::open(path, third);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(account(*p).blocks, blocks_);
    }
    std::uint64_t blocks_ = 0;
};

TEST_F(Migrating, IsGoodWhereverItWasCut) {
    bytes file = make_under_way();
    {
        const auto r = examine(file, depth::deep);
        EXPECT_TRUE(r.findings.empty()) << lines_of(r);
    }
    write_all(path, file);
    {
        auto p = pool::open(path, next_);
        ASSERT_TRUE(p) << p.error().what();
        blocks_ = account(*p).blocks;
    }
    // Behind the header write, with one more of the remaining steps each time.
    edit_headers(file, [](pool_header& h) {
        std::memcpy(h.layout, h.next_layout, sizeof h.layout);
        std::memset(h.next_layout, 0, sizeof h.next_layout);
        h.required_features &= ~feature_migrating;
        h.file_inode = h.file_birth_ns = 0; // the files below are others
    });
    const auto words = load<root_words>(file, root_words_offset);
    const auto expect_good = [&] {
        const auto r = examine(file, depth::deep);
        EXPECT_TRUE(r.findings.empty()) << lines_of(r);
        expect_opens(file);
    };
    const std::uint64_t at = words.migration_offset;
    const auto record = load<migration_record>(file, at);
    expect_good();
    store(file, at + offsetof(migration_record, old_bytes), words.root_bytes);
    store(file, at + offsetof(migration_record, old_offset), words.root_offset);
    expect_good();
    store(file, root_words_offset + offsetof(root_words, root_bytes), record.next_bytes);
    expect_good();
    store(file, root_words_offset + offsetof(root_words, root_offset), record.next_offset);
    expect_good();
}

struct large_root {
    std::uint64_t room[3000];
};

TEST_F(Migrating, IsGoodWithALargeOldRootHalfFreed) {
    ASSERT_NE(open_good().root<large_root>(), nullptr);
    next_ = options;
    next_.layout = "verify_test/2";
    next_.migrate = [](migration& m) {
        auto made = m.new_root<new_root>();
        return made ? status{errc::conflict, "later"} : made.error();
    };
    EXPECT_FALSE(pool::open(path, next_));
    bytes file = read_all(path);
    edit_headers(file, [](pool_header& h) {
        std::memcpy(h.layout, h.next_layout, sizeof h.layout);
        std::memset(h.next_layout, 0, sizeof h.next_layout);
        h.required_features &= ~feature_migrating;
        h.open = 1;
    });
    const auto words = load<root_words>(file, root_words_offset);
    const std::uint64_t at = words.migration_offset;
    const auto record = load<migration_record>(file, at);
    store(file, at + offsetof(migration_record, old_bytes), words.root_bytes);
    store(file, at + offsetof(migration_record, old_offset), words.root_offset);
    store(file, root_words_offset + offsetof(root_words, root_bytes), record.next_bytes);
    store(file, root_words_offset + offsetof(root_words, root_offset), record.next_offset);
    // Its chunk's entry is gone, its bit is not.
    const verify::extent_image first =
        verify::pool_image(file, load<pool_header>(file, 0)).extents().front();
    const std::uint64_t chunk = (words.root_offset - first.data_offset) / 4096;
    store(file, first.entries_offset + chunk * 8, std::uint64_t{0});
    const auto r = examine(file, depth::deep);
    EXPECT_TRUE(r.findings.empty()) << lines_of(r);
    write_all(path, file);
    auto p = pool::open(path, [&] {
        open_options o = next_;
        o.salvage = true; // another file
        return o;
    }());
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(account(*p).blocks, 1);
}

TEST_F(Migrating, ToALayoutOfWhichTheHeaderHoldsNothingElse) {
    bytes file = make_pool();
    edit_headers(file, [](pool_header& h) { std::memset(h.next_layout, 'x', 63); });
    write_all(path, file);
    options.layout = "verify_test/2";
    options.migrate = [](migration&) { return status{}; };
    EXPECT_TRUE(pool::open(path, options));
    options.migrate = {};
    auto p = pool::open(path, options);
    EXPECT_TRUE(p) << p.error().what();
}

TEST_F(Migrating, ARecordThatLeadsOutOfTheHeapIsFound) {
    bytes good = make_under_way();
    edit_headers(good, [](pool_header& h) { h.file_inode = h.file_birth_ns = 0; });
    const auto at = load<root_words>(good, root_words_offset).migration_offset;
    const std::uint64_t places[] = {root_words_offset + offsetof(root_words, migration_offset),
                                    at + offsetof(migration_record, next_offset)};
    for (const std::uint64_t place : places)
        for (const std::uint64_t value : {1ULL, 8192ULL, 1ULL << 40, ~0ULL}) {
            bytes file = good;
            store(file, place, std::uint64_t{value});
            const auto r = examine(file, depth::tables);
            EXPECT_EQ(r.outcome, verdict::damaged) << place << " " << value << lines_of(r);
            write_all(path, file);
            auto p = pool::open(path, next_);
            ASSERT_FALSE(p) << place << " " << value;
            EXPECT_EQ(p.error().code(), errc::corrupt) << p.error().what();
        }
}

} // namespace
