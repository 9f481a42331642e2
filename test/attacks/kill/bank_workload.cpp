// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bank of examples/: transfers among a few accounts by threads that all want the same ones.
// journal: last[a] is the sum, modulo 2^64, that the thread's acknowledged transfers added to
// account a; pending holds from, to, cents, and both sums before the unfinished transfer.
#include "../../../examples/bank.hpp"
#include "workload.hpp"

namespace kill_test {
namespace {

constexpr std::uint64_t accounts = 12;
constexpr std::int64_t opening_cents = 1000;

class bank_load final : public workload {
public:
    const char* name() const override { return "bank"; }
    void shape(hf::open_options& o, std::uint64_t) const override {
        o.layout = bank::layout;
        o.create_bytes = 1 << 20;
    }
    void prepare(hf::pool& pool, journal& log) override {
        auto* branch = pool.root<bank::branch>();
        if (branch->accounts == nullptr && !bank::create(branch, accounts, opening_cents))
            log.fail("cannot open the accounts");
    }
    [[noreturn]] void run(hf::pool& pool, journal& log, unsigned thread) override;
    void verify(hf::pool& pool, journal& log) override;
};

void bank_load::run(hf::pool& pool, journal& log, unsigned thread) {
    auto* branch = pool.root<bank::branch>();
    thread_journal& mine = log.of[thread];
    for (;;) {
        const std::uint64_t r = mix(log.seed, thread, mine.acked.load(std::memory_order_relaxed));
        const std::uint64_t from = r % accounts,
                            to = (from + 1 + (r >> 8) % (accounts - 1)) % accounts;
        const std::uint64_t cents = (r >> 32) % 500;
        const std::uint64_t pending[] = {from, to, cents, mine.last[from], mine.last[to]};
        std::ranges::copy(pending, mine.pending);
        mine.start();
        if (!bank::transfer(branch, from, to, static_cast<std::int64_t>(cents)))
            log.fail("transfer refused");
        mine.last[from] -= cents;
        mine.last[to] += cents;
        mine.ack();
    }
}

/// Whether the balances are right if, of the unfinished transfers, those in 'whole' are complete.
bool balances_agree(const bank::branch& branch, const journal& log, unsigned whole) {
    std::uint64_t expected[accounts];
    std::ranges::fill(expected, static_cast<std::uint64_t>(opening_cents));
    for (unsigned t = 0; t < log.threads; ++t) {
        const thread_journal& of = log.of[t];
        for (std::uint64_t a = 0; a < accounts; ++a) expected[a] += of.last[a];
        if (!of.unfinished() || (whole >> t & 1) == 0) continue;
        expected[of.pending[0]] -= of.pending[2];
        expected[of.pending[1]] += of.pending[2];
    }
    for (std::uint64_t a = 0; a < accounts; ++a)
        if (static_cast<std::uint64_t>(branch.accounts[a].cents) != expected[a]) return false;
    return true;
}

void bank_load::verify(hf::pool& pool, journal& log) {
    auto* branch = pool.root<bank::branch>();
    block_census census(pool);
    if (!census.reach(branch, sizeof *branch)) log.fail("the root is in no block of its own");
    if (branch->accounts == nullptr) { // killed before the bank was opened
        if (log.acknowledged() != 0) log.fail("lost: the whole bank");
        census.report_leaks(pool, log);
        return;
    }
    if (!census.reach(branch->accounts, accounts * sizeof(bank::account)))
        log.fail("the accounts are in no block of their own");
    census.report_leaks(pool, log);
    if (branch->count != accounts) log.fail("the number of accounts changed");
    if (bank::total(branch) != static_cast<std::int64_t>(accounts) * opening_cents)
        log.fail("total: expected %lld cents, found %lld",
                 static_cast<long long>(accounts) * opening_cents,
                 static_cast<long long>(bank::total(branch)));
    unsigned unfinished = 0;
    for (unsigned t = 0; t < log.threads; ++t) {
        thread_journal& of = log.of[t];
        if (!of.unfinished()) continue;
        unfinished |= 1u << t;
        of.last[of.pending[0]] = of.pending[3]; // as before the transfer
        of.last[of.pending[1]] = of.pending[4];
    }
    for (unsigned whole = 0; whole <= unfinished; ++whole) {
        if ((whole & ~unfinished) != 0 || !balances_agree(*branch, log, whole)) continue;
        for (unsigned t = 0; t < log.threads; ++t) {
            thread_journal& of = log.of[t];
            if ((whole >> t & 1) != 0) {
                of.last[of.pending[0]] -= of.pending[2];
                of.last[of.pending[1]] += of.pending[2];
            }
            of.settle();
        }
        return;
    }
    ++log.lost;
    log.fail("lost: no choice of the unfinished transfers explains the balances");
}

} // namespace

workload& bank_workload() {
    static bank_load only;
    return only;
}

} // namespace kill_test
