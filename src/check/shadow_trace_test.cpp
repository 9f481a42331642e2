// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a run that keeps the rule of functional shadowing is accepted, and each way to break it is
// found. Method: an update step by step, and the same with one step wrong.
#include <check/shadow_trace.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using hf::domain;
using hf::check::shadow_trace;

constexpr std::size_t word = 0, other_word = 64, node = 256, second_node = 288, other_line = 512;

/// Makes a node and stores to it.
void make(shadow_trace& t, std::size_t at) {
    t.fresh(at, 32);
    t.store(at, 32);
}
void swing(shadow_trace& t, std::size_t at) {
    t.commit(at, 8);
    t.store(at, 8);
    t.flush(at, 8);
}
/// Flushes, names and fences a node that was made, and swings a word to it.
void commit(shadow_trace& t, std::size_t to, std::size_t at = word) {
    t.named(to, 32);
    t.flush(to, 32);
    t.fence();
    swing(t, at);
}

bool complains_of(const shadow_trace& t, const char* what) {
    return t.wrong().find(what) != std::string::npos;
}

TEST(ShadowTrace, AcceptsUpdatesThatKeepTheRule) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.store(node + 8, 8); // in place, as long as nothing names it
    commit(t, node);
    make(t, second_node);
    commit(t, second_node);
    t.fresh(node, 32); // retired, and used again
    t.store(node, 8);
    commit(t, node);
    EXPECT_EQ(t.wrong(), "");
    EXPECT_EQ(t.nodes(), 3U);
    EXPECT_EQ(t.commits(), 3U);
}

TEST(ShadowTrace, AVersionThatIsNotCommittedYetMayWait) {
    shadow_trace t(4096, domain::adr);
    make(t, second_node);
    make(t, node); // of another shadow, on the same line
    commit(t, node);
    t.store(second_node, 8); // in place still
    commit(t, second_node, other_word);
    EXPECT_EQ(t.wrong(), "");
}

TEST(ShadowTrace, OneCommitMayStoreSeveralWords) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    make(t, other_line);
    t.named(other_line, 32);
    t.flush(other_line, 32);
    commit(t, node);
    swing(t, other_word);
    t.fence();
    EXPECT_EQ(t.wrong(), "");
}

TEST(ShadowTrace, RejectsAStoreToAPublishedNode) {
    for (const domain d : {domain::adr, domain::eadr, domain::process}) {
        shadow_trace t(4096, d);
        make(t, node);
        commit(t, node);
        t.store(node + 24, 8);
        EXPECT_TRUE(complains_of(t, "a node that a commit has named")) << t.wrong();
    }
}

TEST(ShadowTrace, AnElementAnnouncedMayBeStoredInPlaceOnce) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    commit(t, node);
    t.in_place(node + 8, 8);
    t.store(node + 8, 8);
    t.flush(node + 8, 8);
    t.fence();
    EXPECT_EQ(t.wrong(), "");
    t.store(node + 8, 8);
    EXPECT_TRUE(complains_of(t, "a commit has named")) << "not twice";
    shadow_trace wide(4096, domain::adr);
    make(wide, node);
    commit(wide, node);
    wide.in_place(node + 4, 8);
    EXPECT_TRUE(complains_of(wide, "more than a word"));
}

TEST(ShadowTrace, AThreadMayStoreTheElementThatItAnnouncedItself) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    commit(t, node);
    t.in_place(node + 8, 8);
    t.set_thread(1);
    t.in_place(node + 8, 8);
    t.store(node + 8, 8);
    t.set_thread(0);
    t.store(node + 8, 8);
    EXPECT_EQ(t.wrong(), "") << "a reader helped the writer along";
    t.set_thread(1);
    t.store(node + 8, 8);
    EXPECT_TRUE(complains_of(t, "a commit has named")) << "not twice";
    shadow_trace other(4096, domain::adr);
    make(other, node);
    commit(other, node);
    other.in_place(node + 8, 8);
    other.set_thread(1);
    other.store(node + 8, 8);
    EXPECT_TRUE(complains_of(other, "a commit has named")) << "another thread's announcement";
}

TEST(ShadowTrace, AThreadMayStoreTheWordThatItAnnouncedItself) {
    shadow_trace t(4096, domain::adr);
    t.commit(1024, 8);
    t.set_thread(1);
    t.commit(1024, 8);
    t.nt_store(1024, 8);
    t.set_thread(0);
    t.nt_store(1024, 8);
    EXPECT_EQ(t.wrong(), "") << "each had announced it";
    t.nt_store(1024, 8);
    EXPECT_TRUE(complains_of(t, "is stored without one")) << t.wrong();
}

TEST(ShadowTrace, RejectsAStoreAfterTheFlush) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.flush(node, 32);
    t.store(node, 8);
    t.named(node, 32);
    t.fence();
    EXPECT_TRUE(complains_of(t, "what was stored is not flushed")) << t.wrong();
}

