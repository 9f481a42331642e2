// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Retiring what commits gave up, and reclaiming it.                             MOD §5.4
//
// (1) References are counted before any is given up: a commit that moves a node from one root to
//     another never finds it without a parent.
// (2) A node is retired when no root's current version reaches it, with the store's sequence number
//     of that moment: every commit that gave it up has that number or a lower one.
// (3) It is reclaimed when no pin is older than that number, and when every commit up to it, of
//     every root that may have reached it, is durable: until then a failure may leave a word that
//     still leads to it.
// (4) Nodes that cannot be counted, for want of memory, stay in use until the pool is opened again.
#include <base/assert.hpp>
#include <base/raise.hpp>
#include <mod/announced.hpp>
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

} // namespace

/// Retired nodes lie in batches, oldest first, each with the number of a commit (2). Only nodes for
/// which memory ran out lie behind the last batch (4).
bool store::impl::valid_retired(const root::volatile_part& owner) const noexcept {
    std::uint64_t sequence = 0;
    std::size_t end = 0;
    for (const auto& b : owner.batches) {
        if (b.sequence <= sequence || b.end <= end) return false;
        sequence = b.sequence;
        end = b.end;
    }
    return sequence <= sequence_.load(std::memory_order_acquire) && end <= owner.retired.size() &&
           (uncounted_ || end == owner.retired.size());
}

// Giving up.

/// Upholds (1).
void store::impl::count_shared(std::span<const change> changes) {
    for (const change& c : changes)
        for (const shadow* made : c.made)
            for (const shadow::given_up& step : made->steps_) {
                if (step.what != shadow::step::shared) continue;
                std::scoped_lock held{sharing_lock_};
                ++sharing_[step.node];
                sharing_count_ = sharing_.size();
            }
}

/// 'reuse': where nodes go that serve again at once; null: all wait.
void store::impl::retire(root::volatile_part& owner, std::span<const change> changes,
                         ref old_parent, node_cache* reuse) noexcept {
    const std::size_t before = owner.retired.size();
    try {
        for (const change& c : changes)
            for (const shadow* made : c.made) apply(owner, *c.to, *made, reuse);
        if (old_parent != 0) owner.retired.push_back(old_parent);
        if (owner.retired.size() > before)
            owner.batches.push_back(
                {sequence_.load(std::memory_order_acquire), owner.retired.size()}); // (2)
    } catch (const std::bad_alloc&) {
        uncounted_ = true; // (4): the commit stands
    }
    HF_ASSERT_SLOW(valid_retired(owner));
    for (const change& c : changes)
        for (shadow* made : c.made) made->forget();
}

void store::impl::apply(root::volatile_part& owner, const root::volatile_part& of,
                        const shadow& made, node_cache* reuse) {
    for (const shadow::given_up& step : made.steps_) {
        if (step.what == shadow::step::released) release(owner, of, step.node, step.context);
        if (step.what != shadow::step::replaced) continue;
        if (sharing_count_.load(std::memory_order_acquire) != 0 && is_kept(of, step)) continue;
        if (reuse != nullptr) space_.give(*reuse, step.node);
        else owner.retired.push_back(step.node);
    }
}

bool store::impl::unshare(ref node) {
    if (sharing_count_.load(std::memory_order_acquire) == 0) return false;
    std::scoped_lock held{sharing_lock_};
    return unshare_locked(node);
}

/// Requires: sharing_lock_ held.
bool store::impl::unshare_locked(ref node) {
    const auto found = sharing_.find(node);
    if (found == sharing_.end()) return false;
    HF_ASSERT(found->second > 0); // a node of one parent is not in there
    if (--found->second == 0) sharing_.erase(found);
    sharing_count_ = sharing_.size();
    return true;
}

/// Whether another parent keeps a replaced node. Then its children are now both nodes', all of them
/// at once: else that parent's root could give them up in between.
bool store::impl::is_kept(const root::volatile_part& of, const shadow::given_up& step) {
    std::scoped_lock held{sharing_lock_};
    if (!sharing_.contains(step.node)) return false;
    HF_ASSERT(of.what != nullptr);
    collected children;
    of.what->children(children, node_at<std::byte>(step.node), space_.bytes_of(step.node),
                      step.context, of.durable->shape);
    for (const auto& child : children.nodes) ++sharing_[child.node];
    unshare_locked(step.node);
    return true;
}

