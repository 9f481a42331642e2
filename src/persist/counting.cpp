// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sum of all threads' counters. Each is written by its thread alone, without atomics; read here
// a word at a time, it may be a moment old.
#include <holdfast/author/persist.hpp>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace hf::persist {
namespace {

constexpr std::size_t words = sizeof(counters) / sizeof(std::uint64_t);
static_assert(sizeof(counters) % sizeof(std::uint64_t) == 0);

// Made before the program runs, not with the others by the first thread: ThreadSanitizer does not
// see here that the second waits for that.
constinit std::mutex lock;

struct all_counters {
    std::vector<const counters*> running;
    counters ended{}; // of threads that are gone
};
all_counters& all() {
    static auto* kept = new all_counters; // never destroyed: threads may outlive static destructors
    return *kept;
}

/// Other threads write 'more' meanwhile: these are relaxed loads, declared to sanitizers.
__attribute__((no_sanitize("thread"))) void add(counters& sum, const counters& more) noexcept {
    std::uint64_t to[words], from[words];
    std::memcpy(to, &sum, sizeof sum);
    for (std::size_t i = 0; i < words; ++i)
        from[i] = reinterpret_cast<const volatile std::uint64_t*>(&more)[i];
    for (std::size_t i = 0; i < words; ++i) to[i] += from[i];
    std::memcpy(&sum, to, sizeof sum);
}

struct counted {
    counted() noexcept {
        try { // inside: what the handler of a whole constructor catches, it throws again
            const std::scoped_lock held{lock};
            all().running.push_back(&thread_counters());
        } catch (const std::bad_alloc&) { // it works all the same
        }
    }
    ~counted() {
        const std::scoped_lock held{lock};
        add(all().ended, thread_counters());
        std::erase(all().running, &thread_counters());
    }
};

} // namespace

void count_this_thread() noexcept {
    static thread_local const counted mine;
    (void)mine;
}

counters process_counters() noexcept {
    const std::scoped_lock held{lock};
    counters sum = all().ended;
    for (const counters* each : all().running) add(sum, *each);
    return sum;
}

} // namespace hf::persist
