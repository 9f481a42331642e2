// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequence_under_test.hpp"

#include "sequences.hpp"

namespace hf::bench {
namespace {

struct engine_entry {
    std::string_view name;
    make_named_sequence* make;
};

// The order is that of tables.
const engine_entry entries[] = {
    {"mod", make_sequence_mod},
    {"pmdk", make_sequence_pmdk},
    {"pmdk-actions", make_sequence_pmdk_actions},
    {"floor-1f", make_sequence_floor_1f},
    {"floor-2f", make_sequence_floor_2f},
    {"volatile", make_sequence_volatile},
};

} // namespace

std::string_view name_of(sequence which) {
    switch (which) {
    case sequence::stack: return "stack";
    case sequence::queue: return "queue";
    case sequence::vector: return "vector";
    case sequence::vecswap: return "vecswap";
    }
    return "";
}

const std::vector<sequence>& all_sequences() {
    static const std::vector<sequence> all{sequence::stack, sequence::queue, sequence::vector,
                                           sequence::vecswap};
    return all;
}

std::optional<sequence> sequence_named(std::string_view name) {
    for (const sequence each : all_sequences())
        if (name_of(each) == name) return each;
    return std::nullopt;
}

map_options file_options(const sequence_options& options) {
    map_options file = options.file;
    file.value_bytes = 32;
    file.keys = options.elements + options.pushes;
    return file;
}

std::unique_ptr<sequence_under_test> make_sequence(std::string_view engine,
                                                   const sequence_options& options) {
    for (const engine_entry& each : entries)
        if (each.name == engine) return each.make(options);
    return nullptr;
}

std::vector<std::string> engines_for(sequence) {
    std::vector<std::string> names;
    for (const engine_entry& each : entries) names.emplace_back(each.name);
    return names;
}

} // namespace hf::bench
