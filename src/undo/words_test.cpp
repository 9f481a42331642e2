// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the log of plain words (log/word_log.hpp) is the section's pool's, whichever pool the
//       thread used before; and a damaged one is refused, or given up, and never believed in part.
// Method: two pools open together, one closed; a child that is killed in a section, and its file
//           changed.
#include <log/word_log.hpp>
#include <open/pool_impl.hpp>
#include <pool/test_support.hpp>
#include <section/section.hpp>
#include <verify/examine.hpp>

#include <holdfast/abi/justdo_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/undo.hpp>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

struct root_object {
    std::uint64_t count;
    void* block;
};
const hf_arg schema[] = {{0, sizeof(void*), HF_ARG_POOL_POINTER}};
const hf_txfunc described{HF_ABI_VERSION, sizeof(void*), 2402, 1,      "words",
                          "here",         schema,        1,    nullptr};

template <class T> void store(T* to, T value) {
    hf_undo_log(to, sizeof value);
    *const_cast<volatile T*>(to) = value;
}
/// The compiler's entry in line.
void store_in_line(std::uint64_t* to, std::uint64_t value) {
    if (hf_words.next >= hf_words.limit) return store(to, value);
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<char*>(to) - hf_words.base);
    ASSERT_LT(offset, hf_words.words_end);
    const std::uint64_t entry[] = {std::uint64_t{0x88} << 56 | offset, *to};
    std::memcpy(hf_words.next, entry, sizeof entry);
    hf_words.next += sizeof entry;
    *hf_words.logged = static_cast<std::uint64_t>(hf_words.next - hf_words.base);
    *const_cast<volatile std::uint64_t*>(to) = value;
}
void add_one(root_object* r) {
    hf_undo_begin(&described, &r);
    store_in_line(&r->count, r->count + 1);
    hf_undo_commit();
}

void add_one_by_redo(root_object* r) {
    hf_redo_begin(&described, &r);
    *static_cast<std::uint64_t*>(hf_redo_write(&r->count, sizeof r->count)) = r->count + 1;
    hf_redo_commit();
}

class Words : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_words_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    result<pool> open(const std::string& at, bool salvage = false, bool roll_back = false) const {
        open_options o;
        o.layout = "words/1";
        o.create_bytes = 1_MiB;
        o.engines = {undo::engine(), redo::engine()};
        o.salvage = salvage;
        if (roll_back) o.recovery = recovery_policy::roll_back;
        return pool::open(at, o);
    }
    /// A process that does so in a section is killed there.
    void kill_in_section(const std::function<void(root_object*)>& body) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto p = open(path);
            auto* const r = p->root<root_object>();
            hf_undo_begin(&described, &r);
            store(&r->block, hf_alloc(500));
            store_in_line(&r->count, std::uint64_t{20});
            hf_undo_commit();
            hf_undo_begin(&described, &r);
            body(r);
            ::raise(SIGKILL);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how));
    }
    /// Where the lane's header, and its log, begin.
    static std::uint64_t lane(const std::string& file) {
        pool_header h;
        std::memcpy(&h, file.data(), sizeof h);
        return h.lanes_offset;
    }
    static constexpr std::uint64_t log_at = sizeof(lane_header) + line_bytes;
    std::uint64_t word(std::uint64_t at) const {
        const std::string file = hf::test::contents(path);
        std::uint64_t out = 0;
        std::memcpy(&out, file.data() + at, sizeof out);
        return out;
    }
    void set_word(std::uint64_t at, std::uint64_t to) const {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(at));
        file.write(reinterpret_cast<const char*>(&to), sizeof to);
    }
    std::uint64_t lane_offset() const { return lane(hf::test::contents(path)); }

    std::string directory, path;
};

/// The C API opens pools with every engine. A program without functions that resume pays for none.
TEST_F(Words, BeginAgainWhereAnEngineThatResumesIsGiven) {
    open_options o;
    o.layout = "words/1";
    o.create_bytes = 1_MiB;
    o.engines = {justdo::engine(), undo::engine()};
    auto p = pool::open(path, o);
    ASSERT_TRUE(p) << p.error().what();
    add_one(p->root<root_object>());
    EXPECT_NE(next_section_here.offered, next_section::none);
}

/// Memory that a section took is known as fresh until the section ends, in either way.
TEST_F(Words, LeaveMemoryOfTheSectionsOwnAlone) {
    auto p = open(path);
    ASSERT_TRUE(p) << p.error().what();
    auto* const r = p->root<root_object>();
    std::uint64_t* taken[40]; // more than a section looks at one by one
    for (bool aborted : {true, false}) {
        add_one(r);
        hf_undo_begin(&described, &r);
        const std::uint64_t ended = lane_at(*p->internals().file, 0)->logged;
        for (std::uint64_t*& block : taken) {
            block = static_cast<std::uint64_t*>(hf_alloc(48));
            EXPECT_TRUE(section::is_known_fresh(block));
        }
        for (std::uint64_t* block : taken) {
            for (int i = 0; i < 6; ++i) store(block + i, std::uint64_t{1});
            EXPECT_TRUE(section::is_known_fresh(block + 5));
        }
        EXPECT_EQ(lane_at(*p->internals().file, 0)->logged, ended) << "nothing was logged";
        store(&r->block, static_cast<void*>(taken[7]));
        if (aborted) hf_abort_section();
        hf_undo_commit();
        for (std::uint64_t* block : taken) EXPECT_FALSE(section::is_known_fresh(block));
    }
    hf_undo_begin(&described, &r);
    for (std::uint64_t* block : taken) store(block, std::uint64_t{2});
    hf_abort_section();
    hf_undo_commit();
    for (std::uint64_t* block : taken) EXPECT_EQ(*block, 1U);
}

