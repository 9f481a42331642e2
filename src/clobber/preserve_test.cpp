// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regression: a section may preserve bytes that it changes afterwards. Its first run read the
// original, changed; the re-execution the record. Both must read what was recorded.
#include <section/list_sections.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <sys/wait.h>

namespace {

using namespace hf;
using namespace hf::list_sections;

struct words {
    std::uint64_t a[2];
    std::uint64_t seen;
    std::uint64_t runs;
};

template <bool Clobber> void mix_body(words* w) {
    const std::uint64_t* kept = vlog_preserve(static_cast<const std::uint64_t*>(w->a), 2);
    step();
    store_over_input<Clobber>(&w->a[0], kept[1] * 2);
    store_over_input<Clobber>(&w->a[1], kept[0] + 1);
    store_over_input<Clobber>(&w->seen, kept[0] * 100 + kept[1]);
    store_over_input<Clobber>(&w->runs, w->runs + 1);
}
void mix_again(const void* packed) { mix_body<true>(*static_cast<words* const*>(packed)); }

const hf_arg mix_schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc mix_desc{HF_ABI_VERSION, sizeof(words*), 2021, 1,        "mix",
                         "here",         mix_schema,     1,    mix_again};
const bool mix_registered = (hf_txfunc_register(&mix_desc), true);

void mix(bool clobber, words* w) {
    if (clobber) {
        hf_clobber_begin(&mix_desc, &w);
        mix_body<true>(w);
        step();
        hf_clobber_commit();
    } else {
        hf_undo_begin(&mix_desc, &w);
        mix_body<false>(w);
        step();
        hf_undo_commit();
    }
}

/// The words 3 and 5 after 'runs' sections.
words expected(std::uint64_t runs) {
    words w{{3, 5}, 0, runs};
    for (std::uint64_t i = 0; i < runs; ++i) {
        const std::uint64_t kept[2] = {w.a[0], w.a[1]};
        w.a[0] = kept[1] * 2;
        w.a[1] = kept[0] + 1;
        w.seen = kept[0] * 100 + kept[1];
    }
    return w;
}

class Preserved : public ::testing::TestWithParam<bool> {
protected:
    void TearDown() override { ::unlink(path_.c_str()); }
    result<pool> open() {
        open_options options;
        options.layout = "preserve_test/1";
        options.create_bytes = 1_MiB;
        options.engines = {clobber::engine(), undo::engine()};
        return pool::open(path_, options);
    }
    /// True when the child was not killed.
    bool in_child(int k) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = open();
            if (!p) ::_exit(1);
            auto* w = p->root<words>();
            if (w->a[0] == 0) w->a[0] = 3, w->a[1] = 5;
            steps_left = k;
            for (int i = 0; i < 3; ++i) mix(GetParam(), w);
            ::_exit(0);
        }
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        return WIFEXITED(how);
    }
    std::string path_ = "/dev/shm/hf_preserve_test." + std::to_string(::getpid());
};

TEST_P(Preserved, BytesAreReadAsTheyWereWhateverTheSectionMakesOfThem) {
    int k = 0;
    for (bool through = false; !through && !HasFailure(); ++k) {
        ::unlink(path_.c_str());
        through = in_child(k);
        auto p = open();
        ASSERT_TRUE(p) << p.error().what();
        const auto* w = p->root<words>();
        const words whole = expected(w->runs);
        EXPECT_EQ(w->a[0], whole.a[0]) << "step " << k;
        EXPECT_EQ(w->a[1], whole.a[1]) << "step " << k;
        EXPECT_EQ(w->seen, whole.seen) << "step " << k;
    }
    EXPECT_GT(k, 30);
}

INSTANTIATE_TEST_SUITE_P(Engines, Preserved, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "clobber" : "undo"; });

// Many and large: those that were returned first stay as they are.
TEST(PreservedCopies, StayWhateverFollows) {
    const std::string path = "/dev/shm/hf_preserve_test_large." + std::to_string(::getpid());
    open_options options;
    options.layout = "preserve_test/1";
    options.create_bytes = 4_MiB;
    options.engines = {clobber::engine()};
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    auto* w = p->root<words>();
    hf_clobber_begin(&mix_desc, &w);
    std::array<std::pair<const char*, std::size_t>, 40> kept;
    std::array<char, 3000> text;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        text.fill(char('a' + i % 26));
        kept[i] = {vlog_preserve(text.data(), i * 73), i * 73};
    }
    text.fill('#');
    for (std::size_t i = 0; i < kept.size(); ++i)
        EXPECT_EQ(std::string(kept[i].first, kept[i].second),
                  std::string(kept[i].second, char('a' + i % 26)));
    hf_clobber_commit();
    ::unlink(path.c_str());
}

// Regression: what a section had preserved was kept for as long as its thread used the pool.
TEST(PreservedCopies, MakeRoomForTheNextSections) {
    const std::string path = "/dev/shm/hf_preserve_test_room." + std::to_string(::getpid());
    open_options options;
    options.layout = "preserve_test/1";
    options.create_bytes = 1_MiB;
    options.engines = {clobber::engine()};
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    auto* w = p->root<words>();
    const char text[100] = "the same bytes, section after section";
    const char* first = nullptr;
    for (int i = 0; i < 20; ++i) {
        hf_clobber_begin(&mix_desc, &w);
        const char* kept = vlog_preserve(text, sizeof text);
        hf_clobber_commit();
        if (i == 0) first = kept;
        EXPECT_EQ(kept, first) << "section " << i;
    }
    ::unlink(path.c_str());
}

} // namespace
