// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commits: all that a shadow made is flushed, one fence, one word; then what it replaced is
// retired.                                                          MOD §5.2, §5.4
#include <base/assert.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>
#include <mod/store_impl.hpp>

#include <algorithm>

namespace hf::mod {
namespace {

/// Collects what a kind visits.
struct collected final : visitor {
    struct found {
        ref node;
        std::uint32_t context;
    };
    std::vector<found> nodes;
    void node(ref at, std::size_t, std::uint32_t context) override {
        nodes.push_back({at & ref_max, context});
    }
};

bool durable_on_return(std::span<const store::impl::change> changes) noexcept {
    return std::ranges::any_of(
        changes, [](const auto& c) { return c.to->face->when_durable() == durability::on_return; });
}

} // namespace

void store::impl::prepare(shadow& work, node_cache& cache, root::volatile_part* held) noexcept {
    work.held_ = held;
    work.store_ = face_;
    work.base_ = base();
    work.cache_ = &cache;
}

void store::impl::drop(shadow& made) noexcept {
    for (const shadow::made& m : made.fresh_)
        if (m.granules != 0) space_.give(*made.cache_, m.node);
    made.forget();
}

status store::impl::commit(std::span<const change> changes, node_cache& reclaimed) {
    for (const change& c : changes)
        for (const shadow* made : c.made)
            if (made->failed_)
                return {errc::pool_full,
                        fmt::format("{}: pool_full: {} of at most {} bytes", pool_->file->path(),
                                    pool_->file->size_bytes(), pool_->file->shape().max_bytes)};
    mark_sharing(changes);
    root::volatile_part& owner = changes.front().to->owner();
    for (const change& c : changes)
        if (&c.to->owner() != &owner) return commit_unrelated(changes, reclaimed);
    return commit_to(owner, changes, reclaimed);
}

/// Before a node has two parents, the next open is told that it must count.
void store::impl::mark_sharing(std::span<const change> changes) noexcept {
    if (super_->shares != 0) return;
    for (const change& c : changes)
        for (const shadow* made : c.made)
            for (const auto& step : made->steps_)
                if (step.what == shadow::step::shared) {
                    persist::store_word(domain(), &super_->shares, 1);
                    persist::fence(domain());
                    return;
                }
}

void store::impl::flush_made(const shadow& made) noexcept {
    const hf::domain d = domain();
    std::uint64_t bytes = 0;
    for (const shadow::made& m : made.fresh_) {
        if (m.granules == 0) continue;
        const std::uint64_t length = m.granules * granule_bytes;
        persist::trace(persist::event::named, node_at<std::byte>(m.node), length);
        persist::flush(d, node_at<std::byte>(m.node), length);
        bytes += length;
    }
    persist::thread_counters().pm_bytes += bytes;
}

/// What another thread flushed, or stored past the caches, this thread's fence does not wait for.
/// (3) of store_impl.hpp.
void store::impl::before_fence(root::volatile_part& owner) noexcept {
    if (const auto self = std::this_thread::get_id(); owner.last_writer != self) {
        store_again(owner);
        owner.last_writer = self;
    }
}

/// Makes the cell's word, and its stamp, this thread's own stores: its fence waits for them.
void store::impl::store_again(root::volatile_part& owner) noexcept {
    if (domain() != domain::adr || owner.family != nullptr) return;
    persist::flush(domain(), owner.durable, 2 * word_bytes);
    if (owner.unfenced != nullptr) persist::flush(domain(), owner.unfenced, 1);
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
    const ref made = work.make(members * word_bytes);
    if (made == 0) return 0;
    auto* words = work.at<std::uint64_t>(made);
    const auto old = static_cast<ref>(family.word.load(std::memory_order_relaxed));
    if (old != 0) std::copy_n(node_at<const std::uint64_t>(old), members, words);
    else std::fill_n(words, members, 0);
    for (const change& c : changes) words[c.to->member] = c.word;
    return made;
}

/// Single and siblings: MOD Fig. 8b, 8c. Differs: what is replaced waits until the word that
/// replaces it is durable.
status store::impl::commit_to(root::volatile_part& owner, std::span<const change> changes,
                              node_cache& reclaimed) {
    const hf::domain d = domain();
    const std::uint64_t old = owner.word.load(std::memory_order_relaxed);
    const std::uint64_t word = new_word(owner, changes);
    if (owner.work.failed_) return {errc::pool_full, pool_->file->path() + ": pool_full"};
    before_fence(owner);
    for (const change& c : changes)
        for (const shadow* made : c.made) flush_made(*made);
    persist::fence(d); // what the new word reaches is durable before it, and the last word is
    reclaim(owner, reclaimed);
    const ref old_parent = &owner == changes.front().to ? 0 : static_cast<ref>(old);
    if (d == domain::adr && !durable_on_return(changes)) {
        // Last of all: whatever locked instruction came behind it would wait for it.
        publish(owner, word, changes);
        retire(owner, changes, old_parent);
        store_word(owner, word);
    } else {
        store_word(owner, word);
        if (durable_on_return(changes)) persist::fence(d);
        publish(owner, word, changes); // readers see what will stay
        retire(owner, changes, old_parent);
    }
    persist::thread_counters().pm_bytes += word_bytes;
    ++persist::thread_counters().sections;
    return {};
}

/// MOD Fig. 8d, with a redo record for its transaction: once that is durable so is the commit, and
/// the words follow as they may. A cell's stamp, behind this word and before the next in the same
/// line, says to redo that it is past this record.
status store::impl::commit_unrelated(std::span<const change> changes, node_cache& reclaimed) try {
    struct swing {
        root::volatile_part* owner;
        std::vector<change> changes;
        std::uint64_t word = 0, old = 0;
    };
    std::vector<swing> swings;
    for (const change& c : changes) {
        auto at = std::ranges::find(swings, &c.to->owner(), &swing::owner);
        if (at == swings.end()) at = swings.insert(at, swing{&c.to->owner(), {}});
        at->changes.push_back(c);
    }
    if (swings.size() > redo_updates_max)
        return {errc::limit_reached,
                fmt::format("{}: limit_reached: {} unrelated roots in a "
                            "commit, at most {}",
                            pool_->file->path(), swings.size(), redo_updates_max)};
    for (swing& s : swings) {
        s.old = s.owner->word.load(std::memory_order_relaxed);
        s.word = new_word(*s.owner, s.changes);
        if (s.owner->work.failed_) return {errc::pool_full, pool_->file->path() + ": pool_full"};
    }
    std::scoped_lock held{redo_lock_};
    redo_cells_.reserve(redo_updates_max);
    const hf::domain d = domain();
    for (const swing& s : swings) before_fence(*s.owner);
    for (const swing& s : swings)
        for (const change& c : s.changes)
            for (const shadow* made : c.made) flush_made(*made);
    for (const cell* c : redo_cells_) persist::flush(d, c, 2 * word_bytes);
    persist::fence(d); // the nodes, and the words of the record that is about to go
    redo_record& r = super_->redo;
    r.number = ++redo_number_;
    r.count = swings.size();
    for (std::size_t i = 0; i < swings.size(); ++i)
        r.entries[i] = {swings[i].owner->index, swings[i].word};
    r.check = redo_check(r);
    persist::flush(d, &r, offsetof(redo_record, entries) + r.count * sizeof r.entries[0]);
    persist::fence(d); // committed, and durable
    redo_cells_.clear();
    for (swing& s : swings) {
        reclaim(*s.owner, reclaimed);
        persist::trace(persist::event::commit, &s.owner->durable->word, word_bytes);
        store_stamped(*s.owner->durable, s.word, r.number);
        redo_cells_.push_back(s.owner->durable);
        publish(*s.owner, s.word, s.changes);
        retire(*s.owner, s.changes, s.owner == s.changes.front().to ? 0 : static_cast<ref>(s.old));
    }
    ++persist::thread_counters().sections;
    return {};
} catch (const std::bad_alloc&) {
    return out_of_memory(pool_->file->path());
}

/// Past the caches, as nobody reads it: 105 ns to the fence instead of 160. Where the lock changes
/// hands both threads pass a full barrier: a later writer's store comes later.
void store::impl::store_word(root::volatile_part& owner, std::uint64_t word) noexcept {
    persist::trace(persist::event::commit, &owner.durable->word, word_bytes);
    persist::copy(domain(), &owner.durable->word, &word, word_bytes);
}

/// For readers: the word first. (2) of store_impl.hpp.
void store::impl::publish(root::volatile_part& owner, std::uint64_t word,
                          std::span<const change> changes) noexcept {
    owner.word.store(word, std::memory_order_seq_cst);
    if (&owner != changes.front().to)
        for (const change& c : changes) c.to->word.store(c.word, std::memory_order_seq_cst);
    owner.sequence = ++sequence_;
}

/// A line keeps a prefix of its stores: a stamp without its word would lose half a commit.
void store::impl::store_stamped(cell& to, std::uint64_t word, std::uint64_t stamp) noexcept {
    std::atomic_ref(to.word).store(word, std::memory_order_release);
    std::atomic_ref(to.stamp).store(stamp, std::memory_order_release);
    persist::flush(domain(), &to, 2 * word_bytes);
}

// Retiring.

void store::impl::retire(root::volatile_part& owner, std::span<const change> changes,
                         ref old_parent) {
    const std::size_t before = owner.retired.size();
    for (const change& c : changes)
        for (shadow* made : c.made) {
            apply(owner, *c.to, *made);
            made->forget();
        }
    if (old_parent != 0) owner.retired.push_back(old_parent);
    if (owner.retired.size() > before)
        owner.batches.push_back({owner.sequence, owner.retired.size()});
}

void store::impl::apply(root::volatile_part& owner, const root::volatile_part& of, shadow& made) {
    for (const shadow::given_up& step : made.steps_) {
        switch (step.what) {
        case shadow::step::replaced: apply_replaced(owner, of, step); break;
        case shadow::step::released: release(owner, of, step.node, step.context); break;
        case shadow::step::shared: {
            std::scoped_lock held{sharing_lock_};
            ++sharing_[step.node];
            sharing_count_ = sharing_.size();
            break;
        }
        }
    }
}

bool store::impl::unshare(ref node) {
    if (sharing_count_.load(std::memory_order_relaxed) == 0) return false;
    std::scoped_lock held{sharing_lock_};
    const auto found = sharing_.find(node);
    if (found == sharing_.end()) return false;
    if (--found->second == 0) sharing_.erase(found);
    sharing_count_ = sharing_.size();
    return true;
}

/// The new version has a node in place of this one. When another parent keeps it, the children are
/// now both nodes'.
void store::impl::apply_replaced(root::volatile_part& owner, const root::volatile_part& of,
                                 const shadow::given_up& step) {
    if (!unshare(step.node)) {
        owner.retired.push_back(step.node);
        return;
    }
    collected children;
    of.what->children(children, node_at<std::byte>(step.node), space_.bytes_of(step.node),
                      step.context, of.durable->shape);
    std::scoped_lock held{sharing_lock_};
    for (const auto& child : children.nodes) ++sharing_[child.node];
    sharing_count_ = sharing_.size();
}

void store::impl::release(root::volatile_part& owner, const root::volatile_part& of, ref node,
                          std::uint32_t context) {
    collected left;
    left.nodes.push_back({node, context});
    while (!left.nodes.empty()) {
        const collected::found at = left.nodes.back();
        left.nodes.pop_back();
        if (unshare(at.node)) continue;
        owner.retired.push_back(at.node);
        of.what->children(left, node_at<std::byte>(at.node), space_.bytes_of(at.node), at.context,
                          of.durable->shape);
    }
}

std::uint64_t store::impl::oldest_pin(root::volatile_part& owner) noexcept {
    if (super_->shares == 0) return oldest_own_pin(owner);
    // A snapshot of one root may read nodes that another one gave up last.
    std::uint64_t oldest = ~std::uint64_t{0};
    const std::size_t owners = owner_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < owners; ++i) oldest = std::min(oldest, oldest_own_pin(*owners_[i]));
    return oldest;
}

