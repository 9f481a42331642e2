// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PMDK's ctree_map, a crit-bit tree: inner nodes name the highest bit in which the keys below
// differ.
#include <slpmt/workloads/structures.hpp>

#include <bit>
#include <functional>

namespace hf::slpmt {
namespace {

class ctree final : public workload {
public:
    ctree(std::uint64_t value_words, const layout& where)
        : workload(value_words, all_sites()), top_(root_of<entry>(where)) {}

    std::string_view name() const override { return "kv-ctree"; }
    void create(program& in) override {
        in.set(top_, &entry::key, std::uint64_t{0}, sites_[entry_key]);
        in.set(top_, &entry::below, ref<node>{}, sites_[entry_below]);
    }
    void insert(program& in, std::uint64_t key) override;
    void recover(image&) const override {} // nothing is lazy, and log-free bytes are unreachable
    found check(const image& of) const override;

private:
    struct node;
    struct entry {
        std::uint64_t key; // 0: an inner node is below; keys are odd
        link<node> below;  // or the key's value
    };
    struct node {
        std::uint64_t bit;
        std::uint64_t entries[4]; // two of them
    };
    static_assert(sizeof(node) == 8 + 2 * sizeof(entry));

    enum : unsigned { value_bytes, new_bit, new_key, new_below, entry_key, entry_below };
    static std::vector<site> all_sites() {
        return {{"value bytes", log_free},    {"new node's bit", log_free},
                {"new node's key", log_free}, {"new node's entry", log_free},
                {"key", eager_logged},        {"entry", eager_logged}};
    }
    static ref<entry> entry_of(ref<node> in, bool one) {
        return {in.at + 8 + (one ? sizeof(entry) : 0), in.ready};
    }
    static bool bit_of(std::uint64_t key, std::uint64_t bit) {
        return (key >> (bit & 63) & 1) != 0;
    }

    const ref<entry> top_;
};

void ctree::insert(program& in, std::uint64_t key) {
    HF_ASSERT((key & 1) != 0);
    const auto value = make_value(in, key, sites_[value_bytes]);
    const ref<node> as_below{value.at, value.ready};
    ref<entry> at = top_;
    std::uint64_t there = 0;
    while ((there = in.get(at, &entry::key)) == 0) {
        const auto below = in.get(at, &entry::below);
        if (!below) { // the tree is empty
            in.set(at, &entry::key, key, sites_[entry_key]);
            in.set(at, &entry::below, as_below, sites_[entry_below]);
            return;
        }
        at = entry_of(below, bit_of(key, in.get(below, &node::bit)));
    }
    if (there == key) return;
    const auto bit = static_cast<std::uint64_t>(63 - std::countl_zero(key ^ there));
    in.compute(4);
    for (at = top_; in.get(at, &entry::key) == 0;) {
        const auto below = in.get(at, &entry::below);
        const std::uint64_t of_below = in.get(below, &node::bit);
        if (of_below < bit) break;
        at = entry_of(below, bit_of(key, of_below));
    }
    const auto one = in.make<node>();
    in.set(one, &node::bit, bit, sites_[new_bit]);
    const auto own = entry_of(one, bit_of(key, bit)), other = entry_of(one, !bit_of(key, bit));
    in.set(own, &entry::key, key, sites_[new_key]);
    in.set(own, &entry::below, as_below, sites_[new_below]);
    in.set(other, &entry::key, in.get(at, &entry::key), sites_[new_key]);
    in.set(other, &entry::below, in.get(at, &entry::below), sites_[new_below]);
    in.set(at, &entry::key, std::uint64_t{0}, sites_[entry_key]);
    in.set(at, &entry::below, one, sites_[entry_below]);
}

found ctree::check(const image& of) const {
    found what;
    // 'fixed': bits above and at the last one are the way's.
    const std::function<void(ref<entry>, std::uint64_t, std::uint64_t, std::uint64_t)> walk =
        [&](ref<entry> at, std::uint64_t way, std::uint64_t fixed, std::uint64_t above) {
            const std::uint64_t key = of.get(at, &entry::key);
            const auto below = of.get(at, &entry::below);
            if (key != 0) {
                if ((key & fixed) != way) what.wrong = "a key is not on its way";
                return check_value(of, key, {below.at, 0}, what);
            }
            if (!below) {
                if (!(at == top_)) what.wrong = "an inner entry is empty";
                return;
            }
            const std::uint64_t bit = of.get(below, &node::bit);
            if (bit >= above || below.at + sizeof(node) > of.bytes().size()) {
                what.wrong = "a node is none";
                return;
            }
            reaches(what, below.at + sizeof(node));
            const std::uint64_t mask = std::uint64_t{1} << bit;
            walk(entry_of(below, false), way, fixed | mask, bit);
            walk(entry_of(below, true), way | mask, fixed | mask, bit);
        };
    walk(top_, 0, 0, 64);
    return what;
}

} // namespace

std::unique_ptr<workload> make_ctree(std::uint64_t value_words, const layout& where) {
    return std::make_unique<ctree>(value_words, where);
}

} // namespace hf::slpmt
