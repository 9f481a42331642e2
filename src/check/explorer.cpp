// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <check/explorer.hpp>
#include <check/guard.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>

namespace hf::check {
namespace {

constexpr std::size_t no_line = ~std::size_t{0};

std::uint64_t digest_of(std::size_t line, const std::vector<line_content>& contents) {
    std::uint64_t sum = 0; // whatever their order
    for (const line_content& c : contents) sum += checksum(c.data(), sizeof c, line + 1);
    return contents.size() == 1 ? sum : checksum(&sum, sizeof sum, line + 1);
}

/// Does 'content' agree with 'other' on the bytes of [from, to) of their line?
bool same_bytes(const line_content& content, const line_content& other, std::size_t from,
                std::size_t to) {
    return std::memcmp(reinterpret_cast<const std::byte*>(content.data()) + from,
                       reinterpret_cast<const std::byte*>(other.data()) + from, to - from) == 0;
}

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::size_t words_apart(const line_content& a, const line_content& b) {
    std::size_t apart = 0;
    for (std::size_t w = 0; w < a.size(); ++w) apart += a[w] != b[w] ? 1 : 0;
    return apart;
}

} // namespace

/// A line that the failure before this run left with one of several contents, which one is not
/// known: stores go over whichever it is.
struct unknown_line {
    std::vector<line_content> bases;
    std::vector<persistent_memory>
        stored_over; // one line each, parallel to 'bases'; empty: no store
};

/// A run being explored, up to one of its events.
struct explorer::frame {
    unsigned level = 0;
    std::size_t event = 0;
    unsigned part = 0; // failure_point::part
    bool killed = false; // what is explored is a failure of the process alone (6)
    const trace* explored = nullptr;
    persistent_memory memory{domain::adr, {}}; // but for these lines:
    std::map<std::size_t, unknown_line> unknown;
    std::vector<line_content> image; // what is left where nothing is known (5)
    std::vector<std::uint32_t> open; // line -> index into 'contents', plus 1; 0: one content
    std::vector<std::vector<line_content>> contents;
    std::vector<std::uint64_t> digests; // by line
    std::uint64_t digest = 0;           // of all
    std::vector<std::size_t> changed;   // lines whose image is not the parent's
    std::size_t new_line = no_line;     // (3): only failures with one of these are new
    std::vector<line_content> new_contents;
    std::vector<std::size_t> unmet; // lines with new contents that the runs before did not look at
    std::uint64_t identity = 0;     // of the run, for (3)
    std::uint64_t epoch = 0;        // grows when contents become impossible
    std::vector<bool> looked_at;    // lines that recoveries from failures in its recovery looked at
    struct choice {
        std::uint32_t taken, options;
    };
    std::vector<choice> choices;
    std::size_t choices_made = 0;
    trace recovery;                // events of the latest run of recovery
    std::vector<legal_set> wanted; // what must be recovered to after a failure in it

