// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: transactions of several cores on the same lines, one after another, survive every crash as
//           those of one do.
// Method: random transactions, side by side where they share no line, are committed or taken back;
// every acceptance is a crash, and recovery is compared with what was committed, word by word.
#include <slpmt/crash_proof.hpp>
#include <slpmt/machine.hpp>
#include <slpmt/recovery.hpp>

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace {

using namespace hf;
using namespace hf::slpmt;

struct how {
    technique by;
    bool small;
    unsigned log_lines;
};

constexpr unsigned cores = 3, lines = 12;

class Cores : public ::testing::TestWithParam<how> {
protected:
    struct running {
        std::set<std::uint64_t> lines; // that it alone may use
        std::map<std::uint64_t, std::uint64_t> stored;
    };

    Cores() : where_(place()), m_(GetParam().by, parts(), where_) {
        m_.memory().on_acceptance([this] { crash(); });
    }
    static layout place() {
        layout where;
        where.log_lines = GetParam().log_lines;
        where.cores = cores;
        where.bytes = where.heap() + (16 << 10);
        return where;
    }
    static sim::parameters parts() {
        sim::parameters all = GetParam().small ? small_caches() : sim::parameters{};
        all.cores = cores;
        return all;
    }
    std::uint64_t word(std::uint64_t line, std::uint64_t in) const {
        return where_.heap() + line * 64 + in * 8;
    }
    void crash() {
        ++points_;
        image of{m_.after_power_failure()};
        const auto resolved = recover(of, where_, m_.how().redo, [](image&) {});
        ASSERT_TRUE(resolved) << resolved.error().what();
        auto wanted = committed_;
        if (ending_ != cores && commits_ && (*resolved)[ending_] > tag_before_)
            for (const auto& [at, value] : now_[ending_].stored) wanted[at] = value;
        for (const auto& [at, value] : wanted) wrong_ += of.word(at).value != value;
    }
    bool is_free(std::uint64_t line) const {
        return std::ranges::none_of(now_, [&](const running& r) { return r.lines.contains(line); });
    }
    void access(unsigned core) {
        const std::uint64_t line = random_() % lines;
        running& own = now_[core];
        if (!own.lines.contains(line)) {
            if (!is_free(line)) return;
            own.lines.insert(line);
        }
        const std::uint64_t at = word(line, random_() % 8);
        if (random_() % 3 == 0) {
            const auto stored = own.stored.find(at);
            EXPECT_EQ(m_.load(at).value,
                      stored != own.stored.end() ? stored->second : committed_[at]);
        } else {
            m_.store(at, own.stored[at] = ++value_);
        }
    }
    void end(unsigned core) {
        ending_ = core;
        commits_ = random_() % 4 != 0;
        tag_before_ = m_.resolved();
        if (commits_) m_.commit();
        else m_.abort();
        if (commits_)
            for (const auto& [at, value] : now_[core].stored) committed_[at] = value;
        now_[core] = {};
        ending_ = cores;
    }

    const layout where_;
    machine m_;
    running now_[cores];
    std::map<std::uint64_t, std::uint64_t> committed_;
    std::mt19937_64 random_{7};
    std::uint64_t value_ = 0, tag_before_ = 0;
    unsigned ending_ = cores, points_ = 0, wrong_ = 0;
    bool commits_ = false;
};

TEST_P(Cores, EveryAcceptanceCanBeTheLast) {
    for (unsigned step = 0; step < 5000 && wrong_ == 0 && !HasFatalFailure(); ++step) {
        const auto core = static_cast<unsigned>(random_() % cores);
        m_.run_on(core);
        if (!m_.in_transaction()) m_.begin();
        else if (random_() % 8 == 0) end(core);
        else if (random_() % 30 == 0) m_.switch_context();
        else access(core);
    }
    EXPECT_GT(points_, 500U);
    EXPECT_EQ(wrong_, 0U) << "after " << points_ << " crashes";
}

constexpr technique redo_fg = with_redo(fg, "FG, redo"),
                    redo = with_redo(slpmt::slpmt, "SLPMT, redo"),
                    redo_lines = with_redo(fg_lines, "FG, lines, redo");
INSTANTIATE_TEST_SUITE_P(All, Cores,
                         ::testing::Values(how{slpmt::slpmt, false, 64},
                                           how{slpmt::slpmt, true, 64}, how{fg_lines, true, 128},
                                           how{atom, true, 128}, how{ede, true, 64},
                                           how{redo, false, 64}, how{redo, true, 200},
                                           how{redo_fg, true, 200}, how{redo_lines, false, 128},
                                           how{redo_lines, true, 200}));

} // namespace