void store::impl::release(root::volatile_part& owner, const root::volatile_part& of, ref node,
                          std::uint32_t context) {
    collected left;
    left.nodes.push_back({node, context});
    std::uint64_t most = pool_->file->size_bytes() / granule_bytes; // no version has more nodes
    while (!left.nodes.empty()) {
        const collected::found at = left.nodes.back();
        left.nodes.pop_back();
        if (unshare(at.node)) continue;
        const std::uint64_t bytes = space_.bytes_of(at.node);
        if (bytes == 0 || most-- == 0) return space_.note_damage();
        owner.retired.push_back(at.node);
        of.what->children(left, node_at<std::byte>(at.node), bytes, at.context, of.durable->shape);
    }
}

// Reclaiming.

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

/// Before a fence: which commits of other roots will be durable behind it. Their threads' own
/// fences may never come, so this thread takes part of their words. Without shared nodes no other
/// root matters. Upholds (3).
store::impl::others store::impl::before_reclaim(const root::volatile_part* owner) noexcept {
    others found;
    if (super_->shares == 0 || !medium().loses_caches()) return found;
    const std::size_t owners = owner_count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < owners; ++i) {
        root::volatile_part& other = *owners_[i];
        const std::uint64_t last = other.sequence.load(std::memory_order_acquire);
        const std::uint64_t durable = other.durable_to.load(std::memory_order_acquire);
        if (&other == owner || durable >= last) continue;
        if (found.count < found.adopted.size() && adopt_word(other))
            found.adopted[found.count++] = {&other, last};
        else found.durable_to = std::min(found.durable_to, durable);
    }
    return found;
}

/// Makes the word that another root's writer stored this thread's own: its fence waits for it. That
/// writer's lock is not needed: false when the word is not yet stored, or a newer one is.
bool store::impl::adopt_word(root::volatile_part& of) noexcept {
    HF_ASSERT(of.family == nullptr);
    std::uint64_t word = of.word.load(std::memory_order_acquire);
    trace::announce(announced::commit, &of.durable->word, word_bytes);
    const bool taken = std::atomic_ref(of.durable->word).compare_exchange_strong(word, word);
    medium().flush(of.durable, 2 * word_bytes); // a locked operation writes either way
    return taken;
}

/// Behind the fence. Returns up to which commit all roots except 'owner' are durable. Requires:
/// 'owner' is durable up to its last commit, its lock is held.
std::uint64_t store::impl::after_fence(root::volatile_part* owner, const others& found) noexcept {
    if (super_->shares == 0) return found.durable_to;
    HF_ASSERT(owner != nullptr && owner->lock.is_held() && found.count <= found.adopted.size());
    for (unsigned i = 0; i < found.count; ++i)
        raise(found.adopted[i].first->durable_to, found.adopted[i].second);
    raise(owner->durable_to, owner->sequence.load(std::memory_order_relaxed));
    return found.durable_to;
}

/// Whether what a commit has given up serves again at once. Requires: no failure takes its word
/// without what came before (3).
bool store::impl::can_reuse(root::volatile_part& owner) noexcept {
    return words_ == nullptr && trace_done_.load(std::memory_order_acquire) && !trace_failed_ &&
           !uncounted_ && oldest_pin(owner) == ~std::uint64_t{0};
}

/// Requires: behind a fence that made the owner's word durable, and the other roots' commits up to
/// 'durable_to'; its lock held.
void store::impl::reclaim(root::volatile_part& owner, node_cache& to,
                          std::uint64_t durable_to) noexcept {
    if (owner.batches.empty() || !trace_done_.load(std::memory_order_acquire) || trace_failed_ ||
        uncounted_)
        return;
    const std::uint64_t oldest =
        std::min({oldest_pin(owner), durable_to, released_by_readers(owner)});
    const auto kept =
        std::ranges::find_if(owner.batches, [&](const auto& b) { return b.sequence > oldest; });
    if (kept == owner.batches.begin()) return;
    const std::size_t end = std::prev(kept)->end;
    HF_ASSERT(end <= owner.retired.size());
    for (std::size_t i = 0; i < end; ++i) space_.give(to, owner.retired[i]);
    owner.retired.erase(owner.retired.begin(),
                        owner.retired.begin() + static_cast<std::ptrdiff_t>(end));
    owner.batches.erase(owner.batches.begin(), kept);
    for (auto& b : owner.batches) b.end -= end;
    HF_ASSERT_SLOW(valid_retired(owner));
}

} // namespace hf::mod
