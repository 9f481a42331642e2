// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the machine does what SLPMT's Table I and Figs. 4 and 5 say, transaction by transaction.
// Method: a few stores, then the bits of their lines, or what has become durable in which order.
#include <slpmt/crash_proof.hpp>
#include <slpmt/machine.hpp>
#include <slpmt/marks.hpp>
#include <slpmt/recovery.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace hf;
using namespace hf::slpmt;

layout small_layout(unsigned cores = 1) {
    layout where;
    where.log_lines = 64;
    where.cores = cores;
    where.bytes = where.heap() + (64 << 10);
    return where;
}

sim::parameters parts_of(unsigned cores = 1) {
    sim::parameters parts;
    parts.cores = cores;
    return parts;
}

struct Machine : ::testing::Test {
    explicit Machine(technique how = slpmt::slpmt, sim::parameters parts = {})
        : where(small_layout(parts.cores)), m(how, parts, where), base(where.heap()) {
        m.memory().on_acceptance([this] { ++accepted; });
    }
    std::uint64_t line(std::uint64_t number) const { return base / 64 + number; }
    std::uint64_t at(std::uint64_t number, std::uint64_t word = 0) const {
        return base + number * 64 + word * 8;
    }
    std::uint64_t durable(std::uint64_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, &m.memory().durable()[offset], 8);
        return value;
    }
    std::uint64_t recovered(std::uint64_t offset) {
        image of{{m.memory().durable().begin(), m.memory().durable().end()}};
        const auto done = recover(of, where, m.how().redo, [](image&) {});
        EXPECT_TRUE(done);
        return of.word(offset).value;
    }
    layout where;
    machine m;
    std::uint64_t base;
    unsigned accepted = 0;
};

/// Table I, row by row.
TEST_F(Machine, TheOperandsSetTheBitsOfTableI) {
    struct row {
        operands how;
        bool persist, log;
    };
    m.begin();
    std::uint64_t number = 0;
    for (const row& r : {row{eager_logged, true, true}, row{{false, false}, true, true},
                         row{log_free, true, false}, row{lazy_log_free, false, false},
                         row{lazy_logged, false, true}}) {
        m.store(at(number, 3), 1, r.how);
        const auto [there, bits] = m.bits_of(line(number));
        ASSERT_TRUE(there);
        EXPECT_EQ(bits.persist, r.persist) << number;
        EXPECT_EQ(bits.log, r.log ? 1U << 3 : 0U) << number;
        ++number;
    }
    EXPECT_EQ(m.counted().records, 3U);
    m.commit();
}

TEST_F(Machine, AnEagerStoreCancelsLazinessForItsLine) {
    m.begin();
    m.store(at(0, 0), 1, lazy_log_free);
    m.store(at(0, 1), 2);
    m.store(at(1, 0), 3, lazy_log_free);
    m.commit();
    EXPECT_EQ(durable(at(0, 0)), 1U);
    EXPECT_EQ(durable(at(1, 0)), 0U);
    EXPECT_EQ(m.lazy_at_risk(), 1U);
}

TEST_F(Machine, AWordIsLoggedOnce) {
    m.begin();
    for (std::uint64_t value = 1; value < 9; ++value) m.store(at(0, 2), value);
    EXPECT_EQ(m.counted().records, 1U);
    m.store(at(0, 3), 1); // joins the other
    EXPECT_EQ(m.buffer().tier(1).size(), 1U);
    m.commit();
    EXPECT_EQ(m.counted().log_lines, 1U);
}

/// Fig. 4, undo: records, then logged lines, then the mark.
TEST_F(Machine, UndoWritesRecordsBeforeTheLinesTheyProtect) {
    std::vector<std::uint64_t> seen;
    m.begin();
    m.store(at(0), 7);
    m.store(at(1), 8, log_free);
    EXPECT_EQ(accepted, 0U);
    m.memory().on_acceptance([&] {
        const auto records = read_log(m.memory().durable(), where.log_of(0), 0, 1);
        seen.push_back((records && !records->empty() ? 1U : 0U) | (durable(at(0)) == 7 ? 2U : 0U) |
                       (durable(at(1)) == 8 ? 4U : 0U) |
                       (newest(m.memory().durable(), where.log_of(0)).tag == 1 ? 8U : 0U));
        EXPECT_EQ(recovered(at(0)), seen.back() & 8 ? 7U : 0U);
    });
    m.commit();
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{1, 3, 7, 15}));
}

