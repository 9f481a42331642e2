// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: after a failure of a block device, whatever it then holds, the pool has one of the states
// at a fence, and none older than the last state promised as durable. The same holds after the next
// failure, in recovery or after it.
// Method: a small image, stores and fences by chance, on the model of crash_model.hpp.
#include "crash_model.hpp"
#include <base/checksum.hpp>
#include <persist/line_log.hpp>
#include <power/found_log.hpp>
#include <power/home.hpp>
#include <power/log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <utility>

namespace {

using namespace hf;
using namespace hf::power;
using namespace hf::power::test;

constexpr std::uint64_t first_line = 2, line_count = 2048; // of the pool
constexpr std::uint64_t pool_bytes = line_count * line_bytes;
constexpr std::uint64_t sizes_for = 256 << 10; // two segments of 64 KiB, batches of at most 16
enum file : std::size_t { log_file, home_file };

std::uint64_t sum_of(const std::byte* of) { return checksum(of, pool_bytes, 0); }

owner owner_of(const known_log& log) {
    return {{1, 2, 3}, log.generation, log.salt, first_line, line_count};
}

struct alignas(64) image {
    std::byte content[pool_bytes];
};

/// A log, and beside it what a pool would be to whom every fence is durable.
class run {
public:
    /// 'before': of the pool as it is opened.
    run(recorded_device& on, const std::byte* content, const known_log& before, unsigned seed)
        : random_(seed), on_(on), files_{{on, log_file}, {on, home_file}},
          image_(std::make_unique<image>()), fenced_(content, content + pool_bytes), log_("log") {
        std::memcpy(image_->content, content, pool_bytes);
        log_header sizes = log::sized_for(sizes_for);
        log_header old{};
        if (*read_header(files_[log_file], old) == header_state::valid) sizes.writes = old.writes;
        std::memcpy(sizes.uuid, owner_of(before).uuid, sizeof sizes.uuid);
        sizes.generation = before.generation + 1;
        sizes.follows = before.salt;
        log_.watch(image_->content, sizes);
        states.push_back(sum_of(fenced_.data()));
        started = log_.start(files_[log_file], files_[home_file], sizes, false).ok();
        if (started)
            on.events.push_back(
                {device_event::header, 0, 0, {}, 0, {sizes.generation, log_.salt()}});
    }
    /// Stores here and there, some of it flushed, and a fence that may be a promise. False: the
    /// disk failed.
    bool step(std::uint64_t lines_max) {
        std::set<std::uint64_t> flushed;
        for (std::uint64_t n = 1 + random_() % lines_max; n > 0; --n) {
            const std::uint64_t line = first_line + random_() % (line_count - first_line);
            const std::uint64_t at = line * line_bytes + random_() % 8 * word_bytes;
            const std::uint64_t word = random_();
            std::memcpy(image_->content + at, &word, sizeof word);
            if (random_() % 8 == 0)
                continue; // forgotten, until the line is flushed for another word
            log_.note(image_->content + at, word_bytes);
            flushed.insert(line);
        }
        log_.order();
        for (std::uint64_t line : flushed)
            std::memcpy(fenced_.data() + line * line_bytes, image_->content + line * line_bytes,
                        line_bytes);
        states.push_back(sum_of(fenced_.data()));
        if (random_() % 3 == 0) return true;
        if (!log_.make_durable().ok()) return false;
        on_.promised = states.size() - 1;
        return true;
    }
    bool works() { return log_.make_durable().ok(); }

