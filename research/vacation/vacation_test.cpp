// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency's books balance on every engine, and hold what the volatile ones hold after the same
// requests; also in a process that died between two requests. Deaths within one: kill_test.py.
#include "../peer/builds.hpp"
#include "agency.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::apps::vacation {
namespace {

constexpr agency_options small{.relations = 200, .queries = 6, .query_percent = 80};

agency::report replayed(std::uint64_t requests) {
    auto books = open_volatile({});
    agency office(**books, small);
    EXPECT_TRUE(office.open_for_business().ok());
    for (std::uint64_t t = 0; t < requests; ++t) EXPECT_TRUE(office.request(t).ok());
    return office.look();
}

class AgencyOn : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
    AgencyOn() {
        const std::string& given = std::get<0>(GetParam());
        options_.engine = given.substr(0, given.find('/'));
        options_.tree = given.substr(given.find('/') + 1); // of engines with sections
        options_.power = std::get<1>(GetParam());
        options_.rows = small.relations;
        options_.path = "/dev/shm/holdfast-vacation-test." + std::to_string(::getpid());
        std::filesystem::remove(options_.path);
    }
    ~AgencyOn() override { std::filesystem::remove(options_.path); }

    table_options options_;
};

/// Engines that keep anything.
class DurableAgencyOn : public AgencyOn {};

TEST_P(AgencyOn, HoldsWhatTheVolatileOneHolds) {
    auto books = open_tables(options_);
    ASSERT_TRUE(books) << books.error().what();
    agency office(**books, small);
    ASSERT_TRUE(office.open_for_business().ok());
    for (const std::uint64_t count : {0, 1, 10, 100, 1000, 10000}) {
        static std::uint64_t done;
        if (count == 0) done = 0;
        for (; done < count; ++done) ASSERT_TRUE(office.request(done).ok());
        const auto seen = office.look();
        const auto wanted = replayed(count);
        EXPECT_EQ(seen.wrong, "");
        EXPECT_EQ(seen.digest, wanted.digest) << "after " << count;
        EXPECT_EQ(seen.rows, wanted.rows);
        EXPECT_EQ(seen.customers, wanted.customers);
        EXPECT_EQ(seen.reservations, wanted.reservations);
    }
}

TEST_P(DurableAgencyOn, KeepsEveryAnsweredRequest) {
    const pid_t child = ::fork();
    if (child == 0) {
        auto books = open_tables(options_);
        if (!books) ::_exit(2);
        agency office(**books, small);
        if (!office.open_for_business().ok()) ::_exit(3);
        for (std::uint64_t t = 0; t < 500; ++t)
            if (!office.request(t).ok()) ::_exit(4);
        ::raise(SIGKILL);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    ASSERT_TRUE(WIFSIGNALED(how)) << how;
    auto books = open_tables(options_);
    ASSERT_TRUE(books) << books.error().what();
    agency office(**books, small);
    ASSERT_TRUE(office.open_for_business().ok());
    EXPECT_EQ(office.look().digest, replayed(500).digest);
    for (std::uint64_t t = 500; t < 600; ++t) ASSERT_TRUE(office.request(t).ok());
    EXPECT_EQ(office.look().digest, replayed(600).digest);
}

std::vector<std::string> engines_and(std::vector<std::string> more) {
#define HF_NAMES(build) #build "/rb", #build "/avl",
    more.insert(more.end(), {HF_APPLICATION_BUILDS(HF_NAMES)});
    return more;
}
constexpr auto named = [](const auto& given) {
    std::string name = std::get<0>(given.param) + (std::get<1>(given.param) ? "_pmem" : "_process");
    std::replace(name.begin(), name.end(), '/', '_');
    return name;
};
INSTANTIATE_TEST_SUITE_P(
    Engines, AgencyOn,
    testing::Combine(testing::ValuesIn(engines_and({"mod", "pmdk", "volatile"})), testing::Bool()),
    named);
INSTANTIATE_TEST_SUITE_P(Engines, DurableAgencyOn,
                         testing::Combine(testing::ValuesIn(engines_and({"mod", "pmdk"})),
                                          testing::Bool()),
                         named);

TEST(Agency, RequestsAreOfAllKinds) {
    const auto before = replayed(0);
    const auto after = replayed(10000);
    EXPECT_EQ(before.rows, 3U * small.relations);
    EXPECT_EQ(before.customers, small.relations + 1U);
    EXPECT_EQ(before.reservations, 0U);
    EXPECT_LT(after.rows, before.rows);           // some offers were withdrawn
    EXPECT_LT(after.customers, before.customers); // some customers struck off
    EXPECT_GT(after.reservations, 100U);
}

// The check is of use: it sees books that do not balance.
TEST(Agency, LookFindsWhatDoesNotBalance) {
    const auto wrong_after = [](const std::function<void(transaction&)>& change) {
        auto books = open_volatile({});
        agency office(**books, small);
        EXPECT_TRUE(office.open_for_business().ok());
        EXPECT_TRUE((*books)->run(change).ok());
        return office.look().wrong;
    };
    const reservation one{kind::room, 7, 50};
    EXPECT_EQ(wrong_after([](transaction&) {}), "");
    EXPECT_EQ(wrong_after([](transaction& in) { in.put(kind::car, 5, {1, 100, 100, 50}); }),
              "total of row 5");
    EXPECT_EQ(wrong_after([](transaction& in) { in.put(kind::car, 5, {1, 99, 100, 50}); }),
              "reservations of row 5");
    EXPECT_EQ(wrong_after([&](transaction& in) { in.book(3, {&one, 1}); }),
              "reservations of row 7");
    EXPECT_EQ(wrong_after([&](transaction& in) {
                  in.erase(kind::room, 7);
                  in.book(3, {&one, 1});
              }),
              "reserved row that is gone 7");
}

} // namespace
} // namespace hf::apps::vacation
