// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "oracle.hpp"

#include <holdfast/abi/holdfast_abi.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <vector>

namespace oracle {
namespace {

constexpr int mixes_per_event = 3;
constexpr int never = 1 << 30;

using image = std::vector<std::byte>;

struct log_entry {
    std::size_t offset;
    image old_bytes;
};

struct open_section {
    const hf_txfunc* function = nullptr;
    image arguments;
    std::vector<image> preserved;
    std::size_t preserve_next = 0;
    bool re_executing = false;
    bool undo = false;
    int depth = 0;
};

alignas(64) std::byte storage[pool_bytes];
open_section section;
std::vector<log_entry> entries;
std::vector<bool> noted(pool_bytes);
std::size_t heap_used = 0;
int events = 0;
int crash_at = never;
std::jmp_buf crash;
scenario* scenarios = nullptr;
int failures = 0;
long crashes = 0, logged = 0;

/// Filled before the constructors of ordinary globals run.
std::set<const hf_txfunc*>& registered() {
    static std::set<const hf_txfunc*> functions;
    return functions;
}

void event() {
    if (++events == crash_at) {
        ++crashes;
        std::longjmp(crash, 1);
    }
}

bool in_pool(const void* address) { return address >= storage && address < storage + pool_bytes; }

std::size_t offset_of(const void* address) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - storage);
}

void note(const void* address, std::uint64_t bytes) {
    if (!in_pool(address)) return;
    for (std::size_t i = 0; i < bytes; ++i) noted.at(offset_of(address) + i) = true;
}

void log(const void* address, std::uint64_t bytes) {
    event();
    if (!in_pool(address)) return;
    const auto* from = static_cast<const std::byte*>(address);
    entries.push_back({offset_of(address), image(from, from + bytes)});
    ++logged;
    note(address, bytes);
}

int begin(const hf_txfunc* function, const void* packed, bool undo) {
    if (section.depth != 0) {
        std::printf("begin inside a section: nested txfuncs must be called as helpers\n");
        std::exit(1);
    }
    if (!registered().contains(function)) {
        std::printf("%s is not registered\n", function->name);
        std::exit(1);
    }
    section.depth = 1;
    section.function = function;
    section.undo = undo;
    const auto* from = static_cast<const std::byte*>(packed);
    section.arguments.assign(from, from + function->args_bytes);
    return 1;
}

void commit() {
    event();
    section.depth = 0;
}

image snapshot() { return image(storage, storage + pool_bytes); }
void restore(const image& from) { std::memcpy(storage, from.data(), pool_bytes); }

void reset() {
    section = {};
    entries.clear();
    noted.assign(pool_bytes, false);
    heap_used = 0;
    events = 0;
}

/// Runs 'action' until it ends or crashes at 'event_number'; whether it ended.
template <class Action> bool attempt(int event_number, Action action) {
    events = 0;
    heap_used = 0;
    section.preserve_next = 0;
    crash_at = event_number;
    if (setjmp(crash) != 0) {
        crash_at = never;
        return false;
    }
    action();
    crash_at = never;
    return true;
}

void restore_log() {
    for (std::size_t i = entries.size(); i-- > 0;)
        std::memcpy(storage + entries[i].offset, entries[i].old_bytes.data(),
                    entries[i].old_bytes.size());
}

void re_execute() {
    section.re_executing = true;
    section.function->re_execute(section.arguments.data());
    event(); // the commit that recovery makes
}

/// Words that were stored since 'start' keep their new value or lose it.
void lose_some(const image& start, std::mt19937_64& random) {
    for (std::size_t i = 0; i < pool_bytes; i += 8)
        if (random() & 1) std::memcpy(storage + i, start.data() + i, 8);
}

void fail(const scenario& s, int first, int second, const char* what) {
    std::printf("FAIL %s: crash at event %d, then %d: %s\n", s.name, first, second, what);
    ++failures;
}

void compare(const scenario& s, const image& expected, std::size_t bytes, int first, int second) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (storage[i] != expected[i]) {
            char what[80];
            std::snprintf(what, sizeof what, "byte %zu is %02x, not %02x", i, unsigned(storage[i]),
                          unsigned(expected[i]));
            return fail(s, first, second, what);
        }
}

