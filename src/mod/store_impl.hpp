// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The volatile side of MOD's part of a pool.
//
// (1) A root's writers hold its lock; a member's writers that of its family. 'owner' is the root
//     whose word changes. Several locks are taken in the order of the cells' indices.
// (2) A snapshot pins its owner at the store's sequence number before it reads the word; a commit
//     scans the pins after it has stored the word. So a node that commit s retired is reclaimed
//     only when no pin is below s. A reader that pins later reads a word that does not reach the
//     node.
// (3) A retired node is reclaimed only when the word of commit s is durable, too: at the owner's
//     next commit, behind its fence. A writer on another thread than the last writer's stores the
//     cell's word again first. If nodes are shared, other roots' commits up to s must also be
//     durable (retire.cpp).
// (4) Lock order: roots, then sharing, then the node space, then the heap.
#pragma once

#include <base/writer_lock.hpp>
#include <mod/kinds.hpp>
#include <mod/node_space.hpp>

#include <condition_variable>
#include <map>
#include <optional>
#include <thread>
#include <unordered_map>

namespace hf::mod {

inline constexpr unsigned pin_slots = 32;

struct alignas(line_bytes) pin_slot {
    std::atomic<std::uint64_t> at{0}; // sequence number + 1; 0: free
};

struct element_store {
    std::byte* at;
    std::uint64_t next;
};

/// An element about to be stored in place, or two. A writer announces it and looks for pins; a
/// reader pins and looks for it. Either the writer sees the pin and copies instead, or the reader
/// sees the announcement: it withdraws one that is not decided, and helps along one that is.
struct overwriting {
    enum : std::uint32_t { none, announced, decided, withdrawn };
    std::atomic<std::uint32_t> state{none};
    // Stable while a reader that has pinned, and saw 'decided', reads them: overwrite.cpp (5).
    struct element {
        std::atomic<std::byte*> at{nullptr};
        std::atomic<std::uint64_t> next{0};
    };
    std::array<element, 2> elements{};
    std::atomic<std::uint32_t> bytes{0};
    std::atomic<const exchange_record*> record{nullptr}; // of two; null: one

    void announce(std::initializer_list<element_store> stores, std::uint32_t bytes_each,
                  const exchange_record* of) noexcept;
    /// By the writer, and by readers that help: the same bytes. Flushes them.
    void store(hf::medium pm) noexcept;
    void help(hf::medium pm) noexcept;
};

// About a pool's file: how many cells it has room for, MOD's superblock (null: not made yet), and
// what is wrong with MOD's state there.
std::uint64_t cells_max(const pool_file& file);
const superblock* superblock_of(const pool_file& file);
status corrupt(const pool_file& file, const std::string& what);
/// Whether a cell says something that can be. Its word is looked at when the root is opened.
bool sound(const cell* cells, std::uint64_t count, std::uint64_t index);

/// Everything volatile about a root.
struct root::volatile_part {
    std::uint32_t index = 0; // of its cell
    cell* durable = nullptr;
    const kind* what = nullptr;      // null: a member that nobody has opened
    volatile_part* family = nullptr; // the owner, when this is a member
    std::uint32_t member = 0;

    volatile_part& owner() noexcept { return family != nullptr ? *family : *this; }

    std::atomic<std::uint64_t> word{0}; // of the current version: the cell's, or the parent's
    std::atomic<bool> unseen{
        false}; // of a process that reads beside a writer: 'word' is not looked at yet
    std::uint64_t load() const noexcept { return word.load(std::memory_order_seq_cst); }

