// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Following every reference from the roots: after a crash, to find which nodes are in use and which
// have several parents; and to verify.                                              MOD §5.4
//
// (1) It reads versions that were current when the pool was opened. Nodes never change, and those
//     are not reclaimed before it is done, so it needs no lock while the application goes on.
// (2) Everything in a node is bounded before it is followed: a node is a slot of an arena, large
//     enough for what its parent says it is.
#include <base/assert.hpp>
#include <mod/store_impl.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hf::mod {

class store::impl::walk final : public visitor {
public:
    walk(store::impl& in, bool into_arenas, bool shares)
        : in_(in), into_arenas_(into_arenas), shares_(shares) {
        if (shares && !into_arenas) contexts_ = std::make_unique<std::unordered_map<ref, met>>();
    }

    void node(ref at, std::size_t bytes, std::uint32_t context) override {
        at &= ref_max;
        arena* a = in_.space_.find(at);
        if (a == nullptr || a->slot_bytes < bytes) {
            if (outcome_.ok())
                outcome_ = {
                    errc::corrupt,
                    fmt::format(
                        "{}: corrupt: root \"{}\" leads on from {:#x}: found {:#x}, expected a "
                        "node of {} bytes",
                        in_.pool_->file->path(), root_, from_, std::uint64_t{at} * granule_bytes,
                        bytes)};
            return;
        }
        if (mark(*a, a->slot_of(at * granule_bytes))) {
            left_.push_back({at, context});
            if (contexts_ != nullptr) contexts_->insert({at, {context, cell_}});
            return;
        }
        ++again_[at];
        ++met_again_;
        if (!shares_) fail(at, "expected one way, as no nodes are shared, found two");
        if (contexts_ == nullptr) return;
        const auto [first, by] = (*contexts_)[at];
        const bool alike = what_ != nullptr && what_->alike != nullptr
                               ? what_->alike(in_.node_at<std::byte>(at), first, context)
                               : first == context;
        if (!alike || by->kind != cell_->kind || by->shape != cell_->shape)
            return fail(at, "expected ways that one node can serve, found two that differ");
        if (first != context && what_ != nullptr) look_again(at, first, context);
    }
    void elements(std::uint64_t count) override { elements_ += count; }

    /// Everything below a root's word. Errors: corrupt.
    status from(const cell& at, const kind& what, std::uint64_t word) {
        root_ = at.name;
        cell_ = &at;
        what_ = &what;
        from_ = 0;
        elements_ = 0;
        const std::uint64_t before = met_again_;
        what.top(*this, in_.base(), word, at.shape);
        while (!left_.empty() && outcome_.ok() && !in_.stop_trace_) {
            const found next = left_.back();
            left_.pop_back();
            from_ = std::uint64_t{next.node} * granule_bytes;
            what.children(*this, in_.node_at<std::byte>(next.node), in_.space_.bytes_of(next.node),
                          next.context, at.shape);
        }
        // Shared nodes are met once, and hold elements as often as they are named.
        if (what.tells_elements && before == met_again_ && elements_ != word >> 32 &&
            outcome_.ok() && !in_.stop_trace_)
            outcome_ = {errc::corrupt,
                        fmt::format("{}: corrupt: root \"{}\": expected {} elements, found {}",
                                    in_.pool_->file->path(), root_, word >> 32, elements_)};
        if (!into_arenas_ && outcome_.ok() && what.well_placed != nullptr &&
            !what.well_placed(in_.base(), word, at.shape))
            fail(static_cast<ref>(word),
                 "expected each element in the place of its key, found one elsewhere");
        return outcome_;
    }
    status no_node(const cell& family, std::uint64_t word) {
        root_ = family.name;
        fail(static_cast<ref>(word), "expected a node, found none");
        return outcome_;
    }
    status parent(const cell& at, ref node_of) {
        root_ = at.name;
        cell_ = &at;
        what_ = nullptr;
        node(node_of, at.members * word_bytes, 0);
        left_.clear(); // its members' words are followed by their own kinds
        return outcome_;
    }
    const std::unordered_map<ref, std::uint32_t>& again() const noexcept { return again_; }
    /// The slots of an arena that were reached, by bits; null: none.
    const std::vector<std::uint64_t>* reached(arena& a) const {
        const auto found = marks_.find(&a);
        return found == marks_.end() ? nullptr : &found->second;
    }

private:
    struct found {
        ref node;
        std::uint32_t context;
    };
    void fail(ref at, const char* how) {
        if (outcome_.ok())
            outcome_ = {errc::corrupt, fmt::format("{}: corrupt: root \"{}\" leads to {:#x}: {}",
                                                   in_.pool_->file->path(), root_,
                                                   std::uint64_t{at} * granule_bytes, how)};
    }
    /// A node that was met before, with another context. Reclamation counts the nodes below by the
    /// context with which it gives the node up: both contexts must lead to the same nodes, all the
    /// way down.
    void look_again(ref at, std::uint32_t first, std::uint32_t context) {
        class ways final : public visitor {
        public:
            explicit ways(walk& of) : of_(of) {}
            void node(ref child, std::size_t bytes, std::uint32_t as) override {
                const arena* a = of_.in_.space_.find(child & ref_max);
                sound = sound && a != nullptr && a->slot_bytes >= bytes;
                children.push_back({child & ref_max, as});
            }
            void look(const found& from) {
                children.clear();
                of_.what_->children(*this, of_.in_.node_at<std::byte>(from.node),
                                    of_.in_.space_.bytes_of(from.node), from.context,
                                    of_.cell_->shape);
            }
            std::vector<found> children;
            bool sound = true;

        private:
            walk& of_;
        };
        struct two_ways {
            ref node;
            std::uint32_t one, other;
        };
        ways one(*this), other(*this);
        std::vector<two_ways> left{{at, first, context}};
        std::unordered_set<std::uint64_t> seen;
        while (!left.empty() && !in_.stop_trace_) {
            const two_ways next = left.back();
            left.pop_back();
            one.look({next.node, next.one});
            other.look({next.node, next.other});
            if (!one.sound || !other.sound)
                return fail(at, "expected a way that goes on, found its end");
            if (!std::ranges::equal(one.children, other.children, {}, &found::node, &found::node))
                return fail(at, "expected two ways to the same nodes, found different ones");
            for (std::size_t i = 0; i < one.children.size(); ++i) {
                const auto [child, as] = other.children[i];
                if (one.children[i].context == as) continue;
                const auto known = contexts_->find(child);
                if (known != contexts_->end() && known->second.context == as) continue;
                if (seen.insert(std::uint64_t{as} << 32 | child).second)
                    left.push_back({child, one.children[i].context, as});
            }
        }
    }
    bool mark(arena& a, std::uint32_t slot) {
        HF_ASSERT(slot < a.slots);
        auto& words = into_arenas_ ? a.reached : marks_[&a];
        if (words.empty()) words.resize(a.taken.size());
        const std::uint64_t bit = std::uint64_t{1} << slot % 64;
        if ((words[slot / 64] & bit) != 0) return false;
        words[slot / 64] |= bit;
        return true;
    }

