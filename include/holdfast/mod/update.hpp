// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Changes several structures of one pool in one section:
//
//     auto done = mod::update(std::tie(cars, customers), [&](auto& cars, auto& customers) {
//         if (!cars.contains(wanted)) return false;      // nothing is changed
//         customers.insert_or_assign(name, bill);
//         cars.erase(wanted);
//         return true;
//     });
//                                                                  Source: MOD §4.3.2, §5.2.
#pragma once

#include <holdfast/author/mod/store.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace hf::mod {

/// Runs 'change' on a batch of each structure, then commits the changes together; nothing if it
/// returns false.
///
/// Requires: structures of one store, none twice.
/// Ordering: members of one family: 1 point, 2 with durability::on_return; unrelated ones: 2.
/// Crash:    all of the changes or none.
/// Errors:   pool_full, bad_argument (inside another update; a structure twice); nothing is changed.
/// Threads:  writers of these structures wait for each other.
/// Source:   MOD §5.2, CommitSiblings and CommitUnrelated.
template <class... Structures, class Change>
status update(std::tuple<Structures&...> of, Change&& change) {
    const auto roots = std::apply(
        [](auto&... each) { return std::array<root*, sizeof...(Structures)>{each.its_root()...}; },
        of);
    joint_writing writing(roots);
    const auto with = [&]<std::size_t... I>(std::index_sequence<I...>) -> status {
        std::tuple<typename std::remove_cvref_t<Structures>::batch...> batches{
            typename std::remove_cvref_t<Structures>::batch(writing.work(I), writing.word(I))...};
        bool wanted = true;
        if constexpr (std::is_void_v<decltype(std::apply(change, batches))>)
            std::apply(change, batches);
        else wanted = std::apply(change, batches);
        if (!wanted) return {};
        const auto keep = [&](std::size_t i, std::uint64_t next) {
            if (next != writing.word(i) || writing.work(i).failed()) writing.set_word(i, next);
        };
        (keep(I, std::get<I>(batches).word()), ...);
        return writing.commit();
    };
    return with(std::index_sequence_for<Structures...>());
}

} // namespace hf::mod
