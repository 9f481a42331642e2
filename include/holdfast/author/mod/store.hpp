// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD: durable structures by functional shadowing. An update writes only memory that no version
// names yet, and becomes a version by the store of one word. Authors build structures on this
// header; users include <holdfast/mod/map.hpp>, set, vector, stack, queue.
// docs/guide/mod-recipe.md
//
//   root cell ── word ──> nodes of the current version        (named, durable; docs/format/mod.md)
//
// (1) A node that a durable word may reach is never stored to. Exception: while nobody holds a
//     version, one store may replace one element, or a record two of them (writing::overwrite,
//     exchange). A shadow's nodes are fresh: made since it began, reachable from nothing durable.
// (2) A commit flushes every fresh node, fences, then stores the root's word: its one ordering
//     point. A crash keeps the word's old value or its new one, and both reach whole nodes.
// (3) A commit retires the nodes that it replaced. A retired node is reused only when the new word
//     is durable and no snapshot is older than that commit.
// (4) Every node has one parent, except those in a volatile table of counts (sharing). So an update
//     touches the nodes it replaces and no others.
// (5) Which nodes are in use is not stored while the pool is open. After a crash a trace from the
//     roots finds it. Until the trace is done, fresh nodes come from memory that held none before.
#pragma once

#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hf::mod {

/// A node's place, in granules from the pool's base. 0: no node. shadow::make never sets bit 31: a
/// structure may use it.
using ref = std::uint32_t;
inline constexpr std::uint64_t granule_bytes = 16;
inline constexpr ref ref_max = 0x7fff'ffff;
/// Nodes lie in the first 32 GiB of a pool.
inline constexpr std::uint64_t reach_bytes = (std::uint64_t{ref_max} + 1) * granule_bytes;
/// Largest node.
inline constexpr std::size_t node_bytes_max = std::size_t{1} << 30;

/// When a committed update survives a power failure. by_next_section takes 1 ordering point; a
/// crash may keep later sections of the thread and lose the update. on_return takes 2, and no
/// update is lost that a snapshot has seen.
using hf::durability;

/// Receives nodes: one call for each reference to a node.
class visitor {
public:
    /// 'bytes' is the least size the node must have. 'context' is the structure's own: it comes
    /// back with the call for the node's children.
    virtual void node(ref at, std::size_t bytes, std::uint32_t context) = 0;
    /// Reports that the node itself holds so many of the structure's elements: see
    /// kind::tells_elements.
    virtual void elements(std::uint64_t) {}

protected:
    ~visitor() = default;
};

/// What reclamation must know of a kind of structure. 'top' and 'children' read untrusted bytes
/// when a pool is verified: they bound every count by the size that the node was said to have.
struct kind {
    std::uint32_t id; // durable, never 0: see builtin_kind
    const char* name; // for people: "map"
    /// Nodes that a root's word names.
    void (*top)(visitor& to, const std::byte* base, std::uint64_t word, std::uint64_t shape);
    /// The nodes that a node names. 'bytes': its slot, at least what the visitor was given.
    void (*children)(visitor& to, const std::byte* node, std::size_t bytes, std::uint32_t context,
                     std::uint64_t shape);
    /// Whether a node with several parents may be reached with either context. Null: with equal
    /// ones only. In a circle a node lies below itself, with another context. With both contexts
    /// 'children' names the same nodes in the same order: verification compares them.
    bool (*alike)(const std::byte* node, std::uint32_t a, std::uint32_t b) = nullptr;
    /// Whether 'children' reports the elements of every node. Verification compares their number
    /// with the upper half of the root's word.
    bool tells_elements = false;
    /// Whether every element is at the place where a search looks for it. Null: not known.
    /// Verification calls it when all nodes that the word leads to are whole.
    bool (*well_placed)(const std::byte* base, std::uint64_t word, std::uint64_t shape) = nullptr;
};
/// Kinds of this library; users' own start at 1000.
namespace builtin_kind {
inline constexpr std::uint32_t family = 1, hash_trie = 2, vector = 3, stack = 4, queue = 5,
                               ordered_map = 6, cache = 7, users = 1000;
}

