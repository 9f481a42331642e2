// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One element stored in place. Copying its way down costs six lines and as many nodes; the store
// alone is failure-atomic. What stands against it are versions, which must not change: so it is
// done only when there are none, and a reader that comes meanwhile finds it not done or done.
//
// (1) Writer: announce, look for pins, decide, store, none. Reader: pin, look for an announcement,
//     then read the word. All of it is sequentially consistent: one of the two sees the other.
// (2) A reader that has pinned and sees 'decided' stores the element too, and makes it durable, as it relies on
//     it from then on. Whichever comes second stores what is there: the pin keeps writers from storing
//     anything else in place, by (1), and the node from being reused. So nobody need know the element's
//     old bytes: its line, which is seldom at hand, is stored to and not waited for.
// (3) A shared node is another version's as well, whichever root's; and so is one that another root
//     gave up by a word that is not durable.
// (4) Until what is to be durable on return is so, a reader that pins helps: it sees what will stay.
// (5) That the state is none again others may see late, even behind the writer's next look for pins:
//     a reader that comes then helps with what is done. But it pinned before the next announcement: the look
//     behind that sees it, and leaves alone what it reads.
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
#define HF_UNSEEN_BY_TSAN // the crash checker's stores are to be seen
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
std::uint64_t element_at(const void* at, std::size_t bytes) noexcept {
    switch (bytes) {
    case 1: return element_at<std::uint8_t>(at);
    case 2: return element_at<std::uint16_t>(at);
    case 4: return element_at<std::uint32_t>(at);
    default: return element_at<std::uint64_t>(at);
    }
}

} // namespace

void overwriting::store() noexcept {
    std::byte* const element = at.load(std::memory_order_acquire);
    HF_ASSERT(element != nullptr);
    const std::uint64_t to = next.load(std::memory_order_relaxed);
    switch (bytes.load(std::memory_order_relaxed)) {
    case 1: return store_element<std::uint8_t>(element, to);
    case 2: return store_element<std::uint16_t>(element, to);
    case 4: return store_element<std::uint32_t>(element, to);
    default: return store_element<std::uint64_t>(element, to);
    }
}

/// Requires: the owner's lock held.
bool store::impl::overwrite(root::volatile_part& to, std::byte* at, const void* next,
                            std::size_t bytes) noexcept {
    root::volatile_part& owner = to.owner();
    HF_ASSERT_SLOW(owner.lock.is_held());
    if (sharing_count_.load(std::memory_order_acquire) != 0) return false;  // (3)
    if (super_->shares != 0 && (trace_failed_ || uncounted_)) return false; // (3) is not known
    if (!space_.holds(at, bytes)) return false;                             // no node: damaged
    if (oldest_pin(owner) != ~std::uint64_t{0}) return false;               // (3): of any root
    const hf::medium pm = medium();
    __builtin_prefetch(at, 1); // comes while the fence waits
    before_fence(owner);
    const others around = before_reclaim(&owner);
    pm.fence(); // what this thread committed before is durable
    if (after_fence(&owner, around) != ~std::uint64_t{0}) return false; // (3)
    overwriting& op = owner.in_place;
    HF_ASSERT_SLOW(op.state.load(std::memory_order_relaxed) == overwriting::none);
    op.state.store(overwriting::announced, std::memory_order_seq_cst);
    const auto give_up = [&] {
        op.state.store(overwriting::none, std::memory_order_seq_cst);
        return false;
    };
    // Before what a helper reads changes: a reader that found the last store decided is seen
    // here (5).
    if (oldest_own_pin(owner) != ~std::uint64_t{0}) return give_up();
    op.next.store(element_at(next, bytes), std::memory_order_relaxed);
    op.bytes.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
    op.at.store(at, std::memory_order_release);
    trace::announce(announced::offered, at, bytes);
    // Before a reader may store the element (2). What was named is durable by now.
    if (pm.loses_caches())
        owner.durable->in_place = owner.line[cell::in_place_at] = pool_->offset_of(at);
    std::uint32_t undecided = overwriting::announced;
    if (!op.state.compare_exchange_strong(undecided, overwriting::decided)) return give_up();
    op.store();
    pm.flush(at, bytes);
    owner.unfenced = at;
    if (to.face->when_durable() == durability::on_return) pm.fence();
    op.state.store(overwriting::none, std::memory_order_release); // (4)
    persist::thread_counters().pm_bytes += bytes;
    ++persist::thread_counters().sections;
    return true;
}

bool root::writing::overwrite(std::byte* at, const void* next, std::size_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes - 1 < 8 && std::has_single_bit(bytes) &&
                   reinterpret_cast<std::uintptr_t>(at) % bytes == 0);
    return !refused_ && to_->store_->internals().overwrite(*to_->part_, at, next, bytes);
}

} // namespace hf::mod
