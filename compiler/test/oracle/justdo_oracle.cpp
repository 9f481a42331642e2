// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The oracle for engine justdo: implements its calls (holdfast/abi/justdo_abi.h) over a static buffer,
// crashes a section at every event, lets it go on, and compares every byte.
//
// For each scenario and each event k (each part of a step; in code built in trace mode every store to the
// pool and to the frame, too):
//
// 1. Restore the start image, run the section, leave it by longjmp at event k: registers and the stack are lost.
// 2. Make a legal image of PM: what was stored; or only what was noted, or done, before the last step; or any mix
//    of the two.
// 3. If the section has begun, do its last step again, and a store that came right before it, let it
//    go on, and compare the pool with an uninterrupted run. If it has not, nothing may have changed.
//    A function without a mark may have several, and go on behind the first.
// 4. Crash that resumption, too, at some of its events, or at all (--nested N), and resume again.
//
// Besides, in the uninterrupted run: steps are made in the section, and store where they may; what is stored
// to the pool between two of them is noted by the second. Nothing that survives holds an address in the program: the next
// process has others there.
#include "shared.hpp"

#include <holdfast/abi/justdo_abi.h>
#include <holdfast/abi/trace_abi.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <vector>

// The linker's: where the program begins, and ends.
extern "C" __attribute__((visibility("hidden"))) const std::byte __ehdr_start[], _end[];

