// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commits: flush all that a shadow made, one fence, one word; then retire what it replaced.
//                                                                   MOD §5.2, §5.4
//
// That is for media that lose caches. Elsewhere no commit waits for another, and what it replaced
// serves the next update at once, if nobody holds a version:
//
// (1) In an ordered medium the word is stored behind the nodes, and that is all.
// (2) In a batched medium the lines of nodes and words enter the log together, while it is held
//     (persist/line_log.hpp). So a batch has all of an update or nothing, and needs no record of
//     it. A line that several updates of a batch have written is in it once.
// (3) An update of more lines than the log holds at once takes the way of fenced media: its nodes
//     before its words, perhaps in several batches.
#include <base/assert.hpp>
#include <base/of_thread.hpp>
#include <mod/announced.hpp>
#include <mod/store_impl.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace hf::mod {

/// Readers in other processes learn of a commit only when its word is where they look: (1) of
/// reader.cpp.
bool store::impl::durable_on_return(std::span<const change> changes) const noexcept {
    return words_ != nullptr || std::ranges::any_of(changes, [](const change& c) {
               return c.to->face->when_durable() != durability::by_next_section;
           });
}

void store::impl::prepare(shadow& work, node_cache& cache, root::volatile_part* held) noexcept {
    HF_ASSERT_SLOW(held == nullptr || held->lock.is_held());
    HF_ASSERT_SLOW(work.fresh_.empty() && work.steps_.empty() && !work.failed_);
    work.held_ = held;
    work.store_ = face_;
    work.base_ = base();
    work.cache_ = &cache;
}

status store::impl::damaged() const {
    return {
        errc::corrupt,
        pool_->file->path() +
            ": corrupt: expected a sound structure of MOD, found a damaged one, and nothing was "
            "changed: holdfast verify says where"};
}

void store::impl::drop(shadow& made, node_cache* to) noexcept {
    HF_ASSERT_SLOW(made.valid());
    for (const shadow::made& m : made.fresh_) {
        if (m.granules == 0) continue;
        if (to != nullptr) space_.give(*to, m.node);
        else space_.give_now(m.node);
    }
    made.forget();
}

status store::impl::commit(std::span<const change> changes, node_cache& reclaimed) try {
    HF_ASSERT(!changes.empty());
    HF_ASSERT_SLOW(std::ranges::all_of(
        changes, [](const change& c) { return !c.made.empty() && c.to->owner().lock.is_held(); }));
    if (space_.damaged()) return damaged();
    if (pool_->file->read_only())
        return {errc::permission,
                fmt::format("{}: permission: the pool is open read-only", pool_->file->path())};
    bool shares = false;
    for (const change& c : changes)
        for (const shadow* made : c.made) {
            if (made->damaged_) return damaged();
            if (made->failed_) return pool_->blocks.full("an update", held_back());
            shares |= made->shares_;
        }
    HF_ASSERT_SLOW(std::ranges::all_of(changes, [&](const change& c) { return keeps_valid(c); }));
    HF_ASSERT_SLOW(std::ranges::all_of(changes, [&](const change& c) {
        return std::ranges::count(changes, c.to, &change::to) == 1;
    }));
    if (shares) mark_sharing();
    root::volatile_part& owner = changes.front().to->owner();
    for (const change& c : changes)
        if (&c.to->owner() != &owner) return commit_unrelated(changes, shares, reclaimed);
    return commit_to(owner, changes, shares, reclaimed);
} catch (const std::bad_alloc&) { // before anything was published: nothing throws behind it
    return out_of_memory(pool_->file->path());
}

/// Before a node has two parents, the pool says durably that the next open must count.
void store::impl::mark_sharing() noexcept {
    if (sharing_durable_.load(std::memory_order_acquire)) return;
    medium().store_word(&super_->shares, 1);
    medium().fence();
    sharing_durable_.store(true, std::memory_order_release);
}

