// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores one element in place, or exchanges two. Copying the way down costs six lines and as many
// nodes. One store alone is failure-atomic; two are failure-atomic by a record of both. Versions
// must not change: so elements are stored in place only when nobody holds a version. A reader that
// comes meanwhile sees the old element or the new one.
//
// (1) Writer: announce, look for pins, decide, store, none. Reader: pin, look for an announcement,
//     then read the word. All of it is sequentially consistent, so at least one of the two sees the
//     other.
// (2) A reader that has pinned and sees 'decided' stores the element too, and makes it durable,
//     because it relies on it from then on. The second of the two stores the same bytes again: by
//     (1) the pin keeps writers from storing anything else in place, and keeps the node from being
//     reused. So nobody needs the element's old bytes. Its line, which is seldom in the cache, is
//     stored to and not waited for.
// (3) A shared node belongs to another version as well, of any root. The same holds for a node that
//     another root gave up by a word that is not durable.
// (4) For an update that is durable on return, a reader that pins helps until it is durable: the
//     reader then sees what will stay.
// (5) Other threads may see late that the state has returned to 'none', even after the writer's
//     next look for pins. A reader that comes then helps with a store that is done already. But
//     that reader pinned before the next announcement: the writer's look for pins behind the
//     announcement finds it, and leaves alone what it reads.
//
// For an exchange also:
// (6) Its record is durable before any thread stores to either element. One fence makes the record
//     durable together with what this thread did before. If recovery finds the record, nothing of
//     that may be missing; but the record's line may be written back before the fence. So there is
//     another fence before the record is written, unless all of that is durable, or in a record.
// (7) Open stores both elements again unless the cell's stamp is the record's number, or higher. A
//     commit stores that number, behind a fence, when the elements are durable, and before their
//     nodes can be made anew. Storing a single element stores no such number: until a commit has
//     done so, a single element is not stored in place.
// (8) The records are used in turns. The record that is overwritten is older than the last one. The
//     fence of the last one made the elements of the older one durable, as it was by the same
//     writer or by this thread.
//
// In a batched medium:
// (9) The elements are stored while the log is held (persist/line_log.hpp): a batch has both or
//     none, and no record is needed. A reader that helps stores them in that time, or behind it,
//     when they are what it stores.
#include <base/assert.hpp>
#include <mod/announced.hpp>
#include <mod/store_impl.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace hf::mod {
namespace {

// ThreadSanitizer would report the second of two that store an element against reads of the first.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HF_UNSEEN_BY_TSAN __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef HF_UNSEEN_BY_TSAN
#define HF_UNSEEN_BY_TSAN // the crash checker must see its stores
#endif

template <class Word>
HF_UNSEEN_BY_TSAN void store_element(std::byte* at, std::uint64_t next) {
    trace::announce(announced::in_place, at, sizeof(Word));
    __atomic_store_n(reinterpret_cast<Word*>(at), static_cast<Word>(next), __ATOMIC_RELEASE);
}
template <class Word> std::uint64_t element_at(const void* at) noexcept {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}
void store_element(std::byte* at, std::uint64_t next, std::size_t bytes) noexcept {
    switch (bytes) {
    case 1: return store_element<std::uint8_t>(at, next);
    case 2: return store_element<std::uint16_t>(at, next);
    case 4: return store_element<std::uint32_t>(at, next);
    default: return store_element<std::uint64_t>(at, next);
    }
}
std::uint64_t element_at(const void* at, std::size_t bytes) noexcept {
    switch (bytes) {
    case 1: return element_at<std::uint8_t>(at);
    case 2: return element_at<std::uint16_t>(at);
    case 4: return element_at<std::uint32_t>(at);
    default: return element_at<std::uint64_t>(at);
    }
}

} // namespace

void overwriting::announce(std::initializer_list<element_store> stores, std::uint32_t bytes_each,
                           const exchange_record* of) noexcept {
    HF_ASSERT_SLOW(stores.size() == (of == nullptr ? 1 : elements.size()));
    record.store(of, std::memory_order_relaxed);
    bytes.store(bytes_each, std::memory_order_relaxed);
    for (std::size_t i = 0; const element_store& s : stores) {
        elements[i].next.store(s.next, std::memory_order_relaxed);
        elements[i++].at.store(s.at, std::memory_order_release);
        trace::announce(announced::offered, s.at, bytes_each);
    }
}

