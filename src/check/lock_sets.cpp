// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <check/lock_sets.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>

#include <algorithm>
#include <array>
#include <pthread.h>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace hf::check {
namespace {

lock_sets* listening = nullptr;
/// Without a destructor: a thread unlocks something when it ends.
struct held_locks {
    std::array<held_lock, 64> all;
    std::size_t count;
    lock_set sorted() const {
        lock_set out(all.begin(), all.begin() + count);
        std::ranges::sort(out);
        return out;
    }
};
thread_local held_locks held_here{};
thread_local unsigned thread_here = 0;
thread_local bool counts_here = false; // between begin() and end(), and not in here

/// Looking is no access.
class looking_away {
public:
    looking_away() noexcept : counted_(std::exchange(counts_here, false)) {}
    ~looking_away() { counts_here = counted_; }
    looking_away(const looking_away&) = delete;
    looking_away& operator=(const looking_away&) = delete;
    explicit operator bool() const noexcept { return counted_; }

private:
    const bool counted_;
};

std::string_view name_of(std::string_view call) noexcept {
    return call.substr(0, call.find(" at "));
}

bool is_of_headers(std::string_view call) noexcept {
    return call.find("include/holdfast/") != call.npos;
}

/// Whether a place's code is the library's: the function around all that is inlined there. One of
/// the headers' has code of the program's in it where a section is a closure.
bool is_ours(const std::vector<std::string>& calls) noexcept {
    const std::string_view name = name_of(calls.back());
    const auto ours = [](std::string_view part) {
        return (part.starts_with("hf::") && !part.starts_with("hf::structures::")) ||
               part.starts_with("hf_");
    };
    const auto result_ends = name.find(' '); // a template's name comes behind its result
    if (!ours(name) && (result_ends == name.npos || !ours(name.substr(result_ends + 1))))
        return false;
    return !is_of_headers(calls.back()) || is_of_headers(calls.front());
}

/// Whether the function does, for a section, what the section's code says (4): it reads and writes
/// through a buffer, or copies; a commit stores what has waited.
bool stands_for_section(std::string_view name, bool stores) noexcept {
    if (!name.starts_with("hf_")) return false;
    for (const std::string_view other : {"_begin", "_abort", "_alloc", "_free", "_adopt"})
        if (name.find(other) != name.npos) return false;
    return stores || name.find("_commit") == name.npos;
}

/// Whether the code stores what a section has kept back until its commit. Nothing there says which
/// of the section's lines that was.
bool stores_for_section(const std::vector<std::string>& calls) noexcept {
    return std::ranges::any_of(calls, [](const std::string& call) {
        return name_of(call).find("redo_protocol") != call.npos &&
               name_of(call).find("::store_in_place") != call.npos;
    });
}

/// The locks in both. Of those for reading none guards a store.
lock_set common(const lock_set& guards, const lock_set& held, bool stores) {
    lock_set out;
    for (const held_lock& each : guards)
        if (std::ranges::any_of(held, [&](const held_lock& h) {
                return h.lock == each.lock && (h.writes || !stores);
            }))
            out.push_back(each);
    return out;
}

} // namespace

lock_sets::lock_sets(std::span<std::byte> memory) : memory_(memory) { listening = this; }
lock_sets::~lock_sets() { listening = nullptr; }

void lock_sets::begin(unsigned thread) noexcept {
    thread_here = thread;
    counts_here = true;
}
void lock_sets::end() noexcept { counts_here = false; }

bool lock_sets::by_address::operator()(const code_place& a, const code_place& b) const noexcept {
    return std::lexicographical_compare(a.at, a.at + code_place::depth, b.at,
                                        b.at + code_place::depth);
}

void lock_sets::add(std::size_t offset, std::size_t bytes, bool stores, bool frees) {
    const looking_away counts;
    if (!counts || bytes == 0) return;
    const auto place = places_.try_emplace(reported_place(), place_of_.size());
    if (place.second) place_of_.push_back(reported_place());
    lock_set held = held_here.sorted();
    const auto locks = numbers_.try_emplace(held, sets_.size());
    if (locks.second) sets_.push_back(std::move(held));
    for (std::size_t at = round_down(offset, word_bytes); at < offset + bytes; at += word_bytes)
        all_.push_back({at, thread_here, stores, place.first->second, locks.first->second, frees});
}

void lock_sets::took(const void* lock, bool writes, const void* by) noexcept {
    if (listening == nullptr) return;
    const looking_away counts;
    if (held_here.count == held_here.all.size())
        fatal("a thread holds more than %zu locks at once", held_here.all.size());
    held_here.all[held_here.count++] = {lock, writes};
    listening->locks_.try_emplace(lock, by);
}

void lock_sets::let_go(const void* lock) noexcept {
    const auto end = held_here.all.begin() + held_here.count;
    const auto at = std::find_if(held_here.all.begin(), end,
                                 [&](const held_lock& h) { return h.lock == lock; });
    if (at != end) *at = held_here.all[--held_here.count];
}

void lock_sets::frees(const void* block) noexcept {
    if (listening == nullptr || !counts_here || block == nullptr) return;
    std::size_t bytes = 0, offset = 0;
    {
        const looking_away counts;
        pool::impl* const in = registry::pool_of(block);
        if (in == nullptr) return;
        offset = in->offset_of(block);
        bytes = in->blocks.find(offset).bytes;
    }
    listening->add(offset, bytes, true, true);
}

bool lock_sets::is_lock(std::size_t word) const { return locks_.contains(memory_.data() + word); }

