// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mod_store.hpp"

#include "../../hash.hpp"
#include "torn_pool.hpp"
#include <kv/protocol/journal.hpp>

#include <holdfast/author/mod/store.hpp>

#include <array>
#include <bit>
#include <utility>

namespace hf::kv {
namespace {

constexpr std::size_t used_slots = 1 << 18;
constexpr unsigned attempts_max = 256;        // to store one item
constexpr unsigned sample_items = 24;         // looked at to find one victim
constexpr std::size_t chunk_bytes = 64 << 10; // the allocator's, or a multiple of it
constexpr unsigned run_items = 64;
constexpr std::size_t ballast_items = 256;

// One family: memory that one member gives up serves the others.
template <class Map> result<Map> open_member(const hf::pool& in, std::string_view name) {
    return Map::open(in,
                     {.name = name, .family = "kv", .members = {"items", "flushes", "ballast"}});
}

status look_through(hf::pool& in) {
    mod::store& kept = mod::store::in(in);
    status found = kept.wait_for_trace();
    if (found.ok()) found = kept.verify();
    if (!found.ok()) in.leave_unsealed();
    return found;
}

// Looks in private memory, so a pool that is refused stays as it was. If the pool cannot be opened
// so, the later open decides.
status look_before(const store_options& options, open_options how) {
    how.salvage = options.torn == when_torn::salvage;
    how.read_only = true;
    how.creation = create::never;
    auto opened = pool::open(options.path, how);
    return opened ? look_through(*opened) : status();
}

} // namespace

result<std::unique_ptr<mod_store>> mod_store::open(const store_options& options) {
    open_options how;
    how.layout = "holdfast-kv-mod/1";
    how.layout_hash = sizeof(item_head);
    how.max_bytes = options.max_bytes;
    how.create_bytes = std::min<std::uint64_t>(options.max_bytes, 64ULL << 20);
    how.creation = options.create ? create::if_missing : create::never;
    how.mode = options.mode;
    how.engines = {mod::engine()};
    if (options.look_through)
        if (status s = look_before(options, how); !s.ok()) return s;
    auto opened = open_for_service(options, how);
    if (!opened) return opened.error();
    auto items = open_member<item_map>(*opened, "items");
    if (!items) return items.error();
    auto flushes = open_member<flush_map>(*opened, "flushes");
    if (!flushes) return flushes.error();
    auto ballast = open_member<item_map>(*opened, "ballast");
    if (!ballast) return ballast.error();
    if (options.look_through)
        if (status s = look_through(*opened); !s.ok()) return s;
    if (opened->mode() != mode::process) {
        items->set_durability(mod::durability::on_return);
        flushes->set_durability(mod::durability::on_return);
    }
    return std::unique_ptr<mod_store>(
        new mod_store(std::move(*opened), options, *items, *flushes, *ballast));
}

mod_store::mod_store(hf::pool opened, const store_options& options, item_map items,
                     flush_map flushes, item_map ballast)
    : pool_(std::move(opened)), items_(items), flushes_(flushes), ballast_(ballast),
      item_bytes_max_(options.item_bytes_max), evict_(options.evict),
      clock_(options.clock == nullptr ? system_clock : options.clock),
      cas_((pool_.generation() << 40) + 1), used_(used_slots) {
    if (const flush_state* last = flushes_.get(0)) {
        flush_cas_ = last->cas;
        flush_times_ = last->times();
    }
    fill_ballast();
}

life mod_store::life_of(const item_head& of, std::uint32_t when) const noexcept {
    const auto flushed = flush_state::of(flush_cas_.load(std::memory_order_acquire),
                                         flush_times_.load(std::memory_order_acquire));
    return flushed.life_of(of.cas, of.exptime, of.stored, when);
}

std::atomic<std::uint64_t>& mod_store::used_at(std::string_view key) noexcept {
    return used_[apps::hash_of(key.data(), key.size(), 0) % used_slots];
}
void mod_store::mark_access(std::string_view key, std::uint32_t when, use how) noexcept {
    auto& last = used_at(key);
    const std::uint64_t was = last.load(std::memory_order_relaxed);
    const std::uint64_t read = how == use::read ? 1 : how == use::stored ? 0 : was & 1;
    const std::uint64_t is = std::uint64_t{when} << 1 | read;
    // Stored only when it changes: a hot item's line stays shared among the readers.
    if (was != is) last.store(is, std::memory_order_relaxed);
}
std::uint32_t mod_store::last_access(std::string_view key, const item_head& of) noexcept {
    const std::uint64_t used = used_at(key).load(std::memory_order_relaxed);
    return std::max(of.stored, static_cast<std::uint32_t>(used >> 1));
}
item_view mod_store::view_of(std::string_view key, const item& it) noexcept {
    return {.value = it.value,
            .flags = it.head.flags,
            .cas = it.head.cas,
            .exptime = it.head.exptime,
            .marks = static_cast<std::uint8_t>(it.head.marks),
            .fetched = (used_at(key).load(std::memory_order_relaxed) & 1) != 0,
            .last_access = last_access(key, it.head)};
}

void mod_store::count_dead(life how, thread_counts& counted) {
    counted.add(how == life::expired ? count::get_expired : count::get_flushed);
}

bool mod_store::find_live(std::string_view key, std::uint32_t when, item& found) {
    const auto bytes = items_.get(key);
    if (!bytes) return false;
    found = item_in(*bytes);
    return life_of(found.head, when) == life::live;
}

void mod_store::begin_value(const item_head& head) {
    value_.assign(reinterpret_cast<const char*>(&head), sizeof head);
}

// Makes value_ the key's value.
bool mod_store::keep(std::string_view key, thread_counts& counted) {
    for (unsigned attempt = 0; attempt < attempts_max; ++attempt) {
        const auto kept = items_.insert_or_assign(key, value_);
        if (kept) {
            if (attempt > 0) fill_ballast();
            return true;
        }
        const errc why = kept.error().code(); // of a disk that fails the log has a line
        if (why != errc::pool_full && why != errc::io_error) return false;
        if (!make_room(key.size() + value_.size(), counted)) return false;
        // The missing node may be of another size than what is given up: then a whole chunk helps.
        if (attempt % 32 == 31 && clear_chunk(one_to_go(), counted)) continue;
        if (attempt % 16 == 15) give_up_run(counted);
    }
    return false;
}

// Erases; false when nothing was. That needs nodes, too: in a full pool those of the ballast, which
// goes without any.
bool mod_store::give_up(std::string_view key) {
    if (const auto gone = items_.erase(key)) return *gone;
    if (!ballast_.clear().ok()) return false;
    const auto gone = items_.erase(key);
    fill_ballast();
    return gone && *gone;
}

void mod_store::fill_ballast() {
    const auto add = [this](std::size_t more) {
        const std::size_t first = ballast_.size();
        return ballast_
            .update([&](auto& batch) {
                for (std::size_t i = first; i < first + more && !batch.failed(); ++i)
                    batch.insert(std::to_string(i), "");
            })
            .ok();
    };
    // One first: in a full pool that shows at once that there is no room for any.
    if (ballast_.size() >= ballast_items || !add(1)) return;
    for (std::size_t more = ballast_items - ballast_.size(); more > 0; more /= 2)
        if (ballast_.size() + more <= ballast_items) (void)add(more);
}

// The next 'count' items in the order of their hashes, in effect random ones. visit(key, item).
template <class Visit> void mod_store::walk(unsigned count, Visit&& visit) {
    auto at = items_.find(hand_);
    for (; count > 0 && !items_.empty(); --count) {
        if (at == items_.end()) at = items_.begin();
        if (at == items_.end()) break; // damaged: it is said to have items
        const auto [key, bytes] = *at;
        visit(key, item_in(bytes));
        ++at;
    }
    hand_ = at == items_.end() ? std::string() : std::string((*at).first);
}

bool mod_store::may_go(const item_head& of, std::uint32_t when) const noexcept {
    return evict_ || life_of(of, when) != life::live;
}

// The key of one that a short walk meets; empty: it meets none.
std::string mod_store::one_to_go() {
    const std::uint32_t when = now();
    std::string found;
    for (unsigned tries = 0; tries < 8 && found.empty(); ++tries)
        walk(sample_items, [&](std::string_view key, const item& it) {
            if (found.empty() && may_go(it.head, when)) found = key;
        });
    return found;
}

// Looks at some items, and gives up the dead ones. If it may evict, it else gives up the item that
// was unused for longest of those whose node the new value can have. A node serves its own class of
// sizes until all of its chunk is free: if it meets no item of the class, it clears a chunk.
bool mod_store::evict_some(std::size_t bytes, thread_counts& counted) {
    const std::uint32_t when = now();
    const bool large = bytes > mod::slotted_string_bytes_max;
    std::vector<std::string> dead;
    std::string usable, oldest;
    std::uint32_t usable_used = UINT32_MAX, oldest_used = UINT32_MAX;
    const auto look = [&](std::string_view key, const item& it) {
        if (life_of(it.head, when) != life::live) {
            dead.emplace_back(key);
            return;
        }
        if (!evict_) return;
        const std::uint32_t used = last_access(key, it.head);
        if (used < oldest_used) {
            oldest_used = used;
            oldest = key;
        }
        const std::size_t its = key.size() + sizeof(item_head) + it.value.size();
        if (used >= usable_used || !mod::string_memory_serves(its, bytes)) return;
        usable_used = used;
        usable = key;
    };
    for (unsigned tries = 0; tries < 8 && dead.empty() && usable.empty(); ++tries)
        walk(sample_items, look);
    if (dead.empty() && usable.empty() && large && evict_)
        walk(static_cast<unsigned>(items_.size()), look); // they are few
    if (!dead.empty()) return give_up_all(dead, counted);
    if (!usable.empty()) return give_up_all({usable}, counted);
    if (large) return evict_ && clear_for_large(bytes, counted);
    return !oldest.empty() && clear_chunk(oldest, counted);
}

// Gives up the large item that was unused for longest, and those behind it in memory that lie in
// the way of so many bytes: large items have chunks of their own, which come back as chunks.
bool mod_store::clear_for_large(std::size_t bytes, thread_counts& counted) {
    struct place {
        std::uintptr_t at;
        std::uint32_t used;
        std::string key;
    };
    std::vector<place> all;
    for (const auto& [key, value] : items_)
        if (key.size() + value.size() > mod::slotted_string_bytes_max)
            all.push_back({reinterpret_cast<std::uintptr_t>(value.data()),
                           last_access(key, item_in(value).head), std::string(key)});
    if (all.empty()) return false;
    std::ranges::sort(all, {}, &place::at);
    const auto oldest = std::ranges::min_element(all, {}, &place::used);
    std::vector<std::string> keys;
    for (auto it = oldest; it != all.end() && it->at < oldest->at + bytes; ++it)
        keys.push_back(std::move(it->key));
    return give_up_all(keys, counted);
}

// A walk through a damaged pool meets some items that a search does not find: false if all are
// such.
bool mod_store::give_up_all(const std::vector<std::string>& keys, thread_counts& counted) {
    const std::uint32_t when = now();
    bool any = false;
    for (const std::string& key : keys) {
        item it{};
        const bool live = find_live(key, when, it);
        if (live) tell_evicted(key, it, when, counted);
        if (!give_up(key)) continue; // or met twice
        counted.add(live ? count::evictions : count::reclaimed);
        any = true;
    }
    return any;
}

// Reports an item to clients that watch, before it is given up.
void mod_store::tell_evicted(std::string_view key, const item& it, std::uint32_t when,
                             thread_counts& counted) {
    journal* const events = wanting(counted, watched::evictions);
    if (events == nullptr) return;
    const item_view is = view_of(key, it);
    events->evicted(watched_of(key, is.value.size()), is.fetched,
                    is.exptime == 0 ? -1 : std::int64_t{is.exptime} - when, when - is.last_access);
}

// Gives up every item that may go and whose value lies in the chunk of this one's. One pass over
// all items.
bool mod_store::clear_chunk(const std::string& around, thread_counts& counted) {
    const auto chunk_of = [](std::string_view bytes) {
        return reinterpret_cast<std::uintptr_t>(bytes.data()) / chunk_bytes;
    };
    const auto there = items_.get(around);
    if (!there) return false; // damaged: met on a walk, and not found
    const std::uintptr_t chunk = chunk_of(*there);
    const std::uint32_t when = now();
    std::vector<std::string> keys;
    for (const auto& [key, bytes] : items_)
        if (chunk_of(bytes) == chunk && may_go(item_in(bytes).head, when)) keys.emplace_back(key);
    return give_up_all(keys, counted);
}

// Gives up items that are neighbours in the map, except the few used last, so that inner nodes
// above them go, too. If those are missing, single items here and there do not help.
void mod_store::give_up_run(thread_counts& counted) {
    const std::uint32_t when = now();
    std::vector<std::pair<std::uint32_t, std::string>> run; // when it was used last
    walk(run_items, [&](std::string_view key, const item& it) {
        if (may_go(it.head, when)) run.emplace_back(last_access(key, it.head), key);
    });
    if (run.empty()) return;
    std::ranges::sort(run);
    const std::uint32_t newest = run[run.size() - 1 - run.size() / 16].first;
    std::vector<std::string> unused;
    for (auto& [used, key] : run)
        if (used <= newest) unused.push_back(std::move(key));
    (void)give_up_all(unused, counted);
}

bool mod_store::make_room(std::size_t bytes, thread_counts& counted) {
    if (!evict_some(bytes, counted)) return false;
    // The next eviction must not find the ballast gone.
    for (unsigned more = 0; more < 64 && ballast_.size() < ballast_items / 2; ++more) {
        if (!evict_some(bytes, counted)) break;
        fill_ballast();
    }
    return true;
}

outcome mod_store::write(const request& what, std::string_view value, thread_counts& counted,
                         change& done) {
    counted.add(count::cmd_set);
    const std::lock_guard held(lock_);
    const std::uint32_t when = now();
    item old{};
    const bool present = find_live(what.key, when, old);
    if (present) done.meet(old.value.size());
    const bool dead = !present && old.head.cas != 0;
    const bool extends = what.what == verb::append || what.what == verb::prepend;
    if (what.what == verb::add && present) {
        mark_access(what.key, when, use::other);
        return outcome::not_stored;
    }
    if ((what.what == verb::replace || extends) && !present) return outcome::not_stored;
    if (extends && refuses(old, what)) return outcome::exists;
    if (extends && too_large(what.key.size(), old.value.size() + value.size()))
        return outcome::not_stored;
    bool outlives = false;
    if (what.what == verb::cas) {
        const bool differs = present && old.head.cas != what.cas;
        counted.add(!present ? count::cas_misses : differs ? count::cas_badval : count::cas_hits);
        if (!present) return outcome::not_found;
        // An older content may yet be kept, as one that is stale.
        outlives = differs && what.invalidates && what.cas < old.head.cas;
        if (differs && !outlives) return outcome::exists;
    }
    item_head head{next_cas(), extends ? old.head.flags : what.flags,
                   extends || outlives ? old.head.exptime : expiry_of(what.exptime, when), when,
                   !extends && what.binary_key ? mark_binary : 0U};
    if (outlives) head.marks |= mark_stale | (old.head.marks & mark_sent);
    begin_value(head);
    if (what.what == verb::append) value_ += old.value;
    value_ += value;
    if (what.what == verb::prepend) value_ += old.value;
    if (!keep(what.key, counted)) {
        if (extends) return outcome::not_stored; // memcached's answer
        counted.add(count::store_no_memory);
        return outcome::no_memory;
    }
    mark_access(what.key, when, use::stored);
    counted.add(count::total_items);
    if (dead) counted.add(count::reclaimed);
    done.cas = head.cas;
    return outcome::stored;
}

outcome mod_store::change_number(const request& what, thread_counts& counted, change& done) {
    const bool up = what.what == verb::incr;
    const std::lock_guard held(lock_);
    const std::uint32_t when = now();
    item old{};
    const bool live = find_live(what.key, when, old);
    if (!live && !what.vivifies) {
        counted.add(up ? count::incr_misses : count::decr_misses);
        return outcome::not_found;
    }
    item_head head{0, 0, 0, when, 0};
    done.made = !live;
    done.number = what.initial;
    if (live) {
        done.meet(old.value.size());
        if (!compared_first(old.value.size())) return outcome::not_a_number;
        if (refuses(old, what)) return outcome::exists;
        if (!may_be_number(old.value.size()) || !parse_number(old.value, done.number))
            return outcome::not_a_number;
        if (up) done.number += what.delta;
        else done.number = done.number < what.delta ? 0 : done.number - what.delta;
        head = old.head;
    }
    char digits[20];
    const std::size_t length = format_number(digits, done.number);
    const std::size_t padding = old.value.size() > length ? old.value.size() - length : 0;
    done.exptime = head.exptime;
    if (!live) head.exptime = expiry_of(what.made_exptime, when);
    else if (what.touches) head.exptime = expiry_of(what.exptime, when);
    head.cas = done.cas = next_cas();
    begin_value(head);
    // As memcached: no number gets shorter. One that is made follows nothing.
    value_.append(digits, length).append(live ? padding : 0, ' ');
    if (!keep(what.key, counted)) return outcome::no_memory;
    mark_access(what.key, when, live ? use::other : use::stored);
    if (live) counted.add(up ? count::incr_hits : count::decr_hits);
    else counted.add(count::total_items);
    return outcome::done;
}

// Changes the item as state_after() says, or makes it; false if there is no item. 'seen' is the
// item as it was, except for its value, which moves, and for the report of the change.
bool mod_store::change_locked(const request& what, item_view& seen, thread_counts& counted) {
    const std::uint32_t when = now();
    item it{};
    const bool live = find_live(what.key, when, it);
    if (!live && !what.vivifies) return false;
    if (!live) it = {{next_cas(), 0, 0, when, 0}, {}};
    seen = view_of(what.key, it);
    if (!live) seen.fetched = false;
    const item_state next = state_after(what, {seen.exptime, seen.marks}, !live, when);
    if (!live || next.exptime != seen.exptime || next.marks != seen.marks) {
        item_head head = it.head;
        head.exptime = next.exptime;
        head.marks = next.marks;
        begin_value(head);
        value_ += it.value;
        if (!keep(what.key, counted)) return false;
    }
    if (!live) mark_access(what.key, when, use::stored);
    if (!live) counted.add(count::total_items);
    if (!what.unseen) mark_access(what.key, when, use::read);
    seen.made = !live;
    seen.won = next.won;
    return true;
}

outcome mod_store::touch(std::string_view key, std::int64_t exptime, thread_counts& counted) {
    request what;
    what.key = key;
    what.touches = true;
    what.exptime = exptime;
    counted.add(count::cmd_touch);
    const bool there = get_and_change(what, counted, [](const item_view&) {});
    counted.add(there ? count::touch_hits : count::touch_misses);
    return there ? outcome::done : outcome::not_found;
}

outcome mod_store::remove(const request& what, thread_counts& counted, change& done) {
    const std::lock_guard held(lock_);
    const std::uint32_t when = now();
    item it{};
    const bool live = find_live(what.key, when, it);
    if (live) done.meet(it.value.size());
    if (live && what.compares && it.head.cas != what.cas) {
        counted.add(count::delete_misses);
        return outcome::exists;
    }
    if (live && what.invalidates) {
        item_head head = it.head;
        head.cas = next_cas();
        head.marks = (head.marks | mark_stale) & ~std::uint32_t{mark_sent};
        if (what.touches) head.exptime = expiry_of(what.exptime, when);
        begin_value(head);
        value_ += it.value;
        return keep(what.key, counted) ? outcome::done : outcome::no_memory;
    }
    if (items_.contains(what.key) && !give_up(what.key)) return outcome::no_memory;
    counted.add(live ? count::delete_hits : count::delete_misses);
    return live ? outcome::done : outcome::not_found;
}

void mod_store::forget_dead(std::string_view key, thread_counts& counted) {
    const std::unique_lock held(lock_, std::try_to_lock);
    if (!held) return; // another time
    item it{};
    if (find_live(key, now(), it) || !items_.contains(key)) return;
    if (give_up(key)) counted.add(count::reclaimed);
}

void mod_store::flush_all(std::int64_t delay_s) {
    const std::lock_guard held(lock_);
    const auto last = flush_state::of(flush_cas_.load(), flush_times_.load());
    const flush_state next = last.flushed(delay_s, now(), [this] { return cas_.fetch_add(1); });
    if (!flushes_.insert_or_assign(0, next)) { // no room: the ballast has some
        if (!ballast_.clear().ok() || !flushes_.insert_or_assign(0, next)) return;
        fill_ballast();
    }
    flush_cas_.store(next.cas, std::memory_order_release);
    flush_times_.store(next.times(), std::memory_order_release);
}

void mod_store::reap(thread_counts& counted) {
    const std::unique_lock held(lock_, std::try_to_lock);
    if (!held) return;
    const std::uint32_t when = now();
    std::vector<std::string> dead;
    walk(4 * sample_items, [&](std::string_view key, const item& it) {
        if (life_of(it.head, when) != life::live) dead.emplace_back(key);
    });
    for (const std::string& key : dead)
        if (give_up(key)) counted.add(count::reclaimed);
}

std::vector<size_class_view> mod_store::sample_classes(std::uint64_t& total_bytes) {
    constexpr unsigned looked_at_max = 2048;
    std::array<size_class_view, 64> classes{};
    std::uint64_t looked_at_bytes = 0;
    const std::lock_guard held(lock_);
    const std::uint64_t items = items_.size();
    const std::uint32_t when = now();
    const auto looked_at = static_cast<unsigned>(std::min<std::uint64_t>(items, looked_at_max));
    walk(looked_at, [&](std::string_view key, const item& it) {
        const std::size_t bytes = key.size() + sizeof(item_head) + it.value.size();
        // In the same classes as the other engines, and as a dump.
        auto& c = classes[size_class_of(item_overhead_bytes + key.size() + it.value.size())];
        ++c.items;
        c.item_bytes += bytes;
        c.oldest_age_s = std::max<std::uint64_t>(c.oldest_age_s, when - last_access(key, it.head));
        looked_at_bytes += bytes;
    });
    std::vector<size_class_view> found;
    total_bytes = 0;
    if (looked_at == 0) return found;
    const auto scaled = [&](std::uint64_t n) { return n * items / looked_at; };
    total_bytes = scaled(looked_at_bytes);
    for (std::size_t log2 = 0; log2 < classes.size(); ++log2)
        if (const auto& c = classes[log2]; c.items != 0)
            found.push_back({1ULL << log2, scaled(c.items), scaled(c.item_bytes), c.oldest_age_s});
    return found;
}

bool mod_store::whole() {
    const std::lock_guard held(lock_);
    std::uint64_t items = 0;
    for (const auto& [key, bytes] : items_) {
        if (key.empty() || bytes.size() < sizeof(item_head)) return false;
        ++items;
    }
    return items == items_.size();
}

} // namespace hf::kv
