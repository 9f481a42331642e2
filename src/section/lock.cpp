// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// word = [generation:32][writer waits:1][writer:1][readers:30]. A word of another generation is
// free: the thread that held it died with its process. Waiting spins briefly, then yields: sections
// are short. A thread that waits for very long says where: mostly two threads have taken two locks
// in different orders, and wait for each other.
//
// A program that is built with ThreadSanitizer learns of each lock: the sanitizer does not see what
// happens in a library that is built without it.
#include <base/assert.hpp>
#include <base/log.hpp>
#include <base/names.hpp>
#include <base/symbols.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <section/lock_wait.hpp>
#include <section/section.hpp>

#include <holdfast/lock.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <execinfo.h>
#include <mutex>
#include <new>
#include <sched.h>
#include <span>
#include <string>
#include <vector>

// ThreadSanitizer's own, where the program has it (sanitizer/tsan_interface.h).
extern "C" [[gnu::weak]] void __tsan_mutex_pre_lock(void*, unsigned) noexcept;
extern "C" [[gnu::weak]] void __tsan_mutex_post_lock(void*, unsigned, int) noexcept;
extern "C" [[gnu::weak]] int __tsan_mutex_pre_unlock(void*, unsigned) noexcept;
extern "C" [[gnu::weak]] void __tsan_mutex_post_unlock(void*, unsigned) noexcept;

