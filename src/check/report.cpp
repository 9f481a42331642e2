// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/symbols.hpp>
#include <check/races.hpp>
#include <check/report.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <utility>

namespace hf::crash {
namespace {

using namespace hf::check;

/// The reason why the lost store was missing, and what would have kept it.
blame::store lost_store(const missing_line& m, bool seen) {
    blame::store out{m.lost, m.lost_offset, m.lost_bytes, {}, {}, m.level > 0};
    if (seen) {
        out.fault =
            "was there after the kill, and recovery believed it, but nothing flushed its line "
            "before the power failed";
        out.mend = "flush its line where it is stored, or let recovery write back what it goes by "
                   "(hf::persist) before it is over";
    } else if (m.flushed) {
        out.fault = "was lost: its line was flushed, but no fence had completed that";
        out.mend =
            "fence after that flush, before the operation returns or stores what relies on it";
    } else {
        out.fault = "was lost: nothing had flushed its line since";
        out.mend =
            "flush its line and fence, before the operation returns or stores what relies on it; "
            "or store it in a failure-atomic function";
    }
    return out;
}

/// Nothing was lost: what survived should not have.
blame::store early_store(const trace_event& e) {
    return {e.place, e.offset, e.bytes,
            "survived the failure, and recovery neither finishes nor takes back what it is part of",
            "log it before it is stored (in a failure-atomic function with the other stores of "
            "its operation), or store it last, when what it relies on is durable"};
}

std::vector<code_place> places_of(const blame& b) {
    std::vector<code_place> out;
    for (const blame::store& s : b.guilty) out.push_back(s.place);
    return out;
}

/// The thread's operations begin and are acknowledged in turn.
std::string legal_text(const event_record& run, std::size_t at) {
    const unsigned thread = run.events[at].thread;
    const auto before =
        std::count_if(run.events.begin(), run.events.begin() + at, [&](const trace_event& e) {
            return e.kind == event_kind::legal && e.thread == thread;
        });
    return fmt::format("operation {} of thread {} {}", before / 2, thread,
                       before % 2 == 0 ? "begins" : "has returned");
}

std::string event_text(const event_record& run, std::size_t at) {
    const trace_event& e = run.events[at];
    if (e.kind == event_kind::legal) return legal_text(run, at);
    if (e.kind == event_kind::closed) return "the pool has been closed";
    if (e.kind == event_kind::flush_now) return fmt::format("clflush line {:#x}", e.offset);
    if (e.kind == event_kind::flush) return fmt::format("flush line {:#x}", e.offset);
    if (e.kind == event_kind::fence) return "fence";
    return fmt::format("{} {} byte{} at {:#x}",
                       e.kind == event_kind::nt_store ? "store, non-temporal," : "store", e.bytes,
                       e.bytes == 1 ? "" : "s", e.offset);
}

/// The events up to the failure, the last of them only.
std::string trace_text(const violation& v, const event_record& run) {
    constexpr std::size_t shown = 8;
    if (run.events.empty()) return {};
    const std::size_t end = std::min(v.last_event + 1, run.events.size());
    std::size_t begin = end - std::min(end, shown);
    // Events of the pool's opening are of no interest once operations have begun.
    const auto first = std::ranges::find(run.events, event_kind::legal, &trace_event::kind);
    if (const auto at = static_cast<std::size_t>(first - run.events.begin()); at < end)
        begin = std::max(begin, at);
    std::vector<code_place> places;
    for (std::size_t i = begin; i < end; ++i) places.push_back(run.events[i].place);
    look_up(places);
    std::string out =
        begin == 0 ? "" : fmt::format("    … {} event{}\n", begin, begin == 1 ? "" : "s");
    for (std::size_t i = begin; i < end; ++i) {
        const event_kind kind = run.events[i].kind;
        const bool placed = kind != event_kind::legal && kind != event_kind::closed;
        const auto calls = placed ? calls_at(run.events[i].place) : std::vector<std::string>();
        out += calls.empty()
                   ? fmt::format("    {:5}  {}\n", i, event_text(run, i))
                   : fmt::format("    {:5}  {:<40} {}\n", i, event_text(run, i), calls.front());
    }
    return out;
}

/// 'text' after 'head', in lines of at most 96 characters, the further ones indented.
std::string wrapped(const std::string& head, std::string_view text) {
    constexpr std::size_t width = 96;
    std::string out, line = head;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (line.size() + word.size() > width) {
            line.back() = '\n';
            out += std::exchange(line, "    ");
        }
        line.append(word) += text.empty() ? '\n' : ' ';
    }
    return out + line;
}

std::string guilty_text(const blame::store& s) {
    std::string out =
        fmt::format("  guilty: the store of {} byte{} at offset {:#x}{}\n", s.bytes,
                    s.bytes == 1 ? "" : "s", s.offset, s.by_recovery ? ", made by recovery" : "");
    for (const std::string& call : calls_at(s.place)) out += "      " + call + "\n";
    return out + wrapped("    ", s.fault) + wrapped("  mend: ", s.mend);
}

std::string violation_text(const violation& v, const event_record& run) {
    std::string out = fmt::format("  violation: {}\n", v.what);
    const bool killed = v.at.front().killed;
    out += fmt::format("  {} after event {} of the run",
                       killed ? "the process was killed" : "power failed", v.last_event);
    for (std::size_t i = 1; i < v.at.size(); ++i)
        if (v.at[i].close != closing::never)
            out += fmt::format(", the pool was recovered and {}, and power failed",
                               v.at[i].close == closing::at_once      ? "closed"
                               : v.at[i].close == closing::after_more ? "used and closed"
                                                                      : "closed with a seal");
        else
            out += fmt::format(", and {} after event {} of the recovery",
                               killed && i == 1 ? "power failed" : "again", v.at[i].event);
    out += "\n" + trace_text(v, run);
    const blame found = find_blame(v, run);
    look_up(places_of(found));
    for (const blame::store& s : found.guilty) out += guilty_text(s);
    if (found.guilty.empty() && found.in_recovery)
        out += wrapped("  guilty: ",
                       "recovery. It was cut short, nothing that it had stored was lost, and run "
                       "again it arrives elsewhere") +
               wrapped("  mend: ", "let recovery store nothing that it reads when it is run again");
    return out;
}

std::string complete_text(const checked_program& checked) {
    if (checked.found.complete || !checked.passed()) return {};
    if (checked.choices_left_out && checked.depth_complete > 0)
        return ", NOT COMPLETE: where a thread waited, not every other one was tried as the next";
    std::string out = ", NOT COMPLETE: the budget ran out";
    if (checked.depth_complete == 1) out += "; every failure alone was explored";
    if (checked.depth_complete > 1)
        out += fmt::format("; {} failures in a row were explored", checked.depth_complete);
    return out;
}

/// Places of redundant flushes and fences, with their numbers, the most frequent first.
std::vector<std::pair<std::string, std::size_t>> redundant_places(const checked_program& checked) {
    std::vector<code_place> all = checked.redundant_flushes;
    all.insert(all.end(), checked.redundant_fences.begin(), checked.redundant_fences.end());
    look_up(all);
    std::map<std::string, std::size_t> times;
    for (const code_place& place : all)
        if (const auto calls = calls_at(place); !calls.empty()) ++times[calls.front()];
    std::vector<std::pair<std::string, std::size_t>> out(times.begin(), times.end());
    std::ranges::sort(out, std::ranges::greater{}, &std::pair<std::string, std::size_t>::second);
    return out;
}

std::string redundant_text(const checked_program& checked) {
    if (checked.redundant_flushes.empty() && checked.redundant_fences.empty()) return {};
    std::string out =
        fmt::format("  redundant: {} flushes, {} fences", checked.redundant_flushes.size(),
                    checked.redundant_fences.size());
    const char* before = ": ";
    for (const auto& [place, times] : redundant_places(checked))
        out += fmt::format("{}{}{}", std::exchange(before, "; "), place,
                           times == 1 ? "" : fmt::format(" ({} times)", times));
    return out + "\n";
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20) out += ' ';
        else out += c;
    }
    return out + '"';
}

