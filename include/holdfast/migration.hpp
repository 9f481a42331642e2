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

/// A pool on its way from one layout to another, as open_options::migrate gets it. What the
/// function does, it does by failure-atomic functions, or by updates of MOD containers: each is
/// there after a kill, or not. Cut short it is called again by the next open, and goes on with what
/// it finds.
///
/// Crash:    the pool has its old layout, and opens for this migration only, until the function has
///           returned ok: then, at once, the new layout and the new root.
/// Threads:  the function may start some, and ends them.
class migration {
public:
    /// The pool. Its root() is the old one.
    pool& in() const noexcept { return in_; }
    /// The layout, and its hash, that the pool was made with.
    const std::string& from_layout() const noexcept { return from_layout_; }
    std::uint64_t from_hash() const noexcept { return from_hash_; }

    /// The root object of the new layout: zero-filled when it is first asked for, and what earlier
    /// tries have left there. With ok it takes the place of the old one, which is freed. Not asked
    /// for, the old one stays.
    ///
    /// Ordering: 3 points, the first time.
    /// Errors:   wrong_layout (an earlier try asked for another size), pool_full.
    template <class T> result<T*> new_root() {
        static_assert(!std::is_polymorphic_v<T>,
                      "virtual tables have other addresses in every process");
        result<void*> found = new_root_bytes(sizeof(T));
        if (!found) return found.error();
        return static_cast<T*>(*found);
    }
    /// A word of the pool, 0 at first, for the function to know how far earlier tries have come
    /// where the data do not tell: failure-atomic functions store it with what it counts. It ends
    /// with the migration.
    std::uint64_t* cursor() const noexcept;

    /// For the function to return where it does not know the layout, before it has changed
    /// anything: the pool keeps that layout, and opens for whom it opened for. wrong_layout.
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