/// Calls 'visit(address, bytes)' for the nodes that the changes have made.
template <class Visit>
void store::impl::for_each_made(std::span<const change> changes, Visit&& visit) const {
    for (const change& c : changes)
        for (const shadow* made : c.made) {
            HF_ASSERT_SLOW(made->valid());
            persist::thread_counters().pm_bytes += made->made_bytes_;
            for (const shadow::made& m : made->fresh_) {
                if (m.granules == 0) continue;
                const std::uint64_t length = m.granules * granule_bytes;
                trace::announce(announced::named, node_at<std::byte>(m.node), length);
                visit(node_at<std::byte>(m.node), length);
            }
        }
}

void store::impl::flush_made(std::span<const change> changes) const noexcept {
    const hf::medium pm = medium();
    for_each_made(changes, [&](const std::byte* at, std::size_t bytes) { pm.flush(at, bytes); });
}

/// This thread's fence does not wait for what another thread flushed, or stored past the caches:
/// (3) of store_impl.hpp. And a section whose mark is due may have read what this update will
/// change or give back. If it were still pending, recovery would run it again, and it would read
/// that (commit_marks.hpp, 2).
void store::impl::before_fence(root::volatile_part& owner) noexcept {
    HF_ASSERT_SLOW(owner.family == nullptr && owner.lock.is_held());
    if (const auto self = std::this_thread::get_id(); owner.last_writer != self) {
        store_again(owner);
        owner.last_writer = self;
    }
    pool_->lanes.store_due_marks();
}

/// Makes the cell's word, and its stamp, this thread's own stores: its fence waits for them.
void store::impl::store_again(root::volatile_part& owner) noexcept {
    // A batched medium has the word in its log.
    if (!medium().loses_caches() || medium().loses_batches() || owner.family != nullptr) return;
    medium().flush(owner.durable, 2 * word_bytes);
    owner.flush_unfenced(medium());
    const std::uint64_t word = owner.word.load(std::memory_order_relaxed);
    store_word(owner, word);
}

/// The word that 'owner' gets: the change's own, or that of a new parent of the members.
std::uint64_t store::impl::new_word(root::volatile_part& owner, std::span<const change> changes) {
    return &owner == changes.front().to ? changes.front().word : new_parent(owner, changes);
}

/// 0 when the pool is full. Source: MOD Fig. 8c.
ref store::impl::new_parent(root::volatile_part& family, std::span<const change> changes) {
    shadow& work = family.work;
    const std::size_t members = family.durable->members;
    HF_ASSERT(family.family == nullptr && members > 0);
    const ref made = work.make(members * word_bytes);
    if (made == 0) return 0;
    auto* words = work.at<std::uint64_t>(made);
    const auto old = static_cast<ref>(family.word.load(std::memory_order_relaxed));
    if (old != 0) std::copy_n(node_at<const std::uint64_t>(old), members, words);
    else std::fill_n(words, members, 0);
    for (const change& c : changes) {
        HF_ASSERT(c.to->family == &family && c.to->member < members);
        words[c.to->member] = c.word;
    }
    return made;
}

/// Single and siblings: MOD Fig. 8b, 8c. Differs: replaced nodes wait until the word that replaces
/// them is durable.
status store::impl::commit_to(root::volatile_part& owner, std::span<const change> changes,
                              bool shares, node_cache& reclaimed) {
    const hf::medium pm = medium();
    const ref old_parent = &owner == changes.front().to
                               ? 0
                               : static_cast<ref>(owner.word.load(std::memory_order_relaxed));
    const std::uint64_t word = new_word(owner, changes);
    if (owner.work.failed_) return pool_->blocks.full("an update", held_back());
    if (shares) count_shared(changes);
    before_fence(owner);
    persist::thread_counters().pm_bytes += word_bytes;
    ++persist::thread_counters().sections;
    const swing only{&owner, changes, word, old_parent};
    if (pm.keeps_order()) {
        store_in_order(only);
        if (durable_on_return(changes)) pm.fence();
        finish(only, reclaimed);
    } else if (append_whole({&only, 1})) {
        finish(only, reclaimed);
    } else {
        commit_fenced(only, reclaimed);
    }
    return {};
}

/// Upholds (1).
void store::impl::store_in_order(const swing& s) noexcept {
    if (trace::heard()) [[unlikely]]
        for_each_made(s.changes, [](const std::byte*, std::size_t) {});
    else
        for (const change& c : s.changes)
            for (const shadow* made : c.made)
                persist::thread_counters().pm_bytes += made->made_bytes_;
    medium().order();
    store_plainly(s);
}