    store::impl& in_;
    bool into_arenas_;
    bool shares_; // there may be nodes with several parents
    const char* root_ = "";
    std::uint64_t from_ = 0;     // the node whose children are visited; 0: the root's word
    const kind* what_ = nullptr; // null: a family's node
    status outcome_;
    std::uint64_t elements_ = 0, met_again_ = 0;
    const cell* cell_ = nullptr; // the root's
    struct met {
        std::uint32_t context;
        const cell* by;
    };
    // How each node was met first. Only to verify, and if nodes are shared.
    std::unique_ptr<std::unordered_map<ref, met>> contexts_;
    std::vector<found> left_;
    std::unordered_map<arena*, std::vector<std::uint64_t>> marks_;
    std::unordered_map<ref, std::uint32_t> again_; // reached so often beyond the first time
};

namespace {

/// Whether a debug build can look at all of a version at each update. Kinds whose words have no
/// count in their upper half are of users.
bool is_small(std::uint64_t word) { return word >> 32 <= 100; }

/// Visits every root as it stood, by 'words'.
template <class Walk>
status follow(store::impl& in, std::span<const std::uint64_t> words, Walk& walk) {
    for (std::uint64_t i = 0; i < words.size(); ++i) {
        const cell& c = in.cells()[i];
        std::uint64_t word = words[i];
        if (c.kind == builtin_kind::family) {
            if (word == 0) continue;
            if (word > ref_max) return walk.no_node(c, word);
            if (status s = walk.parent(c, static_cast<ref>(word)); !s.ok()) return s;
            continue;
        }
        if (c.family != 0) {
            const std::uint64_t* parent =
                in.words_of(in.cells()[c.family - 1], words[c.family - 1]);
            word = parent == nullptr ? 0 : parent[c.member];
        }
        if (c.kind == 0) { // never opened, so it is empty
            if (word != 0) return walk.no_node(c, word);
            continue;
        }
        const kind* what = find_kind(c.kind);
        if (what == nullptr)
            return {
                errc::missing_engine,
                fmt::format(
                    "{}: root \"{}\": expected a kind that this program knows, found {}: what a "
                    "crash left unused stays so",
                    in.its_pool().file->path(), c.name, c.kind)};
        if (status s = walk.from(c, *what, word); !s.ok()) return s;
    }
    return {};
}

} // namespace

status store::impl::trace() {
    status s = space_.load_all();
    walk all(*this, true, counts_unknown_);
    if (s.ok()) s = follow(*this, trace_words_, all);
    if (!s.ok()) return s;
    std::scoped_lock held{sharing_lock_};
    for (const auto& [node, parents] : all.again()) sharing_[node] += parents;
    sharing_count_ = sharing_.size();
    return s;
}

