// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/measure.hpp>

#include <research/slpmt/study/search.hpp>

namespace hf::slpmt {
namespace {

/// Whether no crash finds anything, under undo, with whole caches and with tiny ones.
bool passes(std::string_view workload, const std::vector<annotation>& tried, std::uint64_t seed,
            std::uint64_t& points) {
    for (const bool small : {false, true}) {
        proof_case what{.workload = workload,
                        .insertions = workload == "hashtable" ? 160U : 60U,
                        .value_bytes = 16,
                        .seed = seed,
                        .interrupt_every = 0,
                        .continue_every = 40,
                        .stop_at_first = true};
        if (small) what.parts = small_caches();
        for (const auto& [name, how] : tried) what.annotations.emplace_back(name, how);
        const proof done = prove(what);
        points += done.points + done.continued;
        if (done.violations != 0) return false;
    }
    return true;
}

} // namespace

search_result search(std::string_view workload, std::uint64_t seed) {
    search_result got;
    measured_case once{.workload = workload, .value_bytes = 16, .seed = seed};
    const auto sites = measure(once).sites;
    for (const site& one : sites)
        got.fresh.emplace_back(
            one.name, one.stores != 0 && one.to_fresh == one.stores ? log_free : eager_logged);
    got.found = got.fresh;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const operands fresh = got.fresh[i].second;
        for (const operands how : {lazy_log_free, lazy_logged, log_free}) {
            if (how == fresh) break;
            got.found[i].second = how;
            if (passes(workload, got.found, seed, got.points)) break;
            got.found[i].second = fresh;
        }
    }
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const bool hand = sites[i].by_hand != eager_logged;
        const bool found = got.found[i].second != eager_logged;
        got.by_hand += hand;
        got.fresh_of_hand += hand && got.fresh[i].second != eager_logged;
        got.found_of_hand += hand && found;
        if (found && !hand) got.beyond_hand.emplace_back(sites[i].name);
    }
    return got;
}

} // namespace hf::slpmt