void overwriting::store(hf::medium pm) noexcept {
    const std::uint32_t each = bytes.load(std::memory_order_relaxed);
    const std::size_t count = record.load(std::memory_order_relaxed) == nullptr ? 1 : 2;
    for (std::size_t i = 0; i < count; ++i) {
        std::byte* const at = elements[i].at.load(std::memory_order_acquire);
        HF_ASSERT(at != nullptr);
        store_element(at, elements[i].next.load(std::memory_order_relaxed), each);
        pm.flush(at, each);
    }
}

/// By a reader that has pinned and found it decided (2), (6).
void overwriting::help(hf::medium pm) noexcept {
    if (const exchange_record* of = record.load(std::memory_order_relaxed); of != nullptr) {
        pm.flush(of, sizeof *of);
        pm.fence();
    }
    store(pm);
    pm.fence();
}

/// Whether nobody may see the owner's elements change. Requires: its lock held.
bool store::impl::unseen(root::volatile_part& owner) noexcept {
    HF_ASSERT_SLOW(owner.lock.is_held());
    if (words_ != nullptr) return false;                                    // (5) of reader.cpp
    if (sharing_count_.load(std::memory_order_acquire) != 0) return false;  // (3)
    if (super_->shares != 0 && (trace_failed_ || uncounted_)) return false; // (3) is not known
    return oldest_pin(owner) == ~std::uint64_t{0};                          // (3): of any root
}

/// Offers the stores to readers: false when one is there, or withdrew them.
bool store::impl::decide(root::volatile_part& owner, std::initializer_list<element_store> stores,
                         std::size_t bytes, exchange_record* with) noexcept {
    overwriting& op = owner.in_place;
    HF_ASSERT_SLOW(op.state.load(std::memory_order_relaxed) == overwriting::none);
    op.state.store(overwriting::announced, std::memory_order_seq_cst);
    const auto give_up = [&] {
        op.state.store(overwriting::none, std::memory_order_seq_cst);
        return false;
    };
    // Checked before the operands that a helper reads change: a reader that found the last store
    // decided is seen here (5).
    if (oldest_own_pin(owner) != ~std::uint64_t{0}) return give_up();
    op.announce(stores, static_cast<std::uint32_t>(bytes), with);
    // Before a reader may store the elements (2), (6). What the record names was durable before.
    const bool by_record = with != nullptr && !medium().loses_batches(); // (9)
    if (by_record) write_record(owner, stores, bytes, *with);
    else if (medium().loses_caches() && !medium().loses_batches())
        owner.durable->in_place = owner.line[cell::in_place_at] =
            pool_->offset_of(stores.begin()->at);
    std::uint32_t undecided = overwriting::announced;
    if (op.state.compare_exchange_strong(undecided, overwriting::decided)) return true;
    if (by_record) { // nor after a failure, from here on
        with->check = 0;
        medium().flush(with, sizeof *with);
        medium().fence();
    }
    return give_up();
}

/// Upholds (9).
bool store::impl::store_whole(root::volatile_part& owner,
                              std::initializer_list<element_store> stores, std::size_t bytes,
                              exchange_record* with) noexcept {
    line_log& log = medium().lines();
    before_fence(owner);
    log.order();
    log.hold(stores.size());
    const bool decided = decide(owner, stores, bytes, with);
    if (decided) {
        owner.in_place.store(hf::medium{});
        for (const element_store& s : stores) log.add(s.at, bytes);
    }
    log.let_go();
    if (!decided) return false;
    persist::ended(log, stores.size());
    note_stored(owner, stores.size() * bytes);
    return true;
}

void store::impl::note_stored(root::volatile_part& owner, std::size_t bytes) noexcept {
    owner.in_place.state.store(overwriting::none, std::memory_order_release); // (4)
    persist::thread_counters().pm_bytes += bytes;
    ++persist::thread_counters().sections;
}