/// "12" or "12.3"; if there is no dot, the part after it is 'otherwise'.
struct dotted {
    std::size_t whole, part;
};

/// Such numbers between commas, perhaps none; false on anything else.
bool parse_numbers(std::string_view text, std::size_t otherwise, std::vector<dotted>& out) {
    while (!text.empty()) {
        const std::string_view one = text.substr(0, text.find(','));
        if (one.size() + 1 == text.size()) return false; // nothing after the comma
        text.remove_prefix(std::min(one.size() + 1, text.size()));
        dotted number{0, otherwise};
        const char *const begin = one.data(), *const end = begin + one.size();
        auto [after, error] = std::from_chars(begin, end, number.whole);
        if (error != std::errc{}) return false;
        if (after != end && *after == '.') {
            const auto dot = std::from_chars(after + 1, end, number.part);
            if (dot.ec != std::errc{}) return false;
            after = dot.ptr;
        }
        if (after != end) return false;
        out.push_back(number);
    }
    return true;
}

std::string dotted_text(std::size_t whole, std::size_t part, std::size_t otherwise) {
    return part == otherwise ? fmt::format("{}", whole) : fmt::format("{}.{}", whole, part);
}

std::string schedule_text(const schedule& by) {
    std::string out = dotted_text(by.first, by.ring, 0);
    for (std::size_t i = 0; i < by.switches.size(); ++i)
        out += "," + dotted_text(by.switches[i], i < by.steps.size() ? by.steps[i] : 1, 1);
    return out;
}