    // Used in owners only.
    writer_lock lock;
    std::atomic<std::uint64_t> sequence{0};   // of its last commit
    std::atomic<std::uint64_t> durable_to{0}; // its commits up to this one are durable
    std::array<pin_slot, pin_slots> pins{};
    std::atomic<bool> ever_pinned{false};
    std::mutex overflow_lock;
    std::vector<std::uint64_t> overflow; // pins beyond the slots
    struct batch {
        std::uint64_t sequence; // the store's, when they were retired
        std::size_t end;        // in 'retired'
    };
    std::vector<batch> batches; // oldest first
    std::vector<ref> retired;
    std::thread::id last_writer{};
    overwriting in_place;
    // The first line of its cell as it was last stored, word by word: store_word() stores all of
    // it.
    std::array<std::uint64_t, line_bytes / word_bytes> line{};
    // Elements that its last writer stored in place and flushed; null: none.
    std::array<std::atomic<const std::byte*>, 2> unfenced{};
    void note_unfenced(const std::byte* one, const std::byte* other) noexcept {
        unfenced[0].store(one, std::memory_order_release);
        unfenced[1].store(other, std::memory_order_release);
    }
    /// Starts their write-back, by any thread.
    void flush_unfenced(hf::medium pm) const noexcept {
        for (const auto& element : unfenced)
            if (const std::byte* const at = element.load(std::memory_order_acquire); at != nullptr)
                pm.flush(at, 1);
    }
    std::uint64_t exchanged = 0; // number of its last exchange record
    shadow work;                 // of 'writing'
    node_cache cache;

    std::unique_ptr<root> face;
    unsigned commits_unasked = 0;   // since readers in other processes were asked for (reader.cpp)
    version::state* seen = nullptr; // of a process that reads beside a writer: what handles read
};

struct joint_writing::item {
    root::volatile_part* to;
    std::uint64_t word, next;
    shadow* made[2]; // its own, and for the first member of a family its new parent's
    std::size_t made_count;
    bool changed;
};

/// A version's shared part. The first of a chain pins; each other one is an update of its parent.
struct version::state {
    std::atomic<std::uint32_t> shared_by{1};
    store::impl* in = nullptr;
    root::volatile_part* to = nullptr;
    state* parent = nullptr;
    unsigned slot = 0;           // of the pin; pin_slots: in the overflow list
    std::uint64_t pinned_at = 0; // sequence + 1
    std::uint64_t word = 0;      // when done
    bool done = true;            // no more steps
    bool committed = true;       // its nodes are a root's, or were
    shadow work;
    std::unique_ptr<node_cache> cache; // while it works
    std::vector<version> sources;
};

class store::impl {
public:
    impl(pool::impl& in, store& face);
    ~impl();

    /// Looks at what the pool holds, before anything is written. Errors: corrupt.
    static status inspect(const pool::impl& in);
    /// Under salvage: gives up records that inspect() refuses.
    static void give_up_unsound(pool::impl& in);
    /// Before sections are recovered: an arena that was half taken is the heap's again, or ours.
    static status recover_taking(pool::impl& in);
    /// The same; salvage gives up an arena that cannot be one.
    static status settle(pool::impl& in);
    /// After that: redoes, and starts the trace if it is due.
    status start();
    /// Every commit that has returned, on any thread, is durable when it returns.
    void settle() noexcept;
    /// A clean close: the bitmaps say what is in use.
    void settle_for_close() noexcept;
    /// Stops the trace's thread.
    void stop() noexcept;

    result<root*> open(const place& at, const kind& what, std::uint64_t shape);

    // Versions.
    version::state* pin(root::volatile_part& to);
    void unpin(version::state& pinned) noexcept;
    version::state* fresh_state();
    void recycle(version::state* used) noexcept;

    // Beside processes that read, or that write (reader.cpp).
    bool reads_beside() const noexcept { return reads_; }
    /// A version that is current now, in 'to'. Throws std::bad_alloc.
    version::state* pin_announced(root::volatile_part& to);
    void refresh(root::volatile_part& part);
    void look_first(root::volatile_part& part) noexcept;
    static constexpr const char* only_reads =
        "opened with read_only and shared: another process changes it";