struct RedoMachine : Machine {
    RedoMachine() : Machine(with_redo(slpmt::slpmt, "SLPMT, redo")) {}
};

/// Fig. 4, redo: records and log-free lines, then the mark, then logged lines.
TEST_F(RedoMachine, LogFreeLinesComeBeforeLoggedOnes) {
    std::vector<std::uint64_t> seen;
    m.begin();
    m.store(at(0), 7);
    m.store(at(1), 8, log_free);
    m.store(at(0), 9); // the record holds the newest value
    m.memory().on_acceptance([&] {
        seen.push_back((durable(at(0)) == 9 ? 2U : 0U) | (durable(at(1)) == 8 ? 4U : 0U) |
                       (newest(m.memory().durable(), where.log_of(0)).tag == 1 ? 8U : 0U));
        EXPECT_EQ(recovered(at(0)), seen.back() & 8 ? 9U : 0U);
    });
    m.commit();
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 4, 12, 14}));
}

TEST_F(RedoMachine, ALogFreeStoreOfALoggedWordChangesItsRecord) {
    m.begin();
    m.store(at(0), 7);
    m.store(at(0), 9, log_free);
    m.store(at(1), 1);
    m.commit();
    m.begin(); // and the last transaction is replayed as long as none follows
    EXPECT_EQ(recovered(at(0)), 9U);
    m.commit();
}

/// Two lines of the first level, so that a third store's line sends one down.
struct TinyMachine : Machine {
    static sim::parameters tiny() {
        sim::parameters parts;
        parts.l1 = {128, 1, 4};
        parts.l2 = {1024, 4, 12};
        return parts;
    }
    explicit TinyMachine(technique how = slpmt::slpmt) : Machine(how, tiny()) {}
    /// Line 0 goes to the second level; line 2 is of its set.
    void send_down() { m.load(at(2)); }
};
struct TinyByTheText : TinyMachine {
    static technique text() {
        technique how = slpmt::slpmt;
        how.speculates = false;
        return how;
    }
    TinyByTheText() : TinyMachine(text()) {}
};

/// Fig. 5: the conjunction of four bits down, each bit for four up.
TEST_F(TinyByTheText, LogBitsAreJoinedDownAndReplicatedUp) {
    m.begin();
    for (std::uint64_t word : {0, 1, 2, 3, 5}) m.store(at(0, word), 1);
    EXPECT_EQ(m.bits_of(line(0)).second.log, 0b101111U);
    send_down();
    EXPECT_EQ(m.bits_of(line(0)).second.log, 0b01U);
    m.load(at(0));
    EXPECT_EQ(m.bits_of(line(0)).second.log, 0b1111U);
    EXPECT_TRUE(m.bits_of(line(0)).second.persist);
    m.store(at(0, 5), 2); // its bit is lost: logged again
    EXPECT_EQ(m.counted().records, 6U);
    m.commit();
}

TEST_F(TinyMachine, SpeculativeRecordsKeepTheBitOfAHalf) {
    m.begin();
    for (std::uint64_t word : {0, 1, 2}) m.store(at(0, word), 1);
    send_down();
    EXPECT_EQ(m.counted().records, 4U); // the fourth word's, which joins the others
    EXPECT_EQ(m.buffer().tier(2).size(), 1U);
    m.load(at(0));
    EXPECT_EQ(m.bits_of(line(0)).second.log, 0b1111U);
    m.commit();
}

TEST_F(Machine, LazyRecordsAreDiscardedAtTheCommit) {
    m.begin();
    m.store(at(0), 1, lazy_logged);
    m.store(at(1), 1);
    m.commit();
    EXPECT_EQ(m.counted().records, 2U);
    EXPECT_EQ(m.counted().discarded, 1U);
}

TEST_F(Machine, FourEmptyTransactionsMakeEverythingDurable) {
    m.begin();
    m.store(at(0), 5, lazy_log_free);
    m.store(at(9), 5);
    m.commit();
    for (int i = 0; i < 3; ++i) {
        m.begin();
        m.commit();
        EXPECT_EQ(durable(at(0)), 0U) << i;
    }
    m.begin();
    m.commit();
    EXPECT_EQ(durable(at(0)), 5U);
    EXPECT_EQ(m.lazy_at_risk(), 0U);
}

