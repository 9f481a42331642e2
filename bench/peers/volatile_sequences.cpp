// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The standard library's stack, queue and vector: nothing survives.
#include "../containers/sequences.hpp"

#include <deque>
#include <utility>
#include <vector>

namespace hf::bench {
namespace {

map_facts facts_in_dram() {
    return {false, false, false, "DRAM, nothing survives; malloc is not prefaulted"};
}

class volatile_stack final : public list_under_test {
public:
    bool push(std::uint64_t value) noexcept override {
        elements_.push_back(value);
        return true;
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (elements_.empty()) return false;
        value = elements_.back();
        elements_.pop_back();
        return true;
    }
    map_facts facts() const override { return facts_in_dram(); }

private:
    std::vector<std::uint64_t> elements_;
};

class volatile_queue final : public list_under_test {
public:
    bool push(std::uint64_t value) noexcept override {
        elements_.push_back(value);
        return true;
    }
    bool pop(std::uint64_t& value) noexcept override {
        if (elements_.empty()) return false;
        value = elements_.front();
        elements_.pop_front();
        return true;
    }
    map_facts facts() const override { return facts_in_dram(); }

private:
    std::deque<std::uint64_t> elements_;
};

class volatile_vector final : public vector_under_test {
public:
    bool push(std::uint64_t value) noexcept override {
        elements_.push_back(value);
        return true;
    }
    bool get(std::uint64_t index, std::uint64_t& value) noexcept override {
        value = elements_[index];
        return true;
    }
    bool set(std::uint64_t index, std::uint64_t value) noexcept override {
        elements_[index] = value;
        return true;
    }
    bool swap(std::uint64_t one, std::uint64_t other) noexcept override {
        std::swap(elements_[one], elements_[other]);
        return true;
    }
    map_facts facts() const override { return facts_in_dram(); }

private:
    std::vector<std::uint64_t> elements_;
};

} // namespace

std::unique_ptr<sequence_under_test> make_sequence_volatile(const sequence_options& given) {
    if (given.which == sequence::stack) return std::make_unique<volatile_stack>();
    if (given.which == sequence::queue) return std::make_unique<volatile_queue>();
    return std::make_unique<volatile_vector>();
}

} // namespace hf::bench
