// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A travel agency's data: four recoverable maps, and failure-atomic transactions over them. An
// engine keeps them; requests.hpp has the clients' work. Source: MOD §6.1, Clobber §5.7, vacation.
#pragma once

#include <holdfast/result.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hf::apps::vacation {

enum class kind : std::uint32_t { car, room, flight };
inline constexpr std::array all_kinds{kind::car, kind::room, kind::flight};

using identifier = std::uint64_t;

/// An offer that can be reserved: a row of the map of its kind. used + free == total.
struct offer {
    std::uint32_t used, free, total, price;

    bool operator==(const offer&) const = default;
};
static_assert(sizeof(offer) == 16);

struct reservation {
    kind what;
    std::uint32_t id;
    std::uint32_t price; // when it was made
};
static_assert(sizeof(reservation) == 12);

struct agency_options {
    std::uint32_t relations = 1 << 16; // rows of each map in the beginning
    std::uint32_t queries = 4;         // offers that a request looks at, at most
    std::uint32_t query_percent = 80;  // share of the rows that requests ask for. MOD §6.1
    std::uint32_t user_percent = 55;   // share of requests that reserve. MOD §6.1
    std::uint64_t seed = 1;
};

/// One transaction: bytes alone, so that a section's record may hold it.
struct order {
    enum class work : std::uint64_t { request, fill } what; // see requests.hpp
    std::uint64_t number;
    agency_options options;
};

/// The maps as one transaction sees them: with its own changes. A step that finds no room fails the
/// whole transaction.
class transaction {
public:
    virtual bool find(kind what, identifier id, offer& found) = 0;
    virtual void put(kind what, identifier id, const offer& row) = 0;
    virtual void erase(kind what, identifier id) = 0;

    /// The customer's reservations in some order; false if the customer is unknown.
    virtual bool find_customer(identifier id, std::vector<reservation>& found) = 0;
    /// Calls f for each of them, which changes no list.
    template <class F> bool each_reservation(identifier id, F f) {
        if (!find_customer(id, list_)) return false;
        for (const reservation& each : list_) f(each);
        return true;
    }
    /// Adds them to the customer's list and their prices to the bill; makes a new customer. False:
    /// there is no room, and nothing has changed.
    virtual bool book(identifier customer, std::span<const reservation> more) = 0;
    virtual void erase_customer(identifier id) = 0;

protected:
    ~transaction() = default;

private:
    std::vector<reservation> list_;
};

class tables {
public:
    virtual ~tables() = default;

    /// Carries out the order failure-atomically: all of its changes or none. Errors: pool_full.
    virtual status carry_out(const order& given) = 0;
    virtual bool has_customer(identifier id) = 0;

    virtual void for_each(kind what,
                          const std::function<void(identifier, const offer&)>& visit) const = 0;
    virtual void for_each_customer(
        const std::function<void(identifier, std::uint64_t bill, std::span<const reservation>)>&
            visit) const = 0;
};

/// Tables of an engine that is called for each step: what has no sections.
class stepwise_tables : public tables {
public:
    /// Carries out 'client' failure-atomically: all of its changes or none. May call it several
    /// times. An engine may leave 'client' by longjmp, so it must hold nothing that a destructor
    /// releases.
    virtual status run(const std::function<void(transaction&)>& client) = 0;

    status carry_out(const order& given) final;
    bool has_customer(identifier id) final;
};

struct table_options {
    /// mod, pmdk, volatile, or one of HF_APPLICATION_BUILDS (peer/builds.hpp).
    std::string engine = "mod";
    std::string path;             // the pool's file; made when missing
    bool power = false;           // survive power failures (mode pmem), not just a killed process
    bool prefault = false;        // touch the file's pages first
    std::uint32_t rows = 1 << 16; // to expect in each map
    std::string tree = "rb";      // of the builds: rb, avl
};

/// Errors: those of opening a pool; bad_argument for an unknown engine.
result<std::unique_ptr<tables>> open_tables(const table_options& options);

// One file each.
result<std::unique_ptr<tables>> open_mod(const table_options& options);
result<std::unique_ptr<tables>> open_pmdk(const table_options& options);
result<std::unique_ptr<stepwise_tables>> open_volatile(const table_options& options);

} // namespace hf::apps::vacation
