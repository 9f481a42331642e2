// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain stores that a power failure would take back, or that would take a section back, end the
// process where they are looked for: in debug builds and under the crash checker, here by its hook.
#include <section/list_sections.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::list_sections;

class PlainStoresDeathTest : public ::testing::Test {
protected:
    void TearDown() override { ::unlink(path_.c_str()); }
    /// Opens the pool where somebody listens, as the checker does, and runs 'what' there.
    template <class What> void run(What&& what) {
        const trace::listening checker([](const trace::event&, const void*, std::size_t) {});
        ::unlink(path_.c_str());
        open_options options;
        options.layout = "plain_stores_test/1";
        options.create_bytes = 1_MiB;
        options.mode = mode::pmem;
        options.engines = {clobber::engine()};
        {
            auto p = pool::open(path_, options);
            push(true, p->root<list>(), 1);
            what(*p, p->root<list>());
            push(true, p->root<list>(), 2);
        }
    }

    std::string path_ = "/dev/shm/hf_plain_stores_test." + std::to_string(::getpid());
};

TEST_F(PlainStoresDeathTest, OverWhatASectionLeftWhoseMarkIsDue) {
    EXPECT_DEATH(run([](pool&, list* l) { l->sum = 9; }), "a plain store between sections");
}

TEST_F(PlainStoresDeathTest, OverBytesThatAreFilledInForTheNextSection) {
    EXPECT_DEATH(run([](pool& p, list*) {
                     auto* words = static_cast<std::uint64_t*>(staged::in(p, 16)->release());
                     const std::uint64_t from[2] = {1, 2};
                     staged::copy_words(words, from, sizeof from);
                     words[1] = 3;
                 }),
                 "a plain store changed offset");
}

TEST_F(PlainStoresDeathTest, OnceSettledTheyAreTheCallersOwn) {
    run([](pool& p, list* l) {
        settle(p);
        l->sum = 9;
        persist::persist(p.domain(), &l->sum, sizeof l->sum);
    });
}

TEST_F(PlainStoresDeathTest, BytesPersistedSinceNeedNoSum) {
    run([](pool& p, list*) {
        auto* words = static_cast<std::uint64_t*>(staged::in(p, 16)->release());
        const std::uint64_t from[2] = {1, 2};
        staged::copy_words(words, from, sizeof from);
        words[1] = 3;
        staged::persist(p, words, sizeof from);
    });
}

} // namespace