namespace detail {

/// Zeros, read if a damaged structure leads out of its pool. No node's fixed part, nor any leaf or
/// chunk, has more bytes. Strings and wide leaves have counts, which are bounded before.
inline constexpr std::size_t nowhere_bytes = std::size_t{512} << 10;
alignas(64) extern std::byte nowhere[nowhere_bytes];

/// The number of bytes that refs may lead to: the largest size that the pool can ever have, from
/// its header. All of them can be read. Growth stores the same number again: no race.
#if defined(__GNUC__)
__attribute__((no_sanitize("thread")))
#endif
inline std::uint64_t
reach_of(const std::byte* base) noexcept {
    return *reinterpret_cast<const std::uint64_t*>(base + 72);
}
/// A node of a pool if its first 'bytes' are in the pool, else 'nowhere'.
inline const std::byte* bytes_at(const std::byte* base, ref node, std::size_t bytes) noexcept {
    const std::uint64_t at = std::uint64_t{node & ref_max} * granule_bytes;
    if (at + bytes > reach_of(base)) [[unlikely]]
        return nowhere;
    return base + at;
}
/// Whether 'bytes' from 'at' on lie in the pool. For results of bytes_at.
inline bool within(const std::byte* base, const std::byte* at, std::uint64_t bytes) noexcept {
    const auto offset = static_cast<std::uint64_t>(at - base);
    const std::uint64_t reach = reach_of(base);
    return offset <= reach && bytes <= reach - offset;
}

} // namespace detail

class store;
class root;
class shadow;
class version;

/// MOD's part of a pool, for open_options::engines.
engine_ptr engine() noexcept;

/// The nodes that an update makes and gives up, until its commit. Not thread-safe.
class shadow {
public:
    /// Room for a node of 'bytes'; sizes that are multiples of 64 start a line. 0 when the pool is
    /// full: then failed() holds from here on, and the commit reports pool_full.
    ref make(std::size_t bytes);
    /// The node; change it only if it is fresh. If 'node' leads out of the pool: zeros, only to be
    /// read.
    template <class T> T* at(ref node, std::size_t bytes = sizeof(T)) const noexcept {
        return reinterpret_cast<T*>(const_cast<std::byte*>(detail::bytes_at(base_, node, bytes)));
    }
    const std::byte* base() const noexcept { return base_; }
    /// Whether this shadow made the node: then it may be changed in place.
    bool fresh(ref node) const noexcept;
    /// The new version has another node in this one's place. Its children are in that node, or were
    /// given up themselves. Call it for parents before children.
    void replaced(ref node, std::uint32_t context = 0);
    /// The new version has neither this node nor anything below it.
    void released(ref node, std::uint32_t context = 0);
    /// The new version adds a parent to this node, which belongs to a committed version already.
    void shared(ref node, std::uint32_t context = 0);
    bool failed() const noexcept { return failed_; }
    /// Fails an update that cannot be done (limits of the structure): commit reports pool_full.
    void fail() noexcept { failed_ = true; }
    /// Fails an update that met damage: commit reports corrupt.
    void fail_damaged() noexcept { failed_ = damaged_ = true; }
    /// Bytes of a fresh node that may be stored to; 0 if the node is not fresh.
    std::size_t room(ref node) const noexcept;
    store& its_store() const noexcept { return *store_; }

private:
    friend class store;
    struct made {
        ref node;
        std::uint32_t granules;
    };
    enum class step : std::uint32_t { replaced, released, shared };
    struct given_up {
        ref node;
        step what;
        std::uint32_t context;
    };
    /// Whether the index finds every node that may be changed: for assertions.
    bool valid() const noexcept;
    std::size_t find(ref node, bool given_back = false) const noexcept;
    void grow();
    void index(std::size_t position);
    void forget() noexcept;
    std::vector<made> fresh_;          // a node given back has no granules
    std::vector<given_up> steps_;      // in order: counts depend on it
    std::vector<std::uint32_t> index_; // position + 1 by node, open addressing; when there are many
    std::array<std::uint64_t, 4> seen_{}; // a filter before both: most nodes asked for are old
    std::size_t fresh_from_ = 0;   // nodes made before are shared: no longer changed in place
    std::uint64_t made_bytes_ = 0; // of the nodes in 'fresh_'
    bool shares_ = false;          // a step is 'shared'
    store* store_ = nullptr;
    std::byte* base_ = nullptr;
    struct node_cache* cache_ = nullptr;
    void* held_ = nullptr; // the root whose writer this works for, volatile part
    bool failed_ = false;
    bool damaged_ = false;
};

/// A version, committed or not, of a root's contents: a value. A copy shares it. While one lives,
/// everything that it names stays readable, on any thread, whatever is committed meanwhile. Memory
/// that later commits retire waits.
///
/// Requires: it ends before the pool is closed: that stops the process otherwise.
/// Threads:  different objects may be used on different threads, as with std::shared_ptr.
class version {
public:
    version() noexcept = default;
    version(const version&) noexcept;
    version(version&&) noexcept;
    version& operator=(version) noexcept;
    ~version();

    explicit operator bool() const noexcept { return state_ != nullptr; }
    std::uint64_t word() const noexcept { return word_; }
    const std::byte* base() const noexcept;
    root* its_root() const noexcept;

