// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency on four mod::maps that are members of one family. A transaction changes a batch of
// each map, and one commit swings those that were changed together: one ordering point. Source: MOD
// §5.2, CommitSiblings.
//
// A customer's value is the bill and then the list, as bytes: booking makes another value.
#include "tables.hpp"

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/pool.hpp>

#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

namespace hf::apps::vacation {
namespace {

using offers = mod::map<identifier, offer>;
using customers = mod::map<identifier, std::string>;

std::uint64_t bill_of(std::string_view value) {
    std::uint64_t bill = 0;
    std::memcpy(&bill, value.data(), sizeof bill);
    return bill;
}
void copy_list(std::string_view value, std::vector<reservation>& to) {
    value.remove_prefix(sizeof(std::uint64_t));
    to.resize(value.size() / sizeof(reservation));
    std::memcpy(to.data(), value.data(), value.size());
}

class mod_transaction final : public transaction {
public:
    mod_transaction(offers::batch& cars, offers::batch& rooms, offers::batch& flights,
                    customers::batch& clients, std::string& room)
        : offers_{&cars, &rooms, &flights}, customers_(clients), value_(room) {}

    bool find(kind what, identifier id, offer& found) override {
        const offer* const row = map(what).get(id);
        if (row != nullptr) found = *row;
        return row != nullptr;
    }
    void put(kind what, identifier id, const offer& row) override {
        map(what).insert_or_assign(id, row);
    }
    void erase(kind what, identifier id) override { map(what).erase(id); }

    bool find_customer(identifier id, std::vector<reservation>& found) override {
        const auto value = customers_.get(id);
        if (value) copy_list(*value, found);
        return value.has_value();
    }
    bool book(identifier id, std::span<const reservation> more) override {
        std::uint64_t bill = 0;
        value_.assign(sizeof bill, '\0');
        if (const auto old = customers_.get(id)) {
            if (more.empty()) return true;
            value_.assign(*old);
            bill = bill_of(*old);
        }
        for (const reservation& each : more) bill += each.price;
        std::memcpy(value_.data(), &bill, sizeof bill);
        value_.append(reinterpret_cast<const char*>(more.data()), more.size_bytes());
        customers_.insert_or_assign(id, value_);
        return true;
    }
    void erase_customer(identifier id) override { customers_.erase(id); }

private:
    offers::batch& map(kind what) { return *offers_[static_cast<std::size_t>(what)]; }

    std::array<offers::batch*, all_kinds.size()> offers_;
    customers::batch& customers_;
    std::string& value_; // room that outlives the transaction
};

class mod_tables final : public stepwise_tables {
public:
    mod_tables(hf::pool opened, const std::array<offers, all_kinds.size()>& rows,
               const customers& clients)
        : pool_(std::move(opened)), offers_(rows), customers_(clients) {}

    status run(const std::function<void(transaction&)>& client) override {
        auto& [cars, rooms, flights] = offers_;
        return mod::update(std::tie(cars, rooms, flights, customers_),
                           [&](auto& car, auto& room, auto& flight, auto& customer) {
                               mod_transaction now(car, room, flight, customer, value_);
                               client(now);
                           });
    }
    void for_each(kind what,
                  const std::function<void(identifier, const offer&)>& visit) const override {
        for (const auto& [id, row] : offers_[static_cast<std::size_t>(what)]) visit(id, row);
    }
    void for_each_customer(
        const std::function<void(identifier, std::uint64_t, std::span<const reservation>)>& visit)
        const override {
        std::vector<reservation> list;
        for (const auto& [id, value] : customers_) {
            copy_list(value, list);
            visit(id, bill_of(value), list);
        }
    }

private:
    hf::pool pool_;
    std::array<offers, all_kinds.size()> offers_;
    customers customers_;
    std::string value_;
};

open_options how_to_open(const table_options& options) {
    open_options how;
    how.layout = "holdfast-vacation/1";
    how.layout_hash = sizeof(offer) << 32 | sizeof(reservation);
    how.create_bytes = 64_MiB + options.rows * 4096ULL;
    how.mode = options.power ? mode::pmem : mode::process;
    how.engines = {mod::engine()};
    how.expert.prefault = options.prefault;
    how.expert.seal = false;
    return how;
}

template <class Map> result<Map> open_member(const hf::pool& in, std::string_view name) {
    return Map::open(
        in,
        {.name = name, .family = "vacation", .members = {"cars", "rooms", "flights", "customers"}});
}

} // namespace

result<std::unique_ptr<tables>> open_mod(const table_options& options) {
    auto opened = pool::open(options.path, how_to_open(options));
    if (!opened) return opened.error();
    const auto cars = open_member<offers>(*opened, "cars");
    if (!cars) return cars.error();
    const auto rooms = open_member<offers>(*opened, "rooms");
    if (!rooms) return rooms.error();
    const auto flights = open_member<offers>(*opened, "flights");
    if (!flights) return flights.error();
    const auto clients = open_member<customers>(*opened, "customers");
    if (!clients) return clients.error();
    return std::unique_ptr<tables>(std::make_unique<mod_tables>(
        std::move(*opened), std::array{*cars, *rooms, *flights}, *clients));
}

} // namespace hf::apps::vacation
