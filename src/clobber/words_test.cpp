// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section of engine clobber whose log is plain words (log/word_log.hpp) is completed where
//       order is kept, and rolled back or refused elsewhere; a log that no such section writes is
//       refused, by open and by verify.
// Method: a child that is killed in a section, its file changed or opened in another mode; sections
//         of three engines that take turns.
#include <log/word_log.hpp>
#include <open/pool_impl.hpp>
#include <pool/test_support.hpp>
#include <verify/examine.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/undo.hpp>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

struct root_object {
    std::uint64_t input, output;
};
struct arguments {
    root_object* r;
    std::uint64_t by;
};

bool dies = false; // before its last store

void add_body(const arguments& a) {
    hf_note_store(&a.r->output, 8);
    *const_cast<volatile std::uint64_t*>(&a.r->output) = a.by;
    hf_clobber_log(&a.r->input, 8);
    *const_cast<volatile std::uint64_t*>(&a.r->input) = a.r->input + a.by;
    if (dies) ::raise(SIGKILL);
    hf_note_store(&a.r->output, 8);
    *const_cast<volatile std::uint64_t*>(&a.r->output) = a.by + 1;
}
void add_again(const void* packed) { add_body(*static_cast<const arguments*>(packed)); }
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_VALUE}};
const hf_txfunc adds{HF_ABI_VERSION, sizeof(arguments), 2501, 7, "adds", "here", schema, 2,
                     add_again};

/// Asks for more than any pool has, and notes that there was no room.
void ask_body(const arguments& a) {
    if (hf_alloc(~std::size_t{0}) == nullptr) {
        hf_clobber_log(&a.r->input, 8);
        *const_cast<volatile std::uint64_t*>(&a.r->input) = a.r->input + a.by;
    }
    if (dies) ::raise(SIGKILL);
}
void ask_again(const void* packed) { ask_body(*static_cast<const arguments*>(packed)); }
const hf_txfunc asks{HF_ABI_VERSION, sizeof(arguments), 2502, 7, "asks", "here", schema, 2,
                     ask_again};
[[maybe_unused]] const bool registered =
    (hf_txfunc_register(&adds), hf_txfunc_register(&asks), true);

void add(root_object* r, std::uint64_t by) {
    const arguments a{r, by};
    hf_clobber_begin(&adds, &a);
    add_body(a);
    hf_clobber_commit();
}
void ask(root_object* r, std::uint64_t by) {
    const arguments a{r, by};
    hf_clobber_begin(&asks, &a);
    ask_body(a);
    hf_clobber_commit();
}
void add_by_undo(root_object* r) {
    hf_undo_begin(&adds, nullptr);
    hf_undo_log(&r->input, 8);
    ++r->input;
    hf_undo_commit();
}
void add_by_selective(root_object* r) {
    hf_selective_begin(&adds, nullptr);
    hf_selective_log(&r->input, 8);
    ++r->input;
    hf_log_free(&r->output, 8);
    r->output = 0;
    hf_selective_commit();
}

class ClobberWords : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_clobber_words.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        dies = false;
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    result<pool> open(hf::mode mode, bool keeps = true) const {
        open_options o;
        o.layout = "words/1";
        o.create_bytes = 1_MiB;
        o.mode = mode;
        o.engines = {clobber::engine({.keep_overwritten = keeps}), undo::engine(),
                     selective::engine()};
        return pool::open(path, o);
    }
    /// The pool of a process that is killed in its third section, which adds 3.
    void kill_in_section(hf::mode mode, bool keeps = true,
                         void (*section)(root_object*, std::uint64_t) = add) const {
        std::filesystem::remove(path);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            auto p = open(mode, keeps);
            auto* const r = p->root<root_object>();
            for (std::uint64_t by : {1U, 2U, 3U}) {
                dies = by == 3;
                section(r, by);
            }
            ::_exit(1);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how));
    }
    std::uint64_t lane() const {
        pool_header h;
        const std::string file = hf::test::contents(path);
        std::memcpy(&h, file.data(), sizeof h);
        return h.lanes_offset;
    }
    static constexpr std::uint64_t log_at = sizeof(lane_header) + line_bytes;
    static constexpr std::uint64_t begin_bytes = 48; // two words, the version and two arguments
    void set_word(std::uint64_t at, std::uint64_t to) const {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(lane() + at));
        file.write(reinterpret_cast<const char*>(&to), sizeof to);
    }
    verify::verdict verified() const {
        const std::string file = hf::test::contents(path);
        return verify::examine(std::as_bytes(std::span(file)), verify::depth::deep).outcome;
    }

    std::string directory, path;
};