    const std::vector<line_content>& contents_of(std::size_t line) const {
        return line == new_line ? new_contents : contents[open[line] - 1];
    }
    /// What a kill leaves.
    const line_content& newest(std::size_t line) const {
        return open[line] == 0 ? image[line] : contents[open[line] - 1].back();
    }
    /// What memory_ holds when recovery starts.
    const line_content& left(std::size_t line) const { return killed ? newest(line) : image[line]; }
};

exploration& exploration::operator+=(const exploration& more) {
    states += more.states;
    images += more.images;
    merged += more.merged;
    failures += more.failures;
    events += more.events;
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
    for (unsigned level = 0; level < options.depth; ++level) {
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

void explorer::explore(std::span<const std::byte> before, const trace& run,
                       const std::vector<legal_set>& legal) {
    const double begin = cpu_seconds();
    const watch watching(memory_.data(), memory_.size(), *this);
    frame& f = *frames_[0];
    before_ = before;
    f.memory = persistent_memory(domain_, {});
    f.unknown.clear();
    f.unmet.clear();
    f.killed = false;
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
    f.digests.assign(touched_.size(), 0); // of what is not as it was before
    f.digest = 0;
    explore_run(f, run, legal);
    result_.seconds += cpu_seconds() - begin;
}

/// The number of a line of memory that may differ from now on.
std::size_t explorer::touched(std::size_t line_of_memory) {
    std::uint32_t& number = number_of_[line_of_memory];
    if (number != 0) return number - 1;
    touched_.push_back(line_of_memory);
    number = static_cast<std::uint32_t>(touched_.size());
    line_content content; // as it was, in every frame
    std::memcpy(content.data(), before_.data() + line_of_memory * line_bytes, line_bytes);
    digests_before_.push_back(digest_of(number - 1, {content}));
    for (auto& f : frames_) {
        f->memory.extend(content);
        f->image.push_back(content);
        f->open.push_back(0);
        f->digests.push_back(0);
        f->looked_at.push_back(false);
    }
    for (auto* stamps : {&decided_, &dirtied_, &overlaid_}) stamps->push_back(0);
    overlay_.push_back(0);
    return number - 1;
}

void explorer::explore_run(frame& f, const trace& run, const std::vector<legal_set>& legal) {
    f.explored = &run;
    f.changed.clear();
    f.new_line = no_line;
    f.epoch = 0;
    const legal_set* now = &legal[0];
    f.event = 0;
    f.part = failure_point::before_it;
    if (f.level == 0 && !fail_here(f, *now)) return;
    f.part = 0;
    // Else the memory is what the run above has just recovered from.
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
    // What has reached memory has persisted there: then failures fall between the words as well.
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

// --- what events do to a frame's memory

void explorer::stored(frame& f, const trace_event& e, std::size_t at, const std::byte* data,
                      std::size_t n) {
    const bool plain = e.kind == event_kind::store;
    const std::size_t line = touched(e.offset / line_bytes);
    const std::size_t within = e.offset % line_bytes + at;
    const auto store = [&](persistent_memory& to, std::size_t offset) {
        if (plain) to.store(offset, data + at, n);
        else to.nt_store(e.thread, offset, data + at, n);
    };
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return store(f.memory, line * line_bytes + within);
    unknown_line& u = found->second;
    if (u.stored_over.empty())
        for (const line_content& base : u.bases)
            u.stored_over.emplace_back(domain_, std::as_bytes(std::span(base)));
    for (persistent_memory& m : u.stored_over) store(m, within);
}

void explorer::flushed(frame& f, unsigned thread, std::size_t line) {
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return f.memory.flush(thread, line);
    for (persistent_memory& m : found->second.stored_over) m.flush(thread, 0);
}

void explorer::flushed_now(frame& f, std::size_t line) {
    ++f.epoch;
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) f.memory.flush_now(line);
    else
        for (persistent_memory& m : found->second.stored_over) m.flush_now(0);
    refresh_line(f, line);
}

void explorer::fenced(frame& f, unsigned thread) {
    ++f.epoch;
    const std::vector<std::size_t> open = f.memory.open_lines();
    f.memory.fence(thread);
    for (std::size_t l : open) refresh_line(f, l);
    for (auto& [line, u] : f.unknown) {
        if (u.stored_over.empty()) continue;
        for (persistent_memory& m : u.stored_over) m.fence(thread);
        refresh_line(f, line);
    }
}

/// Recovery has looked at the line: it was this content.
void explorer::decided(frame& f, std::size_t line, const std::byte* data) {
    ++f.epoch;
    unknown_line& u = f.unknown.at(line);
    line_content content;
    std::memcpy(content.data(), data, line_bytes);
    const auto base = std::ranges::find(u.bases, content) - u.bases.begin();
    HF_ASSERT(static_cast<std::size_t>(base) < u.bases.size());
    if (u.stored_over.empty()) {
        f.memory.settle(line, content);
        f.unknown.erase(line);
    } else {
        u.stored_over = {persistent_memory(u.stored_over[static_cast<std::size_t>(base)])};
        u.bases = {content};
    }
    refresh_line(f, line);
}

std::vector<line_content> explorer::possible(const frame& f, std::size_t line) {
    const auto found = f.unknown.find(line);
    if (found == f.unknown.end()) return f.memory.possible(line);
    if (found->second.stored_over.empty()) return found->second.bases;
    std::vector<line_content> out;
    for (const persistent_memory& m : found->second.stored_over)
        for (const line_content& c : m.possible(0))
            if (std::ranges::find(out, c) == out.end()) out.push_back(c);
    // The newest of the last base, which recovery has been shown, stays the last.
    const line_content newest = found->second.stored_over.back().newest(0);
    std::erase(out, newest);
    out.push_back(newest);
    return out;
}

/// Takes over what the model says of the line; returns its possible contents.
std::vector<line_content> explorer::refresh_line(frame& f, std::size_t line) {
    std::vector<line_content> possible = explorer::possible(f, line);
    f.digest ^= f.digests[line];
    f.digest ^= f.digests[line] = digest_of(line, possible) ^ digests_before_[line];
    if (f.image[line] != possible.front()) { // (5)
        f.image[line] = possible.front();
        f.changed.push_back(line);
        set_memory(line, possible.front());
    }
    // A look at what is new must be noticed, even where there is nothing to choose.
    const bool unmet = std::ranges::find(f.unmet, line) != f.unmet.end();
    if (possible.size() == 1 && !unmet) f.open[line] = 0;
    else {
        if (f.open[line] == 0) {
            f.contents.emplace_back();
            f.open[line] = static_cast<std::uint32_t>(f.contents.size());
        }
        f.contents[f.open[line] - 1] = possible;
    }
    return possible;
}

void explorer::set_memory(std::size_t line, const line_content& content) {
    std::memcpy(place_of(line), content.data(), line_bytes);
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
    return lose_power_here(f, legal) && kill_here(f, legal);
}

bool explorer::lose_power_here(frame& f, const legal_set& legal) {
    const bool counted = f.level + 1 >= options_.failures_min;
    if (counted) ++result_.failures;
    f.choices.clear();
    if (replaying_ != nullptr) {
        const failure_point& wanted = (*replaying_)[f.level];
        if (f.event != wanted.event || f.part != wanted.part || wanted.killed) return true;
        for (std::uint32_t taken : wanted.choices) f.choices.push_back({taken, taken + 1});
        return leaf(f, legal);
    }
    std::uint64_t key[6] = {f.digest, f.new_line, 0, 0, f.level, 0};
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

/// Tells failures by a kill apart: by what recovery finds, and by what may still be lost of it.
std::uint64_t explorer::killed_digest(const frame& f, const legal_set& legal) {
    persistent_memory left = f.memory;
    left.kill();
    std::uint64_t key[4] = {f.digest, 0, 0, 0};
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

/// Runs recovery where undecided lines have their newest contents. False: there are none (5).
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
               fmt::format("memory is read unseen, by code that is not built in trace mode or in a "
                           "way that trace mode does not know: where lines that nobody was seen "
                           "to read have their newest contents, there is {}; with the oldest, {}",
                           newest.text, v.text));
        return false;
    }
    if (replaying_ != nullptr) {
        replayed_ = v;
        f.looked_at.assign(touched_.size(), false);
        return f.level + 1 < replaying_->size() && descend(f, legal, v.state);
    }
    // Without a look at what is new, this was a run of recovery that has been judged before; but
    // what it did may be failed in turn, and looked at then.
    // A kill alone leaves what a failure of the power may leave, too.
    const bool counted = f.level + 1 >= options_.failures_min && !f.killed;
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
    return !descends(f) || descend_once(f, legal, v.state);
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

verdict explorer::replay(std::span<const std::byte> before, const trace& run,
                         const std::vector<failure_point>& at) {
    replaying_ = &at;
    replayed_ = {false, 0, "this run has no such failure"};
    explore(before, run, std::vector<legal_set>(run.events.size() + 1));
    replaying_ = nullptr;
    return replayed_;
}

// --- the run of recovery under way: reads decide, writes are recorded

void explorer::recovered() noexcept {
    if (current_ != nullptr && recording_) looked_from_ = current_->recovery.events.size();
}

void explorer::wants(const legal_set& states) {
    if (current_ == nullptr) return;
    looked_from_ = no_look;
    if (!recording_) return;
    current_->wanted.push_back(states);
    record(event_kind::legal, current_->wanted.size(), 0, nullptr);
}

unsigned explorer::failures_before() const noexcept {
    return current_ == nullptr ? 0 : current_->level + 1;
}

bool explorer::killed() const noexcept { return current_ != nullptr && current_->killed; }

std::uint32_t explorer::pick(std::uint32_t options) {
    if (current_ == nullptr || options < 2) return 0;
    const std::uint32_t picked = choose(*current_, options);
    picked_ = checksum(&picked, sizeof picked, picked_ + 1);
    return picked;
}

bool explorer::undecided(std::size_t line) const noexcept {
    return current_->open[line] != 0 && decided_[line] != run_;
}

std::uint32_t explorer::choose(frame& f, std::uint32_t options) {
    if (f.choices_made == f.choices.size()) f.choices.push_back({0, options});
    frame::choice& made = f.choices[f.choices_made++];
    made.options = std::max(options, made.taken + 1);
    return std::min(made.taken, options - 1);
}

void explorer::decide(std::size_t line, const line_content& content) {
    decided_[line] = run_;
    std::erase(unmet_, line);
    for (unsigned level = 0; level < current_->level; ++level)
        frames_[level]->looked_at[line] = true;
    if (dirtied_[line] != run_) {
        dirtied_[line] = run_;
        dirty_lines_.push_back(line);
    }
    if (overlaid_[line] == run_) { // recovery has stored to it: that stays
        std::byte* to = place_of(line);
        const auto* from = reinterpret_cast<const std::byte*>(content.data());
        for (std::size_t i = 0; i < line_bytes; ++i)
            if ((overlay_[line] >> i & 1) == 0) to[i] = from[i];
    } else set_memory(line, content);
    decisions_.emplace_back(line, content);
    if (current_->killed) return; // nothing has been settled by that
    record(event_kind::decided, touched_[line] * line_bytes, line_bytes, content.data());
}

/// The first choice is the newest content: the fewest stores lost.
void explorer::decide_by_choice(std::size_t line) {
    if (current_->killed) return decide(line, current_->newest(line));
    const auto& contents = current_->contents_of(line);
    const auto n = static_cast<std::uint32_t>(contents.size());
    const std::uint32_t back = n == 1 ? 0 : choose(*current_, n);
    decide(line, contents[n - 1 - back]);
}

void explorer::load(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t at = offset / line_bytes; at <= (offset + bytes - 1) / line_bytes; ++at) {
        if (number_of_[at] == 0) continue;
        const std::size_t line = number_of_[at] - 1;
        if (undecided(line) && !stored_over(line, offset, bytes)) decide_by_choice(line);
    }
}

/// Bits of the bytes of [offset, offset + bytes) that lie in the line.
std::uint64_t explorer::bytes_in_line(std::size_t line, std::size_t offset,
                                      std::size_t bytes) const {
    const std::size_t start = touched_[line] * line_bytes;
    const std::size_t from = std::max(offset, start) - start;
    const std::size_t to = std::min(offset + bytes, start + line_bytes) - start;
    const std::uint64_t below = to == line_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << to) - 1;
    return below & ~((std::uint64_t{1} << from) - 1);
}

/// Recovery reads only what it has stored itself.
bool explorer::stored_over(std::size_t line, std::size_t offset, std::size_t bytes) const {
    return overlaid_[line] == run_ && (bytes_in_line(line, offset, bytes) & ~overlay_[line]) == 0;
}

/// Upholds (4).
void explorer::checked(std::size_t offset, std::size_t bytes, bool goes_on) {
    if (current_ == nullptr) return;
    if (options_.every_combination || current_->killed) return load(offset, bytes);
    if (!goes_on) chain_ = chain::unmet;
    struct part {
        std::size_t line;
        std::vector<const line_content*> same, other; // as the newest on the range's bytes, or not
    };
    std::vector<part> parts;
    std::uint32_t others = 0;
    for (std::size_t l = offset / line_bytes; l <= (offset + bytes - 1) / line_bytes; ++l) {
        if (number_of_[l] == 0) continue;
        const std::size_t line = number_of_[l] - 1;
        if (!undecided(line)) continue;
        if (overlaid_[line] == run_) {
            decide_by_choice(line);
            continue;
        }
        const std::size_t start = l * line_bytes;
        const std::size_t from = std::max(offset, start) - start;
        const std::size_t to = std::min(offset + bytes, start + line_bytes) - start;
        part p{line, {}, {}};
        const auto& contents = current_->contents_of(line);
        for (std::size_t i = contents.size(); i-- > 0;) // newest first
            (same_bytes(contents[i], contents.back(), from, to) ? p.same : p.other)
                .push_back(&contents[i]);
        // Of those, the oldest, and those that miss one word: others miss what one of these does.
        std::erase_if(p.other, [&](const line_content* c) {
            return c != p.other.back() && words_apart(*c, contents.back()) > 1;
        });
        others += static_cast<std::uint32_t>(p.other.size());
        parts.push_back(std::move(p));
    }
    if (parts.empty()) return;
    // Of a chain: all as the newest; one line in one older content; or all as the oldest.
    const bool chooses = others > 0 && (chain_ == chain::unmet || chain_ == chain::newest);
    const bool may_be_oldest = chain_ == chain::unmet;
    const std::uint32_t way = chooses ? choose(*current_, 1 + others + may_be_oldest) : 0;
    if (chooses) chain_ = way == 0 ? chain::newest : way <= others ? chain::one_older : chain::oldest;
    std::uint32_t first = 1;
    for (const part& p : parts) {
        const auto n = static_cast<std::uint32_t>(p.other.size());
        const line_content* content = nullptr;
        if (chain_ == chain::oldest) content = p.other.empty() ? p.same.back() : p.other.back();
        else if (way >= first && way < first + n) content = p.other[way - first];
        else {
            const auto free = static_cast<std::uint32_t>(p.same.size());
            content = p.same[free == 1 ? 0 : choose(*current_, free)];
        }
        first += n;
        decide(p.line, *content);
    }
}

void explorer::record(event_kind kind, std::size_t offset, std::size_t bytes, const void* data) {
    if (!recording_) return;
    trace& out = current_->recovery;
    out.events.push_back({kind, thread_, static_cast<std::uint32_t>(offset),
                          static_cast<std::uint32_t>(bytes),
                          static_cast<std::uint32_t>(out.data.size()), reported_place()});
    if (data == nullptr) return;
    const auto* from = static_cast<const std::byte*>(data);
    out.data.insert(out.data.end(), from, from + bytes);
}

/// A store that has been made. The rest of an undecided line stays undecided.
void explorer::written(std::size_t offset, std::size_t bytes, event_kind kind) {
    for (std::size_t at = offset, end = offset + bytes; at < end;) {
        const std::size_t line = touched(at / line_bytes);
        const std::size_t n = std::min(end, round_down(at, line_bytes) + line_bytes) - at;
        if (undecided(line)) {
            if (overlaid_[line] != run_) overlay_[line] = 0;
            overlaid_[line] = run_;
            overlay_[line] |= bytes_in_line(line, at, n);
        }
        if (dirtied_[line] != run_) {
            dirtied_[line] = run_;
            dirty_lines_.push_back(line);
        }
        record(kind, at, n, memory_.data() + at);
        at += n;
    }
}

void explorer::store(std::size_t offset, std::size_t bytes) {
    if (current_ != nullptr) written(offset, bytes, event_kind::store);
}
void explorer::nt_store(std::size_t offset, std::size_t bytes) {
    if (current_ != nullptr) written(offset, bytes, event_kind::nt_store);
}
void explorer::flush(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t line = offset / line_bytes; line <= (offset + bytes - 1) / line_bytes; ++line)
        record(event_kind::flush, line * line_bytes, line_bytes, nullptr);
}
void explorer::flush_now(std::size_t offset, std::size_t bytes) {
    if (current_ == nullptr) return;
    for (std::size_t line = offset / line_bytes; line <= (offset + bytes - 1) / line_bytes; ++line)
        record(event_kind::flush_now, line * line_bytes, line_bytes, nullptr);
}
void explorer::fence() {
    if (current_ != nullptr) record(event_kind::fence, 0, 0, nullptr);
}

