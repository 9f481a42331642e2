// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <sim/hierarchy.hpp>

namespace hf::sim {

hierarchy::hierarchy(const parameters& how, line_client& client)
    : first_(how.l1.cycles * ticks_per_cycle), second_(how.l2.cycles * ticks_per_cycle),
      third_(how.l3.cycles * ticks_per_cycle), memory_(third_ + how.memory.read_ns * ticks_per_ns),
      client_(client), private_(how.cores, private_caches{cache{how.l1}, cache{how.l2}}),
      shared_(how.l3) {
    HF_ASSERT(how.cores > 0);
}

hierarchy::access hierarchy::reach(unsigned core, std::uint64_t line, bool to_write) {
    ++counts_.accesses;
    private_caches& own = private_[core];
    access got{own.first.find(line), first_, false, false};
    if (got.line == nullptr) got = fetch(core, line, to_write);
    own.first.touch(*got.line);
    if (to_write) {
        if (got.line->state == mesi::shared) {
            bool shared = false;
            ask_others(core, line, true, shared);
            if (held* const below = shared_.find(line)) below->state = mesi::shared; // upholds (1)
            got.latency = std::max(got.latency, third_);
            got.asked = true;
        }
        got.line->state = mesi::modified;
    }
    return got;
}

/// Brings a line that the first level does not hold.
hierarchy::access hierarchy::fetch(unsigned core, std::uint64_t line, bool to_write) {
    ++counts_.first_misses;
    private_caches& own = private_[core];
    held* second = own.second.find(line);
    access got{nullptr, second_, true, false};
    if (second == nullptr) {
        ++counts_.second_misses;
        bool shared = false;
        ask_others(core, line, to_write, shared);
        got.asked = true;
        held* const third = shared_.find(line);
        got.latency = third != nullptr || shared ? third_ : memory_;
        bool dirty = false;
        if (third != nullptr) {
            shared_.touch(*third);
            dirty = third->dirty() && !shared;
            if (dirty) third->state = mesi::shared; // upholds (1): it is the core's to write back
        } else {
            counts_.third_misses += !shared;
            enter_third(line, false);
        }
        second = &fill_second(core, line);
        second->state = dirty ? mesi::modified : shared ? mesi::shared : mesi::exclusive;
    }
    own.second.touch(*second);
    got.line = &fill_first(core, *second);
    return got;
}

/// Informs the other cores; they keep no copy that this one will write, and no dirty one.
void hierarchy::ask_others(unsigned core, std::uint64_t line, bool to_write, bool& shared) {
    for (unsigned other = 0; other < private_.size(); ++other) {
        if (other == core) continue;
        client_.asked_for(other, line, to_write);
        held* const theirs = held_by(other, line);
        if (theirs == nullptr) continue;
        const bool dirty = theirs->dirty();
        if (to_write) {
            leave_private(other, *private_[other].second.find(line));
        } else {
            theirs->state = mesi::shared;
            if (held* const below = private_[other].second.find(line)) below->state = mesi::shared;
            if (dirty) enter_third(line, true);
            shared = true;
        }
    }
}

held& hierarchy::fill_second(unsigned core, std::uint64_t line) {
    held& place = private_[core].second.place_for(line);
    if (place.state != mesi::invalid) leave_private(core, place);
    place = held{};
    place.line = line;
    return place;
}

held& hierarchy::fill_first(unsigned core, const held& from) {
    private_caches& own = private_[core];
    held& place = own.first.place_for(from.line);
    if (place.state != mesi::invalid) {
        held& below = *own.second.find(place.line); // it is there: upholds (2)
        const std::uint64_t leaving = place.line;
        const mesi state = place.state;
        const std::uint16_t marks = place.marks;
        place.state = mesi::invalid;
        below.state = state;
        below.marks = client_.to_second(core, leaving, marks);
    }
    place = from;
    place.marks = client_.to_first(from.marks);
    return place;
}

/// Ends a line's stay in a core's caches; `line` is the second level's.
void hierarchy::leave_private(unsigned core, held& line) {
    if (held* const above = private_[core].first.find(line.line)) {
        line.state = above->state;
        line.marks = client_.to_second(core, line.line, above->marks);
        above->state = mesi::invalid;
    }
    const std::uint64_t number = line.line;
    const bool dirty = client_.leaves(core, number, line.marks, line.dirty());
    line.state = mesi::invalid;
    enter_third(number, dirty);
}

void hierarchy::enter_third(std::uint64_t line, bool dirty) {
    held* at = shared_.find(line);
    if (at == nullptr) {
        at = &shared_.place_for(line);
        if (at->dirty()) client_.write_back(at->line);
        *at = held{};
        at->line = line;
        at->state = mesi::shared;
    }
    shared_.touch(*at);
    if (dirty) at->state = mesi::modified;
}

held* hierarchy::held_by(unsigned core, std::uint64_t line) {
    private_caches& own = private_[core];
    if (held* const above = own.first.find(line)) return above;
    return own.second.find(line);
}

void hierarchy::drop(unsigned core, std::uint64_t line) {
    if (held* const above = private_[core].first.find(line)) above->state = mesi::invalid;
    if (held* const below = private_[core].second.find(line)) below->state = mesi::invalid;
}

} // namespace hf::sim