    /// A pure update: 'change(shadow, word)' returns the word of the version to come. Ordering: 0.
    template <class Change> version updated(Change&& change) const {
        version next = derived();
        next.word_ = change(next.work(), word_);
        next.done();
        return next;
    }
    /// The same in steps, for batches: nodes made since derived() are changed in place.
    version derived() const;
    shadow& work() noexcept;
    void set_word(std::uint64_t word) noexcept { word_ = word; }
    /// Ends the steps: from here on versions derived from this one treat its nodes as old.
    void done() noexcept;
    /// Makes the commit of this version require that 'source', a version of any root, is still
    /// current, because they share nodes. The commit does not look at the word of 'source'
    /// otherwise.
    void depends_on(const version& source);

private:
    friend class root;
    friend class store;
    struct state;
    version(state* given, std::uint64_t word) noexcept : state_(given), word_(word) {}
    state* state_ = nullptr;
    std::uint64_t word_ = 0;
};

/// A new version for a root.
struct new_version {
    root* to;
    const version* next;
};

/// A named, durable place of one version: the volatile side of its cell. Lives as long as the pool
/// is open.
///
/// Threads: word() and read() on any thread at any time; writers wait for each other. A thread is
///          in one update of a store at a time: another one inside its callback is refused.
class root {
public:
    /// The current version's word. Only a writer, or a caller that knows that no writer runs, may
    /// follow it.
    std::uint64_t word() const noexcept;
    const std::byte* base() const noexcept { return base_; }
    store& its_store() const noexcept { return *store_; }
    std::uint64_t shape() const noexcept { return shape_; }
    /// The current version, kept readable. Never blocks.
    version read();
    /// For a process that reads beside a writer (open_options::shared): from here on word(), and
    /// reads through handles, show the version that is current now. Before, they show the version
    /// at a handle's first read, or at the last refresh. What was read before may become invalid.
    /// In other processes it does nothing: there word() is current. Throws std::bad_alloc.
    void refresh();

    durability when_durable() const noexcept { return durability_; }
    void set_durability(durability wanted) noexcept { durability_ = wanted; }

    /// One update of the current version, alone with it: there is no other writer, and only nodes
    /// are allocated meanwhile. The destructor drops it unless it was committed.
    class writing {
    public:
        writing(writing&&) = delete;
        ~writing();
        std::uint64_t word() const noexcept { return word_; }
        shadow& work() noexcept { return *work_; }
        /// Ordering: 1 point, 2 with durability::on_return.
        /// Errors:   pool_full; corrupt, once damage was found; bad_argument inside another update
        ///           of the store; nothing is changed.
        status commit(std::uint64_t next);
        /// Instead of a commit: stores one element of the current version in place. That takes one
        /// store, which a failure keeps or does not. So no node is copied, provided that nobody
        /// holds a version of this root and no nodes are shared. Otherwise it returns false and
        /// changes nothing, and the update goes on as usual.
        ///
        /// Requires: 'at' in a node of the current version, 'bytes' 1, 2, 4 or 8, aligned to them.
        /// Ordering: 1 point.
        /// Threads:  a snapshot that comes in between helps the store along, or prevents it: it
        ///           never waits and never sees an element change.
        bool overwrite(std::byte* at, const void* next, std::size_t bytes) noexcept;
        /// Like overwrite, but exchanges two elements, by a record of both. It also returns false
        /// while another root exchanges elements. Durable on return, whatever the root's
        /// durability.
        ///
        /// Requires: both elements as for overwrite, and two different ones.
        /// Ordering: 1 point; 2 if something that this thread, or this root's last writer, did in
        ///           the store is not durable and in no record.
        /// Crash:    both are exchanged, or neither.
        bool exchange(std::byte* one, std::byte* other, std::size_t bytes) noexcept;

    private:
        friend class root;
        explicit writing(root& to);
        root* to_;
        shadow* work_;
        std::uint64_t word_;
        bool open_ = true;
        bool refused_ = false; // inside another update: its shadow makes nothing
    };
    writing write() { return writing(*this); }

    /// Commits 'next' if it was derived from the current version.
    ///
    /// Ordering: 1 point, 2 with durability::on_return. Failure-atomic.
    /// Errors:   conflict (another commit came first), pool_full; as writing::commit; nothing is
    ///           changed.
    status commit(const version& next);

private:
    friend class store;
    friend class version;
    friend class joint_writing;
    struct volatile_part;
    root(store& of, volatile_part* part) noexcept;
    store* store_;
    std::byte* base_;
    volatile_part* part_;
    std::uint64_t shape_ = 0;
    durability durability_ = durability::by_next_section;
    std::uint32_t cell_; // its cell's index: a debugger finds the rest in the pool (tools/gdb)
};

