// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words that one thread stores under its lock while others read them without it.
#pragma once

#include <structures/namespace.hpp>

#include <atomic>
#include <string_view>

#define HF_STRUCTURES_TEXT_(engine) #engine
#define HF_STRUCTURES_TEXT(engine) HF_STRUCTURES_TEXT_(engine)

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Whether a section of this build, once begun, certainly ends: then other threads may read its
/// stores before it has ended. Sections of other engines may be rolled back: readers wait for them.
inline constexpr bool ends_what_it_began =
    std::string_view(HF_STRUCTURES_TEXT(HF_ENGINE)) == "none" ||
    std::string_view(HF_STRUCTURES_TEXT(HF_ENGINE)) == "justdo" ||
    std::string_view(HF_STRUCTURES_TEXT(HF_ENGINE)) == "ido";

/// For sections. Engines that take stores back have no atomic ones: there it is a plain store of a
/// word, and a reader follows nothing before the section has ended.
template <class Word> void publish(Word& to, Word value) noexcept {
    static_assert(sizeof(Word) == 8);
    if constexpr (ends_what_it_began) std::atomic_ref(to).store(value, std::memory_order_release);
    else to = value;
}

/// Outside of sections.
template <class Word> Word published(const Word& from) noexcept {
    return std::atomic_ref(const_cast<Word&>(from)).load(std::memory_order_acquire);
}

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