TEST_F(Machine, EarlierTransactionsLazyLinesComeFirst) {
    for (std::uint64_t i = 0; i < 3; ++i) {
        m.begin();
        m.store(at(i), 5, lazy_log_free);
        m.commit();
    }
    m.begin();
    m.load(at(1)); // the second's: it and the first, not the third
    EXPECT_EQ(durable(at(0)), 5U);
    EXPECT_EQ(durable(at(1)), 5U);
    EXPECT_EQ(durable(at(2)), 0U);
    m.commit();
}

TEST_F(Machine, AStoreToTheWorkingSetMakesWhatDependsOnItDurable) {
    m.begin();
    m.load(at(4)); // the lazy line depends on it
    m.store(at(0), 5, lazy_log_free);
    m.commit();
    m.begin();
    m.store(at(7), 1); // depends on nothing
    EXPECT_EQ(durable(at(0)), 0U);
    m.store(at(4), 1);
    EXPECT_EQ(durable(at(0)), 5U);
    EXPECT_EQ(durable(at(4)), 0U);
    m.commit();
}

TEST_F(Machine, StoresOutsideOfTransactionsAreLookedUpToo) {
    m.begin();
    m.load(at(4));
    m.store(at(0), 5, lazy_log_free);
    m.commit();
    m.store(at(4), 1);
    EXPECT_EQ(durable(at(0)), 5U);
    EXPECT_EQ(durable(at(4)), 0U);
}

TEST_F(Machine, AnAbortTakesEverythingBackButEarlierLazyLines) {
    m.begin();
    m.load(at(4));
    m.store(at(0), 5, lazy_log_free);
    m.store(at(1), 6);
    m.commit();
    m.begin();
    const unsigned identifier = m.bits_of(line(0)).second.identifier;
    m.store(at(1), 7);
    m.store(at(6), 8);
    m.abort();
    EXPECT_EQ(m.load(at(1)).value, 6U);
    EXPECT_EQ(m.load(at(6)).value, 0U);
    EXPECT_EQ(recovered(at(1)), 6U);
    EXPECT_TRUE(m.buffer().empty());
    (void)identifier;
}

TEST_F(Machine, AnAbortClearsTheCurrentSignatureOnly) {
    m.begin();
    m.load(at(4));
    m.store(at(0), 5, lazy_log_free);
    m.commit(); // identifier 1
    m.begin();
    m.store(at(9), 1); // identifier 2
    m.abort();
    EXPECT_TRUE(m.working_set_holds(1, line(4)));
    EXPECT_FALSE(m.working_set_holds(2, line(9)));
    m.begin();
    m.store(at(4), 1);
    EXPECT_EQ(durable(at(0)), 5U);
    m.commit();
}

TEST_F(TinyMachine, AnAbortRestoresWhatHadReachedMemory) {
    m.begin();
    m.store(at(0), 3);
    m.commit();
    m.begin();
    for (std::uint64_t i = 0; i < 40; ++i) m.store(at(i), 100 + i); // most have left the caches
    EXPECT_EQ(durable(at(0)), 100U);
    m.abort();
    EXPECT_EQ(durable(at(0)), 3U);
    EXPECT_EQ(recovered(at(0)), 3U);
    for (std::uint64_t i = 1; i < 40; ++i) EXPECT_EQ(m.load(at(i)).value, 0U);
    EXPECT_EQ(m.load(at(0)).value, 3U);
}

TEST_F(Machine, ATransactionsRecordsGoToMemoryBeforeAContextSwitch) {
    m.begin();
    m.store(at(0), 1);
    m.switch_context();
    EXPECT_TRUE(m.buffer().empty());
    EXPECT_EQ(accepted, 1U);
    m.store(at(0), 2); // logged already
    m.commit();
    EXPECT_EQ(m.counted().records, 1U);
}

struct TwoCores : Machine {
    TwoCores() : Machine(slpmt::slpmt, parts_of(2)) {}
};

TEST_F(TwoCores, AnotherCoresStoreMakesLazyLinesDurableFirst) {
    m.begin();
    m.load(at(4));
    m.store(at(0), 5, lazy_log_free);
    m.commit();
    m.run_on(1);
    m.begin();
    m.store(at(4), 1);
    EXPECT_EQ(durable(at(0)), 5U);
    m.commit();
}

