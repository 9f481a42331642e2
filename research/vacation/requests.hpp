// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the agency's clients do in one transaction, written once for every engine: a function of the
// maps and the order alone. Transaction is class transaction, or has its functions.
#pragma once

#include "../peer/random.hpp"
#include "tables.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace hf::apps::vacation {

inline constexpr std::uint32_t lot = 100; // how many of an offer come and go at a time
inline constexpr std::uint32_t rows_at_a_time = 128;
/// Not a client: made with the last of the rows, so tables without it are not full yet.
inline constexpr identifier opened = 0;

inline std::uint32_t any_price(random_words& random) noexcept { return 50 + 10 * random.below(5); }
inline kind any_kind(random_words& random) noexcept {
    return static_cast<kind>(random.below(all_kinds.size()));
}
inline identifier any_id(random_words& random, const agency_options& options) noexcept {
    const auto range = std::uint64_t{options.relations} * options.query_percent / 100;
    return 1 + random.below(range < 1 ? 1 : static_cast<std::uint32_t>(range));
}

/// Puts the rows from number 'first' on, rows_at_a_time of them.
template <class Transaction>
void fill(Transaction& in, identifier first, const agency_options& options) {
    identifier last = first + rows_at_a_time - 1;
    if (last > options.relations) last = options.relations;
    for (identifier id = first; id <= last; ++id) {
        random_words random(options.seed ^ id << 32);
        for (std::uint32_t what = 0; what < all_kinds.size(); ++what) {
            const std::uint32_t total = lot * (1 + random.below(5));
            const std::uint32_t price = any_price(random);
            in.put(static_cast<kind>(what), id, {0, total, total, price});
        }
        in.book(id, {});
    }
    if (last == options.relations) in.book(opened, {});
}

/// Reserves the dearest of each kind among the offers that it looks at.
template <class Transaction>
void reserve(Transaction& in, random_words& random, const agency_options& options) {
    reservation dearest[all_kinds.size()] = {};
    offer rows[all_kinds.size()] = {};
    const identifier customer = any_id(random, options);
    for (std::uint32_t left = 1 + random.below(options.queries); left > 0; --left) {
        const kind what = any_kind(random);
        const identifier id = any_id(random, options);
        const auto which = static_cast<std::size_t>(what);
        offer seen{};
        if (!in.find(what, id, seen) || seen.free == 0) continue;
        if (seen.price <= dearest[which].price) continue;
        dearest[which] = {what, static_cast<std::uint32_t>(id), seen.price};
        rows[which] = seen;
    }
    reservation chosen[all_kinds.size()] = {};
    std::size_t count = 0;
    for (const reservation& each : dearest)
        if (each.price != 0) chosen[count++] = each;
    if (count == 0 || !in.book(customer, {chosen, count})) return;
    for (std::size_t i = 0; i < count; ++i) {
        offer& row = rows[static_cast<std::size_t>(chosen[i].what)];
        ++row.used;
        --row.free;
        in.put(chosen[i].what, chosen[i].id, row);
    }
}

template <class Transaction>
void strike_off(Transaction& in, random_words& random, const agency_options& options) {
    const identifier customer = any_id(random, options);
    const bool known = in.each_reservation(customer, [&in](const reservation& each) {
        offer row{};
        if (!in.find(each.what, each.id, row)) return; // agency.hpp (3): look() would find it
        --row.used;
        ++row.free;
        in.put(each.what, each.id, row);
    });
    if (known) in.erase_customer(customer);
}

template <class Transaction>
void add_to(Transaction& in, kind what, identifier id, std::uint32_t price) {
    offer row{};
    in.find(what, id, row);
    row.free += lot;
    row.total += lot;
    row.price = price;
    in.put(what, id, row);
}

// A lot of cars or rooms; a flight as a whole.
template <class Transaction> void take_from(Transaction& in, kind what, identifier id) {
    offer row{};
    if (!in.find(what, id, row)) return;
    if (what == kind::flight ? row.used != 0 : row.free < lot) return;
    const std::uint32_t less = what == kind::flight ? row.total : lot;
    row.free -= less;
    row.total -= less;
    if (row.total == 0) in.erase(what, id);
    else in.put(what, id, row);
}

template <class Transaction>
void change_offers(Transaction& in, random_words& random, const agency_options& options) {
    for (std::uint32_t left = 1 + random.below(options.queries); left > 0; --left) {
        const kind what = any_kind(random);
        const identifier id = any_id(random, options);
        const bool more = random.below(2) == 0;
        const std::uint32_t price = any_price(random);
        if (more) add_to(in, what, id, price);
        else take_from(in, what, id);
    }
}

/// Carries out an order. Of the requests user_percent make a reservation; of the others one half
/// strikes a customer off, the other half changes the offers.
template <class Transaction> void carry_out(Transaction& in, const order& given) {
    const agency_options& options = given.options;
    if (given.what == order::work::fill) return fill(in, given.number, options);
    random_words random(options.seed ^ given.number * 0x9e3779b97f4a7c15ULL);
    const std::uint32_t choice = random.below(100);
    const bool strikes = random.below(2) == 0;
    if (choice < options.user_percent) reserve(in, random, options);
    else if (strikes) strike_off(in, random, options);
    else change_offers(in, random, options);
}

} // namespace hf::apps::vacation
