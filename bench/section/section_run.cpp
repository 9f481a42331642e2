// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section_run.hpp"

#include "../measured.hpp"
#include "../run.hpp"
#include "../temporary_file.hpp"
#include "instructions.hpp"
#include "plain_sections.hpp"

#include <algorithm>
#include <cstring>

namespace hf::bench {
namespace {

using nlohmann::ordered_json;

struct measured_case {
    const char* name;
    section_call* section_calls::* call;
    section_call* plain; // null: the object is what it was
    std::uint64_t share; // of the calls
    unsigned threads = 1;
};
constexpr measured_case cases[] = {
    {"nothing stored", &section_calls::nothing, plain_sections::nothing, 1},
    {"one store", &section_calls::one, plain_sections::one, 1},
    {"four stores", &section_calls::four, plain_sections::four, 1},
    {"64 stores", &section_calls::many, plain_sections::many, 16},
    {"64 to one word", &section_calls::loop, plain_sections::loop, 16},
    {"a node", &section_calls::node, nullptr, 1},
    {"one, 2 threads", &section_calls::one, plain_sections::one, 1, section_threads},
};

constexpr std::uint64_t stepped_calls = 2; // where instructions are counted

measured call(sections_under_test& on, section_call* section, std::uint64_t times,
              unsigned threads) {
    return measure_threads(threads, [&](unsigned w) {
        on.enter(w);
        section_object* const own = &on.root()->of_thread[w];
        for (std::uint64_t i = 0; i < times; ++i) section(own);
        return true;
    });
}

void call_plain(section_root& expected, const measured_case& one, std::uint64_t times) {
    if (one.plain == nullptr) return;
    for (unsigned w = 0; w < one.threads; ++w)
        for (std::uint64_t i = 0; i < times; ++i) one.plain(&expected.of_thread[w]);
}

} // namespace

std::vector<std::string> section_cases() {
    std::vector<std::string> names;
    for (const measured_case& each : cases) names.emplace_back(each.name);
    return names;
}

ordered_json run_sections(const section_options& options) {
    map_options file;
    file.directory = options.directory;
    file.mode = mode_named(options.mode);
    file.keys = 1;
    file.prefault = options.prefault;
    const std::unique_ptr<sections_under_test> on = make_sections(options.engine, file);
    if (on == nullptr)
        give_up(options.engine + ": no such engine for sections in mode " + options.mode);
    const auto expected = std::make_unique<section_root>();
    ordered_json out;
    for (const measured_case& one : cases) {
        section_call* const section = on->calls.*one.call;
        const std::uint64_t times = std::max<std::uint64_t>(1, options.ops / one.share);
        const std::uint64_t before = (times + 9) / 10; // the clock starts
        call(*on, section, before, one.threads);
        const measured result = call(*on, section, times, one.threads);
        const std::uint64_t stepped = options.instructions && one.threads == 1 ? stepped_calls : 0;
        ordered_json& to = out[one.name];
        to["ns"] = 1e9 * result.cpu_seconds / static_cast<double>(times * one.threads);
        to["fences"] = nullptr;
        if (on->facts().counts_events)
            to["fences"] = static_cast<double>(result.events.fences) /
                           static_cast<double>(times * one.threads);
        to["instructions"] = nullptr;
        if (stepped != 0)
            to["instructions"] = instructions_of(section, &on->root()->of_thread[0], stepped);
        call_plain(*expected, one, before + times + stepped);
        if (std::memcmp(on->root(), expected.get(), sizeof *expected) != 0)
            give_up(options.engine + ", " + one.name +
                    ": the memory is not what plain code makes of it");
    }
    return out;
}

} // namespace hf::bench
