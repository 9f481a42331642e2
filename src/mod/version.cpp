// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions as values, and compare-and-commit.
#include <base/assert.hpp>
#include <mod/store_impl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace hf::mod {

// States.

version::state* store::impl::fresh_state() {
    std::unique_ptr<version::state> s;
    {
        std::scoped_lock held{states_lock_};
        if (!unused_states_.empty()) {
            s = std::move(unused_states_.back());
            unused_states_.pop_back();
        }
    }
    if (s == nullptr) s = std::make_unique<version::state>();
    HF_ASSERT(s->cache == nullptr && s->sources.empty()); // as recycle() got it
    ++live_states_;
    s->shared_by = 1;
    s->in = this;
    s->parent = nullptr;
    return s.release();
}

void store::impl::recycle(version::state* used) noexcept {
    HF_ASSERT(live_states_ != 0);
    --live_states_;
    std::unique_ptr<version::state> s(used);
    std::scoped_lock held{states_lock_};
    try {
        unused_states_.push_back(std::move(s));
    } catch (const std::bad_alloc&) { // then the next is a new one
    }
}

version::state* store::impl::pin(root::volatile_part& to) {
    if (reads_) return pin_announced(to);
    version::state* s = fresh_state();
    root::volatile_part& owner = to.owner();
    s->to = &to;
    s->done = s->committed = true;
    owner.ever_pinned.store(true, std::memory_order_seq_cst);
    static thread_local const unsigned first =
        static_cast<unsigned>(std::hash<std::thread::id>{}(std::this_thread::get_id()) % pin_slots);
    s->pinned_at = sequence_.load(std::memory_order_seq_cst) + 1;
    for (unsigned i = 0; i < pin_slots; ++i) {
        s->slot = (first + i) % pin_slots;
        std::uint64_t free = 0;
        if (owner.pins[s->slot].at.compare_exchange_strong(free, s->pinned_at)) break;
        if (i + 1 < pin_slots) continue;
        s->slot = pin_slots;
        std::scoped_lock held{owner.overflow_lock};
        try {
            owner.overflow.push_back(s->pinned_at);
        } catch (const std::bad_alloc&) {
            recycle(s);
            throw;
        }
    }
    // (1) of overwrite.cpp.
    auto& op = owner.in_place;
    std::uint32_t found = op.state.load(std::memory_order_seq_cst);
    if (found == overwriting::announced &&
        op.state.compare_exchange_strong(found, overwriting::withdrawn))
        found = overwriting::withdrawn;
    if (found == overwriting::decided) op.help(medium()); // (2), (4) of overwrite.cpp
    s->word = to.load();
    return s;
}

void store::impl::unpin(version::state& pinned) noexcept {
    if (reads_) return withdraw(pinned.pinned_at - 1);
    root::volatile_part& owner = pinned.to->owner();
    if (pinned.slot < pin_slots) {
        HF_ASSERT(owner.pins[pinned.slot].at.load(std::memory_order_relaxed) == pinned.pinned_at);
        owner.pins[pinned.slot].at.store(0, std::memory_order_release);
        return;
    }
    std::scoped_lock held{owner.overflow_lock};
    const auto at = std::ranges::find(owner.overflow, pinned.pinned_at);
    HF_ASSERT(at != owner.overflow.end());
    owner.overflow.erase(at);
}

// Values.

version::version(const version& other) noexcept : state_(other.state_), word_(other.word_) {
    if (state_ != nullptr) state_->shared_by.fetch_add(1, std::memory_order_relaxed);
}

version::version(version&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), word_(std::exchange(other.word_, 0)) {}

version& version::operator=(version other) noexcept {
    std::swap(state_, other.state_);
    std::swap(word_, other.word_);
    return *this;
}

version::~version() {
    state* s = std::exchange(state_, nullptr);
    while (s != nullptr && s->shared_by.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        state* const parent = s->parent;
        store::impl& in = *s->in;
        if (parent == nullptr) {
            in.unpin(*s);
        } else {
            if (!s->committed) {
                if (s->cache == nullptr) s->cache = in.lease_cache_if_possible();
                in.drop(s->work, s->cache.get());
            }
            if (s->cache != nullptr) in.return_cache(std::move(s->cache));
            s->sources.clear();
        }
        in.recycle(s);
        s = parent;
    }
}

const std::byte* version::base() const noexcept {
    return state_ == nullptr ? nullptr : state_->in->base();
}
root* version::its_root() const noexcept {
    HF_ASSERT(state_ != nullptr);
    return state_->to->face.get();
}

version version::derived() const {
    HF_ASSERT(state_ != nullptr && state_->done);
    store::impl& in = *state_->in;
    state* s = in.fresh_state();
    s->to = state_->to;
    s->parent = state_;
    state_->shared_by.fetch_add(1, std::memory_order_relaxed);
    s->done = s->committed = false;
    s->cache = in.lease_cache();
    in.prepare(s->work, *s->cache);
    if (in.reads_beside()) s->work.fail(); // makes no nodes
    return version(s, word_);
}

shadow& version::work() noexcept {
    HF_ASSERT(state_ != nullptr && !state_->done);
    return state_->work;
}

void version::done() noexcept {
    HF_ASSERT(state_ != nullptr && !state_->done);
    state_->word = word_;
    state_->done = true;
    state_->in->return_cache(std::move(state_->cache));
}

void version::depends_on(const version& source) {
    HF_ASSERT(state_ != nullptr && !state_->done);
    state_->sources.push_back(source);
}

// Committing them.

