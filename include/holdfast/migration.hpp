// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types change: open_options::migrate brings a pool from the layout that it was made with to the
// one that the program has now. docs/guide/migration.md
#pragma once

#include <holdfast/pool.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

struct hf_migration; // the C API's

namespace hf {

/// A pool on its way from one layout to another, the argument of open_options::migrate. The
/// function changes the pool by failure-atomic functions, or by updates of MOD containers, so each
/// change is whole after a kill, or absent. If the function is cut short, the next open calls it
/// again, and it goes on with what it finds.
///
/// Crash:    until the function has returned ok, the pool has its old layout and opens for this
///           migration only. Then it gets the new layout and the new root at once.
/// Threads:  the function may start some, and ends them.
class migration {
public:
    /// The pool. Its root() is the old one.
    pool& in() const noexcept { return in_; }
    /// The layout, and its hash, that the pool was made with.
    const std::string& from_layout() const noexcept { return from_layout_; }
    std::uint64_t from_hash() const noexcept { return from_hash_; }

    /// The root object of the new layout: zero-filled by the first call, later with what earlier
    /// tries have left there. When the function returns ok it replaces the old root, which is
    /// freed. If it was never asked for, the old root stays.
    ///
    /// Ordering: 3 points, the first time.
    /// Errors:   wrong_layout (an earlier try asked for another size), pool_full.
    template <class T> result<T*> new_root() {
        static_assert(detail::stored<T>::checked);
        result<void*> found = new_root_bytes(sizeof(T));
        if (!found) return found.error();
        return static_cast<T*>(*found);
    }
    /// A word of the pool, 0 at first, in which the function may keep how far earlier tries have
    /// come if the data do not show it. Failure-atomic functions store it together with what it
    /// counts. It ends with the migration.
    std::uint64_t* cursor() const noexcept;

    /// The function returns this for a layout that it does not know, before it has changed
    /// anything. The pool keeps that layout, and still opens for the programs that know it.
    ///
    /// Errors:   wrong_layout, in any case.
    status refuse();

    /// For people: a line in the log, at most one a second (hf::set_log).
    void report(std::uint64_t done, std::uint64_t total) noexcept;

private:
    friend class pool;
    friend struct ::hf_migration;
    migration(pool& in, std::string layout, std::uint64_t hash)
        : in_(in), from_layout_(std::move(layout)), from_hash_(hash) {}
    result<void*> new_root_bytes(std::size_t bytes);

    pool& in_;
    const std::string from_layout_;
    const std::uint64_t from_hash_;
    bool refused_ = false;
    std::atomic<std::int64_t> reported_ms_ = 0; // on the steady clock; 0: not yet
};

} // namespace hf