std::string guilty_json(const violation& v, const event_record& run) {
    std::string out;
    for (const blame::store& s : find_blame(v, run).guilty) {
        const auto calls = calls_at(s.place);
        out += fmt::format("{}{{\"place\":{},\"fault\":{},\"mend\":{}}}", out.empty() ? "" : ",",
                           quoted(calls.empty() ? "" : calls.front()), quoted(s.fault),
                           quoted(s.mend));
    }
    return out;
}

} // namespace

checked_program check_for_report(const std::string& name, program& given,
                                 const check_options& options) {
    const auto failures = [](const checked_program& c) {
        return c.found.violations.empty() ? 0 : c.found.violations.front().at.size();
    };
    checked_program found = check(name, given, options);
    if (failures(found) < 2) return found;
    // Recovery's places are not followed while searching: it would take half of the time.
    hf::check::follow_places_always();
    checked_program again = check(name, given, options);
    return failures(again) > 0 ? again : found;
}

blame find_blame(const violation& v, const event_record& run) {
    blame out;
    out.in_recovery = v.at.size() > 1 && v.at.back().close == closing::never;
    for (const missing_line& m : v.missing)
        if (m.lost_bytes > 0)
            out.guilty.push_back(lost_store(m, m.level == 0 && v.at.size() > 1 && !m.flushed));
    if (!out.guilty.empty() || out.in_recovery) return out;
    if (v.last_change < run.events.size())
        out.guilty.push_back(early_store(run.events[v.last_change]));
    return out;
}

std::string replay_text(const checked_program& checked, const violation& v) {
    std::string out;
    if (const schedule& by = checked.last_schedule;
        by.first != 0 || by.ring != 0 || !by.switches.empty())
        out = schedule_text(by) + "@";
    for (std::size_t i = 0; i < v.at.size(); ++i)
        out += fmt::format("{}{}{}:{}", i == 0 ? "" : "/",
                           v.at[i].killed                         ? "k"
                           : v.at[i].close == closing::at_once    ? "c"
                           : v.at[i].close == closing::after_more ? "m"
                           : v.at[i].close == closing::sealed     ? "s"
                                                                  : "",
                           dotted_text(v.at[i].event, v.at[i].part, 0),
                           fmt::join(v.at[i].choices, ","));
    return out;
}

replay_asked parse_replay(const std::string& text) {
    replay_asked out;
    std::string_view failures = text;
    if (const auto at = text.find('@'); at != text.npos) {
        std::vector<dotted> first, by;
        const std::string_view all = failures.substr(0, at);
        const auto comma = std::min(all.find(','), all.size());
        if (!parse_numbers(all.substr(0, comma), 0, first) || first.size() != 1 ||
            !parse_numbers(all.substr(std::min(comma + 1, all.size())), 1, by))
            return {};
        out.by.first = static_cast<unsigned>(first.front().whole);
        out.by.ring = static_cast<unsigned>(first.front().part);
        for (const dotted& d : by) {
            out.by.switches.push_back(d.whole);
            out.by.steps.push_back(static_cast<unsigned>(d.part));
        }
        failures.remove_prefix(at + 1);
    }
    while (!failures.empty()) {
        std::string_view one = failures.substr(0, failures.find('/'));
        failures.remove_prefix(std::min(one.size() + 1, failures.size()));
        const bool killed = out.failures.empty() && one.starts_with('k');
        closing close = closing::never;
        if (!out.failures.empty() && one.starts_with('c')) close = closing::at_once;
        if (!out.failures.empty() && one.starts_with('m')) close = closing::after_more;
        if (!out.failures.empty() && one.starts_with('s')) close = closing::sealed;
        if (killed || close != closing::never) one.remove_prefix(1);
        const auto colon = one.find(':');
        std::vector<dotted> event, choices;
        if (colon == one.npos || !parse_numbers(one.substr(0, colon), 0, event) ||
            event.size() != 1 || !parse_numbers(one.substr(colon + 1), 0, choices))
            return {};
        failure_point point{
            event[0].whole, {}, static_cast<unsigned>(event[0].part), killed, close};
        for (const dotted& d : choices)
            point.choices.push_back(static_cast<std::uint32_t>(d.whole));
        out.failures.push_back(std::move(point));
    }
    return out;
}

