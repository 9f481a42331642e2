// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holds functional shadowing to its rule, by the events of a run: allocations, stores, flushes,
// commits, fences. The rule concerns nodes that were made in the run, and words that the run
// committed:
//
// (1) A node is stored to from its making until the commit that names it, never after. Exception:
//     an announced element of at most a word, in one store of the thread that announced it.
// (2) When a word is stored to name nodes, all stores to these nodes are flushed and fenced.
// (3) Any other store, above all to words, is flushed before the next fence. Nodes of shadows that
//     are not committed yet may wait.
// (4) A word that commits store is stored by commits only.
// (5) A node is not made anew, nor an element of it stored in place, while a failure may leave a
//     word of another version, of any root, that leads to it.
//
// Memory is followed by granules of 16 bytes. A fence waits for what its own thread has flushed or
// stored past the caches. In domains without flushes only (1) and (4) remain.
// Source: MOD §6.4. Differs: nodes are flushed by the commit, not by the update.
#pragma once

#include <holdfast/author/persist.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace hf::check {

class shadow_trace {
public:
    /// Visits the nodes that the word at 'word' leads to, as the memory has it now.
    using visit_node = std::function<void(std::size_t offset, std::size_t bytes)>;
    using follower = void (*)(std::span<const std::byte> memory, std::size_t word,
                              const visit_node& visit);
    /// For all traces that come: how words lead to nodes. Without it (5) is not judged.
    static void set_follower(follower given) noexcept { follow_ = given; }

    shadow_trace(std::size_t memory_bytes, domain d);
    /// The memory that offsets count in, for (5).
    shadow_trace(std::span<const std::byte> memory, domain d);
    /// Says which thread the next events belong to. Requires: below 8.
    void set_thread(unsigned thread) noexcept { thread_ = static_cast<std::uint8_t>(thread); }

    // As observer has them (watch.hpp).
    void store(std::size_t offset, std::size_t bytes);
    void nt_store(std::size_t offset, std::size_t bytes);
    void flush(std::size_t offset, std::size_t bytes);
    void fence();
    void fresh(std::size_t offset, std::size_t bytes);
    void named(std::size_t offset, std::size_t bytes);
    void commit(std::size_t offset, std::size_t bytes);
    void in_place(std::size_t offset, std::size_t bytes);

    /// The first breach of the rule, with the calls that led to it; empty: none.
    const std::string& wrong() const noexcept { return wrong_; }
    /// Nodes announced and commits made: a run without announcements proves nothing.
    std::uint64_t nodes() const noexcept { return nodes_; }
    std::uint64_t commits() const noexcept { return commits_; }

private:
    static constexpr std::size_t granule_bytes = 16;
    enum class use : std::uint8_t { other, fresh, named, published };
    enum class reached : std::uint8_t { durable, flushed, cache };

    /// The nodes that a word led to before a commit, held until the word that it stored is durable.
    struct held {
        std::size_t word;
        std::vector<std::size_t> granules; // ascending
    };
    /// How far a granule's last store got.
    struct progress {
        reached how = reached::durable;
        bool past_caches = false;
        std::uint8_t by = 0;         // the thread that stored it
        std::uint8_t waited_for = 0; // by the fences of these threads, a bit each
    };

    struct element {
        std::size_t offset = 0, bytes = 0;
    };

    template <class Each> void each_granule(std::size_t offset, std::size_t bytes, Each&& each);
    void stored(std::size_t offset, std::size_t bytes, reached so_far);
    bool is_word(std::size_t granule) const { return word_granules_.contains(granule); }
    std::uint8_t own_bit() const { return static_cast<std::uint8_t>(1U << thread_); }
    void hold(std::size_t word);
    bool is_held(std::size_t granule) const;
    void complain(const char* what, std::size_t offset);

    domain domain_;
    std::span<const std::byte> memory_;
    std::uint8_t thread_ = 0;
    std::vector<use> use_;                          // by granule
    std::vector<progress> reached_;                 // by granule
    std::vector<std::size_t> stored_;               // granules that are not durable
    std::array<std::vector<std::size_t>, 8> named_; // by thread: what its next commit publishes
    std::vector<held> held_;
    static inline follower follow_ = nullptr;
    std::unordered_set<std::size_t> words_, word_granules_; // that commits have stored
    std::array<element, 8> elements_;                       // by thread: announced, stored once
    std::array<std::unordered_set<std::size_t>, 8>
        due_; // by thread: words that its commit may store
    std::uint64_t nodes_ = 0, commits_ = 0;
    std::string wrong_;
};

} // namespace hf::check
