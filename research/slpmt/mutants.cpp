// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <slpmt/mutants.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hf::slpmt {
namespace {

/// Stores of a workload that are eager and logged, and wrong with any other annotation, except
/// those in "right": for these no crash could show a difference.
struct wrong_sites {
    std::string_view workload;
    std::vector<std::string_view> sites;
    std::vector<std::pair<std::string_view, operands>> right;
};

const wrong_sites all_wrong[] = {
    // A resize is committed by its first eager store: which of the others stay behind, recovery
    // does not ask.
    {"hashtable",
     {"chain first", "table slots", "table slot count", "old table"},
     {{"table slots", lazy_logged}, {"table slot count", lazy_logged}, {"old table", log_free}}},
    {"rbtree", {"root", "child"}, {}},
    {"heap", {"element", "size"}, {}},
    {"avl", {"root", "child"}, {}},
    {"kv-btree", {"root", "count", "key", "value", "child"}, {}},
    {"kv-rtree", {"root", "slot"}, {}},
};

std::string words_of(operands how) {
    return !how.lazy ? "log-free" : how.log_free ? "lazy, log-free" : "lazy";
}

proof_case case_of(std::string_view workload, std::uint64_t seed) {
    return {.workload = workload,
            .insertions = workload == "hashtable"  ? 70U
                          : workload == "kv-rtree" ? 12U
                                                   : 40U,
            .value_bytes = 16,
            .seed = seed,
            .interrupt_every = 0,
            .continue_every = 0,
            .stop_at_first = true};
}

void add_machines(std::vector<mutant>& to, std::uint64_t seed) {
    const auto add = [&](const char* name, std::string_view workload, const technique& how,
                         std::uint64_t insertions) {
        mutant one{fmt::format("{} ({})", name, workload), case_of(workload, seed)};
        one.what.how = how;
        one.what.parts = small_caches();
        one.what.insertions = insertions;
        to.push_back(one);
    };
    technique text = slpmt;
    text.persists_leaving = false;
    add("lazy lines leave the private caches unwritten", "hashtable", text, 160);
    text = with_redo(fg, "FG, redo");
    text.guards_overflow = false;
    for (const char* workload : {"rbtree", "avl", "kv-btree"})
        add("redo: logged lines leave before the mark", workload, text, 60);
    text = with_redo(slpmt, "SLPMT, redo");
    text.logs_mixed_lines = false;
    add("redo: log-free words of logged lines are in no record", "rbtree", text, 60);
    add("moved lazily by the text: nothing names the old table", hashtable_by_the_text, slpmt, 160);
}

} // namespace

std::vector<mutant> mutants(std::uint64_t seed) {
    std::vector<mutant> all;
    for (const wrong_sites& of : all_wrong)
        for (const std::string_view site : of.sites)
            for (const operands how : {log_free, lazy_log_free, lazy_logged}) {
                if (std::ranges::count(of.right, std::pair(site, how)) != 0) continue;
                mutant one{fmt::format("{}: {} is {}", of.workload, site, words_of(how)),
                           case_of(of.workload, seed)};
                one.what.annotations.emplace_back(site, how);
                all.push_back(one);
            }
    add_machines(all, seed);
    return all;
}

} // namespace hf::slpmt
