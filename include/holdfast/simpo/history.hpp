// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls of a persistent object, kept behind its log, and the object as it was at one of them.
// SIMPO §3.3.1  docs/guide/simpo.md
//
//     auto s = hf::simpo::keep_history(pool, "r");                         // once, and for good
//     for (const auto& each : *hf::simpo::history(pool, "r")) std::puts(each.function.c_str());
//     auto then = hf::simpo::past<row>::open<&row::add>(pool, "r", 1000);  // after 1000 of them
//
// (1) Each call that is committed from then on is in the object's log or in its history, once,
//     whenever the process is killed.
// (2) The history is a file of the folder POOL.history, part of the pool: copy, move or restore the
//     two together. To keep it on another disk, name a folder there: POOL.history then leads there.
// (3) It ends with the object: destroy, drop and remake remove it.
#pragma once

#include <holdfast/simpo.hpp>
#include <holdfast/simpo/swap.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf::simpo {

struct history_options {
    /// Where the files are; empty: in POOL.history. It is made if it is missing, in a parent that
    /// exists. It is noted once, by a symbolic link POOL.history; later opens find it there.
    std::string folder = {};
    /// For what this open of the pool writes, as hf::simpo::zstd(); null: no compression. What is
    /// packed needs it again to be read, never to be continued.
    const compression* packing = nullptr;
};

/// From here on the object's calls stay when its log gives their lines back: they go to a file,
/// behind the object as it is now. Every later open of the pool continues it, with or without this
/// function; call it after each open to pack what is written.
///
/// Cost:     writes the object to the file, and syncs that. Later a checkpoint also writes the calls
///           behind the last one, 32 bytes and their arguments each, and syncs the file once, where
///           the pool's mode is not 'process'.
/// Ordering: 1 point, and those of a checkpoint; 0 if it is kept already.
/// Crash:    it is kept, or not. Later, when a file cannot be written (its disk is full), the
///           process ends with a message; the calls are in the pool's log, and the next open writes
///           them or says why it cannot.
/// Errors:   not_found; exists: POOL.history leads to another folder; bad_argument: the compression's
///           name, or the pool is an image in memory; permission, pool_full, io_error: of the file
///           system; missing_engine, in_use. As find for an object that is swapped out.
/// Source:   SIMPO §3.3.1. Differs: src/simpo/README.md.
status keep_history(pool& in, std::string_view name, const history_options& how = {});
/// Keeps no more calls, and removes those that were kept.
///
/// Ordering: 1 point.
/// Crash:    it is kept as it was, or not any more; then its file may be left over, which nothing
///           reads.
/// Errors:   not_found: there is no such object, or it has no history; permission, missing_engine,
///           in_use.
status end_history(pool& in, std::string_view name);

/// A call that was made.
struct past_call {
    std::uint64_t number;            // 1: the first one that was kept
    std::string function;            // "count"; empty: the function's name was not known
    std::uint64_t identifier;        // of the function, as in docs/format/simpo.md
    std::uint16_t version;           // of the function
    std::uint64_t bytes;             // of its record, without padding
    bool deferred;                   // false: it ended a group
    std::uint64_t caller, operation; // of simpo/caller.hpp; 0, 0: of no caller
    /// Numbers as numbers, other values as hexadecimal bytes; of an unknown function its words.
    std::vector<std::string> arguments;
    bool in_pool; // it is in the pool's log yet, and not in the file
};

/// The calls of an object, in their order, with those that are pending. Commits these, if the pool
/// is open for writing.
///
/// Errors:   not_found: as end_history; corrupt: the file is damaged, cut, or of another state of
///           the pool; bad_argument: it is packed, and 'packing' is not what it is packed with; null
///           stands for that of keep_history. io_error; permission: the pool was opened with
///           read_only and shared.
result<std::vector<past_call>> history(pool& in, std::string_view name,
                                       const compression* packing = nullptr);

namespace detail {
struct free_past {
    void operator()(void* memory) const noexcept;
};
using past_memory = std::unique_ptr<void, free_past>;
result<past_memory> look_back(pool& in, std::string_view name, const class_shape& what,
                              std::uint64_t calls, const compression* packing);
} // namespace detail

/// An object as it was after some of its calls: a copy in the memory of this process, which nothing
/// changes. It stays when the pool is closed.
template <class T> class past {
    static_assert(persistent_class<T>, "a past object is one of a persistent class (simpo.hpp)");

public:
    /// The object of this name as it was after the first `calls` calls that history() shows; 0: as
    /// its history began. `F`: functions that those calls may be of, if this program calls them
    /// nowhere else.
    ///
    /// Cost:     reads the file, and makes that many calls on a copy.
    /// Errors:   as history; wrong_layout; bad_argument: there are fewer calls; function_changed: one
    ///           of them is of a function that this program does not have, or in another version.
    template <auto... F>
    static result<past> open(pool& in, std::string_view name, std::uint64_t calls,
                             const compression* packing = nullptr) {
        ((void)detail::registered<T, F>::done, ...);
        auto found = detail::look_back(
            in, name, {T::simpo_class.text, T::simpo_class.version, sizeof(T)}, calls, packing);
        if (!found) return found.error();
        return past(std::move(*found));
    }
    const T& operator*() const noexcept { return *std::launder(static_cast<const T*>(at_.get())); }
    const T* operator->() const noexcept { return &**this; }

private:
    explicit past(detail::past_memory at) noexcept : at_(std::move(at)) {}
    detail::past_memory at_;
};

} // namespace hf::simpo
