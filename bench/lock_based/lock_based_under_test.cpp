// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lock_based_under_test.hpp"

#include "../ours/lock_based.hpp"

namespace hf::bench {
namespace {

struct engine_entry {
    std::string_view name;
    make_ours_lock_based* make;
};

// The order is that of tables.
const engine_entry entries[] = {
    {"none", make_lock_based_none}, {"undo", make_lock_based_undo},
    {"redo", make_lock_based_redo}, {"justdo", make_lock_based_justdo},
    {"ido", make_lock_based_ido},
};

} // namespace

std::string_view name_of(lock_based which) {
    switch (which) {
    case lock_based::queue: return "jd-queue";
    case lock_based::stack: return "jd-stack";
    case lock_based::priority: return "jd-priority";
    case lock_based::map: return "jd-map";
    case lock_based::vector: return "jd-vector";
    }
    return "";
}

const std::vector<lock_based>& all_lock_based() {
    static const std::vector<lock_based> all{lock_based::queue, lock_based::stack,
                                             lock_based::priority, lock_based::map,
                                             lock_based::vector};
    return all;
}

std::optional<lock_based> lock_based_named(std::string_view name) {
    for (const lock_based each : all_lock_based())
        if (name_of(each) == name) return each;
    return std::nullopt;
}

std::unique_ptr<lock_based_under_test> make_lock_based(std::string_view engine,
                                                       const lock_based_options& options) {
    for (const engine_entry& each : entries)
        if (each.name == engine) return each.make(options);
    return nullptr;
}

std::vector<std::string> engines_for(lock_based) {
    std::vector<std::string> names;
    for (const engine_entry& each : entries) names.emplace_back(each.name);
    return names;
}

} // namespace hf::bench