/// Stores the word where lines come in the order of their stores, or are held: no write-back.
void store::impl::store_plainly(const swing& s) noexcept {
    constexpr hf::medium memory;
    root::volatile_part& owner = *s.owner;
    trace::announce(announced::commit, &owner.durable->word, word_bytes);
    owner.line[0] = s.word;
    memory.store_word(&owner.durable->word, s.word);
    if (owner.exchanged <= owner.line[cell::stamp_at]) return;
    owner.line[cell::stamp_at] = owner.exchanged; // (7) of overwrite.cpp
    memory.store_word(&owner.durable->stamp, owner.exchanged);
}

/// Half of a batch, at most: the rest may be reserved for the logs of sections.
constexpr std::uint64_t covers_held = 8;

/// Upholds (2). False, and nothing is done: (3), or the medium is not batched.
bool store::impl::append_whole(std::span<const swing> swings) noexcept {
    const hf::medium pm = medium();
    if (!pm.loses_batches()) return false;
    line_log& log = pm.lines();
    std::uint64_t lines = swings.size();
    for (const swing& s : swings)
        for (const change& c : s.changes)
            for (const shadow* made : c.made)
                lines += made->made_bytes_ / line_bytes + 2 * made->fresh_.size();
    if (lines > covers_held * log.cover_lines()) return false;
    log.order(); // first what this thread has flushed: marks of sections (before_fence)
    log.hold(lines);
    lines = swings.size();
    for (const swing& s : swings) {
        for_each_made(s.changes, [&](const std::byte* at, std::size_t bytes) {
            lines += (bytes + line_bytes - 1) / line_bytes;
            log.add(at, bytes);
        });
        store_plainly(s);
        log.add(s.owner->durable, word_bytes);
    }
    log.let_go();
    persist::ended(log, lines);
    return true;
}

/// Behind a word that no failure takes without what came before it: nothing waits for a fence.
void store::impl::finish(const swing& s, node_cache& reclaimed) noexcept {
    publish(*s.owner, s.word, s.changes); // readers see what will stay
    reclaim(*s.owner, reclaimed, ~std::uint64_t{0});
    retire(*s.owner, s.changes, s.old_parent, can_reuse(*s.owner) ? &reclaimed : nullptr);
    note_durable(true);
}

void store::impl::commit_fenced(const swing& s, node_cache& reclaimed) noexcept {
    const hf::medium pm = medium();
    root::volatile_part& owner = *s.owner;
    const bool on_return = durable_on_return(s.changes);
    const others around = owner.batches.empty() ? others{} : before_reclaim(&owner);
    flush_made(s.changes);
    // What the new word reaches is durable before it, and the last word is.
    if (on_return) pm.order();
    else pm.fence();
    const std::uint64_t durable_to = after_fence(&owner, around);
    // (7) of overwrite.cpp. The line goes out with the word.
    owner.line[cell::stamp_at] = std::max(owner.line[cell::stamp_at], owner.exchanged);
    note_durable(on_return);
    // A program that acts on what it reads waits for what is in the log (durable_together). So the
    // word is in the log before anybody can read it.
    const bool in_log = pm.loses_batches();
    if (pm.loses_caches() && !on_return && !in_log) {
        reclaim(owner, reclaimed, durable_to);
        // Last of all: any locked instruction behind it would wait for it.
        publish(owner, s.word, s.changes);
        retire(owner, s.changes, s.old_parent);
        store_word(owner, s.word);
    } else {
        store_word(owner, s.word);
        reclaim(owner, reclaimed, durable_to); // while the word is on its way
        if (on_return) pm.fence();
        else if (in_log) pm.order();
        publish(owner, s.word, s.changes); // readers see what will stay
        retire(owner, s.changes, s.old_parent);
    }
}