    std::vector<std::uint64_t> states; // sums of what each fence has named
    bool started = false;

private:
    std::mt19937 random_;
    recorded_device& on_;
    device_file files_[2];
    std::unique_ptr<image> image_;
    bytes fenced_;
    power::log log_;
};

std::vector<bytes> new_files() {
    return {bytes(file_bytes(log::sized_for(sizes_for))), bytes(pool_bytes)};
}

/// The state that the next open would find. Adds a failure if it would find nothing.
bytes recovered(recorded_device& device, const known_log& known, bool brings_home = false) {
    device_file log(device, log_file);
    auto found = found_log::read("log", log, device.files[log_file].size(), owner_of(known));
    bytes content = device.files[home_file];
    if (!found) {
        ADD_FAILURE() << found.error().what();
        return content;
    }
    for (const logged_line& line : found->lines())
        std::memcpy(content.data() + line.number * line_bytes, line.bytes, line_bytes);
    if (brings_home) {
        device_file home(device, home_file);
        EXPECT_TRUE(bring_home(log, home, found->lines()).ok());
    }
    return content;
}

struct explored {
    std::size_t states = 0, sampled = 0, nested = 0;
};

/// Every failure after each event of the run that 'device' recorded. 'further': of so many states
/// one is recovered, worked on, and explored again; 0: none.
void explore(const std::vector<bytes>& before, const known_log& known_before,
             const recorded_device& device, const std::vector<std::uint64_t>& states,
             std::uint64_t sector_bytes, std::size_t further, explored& sum) {
    failures may(before, known_before, sector_bytes);
    recorded_device there;
    may.after_each(
        device.events, device.promised,
        [&](const std::vector<bytes>& files, const known_log& known, std::size_t promised) {
            // The pool of generation 0 is closed: nobody looks for its log.
            if (::testing::Test::HasFailure() || known.generation == 0) return;
            ++sum.states;
            there.files = files;
            there.events.clear();
            const bytes content = recovered(there, known);
            const auto from = states.begin() + static_cast<std::ptrdiff_t>(promised);
            EXPECT_NE(std::find(from, states.end(), sum_of(content.data())), states.end())
                << "after a failure with " << promised << " of " << states.size()
                << " fences promised: a state that none has named, or an older one";
            if (further == 0 || sum.states % further != 0) return;
            ++sum.nested;
            recorded_device again;
            again.files = files;
            EXPECT_EQ(recovered(again, known, true), content);
            run next(again, content.data(), known, static_cast<unsigned>(sum.states));
            for (int n = 0; n < 4; ++n) EXPECT_TRUE(next.step(4));
            explore(files, known, again, next.states, 4096, 0, sum);
        });
    sum.sampled += may.sampled();
}

/// More where somebody has time: HOLDFAST_POWER_SEEDS.
unsigned seeds() {
    const char* const wanted = std::getenv("HOLDFAST_POWER_SEEDS");
    return wanted == nullptr ? 1 : static_cast<unsigned>(std::atoi(wanted));
}

class Crash : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Crash, EveryStateIsOneThatAFenceHasNamed) {
    explored sum;
    for (unsigned seed = 1; seed <= seeds(); ++seed) {
        const std::vector<bytes> before = new_files();
        recorded_device device;
        device.files = before;
        run first(device, before[home_file].data(), {}, seed);
        ASSERT_TRUE(first.started);
        // With few lines, so that a batch is a block, past the end of both segments, and round
        // again. With sectors as long as a block and a page there are fewer states at each moment.
        const bool long_sectors = GetParam() == block_bytes;
        for (int n = 0; n < (long_sectors ? 200 : 60); ++n) ASSERT_TRUE(first.step(5));
        explore(before, {}, device, first.states, GetParam(), long_sectors ? 151 : 997, sum);
    }
    std::printf("%zu states of the device, %zu cuts sampled, %zu states worked on and torn again\n",
                sum.states, sum.sampled, sum.nested);
    EXPECT_GT(sum.nested, 3U);
}

TEST_P(Crash, LongBatchesAreThereInWholeOrNotAtAll) {
    explored sum;
    const std::vector<bytes> before = new_files();
    recorded_device device;
    device.files = before;
    run first(device, before[home_file].data(), {}, 7);
    for (int n = 0; n < 40; ++n) ASSERT_TRUE(first.step(100));
    explore(before, {}, device, first.states, GetParam(), 0, sum);
    std::printf("%zu states of the device, %zu cuts sampled\n", sum.states, sum.sampled);
}

INSTANTIATE_TEST_SUITE_P(Sectors, Crash, ::testing::Values(512, 4096),
                         [](const auto& of) { return std::to_string(of.param); });

// A disk that fails at any write or sync: an error from then on, nothing written behind it, and
// nothing promised that is not there.
TEST(Disk, PromisesNothingOnceItHasFailed) {
    explored sum;
    // Long batches, which are written in parts, and short ones.
    for (const auto& [half, lines] : {std::pair(false, 5), {true, 5}, {true, 100}})
        for (std::size_t fails_at = 5; fails_at < 130; fails_at += 11) {
            const std::vector<bytes> before = new_files();
            recorded_device device;
            device.files = before;
            device.fails_at = fails_at;
            device.half = half;
            run first(device, before[home_file].data(), {}, 3);
            ASSERT_TRUE(first.started);
            bool works = true;
            for (int n = 0; n < 70 && works; ++n) works = first.step(lines);
            if (works) continue; // it had not so much to do
            const std::size_t done = device.events.size();
            EXPECT_FALSE(first.step(5) && first.works());
            device.fails_at = SIZE_MAX; // and would work again
            EXPECT_FALSE(first.works());
            EXPECT_EQ(device.events.size(), done) << "something was written after an error";
            explore(before, {}, device, first.states, 4096, 0, sum);
        }
    EXPECT_GT(sum.states, 500U);
}

} // namespace
