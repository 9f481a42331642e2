// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// STAMP's hashtable: chains of nodes that name pairs; three times as many slots when there are
// three pairs per slot on average. Recovery counts, and goes back to the old table after a resize.
//
// (1) From the commit of a resize to that of the next insertion, old_slots names the earlier table,
//     which is durable and unchanged. new_pair names the one pair that it lacks.
// (2) The new slots, headers and nodes are lazy. The next insertion first stores to old_slots, to
//     which the resize stored: all lazy lines are durable before that store is.
#include <slpmt/workloads/structures.hpp>

namespace hf::slpmt {
namespace {

class hashtable final : public workload {
public:
    hashtable(std::uint64_t value_words, const layout& where, bool keeps_old_table)
        : workload(value_words, all_sites()), table_(root_of<table>(where)),
          keeps_old_table_(keeps_old_table) {}

    std::string_view name() const override {
        return keeps_old_table_ ? "hashtable" : hashtable_by_the_text;
    }
    void create(program& in) override;
    void insert(program& in, std::uint64_t key) override;
    void recover(image& of) const override;
    found check(const image& of) const override;

private:
    struct pair {
        std::uint64_t key;
        link<std::uint64_t> value;
    };
    struct node {
        link<pair> data;
        link<node> next;
    };
    struct chain {
        link<node> first;
        std::uint64_t size;
    };
    struct table {
        link<link<chain>> slots;
        std::uint64_t slot_count;
        std::uint64_t size;
        link<link<chain>> old_slots; // null: none
        std::uint64_t old_count;
        link<pair> new_pair;
    };
    static constexpr std::uint64_t slots_at_first = 16, pairs_per_slot = 3, growth = 3;

    enum : unsigned {
        pair_key,
        pair_value,
        value_bytes,
        node_data,
        node_next,
        new_slot,
        new_header,
        moved_node,
        table_size,
        chain_size, // ten by hand
        chain_first,
        table_slots,
        table_count,
        old_table,
        old_count,
        new_pair
    };
    static std::vector<site> all_sites() {
        return {{"pair key", log_free},
                {"value pointer", log_free},
                {"value bytes", log_free},
                {"chain node data", log_free},
                {"chain node next", log_free},
                {"new slot", lazy_log_free},
                {"new header", lazy_log_free},
                {"moved node", lazy_log_free},
                {"table size", lazy_logged},
                {"chain size", lazy_logged},
                {"chain first", eager_logged},
                {"table slots", eager_logged},
                {"table slot count", eager_logged},
                {"old table", eager_logged},
                {"old slot count", eager_logged},
                {"new pair", eager_logged}};
    }

    ref<link<chain>> make_slots(program& in, std::uint64_t count);
    void resize(program& in, ref<pair> added);
    ref<chain> chain_of(program& in, std::uint64_t key) const;
    void go_back(image& of) const;
    static std::uint64_t slot_of(std::uint64_t key, std::uint64_t count) {
        return (key * 0x9e3779b97f4a7c15 >> 20) % count;
    }

