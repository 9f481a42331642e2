// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sections_under_test.hpp"

namespace hf::bench {
namespace {

struct engine_entry {
    std::string_view name;
    make_named_sections* make;
    bool (*has)(hf::mode);
};

bool every(hf::mode) { return true; }
bool fenced(hf::mode which) { return which != hf::mode::process; }

// In the order of tables. An entry without a fence has no floor with one.
const engine_entry entries[] = {
    {"by-hand", make_sections_by_hand, every}, {"by-hand-1f", make_sections_by_hand_1f, fenced},
    {"none", make_sections_none, every},       {"auto", make_sections_auto, every},
    {"redo", make_sections_redo, every},       {"undo", make_sections_undo, every},
    {"clobber", make_sections_clobber, every}, {"selective", make_sections_selective, every},
    {"justdo", make_sections_justdo, every},   {"ido", make_sections_ido, every},
    {"pmdk", make_sections_pmdk, every},
};

} // namespace

std::unique_ptr<sections_under_test> make_sections(std::string_view engine,
                                                   const map_options& file) {
    for (const engine_entry& each : entries)
        if (each.name == engine && each.has(file.mode)) return each.make(file);
    return nullptr;
}

std::vector<std::string> engines_for_sections(hf::mode mode) {
    std::vector<std::string> names;
    for (const engine_entry& each : entries)
        if (each.has(mode)) names.emplace_back(each.name);
    return names;
}

} // namespace hf::bench