/// MOD Fig. 8d, with a redo record for its transaction: the record's durability commits all of it,
/// and the words may follow in any order. A cell's stamp, behind this word and before the next in
/// the same line, shows redo that the cell is past this record.
status store::impl::commit_unrelated(std::span<const change> changes, bool shares,
                                     node_cache& reclaimed) {
    std::vector<change> sorted(changes.begin(), changes.end()); // those of an owner in a row
    std::ranges::sort(sorted, {}, [](const change& c) { return c.to->owner().index; });
    std::vector<swing> swings;
    for (auto at = sorted.begin(); at != sorted.end();) {
        root::volatile_part& owner = at->to->owner();
        const auto end = std::find_if(at, sorted.end(),
                                      [&](const change& c) { return &c.to->owner() != &owner; });
        swings.push_back({&owner, {at, end}, 0, 0});
        at = end;
    }
    if (swings.size() > redo_updates_max)
        return {errc::limit_reached,
                fmt::format(
                    "{}: limit_reached: found {} unrelated roots in a commit, expected at most {}",
                    pool_->file->path(), swings.size(), redo_updates_max)};
    for (swing& s : swings) {
        if (s.owner != s.changes.front().to)
            s.old_parent = static_cast<ref>(s.owner->word.load(std::memory_order_relaxed));
        s.word = new_word(*s.owner, s.changes);
        if (s.owner->work.failed_) return pool_->blocks.full("an update", held_back());
    }
    HF_ASSERT(swings.size() > 1);
    std::scoped_lock held{redo_lock_};
    redo_cells_.reserve(redo_updates_max);
    if (shares) count_shared(changes);
    for (const swing& s : swings) before_fence(*s.owner);
    ++persist::thread_counters().sections;
    if (append_whole(swings)) {
        for (const swing& s : swings) finish(s, reclaimed);
        return {};
    }
    const hf::medium pm = medium();
    const others around = before_reclaim(nullptr);
    for (const swing& s : swings) flush_made(s.changes);
    for (const cell* c : redo_cells_) pm.flush(c, 2 * word_bytes);
    pm.order(); // the nodes, and the words of the record that is about to go
    redo_record& r = super_->redo;
    r.number = ++redo_number_;
    r.count = swings.size();
    for (std::size_t i = 0; i < swings.size(); ++i)
        r.entries[i] = {swings[i].owner->index, swings[i].word};
    r.check = redo_check(r);
    pm.flush(&r, offsetof(redo_record, entries) + r.count * sizeof r.entries[0]);
    pm.fence(); // committed, and durable
    redo_cells_.clear();
    for (swing& s : swings) {
        reclaim(*s.owner, reclaimed, after_fence(s.owner, around));
        trace::announce(announced::commit, &s.owner->durable->word, word_bytes);
        store_stamped(*s.owner->durable, s.word, r.number);
        s.owner->line[cell::stamp_at] = r.number;
        redo_cells_.push_back(s.owner->durable);
        publish(*s.owner, s.word, s.changes);
        retire(*s.owner, s.changes, s.old_parent);
    }
    note_durable(true); // by the record
    return {};
}

/// Stores the word past the caches, because no reader looks at it, together with the rest of its
/// line, unchanged. A whole line sets out at once, and nothing has to be read for it (to the fence
/// 290 ns; a word alone 500, by the caches 345; on an AMD EPYC 95, 105, 160). When the lock changes
/// hands, both threads pass a full barrier: a later writer's store comes later. Nobody stores
/// anything else to this line without the owner's lock.
void store::impl::store_word(root::volatile_part& owner, std::uint64_t word) noexcept {
    HF_ASSERT(owner.family == nullptr && owner.durable != nullptr);
    trace::announce(announced::commit, &owner.durable->word, word_bytes);
    owner.line[0] = word;
    medium().copy(owner.durable, owner.line.data(),
                  medium().loses_caches() ? line_bytes : 2 * word_bytes);
}

/// For readers: the word first. (2) of store_impl.hpp.
void store::impl::publish(root::volatile_part& owner, std::uint64_t word,
                          std::span<const change> changes) noexcept {
    HF_ASSERT(owner.family == nullptr && !changes.empty());
    owner.word.store(word, std::memory_order_seq_cst);
    if (&owner != changes.front().to)
        for (const change& c : changes) c.to->word.store(c.word, std::memory_order_seq_cst);
    const std::uint64_t number = ++sequence_;
    tell_sequence(number);
    owner.sequence.store(number, std::memory_order_release);
}

