// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <check/history.hpp>

#include <algorithm>

namespace hf::check {

std::vector<operation_order> all_orders(const std::vector<unsigned>& operations) {
    std::vector<operation_order> all{{}};
    for (std::size_t i = 0; i < all.size(); ++i)
        for (unsigned t = 0; t < operations.size(); ++t) {
            operation_order longer = all[i];
            if (std::ranges::count(longer, t) == operations[t]) continue;
            longer.push_back(t);
            all.push_back(std::move(longer));
        }
    return all;
}

history::history(const std::map<operation_order, outcome>& states) : states_(&states) {}

history::per_thread& history::of_thread(unsigned thread) {
    if (threads_.size() <= thread) threads_.resize(thread + 1);
    return threads_[thread];
}

void history::began(unsigned thread) {
    of_thread(thread);
    std::vector<unsigned> before;
    for (const per_thread& t : threads_) before.push_back(t.acknowledged);
    threads_[thread].before.push_back(std::move(before));
}

void history::acknowledged(unsigned thread, bool buffered) {
    per_thread& t = of_thread(thread);
    ++t.acknowledged;
    t.durable = t.acknowledged - (buffered ? 1 : 0);
}

void history::settled() {
    for (per_thread& t : threads_) t.durable = t.acknowledged;
}

bool history::possible(const operation_order& order) const {
    std::vector<unsigned> done(threads_.size());
    for (const unsigned t : order) {
        if (t >= threads_.size() || done[t] == threads_[t].before.size()) return false;
        const auto& before = threads_[t].before[done[t]];
        for (std::size_t u = 0; u < before.size(); ++u)
            if (done[u] < before[u]) return false; // (2)
        ++done[t];
    }
    for (std::size_t t = 0; t < threads_.size(); ++t)
        if (done[t] < threads_[t].durable) return false; // (1)
    return true;
}

legal_set history::legal() const {
    legal_set out;
    for (const auto& [order, state] : *states_)
        if (possible(order) && std::ranges::find(out, state) == out.end()) out.push_back(state);
    std::ranges::sort(out);
    return out;
}

} // namespace hf::check
