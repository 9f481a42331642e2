// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <mod/announced.hpp>
#include <mod/store_impl.hpp>

#include <algorithm>

namespace hf::mod {
namespace {

// Up to here the nodes of a shadow are looked for one by one.
constexpr std::size_t few = 12;
constexpr std::size_t nowhere = ~std::size_t{0};
constexpr unsigned filter(ref node) { return node * 0x9e3779b1U >> 24; }
constexpr std::size_t hash(ref node) { return std::size_t{node} * 0x9e3779b97f4a7c15ULL >> 20; }

} // namespace

ref shadow::make(std::size_t bytes) {
    HF_ASSERT_SLOW(store_ != nullptr && cache_ != nullptr);
    // A node that is taken must be noted, so the memory for the note comes first.
    if (fresh_.size() == fresh_.capacity()) [[unlikely]]
        grow();
    ref node = failed_ ? 0 : store_->internals().space().take(*cache_, bytes);
    if (node == 0 && !failed_) node = store_->internals().take_after_all(*this, bytes);
    if (node == 0) [[unlikely]] {
        failed_ = true;
        return 0;
    }
    const auto granules = static_cast<std::uint32_t>((bytes + granule_bytes - 1) / granule_bytes);
    HF_ASSERT_SLOW(node <= ref_max);
    const bool seen = (seen_[filter(node) / 64] >> filter(node) % 64 & 1) != 0;
    if (const std::size_t again = seen ? find(node, true) : nowhere; again != nowhere) {
        fresh_[again].granules = granules; // made before, and given back since
    } else {
        seen_[filter(node) / 64] |= std::uint64_t{1} << filter(node) % 64;
        fresh_.emplace_back(node, granules);
        if (fresh_.size() > few) index(fresh_.size() - 1);
    }
    made_bytes_ += granules * granule_bytes;
    if (trace::heard()) [[unlikely]]
        trace::announce(announced::fresh, at<std::byte>(node), granules * granule_bytes);
    return node;
}

void shadow::grow() { fresh_.reserve(std::max<std::size_t>(16, 2 * fresh_.size())); }

void shadow::index(std::size_t position) {
    HF_ASSERT(position + 1 == fresh_.size() && position >= few);
    const auto enter = [&](std::size_t p) {
        std::size_t h = hash(fresh_[p].node) & (index_.size() - 1);
        while (index_[h] != 0) h = (h + 1) & (index_.size() - 1);
        index_[h] = static_cast<std::uint32_t>(p + 1);
    };
    const bool grows = 2 * fresh_.size() > index_.size();
    if (grows) index_.assign(std::max<std::size_t>(64, 4 * index_.size()), 0);
    if (grows || position == few) { // those before were looked for one by one
        for (std::size_t p = 0; p < fresh_.size(); ++p) enter(p);
    } else {
        enter(position);
    }
}

/// Position of a node that this shadow may still change, or that it has given back; 'nowhere' if it
/// has no such node.
std::size_t shadow::find(ref node, bool given_back) const noexcept {
    if ((seen_[filter(node) / 64] >> filter(node) % 64 & 1) == 0) return nowhere;
    const auto is_it = [&](std::size_t p) {
        return fresh_[p].node == node && (fresh_[p].granules == 0) == given_back;
    };
    if (fresh_.size() <= few) {
        for (std::size_t p = fresh_.size(); p-- > fresh_from_;)
            if (is_it(p)) return p;
        return nowhere;
    }
    for (std::size_t h = hash(node) & (index_.size() - 1); index_[h] != 0;
         h = (h + 1) & (index_.size() - 1)) {
        const std::size_t p = index_[h] - 1;
        if (is_it(p)) return p >= fresh_from_ ? p : nowhere;
    }
    return nowhere;
}

bool shadow::valid() const noexcept {
    if (fresh_from_ > fresh_.size() || (damaged_ && !failed_)) return false;
    if (fresh_.size() > few && index_.size() < 2 * fresh_.size()) return false;
    std::uint64_t bytes = 0;
    for (const made& m : fresh_) bytes += m.granules * granule_bytes;
    if (bytes != made_bytes_) return false;
    for (std::size_t p = fresh_from_; p < fresh_.size(); ++p)
        if (fresh_[p].node == 0 || find(fresh_[p].node, fresh_[p].granules == 0) == nowhere)
            return false;
    return std::ranges::all_of(steps_, [](const given_up& s) { return s.node <= ref_max; });
}

void shadow::forget() noexcept {
    if (fresh_.size() > few) index_.assign(index_.size() > 4096 ? 0 : index_.size(), 0);
    fresh_.clear();
    steps_.clear();
    seen_ = {};
    fresh_from_ = made_bytes_ = 0;
    failed_ = damaged_ = shares_ = false;
}

std::size_t shadow::room(ref node) const noexcept {
    const std::size_t p = find(node);
    return p == nowhere ? 0 : fresh_[p].granules * granule_bytes;
}

bool shadow::fresh(ref node) const noexcept { return find(node & ref_max) != nowhere; }

void shadow::replaced(ref node, std::uint32_t context) {
    node &= ref_max;
    if (const std::size_t p = find(node); p != nowhere) {
        made_bytes_ -= fresh_[p].granules * granule_bytes;
        fresh_[p].granules = 0; // no version has ever named it
        store_->internals().space().give(*cache_, node);
        return;
    }
    steps_.emplace_back(node, step::replaced, context);
}

void shadow::released(ref node, std::uint32_t context) {
    steps_.emplace_back(node & ref_max, step::released, context);
}

void shadow::shared(ref node, std::uint32_t context) {
    steps_.emplace_back(node & ref_max, step::shared, context);
    shares_ = true;
    fresh_from_ = fresh_.size(); // everything below it has two parents, too
    HF_ASSERT_SLOW(!fresh(node));
}

} // namespace hf::mod