/// A line keeps a prefix of its stores: a stamp without its word would lose half a commit.
void store::impl::store_stamped(cell& to, std::uint64_t word, std::uint64_t stamp) noexcept {
    HF_ASSERT(to.stamp < stamp);
    std::atomic_ref(to.word).store(word, std::memory_order_release);
    std::atomic_ref(to.stamp).store(stamp, std::memory_order_release);
    medium().flush(&to, 2 * word_bytes);
}

/// The fences of writers on other threads may never wait for what they have stored and flushed. So
/// this thread stores it again, unchanged. A word that changes meanwhile belongs to a commit that
/// has not returned; that commit has made the word before durable. In mode power all of it is in
/// the log.
void store::impl::settle() noexcept {
    if (!pool_->usable().ok() || reads_) return;
    const hf::medium pm = medium();
    const std::size_t owners = owner_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < owners && pm.loses_caches(); ++i) {
        if (pm.loses_batches()) break;
        owners_[i]->flush_unfenced(pm);
        if (owners_[i]->sequence.load(std::memory_order_acquire) != 0) adopt_word(*owners_[i]);
    }
    pm.order();
    pm.promise(); // in a durable_together as well
    note_durable(true);
}

ref store::impl::take_after_all(shadow& work, std::size_t bytes) noexcept {
    if (work.held_ == nullptr) return 0;
    root::volatile_part& owner = *static_cast<root::volatile_part*>(work.held_);
    HF_ASSERT(owner.lock.is_held());
    (void)wait_for_trace(); // after a crash: what the trace has not reached is nobody's before
    store_again(owner);
    ask_readers();
    const others around = before_reclaim(&owner);
    medium().fence();
    reclaim(owner, owner.cache, after_fence(&owner, around));
    space_.give_all(owner.cache);
    space_.trim(); // whole arenas may serve another size
    return space_.take(owner.cache, bytes);
}

// Which threads may begin.

namespace {

// Numbers of the stores that this thread is in an update of; 0: free.
thread_local std::array<std::uint64_t, 4> updating{};
std::atomic<std::uint64_t> stores{0};
// The store in which nothing this thread did is undurable; 0: not known.
thread_local std::uint64_t all_durable_in = 0;

} // namespace

std::uint64_t store::impl::next_number() noexcept { return ++stores; }

bool store::impl::all_durable() const noexcept {
    return all_durable_in == number_ || !medium().loses_caches();
}
void store::impl::note_durable(bool all) const noexcept { all_durable_in = all ? number_ : 0; }

bool store::impl::enter() noexcept {
    if (pool_->file->is_parents() || reads_ || any_section_here()) return false;
    if (!pool_->file->in_memory()) persist::count_this_thread();
    std::uint64_t* free = nullptr;
    for (std::uint64_t& in : updating) {
        if (in == number_) return false;
        if (in == 0) free = &in;
    }
    if (free != nullptr) *free = number_;
    return free != nullptr;
}

void store::impl::leave() noexcept {
    HF_ASSERT_SLOW(std::ranges::count(updating, number_) == 1);
    for (std::uint64_t& in : updating)
        if (in == number_) in = 0;
}

shadow& store::impl::refused_work() noexcept {
    struct work {
        shadow refused;
        node_cache none;
    };
    work& mine = of_thread<work>::get();
    mine.refused.forget();
    prepare(mine.refused, mine.none);
    mine.refused.failed_ = true;
    return mine.refused;
}

status store::impl::refusal(const char* why) const {
    if (status here = pool_->usable(); !here.ok()) return here;
    if (reads_) return hf::refusal(pool_->file->path(), errc::permission, only_reads);
    if (any_section_here()) why = inside_section;
    return {errc::bad_argument, fmt::format("{}: bad_argument: {}", pool_->file->path(), why)};
}

// The basic interface.

root::writing::writing(root& to) : to_(&to) {
    store::impl& in = to.store_->internals();
    if (!in.enter()) {
        refused_ = true;
        work_ = &in.refused_work();
        word_ = in.its_pool().usable().ok() ? to.word() : 0; // a child of fork() has no node of it
        return;
    }
    in.await_counts();
    volatile_part& owner = to.part_->owner();
    owner.lock.lock();
    work_ = &owner.work;
    in.prepare(*work_, owner.cache, &owner);
    word_ = to.part_->load();
}