TEST_F(ClobberWords, OfAKilledSectionCompleteItWithItsArguments) {
    for (const bool keeps : {true, false}) {
        kill_in_section(mode::process, keeps);
        auto p = open(mode::process, keeps);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        EXPECT_EQ(p->root<root_object>()->input, 6U);
        EXPECT_EQ(p->root<root_object>()->output, 4U);
        EXPECT_EQ(lane_at(*p->internals().file, 0)->logged, 0U);
    }
}

TEST_F(ClobberWords, SayThatThereWasNoRoomForMoreThanAPoolHas) {
    kill_in_section(mode::process, true, ask);
    EXPECT_NE(verified(), verify::verdict::damaged);
    auto p = open(mode::process);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().re_executed, 1U);
    EXPECT_EQ(p->root<root_object>()->input, 6U);
}

/// Neither kind of log can go on as the other.
TEST_F(ClobberWords, AreRolledBackInAnotherModeOrTheirOwnIsAskedFor) {
    const std::pair<mode, mode> ways[] = {{mode::process, mode::pmem}, {mode::pmem, mode::process}};
    for (const auto& [left, opened] : ways) {
        kill_in_section(left);
        {
            auto p = open(opened);
            ASSERT_TRUE(p) << p.error().what();
            EXPECT_EQ(p->recovered().rolled_back, 1U);
            EXPECT_EQ(p->root<root_object>()->input, 3U);
            EXPECT_EQ(p->root<root_object>()->output, 3U);
        }
        kill_in_section(left, false);
        const auto refused = open(opened, false);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code(), errc::mode_unavailable) << refused.error().what();
        auto p = open(left, false);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        EXPECT_EQ(p->root<root_object>()->input, 6U);
    }
}

TEST_F(ClobberWords, OfThreeEnginesTakeTurns) {
    auto p = open(mode::process);
    ASSERT_TRUE(p) << p.error().what();
    auto* const r = p->root<root_object>();
    for (std::uint64_t round = 1; round <= 3; ++round) {
        add(r, 1);
        add(r, 1);
        EXPECT_EQ(r->output, 2U);
        add_by_undo(r);
        add_by_undo(r);
        add_by_selective(r);
        add_by_selective(r);
        EXPECT_EQ(r->output, 0U);
        EXPECT_EQ(r->input, 6 * round);
    }
}

/// One word of the log of a killed section, as no section writes it.
struct damage {
    const char* what;
    std::uint64_t at, to;
    bool is_damage; // to everybody; else to a build that has the function
};

TEST_F(ClobberWords, ThatNoSectionWritesAreRefused) {
    constexpr std::uint64_t kind = std::uint64_t{1} << 56; // begin
    const std::uint64_t entries = log_at + begin_bytes;
    const damage all[] = {
        {"no begin entry", log_at, 3 * kind, true},
        {"an environment of more bits", log_at, kind + 0x10000, true},
        {"an environment that none is", log_at, kind + 1, false},
        {"no version", log_at + 8, 0, true},
        {"fewer arguments", log_at + 8, 16, true},
        {"more arguments than a log has", log_at + 8, 8 + args_bytes_max + 8, true},
        {"endless arguments", log_at + 8, ~std::uint64_t{0}, true},
        {"another version", log_at + 16, 8, false},
        {"a pointer out of the pool", log_at + 24, 16, false},
        {"a second begin entry", entries, kind, true},
        {"bytes of the header", entries, std::uint64_t{0x98} << 56 | 64, true},
        {"a word of nine bytes", entries, std::uint64_t{0x99} << 56, true},
        {"a word of none", entries, std::uint64_t{0x90} << 56, true},
        {"an unknown kind", entries, std::uint64_t{13} << 56, true},
        {"an end within an entry", offsetof(lane_header, logged), 0, true}, // set below
        {"another engine's", offsetof(lane_header, logged_engine), engine_undo, true},
    };
    for (const damage& each : all) {
        SCOPED_TRACE(each.what);
        kill_in_section(mode::process);
        const std::uint64_t to =
            each.at == offsetof(lane_header, logged) ? lane() + entries + 8 : each.to;
        set_word(each.at, to);
        EXPECT_EQ(verified() == verify::verdict::damaged, each.is_damage);
        const auto refused = open(mode::process);
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().code(), errc::io_error) << refused.error().what();
    }
}

} // namespace