    const ref<table> table_;
    const bool keeps_old_table_;
};

ref<link<hashtable::chain>> hashtable::make_slots(program& in, std::uint64_t count) {
    const auto slots = in.make<link<chain>>(count);
    const auto chains = in.make<chain>(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const ref<chain> one{chains.at + i * sizeof(chain)};
        in.put(slots, i, one, sites_[new_slot]);
        in.set(one, &chain::first, ref<node>{}, sites_[new_header]);
        in.set(one, &chain::size, std::uint64_t{0}, sites_[new_header]);
    }
    return slots;
}

void hashtable::create(program& in) {
    in.set(table_, &table::slots, make_slots(in, slots_at_first), sites_[table_slots]);
    in.set(table_, &table::slot_count, slots_at_first, sites_[table_count]);
    in.set(table_, &table::size, std::uint64_t{0}, sites_[table_size]);
    in.set(table_, &table::old_slots, ref<link<chain>>{}, sites_[old_table]);
}

ref<hashtable::chain> hashtable::chain_of(program& in, std::uint64_t key) const {
    in.compute(20); // the hash
    return in.at(in.get(table_, &table::slots), slot_of(key, in.get(table_, &table::slot_count)));
}

void hashtable::insert(program& in, std::uint64_t key) {
    if (keeps_old_table_ && in.get(table_, &table::old_slots))
        in.set(table_, &table::old_slots, ref<link<chain>>{}, sites_[old_table]); // upholds (2)
    const auto added = in.make<pair>();
    in.set(added, &pair::key, key, sites_[pair_key]);
    in.set(added, &pair::value, make_value(in, key, sites_[value_bytes]), sites_[pair_value]);
    const std::uint64_t size = in.get(table_, &table::size) + 1;
    if (size > pairs_per_slot * in.get(table_, &table::slot_count)) resize(in, added);
    const auto to = chain_of(in, key);
    for (auto at = in.get(to, &chain::first); at; at = in.get(at, &node::next))
        if (in.get(in.get(at, &node::data), &pair::key) == key) return;
    const auto one = in.make<node>();
    in.set(one, &node::data, added, sites_[node_data]);
    in.set(one, &node::next, in.get(to, &chain::first), sites_[node_next]);
    in.set(to, &chain::first, one, sites_[chain_first]);
    in.set(to, &chain::size, in.get(to, &chain::size) + 1, sites_[chain_size]);
    in.set(table_, &table::size, size, sites_[table_size]);
}

/// Nodes are made anew: the old table stays as it is, and is garbage when nothing names it.
void hashtable::resize(program& in, ref<pair> added) {
    const auto old = in.get(table_, &table::slots);
    const std::uint64_t old_slot_count = in.get(table_, &table::slot_count);
    const std::uint64_t count = old_slot_count * growth;
    const auto slots = make_slots(in, count);
    for (std::uint64_t i = 0; i < old_slot_count; ++i)
        for (auto at = in.get(in.at(old, i), &chain::first); at; at = in.get(at, &node::next)) {
            const auto data = in.get(at, &node::data);
            in.compute(20);
            const auto to = in.at(slots, slot_of(in.get(data, &pair::key), count));
            const auto moved = in.make<node>();
            in.set(moved, &node::data, data, sites_[moved_node]);
            in.set(moved, &node::next, in.get(to, &chain::first), sites_[moved_node]);
            in.set(to, &chain::first, moved, sites_[new_header]);
            in.set(to, &chain::size, in.get(to, &chain::size) + 1, sites_[new_header]);
        }
    in.set(table_, &table::slots, slots, sites_[table_slots]);
    in.set(table_, &table::slot_count, count, sites_[table_count]);
    if (!keeps_old_table_) return;
    in.set(table_, &table::old_slots, old, sites_[old_table]); // upholds (1)
    in.set(table_, &table::old_count, old_slot_count, sites_[old_count]);
    in.set(table_, &table::new_pair, added, sites_[new_pair]);
}

void hashtable::recover(image& of) const {
    if (keeps_old_table_ && of.get(table_, &table::old_slots)) go_back(of);
    std::uint64_t size = 0;
    const auto slots = of.get(table_, &table::slots);
    for (std::uint64_t i = 0; i < of.get(table_, &table::slot_count) && i < steps_max; ++i) {
        const auto in = of.at(slots, i);
        std::uint64_t length = 0;
        for (auto at = of.get(in, &chain::first); at && length < steps_max;
             at = of.get(at, &node::next))
            ++length;
        if (of.wild()) return; // the check will say so
        if (in) of.set(in, &chain::size, length);
        size += length;
    }
    of.set(table_, &table::size, size);
}

/// Names the old table again, with the new pair. The pair's node is made in unused memory; if it is
/// there already, it is not made again.
void hashtable::go_back(image& of) const {
    const auto old = of.get(table_, &table::old_slots);
    const std::uint64_t count = of.get(table_, &table::old_count);
    const auto added = of.get(table_, &table::new_pair);
    if (count == 0) return;
    const auto to = of.at(old, slot_of(of.get(added, &pair::key), count));
    std::uint64_t end = std::max(added.at + sizeof(pair), old.at + count * sizeof(link<chain>));
    end = std::max(end, of.get(added, &pair::value).at + value_words() * 8);
    bool there = false;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t steps = 0;
        for (auto at = of.get(of.at(old, i), &chain::first); at && ++steps < steps_max;
             at = of.get(at, &node::next)) {
            end = std::max({end, at.at + sizeof(node), of.get(at, &node::data).at + sizeof(pair),
                            of.get(of.get(at, &node::data), &pair::value).at + value_words() * 8});
            there |= of.get(at, &node::data) == added;
        }
    }
    if (of.wild() || end + 16 + sizeof(node) > of.bytes().size()) return;
    if (!there) {
        const ref<node> one{(end + 15) / 16 * 16};
        of.set(one, &node::data, added);
        of.set(one, &node::next, of.get(to, &chain::first));
        of.set(to, &chain::first, one);
    }
    of.set(table_, &table::slot_count, count);
    of.set(table_, &table::slots, old);
    of.set(table_, &table::old_slots, ref<link<chain>>{});
}

found hashtable::check(const image& of) const {
    found what;
    const auto slots = of.get(table_, &table::slots);
    const std::uint64_t count = of.get(table_, &table::slot_count);
    reaches(what, slots.at + count * sizeof(link<chain>));
    for (std::uint64_t i = 0; i < count && what.wrong.empty(); ++i) {
        const auto in = of.at(slots, i);
        std::uint64_t length = 0;
        reaches(what, in.at + sizeof(chain));
        for (auto at = of.get(in, &chain::first); at && what.wrong.empty();
             at = of.get(at, &node::next)) {
            const auto data = of.get(at, &node::data);
            const std::uint64_t key = of.get(data, &pair::key);
            reaches(what, at.at + sizeof(node));
            reaches(what, data.at + sizeof(pair));
            check_value(of, key, of.get(data, &pair::value), what);
            if (slot_of(key, count) != i) what.wrong = "a pair is in another chain than its key's";
            if (++length == steps_max) what.wrong = "a chain is a circle";
        }
        if (of.get(in, &chain::size) != length) what.wrong = "a chain's size is wrong";
        if (of.wild()) what.wrong = "a pointer leads out of memory";
    }
    if (of.get(table_, &table::size) != what.keys.size()) what.wrong = "the table's size is wrong";
    return what;
}

} // namespace

std::unique_ptr<workload> make_hashtable(std::uint64_t value_words, const layout& where,
                                         bool keeps_old_table) {
    return std::make_unique<hashtable>(value_words, where, keeps_old_table);
}

} // namespace hf::slpmt