root::writing::~writing() {
    if (!open_ || refused_) return;
    store::impl& in = to_->store_->internals();
    in.drop(*work_);
    to_->part_->owner().lock.unlock();
    in.leave();
}

status root::writing::commit(std::uint64_t next) {
    if (refused_) return to_->store_->internals().refusal();
    HF_ASSERT(open_); // committed before
    shadow* const made[1] = {work_};
    const store::impl::change change{to_->part_, next, made};
    status s = to_->store_->internals().commit({&change, 1}, to_->part_->owner().cache);
    if (!s.ok()) return s; // the destructor drops it
    open_ = false;
    to_->part_->owner().lock.unlock();
    to_->store_->internals().leave();
    return s;
}

// Several roots.

joint_writing::joint_writing(std::span<root* const> roots)
    : store_((HF_ASSERT(!roots.empty()), roots.front()->store_)) {
    store::impl& in = store_->internals();
    std::vector<root::volatile_part*> owners;
    for (const root* r : roots) {
        HF_ASSERT(r->store_ == store_);
        owners.push_back(&r->part_->owner());
        if (std::ranges::count(roots, r) > 1)
            refused_ = "an update names a structure twice: name it once";
    }
    items_.reserve(roots.size()); // from the first lock on nothing throws
    locked_.reserve(roots.size());
    if (refused_ == nullptr && !in.enter()) refused_ = in.inside_another;
    if (refused_ != nullptr) {
        shadow& none = in.refused_work();
        const bool nodes = in.its_pool().usable().ok(); // a child has none
        for (const root* r : roots)
            items_.push_back({r->part_, nodes ? r->word() : 0, 0, {&none, nullptr}, 1, false});
        return;
    }
    in.await_counts();
    std::ranges::sort(owners, {}, &root::volatile_part::index);
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    for (root::volatile_part* owner : owners) {
        owner->lock.lock();
        in.prepare(owner->work, owner->cache, owner);
        locked_.push_back(owner);
    }
    for (const root* r : roots) {
        root::volatile_part& part = *r->part_;
        in.prepare(part.work, part.owner().cache, &part.owner());
        items_.push_back({&part, part.load(), 0, {&part.work, nullptr}, 1, false});
    }
}

joint_writing::~joint_writing() { release(); }

/// Drops what was not committed. Committed nodes belong to the roots by now.
void joint_writing::release() noexcept {
    store::impl& in = store_->internals();
    if (locked_.empty()) return;
    for (const item& i : items_) in.drop(i.to->work);
    for (auto at = locked_.rbegin(); at != locked_.rend(); ++at) {
        auto& owner = *static_cast<root::volatile_part*>(*at);
        in.drop(owner.work);
        owner.lock.unlock();
    }
    locked_.clear();
    in.leave();
}

std::uint64_t joint_writing::word(std::size_t i) const noexcept {
    HF_ASSERT(i < items_.size());
    return items_[i].changed ? items_[i].next : items_[i].word;
}
shadow& joint_writing::work(std::size_t i) noexcept {
    HF_ASSERT(i < items_.size());
    return *items_[i].made[0];
}
void joint_writing::set_word(std::size_t i, std::uint64_t next) noexcept {
    HF_ASSERT(i < items_.size());
    items_[i].next = next;
    items_[i].changed = true;
}

status joint_writing::commit() {
    if (refused_ != nullptr) return store_->internals().refusal(refused_);
    std::vector<store::impl::change> changes;
    std::vector<root::volatile_part*> with_parent;
    for (item& i : items_) {
        if (!i.changed) continue;
        root::volatile_part& owner = i.to->owner();
        if (&owner != i.to && std::ranges::find(with_parent, &owner) == with_parent.end()) {
            with_parent.push_back(&owner);
            i.made[i.made_count++] = &owner.work;
        }
        changes.push_back({i.to, i.next, {i.made, i.made_count}});
    }
    status s;
    if (!changes.empty())
        s = store_->internals().commit(changes,
                                       static_cast<root::volatile_part*>(locked_.front())->cache);
    release();
    return s;
}

} // namespace hf::mod
