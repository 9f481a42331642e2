// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The inventory of examples/, built with libc++, for programs that are built with libstdc++:
// nothing of either crosses here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {
class pool;
}

namespace containers {

inline constexpr std::size_t root_bytes = 16; // inventory::store

bool create(void* root) noexcept;
bool created(const void* root) noexcept;
/// Adds 'amount', under the store's lock; returns what there is then.
std::uint64_t add(const hf::pool& pool, void* root, std::uint64_t article,
                  std::uint64_t amount) noexcept;
bool remove(void* root, std::uint64_t article) noexcept;

/// The amount of an article; 0 for an unknown one. The rest requires: no section runs.
std::uint64_t amount(const void* root, std::uint64_t article) noexcept;
std::uint64_t count(const void* root) noexcept;
/// The three containers agree.
bool whole(const void* root) noexcept;
/// Every article and its amount, in order.
void for_each(const void* root, void* context,
              void (*visit)(void* context, std::uint64_t article, std::uint64_t amount)) noexcept;
/// Every block that the containers own, themselves included.
void for_each_block(const void* root, void* context,
                    void (*visit)(void* context, const void* block, std::size_t bytes)) noexcept;

} // namespace containers
