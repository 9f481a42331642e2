// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "container_sections.hpp"

#include "../../examples/inventory.hpp"

#include <mutex>

namespace containers {
namespace {

using inventory::number;
using inventory::stock;
using inventory::store;

static_assert(sizeof(store) == root_bytes);

store* at(void* root) { return static_cast<store*>(root); }
const store* at(const void* root) { return static_cast<const store*>(root); }

/// The place of an element in its node: learned from a container of the same type that remembers
/// what it allocates.
struct last_block {
    void* at = nullptr;
    std::size_t bytes = 0;
};
last_block last;
template <class T> struct remembering {
    using value_type = T;
    remembering() = default;
    template <class U> remembering(const remembering<U>&) noexcept {}
    T* allocate(std::size_t n) {
        last = {::operator new(n * sizeof(T)), n * sizeof(T)};
        return static_cast<T*>(last.at);
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p); }
    template <class U> bool operator==(const remembering<U>&) const noexcept { return true; }
};

struct node_shape {
    std::ptrdiff_t element;
    std::size_t bytes;
};
template <class Container> node_shape shape_of(Container probe) {
    const auto made = probe.emplace(1, 1).first;
    // The hash map's table may have come after its node.
    const auto* element = reinterpret_cast<const std::byte*>(&*made);
    const auto* block = static_cast<const std::byte*>(last.at);
    return {element - block, last.bytes};
}
using pair = std::pair<const number, number>;
using map_probe = std::map<number, number, std::less<>, remembering<pair>>;
using hash_probe =
    std::unordered_map<number, number, std::hash<number>, std::equal_to<>, remembering<pair>>;

node_shape map_node() {
    static const node_shape shape = shape_of(map_probe{});
    return shape;
}
node_shape hash_node() {
    static const node_shape shape = [] {
        hash_probe probe;
        probe.reserve(8); // its table comes first
        return shape_of(std::move(probe));
    }();
    return shape;
}

} // namespace

bool create(void* root) noexcept {
    const std::scoped_lock held{at(root)->lock};
    return inventory::create(at(root));
}
bool created(const void* root) noexcept { return at(root)->all != nullptr; }

std::uint64_t add(const hf::pool& pool, void* root, std::uint64_t article,
                  std::uint64_t amount) noexcept {
    const std::scoped_lock held{at(root)->lock};
    return inventory::add(pool, at(root), article, amount);
}
bool remove(void* root, std::uint64_t article) noexcept {
    const std::scoped_lock held{at(root)->lock};
    return inventory::remove(at(root), article);
}

std::uint64_t amount(const void* root, std::uint64_t article) noexcept {
    const stock& all = *at(root)->all;
    const auto found = all.amount.find(article);
    return found == all.amount.end() ? 0 : found->second;
}
std::uint64_t count(const void* root) noexcept { return at(root)->all->amount.size(); }
bool whole(const void* root) noexcept { return inventory::whole(*at(root)->all); }

void for_each(const void* root, void* context,
              void (*visit)(void* context, std::uint64_t article, std::uint64_t amount)) noexcept {
    for (const auto& [article, amount] : at(root)->all->amount) visit(context, article, amount);
}

void for_each_block(const void* root, void* context,
                    void (*visit)(void* context, const void* block, std::size_t bytes)) noexcept {
    const stock& all = *at(root)->all;
    const auto node = [&](const void* element, const node_shape& shape) {
        visit(context, static_cast<const std::byte*>(element) - shape.element, shape.bytes);
    };
    visit(context, &all, sizeof all);
    for (const auto& element : all.amount) node(&element, map_node());
    for (const auto& element : all.shelf) node(&element, hash_node());
    if (all.articles.capacity() != 0)
        visit(context, all.articles.data(), all.articles.capacity() * sizeof(number));
    // libc++'s hash table begins with the pointer to its buckets.
    if (all.shelf.bucket_count() != 0)
        visit(context, *reinterpret_cast<void* const*>(&all.shelf),
              all.shelf.bucket_count() * sizeof(void*));
}

} // namespace containers
