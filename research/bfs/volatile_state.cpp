// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The search with nothing durable: what it costs anyway.
#include "search.hpp"

#include <deque>

namespace hf::apps::bfs {
namespace {

class volatile_state final : public search_state {
public:
    explicit volatile_state(node nodes) : own_levels_(nodes) { levels_ = own_levels_; }

    bool begun() const noexcept override { return begun_; }
    status set_begun() override {
        begun_ = true;
        return {};
    }
    void note_level(node reached, level its) noexcept override { own_levels_[reached] = its; }
    status push(node last) override {
        queue_.push_back(last);
        return {};
    }
    status pop() override {
        queue_.pop_front();
        return {};
    }
    bool front(node& first) const noexcept override {
        if (queue_.empty()) return false;
        first = static_cast<node>(queue_.front());
        return true;
    }
    void for_each_queued(const std::function<void(node)>& visit) const override {
        for (const std::uint64_t each : queue_) visit(static_cast<node>(each));
    }

private:
    std::vector<level> own_levels_;
    std::deque<std::uint64_t> queue_;
    bool begun_ = false;
};

} // namespace

result<std::unique_ptr<search_state>> open_volatile(const state_options&,
                                                    const graph_description& searched) {
    return std::unique_ptr<search_state>(std::make_unique<volatile_state>(searched.nodes));
}

} // namespace hf::apps::bfs