std::vector<std::string> lock_sets::calls_of(const access& of) const {
    std::vector<std::string> out;
    std::string by; // the library's function that the program has called
    for (const void* at : place_of_[of.place].at) {
        const std::vector<std::string> calls = calls_at({{at}});
        if (calls.empty()) continue;
        if (of.stores && stores_for_section(calls))
            return {"the commit of a section, which makes its stores"};
        if (!out.empty() || !is_ours(calls)) out.insert(out.end(), calls.begin(), calls.end());
        else by = calls.back();
    }
    out.erase(std::ranges::unique(out).begin(), out.end()); // a section's form of a function in it
    if (!by.empty() && !stands_for_section(name_of(by), of.stores)) return {};
    return out;
}

/// Locks that only the library takes guard nothing of the program's.
void lock_sets::forget_own_locks() {
    std::vector<code_place> takers;
    for (const auto& [lock, by] : locks_) takers.push_back({{by}});
    look_up(takers);
    for (lock_set& each : sets_)
        std::erase_if(each, [&](const held_lock& h) {
            const void* const by = locks_.at(h.lock);
            if (by == nullptr) return false;
            const std::vector<std::string> calls = calls_at({{by}});
            return !calls.empty() && is_ours(calls);
        });
}

std::vector<lock_sets::race> lock_sets::races() {
    const looking_away counts;
    look_up(place_of_);
    forget_own_locks();
    struct word_state {
        const access* first = nullptr; // the thread's that has it
        bool shared = false, stored = false, told = false;
        lock_set guards;
        std::map<unsigned, const access*> last, last_store, last_load; // by thread
    };
    // What a section has kept back until its commit it has mostly loaded before, at a line.
    const auto shown = [&](const word_state& of, access a) {
        const auto loaded = of.last_load.find(a.thread);
        if (a.stores && loaded != of.last_load.end() &&
            stores_for_section(calls_at(place_of_[a.place])))
            a.place = loaded->second->place;
        return a;
    };
    std::unordered_map<std::size_t, word_state> words;
    std::unordered_map<std::uint64_t, bool> own; // by place and kind of access
    std::set<std::pair<std::uint32_t, std::uint32_t>> told;
    std::vector<race> out;
    for (const access& a : all_) {
        if (a.frees) {
            words.erase(a.word);
            continue;
        }
        const auto known = own.try_emplace(std::uint64_t{a.place} * 2 + a.stores, false);
        if (known.second) known.first->second = !calls_of(a).empty();
        if (!known.first->second || is_lock(a.word)) continue;
        word_state& w = words[a.word];
        if (w.first == nullptr) w.first = &a;
        if (w.first->thread != a.thread && !w.shared) { // upholds (1)
            w.shared = true;
            w.guards = sets_[a.locks];
            w.stored = false;
        }
        if (w.shared) {
            w.guards = common(w.guards, sets_[a.locks], a.stores);
            w.stored |= a.stores;
        }
        if (w.shared && w.stored && w.guards.empty() && !w.told) { // upholds (2)
            w.told = true;
            const auto& others = a.stores ? w.last : w.last_store;
            const access* other = nullptr;
            for (const auto& [thread, at] : others)
                if (thread != a.thread) other = at;
            if (other != nullptr && told.insert(std::minmax(other->place, a.place)).second)
                out.push_back({shown(w, *other), shown(w, a)});
        }
        w.last[a.thread] = &a;
        (a.stores ? w.last_store : w.last_load)[a.thread] = &a;
    }
    return out;
}

} // namespace hf::check

// The calls of a crash program, and of the library in it (link options of hf_crash). schedule.cpp
// has pthread_mutex_lock.
extern "C" {

using hf::check::lock_sets;

#define HF_LOCK(name, writes)                                                                      \
    void __real_##name(hf::shared_mutex* lock);                                                    \
    void __wrap_##name(hf::shared_mutex* lock) {                                                   \
        __real_##name(lock);                                                                       \
        lock_sets::took(lock, writes);                                                             \
    }
#define HF_TRY_LOCK(name, writes)                                                                  \
    bool __real_##name(hf::shared_mutex* lock);                                                    \
    bool __wrap_##name(hf::shared_mutex* lock) {                                                   \
        const bool taken = __real_##name(lock);                                                    \
        if (taken) lock_sets::took(lock, writes);                                                  \
        return taken;                                                                              \
    }
#define HF_UNLOCK(name)                                                                            \
    void __real_##name(hf::shared_mutex* lock);                                                    \
    void __wrap_##name(hf::shared_mutex* lock) {                                                   \
        lock_sets::let_go(lock);                                                                   \
        __real_##name(lock);                                                                       \
    }
HF_LOCK(_ZN2hf12shared_mutex4lockEv, true)
HF_LOCK(_ZN2hf12shared_mutex11lock_sharedEv, false)
HF_TRY_LOCK(_ZN2hf12shared_mutex8try_lockEv, true)
HF_TRY_LOCK(_ZN2hf12shared_mutex15try_lock_sharedEv, false)
HF_UNLOCK(_ZN2hf12shared_mutex6unlockEv)
HF_UNLOCK(_ZN2hf12shared_mutex13unlock_sharedEv)

int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
    const int got = __real_pthread_mutex_trylock(mutex);
    if (got == 0) lock_sets::took(mutex, true, __builtin_return_address(0));
    return got;
}
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    lock_sets::let_go(mutex);
    return __real_pthread_mutex_unlock(mutex);
}

void __real_hf_free(void* block);
void __wrap_hf_free(void* block) {
    lock_sets::frees(block);
    __real_hf_free(block);
}

} // extern "C"