namespace oracle {
namespace {

constexpr std::size_t line_bytes = 64, word_bytes = 8;
constexpr int mixes = 3;
constexpr std::size_t frame_bytes = 65536; // of all of them
constexpr int depth_max = 32;

enum class action { none, store, copy, move, fill, alloc, lock, unlock };

struct entry {
    action what = action::none;
    std::byte* to = nullptr;
    std::uint64_t value =
        0; // stored; of a copy its source; of a fill its byte; of an allocation the block
    std::uint64_t bytes = 0;
    int holds = 0;                      // locks more
    bool before_too = false;            // the store before is made again, too
    std::array<std::byte, 512> moved{}; // what a copy that overlaps itself has found
};

/// A function that has entered and not left.
struct frame_of {
    const hf_justdo_function* function = nullptr;
    std::uint64_t from = 0, upto = 0; // its bytes
    std::uint32_t called_at = 0;      // the point where it goes on while one above it has not left
};

/// Of a scenario: the rest is nobody's, and copied for nobody.
std::size_t frame_bytes_used = 0;

/// All that survives.
struct places {
    alignas(64) std::byte pool[pool_bytes];
    alignas(64) std::byte frame[frame_bytes];
};
struct registers {
    std::uint64_t counter = 0; // [entry:1][open:1] and the point; 0: no section
    entry entries[2];
    std::uint64_t heap_used = 0;
    int held = 0; // locks
    std::array<frame_of, depth_max> frames;
    int depth = 0; // of the function that the counter is of
};
struct persistent : places, registers {
    persistent() = default;
    persistent(const persistent& other) : persistent() { *this = other; }
    persistent& operator=(const persistent& other) {
        std::memcpy(pool, other.pool, sizeof pool);
        std::memcpy(frame, other.frame, frame_bytes_used);
        registers::operator=(other);
        return *this;
    }
};
constexpr std::uint64_t open_bit = std::uint64_t{1} << 62, second_bit = std::uint64_t{1} << 63;

/// Apart from the program's own addresses, as a pool is.
persistent& mapped() {
    constexpr std::uintptr_t pools_from = 0x570000000000;
    void* const at = ::mmap(reinterpret_cast<void*>(pools_from), sizeof(persistent), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) std::abort();
    return *new (at) persistent;
}

persistent& now = mapped();
persistent durable, start_image;
struct range {
    const std::byte* from;
    std::uint64_t bytes;
};
std::vector<range> noted;   // since the last step
std::vector<range> unnoted; // stored since the last step
std::set<const hf_justdo_function*>& registered() {
    static std::set<const hf_justdo_function*> functions;
    return functions;
}
int entered = 0; // functions
unsigned tries = 0;
bool marked = false;   // the function: its section has no lock that begins it
int left_to_enter = 0; // of the functions that are resumed
bool judging = false, traced = false;
int events = 0, crash_at = never;
std::jmp_buf crash;
long steps = 0;
const char* broken_rule = nullptr;

void breaks(const char* rule) {
    if (broken_rule == nullptr) broken_rule = rule;
}

void event() {
    if (++events == crash_at) {
        ++crashes;
        std::longjmp(crash, 1);
    }
}

bool survives(const void* address, std::uint64_t bytes) {
    const auto* from = static_cast<const std::byte*>(address);
    return from >= now.pool && bytes <= sizeof(now.pool) + sizeof(now.frame) &&
           from + bytes <= now.frame + sizeof(now.frame);
}

bool is_open() { return now.counter != 0; }
entry& active() { return now.entries[(now.counter & second_bit) != 0]; }

/// Copies a range of what is to what survives.
void make_durable(const void* address, std::uint64_t bytes) {
    const auto at =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(&now);
    std::memcpy(reinterpret_cast<std::byte*>(&durable) + at, address, bytes);
}

void judge_notes() {
    for (const range& r : unnoted)
        for (std::uint64_t i = 0; i < r.bytes; ++i)
            if (std::none_of(noted.begin(), noted.end(), [&](const range& n) {
                    return n.from <= r.from + i && r.from + i < n.from + n.bytes;
                })) {
                breaks("a store between steps is not noted");
                return;
            }
}

void judge_addresses() {
    const auto from = reinterpret_cast<std::uintptr_t>(__ehdr_start);
    const auto bytes = reinterpret_cast<std::uintptr_t>(_end) - from;
    const auto judge = [&](const std::byte* at, std::uint64_t size) {
        for (std::uint64_t i = 0; i + word_bytes <= size; i += word_bytes) {
            std::uintptr_t word = 0;
            std::memcpy(&word, at + i, sizeof word);
            if (word - from < bytes) breaks("an address in the program is kept");
        }
    };
    judge(now.pool, sizeof now.pool);
    judge(now.frame, now.frames[std::size_t(entered - 1)].upto);
}

void do_entry(const entry& e) {
    switch (e.what) {
    case action::store: std::memcpy(e.to, &e.value, e.bytes); break;
    case action::copy:
        std::memcpy(e.to, reinterpret_cast<const std::byte*>(e.value), e.bytes);
        break;
    case action::move: std::memcpy(e.to, e.moved.data(), e.bytes); break;
    case action::fill: std::memset(e.to, static_cast<int>(e.value), e.bytes); break;
    case action::alloc:
        std::memcpy(e.to, &e.value, sizeof e.value);
        if (e.value != 0)
            now.heap_used =
                e.value - reinterpret_cast<std::uintptr_t>(now.pool + heap_bytes) + e.bytes;
        break;
    default: break;
    }
}

std::uint64_t written_bytes(const entry& e) { return e.what == action::alloc ? 8 : e.bytes; }

void step(const entry& e, std::uint32_t point) {
    if (!marked && !is_open() && e.what != action::lock) { // what it says, and nothing is logged
        event();
        do_entry(e);
        if (e.to != nullptr) noted.push_back({e.to, written_bytes(e)});
        return;
    }
    ++steps;
    event();
    if (judging) {
        if (!is_open() && e.what != action::lock) breaks("a step outside of the section");
        if (entered < 1) breaks("a step outside of a function that has entered");
        if (e.to != nullptr && !survives(e.to, written_bytes(e)))
            breaks("a step stores outside of the pool");
        if ((e.what == action::copy || e.what == action::move) &&
            !survives(reinterpret_cast<const void*>(e.value), e.bytes))
            breaks("a step copies from outside of the pool");
        if ((point & ~HF_JUSTDO_SNAPSHOT) - 1 >= now.frames[entered - 1].function->points)
            breaks("no such point");
        judge_notes();
        judge_addresses();
    }
    const unsigned next = is_open() ? (now.counter & second_bit) == 0 : 0;
    const bool before_too =
        is_open() && active().what == action::store && noted.empty() && e.what != action::unlock;
    active().before_too = false; // what it speaks of is written over
    now.entries[next] = e;
    now.entries[next].before_too = before_too;
    event();
    for (const range& r : noted) make_durable(r.from, r.bytes);
    if (is_open() && active().to != nullptr && !before_too)
        make_durable(active().to, written_bytes(active()));
    durable.heap_used = now.heap_used;
    durable.entries[next] = now.entries[next];
    noted.clear();
    unnoted.clear();
    now.counter = open_bit | (next != 0 ? second_bit : 0) | point;
    durable.counter = now.counter;
    durable.held = now.held += e.holds;
    durable.frames = now.frames;
    durable.depth = now.depth = entered;
    event();
    if (before_too) make_durable(now.entries[1 - next].to, written_bytes(now.entries[1 - next]));
    do_entry(e);
    event();
    if (e.what == action::unlock) {
        now.counter = durable.counter = 0;
        event();
    }
}

void reset(const persistent& to) {
    now = to;
    durable = to;
    noted.clear();
    unnoted.clear();
    entered = 0;
    broken_rule = nullptr;
}

/// Runs 'run' until it ends or crashes at 'event_number'; whether it ended.
template <class Run> bool attempt(int event_number, Run run) {
    events = 0;
    tries = 0;
    crash_at = event_number;
    if (setjmp(crash) != 0) {
        crash_at = never;
        left_to_enter = 0;
        entered = 0;
        noted.clear();
        unnoted.clear();
        return false;
    }
    run();
    crash_at = never;
    return true;
}

void lose(int mix, std::mt19937_64& random) {
    if (mix == 1) now = durable;
    auto* is = reinterpret_cast<std::byte*>(&now);
    const auto* was = reinterpret_cast<const std::byte*>(&durable);
    if (mix > 1) lose_words(is, was, sizeof now.pool + frame_bytes_used, random);
    durable = now;
}

void resume() {
    if (!is_open()) return;
    event();
    if (active().before_too) {
        const entry& before = now.entries[(now.counter & second_bit) == 0];
        do_entry(before);
        make_durable(before.to, written_bytes(before));
    }
    event();
    do_entry(active());
    if (active().what == action::unlock) {
        now.counter = durable.counter = 0;
        return;
    }
    left_to_enter = now.depth;
    now.frames[0].function->resume();
}

void fail(const scenario& s, int first, int mix, int second, const char* what) {
    std::printf("FAIL %s: crash at event %d, image %d, then %d: %s\n", s.name, first, mix, second,
                what);
    ++failures;
}

bool compare(const scenario& s, const persistent& expected, int first, int mix, int second) {
    // A section between locks may end where it has let go what it could not take.
    if (!marked && !is_open() && std::memcmp(now.pool, start_image.pool, pool_bytes) == 0)
        return true;
    if (std::memcmp(now.pool, expected.pool, pool_bytes) == 0) return true; // nearly always
    for (std::size_t i = 0; i < pool_bytes; ++i)
        if (now.pool[i] != expected.pool[i]) {
            char what[80];
            std::snprintf(what, sizeof what, "byte %zu is %02x, not %02x", i, unsigned(now.pool[i]),
                          unsigned(expected.pool[i]));
            fail(s, first, mix, second, what);
            return false;
        }
    return true;
}

/// From 'crashed' on, through another crash at each of some events.
bool resume_all(const scenario& s, const persistent& crashed, const persistent& end, int at,
                int mix, std::mt19937_64& random) {
    const bool open = crashed.counter != 0;
    if (!attempt(never, resume)) return false;
    if (!compare(s, open ? end : crashed, at, mix, 0)) return false;
    if (is_open()) return fail(s, at, mix, 0, "resumed, the section did not end"), false;
    const int length = events;
    for (int n = 1; open && n <= std::min(length, nested_max); ++n) {
        const int again = length <= nested_max ? n : 1 + int(random() % unsigned(length));
        reset(crashed);
        if (attempt(again, resume)) break;
        lose(again % (mixes + 1), random);
        const bool still = is_open();
        attempt(never, resume);
        if (still || crashed.counter != 0)
            if (!compare(s, end, at, mix, again)) return false;
    }
    return true;
}

/// 'before': how many calls there have been.
void explore(const scenario& s, int before) {
    frame_bytes_used = frame_bytes;
    reset(persistent());
    frame_bytes_used = 0;
    s.prepare();
    for (int i = 0; i < before; ++i) s.run();
    start_image = now;

    reset(start_image);
    marked = false;
    attempt(never, s.run);
    reset(start_image);
    steps = 0;
    judging = true;
    attempt(never, s.run);
    judging = false;
    if (broken_rule != nullptr) fail(s, 0, 0, 0, broken_rule);
    if (is_open() || entered != 0) fail(s, 0, 0, 0, "the section did not end");
    const persistent end = now;
    const int length = events;
    const long made = steps;
    std::mt19937_64 random{std::hash<std::string_view>{}(s.name)};
    for (int at = 1; at <= length; ++at)
        for (int mix = 0; mix <= mixes; ++mix) {
            reset(start_image);
            if (attempt(at, s.run)) return fail(s, at, mix, 0, "not deterministic");
            lose(mix, random);
            const persistent crashed = now;
            if (crashed.counter == 0 &&
                std::memcmp(crashed.pool, start_image.pool, pool_bytes) != 0 &&
                std::memcmp(crashed.pool, end.pool, pool_bytes) != 0)
                return fail(s, at, mix, 0, "changed, and no section is open");
            if (!resume_all(s, crashed, end, at, mix, random)) return;
        }
    std::printf("%-28s %3d events %3ld steps %5u bytes of frame\n", s.name, length, made,
                end.frames[0].function != nullptr ? end.frames[0].function->frame_bytes : 0);
}

void* block_for(std::uint64_t& bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (now.heap_used + bytes > pool_bytes - heap_bytes) return nullptr;
    return now.pool + heap_bytes + now.heap_used;
}

} // namespace

void print_image(const scenario& s) {
    reset(persistent());
    s.prepare();
    s.run();
    print_sum(s, now.pool);
}

void try_scenario(const scenario& s) {
    for (int before = 0; before < 2; ++before) explore(s, before);
}

std::byte* const pool = now.pool;

} // namespace oracle