TEST_F(TwoCores, AnotherCoresLoadOfALazyLineMakesItDurable) {
    m.begin();
    m.store(at(0), 5, lazy_log_free);
    m.commit();
    m.run_on(1);
    m.begin();
    EXPECT_EQ(m.load(at(0)).value, 5U);
    EXPECT_EQ(durable(at(0)), 5U);
    m.commit();
}

TEST_F(TwoCores, PendingTransactionsOfBothAreRolledBack) {
    m.begin();
    m.store(at(0), 1);
    m.run_on(1);
    m.begin();
    m.store(at(8), 1);
    m.switch_context();
    m.run_on(0);
    m.switch_context();
    EXPECT_EQ(recovered(at(0)), 0U);
    m.commit();
    EXPECT_EQ(recovered(at(0)), 1U);
    EXPECT_EQ(recovered(at(8)), 0U);
    m.run_on(1);
    m.commit();
    EXPECT_EQ(recovered(at(8)), 1U);
}

/// Redo: what a core's last transaction stored is in place, and another core may have changed it
/// since.
struct TwoRedoCores : Machine {
    TwoRedoCores() : Machine(with_redo(slpmt::slpmt, "SLPMT, redo"), parts_of(2)) {}
    void store_on(unsigned core, std::uint64_t offset, std::uint64_t value) {
        m.run_on(core);
        m.begin();
        m.store(offset, value);
        m.commit();
    }
};

TEST_F(TwoRedoCores, RecoveryReplaysNothingOverAnotherCoresNewerTransaction) {
    store_on(1, at(0), 1);
    store_on(0, at(0), 2);
    EXPECT_EQ(durable(at(0)), 2U);
    EXPECT_EQ(recovered(at(0)), 2U);
    store_on(0, at(8), 3); // of core 0 that is the last one now
    EXPECT_EQ(recovered(at(0)), 2U);
    EXPECT_EQ(recovered(at(8)), 3U);
}

/// A store outside of transactions comes after the stores of its own core's last transaction, too.
struct TinyRedoMachine : Machine {
    TinyRedoMachine() : Machine(with_redo(fg, "FG, redo"), small_caches()) {}
};

TEST_F(TinyRedoMachine, RecoveryReplaysNothingOverAStoreOutsideOfTransactions) {
    m.begin();
    m.store(at(0), 1);
    m.commit();
    m.store(at(0), 2);
    for (std::uint64_t i = 1; i < 200; ++i) m.load(at(i)); // everything else leaves
    EXPECT_EQ(durable(at(0)), 2U);
    EXPECT_EQ(recovered(at(0)), 2U);
}

/// The log of the transaction before lies in the circle until the next one is resolved.
struct FullRedoMachine : Machine {
    FullRedoMachine() : Machine(with_redo(fg, "FG, redo")) {}
};

TEST_F(FullRedoMachine, ALogThatComesRoundIsNotReplayedInPart) {
    const auto fill = [this](std::uint64_t value) {
        for (std::uint64_t i = 0; i < 30; ++i)
            for (std::uint64_t word = 0; word < 8; ++word) m.store(at(i, word), value + word);
    };
    m.begin();
    fill(100);
    m.commit();
    unsigned wrong = 0;
    m.memory().on_acceptance([&] {
        for (std::uint64_t i = 0; i < 30; ++i)
            for (std::uint64_t word = 0; word < 8; ++word) {
                const std::uint64_t is = recovered(at(i, word));
                wrong += is != 100 + word && m.resolved() == 1;
            }
    });
    m.begin();
    fill(200);
    m.switch_context();
    EXPECT_EQ(wrong, 0U);
}

/// §III-D: 6.1 KB. The first level's fields are counted twice: only then is their sum 3.9 KB.
TEST(Area, TheFieldsTakeWhatThePaperSays) {
    const std::uint64_t first = (32 << 10) / 64 * mark::first_bits / 8,
                        second = (256 << 10) / 64 * mark::second_bits / 8;
    EXPECT_EQ(2 * first + second, 3968U);
    EXPECT_EQ((tier_lines(0) + tier_lines(1) + tier_lines(2) + tier_lines(3)) * 64, 1216U);
    EXPECT_EQ(4 * slpmt::signature::bits / 8, 1024U);
}

} // namespace
