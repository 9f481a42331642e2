// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: whatever batch the log ends with, it has sections in whole or not at all, though several
//       run together and store to the same lines; and it has all that were promised.
// Method: threads that take turns, by chance: they store a word, end, put their logs on the disk;
//         one stores and fences outside of sections. Behind each write the log is read, what it
//         holds put over home, and logs that are there rolled back.
#include "crash_model.hpp"
#include <base/checksum.hpp>
#include <power/found_log.hpp>
#include <power/log.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace hf;
using namespace hf::power;
using namespace hf::power::test;

constexpr std::uint64_t first_line = 2, data_lines = 400, log_lines = 150;
constexpr std::uint64_t sizes_for = 256 << 10; // batches of at most 226 lines
constexpr unsigned workers = 3;
constexpr std::uint64_t log_word = 8 * (first_line + data_lines); // of the first worker's log
constexpr std::uint64_t words_of_log = 8 * log_lines;
constexpr std::uint64_t word_count = log_word + workers * words_of_log;
constexpr std::uint64_t entries_max = words_of_log / 2 - 4;
enum file : std::size_t { log_file, home_file };

struct alignas(64) image {
    std::uint64_t words[word_count];
};

/// Runs what it is given on a thread of its own.
class worker {
public:
    worker() : thread_([this] { work(); }) {}
    ~worker() {
        start({});
        thread_.join();
    }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;
    void start(std::function<void()> what) {
        const std::scoped_lock held{lock_};
        next_ = std::move(what);
        has_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock held{lock_};
        changed_.wait(held, [this] { return !has_; });
    }
    /// False: it is not done yet.
    bool wait_a_little() {
        std::unique_lock held{lock_};
        return changed_.wait_for(held, std::chrono::milliseconds(2), [this] { return !has_; });
    }
    bool is_idle() {
        const std::scoped_lock held{lock_};
        return !has_;
    }

private:
    void work() {
        for (;;) {
            std::unique_lock held{lock_};
            changed_.wait(held, [this] { return has_; });
            if (!next_) return;
            const auto what = std::move(next_);
            held.unlock();
            what();
            held.lock();
            has_ = false;
            changed_.notify_all();
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    std::function<void()> next_;
    bool has_ = false;
    std::thread thread_;
};

/// Puts the old words back of each log that is there, and empties it.
void roll_back(std::uint64_t* words) {
    for (unsigned w = 0; w < workers; ++w) {
        std::uint64_t* const its = words + log_word + w * words_of_log;
        for (std::uint64_t n = std::min(its[0], entries_max); n > 0; --n)
            if (its[6 + 2 * n] < log_word) words[its[6 + 2 * n]] = its[7 + 2 * n];
        std::fill(its, its + words_of_log, 0);
    }
}

class sections {
public:
    sections(recorded_device& on, unsigned seed)
        : random_(seed), on_(on), files_{{on, log_file}, {on, home_file}},
          image_(std::make_unique<image>()), ended_(std::make_unique<image>()), log_("log") {
        log_header sizes = log::sized_for(sizes_for);
        sizes.uuid[0] = 1;
        sizes.generation = 1;
        log_.watch(reinterpret_cast<const std::byte*>(image_->words), sizes);
        EXPECT_TRUE(log_.start(files_[log_file], files_[home_file], sizes, false).ok());
        for (unsigned w = 0; w < workers; ++w) all_[w].its = &log_.runner_of(w);
        note_state();
    }
    ~sections() {
        for (unsigned w = 0; w < workers; ++w)
            if (all_[w].open) end(w);
    }
    void step() {
        if (random_() % 8 == 0) return fence();
        const auto w = static_cast<unsigned>(random_() % workers);
        if (!all_[w].open) return begin(w);
        if (random_() % 12 == 0) return cover(w);
        if (random_() % 5 == 0) return end(w);
        for (std::uint64_t n = 1 + random_() % 16; n > 0; --n) store(w);
    }
    /// Waits for the disk; what runs meanwhile ends.
    void promise() {
        const std::size_t wanted = states.size() - 1;
        promises_.start([this] { EXPECT_TRUE(log_.make_durable().ok()); });
        for (unsigned w = 0; w < workers; ++w)
            if (all_[w].open) {
                for (std::uint64_t n = random_() % 4; n > 0; --n) store(w);
                end(w);
            }
        promises_.wait();
        on_.promised = wanted;
    }
    std::uint64_t salt() const { return log_.salt(); }

    std::vector<std::uint64_t> states; // sums of what ended sections, and fences, have stored
    unsigned covered = 0, together = 0, no_room = 0;

private:
    struct running {
        line_log::runner* its = nullptr;
        bool open = false, on_disk = false;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> stores; // of words, in order
        std::uint64_t entries = 0;
    };
    std::uint64_t* log_of(unsigned w) { return image_->words + log_word + w * words_of_log; }
    void note_state() { states.push_back(checksum(ended_->words, sizeof(image), 0)); }
    void begin(unsigned w) {
        all_[w].open = true;
        run(threads_[w], [&] { log_.begin_section(*all_[w].its); });
        for (const running& r : all_) together += &r != &all_[w] && r.open;
    }
    void store(unsigned w) {
        running& r = all_[w];
        if (r.entries == entries_max) return;
        // The words of a line belong to the workers, two each; its last to the one that fences.
        const std::uint64_t word =
            8 * (first_line + random_() % data_lines) + w * 2 + random_() % 2;
        if (!r.on_disk && r.entries / 4 + 4 > log_.cover_lines()) cover(w);
        run(threads_[w], [&] {
            const auto append = [&] {
                std::uint64_t* const its = log_of(w);
                ++r.entries;
                its[6 + 2 * r.entries] = word;
                its[7 + 2 * r.entries] = image_->words[word];
                its[0] = r.entries;
            };
            if (!r.on_disk) append();
            else {
                log_.hold(2);
                append();
                log_.add(log_of(w) + 6 + 2 * r.entries, 16);
                log_.add(log_of(w), 8);
                log_.let_go();
            }
            r.stores.emplace_back(word, random_());
            std::atomic_ref(image_->words[word]).store(r.stores.back().second);
        });
    }
    /// Where it waits for sections to end their logs go to the disk: then they run no more. Also
    /// that of a worker whose work is done since, though its run() has not returned.
    void run(worker& on, std::function<void()> what) {
        on.start(std::move(what));
        while (!on.wait_a_little())
            for (unsigned w = 0; w < workers; ++w)
                if (threads_[w].is_idle() && all_[w].open && !all_[w].on_disk) cover(w);
    }
    void cover(unsigned w) {
        running& r = all_[w];
        if (r.on_disk) return;
        r.on_disk = true;
        ++covered;
        run(threads_[w], [&] {
            log_.hold_cover();
            log_.add(log_of(w), 64 + 16 * r.entries);
            log_.let_go(*r.its);
        });
    }
    /// It has happened: what is taken from here on may have it.
    void apply(running& r) {
        for (const auto& [word, value] : r.stores) ended_->words[word] = value;
        note_state();
    }
    void end(unsigned w) {
        running& r = all_[w];
        run(threads_[w], [&] {
            // Now and then it asks for room as if it had taken large blocks.
            const std::uint64_t more = random_() % 4 == 0 ? 190 : 0;
            if (r.on_disk || !log_.hold_section(*r.its, r.stores.size() + more)) return;
            for (const auto& each : r.stores) log_.add(image_->words + each.first, 8);
            *log_of(w) = 0;
            apply(r);
            log_.let_go(*r.its);
            line_log::leave(*r.its);
            r = {.its = r.its};
        });
        if (!r.open) return;
        no_room += !r.on_disk;
        cover(w);
        run(threads_[w], [&] {
            for (const auto& each : r.stores) log_.note(image_->words + each.first, 8);
            log_.order();
            log_.hold(1);
            *log_of(w) = 0;
            log_.add(log_of(w), 8);
            apply(r);
            log_.let_go();
            line_log::leave(*r.its);
            r = {.its = r.its};
        });
    }
    /// One word: of several lines a part may survive.
    void fence() {
        const std::uint64_t word = 8 * (first_line + random_() % data_lines) + 7;
        run(promises_, [&] {
            ended_->words[word] = random_();
            std::atomic_ref(image_->words[word]).store(ended_->words[word]);
            log_.note(image_->words + word, 8);
            log_.order();
            note_state();
        });
    }

    std::mt19937_64 random_;
    recorded_device& on_;
    device_file files_[2];
    std::unique_ptr<image> image_, ended_;
    power::log log_;
    running all_[workers];
    worker threads_[workers], promises_;
};

/// What a reader finds.
std::unique_ptr<image> content_of(const std::vector<bytes>& files, std::uint64_t salt) {
    recorded_device there;
    there.files = files;
    device_file log(there, log_file);
    const auto read = found_log::read("log", log, files[log_file].size(),
                                      {{1}, 1, salt, first_line, word_count / 8});
    auto content = std::make_unique<image>();
    if (!read) {
        ADD_FAILURE() << read.error().what();
        return content;
    }
    auto* const to = reinterpret_cast<std::byte*>(content->words);
    std::memcpy(to, files[home_file].data(), sizeof(image));
    for (const logged_line& line : read->lines())
        std::memcpy(to + line.number * line_bytes, line.bytes, line_bytes);
    return content;
}

/// Its sum, logs rolled back.
std::uint64_t found(const std::vector<bytes>& files, std::uint64_t salt) {
    const auto content = content_of(files, salt);
    roll_back(content->words);
    return checksum(content->words, sizeof(image), 0);
}

TEST(PowerSections, AreInABatchInWholeOrNotAtAll) {
    unsigned covered = 0, together = 0, no_room = 0;
    std::size_t looked = 0;
    for (unsigned seed = 1; seed <= 12 && !HasFailure(); ++seed) {
        recorded_device device;
        device.files = {bytes(file_bytes(log::sized_for(sizes_for))), bytes(sizeof(image))};
        std::vector<bytes> files = device.files;
        std::size_t seen = 0, promised = 0;
        sections all(device, seed);
        for (unsigned n = 1; n <= 600 && !HasFailure(); ++n) {
            all.step();
            if (n % 40 == 0) all.promise();
            // Promises wait until sections have ended: what was promised only grows.
            for (; seen < device.events.size(); ++seen) {
                const device_event& e = device.events[seen];
                if (e.what == device_event::write)
                    std::memcpy(files[e.file].data() + e.at, e.content.data(), e.content.size());
                promised = std::max(promised, e.promised);
                if (seen < 4) continue; // the log's header
                ++looked;
                const auto from = all.states.begin() + static_cast<std::ptrdiff_t>(promised);
                ASSERT_NE(std::find(from, all.states.end(), found(files, all.salt())),
                          all.states.end())
                    << "seed " << seed << ", event " << seen << ": " << promised << " of "
                    << all.states.size() << " promised, and a state that nothing has ended with";
            }
            if (n % 40 == 0) {
                promised = device.promised;
                const auto from = all.states.begin() + static_cast<std::ptrdiff_t>(promised);
                ASSERT_NE(std::find(from, all.states.end(), found(files, all.salt())),
                          all.states.end())
                    << "seed " << seed << ": what was promised is not there";
            }
        }
        covered += all.covered;
        together += all.together;
        no_room += all.no_room;
    }
    std::printf("%zu states of the log, %u sections with logs there, %u of them for want of room, "
                "%u that met\n",
                looked, covered, no_room, together);
    EXPECT_GT(covered, 50U);
    EXPECT_GT(together, 100U);
    EXPECT_GT(no_room, 10U);
}

/// A running log of an image, on a device that records what is done to it.
struct recorded_log {
    recorded_log() {
        device.files = {bytes(file_bytes(log::sized_for(sizes_for))), bytes(sizeof(image))};
        log_header sizes = log::sized_for(sizes_for);
        sizes.uuid[0] = 1;
        sizes.generation = 1;
        all.watch(reinterpret_cast<const std::byte*>(words->words), sizes);
        EXPECT_TRUE(all.start(log_at, home, sizes, false).ok());
    }
    recorded_device device;
    device_file log_at{device, log_file}, home{device, home_file};
    const std::unique_ptr<image> words = std::make_unique<image>();
    power::log all{"log"};
};

// Several threads at once: none of them waits for ever.
TEST(PowerSections, OfThreadsThatAllWaitForTheDiskComeThere) {
    recorded_log on;
    power::log& all = on.all;
    std::vector<std::thread> threads;
    // One more than there are runners: the last is shared.
    for (unsigned t = 0; t < 10; ++t)
        threads.emplace_back([&, t] {
            line_log::runner& mine = all.runner_of(t);
            for (std::uint64_t n = 1; n <= 200; ++n) {
                all.begin_section(mine);
                for (unsigned i = 0; i < 8; ++i)
                    on.words->words[8 * (first_line + (n + i) % 20 + 20 * (t / 8)) + t % 8] = n;
                if (n % 3 == 0) { // it has nothing to be taken
                    all.end_section(mine);
                    continue;
                }
                ASSERT_TRUE(all.hold_section(mine, 60));
                all.add(on.words->words + 8 * (first_line + 20 * (t / 8)), 20 * line_bytes);
                all.let_go(mine);
                line_log::leave(mine);
                if (n % 4 == 0) all.wait();
            }
        });
    for (auto& t : threads) t.join();
    ASSERT_TRUE(all.finish().ok());
    EXPECT_GT(all.counts().batches, 0U);
}

// A section stores nothing of its own, but its thread has noted a line. Another thread stores a
// line that leads there, and appends it while the section runs.
TEST(PowerSections, BringWhatTheirThreadNotedBeforeLinesThatWaitedForThem) {
    recorded_log on;
    power::log& all = on.all;
    std::uint64_t& led_to = on.words->words[8 * first_line];
    std::uint64_t& leads = on.words->words[8 * (first_line + 100)];
    line_log::runner& mine = all.runner_of(0);
    constexpr std::uint64_t sections = 100;
    std::atomic<std::uint64_t> noted{0}, appended{0}, durable{0};
    std::thread follows([&] {
        for (std::uint64_t n = 1; n <= sections; ++n) {
            while (noted.load() != n) std::this_thread::yield();
            std::atomic_ref(leads).store(n);
            all.note(&leads, 8);
            all.order();
            appended.store(n);
            EXPECT_TRUE(all.make_durable().ok());
            durable.store(n);
        }
    });
    for (std::uint64_t n = 1; n <= sections; ++n) {
        all.begin_section(mine);
        std::atomic_ref(led_to).store(n);
        all.note(&led_to, 8);
        noted.store(n);
        while (appended.load() != n) std::this_thread::yield();
        all.end_section(mine);
        while (durable.load() != n) std::this_thread::yield();
    }
    follows.join();
    EXPECT_TRUE(all.finish().ok());
    std::vector<bytes> files = {bytes(on.device.files[log_file].size()), bytes(sizeof(image))};
    std::size_t seen = 0;
    for (const device_event& e : on.device.events) {
        if (e.what != device_event::write) continue;
        std::memcpy(files[e.file].data() + e.at, e.content.data(), e.content.size());
        if (++seen <= 4) continue; // the log's header
        const auto content = content_of(files, all.salt());
        ASSERT_LE(content->words[8 * (first_line + 100)], content->words[8 * first_line])
            << "what a line leads to is not there";
    }
}

TEST(PowerSections, WhoseThreadsNoteMoreThanABatchHoldsGoOn) {
    recorded_log on;
    power::log& all = on.all;
    line_log::runner& mine = all.runner_of(0);
    for (const bool has_log : {false, true}) {
        all.begin_section(mine);
        for (std::uint64_t i = 0; i < data_lines; ++i) {
            on.words->words[8 * (first_line + i)] = 1 + has_log;
            all.note(on.words->words + 8 * (first_line + i), 8);
        }
        if (has_log) {
            ASSERT_FALSE(all.hold_section(mine, 1));
            all.hold_cover();
            all.add(on.words->words + log_word, line_bytes);
            all.let_go(mine);
            all.order();
            line_log::leave(mine);
        } else {
            EXPECT_TRUE(all.end_section(mine)) << "it has noted lines";
        }
        all.begin_section(mine);
        EXPECT_FALSE(all.end_section(mine)) << "it has noted none";
    }
    ASSERT_TRUE(all.finish().ok());
    const auto content = content_of(on.device.files, all.salt());
    for (std::uint64_t i = 0; i < data_lines; ++i)
        ASSERT_EQ(content->words[8 * (first_line + i)], 2U) << "line " << i;
}

} // namespace