TEST(ShadowTrace, RejectsANodeThatIsNotFlushed) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    make(t, other_line);
    t.named(other_line, 32);
    commit(t, node);
    EXPECT_TRUE(complains_of(t, "what was stored is not flushed")) << t.wrong();
}

TEST(ShadowTrace, RejectsAWordBeforeTheFenceOfItsNodes) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.named(node, 32);
    t.flush(node, 32);
    swing(t, word);
    EXPECT_TRUE(complains_of(t, "no fence made durable")) << t.wrong();
}

TEST(ShadowTrace, RejectsAWordBeforeTheFlushOfItsNodes) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.named(node, 32);
    swing(t, word);
    EXPECT_TRUE(complains_of(t, "a node that is not flushed")) << t.wrong();
}

TEST(ShadowTrace, RejectsAWordThatIsNotFlushed) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.named(node, 32);
    t.flush(node, 32);
    t.fence();
    t.commit(word, 8);
    t.store(word, 8);
    EXPECT_EQ(t.wrong(), "");
    t.fence();
    EXPECT_TRUE(complains_of(t, "what was stored is not flushed")) << t.wrong();
}

TEST(ShadowTrace, RejectsAStoreToAWordOutsideCommits) {
    shadow_trace t(4096, domain::process);
    make(t, node);
    commit(t, node);
    t.store(word + 8, 8); // its neighbour
    EXPECT_EQ(t.wrong(), "");
    t.store(word, 8);
    EXPECT_TRUE(complains_of(t, "stored without one")) << t.wrong();
}

TEST(ShadowTrace, AFenceWaitsForItsOwnThread) {
    shadow_trace t(4096, domain::adr);
    make(t, node);
    t.named(node, 32);
    t.flush(node, 32);
    t.set_thread(1);
    t.fence(); // another's
    make(t, other_line);
    commit(t, other_line, other_word);
    EXPECT_EQ(t.wrong(), "");
    t.set_thread(0);
    swing(t, word);
    EXPECT_TRUE(complains_of(t, "no fence made durable")) << t.wrong();
}

/// Roots whose words are the offsets of their only nodes.
class ShadowTraceOfRoots : public testing::Test {
protected:
    ShadowTraceOfRoots() {
        shadow_trace::set_follower([](std::span<const std::byte> of, std::size_t at,
                                      const shadow_trace::visit_node& visit) {
            std::uint64_t to;
            std::memcpy(&to, of.data() + at, sizeof to);
            if (to != 0) visit(to, 32);
        });
        for (const std::size_t at : {word, other_word}) { // both lead to one node
            make_once(at);
            t.commit(at, 8);
            put(at, node);
            t.flush(at, 8);
            t.fence();
        }
    }
    ~ShadowTraceOfRoots() override { shadow_trace::set_follower(nullptr); }
    void make_once(std::size_t at) {
        if (at != word) return;
        make(t, node);
        t.named(node, 32);
        t.flush(node, 32);
        t.fence();
    }
    void put(std::size_t at, std::uint64_t value) {
        std::memcpy(memory.data() + at, &value, sizeof value);
        t.store(at, 8);
    }
    /// The root of this word is made empty past the caches, which its thread's fence waits for.
    void clear(std::size_t at) {
        t.commit(at, 8);
        const std::uint64_t none = 0;
        std::memcpy(memory.data() + at, &none, sizeof none);
        t.nt_store(at, 8);
    }

    std::vector<std::byte> memory = std::vector<std::byte>(4096);
    shadow_trace t{memory, domain::adr};
};

TEST_F(ShadowTraceOfRoots, RejectsANodeMadeAnewThatAnotherRootMayStillName) {
    clear(word);
    t.set_thread(1);
    clear(other_word);
    t.fence();
    t.flush(word, 8); // does not reach what went past the caches
    t.fence();
    EXPECT_EQ(t.wrong(), "");
    t.fresh(node, 32);
    EXPECT_TRUE(complains_of(t, "a failure may leave to a root")) << t.wrong();
}

TEST_F(ShadowTraceOfRoots, AcceptsItWhenBothWordsAreDurable) {
    clear(word);
    t.set_thread(1);
    clear(other_word);
    t.commit(word, 8);
    put(word, 0); // the same again: this thread's own
    t.flush(word, 8);
    t.fence();
    t.fresh(node, 32);
    EXPECT_EQ(t.wrong(), "");
}

TEST(ShadowTrace, WithoutFlushesOrderAloneIsNotJudged) {
    shadow_trace t(4096, domain::process);
    make(t, node);
    t.named(node, 32);
    swing(t, word);
    EXPECT_EQ(t.wrong(), "");
}

} // namespace
