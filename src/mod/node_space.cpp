// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <mod/node_space.hpp>

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/element.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <new>

namespace hf::mod {
namespace {

// A refill takes about this many bytes, so that a writer keeps little of large classes.
constexpr std::uint64_t refill_bytes = 8 * 1024;
constexpr auto refill_counts = [] {
    std::array<std::size_t, class_count> counts{};
    for (unsigned c = 0; c < class_count; ++c)
        counts[c] = std::clamp<std::uint64_t>(refill_bytes / class_bytes(c), 1, 64);
    return counts;
}();
constexpr std::uint64_t bit_of(std::uint64_t slot) { return std::uint64_t{1} << slot % 64; }

} // namespace

node_space::node_space(pool::impl& in, superblock* super)
    : pool_(&in), super_(super),
      chunk_shift_(static_cast<unsigned>(std::countr_zero(in.file->shape().chunk_bytes))),
      limit_(std::min(in.file->shape().max_bytes, reach_bytes)) {
    table_.reset(static_cast<std::atomic<arena*>*>(
        std::calloc((limit_ >> chunk_shift_) + 1, sizeof(std::atomic<arena*>))));
    if (table_ == nullptr) throw std::bad_alloc();
    if (super_ != nullptr) next_unloaded_ = super_->arenas;
}

node_space::~node_space() = default;

ref node_space::take_more(node_cache& from, std::uint64_t bytes) {
    bytes = std::max<std::uint64_t>(bytes, 1);
    if (bytes > node_bytes_max) return 0;
    if (bytes > pool_->file->shape().chunk_bytes / 8) return take_large(bytes);
    const unsigned c = class_of(bytes);
    HF_ASSERT_SLOW(class_bytes(c) >= bytes);
    auto& free = from.free[c];
    if (free.empty() && !refill(from, c)) return 0;
    const ref node = free.back();
    free.pop_back();
    return node;
}

void node_space::give(node_cache& to, ref node) noexcept {
    const arena* a = find(node);
    if (a == nullptr) [[unlikely]]
        return note_damage();
    if (a->in_class == class_count) [[unlikely]]
        return give_now(node);
    auto& free = to.free[a->in_class];
    const std::size_t keep = refill_counts[a->in_class];
    if (free.size() == free.capacity() || free.size() == 4 * keep) [[unlikely]] {
        if (!make_room(free, keep)) return give_now(node);
    }
    free.push_back(node);
}

/// For another node. False: out of memory.
bool node_space::make_room(std::vector<ref>& free, std::size_t keep) noexcept try {
    if (free.size() < 4 * keep) {
        free.reserve(std::min(4 * keep, std::max(2 * free.size(), keep)));
        return true;
    }
    std::scoped_lock held{lock_};
    put_back(free.data(), 2 * keep); // the oldest
    free.erase(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(2 * keep));
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void node_space::give_now(ref node) noexcept try {
    if (find(node) == nullptr) return note_damage();
    std::scoped_lock held{lock_};
    put_back(&node, 1);
} catch (const std::bad_alloc&) { // it stays in use
}

void node_space::give_all(node_cache& from) noexcept {
    std::scoped_lock held{lock_};
    for (auto& free : from.free) {
        put_back(free.data(), free.size());
        free.clear();
    }
}

std::uint64_t node_space::bytes_of(ref node) {
    const arena* a = find(node);
    return a == nullptr ? 0 : a->slot_bytes;
}

bool node_space::valid() const noexcept {
    std::scoped_lock held{lock_};
    return std::ranges::all_of(arenas_, [&](const auto& a) { return valid(*a); });
}

/// Requires: lock held.
bool node_space::valid(const arena& a) const noexcept {
    if (place(a.offset).load(std::memory_order_relaxed) != &a) return false;
    if (a.bytes == 0 || ((a.offset | a.bytes) & (pool_->file->shape().chunk_bytes - 1)) != 0 ||
        a.offset + a.bytes > limit_)
        return false;
    if (a.slots == 0 || a.slots != slots_in(a.bytes, a.slot_bytes) ||
        a.slots_at != slots_at(a.slots) || a.taken.size() != (a.slots + 63) / 64)
        return false;
    if (a.slots % 64 != 0 && a.taken.back() >> a.slots % 64 != 0) return false;
    if (a.listed && std::ranges::find(room_[a.in_class], &a) == room_[a.in_class].end())
        return false;
    std::uint64_t free = 0;
    for (std::uint32_t slot = 0; slot < a.slots; ++slot) free += !a.is_taken(slot);
    return a.closed || free == a.free;
}

/// Requires: lock held.
void node_space::put_back(const ref* nodes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        arena& a = *known(nodes[i]);
        const std::uint32_t slot = a.slot_of(std::uint64_t{nodes[i]} * granule_bytes);
        if (slot == arena::no_slot || !a.is_taken(slot)) { // given back twice
            note_damage();
            continue;
        }
        a.taken[slot / 64] &= ~bit_of(slot);
        ++a.free;
        try {
            if (!a.closed && !a.listed) list(a);
            if (a.free == a.slots) empty_.push_back(&a);
        } catch (const std::bad_alloc&) { // its room is found by the next open
        }
        HF_ASSERT_SLOW(valid(a));
    }
}

bool node_space::refill(node_cache& to, unsigned c) {
    std::scoped_lock held{lock_};
    // Looks in one arena only: a caller that needs one node takes no chunk that others may fill.
    arena* a = room_in(c);
    if (a == nullptr) return false;
    HF_ASSERT(a->free > 0 && !a->closed && a->slot_bytes == class_bytes(c)); // (2)
    auto& free = to.free[c];
    HF_ASSERT(free.empty());
    std::size_t wanted = refill_counts[c];
    free.reserve(wanted); // or slots taken here would be lost
    for (std::size_t w = 0; w < a->taken.size() && wanted > 0 && a->free > 0; ++w)
        while (wanted > 0 && a->taken[w] != ~std::uint64_t{0}) {
            const auto slot = static_cast<std::uint32_t>(w * 64 + std::countr_one(a->taken[w]));
            if (slot >= a->slots) break;
            a->taken[w] |= bit_of(slot);
            --a->free;
            --wanted;
            free.push_back(static_cast<ref>(
                (a->offset + a->slots_at + std::uint64_t{slot} * a->slot_bytes) / granule_bytes));
        }
    HF_ASSERT_SLOW(valid(*a));
    // Used from the back: lowest addresses first, so that the nodes of an update are neighbours.
    std::reverse(free.begin(), free.end());
    return !free.empty();
}

/// An arena of class 'c' with a free slot; null when the pool is full. Requires: lock held.
arena* node_space::room_in(unsigned c) {
    auto& room = room_[c];
    for (;;) {
        while (!room.empty()) {
            arena* a = room.back();
            if (a->free > 0 && !a->closed && a->in_class == c) return a;
            a->listed = false;
            room.pop_back();
        }
        const auto bytes = static_cast<std::uint32_t>(class_bytes(c));
        if (arena* a = reuse_empty(bytes)) return a;
        if (!closed_ && load_next() != nullptr) continue;
        return take_arena(pool_->file->shape().chunk_bytes, bytes);
    }
}

void node_space::list(arena& a) {
    HF_ASSERT(!a.listed && !a.closed);
    if (a.in_class == class_count) return;
    room_[a.in_class].push_back(&a);
    a.listed = true;
}

/// An arena without a node in use serves another size. Then 1 ordering point: other threads take
/// nodes from it, or commit this one's, and their fences do not wait for this thread's flushes.
/// Requires: lock held.
void node_space::turn(arena& a, std::uint32_t slot_bytes) {
    HF_ASSERT(a.free == a.slots && !a.closed); // (3)
    if (a.slot_bytes == slot_bytes) return;
    if (a.listed) std::erase(room_[a.in_class], &a);
    a.listed = false;
    format(a, slot_bytes);
    pool_->file->medium().fence();
}

/// Requires: lock held.
arena* node_space::reuse_empty(std::uint32_t slot_bytes) {
    while (!empty_.empty()) {
        arena* a = empty_.back();
        empty_.pop_back();
        if (a->free != a->slots || a->closed) continue;
        if (a->bytes != pool_->file->shape().chunk_bytes) continue; // kept for large nodes
        turn(*a, slot_bytes);
        if (!a->listed) list(*a);
        HF_ASSERT_SLOW(valid(*a));
        return a;
    }
    return nullptr;
}

void arena::set_form(std::uint32_t bytes_each, std::uint32_t count) noexcept {
    HF_ASSERT(bytes_each != 0 && bytes_each % granule_bytes == 0 && count != 0);
    slot_bytes = bytes_each;
    slots = count;
    slots_at = static_cast<std::uint32_t>(mod::slots_at(count));
    in_class = count == 1 ? class_count : class_of(bytes_each);
    const std::uint64_t granules = bytes_each / granule_bytes;
    inverse = ((1ULL << 32) + granules - 1) / granules;
}

void node_space::format(arena& a, std::uint32_t slot_bytes) {
    a.set_form(slot_bytes, slots_in(a.bytes, slot_bytes));
    a.free = a.slots;
    a.taken.assign((a.slots + 63) / 64, 0);
    auto* head = static_cast<arena_head*>(pool_->at(a.offset));
    head->magic = arena_magic;
    head->bytes = a.bytes;
    // In one store: of an arena that served another size before, a crash keeps either.
    static_assert(offsetof(arena_head, slots) == offsetof(arena_head, slot_bytes) + 4);
    *reinterpret_cast<std::uint64_t*>(&head->slot_bytes) = slot_bytes | std::uint64_t{a.slots}
                                                                            << 32;
    pool_->file->medium().flush(head, sizeof *head);
}

/// Takes chunks from the heap and puts them at the head of the list (3). 2 ordering points.
/// Requires: lock held.
arena* node_space::take_arena(std::uint64_t bytes, std::uint32_t slot_bytes) {
    HF_ASSERT(super_ != nullptr);
    HF_ASSERT(bytes % pool_->file->shape().chunk_bytes == 0 && slot_bytes <= bytes);
    const hf::medium pm = pool_->file->medium();
    thread_cache none;
    auto made = std::make_unique<arena>();
    arenas_.reserve(arenas_.size() + 1);
    const block b = pool_->blocks.reserve(none, bytes);
    if (b.offset == 0) return nullptr;
    if (b.offset + b.bytes > limit_) {
        pool_->blocks.release(none, b);
        return nullptr;
    }
    made->offset = b.offset;
    made->bytes = b.bytes;
    made->closed = made->listed = false;
    format(*made, slot_bytes);
    auto* head = static_cast<arena_head*>(pool_->at(b.offset));
    head->next = super_->arenas;
    pm.flush(head, sizeof *head);
    name_taking(b);
    pm.fence(); // what is half taken from here on is known to the next open
    pool_->blocks.durable().publish(b, [&](const void* word) { pm.flush(word, word_bytes); });
    pm.store_word(&super_->arenas, b.offset);
    pm.fence(); // allocated before 'taking' may name another
    arena* a = made.get();
    arenas_.push_back(std::move(made));
    place(a->offset).store(a, std::memory_order_release);
    list(*a);
    HF_ASSERT_SLOW(valid(*a));
    return a;
}

void node_space::name_taking(const block& b) noexcept {
    // Both lie in one line, which keeps a prefix of its stores: never the old offset with the new
    // length.
    std::atomic_ref(super_->taking).store(0, std::memory_order_release);
    std::atomic_ref(super_->taking_bytes).store(b.bytes, std::memory_order_release);
    std::atomic_ref(super_->taking).store(b.offset, std::memory_order_release);
    pool_->file->medium().flush(&super_->taking, 2 * word_bytes);
}

void node_space::trim() noexcept try {
    std::scoped_lock held{lock_};
    if (super_ == nullptr || closed_) return;
    while (load_next() != nullptr) {}
    for (std::uint64_t* link = &super_->arenas; *link != 0 && !corrupt_;) {
        arena* a = place(*link).load(std::memory_order_relaxed);
        if (a->free != a->slots || a->closed || !give_back(*a, link))
            link = &static_cast<arena_head*>(pool_->at(a->offset))->next;
    }
} catch (const std::bad_alloc&) { // arenas not given back are used again
}

/// 'link' names the arena in the durable list. Requires: lock held.
bool node_space::give_back(arena& a, std::uint64_t* link) {
    HF_ASSERT(a.free == a.slots && !a.closed);
    HF_ASSERT_SLOW(valid(a));
    const hf::medium pm = pool_->file->medium();
    const block b = pool_->blocks.find(a.offset);
    if (b.bytes != a.bytes) {
        note_damage();
        return false;
    }
    name_taking(b);
    pm.fence();
    pm.store_word(link, static_cast<const arena_head*>(pool_->at(a.offset))->next);
    pm.fence(); // no longer ours: from here on the next open would free it
    pool_->blocks.durable().retract(b, [&](const void* word) { pm.flush(word, word_bytes); });
    pm.fence();
    pm.store_word(&super_->taking, 0);
    pm.fence(); // or the next open would take it from what it serves by then
    place(a.offset).store(nullptr, std::memory_order_release);
    for (auto& room : room_) std::erase(room, &a);
    std::erase(empty_, &a);
    std::erase_if(arenas_, [&](const auto& known) { return known.get() == &a; });
    thread_cache none;
    pool_->blocks.release(none, b);
    return true;
}

ref node_space::take_large(std::uint64_t bytes) {
    std::scoped_lock held{lock_};
    const std::uint64_t chunk = pool_->file->shape().chunk_bytes;
    const std::uint64_t slot = round_up(bytes, line_bytes);
    const std::uint64_t whole = round_up(slot + 2 * line_bytes, chunk);
    // One that was given back serves again when it is not much larger.
    auto best = empty_.end();
    for (auto e = empty_.begin(); e != empty_.end(); ++e)
        if ((*e)->bytes >= whole && (*e)->bytes <= 2 * whole && (*e)->free == (*e)->slots &&
            !(*e)->closed && (best == empty_.end() || (*e)->bytes < (*best)->bytes))
            best = e;
    arena* a = nullptr;
    if (best != empty_.end()) {
        a = *best;
        empty_.erase(best);
        turn(*a, static_cast<std::uint32_t>(a->bytes - 2 * line_bytes));
    } else {
        a = take_arena(whole, static_cast<std::uint32_t>(whole - 2 * line_bytes));
    }
    if (a == nullptr) return 0;
    HF_ASSERT(a->slots == 1 && a->free == 1 && a->slot_bytes >= bytes);
    a->taken[0] |= 1;
    a->free = 0;
    HF_ASSERT_SLOW(valid(*a));
    return static_cast<ref>((a->offset + a->slots_at) / granule_bytes);
}

bool node_space::well_formed(std::uint64_t offset, const arena_head& head) const noexcept {
    const std::uint64_t chunk = pool_->file->shape().chunk_bytes;
    return head.magic == arena_magic && head.bytes >= chunk && head.bytes % chunk == 0 &&
           offset + head.bytes <= limit_ &&
           pool_->blocks.durable().allocated_at(offset).bytes == head.bytes &&
           head.slot_bytes >= granule_bytes && head.slot_bytes % granule_bytes == 0 &&
           head.slot_bytes <= head.bytes && head.slots > 0 &&
           head.slots == slots_in(head.bytes, head.slot_bytes) &&
           (head.bytes == chunk || head.slots == 1) &&
           (head.slot_bytes <= chunk / 8 ? class_bytes(class_of(head.slot_bytes)) == head.slot_bytes
                                         : head.slots == 1);
}

/// The next arena of the durable list; null at its end. Requires: lock held.
arena* node_space::load_next() {
    while (next_unloaded_ != 0) {
        const std::uint64_t offset = next_unloaded_;
        const bool seen = offset < limit_ && place(offset).load(std::memory_order_relaxed);
        arena* a = load(offset);
        if (a == nullptr || a->walked) { // nothing behind it can be trusted
            corrupt_ = true;
            next_unloaded_ = 0;
            return nullptr;
        }
        a->walked = true;
        next_unloaded_ = reinterpret_cast<const arena_head*>(pool_->at(offset))->next;
        if (!seen) return a;
    }
    return nullptr;
}

/// Requires: lock held.
arena* node_space::load(std::uint64_t offset) {
    if (offset >= limit_ || offset % granule_bytes != 0 ||
        !pool_->blocks.durable().covers(offset, sizeof(arena_head)))
        return nullptr;
    if (arena* a = place(offset).load(std::memory_order_relaxed))
        return a->offset == offset ? a : nullptr;
    const auto* head = static_cast<const arena_head*>(pool_->at(offset));
    if (!well_formed(offset, *head)) return nullptr;
    auto made = std::make_unique<arena>();
    made->offset = offset;
    made->bytes = head->bytes;
    made->set_form(head->slot_bytes, head->slots);
    made->closed = closed_;
    made->listed = false;
    made->taken.assign((head->slots + 63) / 64, 0);
    made->free = head->slots;
    const auto* bitmap = reinterpret_cast<const std::uint64_t*>(head + 1);
    for (std::uint32_t s = 0; s < head->slots; ++s)
        if (closed_ || (bitmap[s / 64] & bit_of(s)) != 0) {
            made->taken[s / 64] |= bit_of(s);
            --made->free;
        }
    arena* a = made.get();
    arenas_.push_back(std::move(made));
    place(offset).store(a, std::memory_order_release);
    if (a->free > 0) list(*a);
    if (a->free == a->slots) empty_.push_back(a);
    HF_ASSERT_SLOW(valid(*a)); // its head was checked
    return a;
}

/// The arena whose first chunk has this byte, if it has not been looked at yet; null: none.
arena* node_space::look_for(std::uint64_t at) {
    std::scoped_lock held{lock_};
    return load(round_down(at, pool_->file->shape().chunk_bytes));
}

bool node_space::holds(const std::byte* at, std::size_t bytes) noexcept {
    const auto offset = static_cast<std::uint64_t>(at - pool_->file->base());
    if (offset >= limit_) return false;
    const arena* a = place(offset).load(std::memory_order_acquire);
    if (a == nullptr) a = look_for(offset);
    // The table has no arena for the later chunks of a large arena: its elements are copied.
    return a != nullptr && offset >= a->offset + a->slots_at &&
           offset + bytes <= a->offset + a->bytes;
}

status node_space::load_all() {
    std::scoped_lock held{lock_};
    while (load_next() != nullptr) {}
    if (!corrupt_) return {};
    return {errc::corrupt,
            fmt::format(
                "{}: corrupt: MOD's list of arenas: expected an arena, found none where it leads",
                pool_->file->path())};
}

void node_space::begin_trace() {
    std::scoped_lock held{lock_};
    HF_ASSERT(!closed_ && arenas_.empty());
    closed_ = true;
}

void node_space::end_trace() {
    std::scoped_lock held{lock_};
    HF_ASSERT(closed_);
    closed_ = false;
    for (auto& a : arenas_) {
        if (!a->closed) continue;
        a->closed = false;
        a->reached.resize(a->taken.size());
        a->taken.swap(a->reached);
        a->reached = {};
        std::uint32_t used = 0;
        for (const std::uint64_t w : a->taken) used += static_cast<std::uint32_t>(std::popcount(w));
        HF_ASSERT(used <= a->slots);
        a->free = a->slots - used;
        if (a->free > 0 && !a->listed) list(*a);
        if (a->free == a->slots) empty_.push_back(a.get());
        HF_ASSERT_SLOW(valid(*a));
    }
}

void node_space::store_bitmaps() noexcept {
    HF_ASSERT(!closed_);
    const hf::medium pm = pool_->file->medium();
    std::scoped_lock held{lock_};
    for (auto& a : arenas_) {
        auto* head = static_cast<arena_head*>(pool_->at(a->offset));
        auto* bitmap = reinterpret_cast<std::uint64_t*>(head + 1);
        HF_ASSERT_SLOW(valid(*a));
        std::copy(a->taken.begin(), a->taken.end(), bitmap);
        pm.flush(bitmap, a->taken.size() * word_bytes);
    }
}

std::uint64_t node_space::slot_count() const noexcept {
    std::uint64_t sum = 0;
    for_each([&](const arena& a) { sum += a.slots; });
    return sum;
}

std::uint64_t node_space::arena_bytes() const noexcept {
    std::uint64_t sum = 0;
    for_each([&](const arena& a) { sum += a.bytes; });
    return sum;
}

void node_space::count(std::uint64_t& nodes, std::uint64_t& bytes) const noexcept {
    nodes = bytes = 0;
    for_each([&](const arena& a) {
        nodes += a.slots - a.free;
        bytes += std::uint64_t{a.slots - a.free} * a.slot_bytes;
    });
}

bool string_memory_serves(std::size_t given_up_bytes, std::size_t wanted_bytes) noexcept {
    constexpr std::size_t slotted = class_bytes(class_count - 1);
    static_assert(slotted == slotted_string_bytes_max + sizeof(detail::blob));
    constexpr std::size_t chunk_bytes = 64 << 10; // a large node has chunks of its own
    const auto of = [](std::size_t bytes) {
        const std::size_t node = bytes + sizeof(detail::blob);
        return node <= slotted ? class_of(node) : class_count + node / chunk_bytes;
    };
    const std::size_t given_up = of(given_up_bytes), wanted = of(wanted_bytes);
    const std::size_t most = wanted >= class_count ? 2 * wanted - class_count : wanted;
    return given_up >= wanted && given_up <= most;
}

} // namespace hf::mod
