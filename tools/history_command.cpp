// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "history_command.hpp"

#include "json.hpp"
#include "lost_bytes.hpp"
#include <pool/file_checks.hpp>
#include <simpo/past.hpp>
#include <verify/examine.hpp>
#include <verify/power_log.hpp>
#include <verify/read_file.hpp>

#include <holdfast/simpo/zstd.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hf::tools {
namespace {

struct asked {
    std::string path, object;
    bool json = false;
};

[[noreturn]] void refuse(const status& why) {
    fmt::print(stderr, "{}\n", why.what());
    const bool damaged = why.code() == errc::corrupt || why.code() == errc::bad_argument;
    throw cli::leave{damaged ? 1 : 2};
}

/// What the pool's file says of the object, and of calls that only its log has.
simpo::past_source source(const asked& a) {
    answer_lost_bytes();
    auto file = verify::read_file::open(a.path);
    if (!file) refuse(file.error());
    const verify::report found = verify::examine_with_log(a.path, *file, verify::depth::structure);
    if (!found.has_header)
        refuse(refusal(a.path, errc::not_a_pool, "expected a pool's header, found none"));
    const auto its = std::ranges::find(found.objects, a.object, &verify::persistent_object::name);
    if (its == found.objects.end())
        refuse(refusal(a.path, errc::not_found,
                       fmt::format("there is no persistent object \"{}\": holdfast info names "
                                   "those that are there",
                                   a.object)));
    const std::byte* const at = file->bytes().data() + its->offset; // within bounds, as examined
    simpo::object_head head;
    std::memcpy(&head, at, sizeof head);
    if (head.history == 0)
        refuse(
            refusal(a.path, errc::not_found,
                    fmt::format("object \"{}\" has no history: hf::simpo::keep_history begins one",
                                a.object)));
    static const simpo::zstd packing;
    simpo::past_source out{simpo::history_file(a.path, head),  {}, &packing,
                           simpo::position_of(head.resilient), {}, head};
    std::ranges::copy(found.header.uuid, out.pool.begin());
    if (!its->swapped_out)
        out.logged = simpo::logged_calls(head, at + simpo::layout_of(head).log_offset);
    return out;
}

void print(const simpo::past_call& c) {
    const std::string name = c.function.empty() ? fmt::format("{:#x}", c.identifier) : c.function;
    fmt::print("{:10} {:6}  {}({}){}{}{}\n", c.number, c.bytes, name, fmt::join(c.arguments, ", "),
               c.caller == 0 ? "" : fmt::format(", call {} of caller {}", c.operation, c.caller),
               c.deferred ? "" : ", ended a group", c.in_pool ? ", in the pool's log" : "");
}

json_text to_json(const simpo::past_call& c) {
    return {{"number", c.number},   {"function", c.function},   {"identifier", c.identifier},
            {"version", c.version}, {"bytes", c.bytes},         {"deferred", c.deferred},
            {"caller", c.caller},   {"operation", c.operation}, {"arguments", c.arguments},
            {"in_pool", c.in_pool}};
}

void history(const asked& a) {
    simpo::past_source from = source(a);
    const auto calls = simpo::past_calls(from);
    if (!calls) refuse(calls.error());
    if (a.json) {
        json_text all = json_text::array();
        for (const simpo::past_call& c : *calls) all.push(to_json(c));
        fmt::print("{}\n", json_text{{"pool", a.path},
                                     {"object", a.object},
                                     {"file", from.file.path()},
                                     {"calls", all}}
                               .text());
    } else {
        fmt::print("    number  bytes  call\n");
        for (const simpo::past_call& c : *calls) print(c);
    }
    throw cli::leave{0};
}

} // namespace

void add_history_command(const cli::command& app, char**) {
    const auto a = std::make_shared<asked>();
    const cli::command command =
        app.subcommand("history", "the calls of a persistent object that were kept");
    command.value("POOL", a->path, "the pool's file").required();
    command.value("OBJECT", a->object, "the object's name").required();
    command.flag("--json", a->json, "print one JSON object");
    command.footer("A program keeps an object's calls by hf::simpo::keep_history, and opens the "
                   "object as it was after one of them by hf::simpo::past.");
    command.callback([a] { history(*a); });
}

} // namespace hf::tools