void check_undo(const scenario& s, const image& start, int at) {
    restore_log();
    compare(s, start, heap_bytes, at, 0);
}

void check_clobber(const scenario& s, const image& start, const image& end, int at,
                   std::mt19937_64& random) {
    const image crashed = snapshot();
    const auto log_then = entries;
    restore_log();
    if (!attempt(never, re_execute)) return;
    compare(s, end, pool_bytes, at, 0);
    const int length = events;
    for (int again = 1; again <= length; ++again) {
        restore(crashed);
        entries = log_then;
        restore_log();
        if (attempt(again, re_execute)) break;
        if (again % 2) lose_some(start, random);
        restore_log();
        attempt(never, re_execute);
        compare(s, end, pool_bytes, at, again);
    }
}

void explore(const scenario& s) {
    std::memset(storage, 0, pool_bytes);
    s.prepare();
    const image start = snapshot();

    reset();
    attempt(never, s.run);
    const image end = snapshot();
    const int length = events;
    for (std::size_t i = 0; i < pool_bytes; ++i)
        if (start[i] != end[i] && !noted[i]) {
            fail(s, 0, 0, "a changed byte was neither noted nor logged");
            break;
        }

    std::mt19937_64 random{std::hash<std::string_view>{}(s.name)};
    for (int at = 1; at <= length; ++at)
        for (int mix = 0; mix <= mixes_per_event; ++mix) {
            restore(start);
            reset();
            if (attempt(at, s.run)) return fail(s, at, 0, "not deterministic");
            if (mix > 0) lose_some(start, random);
            if (section.undo)
                check_undo(s, start, at);
            else
                check_clobber(s, start, end, at, random);
        }
    std::printf("%-28s %3d events %3ld logged\n", s.name, length, [&] {
        restore(start);
        reset();
        logged = 0;
        attempt(never, s.run);
        return logged;
    }());
}

} // namespace

std::byte* const pool = storage;

scenario::scenario(const char* name, void (*prepare)(), void (*run)())
    : name(name), prepare(prepare), run(run), next(scenarios) {
    scenarios = this;
}

} // namespace oracle

using namespace oracle;

extern "C" {

void hf_txfunc_register(const hf_txfunc* function) noexcept { registered().insert(function); }
int hf_clobber_begin(const hf_txfunc* f, const void* packed) noexcept {
    return begin(f, packed, false);
}
void hf_clobber_commit() noexcept { commit(); }
void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept { log(address, bytes); }
int hf_undo_begin(const hf_txfunc* f, const void* packed) noexcept {
    return begin(f, packed, true);
}
void hf_undo_commit() noexcept { commit(); }
void hf_undo_log(const void* address, std::uint64_t bytes) noexcept { log(address, bytes); }
void hf_note_store(const void* address, std::uint64_t bytes) noexcept {
    event();
    note(address, bytes);
}
void* hf_alloc(std::size_t bytes) noexcept {
    event();
    bytes = (bytes + 15) / 16 * 16;
    if (heap_used + bytes > pool_bytes - heap_bytes) return nullptr;
    void* block = storage + heap_bytes + heap_used;
    heap_used += bytes;
    return block;
}
void hf_free(void*) noexcept {}
void hf_adopt(void*) noexcept {}
void hf_crash_point(const char*) noexcept {}
const void* hf_vlog_preserve(const void* bytes, std::size_t count) noexcept {
    if (section.re_executing) return section.preserved.at(section.preserve_next++).data();
    const auto* from = static_cast<const std::byte*>(bytes);
    section.preserved.emplace_back(from, from + count);
    return bytes;
}
}

int main(int argc, char** argv) {
    int count = 0;
    for (scenario* s = scenarios; s != nullptr; s = s->next) {
        if (argc > 1 && std::strcmp(argv[1], s->name) != 0) continue;
        explore(*s);
        ++count;
    }
    std::printf("oracle: scenarios=%d crashes=%ld failures=%d\n", count, crashes, failures);
    return failures == 0 && count > 0 ? 0 : 1;
}
