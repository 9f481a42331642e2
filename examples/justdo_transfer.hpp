// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The account transfer of the JUSTDO paper (Figs. 4 and 5), by the library interface: no compiler
// plugin.
//
// (1) The balances add up to what they were, before and after any transfer.
#pragma once

#include <holdfast/author/justdo/routine.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>

namespace justdo_bank {

// [globals]
struct account {
    hf::mutex lock;
    std::int64_t balance;
};

struct bank { // the pool's root object
    account accounts[8];
};
// [/globals]

// [routine]
struct transfer {
    static constexpr const char* name = "justdo_bank::transfer";
    static constexpr std::uint64_t version = 1; // another one when the text below changes

    struct arguments {
        bank* in;
        std::uint64_t from, to;
        std::int64_t amount;
    };
    struct locals {
        std::int64_t before;
    };
    struct returns {
        bool success;
        std::int64_t before; // the transfer, of the account that gave
    };

    static void run(hf::justdo::object& jd, const arguments& given, const locals& my,
                    returns& out) {
        // Runs again when the section is resumed: computed of what is in the pool.
        account& from = given.in->accounts[given.from];
        account& to = given.in->accounts[given.to];
        account& first = given.from < given.to ? from : to;
        account& second = given.from < given.to ? to : from;

        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(first.lock));
        HF_JUSTDO_STEP(lock(second.lock));
        HF_JUSTDO_STEP(set(my.before, from.balance));
        HF_JUSTDO_STEP(store(&from.balance, my.before - given.amount));
        hf::crash_point("between-debit-and-credit");
        HF_JUSTDO_STEP(store(&to.balance, to.balance + given.amount));
        out.before = my.before;
        HF_JUSTDO_STEP(unlock(second.lock));
        HF_JUSTDO_STEP(unlock(first.lock));
        HF_JUSTDO_END;
        out.success = true; // outside of the section: nobody resumes this
    }
};
// [/routine]

/// The balances of all accounts, while nobody transfers.
inline std::int64_t total(const bank* of) noexcept {
    std::int64_t sum = 0;
    for (const account& a : of->accounts) sum += a.balance;
    return sum;
}

} // namespace justdo_bank
