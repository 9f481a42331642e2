// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <check/explorer_frame.hpp>
#include <check/guard.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>

namespace hf::check {
namespace {

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace

exploration& exploration::operator+=(const exploration& more) {
    states += more.states;
    images += more.images;
    merged += more.merged;
    failures += more.failures;
    events += more.events;
    closes += more.closes;
    seconds += more.seconds;
    complete &= more.complete;
    reduced |= more.reduced;
    violations.insert(violations.end(), more.violations.begin(), more.violations.end());
    return *this;
}

explorer::explorer(std::span<std::byte> memory, domain d, std::function<verdict()> recover,
                   const explore_options& options)
    : memory_(memory), domain_(d), recover_(std::move(recover)), options_(options),
      number_of_(memory.size() / line_bytes), start_(std::chrono::steady_clock::now()) {
    HF_ASSERT(memory.size() % line_bytes == 0 && options.depth >= 1);
    const unsigned levels = options.depth + (options.close_one_in > 0 ? 1 : 0);
    for (unsigned level = 0; level < levels; ++level) {
        frames_.push_back(std::make_unique<frame>());
        frames_.back()->level = level;
    }
}

explorer::~explorer() = default;

bool explorer::out_of_budget() {
    if (result_.states >= options_.states_max) return true;
    if (result_.states % 64 != 0) return false;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return spent.count() > options_.seconds_max;
}

// --- the run explored

void explorer::explore(std::span<const std::byte> before, const event_record& run,
                       const std::vector<legal_set>& legal) {
    const double begin = cpu_seconds();
    const watch watching(memory_.data(), memory_.size(), *this);
    frame& f = *frames_[0];
    before_ = before;
    f.memory = persistent_memory(domain_, {});
    f.unknown.clear();
    f.unmet.clear();
    f.killed = false;
    f.after = closing::never;
    f.identity = ++explored_runs_ << 32;
    std::memcpy(memory_.data(), before.data(), before.size());
    f.image.clear();
    digests_before_.clear();
    for (std::size_t line = 0; line < touched_.size(); ++line) {
        std::memcpy(f.image.emplace_back().data(), place_of(line), line_bytes);
        f.memory.extend(f.image.back());
        digests_before_.push_back(digest_of(line, {f.image.back()}));
    }
    f.open.assign(touched_.size(), 0);
    f.contents.clear();
    f.digests.assign(touched_.size(), 0); // of lines that have changed
    f.digest = 0;
    explore_run(f, run, legal);
    result_.seconds += cpu_seconds() - begin;
}

void explorer::explore_run(frame& f, const event_record& run, const std::vector<legal_set>& legal) {
    f.explored = &run;
    f.changed.clear();
    f.new_line = no_line;
    f.epoch = 0;
    f.closed = false;
    const legal_set* now = &legal[0];
    f.event = 0;
    f.part = failure_point::before_it;
    if (f.level == 0 && !fail_here(f, *now)) return;
    f.part = 0;
    // Otherwise the memory is that from which the run above has just recovered.
    bool stored = f.level == 0 || frames_[f.level - 1]->killed;
    for (std::size_t i = 0; i < run.events.size(); ++i) {
        const trace_event& e = run.events[i];
        const std::byte* data = run.data.data() + e.data;
        f.event = i;
        if (f.level == 0 && options_.failures_min == 1) ++result_.events;
        switch (e.kind) {
        case event_kind::legal: {
            const legal_set& then = legal[e.offset];
            const bool wider = replaying_ == nullptr && std::ranges::all_of(*now, [&](outcome o) {
                                   return std::ranges::find(then, o) != then.end();
                               });
            now = &then;
            ++f.epoch;
            f.new_line = no_line;
            if (!wider && stored && !fail_here(f, *now)) return;
            break;
        }
        case event_kind::decided: decided(f, touched(e.offset / line_bytes), data); break;
        case event_kind::store:
        case event_kind::nt_store:
            stored = true;
            if (!explore_store(f, e, data, *now)) return;
            break;
        case event_kind::flush: flushed(f, e.thread, touched(e.offset / line_bytes)); break;
        case event_kind::flush_now: flushed_now(f, touched(e.offset / line_bytes)); break;
        case event_kind::fence: fenced(f, e.thread); break;
        case event_kind::closed:
            f.closed = true;
            f.new_line = no_line;
            if (!fail_here(f, *now)) return;
            break;
        }
    }
    if (f.memory.reduced()) {
        result_.reduced = true;
        result_.complete = false;
    }
}

/// A store within one line. False: stop exploring.
bool explorer::explore_store(frame& f, const trace_event& e, const std::byte* data,
                             const legal_set& legal) {
    const std::size_t line = touched(e.offset / line_bytes);
    // Bytes that have reached memory have persisted there: then failures fall between the words as
    // well.
    const std::size_t step = domain_ == domain::adr ? e.bytes : word_bytes;
    for (std::size_t at = 0; at < e.bytes;) {
        const std::size_t n =
            std::min(step - (domain_ == domain::adr ? 0 : (e.offset + at) % step), e.bytes - at);
        std::vector<line_content> before;
        if (f.open[line] == 0) before = {f.image[line]};
        else before = f.contents[f.open[line] - 1];
        stored(f, e, at, data, n);
        f.new_contents = refresh_line(f, line);
        std::erase_if(f.new_contents, [&](const line_content& c) {
            return std::ranges::find(before, c) != before.end();
        });
        at += n;
        if (f.new_contents.empty()) { // but it is the newest one now
            if (!kill_here(f, legal)) return false;
            continue;
        }
        f.new_line = line;
        if (f.open[line] == 0) {
            // Its one content is certain: nothing to decide, everything is new.
            f.new_line = no_line;
        }
        if (!fail_here(f, legal)) return false;
        f.new_line = no_line;
        ++f.part;
    }
    f.part = 0;
    return true;
}

// --- failures at one event

bool explorer::next_choices(frame& f) {
    while (!f.choices.empty() && f.choices.back().taken + 1 == f.choices.back().options)
        f.choices.pop_back();
    if (f.choices.empty()) return false;
    ++f.choices.back().taken;
    return true;
}

bool explorer::fail_here(frame& f, const legal_set& legal) {
    if (f.after != closing::never && !f.closed) return true; // (8)
    return lose_power_here(f, legal) && kill_here(f, legal);
}

bool explorer::lose_power_here(frame& f, const legal_set& legal) {
    const bool counted = f.level + 1 >= options_.failures_min && f.after == closing::never;
    if (counted) ++result_.failures;
    f.choices.clear();
    if (replaying_ != nullptr) {
        const failure_point& wanted = (*replaying_)[f.level];
        if (f.event != wanted.event || f.part != wanted.part || wanted.killed) return true;
        for (std::uint32_t taken : wanted.choices) f.choices.push_back({taken, taken + 1});
        return leaf(f, legal);
    }
    std::uint64_t key[7] = {f.digest, f.new_line, 0, 0, f.level, 0, f.closed};
    if (f.new_line != no_line) key[2] = digest_of(f.new_line, f.new_contents);
    for (outcome o : legal) key[3] += o;
    for (std::size_t line : f.unmet) key[5] += checksum(&line, sizeof line, 1);
    if (!explored_.insert(checksum(key, sizeof key, 0)).second) {
        if (counted) ++result_.merged;
        return true;
    }
    do {
        if (out_of_budget()) {
            result_.complete = false;
            return false;
        }
        if (!leaf(f, legal)) return false;
    } while (next_choices(f));
    return true;
}

/// Kills the process here (6).
bool explorer::kill_here(frame& f, const legal_set& legal) {
    if (f.level != 0 || domain_ != domain::adr) return true;
    if (options_.first == explore_options::failure::power) return true;
    f.choices.clear();
    if (replaying_ != nullptr) {
        const failure_point& wanted = (*replaying_)[0];
        if (f.event != wanted.event || f.part != wanted.part || !wanted.killed) return true;
        for (std::uint32_t taken : wanted.choices) f.choices.push_back({taken, taken + 1});
    } else if (!explored_.insert(killed_digest(f, legal)).second) return true;
    const std::vector<std::size_t> open = f.memory.open_lines();
    f.killed = true;
    for (const std::size_t line : open) set_memory(line, f.left(line));
    bool go_on = true;
    do {
        if (out_of_budget()) {
            result_.complete = false;
            go_on = false;
        } else go_on = leaf(f, legal);
    } while (go_on && replaying_ == nullptr && next_choices(f));
    f.killed = false;
    for (const std::size_t line : open) set_memory(line, f.left(line));
    return go_on;
}

/// Distinguishes failures by a kill: by what recovery finds, and by what may still be lost of it.
std::uint64_t explorer::killed_digest(const frame& f, const legal_set& legal) {
    persistent_memory left = f.memory;
    left.kill();
    std::uint64_t key[5] = {f.digest, 0, 0, 0, f.closed};
    for (const std::size_t line : f.memory.open_lines()) {
        const std::vector<line_content> possible = left.possible(line);
        key[1] += digest_of(line, possible);
        key[2] += digest_of(line, {possible.back()});
    }
    for (const outcome o : legal) key[3] += o;
    return checksum(key, sizeof key, 1);
}

/// Contents that memory may have had in the run that has just ended: every choice that it did not
/// have to make.
double explorer::images_stood_for(const frame& f) const {
    double images = 1;
    if (f.killed) return images;
    const auto count = [&](std::size_t line) {
        if (f.open[line] != 0 && decided_[line] != run_)
            images *= static_cast<double>(f.contents_of(line).size());
    };
    for (const std::size_t line : f.memory.open_lines()) count(line);
    for (const auto& [line, u] : f.unknown) count(line);
    return images;
}

/// Runs recovery on the frame's memory as its choices say; puts that memory back.
void explorer::run_recovery(frame& f, bool recorded) {
    ++run_;
    current_ = &f;
    f.choices_made = 0;
    f.recovery.clear();
    f.wanted.clear();
    unmet_ = f.unmet;
    if (f.new_line != no_line) unmet_.push_back(f.new_line);
    recording_ = recorded;
    looked_from_ = no_look;
    thread_ = 0;
    picked_ = 0;
    chain_ = chain::unmet;
    dirty_lines_.clear();
    decisions_.clear();
    const std::string died =
        run_guarded(options_.recovery_seconds_max, [&] { ended_ = recover_(); });
    if (!died.empty()) ended_ = {false, 0, "recovery " + died};
    if (looked_from_ != no_look) { // nobody went on from there
        auto& events = f.recovery.events;
        const auto looked = events.begin() + static_cast<std::ptrdiff_t>(looked_from_);
        events.erase(std::remove_if(looked, events.end(),
                                    [](const auto& e) { return e.kind != event_kind::decided; }),
                     events.end());
    }
    current_ = nullptr;
    for (std::size_t line : dirty_lines_) set_memory(line, f.left(line));
}

/// Runs recovery with the newest contents in undecided lines. False: no line is undecided (5).
bool explorer::run_with_newest(frame& f) {
    if (f.level != 0 || f.killed || replaying_ != nullptr || !f.choices.empty()) return false;
    std::vector<std::size_t> undecided;
    for (const std::size_t line : f.memory.open_lines())
        if (f.open[line] != 0 && f.contents[f.open[line] - 1].size() > 1) undecided.push_back(line);
    if (undecided.empty()) return false;
    for (const std::size_t line : undecided) set_memory(line, f.contents[f.open[line] - 1].back());
    run_recovery(f, false);
    for (const std::size_t line : undecided) set_memory(line, f.image[line]);
    return true;
}

/// One run of recovery. False: stop exploring.
bool explorer::leaf(frame& f, const legal_set& legal) {
    const bool twice = run_with_newest(f);
    const verdict newest = ended_;
    run_recovery(f, descends(f));
    const verdict v = ended_;
    if (twice && (newest.recovered != v.recovered || newest.state != v.state)) {
        report(f,
               fmt::format("memory is read unseen, by code that is not built in trace mode or in "
                           "a way that trace mode does not know: where lines that nobody was seen "
                           "to read have their newest contents, there is {}; with the oldest, {}",
                           newest.text, v.text));
        return false;
    }
    if (replaying_ != nullptr) {
        replayed_ = v;
        f.looked_at.assign(touched_.size(), false);
        if (f.level + 1 >= replaying_->size()) return false;
        if (f.level + 1 >= frames_.size()) return false; // closes are left out
        const closing how = (*replaying_)[f.level + 1].close;
        return how == closing::never ? descend(f, legal, v.state) : close(f, legal, v.state, how);
    }
    // Without a look at a new line this was a run of recovery that has been judged before. But its
    // events may be failed in turn, and looked at then.
    // A kill alone leaves a state that a power failure may leave, too.
    const bool counted =
        f.level + 1 >= options_.failures_min && !f.killed && f.after == closing::never;
    if (!unmet_.empty()) {
        if (counted) ++result_.merged;
        return !descends(f) || descend_once(f, legal, v.state);
    }
    if (counted) {
        ++result_.states;
        result_.images += images_stood_for(f);
    }
    if (!v.recovered) {
        report(f, v.text);
        return false;
    }
    if (std::ranges::find(legal, v.state) == legal.end()) {
        report(f, "recovered to a state that no completed or pending operation leaves: " + v.text);
        return false;
    }
    if (descends(f)) return descend_once(f, legal, v.state);
    return close_some(f, legal, v.state);
}

/// Closes what recovery has recovered, after as many failures as 'depth' allows (8): one recovery
/// in so many, in the possible ways by turns. After a kill, which comes once an event, every
/// recovery.
bool explorer::close_some(frame& f, const legal_set& legal, outcome state) {
    const unsigned one_in = options_.close_one_in;
    if (one_in == 0 || f.level + 1 != options_.depth || f.closed) return true;
    const std::uint64_t turn = closable_++;
    if (turn % one_in != 0 && !f.killed) return true;
    std::vector<closing> ways{closing::at_once};
    if (options_.goes_on && f.level == 0) ways.push_back(closing::after_more);
    if (options_.seals) ways.push_back(closing::sealed);
    const bool each = one_in == 1 || (f.killed && options_.kills_every_way);
    const std::uint64_t next = f.killed ? kills_closed_++ : turn / one_in;
    if (!each) ways = {ways[next % ways.size()]};
    return std::ranges::all_of(ways, [&](closing how) { return close(f, legal, state, how); });
}

/// Runs recovery once more, to be closed; then the power fails (8). False: stop exploring.
bool explorer::close(frame& f, const legal_set& legal, outcome state, closing how) {
    const std::vector<frame::choice> choices = f.choices;
    closing_ = how;
    run_recovery(f, true);
    closing_ = closing::never;
    ++result_.closes;
    bool go_on = true;
    if (!ended_.recovered || ended_.state != state) {
        replayed_ = ended_;
        report(f, "closing what had been recovered: " + ended_.text);
        result_.violations.back().at.push_back({f.recovery.events.size(), {}, 0, false, how});
        go_on = false;
    } else {
        unmet_.clear();
        frames_[f.level + 1]->after = how;
        go_on = descend(f, legal, state);
        frames_[f.level + 1]->after = closing::never;
    }
    f.choices = choices; // the close's choices are not tried in other ways
    return go_on;
}

/// Whether another failure may follow.
bool explorer::descends(const frame& f) const noexcept {
    const bool first_may_be = f.level > 0 || f.killed || domain_ != domain::adr ||
                              options_.first != explore_options::failure::kill;
    return f.level + 1 < options_.depth && first_may_be;
}

/// descend(), unless failures in this same recovery were explored before and nothing that is new
/// was looked at then (3). Contents that are possible since then are new in their turn.
bool explorer::descend_once(frame& f, const legal_set& legal, outcome state) {
    std::uint64_t key =
        checksum(legal.data(), legal.size() * sizeof legal[0], f.identity + f.epoch);
    for (const auto& [line, content] : decisions_)
        key = checksum(content.data(), sizeof content, key + line);
    key += picked_ + (f.killed ? 1 : 0);
    const auto known = looked_at_.find(key);
    const auto looked = [&](const std::vector<bool>& lines) {
        return std::ranges::any_of(
            unmet_, [&](std::size_t line) { return line < lines.size() && lines[line]; });
    };
    if (known != looked_at_.end() && !unmet_.empty() && !looked(known->second)) {
        if (f.level + 1 >= options_.failures_min) ++result_.merged;
        return true;
    }
    const std::vector<std::size_t> unmet = unmet_;
    f.looked_at.assign(touched_.size(), false);
    frames_[f.level + 1]->identity = key;
    if (!descend(f, legal, state)) return false;
    unmet_ = unmet;
    std::vector<bool>& all = looked_at_[key];
    if (all.empty() && looked(f.looked_at)) {
        looked_at_.erase(key); // explored in part only
        return true;
    }
    all.resize(touched_.size());
    for (std::size_t line = 0; line < all.size(); ++line)
        if (f.looked_at[line]) all[line] = true;
    return true;
}

/// Explores failures in the recovery that has just run (2).
bool explorer::descend(frame& f, const legal_set& legal, outcome state) {
    frame& child = *frames_[f.level + 1];
    child.memory = f.memory;
    child.image = f.image;
    child.open = f.open;
    child.contents = f.contents;
    child.digests = f.digests;
    child.digest = f.digest;
    child.unmet = unmet_;
    child.killed = false;
    child.unknown.clear();
    const auto lose_power = [&](std::size_t line) {
        if (f.open[line] == 0) child.memory.settle(line, f.image[line]);
        else child.unknown[line].bases = f.contents_of(line);
        if (line == f.new_line) refresh_line(child, line);
    };
    const auto open = f.memory.open_lines();
    if (f.killed) {
        child.memory.kill();
        for (const std::size_t line : open) {
            set_memory(line, child.image[line]);
            refresh_line(child, line);
        }
    } else {
        for (const std::size_t line : open) lose_power(line);
        for (const auto& [line, u] : f.unknown) lose_power(line);
    }
    if (f.wanted.empty()) {
        f.recovery.events.push_back({event_kind::legal, 0, 1, 0, 0, {}});
        f.wanted.push_back({state});
    }
    f.wanted.insert(f.wanted.begin(), legal);
    const std::size_t violations = result_.violations.size();
    const bool complete = result_.complete;
    explore_run(child, f.recovery, f.wanted);
    for (std::size_t line : child.changed) set_memory(line, f.left(line));
    if (f.killed)
        for (const std::size_t line : open) set_memory(line, f.left(line));
    if (f.new_line != no_line) set_memory(f.new_line, f.left(f.new_line));
    return result_.violations.size() == violations && result_.complete == complete &&
           replaying_ == nullptr;
}

verdict explorer::replay(std::span<const std::byte> before, const event_record& run,
                         const std::vector<failure_point>& at) {
    replaying_ = &at;
    replayed_ = {false, 0, "this run has no such failure"};
    explore(before, run, std::vector<legal_set>(run.events.size() + 1));
    replaying_ = nullptr;
    return replayed_;
}

} // namespace hf::check