    // Commits.
    struct change {
        root::volatile_part* to;
        std::uint64_t word;
        std::span<shadow* const> made; // oldest first; not empty
    };
    /// Requires: the owners' locks held; no root twice. On failure nothing is changed.
    status commit(std::span<const change> changes, node_cache& reclaimed);
    status commit_versions(std::span<const new_version> updates);
    /// Whether the update leaves a whole structure whole: for HF_ASSERT_SLOW.
    bool keeps_valid(const change& c);
    /// Gives back what a shadow made.
    void drop(shadow& made) noexcept { drop(made, made.cache_); }
    void drop(shadow& made, node_cache* to) noexcept; // null: to no cache
    bool overwrite(root::volatile_part& to, std::byte* at, const void* next,
                   std::size_t bytes) noexcept;
    bool exchange(root::volatile_part& to, std::byte* one, std::byte* other,
                  std::size_t bytes) noexcept;
    void prepare(shadow& work, node_cache& cache, root::volatile_part* held = nullptr) noexcept;
    /// The pool is full: what waits only for the next commit's fence is reclaimed now.
    ref take_after_all(shadow& work, std::size_t bytes) noexcept;

    /// An update of this store begins on this thread: false when the thread is in one (it would
    /// wait for itself, or for a thread that waits for it), in a section, and in a child of the
    /// process that opened the pool.
    bool enter() noexcept;
    void leave() noexcept;
    /// For a scope.
    class entered {
    public:
        explicit entered(impl& in) noexcept : in_(in.enter() ? &in : nullptr) {}
        ~entered() {
            if (in_ != nullptr) in_->leave();
        }
        entered(const entered&) = delete;
        entered& operator=(const entered&) = delete;
        explicit operator bool() const noexcept { return in_ != nullptr; }

    private:
        impl* in_;
    };
    /// The shadow of an update that is refused: it makes nothing, its changes go nowhere.
    shadow& refused_work() noexcept;
    status refusal(const char* why = inside_another) const;
    status damaged() const;
    static constexpr const char* inside_another =
        "an update inside another one: mod::update changes several structures in one";
    // A failure may leave the update without the section, or in mode power a part of it.
    static constexpr const char* inside_section =
        "a durable container is changed inside a section, whose log would not have that: change "
        "it before the section or after it";

    status wait_for_trace();
    /// A writer must know which nodes have several parents.
    void await_counts() noexcept {
        if (counts_unknown_ && !trace_done_.load(std::memory_order_acquire)) (void)wait_for_trace();
    }
    status collect();
    /// Whether nodes that the root gave up wait: behind collect(), for the end of a version.
    static bool holds_back(const root& of) noexcept {
        root::volatile_part& owner = of.part_->owner();
        const std::scoped_lock held{owner.lock};
        return !owner.retired.empty();
    }
    store_account account();
    status verify();

    std::unique_ptr<node_cache> lease_cache();
    std::unique_ptr<node_cache> lease_cache_if_possible() noexcept; // null: out of memory
    void return_cache(std::unique_ptr<node_cache> used) noexcept;