/// What is near a byte of the set is of the set, and all of its block where the blocks are few.
TEST(BlockSet, FindsTheBytesAroundOne) {
    std::mt19937_64 random(1);
    block_set set;
    std::vector<block> blocks;
    for (std::uint64_t at = 4096; blocks.size() < 400; at += granule_bytes * (random() % 3)) {
        const std::uint64_t granules = random() % 16 == 0 ? 300 : 1 + random() % 70;
        const block b{at, granules * granule_bytes};
        set.make_room();
        set.add(b);
        blocks.push_back(b);
        at += b.bytes;
        for (const block& each : {b, blocks[random() % blocks.size()]}) {
            const std::uint64_t offset = each.offset + random() % each.bytes;
            const block around = set.around(offset);
            EXPECT_LT(offset - around.offset, around.bytes);
            if (blocks.size() <= 32) EXPECT_EQ(around.offset, each.offset);
            for (std::uint64_t in = 0; in < around.bytes; in += granule_bytes)
                ASSERT_TRUE(set.covers(around.offset + in)) << offset;
        }
    }
}

/// A library may bring such functions when the pool is open.
TEST_F(Words, AreRefusedInASectionThatResumesOfALibraryThatIsLoadedLater) {
    static const hf_justdo_function late{HF_ABI_VERSION, 64, 4401, 1,     "late",
                                         "words_test",   1,  0,    [] {}, nullptr};
    open_options o;
    o.layout = "words/1";
    o.create_bytes = 1_MiB;
    o.engines = {justdo::engine(), undo::engine()};
    EXPECT_DEATH(
        {
            auto p = pool::open(path, o);
            auto* const r = p->root<root_object>();
            add_one(r);
            hf_justdo_register(&late);
            std::uint32_t resumed = 0;
            static_cast<void>(hf_justdo_enter(&late, r, &resumed));
            hf_justdo_lock(r, HF_JUSTDO_NO_LOCK, 1);
            add_one(r);
        },
        "is called while a section of engine justdo is open, in late");
}

/// A section that begins like the thread's last one does so only if that was of its engine.
TEST_F(Words, AreThoseOfTheThreadsLastSectionOnlyIfThatWasOfUndo) {
    auto p = open(path);
    ASSERT_TRUE(p) << p.error().what();
    auto* const r = p->root<root_object>();
    for (std::uint64_t round = 0; round < 3; ++round) {
        add_one(r);
        add_one(r);
        add_one_by_redo(r);
    }
    hf_undo_begin(&described, &r);
    store(&r->count, std::uint64_t{77});
    hf_abort_section();
    hf_undo_commit();
    EXPECT_EQ(r->count, 9U);
    add_one_by_redo(r);
    add_one(r);
    EXPECT_EQ(r->count, 11U);
}

TEST_F(Words, AreThoseOfTheSectionsPoolWhicheverOneWasUsedBefore) {
    auto a = open(path);
    ASSERT_TRUE(a) << a.error().what();
    auto* const first = a->root<root_object>();
    add_one(first);
    std::optional<pool> b{std::move(*open(path + "2"))};
    add_one(b->root<root_object>());
    staged::near(first, 64).reset(); // the thread has used A last, outside of sections
    b.reset();
    add_one(first);
    EXPECT_EQ(first->count, 2U);
    EXPECT_EQ(lane_at(*a->internals().file, 0)->logged, 0U);
}

TEST_F(Words, OfAnEndThatNothingLeadsToAreNotBelieved) {
    kill_in_section([](root_object*) {});
    const std::uint64_t logged = lane_offset() + offsetof(lane_header, logged);
    EXPECT_EQ(word(logged), 0U) << "the section has stored nothing";
    set_word(logged, 8); // the log has entries of the section before
    {
        const auto refused = open(path);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), errc::corrupt) << refused.error().what();
    }
    auto salvaged = open(path, true, true);
    ASSERT_TRUE(salvaged) << salvaged.error().what();
    const auto* const r = salvaged->root<root_object>();
    EXPECT_EQ(r->count, 20U) << "what was committed stays";
    EXPECT_NE(salvaged->internals().blocks.find(salvaged->internals().offset_of(r->block)).bytes,
              0U);
}

TEST_F(Words, NameNoBlockAmongBlocksOfAnotherSize) {
    kill_in_section([](root_object* r) { store_in_line(&r->count, std::uint64_t{21}); });
    const std::uint64_t header = lane_offset();
    const std::uint64_t block = word(word(root_words_offset) + offsetof(root_object, block));
    pool_header h;
    std::memcpy(&h, hf::test::contents(path).data(), sizeof h);
    const std::uint64_t offset = block - h.base_address;
    set_word(header + log_at, std::uint64_t{5} << 56 | offset); // freed, of another size
    set_word(header + log_at + word_bytes, 64);
    const auto refused = open(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::corrupt) << refused.error().what();
}

TEST_F(Words, OfALaneWithAMarkThatIsNoneAreDamagedForVerifyAsWell) {
    kill_in_section([](root_object* r) { store_in_line(&r->count, std::uint64_t{21}); });
    set_word(lane_offset(), 0xf000);
    EXPECT_FALSE(open(path));
    const std::string file = hf::test::contents(path);
    EXPECT_EQ(verify::examine(std::as_bytes(std::span(file)), verify::depth::deep).outcome,
              verify::verdict::damaged);
}

TEST_F(Words, OfASectionThatWasKilledAreTakenBack) {
    kill_in_section([](root_object* r) { store_in_line(&r->count, std::uint64_t{21}); });
    auto p = open(path);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->root<root_object>()->count, 20U);
    EXPECT_EQ(p->recovered().sections_pending, 1U);
}

} // namespace
