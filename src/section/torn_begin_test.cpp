// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regression, found by the kill test: a process killed after a section's begin record and before
// all of the staged records that follow it. The section has not begun to run, so it must be
// discarded; re-executing it would adopt a block that its log does not name.
#include <log/lane.hpp>
#include <open/pool_impl.hpp>
#include <section/list_sections.hpp>

#include <holdfast/author/blocks.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>

#include <gtest/gtest.h>

#include <string>
#include <sys/wait.h>

namespace {

using namespace hf;
using namespace hf::list_sections;

struct adopt_args {
    list* l;
    void* staged;
};
const hf_arg adopt_schema[] = {{0, 8, HF_ARG_POOL_POINTER}, {8, 8, HF_ARG_POOL_POINTER}};

void adopt_again(const void* packed) {
    const auto& a = *static_cast<const adopt_args*>(packed);
    // Stores before it adopts: once this has run, nothing can be discarded any more.
    store_over_input<true>(&a.l->count, a.l->count + 1);
    hf_adopt(a.staged);
}
const hf_txfunc adopt_desc{HF_ABI_VERSION, sizeof(adopt_args), 1003, 1,          "adopt",
                           "here",         adopt_schema,       2,    adopt_again};

/// Ends the log of the open section behind its begin record, and the process with it.
[[noreturn]] void die_behind_the_begin_record(pool& p) {
    pool_file& file = *p.internals().file;
    for (std::uint32_t lane = 0; lane < p.internals().lanes.size(); ++lane) {
        const std::uint64_t epoch = p.internals().lanes[lane].epoch;
        std::byte* const begin = lane_start(file, lane, epoch).next;
        std::byte* const staged =
            begin + lane_writer::record_bytes(sizeof(begin_payload) + sizeof(adopt_args));
        if (!p.internals().lanes[lane].taken) continue;
        std::uint64_t check = 0; // of the begin record: what stands behind it is no record
        std::memcpy(&check, begin, sizeof check);
        lane_writer::store_in_order(staged, ~check);
    }
    ::kill(::getpid(), SIGKILL);
    ::_exit(1);
}

TEST(TornBegin, SectionWithoutItsStagedRecordsIsDiscarded) {
    hf_txfunc_register(&adopt_desc);
    const std::string path = "/dev/shm/hf_torn_begin_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    open_options options;
    options.layout = "torn_begin_test/1";
    options.create_bytes = 1_MiB;
    options.mode = mode::pmem; // in mode process its log is plain words
    options.engines = {clobber::engine()};
    const pid_t child = ::fork();
    if (child == 0) {
        auto p = pool::open(path, options);
        adopt_args args{p->root<list>(), nullptr};
        args.staged = staged::in(*p, 100)->release();
        hf_clobber_begin(&adopt_desc, &args);
        die_behind_the_begin_record(*p);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().sections_pending, 1U);
    EXPECT_EQ(p->recovered().discarded, 1U);
    EXPECT_EQ(p->root<list>()->count, 0U);
    EXPECT_EQ(account(*p).blocks, 1U) << "the staged block leaked";
    ::unlink(path.c_str());
}

} // namespace