std::string built_from() { return HF_BUILT_FROM; }

std::string listed_json(const std::string& name, unsigned threads) {
    return fmt::format("{{\"name\":{},\"threads\":{}}}", quoted(name), threads);
}

std::string for_people(const checked_program& checked, const event_record& run,
                       const std::string& replay_command) {
    const exploration& e = checked.found;
    std::string out = fmt::format(
        "{}: {}, {} states ({} equal to one of them), {} failures at {} events, {} closes, {} "
        "schedule{}, {:.2f} s, {:.0f} states/s{}\n",
        checked.name, checked.passed() ? "no violation" : "VIOLATION", e.states, e.merged,
        e.failures, e.events, e.closes, checked.schedules, checked.schedules == 1 ? "" : "s",
        e.seconds, e.seconds > 0 ? static_cast<double>(e.states) / e.seconds : 0.0,
        complete_text(checked));
    if (e.reduced) out += "  some combinations of unordered non-temporal words were left out\n";
    out += redundant_text(checked);
    for (const std::string& t : checked.trouble) out += "  " + t + "\n";
    for (const violation& v : e.violations) {
        out += violation_text(v, run);
        out += fmt::format("  replay: {} --replay {}\n          ({})\n", replay_command,
                           replay_text(checked, v), built_from());
    }
    return out;
}

std::string for_programs(const checked_program& checked, const event_record& run) {
    const exploration& e = checked.found;
    std::string violations;
    for (const violation& v : e.violations)
        violations += fmt::format("{}{{\"what\":{},\"replay\":{},\"guilty\":[{}]}}",
                                  violations.empty() ? "" : ",", quoted(v.what),
                                  quoted(replay_text(checked, v)), guilty_json(v, run));
    std::string redundant;
    for (const auto& [place, times] : redundant_places(checked))
        redundant += fmt::format("{}{{\"place\":{},\"times\":{}}}", redundant.empty() ? "" : ",",
                                 quoted(place), times);
    for (const std::string& t : checked.trouble)
        violations += fmt::format("{}{{\"what\":{}}}", violations.empty() ? "" : ",", quoted(t));
    return fmt::format(
        "{{\"name\":{},\"passed\":{},\"complete\":{},\"depth_complete\":{},"
        "\"states\":{},\"images\":{:g},\"merged\":{},"
        "\"failures\":{},\"events\":{},\"closes\":{},\"schedules\":{},\"seconds\":{:.4f},"
        "\"redundant_flushes\":{},\"redundant_fences\":{},\"redundant\":[{}],\"violations\":[{}]}}",
        quoted(checked.name), checked.passed(), e.complete, checked.depth_complete, e.states,
        e.images, e.merged, e.failures, e.events, e.closes, checked.schedules, e.seconds,
        checked.redundant_flushes.size(), checked.redundant_fences.size(), redundant, violations);
}

std::string for_programs(const found_races& found) {
    const auto list = [](const std::vector<std::string>& texts) {
        std::string out;
        for (const std::string& text : texts) out += (out.empty() ? "" : ",") + quoted(text);
        return out;
    };
    const auto side = [&](const found_races::side& of) {
        return fmt::format("{{\"thread\":{},\"stores\":{},\"calls\":[{}],\"locks\":[{}]}}",
                           of.thread, of.stores, list(of.calls), list(of.locks));
    };
    std::string races;
    for (const found_races::race& each : found.races)
        races +=
            fmt::format("{}{{\"offset\":{},\"first\":{},\"second\":{}}}", races.empty() ? "" : ",",
                        each.offset, side(each.first), side(each.second));
    return fmt::format("{{\"name\":{},\"passed\":{},\"threads\":{},\"accesses\":{},\"races\":[{}],"
                       "\"trouble\":[{}]}}",
                       quoted(found.name), found.passed(), found.threads, found.accesses, races,
                       list(found.trouble));
}

} // namespace hf::crash
