// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <check/guard.hpp>
#include <check/lock_sets.hpp>
#include <check/pool_image.hpp>
#include <check/races.hpp>
#include <check/schedule.hpp>
#include <open/pool_impl.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace hf::crash {
namespace {

using namespace hf::check;

constexpr double run_seconds_max = 60;

std::vector<std::string> names_of(const lock_set& locks, const pool_image& in) {
    std::vector<std::string> out;
    for (const held_lock& each : locks) {
        const auto offset =
            static_cast<std::size_t>(static_cast<const std::byte*>(each.lock) - in.memory().data());
        std::string name = offset < in.memory().size()
                               ? fmt::format("the lock at byte {:#x} of the pool", offset)
                               : fmt::format("the lock at {}", each.lock);
        if (!each.writes) name += ", for reading";
        out.push_back(std::move(name));
    }
    return out;
}

found_races::side side_of(const lock_sets& all, const lock_sets::access& of, const pool_image& in) {
    return {of.thread, of.stores, all.calls_of(of), names_of(all.held_at(of), in)};
}

bool is_known(const found_races& in, const found_races::race& wanted) {
    return std::ranges::any_of(in.races, [&](const found_races::race& known) {
        const auto& a = known.first.calls;
        const auto& b = known.second.calls;
        const auto& c = wanted.first.calls;
        const auto& d = wanted.second.calls;
        return (a == c && b == d) || (a == d && b == c);
    });
}

void run_once(program& given, pool_image& image, turn_takers& threads, unsigned first,
              found_races& out) {
    image.reset();
    auto p = image.open();
    if (!p) {
        out.trouble.push_back(p.error().what());
        return;
    }
    lock_sets all(image.memory());
    {
        const watch watching(image.memory().data(), image.memory().size(), all);
        follow_places(true);
        follow_places_of_loads(true);
        threads.run(
            {first, {}},
            [&](unsigned t) {
                for (unsigned i = 0; i < given.operations(t); ++i) {
                    all.begin(t);
                    given.run(*p, t, i);
                    all.end();
                    turn_takers::
                        wait(); // the next thread's operation comes between two of this one
                }
            },
            [](unsigned) {});
        follow_places_of_loads(false);
        follow_places(false);
    }
    pool::impl::abandon(std::move(*p));
    for (const lock_sets::race& each : all.races()) {
        found_races::race race{each.second.word, side_of(all, each.first, image),
                               side_of(all, each.second, image)};
        if (!is_known(out, race)) out.races.push_back(std::move(race));
    }
    out.accesses += all.accesses();
}

std::string text_of(const found_races::side& of) {
    std::string out =
        fmt::format("  thread {} {} it, with {}\n", of.thread, of.stores ? "stores to" : "loads",
                    of.locks.empty() ? "no lock" : fmt::format("{}", fmt::join(of.locks, " and ")));
    for (const std::string& call : of.calls) out += "      " + call + "\n";
    return out;
}

} // namespace

found_races find_races(const std::string& name, program& given, const check_options& options) {
    found_races out;
    out.name = name;
    out.threads = given.threads();
    open_options how = given.options();
    how.mode = options.mode.value_or(how.mode);
    auto image = pool_image::make(how, given.made_with(), [&](pool& p) { given.setup(p); });
    if (!image) {
        out.trouble.push_back(image.error().what());
        return out;
    }
    if (out.threads > 1) {
        turn_takers threads(out.threads);
        for (unsigned first = 0; first < out.threads && out.trouble.empty(); ++first) {
            const std::string died =
                run_guarded(run_seconds_max, [&] { run_once(given, *image, threads, first, out); });
            if (!died.empty()) out.trouble.push_back("running it without a failure: it " + died);
        }
    }
    given.teardown();
    return out;
}

std::string for_people(const found_races& found) {
    std::string out = fmt::format("{}: {}, {} thread{}, {} accesses\n", found.name,
                                  !found.trouble.empty() ? "NOT RUN"
                                  : found.races.empty()  ? "no race"
                                                         : "RACE",
                                  found.threads, found.threads == 1 ? "" : "s", found.accesses);
    for (const std::string& t : found.trouble) out += "  " + t + "\n";
    for (const found_races::race& each : found.races)
        out += fmt::format("  race: no lock guards the word at byte {:#x} of the pool\n{}{}",
                           each.offset, text_of(each.first), text_of(each.second));
    if (!found.races.empty())
        out += "  mend: take one lock around all of these accesses, before the section begins, and "
               "keep it until it has returned\n";
    return out;
}

} // namespace hf::crash