// --- what a violation says

void explorer::report(frame& f, const std::string& what) {
    violation v;
    v.what = what;
    for (unsigned level = 0; level <= f.level; ++level) {
        const frame& of = *frames_[level];
        failure_point p{of.event, {}, of.part, of.killed};
        for (std::size_t i = 0; i < of.choices_made; ++i) p.choices.push_back(of.choices[i].taken);
        v.at.push_back(std::move(p));
    }
    if (const trace& first = *frames_[0]->explored; !first.events.empty())
        v.last = first.events[frames_[0]->event].place;
    v.last_event = frames_[0]->event;
    v.last_change = last_change();
    for (const auto& [line, content] : decisions_)
        if (!f.killed && content != f.contents_of(line).back())
            v.missing.push_back(lost_of(f, touched_[line], content));
    result_.violations.push_back(std::move(v));
}

/// The oldest store to the line that is not in what was kept of it. Stores that changed nothing are
/// neither missing nor there.
missing_line explorer::lost_of(const frame& f, std::size_t line, const line_content& kept) const {
    const bool killed_before = f.level > 0 && frames_[f.level - 1]->killed;
    struct step {
        const trace_event* e;
        const std::byte* data;
        unsigned level;
    };
    std::vector<step> steps; // events since it was certain what had persisted
    for (unsigned level = killed_before ? f.level - 1 : f.level; level <= f.level; ++level) {
        const trace& run = *frames_[level]->explored;
        for (std::size_t i = 0; i < std::min(frames_[level]->event + 1, run.events.size()); ++i)
            if (const trace_event& e = run.events[i]; e.offset / line_bytes == line)
                steps.push_back({&e, run.data.data() + e.data, level});
    }
    line_content now{};
    bool known = f.level == 0 || killed_before; // else, until somebody looked, any of several
    std::memcpy(now.data(), before_.data() + line * line_bytes, line_bytes);
    auto* bytes = reinterpret_cast<std::byte*>(now.data());
    std::vector<std::size_t> changes;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const trace_event& e = *steps[i].e;
        const bool stored = e.kind == event_kind::store || e.kind == event_kind::nt_store;
        if (!stored && e.kind != event_kind::decided) continue;
        const std::size_t at = e.offset % line_bytes;
        if (stored && (!known || std::memcmp(bytes + at, steps[i].data, e.bytes) != 0))
            changes.push_back(i);
        std::memcpy(bytes + at, steps[i].data, e.bytes);
        known |= e.kind == event_kind::decided;
    }
    missing_line m{line, f.level, {}, 0, 0, false};
    const auto* there = reinterpret_cast<const std::byte*>(kept.data());
    std::size_t lost = steps.size();
    for (std::size_t i = changes.size(); i-- > 0;) {
        const auto& [e, data, level] = steps[changes[i]];
        if (std::memcmp(there + e->offset % line_bytes, data, e->bytes) == 0) break;
        lost = changes[i];
        m.level = level;
        m.lost = e->place;
        m.lost_offset = e->offset;
        m.lost_bytes = e->bytes;
    }
    for (std::size_t i = lost; i < steps.size(); ++i)
        m.flushed |= steps[i].e->kind == event_kind::flush;
    return m;
}

/// Of the run, until the first failure; none: ~0.
std::size_t explorer::last_change() const {
    const frame& f = *frames_[0];
    const trace& run = *f.explored;
    std::vector<std::byte> now(before_.begin(), before_.end());
    std::size_t last = ~std::size_t{0};
    for (std::size_t i = 0; i < std::min(f.event + 1, run.events.size()); ++i) {
        const trace_event& e = run.events[i];
        if (e.kind != event_kind::store && e.kind != event_kind::nt_store) continue;
        const std::byte* data = run.data.data() + e.data;
        if (std::memcmp(now.data() + e.offset, data, e.bytes) != 0) last = i;
        std::memcpy(now.data() + e.offset, data, e.bytes);
    }
    return last;
}

} // namespace hf::check
