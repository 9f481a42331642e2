// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Subjects whose interface is that of the standard's containers.
#pragma once

#include "subject.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>

#include <new>

namespace hf::bench::plain {
inline namespace HF_STRUCTURES_ENGINE {

template <class Container> HF_TXFUNC void create(void* root, std::uint64_t) {
    static_assert(sizeof(Container) <= root_bytes);
    new (root) Container();
}

template <class Map> HF_TXFUNC bool insert(void* root, std::uint64_t key, std::uint64_t value) {
    return static_cast<Map*>(root)->insert_or_assign(key, value).second;
}
template <class Map> HF_TXFUNC bool erase(void* root, std::uint64_t key) {
    return static_cast<Map*>(root)->erase(key) != 0;
}
template <class Map> void visit_pairs(const void* root, void* to, visitor* each) {
    for (const auto& pair : *static_cast<const Map*>(root))
        each(to, &pair, pair.first, pair.second);
}
template <class Map>
constexpr subject keyed(const char* name, std::uint64_t elements_max = ~std::uint64_t{0}) {
    return {name,        shape::keyed, "insert",         "erase",     create<Map>,
            insert<Map>, erase<Map>,   visit_pairs<Map>, elements_max};
}

template <class Sequence>
HF_TXFUNC bool push_back(void* root, std::uint64_t, std::uint64_t value) {
    using element = typename Sequence::value_type;
    static_cast<Sequence*>(root)->push_back(static_cast<element>(value));
    return true;
}
template <class Sequence> HF_TXFUNC bool pop_back(void* root, std::uint64_t) {
    static_cast<Sequence*>(root)->pop_back();
    return true;
}
template <class Sequence> HF_TXFUNC bool pop_front(void* root, std::uint64_t) {
    static_cast<Sequence*>(root)->pop_front();
    return true;
}
template <class Sequence> void visit_elements(const void* root, void* to, visitor* each) {
    std::uint64_t at = 0;
    for (const auto& element : *static_cast<const Sequence*>(root))
        each(to, &element, at++, static_cast<std::uint64_t>(element));
}
template <class Sequence> constexpr subject stack_of(const char* name) {
    return {name,
            shape::stack,
            "push_back",
            "pop_back",
            create<Sequence>,
            push_back<Sequence>,
            pop_back<Sequence>,
            visit_elements<Sequence>};
}
template <class Sequence> constexpr subject queue_of(const char* name) {
    return {name,
            shape::queue,
            "push_back",
            "pop_front",
            create<Sequence>,
            push_back<Sequence>,
            pop_front<Sequence>,
            visit_elements<Sequence>};
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench::plain