void store::impl::run_trace(bool may_wait) noexcept {
    status s;
    try {
        s = trace();
    } catch (const std::bad_alloc&) {
        s = {errc::io_error, "out of memory"};
    }
    {
        const std::scoped_lock held{trace_lock_};
        trace_outcome_ = s;
    }
    const bool older_gone = s.ok() && await_older_readers(may_wait);
    std::scoped_lock held{trace_lock_};
    if (stop_trace_) trace_failed_ = true;
    else if (older_gone) space_.end_trace();
    else trace_failed_ = true;
    trace_done_.store(true, std::memory_order_release);
    traced_.notify_all();
}

/// Whether a small version of this root is whole; true of others, which take too long to look at.
bool store::impl::is_valid(const root::volatile_part& of, std::uint64_t word) {
    return word == 0 || !is_small(word) ||
           walk(*this, false, true).from(*of.durable, *of.what, word).ok();
}

bool store::impl::keeps_valid(const change& c) {
    const std::uint64_t before = c.to->load();
    const bool shares =
        std::ranges::any_of(c.made, [](const shadow* made) { return made->shares_; });
    // Damage in the structure, or a part that nobody has looked at, may be in the next version,
    // too.
    if (shares || !is_small(before) || !is_valid(*c.to, before)) return true;
    return is_valid(*c.to, c.word);
}

status store::impl::verify() {
    if (super_ == nullptr) return {};
    (void)wait_for_trace();
    if (status s = space_.load_all(); !s.ok()) return s;
    HF_ASSERT_SLOW(space_.valid());
    std::vector<std::uint64_t> words;
    std::scoped_lock held{roots_lock_};
    std::vector<std::unique_lock<writer_lock>> writers;
    for (std::uint32_t i = 0; i < super_->cell_count; ++i) {
        root::volatile_part& part = part_of(i);
        if (part.family == nullptr) writers.emplace_back(part.lock);
        words.push_back(part.word.load(std::memory_order_relaxed));
    }
    walk all(*this, false, super_->shares != 0);
    if (status s = follow(*this, words, all); !s.ok()) return s;
    if (status s = compare_shared(all); !s.ok()) return s;
    return compare_slots(all);
}

/// Which nodes have several parents is known from updates, or from a trace: reclamation goes by it.
status store::impl::compare_shared(const walk& all) {
    std::scoped_lock held{sharing_lock_};
    for (const auto& [node, parents] : all.again()) {
        const auto known = sharing_.find(node);
        if (known == sharing_.end() || known->second < parents)
            return {errc::corrupt,
                    fmt::format("{}: corrupt: node {:#x}: found {} parents, expected {}",
                                pool_->file->path(), std::uint64_t{node} * granule_bytes,
                                parents + 1, known == sharing_.end() ? 1 : known->second + 1)};
    }
    return {};
}

/// Nothing was taken or given up since a clean pool was opened. Requires: the roots' locks held.
bool store::impl::untouched() {
    HF_ASSERT_SLOW(std::ranges::all_of(
        roots_, [](const auto& p) { return p != nullptr && p->owner().lock.is_held(); }));
    if (!was_clean_ || sequence_ != first_sequence_ || live_states_ != 0) return false;
    const auto empty = [](const node_cache& cache) {
        return std::ranges::all_of(cache.free, [](const auto& nodes) { return nodes.empty(); });
    };
    std::scoped_lock held{states_lock_};
    return std::ranges::all_of(roots_, [&](const auto& p) { return empty(p->cache); }) &&
           std::ranges::all_of(caches_, [&](const auto& c) { return empty(*c); });
}

/// A reached node must be known to be in use, or it would be given to somebody else. In a clean
/// pool a node in use must be reached, or it is lost.
status store::impl::compare_slots(const walk& all) {
    const bool exact = untouched();
    status outcome;
    space_.for_each([&](arena& a) {
        const auto* words = all.reached(a);
        for (std::size_t w = 0; w < a.taken.size() && outcome.ok(); ++w) {
            const std::uint64_t met = words == nullptr ? 0 : (*words)[w];
            const std::uint64_t wrong = exact ? a.taken[w] ^ met : met & ~a.taken[w];
            if (wrong == 0) continue;
            const auto slot = w * 64 + static_cast<std::size_t>(std::countr_zero(wrong));
            const bool taken = a.is_taken(static_cast<std::uint32_t>(slot));
            outcome = {
                errc::corrupt,
                fmt::format("{}: corrupt: slot {} of the arena at {:#x}: {}", pool_->file->path(),
                            slot, a.offset,
                            taken ? "expected it free, as no root leads there, found it in use"
                                  : "expected it in use, as a root leads there, found it free")};
        }
    });
    return outcome;
}

} // namespace hf::mod
