// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "search.hpp"

#include "../../apps/hash.hpp"

#include <algorithm>

namespace hf::apps::bfs {
namespace {

class searching {
public:
    searching(const graph& in, search_state& state, step_observer observer)
        : in_(in), state_(state), observer_(observer) {}

    status run() {
        if (status done = begin(); !done.ok()) return done;
        node first = 0;
        while (state_.front(first)) {
            if (status done = expand(first); !done.ok()) return done;
            if (status done = state_.pop(); !done.ok()) return done;
            ++found.popped;
            step();
        }
        return {};
    }

    search_result found;

private:
    status begin() {
        if (state_.begun()) {
            careful_ = 2; // (3)
            queued_.assign(in_.description().nodes, false);
            state_.for_each_queued([this](node each) { queued_[each] = true; });
            return {};
        }
        node first = 0;
        // Or a crash came between the two.
        if (!state_.front(first))
            if (status done = reach(in_.source(), 1); !done.ok()) return done;
        return state_.set_begun();
    }
    status expand(node from) {
        const level* const levels = state_.levels().data();
        const level next = levels[from] + 1;
        const std::span<const node> edges = in_.from(from);
        // Levels lie anywhere, and those that were flushed not in the cache.
        constexpr std::size_t ahead = 16;
        for (const node to : edges.first(std::min(ahead, edges.size())))
            __builtin_prefetch(levels + to);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            if (i + ahead < edges.size()) __builtin_prefetch(levels + edges[i + ahead]);
            const node to = edges[i];
            const bool doubtful = careful_ != 0 && levels[to] == next && !queued_[to];
            if (levels[to] != 0 && !doubtful) continue;
            if (status done = reach(to, next); !done.ok()) return done;
        }
        if (careful_ != 0) --careful_;
        return {};
    }
    status reach(node to, level its) {
        state_.note_level(to, its); // before the push: (1)
        step();
        if (status done = state_.push(to); !done.ok()) return done;
        if (careful_ != 0) queued_[to] = true;
        ++found.pushed;
        step();
        return {};
    }
    void step() {
        if (observer_ != nullptr) observer_(++steps_);
    }

    const graph& in_;
    search_state& state_;
    step_observer observer_;
    std::uint64_t steps_ = 0;
    unsigned careful_ = 0;     // nodes still to be expanded as (3) says
    std::vector<bool> queued_; // as long as careful_ is not 0
};

} // namespace

result<search_result> search(const graph& in, search_state& state, step_observer observer) {
    searching now(in, state, observer);
    if (status done = now.run(); !done.ok()) return done;
    const auto levels = state.levels();
    search_result& found = now.found;
    found.reached = static_cast<std::uint32_t>(levels.size()) -
                    static_cast<std::uint32_t>(std::ranges::count(levels, level{0}));
    found.depth = *std::ranges::max_element(levels) - 1;
    found.checksum = apps::hash_of(levels.data(), levels.size_bytes(), 0);
    return found;
}

result<std::unique_ptr<search_state>> open_state(const state_options& options,
                                                 const graph_description& searched) {
    if (options.engine == "mod") return open_mod(options, searched);
    if (options.engine == "pmdk") return open_pmdk(options, searched);
    if (options.engine == "volatile") return open_volatile(options, searched);
    return status(errc::bad_argument, "no such engine: " + options.engine);
}

} // namespace hf::apps::bfs