/// Requires: the owner's lock held.
bool store::impl::overwrite(root::volatile_part& to, std::byte* at, const void* next,
                            std::size_t bytes) noexcept {
    root::volatile_part& owner = to.owner();
    if (!unseen(owner) || !space_.holds(at, bytes)) return false;   // no node: damaged
    if (owner.exchanged > owner.line[cell::stamp_at]) return false; // (7)
    const hf::medium pm = medium();
    if (pm.loses_batches())
        return store_whole(owner, {{at, element_at(next, bytes)}}, bytes, nullptr);
    __builtin_prefetch(at, 1); // comes while the fence waits
    before_fence(owner);
    const bool durable = to.face->when_durable() != durability::by_next_section;
    if (pm.keeps_order()) {
        pm.order();
    } else {
        const others around = before_reclaim(&owner);
        if (durable) pm.order(); // what this thread committed before is durable
        else pm.fence();
        if (after_fence(&owner, around) != ~std::uint64_t{0}) return false; // (3)
    }
    if (!decide(owner, {{at, element_at(next, bytes)}}, bytes, nullptr)) return false;
    owner.in_place.store(pm);
    owner.note_unfenced(at, nullptr);
    if (durable) pm.fence();
    note_durable(durable);
    note_stored(owner, bytes);
    return true;
}

/// Requires: redo_lock_ held.
void store::impl::write_record(const root::volatile_part& owner,
                               std::initializer_list<element_store> stores, std::size_t bytes,
                               exchange_record& to) noexcept {
    exchange_record r{0, ++redo_number_, owner.index, static_cast<std::uint32_t>(bytes), {}, 0};
    for (std::size_t i = 0; const element_store& s : stores)
        r.elements[i++] = {pool_->offset_of(s.at), s.next};
    r.check = exchange_check(r);
    to = r;
    medium().flush(&to, sizeof to);
}

/// Two elements change places. Requires: the owner's lock held.
bool store::impl::exchange(root::volatile_part& to, std::byte* one, std::byte* other,
                           std::size_t bytes) noexcept {
    root::volatile_part& owner = to.owner();
    if (super_->shares != 0 || !unseen(owner)) return false; // (3)
    if (!space_.holds(one, bytes) || !space_.holds(other, bytes)) return false;
    const std::unique_lock turn{redo_lock_, std::try_to_lock};
    if (!turn.owns_lock()) return false; // no reason to wait: the others' records are not ours
    const hf::medium pm = medium();
    exchange_record& record = super_->exchanges[exchange_.turn % 2];
    const std::initializer_list<element_store> stores = {{one, element_at(other, bytes)},
                                                         {other, element_at(one, bytes)}};
    if (pm.loses_batches()) return store_whole(owner, stores, bytes, &record);
    const auto self = std::this_thread::get_id();
    const bool followed = owner.last_writer == self && all_durable(); // (6)
    before_fence(owner);
    if (exchange_.by != self) // (8)
        for (const std::byte* element : exchange_.elements)
            if (element != nullptr) pm.flush(element, 1);
    if (!followed) pm.fence();
    if (!decide(owner, stores, bytes, &record)) return false;
    for (const std::byte* element : {one, other})
        trace::announce(announced::offered, element, bytes); // a reader may store both here
    pm.fence(); // the record, and what the last one names (8)
    owner.in_place.store(pm);
    ++exchange_.turn;
    exchange_.elements = {one, other};
    owner.note_unfenced(one, other);
    exchange_.by = self;
    owner.exchanged = record.number;
    note_durable(true); // by the record
    note_stored(owner, sizeof record + 2 * bytes);
    return true;
}

bool root::writing::overwrite(std::byte* at, const void* next, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes - 1 < 8 && std::has_single_bit(bytes) &&
                   reinterpret_cast<std::uintptr_t>(at) % bytes == 0);
    return !refused_ && to_->store_->internals().overwrite(*to_->part_, at, next, bytes);
}

bool root::writing::exchange(std::byte* one, std::byte* other, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes - 1 < 8 && std::has_single_bit(bytes) && one != other);
    return !refused_ && to_->store_->internals().exchange(*to_->part_, one, other, bytes);
}

} // namespace hf::mod
