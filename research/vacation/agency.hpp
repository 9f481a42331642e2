// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// STAMP's vacation: clients of a travel agency reserve cars, rooms and flights, customers are
// struck off, and what is on offer changes. Written from its description (Cao Minh et al.,
// IISWC'08); each client's request is one transaction over four maps.
//
// (1) used + free == total in each row; used counts the reservations of it in all customers' lists.
// (2) A customer's bill is the sum of the prices in its list.
// (3) A row that somebody has reserved is not removed.
// (4) Request t is a function of the tables and (seed, t) only: the number of requests that were
//     carried out determines the tables.
#pragma once

#include "../peer/random.hpp"
#include "tables.hpp"

#include <string>

namespace hf::apps::vacation {

struct agency_options {
    std::uint32_t relations = 1 << 16; // rows of each map in the beginning
    std::uint32_t queries = 4;         // offers that a request looks at, at most
    std::uint32_t query_percent = 80;  // share of the rows that requests ask for. MOD §6.1
    std::uint32_t user_percent = 55;   // share of requests that reserve. MOD §6.1
    std::uint64_t seed = 1;
};

class agency {
public:
    agency(tables& over, const agency_options& options) : tables_(over), options_(options) {}

    /// Fills the maps, unless that has been done. Errors: pool_full.
    status open_for_business();
    /// Carries out request t: user_percent make a reservation; of the others one half strikes a
    /// customer off, the other half changes the offers. Errors: pool_full; nothing is changed.
    status request(std::uint64_t t);

    struct report {
        std::uint64_t rows = 0, customers = 0, reservations = 0;
        std::uint64_t digest = 0; // of all that the maps hold, whatever its order
        std::string wrong;        // what breaks (1) or (2); empty when nothing does
    };
    report look() const;

private:
    static void put_new(transaction& in, kind what, identifier id, random_words& random);
    void reserve(transaction& in, random_words random);
    void strike_off(transaction& in, random_words random);
    void change_offers(transaction& in, random_words random);
    static void add_to(transaction& in, kind what, identifier id, std::uint32_t price);
    static void take_from(transaction& in, kind what, identifier id);
    identifier any_id(random_words& random) const;

    tables& tables_;
    agency_options options_;
    std::vector<reservation> list_; // room that outlives a transaction
};

} // namespace hf::apps::vacation
