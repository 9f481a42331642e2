// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a pool before its pointers are followed: a program that can write a file can also seal it,
// so its origin proves nothing. The first request that needs an instance checks it: opening a pool
// takes no longer.
//
// (1) The allocator's blocks do not overlap.
// (2) The root and every segment of the tables are blocks of their own, large enough.
// (3) Every item of an instance is a block of its own, none of the blocks of (2), large enough for
//     its key and value. Its key has its hash, and that hash names the instance and its place
//     there.
//
// So an instance owns everything that it reaches: no two instances have an item in common (3), none
// has one twice (structures::fault_of_chains), and memory that is allocated later was free before.
// (1) and (2) are the frame, which is checked at once, before the first instance changes.
#include "section_store.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace hf::kv {

bool section_store::pinned(const void* block) const noexcept {
    return std::ranges::binary_search(pinned_, reinterpret_cast<std::uintptr_t>(block));
}

// False when it is pinned already.
bool section_store::pin(const void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const auto at = std::ranges::lower_bound(pinned_, address);
    if (at != pinned_.end() && *at == address) return false;
    pinned_.insert(at, address);
    return true;
}

status section_store::corrupt_at(const void* at, const std::string& what) const {
    return {errc::corrupt, fmt::format("{}: corrupt: at offset {:#x}: {}", pool_.path(),
                                       pool_.offset_of(at), what)};
}

status section_store::frame_fault() {
    if (!blocks_disjoint(pool_))
        return {errc::corrupt, fmt::format("{}: corrupt: the allocator's tables: expected blocks "
                                           "that do not overlap, found others; `holdfast verify` "
                                           "tells where",
                                           pool_.path())};
    if (block_bytes(pool_, root_) < sizeof(kv_root))
        return corrupt_at(root_, fmt::format("the root: expected a block of {} bytes, found {}",
                                             sizeof(kv_root), block_bytes(pool_, root_)));
    pinned_.assign(1, reinterpret_cast<std::uintptr_t>(root_));
    for (const instance& in : root_->instances) {
        const auto fault =
            structures::fault_of_segments(&in.table, [&](const void* segment, std::size_t bytes) {
                return block_bytes(pool_, segment) >= bytes && pin(segment);
            });
        if (fault.at != nullptr)
            return corrupt_at(fault.at, fmt::format("instance {}: expected {}, found {:#x}",
                                                    number_of(in), fault.what, fault.found));
    }
    return {};
}

// Requires: look_lock_ held.
status section_store::look_at_frame() {
    if (frame_seen_) return frame_;
    frame_ = frame_fault();
    frame_seen_ = true;
    return frame_;
}

// Null when 'it' may be an item of the instance. For any address.
const char* section_store::fault_of(const item* it, const instance& in) const noexcept {
    const std::size_t block = block_bytes(pool_, it);
    if (block < sizeof(item)) return "an allocated block";
    if (pinned(it)) return "a block of its own";
    if (it->key_bytes == 0 || it->key_bytes > key_bytes_max) return "an item with a key";
    if (item_bytes(it->key_bytes, it->value_bytes) > block)
        return "an item that fits into its block";
    const std::uint64_t hash = it->node.hash;
    if (&instance_of(*root_, hash) != &in) return "an item of this instance";
    if (hash_of(it->key()) != hash) return "an item whose key has its hash";
    return nullptr;
}

status section_store::fault_in(const instance& in) const {
    const char* expected = nullptr;
    const item* before = nullptr;
    const auto fault =
        structures::fault_of_chains(&in.table, [&](const structures::hash_node* node) {
            const auto* const it = reinterpret_cast<const item*>(node);
            expected = fault_of(it, in);
            if (expected == nullptr && before != nullptr && before->node.hash == it->node.hash &&
                before->key() == it->key())
                expected = "another key than its neighbour's";
            before = it;
            return expected == nullptr;
        });
    if (fault.at == nullptr) return {};
    if (expected != nullptr)
        return corrupt_at(fault.at, fmt::format("instance {}: expected {}, found {:#x}",
                                                number_of(in), expected, fault.found));
    return corrupt_at(fault.at,
                      fmt::format("instance {}: expected {} {:#x}, found {:#x}", number_of(in),
                                  fault.what, fault.expected, fault.found));
}

// Requires: the instance's lock, shared at least. One at a time: nobody makes a segment meanwhile.
status section_store::look_at(const instance& in) {
    const std::scoped_lock held{look_lock_};
    auto& seen = seen_[number_of(in)];
    if (seen.load(std::memory_order_relaxed) == sight::sound)
        return {}; // another reader was faster
    status found = look_at_frame();
    if (found.ok()) found = fault_in(in);
    const bool known = seen.exchange(found.ok() ? sight::sound : sight::damaged,
                                     std::memory_order_release) == sight::damaged;
    if (found.ok() || known) return found;
    pool_.leave_unsealed();
    // A fault of the frame concerns every instance, and is reported once.
    if (damaged_instances_.fetch_add(1) != 0 && !frame_.ok()) return found;
    if (on_damage_ != nullptr) on_damage_(found.what());
    else std::fprintf(stderr, "holdfast-kv: %s\n", found.what().c_str());
    return found;
}

status section_store::look_through() {
    status first;
    for (instance& in : root_->instances) {
        const std::shared_lock held(in.lock);
        status found = look_at(in);
        if (first.ok()) first = std::move(found);
    }
    return first;
}

} // namespace hf::kv
