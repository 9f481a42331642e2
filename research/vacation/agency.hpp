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

#include "tables.hpp"

#include <string>

namespace hf::apps::vacation {

class agency {
public:
    agency(tables& over, const agency_options& options) : tables_(over), options_(options) {}

    /// Fills the maps, unless that has been done. Errors: pool_full.
    status open_for_business();
    /// Carries out request t. Errors: pool_full; the books balance.
    status request(std::uint64_t t);

    struct report {
        std::uint64_t rows = 0, customers = 0, reservations = 0;
        std::uint64_t digest = 0; // of all that the maps hold, whatever its order
        std::string wrong;        // what breaks (1) or (2); empty when nothing does
    };
    report look() const;

private:
    tables& tables_;
    agency_options options_;
};

} // namespace hf::apps::vacation