using namespace oracle;

extern "C" {

__thread hf_justdo_plain_steps hf_justdo_steps
    __attribute__((tls_model("initial-exec"))); // none is in line

void hf_justdo_register(const hf_justdo_function* function) noexcept {
    registered().insert(function);
}

void* hf_justdo_enter(const hf_justdo_function* function, const void* in,
                      std::uint32_t* resumed) noexcept {
    if (!registered().contains(function) || entered == depth_max) std::abort();
    frame_of& frame = now.frames[std::size_t(entered++)];
    *resumed = 0;
    if (left_to_enter != 0) {
        if (frame.function != function) std::abort();
        if (--left_to_enter == 0) frame.called_at = static_cast<std::uint32_t>(now.counter);
        *resumed = frame.called_at;
        return now.frame + frame.from;
    }
    if (judging && in != nullptr && !survives(in, 1)) breaks("the pool's address is none");
    if (is_open() && now.depth >= entered) breaks("a frame is made over one that counts");
    const std::uint64_t from = entered == 1 ? 0 : now.frames[std::size_t(entered - 2)].upto;
    const std::uint64_t upto =
        from + (function->frame_bytes + line_bytes - 1) / line_bytes * line_bytes;
    if (upto > sizeof now.frame) std::abort();
    frame_bytes_used = std::max(frame_bytes_used, upto);
    frame = {function, from, upto, 0};
    std::memset(now.frame + from, 0xa5, upto - from);
    return now.frame + from;
}
void hf_justdo_argument(const void* pointer, std::uint32_t) noexcept {
    if (judging && pointer != nullptr && !survives(pointer, 1)) breaks("an argument leads nowhere");
}
void hf_justdo_leave() noexcept { --entered; }
void hf_justdo_call(std::uint32_t point) noexcept {
    if (left_to_enter != 0) std::abort(); // it goes on behind this
    // What counts of this frame, or one above it, is not to be saved over by what comes behind the call.
    const bool is_there = now.depth == entered && static_cast<std::uint32_t>(now.counter) == point;
    if (is_open() && now.depth >= entered && !is_there) hf_justdo_point(point);
    now.frames[std::size_t(entered - 1)].called_at = point;
}
void hf_justdo_note(const void* address, std::uint64_t bytes) noexcept {
    if (judging && !survives(address, bytes)) breaks("a note of volatile memory");
    noted.push_back({static_cast<const std::byte*>(address), bytes});
}
void hf_justdo_point(std::uint32_t point) noexcept { step({}, point); }
void hf_justdo_store(void* address, std::uint64_t value, std::uint32_t bytes,
                     std::uint32_t point) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (judging && (bytes == 0 || bytes > 8 || (bytes & (bytes - 1)) != 0 ||
                    at / line_bytes != (at + bytes - 1) / line_bytes))
        breaks("a store that fits into no step");
    step({action::store, static_cast<std::byte*>(address), value, bytes}, point);
}
void hf_justdo_copy(void* to, const void* from, std::uint64_t bytes, std::uint32_t point) noexcept {
    entry e{action::copy, static_cast<std::byte*>(to), reinterpret_cast<std::uintptr_t>(from),
            bytes};
    const auto* source = static_cast<const std::byte*>(from);
    if (e.to < source + bytes && source < e.to + bytes) { // not made from its source again
        if (bytes > e.moved.size()) std::abort();
        e.what = action::move;
        std::memcpy(e.moved.data(), from, bytes);
    }
    step(e, point);
}
void hf_justdo_fill(void* to, int byte, std::uint64_t bytes, std::uint32_t point) noexcept {
    step({action::fill, static_cast<std::byte*>(to), static_cast<std::uint64_t>(byte), bytes},
         point);
}
void* hf_justdo_alloc(std::uint64_t bytes, void** slot, std::uint32_t point) noexcept {
    void* block = block_for(bytes);
    step({action::alloc, reinterpret_cast<std::byte*>(slot),
          reinterpret_cast<std::uintptr_t>(block), bytes},
         point);
    return block;
}
void hf_justdo_free(void*, std::uint32_t point) noexcept { step({}, point); }
void hf_justdo_lock(void*, std::uint32_t kind, std::uint32_t point) noexcept {
    marked |= kind == HF_JUSTDO_NO_LOCK;
    if (judging && kind == HF_JUSTDO_NO_LOCK && is_open()) breaks("the section has begun already");
    entry e{is_open() ? action::none : action::lock, nullptr, 0, 0};
    e.holds = 1;
    step(e, point);
}
// Every other one fails, of each run: what the section makes of that must not depend on it.
int hf_justdo_try_lock(void* lock, std::uint32_t kind, std::uint32_t point) noexcept {
    if (tries++ % 2 == 0) return event(), 0;
    return hf_justdo_lock(lock, kind, point), 1;
}
void hf_justdo_unlock(void*, std::uint32_t, std::uint32_t point) noexcept {
    entry e{now.held == 1 ? action::unlock : action::none, nullptr, 0, 0};
    e.holds = -1;
    step(e, point);
}

void* hf_alloc(std::size_t wanted) noexcept { // outside of sections
    std::uint64_t bytes = wanted;
    void* block = block_for(bytes);
    if (block != nullptr) now.heap_used += bytes;
    return block;
}
void hf_free(void*) noexcept {}
void hf_adopt(void*) noexcept {}
alignas(64) hf_trace_region hf_trace_watched{reinterpret_cast<std::uintptr_t>(now.pool),
                                             sizeof(now.pool) + sizeof(now.frame)};
void hf_trace_load(const void*, std::uint64_t) {}
void hf_trace_store(const void* address, std::uint64_t bytes) {
    traced = true;
    if (entered == 0) return;
    if (!survives(address, bytes)) return;
    unnoted.push_back({static_cast<const std::byte*>(address), bytes});
    event();
}
void hf_trace_rmw(const void*, std::uint64_t) {}
void hf_trace_fence() {}
const void* hf_vlog_preserve(const void* bytes, std::size_t count) noexcept { // engine none
    static std::vector<std::vector<std::byte>> kept;
    const auto* from = static_cast<const std::byte*>(bytes);
    return kept.emplace_back(from, from + count).data();
}
}

int main(int argc, char** argv) {
    nested_max = 6;
    return run(argc, argv);
}
