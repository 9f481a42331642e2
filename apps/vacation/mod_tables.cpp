// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency on four mod::maps that are members of one family. A transaction's changes wait in
// volatile memory, where it sees them; at its end each map that has any gets one new version, all
// of its changes in one batch, and one commit of siblings swings them together: one ordering point.
// Source: MOD §5.2, CommitSiblings.
//
// A customer's value is the bill and then the list, as bytes: booking makes another value.
#include "tables.hpp"

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/store.hpp>
#include <holdfast/pool.hpp>

#include <cstring>
#include <mutex>
#include <string_view>
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

/// A map, and what a transaction has changed of it so far.
template <class Map> class changing_map {
public:
    using value = std::conditional_t<std::same_as<Map, offers>, offer, std::string>;
    struct change {
        identifier id;
        bool erased;
        value now;
    };

    explicit changing_map(const Map& of) : map_(of) {}

    const Map& committed() const noexcept { return map_; }
    /// The change of this row, or null. There are few.
    change* changed(identifier id) noexcept {
        for (std::size_t i = 0; i < used_; ++i)
            if (changes_[i].id == id) return &changes_[i];
        return nullptr;
    }
    /// The same, made if there is none; what it holds then is to be set.
    change& to_change(identifier id) {
        if (change* const there = changed(id)) return *there;
        if (used_ == changes_.size()) changes_.emplace_back();
        changes_[used_].id = id;
        return changes_[used_++];
    }
    /// Adds the map's new version, if it has one.
    void add_to(std::vector<mod::new_version>& updates) {
        if (used_ == 0) return;
        next_ = map_.snapshot().update([this](auto& batch) {
            for (std::size_t i = 0; i < used_; ++i) {
                const change& each = changes_[i];
                if (each.erased) batch.erase(each.id);
                else batch.insert_or_assign(each.id, each.now);
            }
        });
        updates.push_back({map_.of(), &next_});
    }
    void forget() noexcept {
        used_ = 0;
        next_ = {};
    }

private:
    Map map_;
    std::vector<change> changes_; // the first used_; strings of the others keep their room
    std::size_t used_ = 0;
    typename Map::version next_;
};

class mod_tables final : public tables, private transaction {
public:
    mod_tables(hf::pool opened, const std::array<offers, all_kinds.size()>& rows,
               const customers& clients)
        : pool_(std::move(opened)),
          offers_{changing_map<offers>(rows[0]), changing_map<offers>(rows[1]),
                  changing_map<offers>(rows[2])},
          customers_(clients) {}

    status run(const std::function<void(transaction&)>& client) override {
        const std::lock_guard held(lock_);
        client(*this);
        updates_.clear();
        for (auto& each : offers_) each.add_to(updates_);
        customers_.add_to(updates_);
        status done;
        if (!updates_.empty()) done = mod::store::of(pool_).commit(updates_);
        for (auto& each : offers_) each.forget();
        customers_.forget();
        return done;
    }
    void for_each(kind what,
                  const std::function<void(identifier, const offer&)>& visit) const override {
        for (const auto& [id, row] : offers_[static_cast<std::size_t>(what)].committed())
            visit(id, row);
    }
    void for_each_customer(
        const std::function<void(identifier, std::uint64_t, std::span<const reservation>)>& visit)
        const override {
        std::vector<reservation> list;
        for (const auto& [id, value] : customers_.committed()) {
            copy_list(value, list);
            visit(id, bill_of(value), list);
        }
    }

private:
    changing_map<offers>& map(kind what) { return offers_[static_cast<std::size_t>(what)]; }
    bool find(kind what, identifier id, offer& found) override {
        if (const auto* const changed = map(what).changed(id)) {
            found = changed->now;
            return !changed->erased;
        }
        const offer* const row = map(what).committed().get(id);
        if (row != nullptr) found = *row;
        return row != nullptr;
    }
    void put(kind what, identifier id, const offer& row) override {
        map(what).to_change(id) = {id, false, row};
    }
    void erase(kind what, identifier id) override { map(what).to_change(id) = {id, true, {}}; }

    // The customer's value; false when there is none.
    bool value_of(identifier id, std::string_view& value) {
        if (const auto* const changed = customers_.changed(id)) {
            value = changed->now;
            return !changed->erased;
        }
        const auto found = customers_.committed().get(id);
        if (found) value = *found;
        return static_cast<bool>(found);
    }
    bool find_customer(identifier id, std::vector<reservation>& found) override {
        std::string_view value;
        if (!value_of(id, value)) return false;
        copy_list(value, found);
        return true;
    }
    void book(identifier id, std::span<const reservation> more) override {
        std::uint64_t bill = 0;
        std::string_view old;
        const bool there = value_of(id, old);
        if (there && more.empty()) return;
        auto& change = customers_.to_change(id);
        if (!there || old.data() != change.now.data()) change.now.assign(old);
        if (!there) change.now.assign(sizeof bill, '\0');
        change.erased = false;
        bill = bill_of(change.now);
        for (const reservation& each : more) bill += each.price;
        std::memcpy(change.now.data(), &bill, sizeof bill);
        change.now.append(reinterpret_cast<const char*>(more.data()), more.size_bytes());
    }
    void erase_customer(identifier id) override { customers_.to_change(id).erased = true; }

    hf::pool pool_;
    std::mutex lock_; // one transaction at a time: what it has read is still so when it commits
    std::array<changing_map<offers>, all_kinds.size()> offers_;
    changing_map<customers> customers_;
    std::vector<mod::new_version> updates_;
};

open_options how_to_open(const table_options& options) {
    open_options how;
    how.layout = "holdfast-vacation/1";
    how.layout_hash = sizeof(offer) << 32 | sizeof(reservation);
    how.create_bytes = 64_MiB + options.rows * 4096ULL;
    how.mode = options.power ? mode::pmem : mode::process;
    how.engines = {mod::engine()};
    how.prefault = options.prefault;
    how.seal = false;
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
