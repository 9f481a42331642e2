// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search on libpmemobj: a linked queue as its manual teaches, one transaction for each push and
// pop. Levels are stored and flushed as in mod_state.cpp, outside the transactions: the fences of
// the push that follows order them. It logs no more than the queue itself.
#include "../peer/pmdk.hpp"
#include "search.hpp"

#include <algorithm>

namespace hf::apps::bfs {
namespace {

struct queued {
    std::uint64_t element;
    PMEMoid next;
};
struct queue_ends {
    PMEMoid front;
    PMEMoid back;
};
struct root_object {
    queue_ends queue;
    PMEMoid levels; // zeros at first
    graph_description searched;
    std::uint64_t begun;
};
constexpr std::uint64_t queued_type = 1, levels_type = 2;

class pmdk_state final : public search_state {
public:
    pmdk_state(pmdk::pool_handle opened, root_object* root)
        : pool_(std::move(opened)), root_(root) {
        levels_ = {pmdk::direct<level>(root->levels), root->searched.nodes};
    }

    bool begun() const noexcept override { return root_->begun != 0; }
    status set_begun() override {
        root_->begun = 1;
        pmemobj_persist(pool_.get(), &root_->begun, sizeof root_->begun);
        return {};
    }
    void note_level(node reached, level its) noexcept override {
        levels_[reached] = its;
        pmemobj_flush(pool_.get(), &levels_[reached], sizeof its);
    }
    status push(node last) override {
        queue_ends& ends = root_->queue;
        return pmdk::in_transaction(pool_.get(), [&] {
            const PMEMoid fresh = pmemobj_tx_alloc(sizeof(queued), queued_type);
            auto* const made = pmdk::direct<queued>(fresh);
            made->element = last;
            made->next = OID_NULL;
            if (OID_IS_NULL(ends.front)) {
                pmdk::snapshot(&ends);
                ends.front = fresh;
            } else {
                auto* const before = pmdk::direct<queued>(ends.back);
                pmdk::snapshot(&before->next);
                pmdk::snapshot(&ends.back);
                before->next = fresh;
            }
            ends.back = fresh;
        });
    }
    status pop() override {
        queue_ends& ends = root_->queue;
        return pmdk::in_transaction(pool_.get(), [&] {
            const PMEMoid old = ends.front;
            pmdk::snapshot(&ends.front);
            ends.front = pmdk::direct<queued>(old)->next;
            pmemobj_tx_free(old);
        });
    }
    bool front(node& first) const noexcept override {
        if (OID_IS_NULL(root_->queue.front)) return false;
        first = static_cast<node>(pmdk::direct<queued>(root_->queue.front)->element);
        return true;
    }
    void for_each_queued(const std::function<void(node)>& visit) const override {
        for (const auto* each = pmdk::direct<queued>(root_->queue.front); each != nullptr;
             each = pmdk::direct<queued>(each->next))
            visit(static_cast<node>(each->element));
    }

private:
    pmdk::pool_handle pool_;
    root_object* root_;
};

// 64 bytes for a queued node and its header, once for each node of the graph.
std::size_t pool_bytes(const graph_description& searched) {
    return (std::size_t{32} << 20) + searched.nodes * (64 + sizeof(level));
}

} // namespace

result<std::unique_ptr<search_state>> open_pmdk(const state_options& options,
                                                const graph_description& searched) {
    auto opened = pmdk::open(options.path, "bfs", pool_bytes(searched), options.prefault);
    if (!opened) return opened.error();
    PMEMobjpool* const pool = opened->get();
    auto* const root = pmdk::direct<root_object>(pmemobj_root(pool, sizeof(root_object)));
    if (root == nullptr) return pmdk::failed("pmemobj_root");
    if (OID_IS_NULL(root->levels)) {
        const status made = pmdk::in_transaction(pool, [&] {
            pmdk::snapshot(root);
            root->searched = searched;
            root->levels = pmemobj_tx_zalloc(searched.nodes * sizeof(level), levels_type);
        });
        if (!made.ok()) return made;
    }
    if (root->searched != searched)
        return status(errc::wrong_layout, options.path + ": holds the search of another graph");
    return std::unique_ptr<search_state>(std::make_unique<pmdk_state>(std::move(*opened), root));
}

} // namespace hf::apps::bfs