    hf::medium medium() const noexcept { return pool_->file->medium(); }
    std::byte* base() const noexcept { return pool_->file->base(); }
    template <class T> T* node_at(ref node) const noexcept {
        return reinterpret_cast<T*>(base() + std::uint64_t{node & ref_max} * granule_bytes);
    }
    store& face() noexcept { return *face_; }
    node_space& space() const noexcept { return space_; }
    superblock* super() const noexcept { return super_; }
    pool::impl& its_pool() const noexcept { return *pool_; }
    const std::uint64_t* words_of(const cell& family, std::uint64_t word) const noexcept;
    cell* cells() const noexcept { return reinterpret_cast<cell*>(super_ + 1); }

private:
    class walk;
    bool is_valid(const root::volatile_part& of, std::uint64_t word);
    bool valid_retired(const root::volatile_part& owner) const noexcept;
    struct chain;
    result<chain> steps_to(const new_version& u) const;
    status check_current(std::span<const chain> chains) const;
    status commit_chains(std::span<chain> chains);
    status make_superblock();
    status create_cells(const place& at, const kind& what, std::uint64_t shape);
    /// Among the first 'count', which a writer in another process may add to meanwhile.
    std::uint32_t find_cell(std::string_view name, std::uint32_t family_plus_1,
                            std::uint64_t count) const noexcept;
    status bind(cell& c, const kind& what, std::uint64_t shape);
    root::volatile_part& part_of(std::uint32_t index);
    status check_word(const root::volatile_part& part) const;
    root* face_of(root::volatile_part& part, const kind& what);
    void redo() noexcept;
    void redo_exchanges() noexcept;
    bool unseen(root::volatile_part& owner) noexcept;
    bool decide(root::volatile_part& owner, std::initializer_list<element_store> stores,
                std::size_t bytes, exchange_record* with) noexcept;
    bool store_whole(root::volatile_part& owner, std::initializer_list<element_store> stores,
                     std::size_t bytes, exchange_record* with) noexcept;
    static void note_stored(root::volatile_part& owner, std::size_t bytes) noexcept;
    void write_record(const root::volatile_part& owner, std::initializer_list<element_store> stores,
                      std::size_t bytes, exchange_record& to) noexcept;
    /// Whether all that this thread did in this store is durable, as far as the thread has seen.
    bool all_durable() const noexcept;
    void note_durable(bool all) const noexcept;

    status commit_to(root::volatile_part& owner, std::span<const change> changes, bool shares,
                     node_cache& reclaimed);
    status commit_unrelated(std::span<const change> changes, bool shares, node_cache& reclaimed);
    ref new_parent(root::volatile_part& family, std::span<const change> changes);
    std::uint64_t new_word(root::volatile_part& owner, std::span<const change> changes);
    /// A root's new word, and the changes that it brings.
    struct swing {
        root::volatile_part* owner;
        std::span<const change> changes;
        std::uint64_t word;
        ref old_parent; // of a family: the node that the last word named
    };
    template <class Visit>
    void for_each_made(std::span<const change> changes, Visit&& visit) const;
    void flush_made(std::span<const change> changes) const noexcept;
    void store_in_order(const swing& s) noexcept;
    void store_plainly(const swing& s) noexcept;
    bool append_whole(std::span<const swing> swings) noexcept;
    void finish(const swing& s, node_cache& reclaimed) noexcept;
    void commit_fenced(const swing& s, node_cache& reclaimed) noexcept;
    void before_fence(root::volatile_part& owner) noexcept;
    void store_again(root::volatile_part& owner) noexcept;
    void publish(root::volatile_part& owner, std::uint64_t word,
                 std::span<const change> changes) noexcept;
    void store_word(root::volatile_part& owner, std::uint64_t word) noexcept;
    void store_stamped(cell& to, std::uint64_t word, std::uint64_t stamp) noexcept;
    void count_shared(std::span<const change> changes);
    void retire(root::volatile_part& owner, std::span<const change> changes, ref old_parent,
                node_cache* reuse = nullptr) noexcept;
    void apply(root::volatile_part& owner, const root::volatile_part& of, const shadow& made,
               node_cache* reuse);
    bool is_kept(const root::volatile_part& of, const shadow::given_up& step);
    bool can_reuse(root::volatile_part& owner) noexcept;
    void release(root::volatile_part& owner, const root::volatile_part& of, ref node,
                 std::uint32_t context);
    /// Takes one parent from a node; false when it was the last.
    bool unshare(ref node);
    bool unshare_locked(ref node);
    /// The state of other roots' words around a fence.
    struct others {
        std::uint64_t durable_to = ~std::uint64_t{0}; // all commits up to this one are durable
        // Made this thread's own, and their last commits.
        std::array<std::pair<root::volatile_part*, std::uint64_t>, 8> adopted;
        unsigned count = 0;
    };
    others before_reclaim(const root::volatile_part* owner) noexcept;
    bool adopt_word(root::volatile_part& of) noexcept;
    std::uint64_t after_fence(root::volatile_part* owner, const others& found) noexcept;
    void reclaim(root::volatile_part& owner, node_cache& to, std::uint64_t durable_to) noexcept;
    std::uint64_t oldest_pin(root::volatile_part& owner) noexcept;
    static std::uint64_t oldest_own_pin(root::volatile_part& owner) noexcept;
    void mark_sharing() noexcept;
    bool durable_on_return(std::span<const change> changes) const noexcept;
    result<root*> open_beside(const place& at, const kind& what, std::uint64_t shape);
    bool find_superblock();
    status differs(const place& at, const cell& c, const std::string& expected) const;
    std::optional<std::uint64_t> word_in_file(const root::volatile_part& part) const noexcept;
    static status check_sequence(const pool_file& file);
    bool announce(std::uint64_t number) noexcept;
    void withdraw(std::uint64_t number) noexcept;
    void look_again(root::volatile_part& part);
    void let_read() noexcept;
    void tell_sequence(std::uint64_t number) noexcept;
    void ask_readers() noexcept;
    std::uint64_t released_by_readers(root::volatile_part& owner) noexcept;
    bool await_older_readers(bool may_wait) noexcept;
    std::string held_back() const;

