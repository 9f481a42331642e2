// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which locks threads hold at each access to a block of the pool. A word that threads use without a
// lock in common is a race, whatever the schedule of the run: only the order in which threads come
// counts.
//
// (1) A word belongs to the thread that uses it first. From another one's first access on, the
//     locks that guard it are those that were held at each access since; at a store, only those
//     that were held for writing.
// (2) It is a race when no lock remains, and one of the accesses since was a store.
// (3) A word is like new when its block is freed. The word of a lock is left out.
// (4) Accesses of the library are left out, except what it loads and stores for a section:
//     its other ones have an order of their own.
//
// Source: Savage et al., Eraser, SOSP 1997. Differs: it starts anew with each block.
#pragma once

#include <base/symbols.hpp>
#include <check/watch.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hf::check {

struct held_lock {
    const void* lock;
    bool writes;
    friend auto operator<=>(const held_lock&, const held_lock&) = default;
};
using lock_set = std::vector<held_lock>; // ascending

class lock_sets final : public observer {
public:
    /// Requires: one at a time.
    explicit lock_sets(std::span<std::byte> memory);
    ~lock_sets() override;
    lock_sets(const lock_sets&) = delete;
    lock_sets& operator=(const lock_sets&) = delete;

    /// Accesses of this thread count from here on; till here.
    void begin(unsigned thread) noexcept;
    void end() noexcept;

    struct access {
        std::size_t word; // its offset
        unsigned thread;
        bool stores;
        std::uint32_t place, locks; // numbers of both
        bool frees = false;         // the word is like new (3)
    };
    struct race {
        access first, second;
    };
    /// One for each pair of places.
    std::vector<race> races();
    /// "function at file:line" of the program's code, innermost first; empty: not its own (4).
    std::vector<std::string> calls_of(const access& of) const;
    /// The program's locks among those that were held. Requires: races() has been called.
    const lock_set& held_at(const access& of) const { return sets_[of.locks]; }
    std::size_t accesses() const noexcept { return all_.size(); }

    void load(std::size_t offset, std::size_t bytes) override { add(offset, bytes, false); }
    void store(std::size_t offset, std::size_t bytes) override { add(offset, bytes, true); }
    void nt_store(std::size_t offset, std::size_t bytes) override { add(offset, bytes, true); }
    void flush(std::size_t, std::size_t) override {}
    void fence() override {}
    void checked(std::size_t, std::size_t, bool) override {}

    // What this thread does, as the crash program's own linking reports it. 'by' is the place of a
    // lock that may be the library's own; null: it is the program's.
    static void took(const void* lock, bool writes, const void* by = nullptr) noexcept;
    static void let_go(const void* lock) noexcept;
    static void frees(const void* block) noexcept;

private:
    struct by_address {
        bool operator()(const code_place& a, const code_place& b) const noexcept;
    };
    void add(std::size_t offset, std::size_t bytes, bool stores, bool frees = false);
    bool is_lock(std::size_t word) const;
    void forget_own_locks();

    std::span<std::byte> memory_;
    std::vector<access> all_;
    std::map<code_place, std::uint32_t, by_address> places_;
    std::vector<code_place> place_of_;
    std::map<lock_set, std::uint32_t> numbers_;
    std::vector<lock_set> sets_;
    std::map<const void*, const void*> locks_; // all that were taken, and by whom
};

} // namespace hf::check
