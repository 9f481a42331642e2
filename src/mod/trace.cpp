// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Following every reference from the roots: after a crash, to find which nodes are in use and which
// have several parents; and to verify.                                              MOD §5.4
//
// (1) It reads versions that were current when the pool was opened. Nodes never change and those
//     are not reclaimed before it is done, so it needs no lock while the application goes on.
// (2) Whatever a node says is bounded before it is followed: a node is a slot of an arena, large
//     enough for what its parent says it is.
#include <fmt/format.h>
#include <mod/store_impl.hpp>

namespace hf::mod {

class store::impl::walk final : public visitor {
public:
    walk(store::impl& in, bool into_arenas) : in_(in), into_arenas_(into_arenas) {}

    void node(ref at, std::size_t bytes, std::uint32_t context) override {
        at &= ref_max;
        arena* a = in_.space_.find(at);
        if (a == nullptr || a->slot_bytes < bytes) {
            if (outcome_.ok())
                outcome_ = {errc::corrupt,
                            fmt::format("{}: corrupt: root \"{}\" leads to {:#x}, which is no node "
                                        "of {} bytes",
                                        in_.pool_->file->path(), root_, at * granule_bytes, bytes)};
            return;
        }
        if (mark(*a, a->slot_of(at * granule_bytes))) left_.push_back({at, context});
        else ++again_[at];
    }

    /// Everything below a root's word. Errors: corrupt.
    status from(const cell& at, const kind& what, std::uint64_t word) {
        root_ = at.name;
        what.top(*this, in_.base(), word, at.shape);
        while (!left_.empty() && outcome_.ok() && !in_.stop_trace_) {
            const found next = left_.back();
            left_.pop_back();
            what.children(*this, in_.node_at<std::byte>(next.node), in_.space_.bytes_of(next.node),
                          next.context, at.shape);
        }
        return outcome_;
    }
    status parent(const cell& at, ref node_of) {
        root_ = at.name;
        node(node_of, at.members * word_bytes, 0);
        left_.clear(); // its members' words are followed by their own kinds
        return outcome_;
    }
    std::unordered_map<ref, std::uint32_t>& again() noexcept { return again_; }

private:
    struct found {
        ref node;
        std::uint32_t context;
    };
    bool mark(arena& a, std::uint32_t slot) {
        auto& words = into_arenas_ ? a.reached : marks_[&a];
        if (words.empty()) words.resize(a.taken.size());
        const std::uint64_t bit = std::uint64_t{1} << slot % 64;
        if ((words[slot / 64] & bit) != 0) return false;
        words[slot / 64] |= bit;
        return true;
    }

    store::impl& in_;
    bool into_arenas_;
    const char* root_ = "";
    status outcome_;
    std::vector<found> left_;
    std::unordered_map<arena*, std::vector<std::uint64_t>> marks_;
    std::unordered_map<ref, std::uint32_t> again_; // reached so often beyond the first time
};

namespace {

/// Visits every root as it stood, by 'words'.
template <class Walk>
status follow(store::impl& in, std::span<const std::uint64_t> words, Walk& walk) {
    for (std::uint64_t i = 0; i < words.size(); ++i) {
        const cell& c = in.cells()[i];
        if (c.kind == 0) continue;
        std::uint64_t word = words[i];
        if (c.kind == builtin_kind::family) {
            if (word == 0) continue;
            if (status s = walk.parent(c, static_cast<ref>(word)); !s.ok()) return s;
            continue;
        }
        if (c.family != 0) {
            const auto parent = static_cast<ref>(words[c.family - 1]);
            word = parent == 0 ? 0 : in.node_at<const std::uint64_t>(parent)[c.member];
        }
        const kind* what = find_kind(c.kind);
        if (what == nullptr)
            return {errc::missing_engine,
                    fmt::format("{}: root \"{}\" is of kind {}, which this program does not know: "
                                "what a crash left unused stays so",
                                in.of().file->path(), c.name, c.kind)};
        if (status s = walk.from(c, *what, word); !s.ok()) return s;
    }
    return {};
}

} // namespace

status store::impl::trace() {
    status s = space_.load_all();
    walk all(*this, true);
    if (s.ok()) s = follow(*this, trace_words_, all);
    if (!s.ok()) return s;
    std::scoped_lock held{sharing_lock_};
    for (const auto& [node, parents] : all.again()) sharing_[node] += parents;
    sharing_count_ = sharing_.size();
    return s;
}

void store::impl::run_trace() noexcept {
    status s;
    try {
        s = trace();
    } catch (const std::bad_alloc&) {
        s = {errc::io_error, "out of memory"};
    }
    std::scoped_lock held{trace_lock_};
    if (stop_trace_) trace_failed_ = true;
    else if (s.ok()) space_.end_trace();
    else trace_failed_ = true;
    trace_outcome_ = s;
    trace_done_.store(true, std::memory_order_release);
    traced_.notify_all();
}

status store::impl::verify() {
    if (super_ == nullptr) return {};
    (void)wait_for_trace();
    if (status s = space_.load_all(); !s.ok()) return s;
    std::vector<std::uint64_t> words;
    std::scoped_lock held{roots_lock_};
    std::vector<std::unique_lock<writer_lock>> writers;
    for (std::uint32_t i = 0; i < super_->cell_count; ++i) {
        root::volatile_part& part = part_of(i);
        if (part.family == nullptr) writers.emplace_back(part.lock);
        words.push_back(part.word.load(std::memory_order_relaxed));
    }
    walk all(*this, false);
    return follow(*this, words, all);
}

} // namespace hf::mod
