// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The server's interface of a store. section_store.hpp says what each call means and costs there,
// mod_store.hpp the differences; store.hpp names the store that a program is built with.
//
// (1) When a call that changes something returns, the change has been committed: it may be
//     acknowledged; in mode power, when the hf::durable_together around the calls has ended.
#pragma once

#include "face.hpp"
#include <kv/protocol/counters.hpp>
#include <kv/protocol/protocol.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace hf::kv {

/// `counted` is the calling thread's. `place` is the position of a walk with visit_next(), from its
/// construction on; it says whether damage was skipped.
template <class Store>
concept item_store =
    std::constructible_from<typename Store::place, Store&> &&
    requires(Store& s, const Store& seen, const store_options& options, const request& what,
             std::string_view bytes, std::size_t length, thread_counts& counted, change& done,
             typename Store::place& at, void (*look)(const item_view&),
             void (*show)(std::string_view, const item_view&), std::uint64_t& total_bytes) {
        { Store::open(options) } -> std::same_as<result<std::unique_ptr<Store>>>;
        { Store::engine_name() } -> std::same_as<const char*>;

        { s.get(bytes, counted, look) } -> std::same_as<bool>;
        { s.get(bytes, counted, look, true) } -> std::same_as<bool>; // the look leaves no trace
        { s.get_and_change(what, counted, look) } -> std::same_as<bool>;
        { s.write(what, bytes, counted, done) } -> std::same_as<outcome>;
        { s.change_number(what, counted, done) } -> std::same_as<outcome>;
        { s.touch(bytes, std::int64_t{}, counted) } -> std::same_as<outcome>;
        { s.remove(what, counted, done) } -> std::same_as<outcome>;
        { s.flush_all(std::int64_t{}) } -> std::same_as<void>;

        { s.visit_next(at, show) } -> std::same_as<bool>;
        { at.damaged } -> std::convertible_to<bool>;
        { s.sample_classes(total_bytes) } -> std::same_as<std::vector<size_class_view>>;
        { s.reap(counted) } -> std::same_as<void>; // every second, by each thread

        { s.counted() } -> std::same_as<counter_board&>;
        { s.pool() } -> std::same_as<hf::pool&>;
        { seen.item_count() } -> std::same_as<std::uint64_t>;
        { seen.damaged(bytes) } -> std::same_as<bool>;
        { seen.damaged_instances() } -> std::same_as<std::uint64_t>;
        { seen.too_large(length, length) } -> std::same_as<bool>;
        { seen.item_bytes_max() } -> std::same_as<std::uint32_t>;
        { seen.evicts() } -> std::same_as<bool>;
        { seen.now() } -> std::same_as<std::uint32_t>;
    };

} // namespace hf::kv
