// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A durable structure for the study: 8-byte keys, values of words that follow from the key. Each
// insertion is one transaction. Source: SLPMT §VI-A, Table II.
#pragma once

#include <slpmt/program.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hf::slpmt {

/// Word i of the value of a key.
constexpr std::uint64_t value_word(std::uint64_t key, std::uint64_t i) {
    return (key ^ (i + 1) * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
}

/// The result of a check of an image: keys in any order, and where memory in use ends.
struct found {
    std::vector<std::uint64_t> keys;
    std::uint64_t end = 0;
    std::string wrong; // empty: nothing
};

class workload {
public:
    workload(std::uint64_t value_words, std::vector<site> sites)
        : sites_(std::move(sites)), value_words_(value_words) {}
    virtual ~workload() = default;
    workload(const workload&) = delete;
    workload& operator=(const workload&) = delete;

    virtual std::string_view name() const = 0;
    /// Makes the empty structure, within a transaction.
    virtual void create(program& in) = 0;
    virtual void insert(program& in, std::uint64_t key) = 0;
    /// After the log has been applied: repairs log-free stores and rebuilds lazy ones. May be
    /// interrupted and done again.
    virtual void recover(image& of) const = 0;
    /// Looks at everything: keys, values, order, balance, counters.
    virtual found check(const image& of) const = 0;
    std::span<site> sites() { return sites_; }
    std::uint64_t value_words() const { return value_words_; }

protected:
    /// A new value's words.
    ref<std::uint64_t>
    make_value(program& in, std::uint64_t key, site& bytes,
               std::source_location where = std::source_location::current()) const {
        const auto value = in.make<std::uint64_t>(value_words_);
        for (std::uint64_t i = 0; i < value_words_; ++i)
            in.put(value, i, value_word(key, i), bytes, where);
        return value;
    }
    /// Notes a key and checks its value.
    void check_value(const image& of, std::uint64_t key, ref<std::uint64_t> value,
                     found& what) const {
        what.keys.push_back(key);
        reaches(what, value.at + value_words_ * 8);
        for (std::uint64_t i = 0; i < value_words_; ++i)
            if (of.at(value, i) != value_word(key, i)) what.wrong = "a value is not its key's";
        if (of.wild()) what.wrong = "a pointer leads out of memory";
    }
    static void reaches(found& what, std::uint64_t end) {
        if (end > what.end) what.end = end;
    }
    template <class T> static ref<T> root_of(const layout& where) {
        return {where.heap() + where.root_at, 0};
    }

    /// No structure of the study is deeper or has longer chains: garbage may be a circle.
    static constexpr std::uint64_t steps_max = 1 << 20;
    static constexpr unsigned depth_max = 200;

    std::vector<site> sites_; // a structure's enumeration names their places

private:
    const std::uint64_t value_words_;
};

/// The structures of the paper, by its names.
inline constexpr std::array kernel_names{"hashtable", "rbtree", "heap", "avl"};
inline constexpr std::array kv_names{"kv-btree", "kv-ctree", "kv-rtree"};
/// Moves lazily as the paper describes it: nothing remembers the old table (hole b).
inline constexpr std::string_view hashtable_by_the_text = "hashtable, by the text";
/// One of those, or hashtable_by_the_text, or null. It lies at the heap's beginning.
std::unique_ptr<workload> make_workload(std::string_view name, std::uint64_t value_bytes,
                                        const layout& where);

} // namespace hf::slpmt
