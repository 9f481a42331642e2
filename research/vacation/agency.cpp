// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agency.hpp"

#include "../../apps/hash.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace hf::apps::vacation {
namespace {

constexpr std::uint32_t lot = 100; // how many of an offer come and go at a time
constexpr std::uint32_t rows_at_a_time = 128;
/// Not a client: made with the last of the rows, so tables without it are not full yet.
constexpr identifier opened = 0;

std::uint32_t any_price(random_words& random) { return 50 + 10 * random.below(5); }
kind any_kind(random_words& random) { return all_kinds[random.below(all_kinds.size())]; }

template <class T> std::uint64_t digest_of(identifier id, std::uint64_t what, const T& value) {
    return apps::hash_of(&value, sizeof value, id * 8 + what);
}

} // namespace

identifier agency::any_id(random_words& random) const {
    const auto range = std::uint64_t{options_.relations} * options_.query_percent / 100;
    return 1 + random.below(std::max(1U, static_cast<std::uint32_t>(range)));
}

void agency::put_new(transaction& in, kind what, identifier id, random_words& random) {
    const std::uint32_t total = lot * (1 + random.below(5));
    in.put(what, id, {0, total, total, any_price(random)});
}

status agency::open_for_business() {
    bool done = false;
    const status looked =
        tables_.run([&](transaction& in) { done = in.find_customer(opened, list_); });
    if (!looked.ok() || done) return looked;
    for (identifier first = 1; first <= options_.relations; first += rows_at_a_time) {
        const identifier last =
            std::min<identifier>(first + rows_at_a_time - 1, options_.relations);
        const status filled = tables_.run([&](transaction& in) {
            for (identifier id = first; id <= last; ++id) {
                random_words random(options_.seed ^ id << 32);
                for (const kind what : all_kinds) put_new(in, what, id, random);
                in.book(id, {});
            }
            if (last == options_.relations) in.book(opened, {});
        });
        if (!filled.ok()) return filled;
    }
    return {};
}

status agency::request(std::uint64_t t) {
    random_words random(options_.seed ^ t * 0x9e3779b97f4a7c15ULL);
    const std::uint32_t choice = random.below(100);
    const bool strikes = random.below(2) == 0;
    return tables_.run([&](transaction& in) { // by value: perhaps more than once
        if (choice < options_.user_percent) reserve(in, random);
        else if (strikes) strike_off(in, random);
        else change_offers(in, random);
    });
}

// Reserves the dearest of each kind among the offers that it looks at.
void agency::reserve(transaction& in, random_words random) {
    std::array<reservation, all_kinds.size()> dearest{};
    std::array<offer, all_kinds.size()> rows{};
    const identifier customer = any_id(random);
    for (std::uint32_t left = 1 + random.below(options_.queries); left > 0; --left) {
        const kind what = any_kind(random);
        const identifier id = any_id(random);
        const auto which = static_cast<std::size_t>(what);
        offer seen{};
        if (!in.find(what, id, seen) || seen.free == 0) continue;
        if (seen.price <= dearest[which].price) continue;
        dearest[which] = {what, static_cast<std::uint32_t>(id), seen.price};
        rows[which] = seen;
    }
    std::array<reservation, all_kinds.size()> chosen{};
    std::size_t count = 0;
    for (std::size_t which = 0; which < dearest.size(); ++which) {
        if (dearest[which].price == 0) continue;
        offer& row = rows[which];
        ++row.used;
        --row.free;
        in.put(dearest[which].what, dearest[which].id, row);
        chosen[count++] = dearest[which];
    }
    if (count != 0) in.book(customer, {chosen.data(), count});
}

void agency::strike_off(transaction& in, random_words random) {
    const identifier customer = any_id(random);
    if (!in.find_customer(customer, list_)) return;
    for (const reservation& each : list_) {
        offer row{};
        if (!in.find(each.what, each.id, row)) continue; // (3): never; look() would find it
        --row.used;
        ++row.free;
        in.put(each.what, each.id, row);
    }
    in.erase_customer(customer);
}

void agency::change_offers(transaction& in, random_words random) {
    for (std::uint32_t left = 1 + random.below(options_.queries); left > 0; --left) {
        const kind what = any_kind(random);
        const identifier id = any_id(random);
        const bool more = random.below(2) == 0;
        const std::uint32_t price = any_price(random);
        if (more) add_to(in, what, id, price);
        else take_from(in, what, id);
    }
}

void agency::add_to(transaction& in, kind what, identifier id, std::uint32_t price) {
    offer row{};
    in.find(what, id, row);
    row.free += lot;
    row.total += lot;
    row.price = price;
    in.put(what, id, row);
}

// A lot of cars or rooms; a flight as a whole.
void agency::take_from(transaction& in, kind what, identifier id) {
    offer row{};
    if (!in.find(what, id, row)) return;
    if (what == kind::flight ? row.used != 0 : row.free < lot) return;
    const std::uint32_t less = what == kind::flight ? row.total : lot;
    row.free -= less;
    row.total -= less;
    if (row.total == 0) in.erase(what, id);
    else in.put(what, id, row);
}

agency::report agency::look() const {
    report seen;
    std::map<std::pair<kind, identifier>, std::uint32_t> used;
    const auto expect = [&seen](bool holds, const char* what, identifier id) {
        if (!holds && seen.wrong.empty()) seen.wrong = what + (" " + std::to_string(id));
    };
    tables_.for_each_customer(
        [&](identifier id, std::uint64_t bill, std::span<const reservation> list) {
            ++seen.customers;
            seen.reservations += list.size();
            seen.digest += digest_of(id, 3, bill);
            for (const reservation& each : list) {
                seen.digest += digest_of(id, 4, each);
                ++used[{each.what, each.id}];
                bill -= each.price;
            }
            expect(bill == 0, "bill of customer", id);
        });
    for (const kind what : all_kinds)
        tables_.for_each(what, [&](identifier id, const offer& row) {
            ++seen.rows;
            seen.digest += digest_of(id, static_cast<std::uint64_t>(what), row);
            expect(row.used + row.free == row.total, "total of row", id);
            const auto found = used.extract({what, id});
            expect(row.used == (found ? found.mapped() : 0), "reservations of row", id);
        });
    for (const auto& left : used) expect(false, "reserved row that is gone", left.first.second);
    return seen;
}

} // namespace hf::apps::vacation
