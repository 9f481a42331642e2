// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine mod's stack, queue and vector.
#include "../containers/sequences.hpp"
#include "mod_pool.hpp"

#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>

namespace hf::bench {
namespace {

template <class List> class mod_list final : public list_under_test {
public:
    explicit mod_list(const sequence_options& given)
        : pool_(file_options(given)), list_(pool_.structure<List>("list")) {}
    bool push(std::uint64_t value) noexcept override { return list_.push(value).ok(); }
    bool pop(std::uint64_t& value) noexcept override {
        const auto gone = list_.pop();
        if (gone) value = *gone;
        return bool(gone);
    }
    map_facts facts() const override { return pool_.facts(); }
    std::optional<memory_use> memory() override { return pool_.memory(list_.size()); }

private:
    mod_pool pool_;
    List list_;
};

class mod_vector final : public vector_under_test {
public:
    explicit mod_vector(const sequence_options& given)
        : pool_(file_options(given)), elements_(pool_.structure<vector>("vector")) {}
    bool push(std::uint64_t value) noexcept override { return elements_.push_back(value).ok(); }
    bool get(std::uint64_t index, std::uint64_t& value) noexcept override {
        value = elements_[index];
        return true;
    }
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        return elements_.set(index, value).ok();
    }
    bool swap(std::uint64_t one, std::uint64_t other) noexcept override {
        return elements_.swap(one, other).ok();
    }
    map_facts facts() const override { return pool_.facts(); }
    std::optional<memory_use> memory() override { return pool_.memory(elements_.size()); }

private:
    using vector = mod::vector<std::uint64_t>;
    mod_pool pool_;
    vector elements_;
};

} // namespace

std::unique_ptr<sequence_under_test> make_sequence_mod(const sequence_options& given) {
    if (given.which == sequence::stack)
        return std::make_unique<mod_list<mod::stack<std::uint64_t>>>(given);
    if (given.which == sequence::queue)
        return std::make_unique<mod_list<mod::queue<std::uint64_t>>>(given);
    return std::make_unique<mod_vector>(given);
}

} // namespace hf::bench
