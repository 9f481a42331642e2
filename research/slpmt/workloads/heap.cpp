// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// STAMP's heap: an array of pairs, the largest key first. The array is made once, large enough.
#include <slpmt/workloads/structures.hpp>

namespace hf::slpmt {
namespace {

class heap final : public workload {
public:
    heap(std::uint64_t value_words, const layout& where)
        : workload(value_words, all_sites()), heap_(root_of<all>(where)) {}

    std::string_view name() const override { return "heap"; }
    void create(program& in) override;
    void insert(program& in, std::uint64_t key) override;
    void recover(image&) const override {} // nothing is lazy, and log-free bytes are unreachable
    found check(const image& of) const override;

private:
    struct pair {
        std::uint64_t key;
        link<std::uint64_t> value;
    };
    struct all {
        link<link<pair>> elements;
        std::uint64_t size;
    };
    static constexpr std::uint64_t capacity = 4096;

    enum : unsigned { pair_key, pair_value, value_bytes, element, size, elements };
    static std::vector<site> all_sites() {
        return {{"pair key", log_free},    {"value pointer", log_free}, {"value bytes", log_free},
                {"element", eager_logged}, {"size", eager_logged},      {"elements", eager_logged}};
    }

    const ref<all> heap_;
};

void heap::create(program& in) {
    in.set(heap_, &all::elements, in.make<link<pair>>(capacity), sites_[elements]);
    in.set(heap_, &all::size, std::uint64_t{0}, sites_[size]);
}

void heap::insert(program& in, std::uint64_t key) {
    const auto one = in.make<pair>();
    in.set(one, &pair::key, key, sites_[pair_key]);
    in.set(one, &pair::value, make_value(in, key, sites_[value_bytes]), sites_[pair_value]);
    const auto array = in.get(heap_, &all::elements);
    std::uint64_t at = in.get(heap_, &all::size);
    HF_ASSERT(at < capacity);
    in.set(heap_, &all::size, at + 1, sites_[size]);
    in.put(array, at, one, sites_[element]);
    while (at != 0) { // as STAMP has it: exchange with the parent until that is larger
        const std::uint64_t parent = (at - 1) / 2;
        const auto above = in.at(array, parent);
        if (in.get(above, &pair::key) > key) break;
        in.put(array, parent, one, sites_[element]);
        in.put(array, at, above, sites_[element]);
        at = parent;
    }
}

found heap::check(const image& of) const {
    found what;
    const auto array = of.get(heap_, &all::elements);
    const std::uint64_t count = of.get(heap_, &all::size);
    reaches(what, array.at + capacity * sizeof(link<pair>));
    if (count > capacity) what.wrong = "the heap is larger than its array";
    for (std::uint64_t i = 0; i < count && what.wrong.empty(); ++i) {
        const auto one = of.at(array, i);
        const std::uint64_t key = of.get(one, &pair::key);
        reaches(what, one.at + sizeof(pair));
        check_value(of, key, of.get(one, &pair::value), what);
        if (i != 0 && of.get(of.at(array, (i - 1) / 2), &pair::key) < key)
            what.wrong = "a child is above its parent";
    }
    return what;
}

} // namespace

std::unique_ptr<workload> make_heap(std::uint64_t value_words, const layout& where) {
    return std::make_unique<heap>(value_words, where);
}

} // namespace hf::slpmt
