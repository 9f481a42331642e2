// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a power failure at any event, in sections or while recovering from an earlier failure,
// leaves a pool that recovers to the state after all acknowledged operations, or after one more.
// Method: one process records images that a failure may leave at each event of a run
// (check/power_failure.hpp); each is opened in a process of its own; from some of those recoveries
// further images are taken. Sampled with a fixed seed: a failure names its image, and the seed and
// event that made it.
#include <check/power_failure.hpp>
#include <clobber/list_sections.hpp>
#include <pool/header.hpp>
#include <section/pool_impl.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>

namespace {

using namespace hf;
using namespace hf::list_sections;

constexpr std::uint64_t pool_bytes = 64_KiB;

open_options options() {
    open_options o;
    o.layout = "power_failure_test/1";
    o.create_bytes = pool_bytes;
    o.max_bytes = pool_bytes;
    o.mode = hf::mode::pmem;
    o.max_threads = 2;
    o.engines = {clobber::engine(), undo::engine()};
    return o;
}

struct recorded {
    std::vector<std::byte> bytes;
    std::uint64_t acknowledged; // operations that had returned
    std::uint64_t event;
};

// Sizes of the list after 0, 1, 2 … operations of the run below.
const std::vector<std::uint64_t> sizes{0, 1, 2, 3, 2, 1, 2, 3};

void run_operation(bool clobber, list* l, std::uint64_t i) {
    if (sizes[i + 1] > sizes[i]) push(clobber, l, l->count + 1);
    else pop(clobber, l);
}

void write_file(const std::string& path, const std::vector<std::byte>& bytes) {
    std::FILE* f = std::fopen(path.c_str(), "wb");
    ASSERT_NE(f, nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), f);
    std::fclose(f);
    ::chmod(path.c_str(), 0600);
}

template <class Body> int in_child(Body&& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int how = 0;
    ::waitpid(child, &how, 0);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

class PowerFailure : public ::testing::TestWithParam<std::tuple<bool, int>> {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_power_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        images_ = path_ + ".images";
    }
    void TearDown() override {
        ::unlink(path_.c_str());
        ::unlink(images_.c_str());
        ::unlink((path_ + ".again").c_str());
    }

    /// Runs the operations in a child; 'images_' receives images of every event.
    void record(bool clobber, std::uint64_t seed, int per_event) {
        ASSERT_EQ(in_child([&] {
                      auto p = pool::open(path_, options());
                      if (!p) return 2;
                      list* l = p->root<list>();
                      std::byte* base = p->internals().file->base();
                      std::FILE* out = std::fopen(images_.c_str(), "wb");
                      std::mt19937_64 random(seed);
                      std::uint64_t acknowledged = 0;
                      check::power_failure* watch = nullptr;
                      check::power_failure watcher(
                          base, std::vector<std::byte>(base, base + pool_bytes), [&] {
                              for (int i = 0; i < per_event; ++i) {
                                  const auto image = watch->image(random);
                                  const std::uint64_t head[2] = {acknowledged, watch->events()};
                                  std::fwrite(head, sizeof head, 1, out);
                                  std::fwrite(image.data(), 1, image.size(), out);
                              }
                          });
                      watch = &watcher;
                      for (std::uint64_t i = 0; i + 1 < sizes.size(); ++i) {
                          run_operation(clobber, l, i);
                          acknowledged = i + 1;
                      }
                      std::fclose(out);
                      return 0;
                  }),
                  0);
    }

    /// 0 when the image recovers to the state after 'acknowledged' operations or one more, and a
    /// second open finds the same and nothing left to recover.
    static int judge(const std::string& path, std::uint64_t acknowledged) {
        std::uint64_t count = 0;
        for (int open = 0; open < 2; ++open) {
            auto p = pool::open(path, options());
            if (!p) {
                std::printf("%s\n", p.error().what().c_str());
                return 3;
            }
            if (open == 0) count = p->root<list>()->count;
            const bool one_of_two =
                count == sizes[acknowledged] ||
                (acknowledged + 1 < sizes.size() && count == sizes[acknowledged + 1]);
            const char* wrong = one_of_two ? fault(*p, count) : "another count than expected";
            if (open == 1 && p->recovered().sections_pending != 0)
                wrong = "still pending after recovery";
            if (wrong == nullptr) continue;
            std::printf("%s; count %llu\n", wrong, static_cast<unsigned long long>(count));
            return 4;
        }
        return 0;
    }

    /// Opens the image while watching, and leaves in '.again' what a failure at event 'stop' of the
    /// recovery may leave. Returns false when recovery has fewer events.
    bool fail_in_recovery(const recorded& from, std::uint64_t stop, std::uint64_t seed) {
        write_file(path_, from.bytes);
        pool_header header;
        std::memcpy(&header, from.bytes.data(), sizeof header);
        if (header_checksum(header) != header.checksum)
            std::memcpy(&header, from.bytes.data() + 4096, sizeof header);
        auto* base = reinterpret_cast<std::byte*>(header.base_address);
        return in_child([&] {
                   std::mt19937_64 random(seed);
                   check::power_failure* watch = nullptr;
                   check::power_failure watcher(base, from.bytes, [&] {
                       if (watch->events() != stop) return;
                       write_file(path_ + ".again", watch->image(random));
                       ::_exit(0);
                   });
                   watch = &watcher;
                   auto p = pool::open(path_, options());
                   return 1;
               }) == 0;
    }

    std::string path_, images_;
};

TEST_P(PowerFailure, AtAnyEventLosesNothingAcknowledged) {
    const auto [clobber, seed] = GetParam();
    record(clobber, static_cast<std::uint64_t>(seed), 3);
    std::FILE* in = std::fopen(images_.c_str(), "rb");
    ASSERT_NE(in, nullptr);
    std::uint64_t head[2], count = 0, nested = 0;
    recorded r{std::vector<std::byte>(pool_bytes), 0, 0};
    while (std::fread(head, sizeof head, 1, in) == 1 &&
           std::fread(r.bytes.data(), 1, pool_bytes, in) == pool_bytes) {
        r.acknowledged = head[0];
        r.event = head[1];
        ++count;
        write_file(path_, r.bytes);
        ASSERT_EQ(in_child([&] { return judge(path_, r.acknowledged); }), 0)
            << "image " << count << ", event " << r.event << ", seed " << seed << ", acknowledged "
            << r.acknowledged;
        if (count % 5 != 0) continue;
        for (std::uint64_t stop = 1 + count % 3; fail_in_recovery(r, stop, count); stop += 4) {
            ++nested;
            ASSERT_EQ(in_child([&] { return judge(path_ + ".again", r.acknowledged); }), 0)
                << "image " << count << ", event " << r.event << ", recovery event " << stop
                << ", seed " << seed;
        }
    }
    std::fclose(in);
    EXPECT_GT(count, 300U);
    EXPECT_GT(nested, 300U);
    RecordProperty("images", static_cast<int>(count));
    RecordProperty("nested", static_cast<int>(nested));
    std::printf("images %llu, taken again in recovery %llu\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(nested));
}

INSTANTIATE_TEST_SUITE_P(Engines, PowerFailure,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(1, 2)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param) ? "clobber_" : "undo_") +
                                    std::to_string(std::get<1>(info.param));
                         });

} // namespace
