// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: each comparator is as crash-proof as the checkpoint it is compared with, or the comparison
// is worthless. Method: at every event of the persistence layer the memory is examined as a power
// failure would leave it, with nothing that was not waited for, and with all of it: the image that
// counts must be whole, the one before or the new one. And the ordering points are those of
// checkpoints.hpp.
#include "checkpoints.hpp"
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace hf::bench {
namespace {

constexpr std::size_t bytes = 256;

/// Memory as it is and as a power failure would leave it.
struct failing_memory {
    alignas(64) std::byte now[memory_for(bytes)]{};
    alignas(64) std::byte durable[memory_for(bytes)]{};
    std::vector<std::pair<std::size_t, std::vector<std::byte>>> pending;
    int fences = 0;
    std::byte before{0}, next{0};
    bool whole = true;
    std::mutex lock;

    bool is_whole(const std::byte* memory) const {
        const std::byte* const image = image_that_counts(memory, bytes);
        return (image[0] == before || image[0] == next) &&
               std::all_of(image, image + bytes, [&](std::byte b) { return b == image[0]; });
    }
    void happened(const trace::event& what, const void* address, std::size_t count) {
        const std::scoped_lock held{lock};
        const auto* const at = static_cast<const std::byte*>(address);
        if (what == trace::nt_store || what == trace::flush) {
            if (at < now || at >= now + sizeof now) return;
            pending.emplace_back(at - now, std::vector<std::byte>(at, at + count));
        } else if (what == trace::fence) {
            ++fences;
            for (const auto& [place, content] : pending)
                std::memcpy(durable + place, content.data(), content.size());
            pending.clear();
        }
        whole &= is_whole(durable) && is_whole(now);
    }
};
failing_memory* memory = nullptr;

struct expected {
    const char* scheme;
    int fences;
    friend void PrintTo(const expected& e, std::ostream* to) { *to << e.scheme; }
};
class Checkpoints : public ::testing::TestWithParam<expected> {};
INSTANTIATE_TEST_SUITE_P(Schemes, Checkpoints,
                         ::testing::Values(expected{"dual", 2}, expected{"double", 4},
                                           expected{"kamino", 4}, expected{"cow", 4}),
                         [](const auto& each) { return std::string(each.param.scheme); });

TEST_P(Checkpoints, LeaveAWholeImageAtEveryMoment) {
    const auto [name, fences] = GetParam();
    failing_memory failing;
    memory = &failing;
    const auto scheme = make_scheme(name, medium(domain::adr), failing.now, bytes, "");
    std::memcpy(failing.durable, failing.now, sizeof failing.now);
    const trace::listening listens([](const trace::event& what, const void* at, std::size_t count) {
        memory->happened(what, at, count);
    });
    for (int i = 1; i < 20; ++i) {
        failing.next = std::byte(i);
        std::array<std::byte, bytes> object;
        object.fill(failing.next);
        failing.fences = 0;
        scheme->write(object.data());
        scheme->settle();
        EXPECT_EQ(failing.fences, fences);
        EXPECT_TRUE(failing.whole) << i;
        EXPECT_EQ(std::memcmp(scheme->recovered(), object.data(), bytes), 0);
        EXPECT_EQ(std::memcmp(image_that_counts(failing.durable, bytes), object.data(), bytes), 0);
        failing.before = failing.next;
    }
}

TEST(CheckpointsOfAFile, AreFoundInIt) {
    const auto scheme =
        make_scheme("file", medium(domain::process), nullptr, bytes, "checkpoints_test.copies");
    for (int i = 1; i < 4; ++i) {
        std::array<std::byte, bytes> object;
        object.fill(std::byte(i));
        scheme->write(object.data());
        EXPECT_EQ(std::memcmp(scheme->recovered(), object.data(), bytes), 0);
    }
}

} // namespace
} // namespace hf::bench