root::root(store& of, volatile_part* part) noexcept
    : store_(&of), base_(of.internals().base()), part_(part), cell_(part->index) {
    static_assert(offsetof(root, base_) == 8 && offsetof(root, cell_) == 36,
                  "as tools/gdb/holdfast.py reads it");
}

std::uint64_t root::word() const noexcept {
    if (part_->unseen.load(std::memory_order_acquire)) [[unlikely]]
        store_->internals().look_first(*part_);
    return part_->load();
}

void root::refresh() { store_->internals().refresh(*part_); }

version root::read() {
    version::state* s = store_->internals().pin(*part_);
    return version(s, s->word);
}

status root::commit(const version& next) { return store_->commit({{this, &next}}); }

/// One update of a commit: the steps from the root's current version to the new one.
struct store::impl::chain {
    root::volatile_part* to;
    std::uint64_t base_word = 0;         // of the version that the first step was derived from
    std::vector<version::state*> states; // oldest first; none: it is that version
    std::vector<shadow*> made;
    std::vector<const version*> sources;
};

result<store::impl::chain> store::impl::steps_to(const new_version& u) const {
    const auto bad = [&](const char* why) {
        return status{errc::bad_argument,
                      fmt::format("{}: bad_argument: {}", pool_->file->path(), why)};
    };
    if (u.next == nullptr || u.next->state_ == nullptr)
        return bad("expected a version to commit, found an empty one");
    if (u.next->state_->in != this || u.next->state_->to != u.to->part_)
        return bad(
            "expected a version of this root, found another root's: commit it to the root that "
            "it comes from");
    if (!u.next->state_->done)
        return bad(
            "expected a version that is done, found one that is still being changed: call done() "
            "first");
    chain steps{u.to->part_, 0, {}, {}, {}};
    version::state* s = u.next->state_;
    for (; !s->committed; s = s->parent) {
        steps.states.push_back(s);
        steps.made.push_back(&s->work);
        for (const version& source : s->sources) steps.sources.push_back(&source);
    }
    steps.base_word = s->word;
    std::ranges::reverse(steps.states);
    std::ranges::reverse(steps.made);
    return steps;
}

/// Compare: is every chain's first version its root's, and every source that of its own root?
/// Requires: their owners' locks held.
status store::impl::check_current(std::span<const chain> chains) const {
    const auto conflict = [&](const root::volatile_part& at) {
        return status{
            errc::conflict,
            fmt::format("{}: conflict: root \"{}\": expected what the snapshot has, found a later "
                        "commit: update a new snapshot",
                        pool_->file->path(), at.durable->name)};
    };
    for (const chain& c : chains) {
        HF_ASSERT(c.to->owner().lock.is_held());
        if (c.to->load() != c.base_word) return conflict(*c.to);
        for (const version* source : c.sources) {
            // A step of this commit will be committed with it; other uncommitted versions belong to
            // nobody yet.
            const version::state& s = *source->state_;
            const bool own = std::ranges::any_of(chains, [&](const chain& of) {
                return std::ranges::find(of.states, &s) != of.states.end();
            });
            if (!own && (!s.committed || s.to->load() != s.word)) return conflict(*s.to);
        }
    }
    return {};
}

/// ... and commit. Requires: check_current.
status store::impl::commit_chains(std::span<chain> chains) {
    HF_ASSERT_SLOW(check_current(chains).ok());
    std::vector<change> changes;
    std::vector<root::volatile_part*> working;
    for (chain& c : chains) {
        if (c.states.empty()) continue; // the current version itself
        root::volatile_part& owner = c.to->owner();
        prepare(owner.work, owner.cache, &owner);
        // The members' new parent is made in there, once.
        if (&owner != c.to && std::ranges::find(working, &owner) == working.end()) {
            c.made.push_back(&owner.work);
            working.push_back(&owner);
        }
        changes.push_back({c.to, c.states.back()->word, c.made});
    }
    if (changes.empty()) return {};
    // Reclaimed nodes go where the next versions take their nodes from.
    std::unique_ptr<node_cache> reclaimed = lease_cache();
    status s = commit(changes, *reclaimed);
    return_cache(std::move(reclaimed));
    if (!s.ok()) {
        for (root::volatile_part* owner : working) drop(owner->work);
        return s;
    }
    for (const chain& c : chains)
        for (version::state* done : c.states) done->committed = true;
    return s;
}

status store::impl::commit_versions(std::span<const new_version> updates) {
    const entered in(*this);
    if (!in) return refusal();
    await_counts();
    std::vector<chain> chains;
    std::vector<root::volatile_part*> owners;
    for (const new_version& u : updates) {
        auto steps = steps_to(u);
        if (!steps) return steps.error();
        if (std::ranges::find(chains, steps->to, &chain::to) != chains.end())
            return {errc::bad_argument,
                    fmt::format("{}: bad_argument: root \"{}\": expected one version, found two",
                                pool_->file->path(), steps->to->durable->name)};
        owners.push_back(&steps->to->owner());
        for (const version* source : steps->sources) owners.push_back(&source->state_->to->owner());
        chains.push_back(std::move(*steps));
    }
    std::ranges::sort(owners, {}, &root::volatile_part::index);
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    std::vector<std::unique_lock<writer_lock>> held;
    for (root::volatile_part* owner : owners) held.emplace_back(owner->lock);
    if (status s = check_current(chains); !s.ok()) return s;
    // The commit's own fence makes the words of shared versions durable, whichever thread stored
    // them.
    for (const chain& c : chains)
        for (const version* source : c.sources) before_fence(source->state_->to->owner());
    return commit_chains(chains);
}

} // namespace hf::mod