std::uint64_t store::impl::oldest_own_pin(root::volatile_part& owner) noexcept {
    std::uint64_t oldest = ~std::uint64_t{0};
    if (!owner.ever_pinned.load(std::memory_order_seq_cst)) return oldest;
    for (const pin_slot& slot : owner.pins)
        if (const std::uint64_t at = slot.at.load(std::memory_order_seq_cst); at != 0)
            oldest = std::min(oldest, at - 1);
    std::scoped_lock held{owner.overflow_lock};
    for (const std::uint64_t at : owner.overflow) oldest = std::min(oldest, at - 1);
    return oldest;
}

/// Requires: behind a fence that made the owner's word durable; its lock held.
void store::impl::reclaim(root::volatile_part& owner, node_cache& to) noexcept {
    if (owner.batches.empty() || !trace_done_.load(std::memory_order_acquire) || trace_failed_)
        return;
    const std::uint64_t oldest = oldest_pin(owner);
    const auto kept =
        std::ranges::find_if(owner.batches, [&](const auto& b) { return b.sequence > oldest; });
    if (kept == owner.batches.begin()) return;
    const std::size_t end = std::prev(kept)->end;
    for (std::size_t i = 0; i < end; ++i) space_.give(to, owner.retired[i]);
    owner.retired.erase(owner.retired.begin(),
                        owner.retired.begin() + static_cast<std::ptrdiff_t>(end));
    owner.batches.erase(owner.batches.begin(), kept);
    for (auto& b : owner.batches) b.end -= end;
}

