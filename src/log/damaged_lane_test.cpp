// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: damage to the log of a pending section is refused, not taken for the log's end, where the
// log cannot have been torn: in process mode, of a log whose records have checks.
// Method: a process dies in the commit of a section whose log goes on in the heap; its pool is
// opened again with one place of its lane or its log changed. Each time it is refused, or recovered
// as it should be.
#include <log/lane.hpp>
#include <open/pool_impl.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/clobber.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

constexpr std::uint64_t words = 400; // more than a half of the lane has room for
struct numbers {
    std::uint64_t at[words];
};

const numbers* die_at = nullptr; // its first store in place

void die_in_commit(const trace::event& what, const void* at, std::size_t) {
    if (what == trace::store && at >= die_at && at < die_at + 1) ::kill(::getpid(), SIGKILL);
}
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc change_desc{HF_ABI_VERSION, 8, 1005, 1, "change", "here", schema, 1, nullptr};

void run(numbers* n) {
    hf_redo_begin(&change_desc, &n);
    for (std::uint64_t i = 0; i < words; ++i)
        *static_cast<std::uint64_t*>(hf_redo_write(&n->at[i], 8)) = n->at[i] * 3 + i;
    hf_redo_commit();
}

/// One place changed: a bit, a byte, a word, or a few words that read as zeros or as what stood
/// elsewhere in the log.
void damage_one(std::string& file, const std::vector<std::uint64_t>& places,
                std::mt19937_64& random) {
    const auto word = [&] { return places[random() % places.size()]; };
    const std::uint64_t at = word(), from = word();
    switch (random() % 5) {
    case 0: file[at + random() % 8] ^= static_cast<char>(1u << random() % 8); break;
    case 1: file[at + random() % 8] = static_cast<char>(random()); break;
    case 2: {
        const std::uint64_t other = random();
        std::memcpy(file.data() + at, &other, sizeof other);
        break;
    }
    case 3: std::memset(file.data() + at, 0, 8 * (1 + random() % 8)); break;
    default: std::memmove(file.data() + at, file.data() + from, 8 * (1 + random() % 8));
    }
}

class DamagedLane : public ::testing::Test {
protected:
    void SetUp() override {
        hf_txfunc_register(&change_desc);
        ::unlink(path_.c_str());
        options_.layout = "damaged_lane_test/1";
        options_.create_bytes = options_.max_bytes = 128_KiB;
        options_.max_threads = 1;
        options_.engines = {redo::engine()};
        options_.expert.seal = false;
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = pool::open(path_, options_);
            run(p->root<numbers>());
            run(p->root<numbers>());
            die_at = p->root<numbers>();
            const trace::listening kills(die_in_commit);
            run(p->root<numbers>());
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        std::ifstream in(path_, std::ios::binary);
        dead_.assign(std::istreambuf_iterator<char>(in), {});
        in.close();
        find_places();
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    /// Words of the header, of the other section's begin record and of the pending log.
    void find_places() {
        auto file = pool_file::open(path_, file_options_of(options_));
        ASSERT_TRUE(file) << file.error().what();
        heap blocks(**file);
        const auto add = [&](const std::byte* at, std::uint64_t bytes) {
            for (std::uint64_t w = 0; w + 8 <= bytes; w += 8)
                places_.push_back(static_cast<std::uint64_t>(at - (*file)->base()) + w);
        };
        pending_section found;
        std::uint64_t newest = 0;
        lane_damage damage;
        ASSERT_TRUE(read_lane(**file, blocks, 0, found, newest, damage));
        ASSERT_EQ(damage.what, nullptr);
        add(reinterpret_cast<const std::byte*>(lane_at(**file, 0)), 16);
        const lane_position half = lane_start(**file, 0, newest);
        add(lane_start(**file, 0, newest + 1).next, 64);
        add(half.next, static_cast<std::uint64_t>(half.limit - half.next) - 64);
        std::uint64_t segments = 0;
        for (const record_view& r : found.records)
            if (r.kind == record_kind::segment) {
                add((*file)->base() + r.offset, 1024);
                ++segments;
            }
        EXPECT_GT(segments, 0U);
        pool_file::abandon(std::move(*file));
    }
    void write(const std::string& bytes) const {
        std::ofstream(path_, std::ios::binary)
            .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    /// ok: recovered as it should be; errc::corrupt … refused.
    static bool as_it_should_be(pool& p) {
        const numbers* n = p.root<numbers>();
        for (std::uint64_t i = 0; i < words; ++i)
            if (n->at[i] != 13 * i) return false; // three runs from 0
        return true;
    }

    std::string path_ = "/dev/shm/hf_damaged_lane_test." + std::to_string(::getpid());
    open_options options_;
    std::string dead_;
    std::vector<std::uint64_t> places_;
};

TEST_F(DamagedLane, IsRefusedOrRecoveredAsItShouldBe) {
    write(dead_);
    {
        auto p = pool::open(path_, options_);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().replayed, 1U);
        EXPECT_TRUE(as_it_should_be(*p));
    }
    std::mt19937_64 random(11);
    unsigned refused = 0, wrong = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string damaged = dead_;
        damage_one(damaged, places_, random);
        write(damaged);
        auto p = pool::open(path_, options_);
        if (!p) ++refused;
        else if (!as_it_should_be(*p)) ++wrong;
    }
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(refused, 3000U);
}

