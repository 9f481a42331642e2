// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accounts in a pool, and money that is never lost between them. Plain code: nothing below knows
// which engine the build chose. One program is built for one engine.
//
// (1) The cents of all accounts add up to what create() put there, before and after any transfer.
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>
#include <cstring>
#include <mutex>

namespace bank {

struct account {
    hf::mutex lock;
    std::int64_t cents;
    std::int64_t reserved; // zero
};

/// The pool's root. Zero-filled: a bank that is not open yet.
struct branch {
    account* accounts;
    std::uint64_t count;
};

inline constexpr const char* layout = "bank/1";

namespace detail {

HF_TXFUNC inline bool open_accounts(branch* b, std::uint64_t count, std::int64_t cents) noexcept {
    account* accounts = static_cast<account*>(hf_alloc(count * sizeof(account)));
    if (accounts == nullptr) return false;
    std::memset(static_cast<void*>(accounts), 0, count * sizeof(account)); // frees the locks, too
    for (std::uint64_t i = 0; i < count; ++i) accounts[i].cents = cents;
    b->accounts = accounts;
    b->count = count;
    return true;
}

HF_TXFUNC inline void move(account* from, account* to, std::int64_t cents) noexcept {
    from->cents -= cents;
    hf::crash_point("between-debit-and-credit");
    to->cents += cents;
}

} // namespace detail

/// Opens 'count' accounts of 'cents' each.
///
/// Errors: false when the pool is full; nothing changed.
inline bool create(branch* b, std::uint64_t count, std::int64_t cents) noexcept {
    return detail::open_accounts(b, count, cents);
}

/// Moves 'cents' from one account to another; accounts may go below zero.
///
/// Crash:   both accounts changed, or neither.
/// Errors:  false when an account does not exist, or both are the same.
/// Threads: any; locks the two accounts in order and holds both until the transfer is durable.
inline bool transfer(branch* b, std::uint64_t from, std::uint64_t to, std::int64_t cents) noexcept {
    if (from >= b->count || to >= b->count || from == to) return false;
    account& first = b->accounts[from < to ? from : to];
    account& second = b->accounts[from < to ? to : from];
    const std::unique_lock held_first{first.lock};
    const std::unique_lock held_second{second.lock};
    detail::move(&b->accounts[from], &b->accounts[to], cents);
    return true;
}

/// The cents of all accounts, while nobody transfers.
inline std::int64_t total(const branch* b) noexcept {
    std::int64_t cents = 0;
    for (std::uint64_t i = 0; i < b->count; ++i) cents += b->accounts[i].cents;
    return cents;
}

} // namespace bank