ref store::impl::take_after_all(shadow& work, std::size_t bytes) noexcept {
    if (work.held_ == nullptr) return 0;
    root::volatile_part& owner = *static_cast<root::volatile_part*>(work.held_);
    store_again(owner);
    persist::fence(domain());
    reclaim(owner, owner.cache);
    space_.give_all(owner.cache);
    space_.trim(); // whole arenas may serve another size
    return space_.take(owner.cache, bytes);
}

// The basic interface.

root::writing::writing(root& to) : to_(&to) {
    store::impl& in = to.store_->internals();
    in.await_counts();
    volatile_part& owner = to.part_->owner();
    owner.lock.lock();
    work_ = &owner.work;
    in.prepare(*work_, owner.cache, &owner);
    word_ = to.part_->load();
}

root::writing::~writing() {
    if (!open_) return;
    to_->store_->internals().drop(*work_);
    to_->part_->owner().lock.unlock();
}

status root::writing::commit(std::uint64_t next) {
    shadow* const made[1] = {work_};
    const store::impl::change change{to_->part_, next, made};
    status s = to_->store_->internals().commit({&change, 1}, to_->part_->owner().cache);
    if (!s.ok()) return s; // the destructor drops it
    open_ = false;
    to_->part_->owner().lock.unlock();
    return s;
}

// Several roots.

joint_writing::joint_writing(std::span<root* const> roots) : store_(roots.front()->store_) {
    store::impl& in = store_->internals();
    in.await_counts();
    std::vector<root::volatile_part*> owners;
    for (const root* r : roots) {
        HF_ASSERT(r->store_ == store_);
        owners.push_back(&r->part_->owner());
    }
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

/// What was committed is the roots' by now; the rest is dropped.
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
}

std::uint64_t joint_writing::word(std::size_t i) const noexcept {
    return items_[i].changed ? items_[i].next : items_[i].word;
}
shadow& joint_writing::work(std::size_t i) noexcept { return items_[i].to->work; }
void joint_writing::set_word(std::size_t i, std::uint64_t next) noexcept {
    items_[i].next = next;
    items_[i].changed = true;
}

status joint_writing::commit() {
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