/// What the refusal says gets past it.
void expect_ways_out(const status& refusal, std::initializer_list<const char*> parts) {
    EXPECT_EQ(name(refusal.code()), "corrupt");
    for (const char* part : parts)
        EXPECT_NE(refusal.what().find(part), std::string::npos) << refusal.what();
}

TEST_F(DamagedLane, IsGivenUpUnderSalvageOrDiscardedAndNeverReplayed) {
    dead_[places_.back()] = static_cast<char>(dead_[places_.back()] ^ 1); // in the last segment
    write(dead_);
    auto p = pool::open(path_, options_);
    ASSERT_FALSE(p);
    expect_ways_out(p.error(), {"roll_back and salvage", "holdfast repair --roll-back --force"});
    options_.salvage = true;
    p = pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().sections_pending, 0U);
    ASSERT_EQ(p->warnings().size(), 1U);
    EXPECT_NE(p->warnings()[0].find("lane 0 is given up"), std::string::npos) << p->warnings()[0];
    p = status{};
    write(dead_);
    options_.recovery = recovery_policy::roll_back;
    p = pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().discarded, 1U);
}

class DamagedIdleLane : public ::testing::Test {
protected:
    void SetUp() override {
        ::unlink(path_.c_str());
        options_.layout = "damaged_lane_test/2";
        options_.create_bytes = options_.max_bytes = 256_KiB;
        options_.max_threads = 2;
        options_.engines = {clobber::engine(), redo::engine()};
        options_.expert.seal = false;
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    /// Leaves lane 1 as a thread leaves it, then turns one bit: in a half, or in the witness.
    void damage_one_bit(bool of_half, bool killed) {
        ::unlink(path_.c_str());
        std::uint64_t place = 0;
        {
            auto p = pool::open(path_, options_);
            ASSERT_TRUE(p) << p.error().what();
            pool_file& file = *p->internals().file;
            start_lane(file, 1, 2);
            const void* word = of_half ? static_cast<void*>(lane_start(file, 1, 1).next)
                                       : &lane_at(file, 1)->witness;
            place = p->internals().offset_of(word);
            if (killed) pool::impl::abandon(std::move(*p));
        }
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(static_cast<std::streamoff>(place));
        const char damaged = static_cast<char>(file.get() ^ 1);
        file.seekp(static_cast<std::streamoff>(place));
        file.put(damaged);
    }
    void expect_opens_after_kills() {
        for (int killed = 0; killed < 3; ++killed) {
            auto p = pool::open(path_, options_);
            ASSERT_TRUE(p) << p.error().what();
            pool::impl::abandon(std::move(*p));
        }
    }

    std::string path_ = "/dev/shm/hf_damaged_idle_lane_test." + std::to_string(::getpid());
    open_options options_;
};

TEST_F(DamagedIdleLane, OfAClosedPoolDoesNotShutItAtTheNextKill) {
    for (const bool of_half : {false, true}) {
        damage_one_bit(of_half, false);
        expect_opens_after_kills();
    }
}

TEST_F(DamagedIdleLane, OfAKilledPoolIsTakenForIdleUnderSalvage) {
    for (const bool of_half : {false, true}) {
        damage_one_bit(of_half, true);
        for (const bool rolling : {false, true}) {
            options_.recovery = rolling ? recovery_policy::roll_back : recovery_policy::complete;
            const auto p = pool::open(path_, options_);
            ASSERT_FALSE(p);
            expect_ways_out(p.error(), {"open the pool with salvage", "--roll-back --force"});
        }
        options_.recovery = recovery_policy::complete;
        options_.salvage = true;
        pool::impl::abandon(std::move(*pool::open(path_, options_)));
        options_.salvage = false;
        expect_opens_after_kills(); // salvaged once, it stays so
    }
}

void add_one(const void* packed) {
    auto* at = *static_cast<std::uint64_t* const*>(packed);
    hf_clobber_log(at, 8);
    *const_cast<volatile std::uint64_t*>(at) = *at + 1;
}
const hf_txfunc add_one_desc{HF_ABI_VERSION, 8, 1008, 1, "add_one", "here", schema, 1, add_one};

/// A section as a build writes it that knows neither witnesses nor end marks. 'committed': its mark
/// is stored.
void add_one_in_an_older_build(pool& p, bool committed) {
    pool_file& file = *p.internals().file;
    auto* number = p.root<std::uint64_t>();
    const std::uint64_t epoch = p.internals().lanes[0].epoch + 1;
    lane_at(file, 0)->committed = epoch - 1; // it takes the lane
    const begin_payload head{epoch, add_one_desc.id, add_one_desc.version, engine_clobber,
                             0,     sizeof number};
    std::byte payload[sizeof head + sizeof number];
    std::memcpy(payload, &head, sizeof head);
    std::memcpy(payload + sizeof head, &number, sizeof number);
    lane_writer_in log{fenced_medium(medium(domain::adr))};
    log.start(lane_start(file, 0, epoch));
    log.append(record_kind::begin, 0, sizeof payload, payload, sizeof payload);
    log.append(record_kind::old_bytes, p.internals().offset_of(number), 8, number, 8);
    *number += 1;
    if (committed) lane_at(file, 0)->committed = epoch;
}

TEST_F(DamagedIdleLane, IsNoneThatAnOlderBuildHasUsedSince) {
    hf_txfunc_register(&add_one_desc);
    for (const bool committed : {false, true}) {
        ::unlink(path_.c_str());
        for (int run = 0; run < 2; ++run) { // begin records in both halves
            auto p = pool::open(path_, options_);
            ASSERT_TRUE(p) << p.error().what();
            auto* number = p->root<std::uint64_t>();
            for (int i = 0; i <= run; ++i) {
                hf_redo_begin(&add_one_desc, &number);
                *static_cast<std::uint64_t*>(hf_redo_write(number, 8)) = *number + 1;
                hf_redo_commit();
            }
        }
        {
            auto p = pool::open(path_, options_);
            ASSERT_TRUE(p) << p.error().what();
            add_one_in_an_older_build(*p, committed);
            pool::impl::abandon(std::move(*p));
        }
        auto p = pool::open(path_, options_);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().rolled_back, committed ? 0U : 1U); // it cannot go on in that log
        EXPECT_EQ(*p->root<std::uint64_t>(), committed ? 4U : 3U);
    }
}

} // namespace
