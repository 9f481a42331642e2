// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.hpp"

#include <algorithm>
#include <numeric>

namespace hf::bench::plain {
namespace {

using pair = std::pair<std::uint64_t, std::uint64_t>;

void collect(void* to, const void*, std::uint64_t key, std::uint64_t value) {
    static_cast<std::vector<pair>*>(to)->emplace_back(key, value);
}

std::uint64_t words_of(shape is) {
    switch (is) {
    case shape::added:
    case shape::reversed: return 64;
    case shape::counted: return 8;
    case shape::placed: return 3 * 64;
    default: return 0;
    }
}

} // namespace

model::model(shape is) : is_(is), elements_(words_of(is)) {
    if (is != shape::placed) std::iota(elements_.begin(), elements_.end(), 0);
}

bool model::insert(std::uint64_t key, std::uint64_t value) {
    switch (is_) {
    case shape::keyed: return pairs_.insert_or_assign(key, value).second;
    case shape::queue:
    case shape::stack: elements_.push_back(value); break;
    case shape::added:
        for (std::uint64_t& each : elements_) each = static_cast<std::uint32_t>(each + 3);
        break;
    case shape::reversed: std::ranges::reverse(elements_); break;
    case shape::counted:
        for (std::uint64_t& each : elements_) ++each;
        break;
    case shape::placed: { // among the even numbers
        const std::uint64_t place = std::min<std::uint64_t>(63, (key % 128 + 1) / 2);
        elements_[3 * place] = value % 1024;
        elements_[3 * place + 1] = key % 128;
        elements_[3 * place + 2] = place;
        break;
    }
    }
    return true;
}

bool model::erase(std::uint64_t key) {
    if (is_ == shape::keyed) return pairs_.erase(key) != 0;
    elements_.erase(is_ == shape::queue ? elements_.begin() : elements_.end() - 1);
    return true;
}

std::string model::difference(const subject& of, const void* root) const {
    std::vector<pair> held;
    of.visit(root, &held, collect);
    std::vector<pair> wanted(pairs_.begin(), pairs_.end());
    for (const std::uint64_t each : elements_) wanted.emplace_back(wanted.size(), each);
    std::ranges::sort(held);
    if (held == wanted) return {};
    const auto [is, should] = std::ranges::mismatch(held, wanted);
    std::string text = std::string(of.name) + " holds " + std::to_string(held.size()) +
                       " elements of " + std::to_string(wanted.size());
    if (is != held.end())
        text +=
            ", (" + std::to_string(is->first) + ", " + std::to_string(is->second) + ") among them";
    if (should != wanted.end())
        text += " where (" + std::to_string(should->first) + ", " + std::to_string(should->second) +
                ") should be";
    return text;
}

} // namespace hf::bench::plain