namespace hf {

constinit std::atomic<unsigned> lock_wait_ms_max{10'000};

namespace {

/// Kinds of locks, in the sanitizer's numbers. Zeros are a lock that nobody makes: linker_init.
constexpr unsigned writers = 1, readers = writers | 1U << 3, tries = 1U << 4, try_failed = 1U << 5;

/// Takes a lock, and says so to the sanitizer, which looks away meanwhile.
bool announced(void* lock, unsigned kind, auto&& take) noexcept {
    if (__tsan_mutex_pre_lock == nullptr) [[likely]]
        return take();
    __tsan_mutex_pre_lock(lock, kind);
    const bool taken = take();
    __tsan_mutex_post_lock(lock, taken ? kind : kind | try_failed, 0);
    return taken;
}

void announced_release(void* lock, unsigned kind, auto&& release) noexcept {
    if (__tsan_mutex_pre_unlock == nullptr) [[likely]]
        return release();
    __tsan_mutex_pre_unlock(lock, kind);
    release();
    __tsan_mutex_post_unlock(lock, kind);
}

constexpr std::uint64_t waiting_bit = std::uint64_t{1} << 31;
constexpr std::uint64_t writer_bit = std::uint64_t{1} << 30;
constexpr std::uint64_t readers_mask = writer_bit - 1;
constexpr std::uint64_t state_mask = (std::uint64_t{1} << 32) - 1;

/// The word of a free lock in this open of its pool; locks outside pools belong to generation 1.
std::uint64_t free_word(const pool::impl* pool) noexcept {
    const std::uint64_t generation = pool == nullptr ? 1 : pool->file->generation();
    HF_ASSERT_SLOW(generation != 0); // or a lock of zeros would be one that was taken
    return generation << 32;
}
std::uint64_t free_word(const void* lock) noexcept { return free_word(registry::pool_of(lock)); }

/// The same for a lock that is about to be taken, or let go. A log may have the sum of the memory
/// around it.
std::uint64_t free_word_to_change(const void* lock, bool taken) noexcept {
    pool::impl* const pool = registry::pool_of(lock);
    if (pool != nullptr) pool->lanes.settle_sums_of(lock, taken);
    return free_word(pool);
}

/// Strong strict two-phase locking, the conservative kind: a section has all its locks when it
/// begins, and keeps them until it has committed. One let go earlier would show its stores to
/// others while a crash can still take them back; one taken later would be waited for by a
/// re-execution.
void check_two_phase(const char* call) noexcept {
    const section* open = current_section;
    if (open == nullptr) [[likely]]
        return;
    fatal("%s in section %s (%s): locks are taken before a section begins and released after it "
          "has returned",
          call, readable_name(open->function()->name), open->function()->where);
}

/// "count at bank.cpp:12, called by …": the calls of the program that led here, behind the
/// library's.
std::string calls_here() {
    static std::mutex one_at_a_time;
    const std::scoped_lock held{one_at_a_time};
    std::array<void*, 24> frames{};
    const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
    std::string out;
    std::size_t calls = 0;
    constexpr std::size_t calls_max = 3;
    for (void* at : std::span(frames).first(static_cast<std::size_t>(count))) {
        const std::vector<std::string> here = calls_at({{at}});
        if (here.empty() || here.back().starts_with("hf::")) continue;
        for (const std::string& call : here)
            if (calls < calls_max) out += (calls++ == 0 ? "" : ", called by ") + call;
    }
    return out.empty() ? "a function without a name" : out;
}

std::string place_of(const void* lock) {
    const pool::impl* const in = registry::pool_of(lock);
    return in == nullptr
               ? fmt::format("the lock at {}", lock)
               : fmt::format("{}: the lock at byte {}", in->file->path(), in->offset_of(lock));
}

class backoff {
public:
    explicit backoff(const std::atomic<std::uint64_t>& lock) noexcept : lock_(lock) {}
    void wait() noexcept {
        if (++rounds_ <= 16) return;
        ::sched_yield();
        if (rounds_ % 1024 == 0) [[unlikely]]
            look_at_clock();
    }

private:
    using clock = std::chrono::steady_clock;
    void look_at_clock() noexcept {
        if (said_) return;
        if (since_ == clock::time_point{}) since_ = clock::now();
        const std::chrono::milliseconds longest{lock_wait_ms_max.load(std::memory_order_relaxed)};
        if (clock::now() - since_ < longest) return;
        said_ = true;
        say_that_it_waits(longest);
    }
    void say_that_it_waits(std::chrono::milliseconds longest) const noexcept try {
        const std::uint64_t state = lock_.load(std::memory_order_relaxed) & state_mask;
        const std::string has_it = (state & writer_bit) != 0
                                       ? "a writer"
                                       : fmt::format("{} readers", state & readers_mask);
        say(severity::warning,
            fmt::format("{} is waited for since {} ms, and {} has it, in {}. Where two threads say "
                        "this, each may have the lock that the other one waits for. Expected: all "
                        "threads take their locks in one order, or all at once by std::scoped_lock",
                        place_of(&lock_), longest.count(), has_it, calls_here())
                .c_str());
    } catch (const std::bad_alloc&) { // it waits on
    }

    const std::atomic<std::uint64_t>& lock_;
    unsigned rounds_ = 0;
    bool said_ = false;
    clock::time_point since_{};
};

bool try_to_write(std::atomic<std::uint64_t>& word) noexcept {
    check_two_phase("try_lock");
    const std::uint64_t free = free_word_to_change(&word, true);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    const std::uint64_t state = (seen & ~state_mask) == free ? seen & state_mask : 0;
    if ((state & (writer_bit | readers_mask)) != 0) return false;
    // Taking the lock clears 'waits'; other waiting writers set it again.
    return word.compare_exchange_strong(seen, free | writer_bit, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

bool write(std::atomic<std::uint64_t>& word) noexcept {
    const std::uint64_t free = free_word(&word);
    backoff turn{word};
    while (!try_to_write(word)) {
        std::uint64_t seen = word.load(std::memory_order_relaxed);
        const bool held = (seen & ~state_mask) == free && (seen & (writer_bit | readers_mask)) != 0;
        if (held && (seen & waiting_bit) == 0)
            word.compare_exchange_weak(seen, seen | waiting_bit, std::memory_order_relaxed);
        turn.wait();
    }
    return true;
}

void stop_writing(std::atomic<std::uint64_t>& word) noexcept {
    check_two_phase("unlock");
    [[maybe_unused]] const std::uint64_t free = free_word_to_change(&word, false);
    // A plain store, which need not wait for earlier flushes as a locked operation would. While the
    // lock is held others change the 'waits' bit only; lost here, the writer that waits sets it
    // again.
    const std::uint64_t held = word.load(std::memory_order_relaxed);
    if ((held & writer_bit) == 0) [[unlikely]]
        fatal("unlock: expected a lock that is held, found the lock at %p free",
              static_cast<const void*>(&word));
    HF_ASSERT_SLOW((held & ~state_mask) == free);
    HF_ASSERT_SLOW((held & readers_mask) == 0);
    word.store(held & ~writer_bit, std::memory_order_release);
}

bool try_to_read(std::atomic<std::uint64_t>& word) noexcept {
    check_two_phase("try_lock_shared");
    const std::uint64_t free = free_word_to_change(&word, true);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    const std::uint64_t state = (seen & ~state_mask) == free ? seen & state_mask : 0;
    if ((state & (writer_bit | waiting_bit)) != 0) return false;
    return word.compare_exchange_strong(seen, free | (state + 1), std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

bool read(std::atomic<std::uint64_t>& word) noexcept {
    backoff turn{word};
    while (!try_to_read(word)) turn.wait();
    return true;
}

void stop_reading(std::atomic<std::uint64_t>& word) noexcept {
    check_two_phase("unlock_shared");
    free_word_to_change(&word, false);
    if ((word.load(std::memory_order_relaxed) & readers_mask) == 0) [[unlikely]]
        fatal("unlock_shared: expected a lock that readers hold, found none at %p",
              static_cast<const void*>(&word));
    HF_ASSERT_SLOW((word.load(std::memory_order_relaxed) & writer_bit) == 0);
    word.fetch_sub(1, std::memory_order_release);
}

} // namespace

bool shared_mutex::try_lock() noexcept {
    return announced(this, writers | tries, [this] { return try_to_write(word_); });
}
void shared_mutex::lock() noexcept {
    announced(this, writers, [this] { return write(word_); });
}
void shared_mutex::unlock() noexcept {
    announced_release(this, writers, [this] { stop_writing(word_); });
}
bool shared_mutex::try_lock_shared() noexcept {
    return announced(this, readers | tries, [this] { return try_to_read(word_); });
}
void shared_mutex::lock_shared() noexcept {
    announced(this, readers, [this] { return read(word_); });
}
void shared_mutex::unlock_shared() noexcept {
    announced_release(this, readers, [this] { stop_reading(word_); });
}

} // namespace hf
