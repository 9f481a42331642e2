// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search on a mod::queue: one ordering point for each push and pop. Levels are a plain array in
// the pool, stored in place and flushed; the fence of the section that follows orders them.
#include "search.hpp"

#include <holdfast/alloc.hpp>
#include <holdfast/author/mod/store.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/pool.hpp>

#include <algorithm>
#include <utility>

namespace hf::apps::bfs {
namespace {

using nodes_queue = mod::queue<std::uint64_t>;

struct root_object {
    level* levels; // null until all of them are 0
    graph_description searched;
    std::uint64_t begun;
};

class mod_state final : public search_state {
public:
    mod_state(hf::pool opened, root_object* root, nodes_queue queue)
        : pool_(std::move(opened)), domain_(pool_.domain()), root_(root), queue_(queue) {
        levels_ = {root->levels, root->searched.nodes};
    }

    bool begun() const noexcept override { return root_->begun != 0; }
    status set_begun() override {
        mod::store::in(pool_).settle(); // the source has been pushed
        persist::store_word(domain_, &root_->begun, 1);
        persist::fence(domain_);
        return {};
    }
    void note_level(node reached, level its) noexcept override {
        levels_[reached] = its;
        persist::flush(domain_, &levels_[reached], sizeof its);
    }
    status push(node last) override { return queue_.push(last); }
    status pop() override {
        const auto popped = queue_.pop();
        return popped ? status() : popped.error();
    }
    bool front(node& first) const noexcept override {
        if (queue_.empty()) return false;
        first = static_cast<node>(queue_.front());
        return true;
    }
    void for_each_queued(const std::function<void(node)>& visit) const override {
        for (const std::uint64_t each : queue_.snapshot()) visit(static_cast<node>(each));
    }

private:
    hf::pool pool_;
    hf::domain domain_;
    root_object* root_;
    nodes_queue queue_;
};

open_options how_to_open(const state_options& options, const graph_description& searched) {
    open_options how;
    how.layout = "holdfast-bfs/1";
    how.layout_hash = sizeof(root_object);
    how.create_bytes = 16_MiB + searched.nodes * 32ULL; // the queue at its longest, and the levels
    how.max_bytes = 64 * how.create_bytes;
    how.mode = options.power ? mode::pmem : mode::process;
    how.engines = {mod::engine()};
    how.expert.prefault = options.prefault;
    how.expert.seal = false;
    return how;
}

// A crash before the last store leaves a block that nothing names, and a search that has not begun.
status make_levels(const hf::pool& in, root_object* root, const graph_description& searched) {
    auto* const fresh = make_array<level>(searched.nodes);
    if (fresh == nullptr) return in.why_full();
    std::fill_n(fresh, searched.nodes, level{0});
    root->searched = searched;
    persist::flush(in.domain(), fresh, searched.nodes * sizeof(level));
    persist::persist(in.domain(), &root->searched, sizeof searched);
    root->levels = fresh;
    persist::persist(in.domain(), &root->levels, sizeof root->levels);
    return {};
}

} // namespace

result<std::unique_ptr<search_state>> open_mod(const state_options& options,
                                               const graph_description& searched) {
    auto opened = pool::open(options.path, how_to_open(options, searched));
    if (!opened) return opened.error();
    const auto found = opened->find_root<root_object>();
    if (!found) return found.error();
    root_object* const root = *found;
    if (root->levels == nullptr)
        if (status made = make_levels(*opened, root, searched); !made.ok()) return made;
    if (root->searched != searched)
        return status(errc::wrong_layout, options.path + ": holds the search of another graph");
    auto queue = nodes_queue::open(*opened, {.name = "queue"});
    if (!queue) return queue.error();
    return std::unique_ptr<search_state>(
        std::make_unique<mod_state>(std::move(*opened), root, *queue));
}

} // namespace hf::apps::bfs