    status trace();
    status compare_shared(const walk& all);
    status compare_slots(const walk& all);
    bool untouched();
    void run_trace(bool may_wait) noexcept;

    static std::uint64_t next_number() noexcept;

    pool::impl* pool_;
    store* face_;
    const std::uint64_t number_ = next_number(); // unique among this process's stores
    superblock* super_ = nullptr;
    std::atomic<std::uint64_t> sequence_{0}; // commits since the opening, from 'first_sequence_' on
    const bool reads_;                       // beside a writer
    reader_words* const words_; // for, or of, a writer that lets others read; else null
    std::uint64_t first_sequence_ = 0;
    std::atomic<std::uint64_t> released_to_{0}; // readers see nothing that was retired up to here
    bool held_back_ = false; // the trace has ended, older readers hold back; guarded by trace_lock_
    std::mutex announced_lock_; // guards what follows
    std::map<std::uint64_t, unsigned>
        announced_; // numbers, and how many of this process's versions have them
    // Roots that own a word, looked at without a lock: only ever more.
    std::vector<root::volatile_part*> owners_;
    std::atomic<std::size_t> owner_count_{0};
    mutable node_space space_;
    std::mutex roots_lock_;                                   // guards what follows
    std::vector<std::unique_ptr<root::volatile_part>> roots_; // by cell; null: not looked at
    std::mutex redo_lock_;                                    // guards what follows
    std::uint64_t redo_number_ = 0;
    std::vector<cell*> redo_cells_; // of the last record: their words may not be durable in place
    struct {
        unsigned turn = 0;                          // which record is next
        std::array<const std::byte*, 2> elements{}; // of the one before; null: none
        std::thread::id by{};                       // the thread that stored and flushed them
    } exchange_;

    std::mutex sharing_lock_;
    std::unordered_map<ref, std::uint32_t> sharing_; // parents beyond the first
    std::atomic<std::size_t> sharing_count_{0};
    std::atomic<bool> uncounted_{false}; // memory ran out: nothing is reclaimed any more

    std::mutex states_lock_; // guards what follows
    std::vector<std::unique_ptr<version::state>> unused_states_;
    std::vector<std::unique_ptr<node_cache>> caches_;
    std::atomic<std::size_t> live_states_{0};

    std::thread tracing_;
    // superblock::shares is 1, and not only stored: another thread's store may not be flushed yet.
    std::atomic<bool> sharing_durable_{false};
    std::atomic<bool> stop_trace_{false};
    std::atomic<bool> trace_done_{true};
    bool trace_failed_ = false;              // valid when it is done
    bool was_clean_ = false;                 // when it was opened
    bool counts_unknown_ = false;            // until it is done: nodes may have several parents
    std::vector<std::uint64_t> trace_words_; // the cells' words at the opening
    std::mutex trace_lock_;                  // guards what follows
    std::condition_variable traced_;
    status trace_outcome_;
};

} // namespace hf::mod
