// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no flush, fence or log byte of engine justdo's library interface comes or goes unnoticed.
// Method: the paper's account transfer, 1000 times on a new pool, per mode; what it cost in all is
// compared with golden/justdo_routine.txt.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <holdfast/author/persist.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/pool.hpp>

#include <examples/justdo_transfer.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

namespace {

constexpr std::int64_t operations = 1000;

std::string measured(hf::mode mode, bool eadr, const char* name) {
    const std::string path = fmt::format("/dev/shm/holdfast-golden-routine.{}", ::getpid());
    hf::open_options options;
    options.layout = "golden/1";
    options.mode = mode;
    options.expert.eadr = eadr;
    options.creation = hf::create::always_new;
    options.engines = {hf::justdo::engine()};
    auto pool = hf::pool::open(path, options);
    ::unlink(path.c_str());
    if (!pool) return pool.error().what();
    auto* const bank = pool->root<justdo_bank::bank>();
    hf::justdo::object jd = *hf::justdo::root::in(*pool)->new_object();
    const hf::persist::counters a = hf::persist::thread_counters();
    for (std::int64_t i = 0; i < operations; ++i)
        jd.call<justdo_bank::transfer>(
            {bank, static_cast<std::uint64_t>(i) % 8, static_cast<std::uint64_t>(i + 3) % 8, i});
    const hf::persist::counters b = hf::persist::thread_counters();
    EXPECT_EQ(justdo_bank::total(bank), 0);
    return fmt::format("{} transfer {} {} {} {} {} {}\n", name, b.flushes - a.flushes,
                       b.fences - a.fences, b.ordering_points - a.ordering_points,
                       b.log_entries - a.log_entries, b.log_bytes - a.log_bytes,
                       b.pm_bytes - a.pm_bytes);
}

TEST(justdo_routine_golden_test, CostsWhatTheFileSays) {
    const std::string now =
        fmt::format(
            "# justdo_bank::transfer by the library interface: events per {} operations.\n"
            "# mode operation flushes fences ordering_points log_entries log_bytes pm_bytes\n",
            operations) +
        measured(hf::mode::process, false, "process") + measured(hf::mode::pmem, true, "eadr") +
        measured(hf::mode::pmem, false, "adr");
    if (std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr) {
        std::ofstream(HF_GOLDEN_FILE) << now;
        return;
    }
    std::ifstream file(HF_GOLDEN_FILE);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), now);
}

} // namespace