/// Names a root, or a member of a family: roots under one parent, whose word changes all of them at
/// once. A commit to one member copies the parent: one more line. Source: MOD §5.2, CommitSiblings.
struct place {
    std::string_view name;
    std::string_view family = {};               // none: a root of its own
    std::vector<std::string_view> members = {}; // the family's, to create it
};

/// One section over several roots of a store, members of a family or not. It excludes all other
/// writers of these roots. Cheaper than versions if there is no concurrency to win. The destructor
/// drops it unless it was committed. For structures: <holdfast/mod/update.hpp>.
class joint_writing {
public:
    /// Waits for other writers of any of them. Requires: at least one root.
    explicit joint_writing(std::span<root* const> roots);
    joint_writing(joint_writing&&) = delete;
    ~joint_writing();
    std::uint64_t word(std::size_t i) const noexcept;
    shadow& work(std::size_t i) noexcept;
    /// Sets the word that root 'i' will have.
    void set_word(std::size_t i, std::uint64_t next) noexcept;
    /// Ordering, crash: as store::commit of the roots whose words were set.
    ///
    /// Errors:   as store::commit. bad_argument inside another update of the store, and if a root
    ///           appears twice.
    status commit();

private:
    struct item;
    void release() noexcept;
    store* store_;
    std::vector<item> items_;
    std::vector<void*> locked_;     // owners' volatile parts
    const char* refused_ = nullptr; // why; null: it is not refused
};

struct store_account {
    std::uint64_t nodes;        // in use, or retired and not reclaimed
    std::uint64_t node_bytes;   // their slots
    std::uint64_t arena_bytes;  // memory taken from the pool's heap for nodes
    std::uint64_t retired;      // of 'nodes', those that wait
    std::uint64_t shared_nodes; // nodes with more than one parent
};

/// Longer strings (a key and its value together) have chunks of memory of their own.
inline constexpr std::size_t slotted_string_bytes_max = 8184;
/// Whether memory given up by strings of so many bytes can serve strings of 'wanted' bytes next: of
/// the same size class, or, among large ones, of at least half the size.
bool string_memory_serves(std::size_t given_up_bytes, std::size_t wanted_bytes) noexcept;

/// MOD's part of an open pool.
class store {
public:
    /// Requires: the pool was opened with mod::engine().
    static store& in(const pool& where);

    /// The root of this name; made if it does not exist. 'what' and 'shape' are kept with it.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout if it holds something else, pool_full, limit_reached, bad_argument
    ///           (names have 1 to 63 bytes; 'name' is not among the family's members).
    result<root*> open(const place& at, const kind& what, std::uint64_t shape);

    /// Commits several roots' new versions: all or none.
    ///
    /// Ordering: members of one family: 1 point, 2 with durability::on_return. Unrelated roots: 2
    ///           points, durable on return.
    /// Crash:    all of them or none.
    /// Errors:   conflict, pool_full; as root::writing::commit; nothing is changed.
    /// Source:   MOD §5.2, CommitSiblings and CommitUnrelated.
    status commit(std::span<const new_version> updates);
    status commit(std::initializer_list<new_version> updates) {
        return commit(std::span<const new_version>(updates.begin(), updates.size()));
    }

    /// Makes every commit that has returned, on any thread, durable; in mode power on the disk,
    /// also within a durable_together. The store's part of hf::settle(). Flushes a line for each
    /// root that was changed.
    ///
    /// Ordering: 1 point.
    void settle() noexcept;

    /// Waits until the trace after a crash is done.
    ///
    /// Errors:   missing_engine (a kind that this program does not know), corrupt: then lost memory
    ///           stays lost, and all else goes on.
    status wait_for_trace();
    /// Reclaims all nodes that no snapshot holds back, and gives memory without a node in use back
    /// to the pool's heap.
    ///
    /// Errors:   bad_argument inside an update; those of the trace.
    /// Threads:  waits for the trace and, like a writer, for other writers.
    status collect();
    store_account account();
    /// Visits everything that MOD has taken from the pool's heap: superblock, arenas.
    void for_each_block(void (*visit)(void* context, const void* block), void* context) const;
    /// Follows every reference from every root, with bounds. Compares what it reaches with the
    /// nodes known to be in use, with the counts in the roots' words, and with the table of shared
    /// nodes.
    ///
    /// Cost:     reads every node.
    /// Errors:   corrupt, with the place; missing_engine: a kind that this program does not know.
    status verify();

    class impl;
    impl& internals() const noexcept { return *impl_; }
    explicit store(pool::impl& in);
    ~store();

private:
    std::unique_ptr<impl> impl_;
};

/// Registers users' own kinds, before the pool is opened. Ids from builtin_kind::users on.
void add_kind(const kind& what);

} // namespace hf::mod
