// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency with nothing durable: std::unordered_map. It shows the cost without durability, and is
// the model that the durable ones are compared with.
#include "tables.hpp"

#include <unordered_map>

namespace hf::apps::vacation {
namespace {

struct customer {
    std::uint64_t bill = 0;
    std::vector<reservation> list;
};

class volatile_tables final : public stepwise_tables, private transaction {
public:
    status run(const std::function<void(transaction&)>& client) override {
        client(*this);
        return {};
    }
    void for_each(kind what,
                  const std::function<void(identifier, const offer&)>& visit) const override {
        for (const auto& [id, row] : offers_[static_cast<std::size_t>(what)]) visit(id, row);
    }
    void for_each_customer(
        const std::function<void(identifier, std::uint64_t, std::span<const reservation>)>& visit)
        const override {
        for (const auto& [id, one] : customers_) visit(id, one.bill, one.list);
    }

private:
    std::unordered_map<identifier, offer>& map(kind what) {
        return offers_[static_cast<std::size_t>(what)];
    }
    bool find(kind what, identifier id, offer& found) override {
        const auto at = map(what).find(id);
        if (at == map(what).end()) return false;
        found = at->second;
        return true;
    }
    void put(kind what, identifier id, const offer& row) override {
        map(what).insert_or_assign(id, row);
    }
    void erase(kind what, identifier id) override { map(what).erase(id); }
    bool find_customer(identifier id, std::vector<reservation>& found) override {
        const auto at = customers_.find(id);
        if (at == customers_.end()) return false;
        found = at->second.list;
        return true;
    }
    bool book(identifier id, std::span<const reservation> more) override {
        customer& one = customers_[id];
        for (const reservation& each : more) one.bill += each.price;
        one.list.insert(one.list.end(), more.begin(), more.end());
        return true;
    }
    void erase_customer(identifier id) override { customers_.erase(id); }

    std::array<std::unordered_map<identifier, offer>, all_kinds.size()> offers_;
    std::unordered_map<identifier, customer> customers_;
};

} // namespace

result<std::unique_ptr<stepwise_tables>> open_volatile(const table_options&) {
    return std::unique_ptr<stepwise_tables>(std::make_unique<volatile_tables>());
}

} // namespace hf::apps::vacation
