// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section_store.hpp"

#include "../../hash.hpp"
#include "sections.hpp"
#include "torn_pool.hpp"

#include <holdfast/author/staged.hpp>

#include <algorithm>
#include <random>
#include <utility>

namespace hf::kv {
namespace {

std::uint64_t random_seed() {
    std::random_device device;
    const std::uint64_t seed = std::uint64_t{device()} << 32 | device();
    return seed == 0 ? 1 : seed;
}

void fill(item& it, std::string_view key, std::uint64_t hash, std::uint32_t now) noexcept {
    it.node = {nullptr, hash};
    it.cas = 0;
    it.flags = it.exptime = 0;
    it.stored = it.last_access = now;
    it.value_bytes = 0;
    it.key_bytes = static_cast<std::uint16_t>(key.size());
    it.marks = it.fetched = 0;
    std::memcpy(it.bytes(), key.data(), key.size());
}

open_options pool_options(const store_options& options) {
    open_options how;
    how.layout = "holdfast-kv/1";
    how.layout_hash = sizeof(item) << 32 | sizeof(instance);
    how.max_bytes = options.max_bytes;
    how.create_bytes = std::min<std::uint64_t>(options.max_bytes, 64ULL << 20);
    how.creation = options.create ? create::if_missing : create::never;
    how.mode = options.mode;
    return how;
}

} // namespace

// Looks in private memory, so a pool that is refused stays as it was. If the pool cannot be opened
// so, the later open decides.
status section_store::look_before(const store_options& options) {
    open_options how = pool_options(options);
    how.salvage = options.torn == when_torn::salvage;
    how.read_only = true;
    how.creation = create::never;
    auto opened = pool::open(options.path, how);
    if (!opened) return {};
    const auto root = opened->find_root<kv_root>();
    if (!root || (*root)->seed == 0) return {};
    return section_store(std::move(*opened), options).look_through();
}

result<std::unique_ptr<section_store>> section_store::open(const store_options& options) {
    if (options.look_through)
        if (status s = look_before(options); !s.ok()) return s;
    auto opened = open_for_service(options, pool_options(options));
    if (!opened) return opened.error();
    if (const auto root = opened->find_root<kv_root>(); !root) return root.error();
    std::unique_ptr<section_store> made(new section_store(std::move(*opened), options));
    if (options.look_through)
        if (status s = made->look_through(); !s.ok()) return s;
    return made;
}

section_store::section_store(hf::pool opened, const store_options& options)
    : pool_(std::move(opened)), root_(pool_.root<kv_root>()),
      item_bytes_max_(options.item_bytes_max), evict_(options.evict),
      clock_(options.clock == nullptr ? system_clock : options.clock),
      on_damage_(options.on_damage), cas_((pool_.generation() << 40) + 1) {
    // A file may say anything of them, so also that this very process holds them.
    for (instance& in : root_->instances) new (&in.lock) hf::shared_mutex{};
    pinned_.reserve(1 + instance_count * structures::hash_table::segment_count);
    if (root_->seed == 0) initialise(root_, random_seed());
    seed_ = root_->seed;
    flush_cas_ = root_->flush_cas;
    flush_times_ = root_->flush_times;
}

const char* section_store::engine_name() noexcept {
#define HF_KV_TEXT_(x) #x
#define HF_KV_TEXT(x) HF_KV_TEXT_(x)
    return HF_KV_TEXT(HF_ENGINE);
}

std::uint64_t section_store::hash_of(std::string_view key) const noexcept {
    return apps::hash_of(key.data(), key.size(), seed_);
}

item* section_store::find(const instance& in, std::string_view key, std::uint64_t hash) noexcept {
    for (auto* node = structures::chain(&in.table, hash); node != nullptr && node->hash == hash;
         node = node->next) {
        auto* const it = reinterpret_cast<item*>(node);
        if (it->key() == key) return it;
    }
    return nullptr;
}

life section_store::life_of(const item& it, std::uint32_t now) const noexcept {
    const auto flushed = flush_state::of(flush_cas_.load(std::memory_order_acquire),
                                         flush_times_.load(std::memory_order_acquire));
    return flushed.life_of(it.cas, it.exptime, it.stored, now);
}

void section_store::mark_access(item& it, std::uint32_t now) noexcept {
    const std::atomic_ref<std::uint32_t> last(it.last_access);
    // Stored only when it changes: a hot item's line stays shared among the readers.
    if (last.load(std::memory_order_relaxed) != now) last.store(now, std::memory_order_relaxed);
}

void section_store::mark_fetched(item& it, std::uint32_t now) noexcept {
    mark_access(it, now);
    const std::atomic_ref<std::uint8_t> fetched(it.fetched);
    if (fetched.load(std::memory_order_relaxed) == 0) fetched.store(1, std::memory_order_relaxed);
}

item_view section_store::view_of(const item& it) noexcept {
    // Readers of the same item may be writing the hints.
    auto& hints = const_cast<item&>(it);
    return {.value = it.value(),
            .flags = it.flags,
            .cas = it.cas,
            .exptime = it.exptime,
            .marks = it.marks,
            .fetched = std::atomic_ref(hints.fetched).load(std::memory_order_relaxed) != 0,
            .last_access = std::atomic_ref(hints.last_access).load(std::memory_order_relaxed)};
}

void section_store::count_dead(life how, thread_counts& counted) {
    counted.add(how == life::expired ? count::get_expired : count::get_flushed);
}

item* section_store::link(instance& in, item* old, staged& fresh, thread_counts& counted) {
    item* const made = fresh.as<item>();
    if (old != nullptr) replace_item(&in.table, old, made);
    else insert(in, made);
    fresh.release();
    if (is_large(*made)) note_large(*made);
    counted.add(count::total_items);
    return made;
}

void section_store::insert(instance& in, item* fresh) {
    auto* const segment = structures::segment_to_come(&in.table);
    if (segment == nullptr) return insert_item(&in.table, fresh);
    // A thread that looks at another instance must know that the new segment is no item of that
    // instance.
    const std::scoped_lock held{look_lock_};
    insert_item(&in.table, fresh);
    if (*segment != nullptr) (void)pin(*segment);
}

void section_store::unlink(instance& in, item* old) { remove_item(&in.table, old); }

// A flush_all that was answered between filling the item and locking would take it along, although
// it may yet replace an item stored after that flush_all.
void section_store::renew_if_flushed(item& fresh) {
    const std::uint32_t when = now();
    if (life_of(fresh, when) != life::flushed) return;
    fresh.cas = next_cas();
    fresh.stored = when;
    staged::persist(pool_, &fresh, sizeof fresh);
}

void section_store::forget_dead(std::string_view key, std::uint64_t hash, thread_counts& counted) {
    instance& in = at(hash);
    const std::unique_lock held(in.lock, std::try_to_lock);
    if (!held || !believed(in)) return; // another time
    item* const it = find(in, key, hash);
    if (it == nullptr || life_of(*it, now()) == life::live) return;
    unlink(in, it);
    counted.add(count::reclaimed);
}

// cas. An older content may yet be kept, as one that is stale: then the client that is renewing the
// item is not disturbed.
outcome section_store::decide_cas(const request& what, const item* old, item& fresh,
                                  thread_counts& counted) {
    const bool equal = old != nullptr && old->cas == what.cas;
    counted.add(old == nullptr ? count::cas_misses : equal ? count::cas_hits : count::cas_badval);
    if (old == nullptr) return outcome::not_found;
    if (equal) return outcome::stored;
    if (!what.invalidates || what.cas > old->cas) return outcome::exists;
    fresh.exptime = old->exptime;
    fresh.marks = static_cast<std::uint8_t>(fresh.marks | mark_stale | (old->marks & mark_sent));
    staged::persist(pool_, &fresh, sizeof fresh);
    return outcome::stored;
}

outcome section_store::write(const request& what, std::string_view value, thread_counts& counted,
                             change& done) {
    counted.add(count::cmd_set);
    if (what.what == verb::append || what.what == verb::prepend)
        return extend(what, value, counted, done);
    staged block = stage(what.key.size(), value.size(), counted);
    if (!block) {
        counted.add(count::store_no_memory);
        return outcome::no_memory;
    }
    item* const fresh = block.as<item>();
    const std::uint64_t hash = hash_of(what.key);
    const std::uint32_t when = now();
    fill(*fresh, what.key, hash, when);
    fresh->flags = what.flags;
    fresh->exptime = expiry_of(what.exptime, when);
    fresh->marks = what.binary_key ? mark_binary : 0;
    fresh->value_bytes = static_cast<std::uint32_t>(value.size());
    staged::copy(pool_, fresh->bytes() + what.key.size(), value.data(), value.size());
    fresh->cas = next_cas();
    staged::persist(pool_, fresh, item_bytes(what.key.size(), 0)); // and, with its fence, the value

    instance& in = at(hash);
    const std::unique_lock held(in.lock); // ends before the block, which is given back without it
    if (!believed(in)) return outcome::damaged;
    renew_if_flushed(*fresh);
    item* const old = find(in, what.key, hash);
    const bool present = old != nullptr && life_of(*old, when) == life::live;
    if (present) done.meet(old->value_bytes);
    outcome decided = outcome::stored;
    if (what.what == verb::add && present) decided = outcome::not_stored;
    if (what.what == verb::replace && !present) decided = outcome::not_stored;
    if (what.what == verb::cas)
        decided = decide_cas(what, present ? old : nullptr, *fresh, counted);
    if (decided == outcome::stored) {
        done.cas = fresh->cas;
        link(in, old, block, counted);
        if (old != nullptr && !present) counted.add(count::reclaimed);
        return decided;
    }
    if (what.what == verb::add) mark_access(*old, when);
    return decided;
}

// The block's size depends on the value it extends: look, stage without the lock (upholds 2), and
// start again when the value has changed its length meanwhile.
outcome section_store::extend(const request& what, std::string_view value, thread_counts& counted,
                              change& done) {
    const std::uint64_t hash = hash_of(what.key);
    instance& in = at(hash);
    for (;;) {
        std::shared_lock looking(in.lock);
        if (!believed(in)) return outcome::damaged;
        const item* seen = find(in, what.key, hash);
        const bool live = seen != nullptr && life_of(*seen, now()) == life::live;
        const std::size_t old_bytes = live ? seen->value_bytes : 0;
        const bool refused = live && refuses(*seen, what);
        if (live) done.meet(old_bytes);
        looking.unlock();
        if (refused) return outcome::exists;
        if (!live || too_large(what.key.size(), old_bytes + value.size()))
            return outcome::not_stored;
        staged block = stage(what.key.size(), old_bytes + value.size(), counted);
        if (!block) return outcome::not_stored; // memcached's answer
        item* const fresh = block.as<item>();

        const std::uint32_t when = now();
        const std::unique_lock held(in.lock);
        item* const old = find(in, what.key, hash);
        if (old == nullptr || life_of(*old, when) != life::live || old->value_bytes != old_bytes ||
            refuses(*old, what))
            continue;
        fill(*fresh, what.key, hash, when);
        fresh->flags = old->flags;
        fresh->exptime = old->exptime;
        fresh->cas = next_cas();
        fresh->value_bytes = static_cast<std::uint32_t>(old_bytes + value.size());
        char* const to = fresh->bytes() + what.key.size();
        const bool behind = what.what == verb::append;
        std::memcpy(behind ? to : to + value.size(), old->value().data(), old_bytes);
        std::memcpy(behind ? to + old_bytes : to, value.data(), value.size());
        staged::persist(pool_, fresh, item_bytes(fresh->key_bytes, fresh->value_bytes));
        done.cas = fresh->cas;
        link(in, old, block, counted);
        return outcome::stored;
    }
}

// Stores done.number, in place in 'old' or in 'fresh', which is then used up. Null: the digits need
// a block that was not staged.
item* section_store::number_in(const request& what, item* old, staged& fresh, std::uint32_t when,
                               thread_counts& counted, change& done) {
    char digits[20];
    const std::size_t length = format_number(digits, done.number);
    const std::uint64_t hash = hash_of(what.key);
    done.made = old == nullptr || life_of(*old, when) != life::live;
    done.exptime = done.made ? 0 : old->exptime;
    const std::uint32_t exptime = done.made      ? expiry_of(what.made_exptime, when)
                                  : what.touches ? expiry_of(what.exptime, when)
                                                 : old->exptime;
    if (!done.made && length <= old->value_bytes) {
        done.cas = next_cas();
        set_number(old, done.number, done.cas, exptime);
        mark_access(*old, when);
        return old;
    }
    if (!fresh) return nullptr;
    item* const made = fresh.as<item>();
    fill(*made, what.key, hash, when);
    if (!done.made) {
        made->flags = old->flags;
        made->marks = old->marks;
        made->fetched = std::atomic_ref(old->fetched).load(std::memory_order_relaxed);
    }
    made->exptime = exptime;
    made->cas = done.cas = next_cas();
    made->value_bytes = static_cast<std::uint32_t>(length);
    std::memcpy(made->bytes() + what.key.size(), digits, length);
    staged::persist(pool_, made, item_bytes(what.key.size(), length));
    return link(at(hash), old, fresh, counted);
}

outcome section_store::change_number(const request& what, thread_counts& counted, change& done) {
    const bool up = what.what == verb::incr;
    const std::uint64_t hash = hash_of(what.key);
    instance& in = at(hash);
    staged fresh; // made when the digits turn out to need more room
    for (;;) {
        std::unique_lock held(in.lock);
        if (!believed(in)) return outcome::damaged;
        item* const old = find(in, what.key, hash);
        const std::uint32_t when = now();
        const bool live = old != nullptr && life_of(*old, when) == life::live;
        if (live) done.meet(old->value_bytes);
        outcome decided = outcome::done;
        if (!live && what.vivifies) done.number = what.initial;
        else if (!live) decided = outcome::not_found;
        else if (!compared_first(old->value_bytes)) decided = outcome::not_a_number;
        else if (refuses(*old, what)) decided = outcome::exists;
        else if (!may_be_number(old->value_bytes) || !parse_number(old->value(), done.number))
            decided = outcome::not_a_number;
        else if (up) done.number += what.delta;
        else done.number = done.number < what.delta ? 0 : done.number - what.delta;
        const bool stored =
            decided == outcome::done && number_in(what, old, fresh, when, counted, done) != nullptr;
        held.unlock();
        if (decided == outcome::done && !stored) { // (2): stage without the lock, then look again
            fresh = stage(what.key.size(), 20, counted);
            if (!fresh) return outcome::no_memory;
            continue;
        }
        if (live && decided == outcome::done) counted.add(up ? count::incr_hits : count::decr_hits);
        if (decided == outcome::not_found)
            counted.add(up ? count::incr_misses : count::decr_misses);
        return decided;
    }
}

// The item, changed as state_after() says. If it is missing, it is made of 'fresh', which is then
// used up. Null: it is missing and not made. 'seen' is the item as it was, except for the report of
// the change.
item* section_store::change_locked(instance& in, const request& what, std::uint64_t hash,
                                   staged& fresh, item_view& seen, thread_counts& counted) {
    const std::uint32_t when = now();
    item* it = find(in, what.key, hash);
    const bool live = it != nullptr && life_of(*it, when) == life::live;
    if (!live && !fresh) return nullptr;
    item* const old = it;
    if (!live) {
        it = fresh.as<item>();
        fill(*it, what.key, hash, when);
        it->cas = next_cas();
    }
    seen = view_of(*it);
    const item_state next = state_after(what, {it->exptime, it->marks}, !live, when);
    if (!live) {
        it->exptime = next.exptime;
        it->marks = next.marks;
        staged::persist(pool_, it, item_bytes(what.key.size(), 0));
        link(in, old, fresh, counted);
    } else if (next.marks != it->marks) {
        set_state(it, next.exptime, next.marks, it->cas);
    } else if (next.exptime != it->exptime) {
        set_exptime(it, next.exptime);
    }
    seen.made = !live;
    seen.won = next.won;
    if (!what.unseen) mark_fetched(*it, when);
    return it;
}

outcome section_store::touch(std::string_view key, std::int64_t exptime, thread_counts& counted) {
    request what;
    what.key = key;
    what.touches = true;
    what.exptime = exptime;
    counted.add(count::cmd_touch);
    const bool there = get_and_change(what, counted, [](const item_view&) {});
    counted.add(there ? count::touch_hits : count::touch_misses);
    if (there) return outcome::done;
    return damaged(key) ? outcome::damaged : outcome::not_found;
}

outcome section_store::remove(const request& what, thread_counts& counted, change& done) {
    const std::uint64_t hash = hash_of(what.key);
    instance& in = at(hash);
    const std::lock_guard held(in.lock);
    if (!believed(in)) return outcome::damaged;
    item* const it = find(in, what.key, hash);
    const std::uint32_t when = now();
    const bool live = it != nullptr && life_of(*it, when) == life::live;
    if (live) done.meet(it->value_bytes);
    if (live && what.compares && it->cas != what.cas) {
        counted.add(count::delete_misses);
        return outcome::exists;
    }
    if (live && what.invalidates) {
        const auto marks = static_cast<std::uint8_t>((it->marks | mark_stale) & ~mark_sent);
        set_state(it, what.touches ? expiry_of(what.exptime, when) : it->exptime, marks,
                  next_cas());
        return outcome::done;
    }
    if (it != nullptr) unlink(in, it);
    counted.add(live ? count::delete_hits : count::delete_misses);
    return live ? outcome::done : outcome::not_found;
}

void section_store::flush_all(std::int64_t delay_s) {
    const std::lock_guard held(flush_lock_);
    const auto last = flush_state::of(flush_cas_.load(), flush_times_.load());
    const flush_state next = last.flushed(delay_s, now(), [this] { return cas_.fetch_add(1); });
    set_flush(root_, next.cas, next.times());
    flush_cas_.store(next.cas, std::memory_order_release);
    flush_times_.store(next.times(), std::memory_order_release);
}

std::uint64_t section_store::item_count() const noexcept {
    std::uint64_t items = 0;
    for (instance& in : root_->instances) {
        if (seen_[number_of(in)].load(std::memory_order_relaxed) == sight::damaged) continue;
        in.lock.lock_shared();
        items += structures::size(&in.table);
        in.lock.unlock_shared();
    }
    return items;
}

} // namespace hf::kv
