// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared.hpp"
#include "redo_model.hpp"

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/trace_abi.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

__thread hf_word_log hf_words __attribute__((tls_model("initial-exec")));

namespace oracle {
namespace {

constexpr int mixes_per_event = 3;
constexpr int long_run_events = 400; // beyond, one mix per event
constexpr std::size_t line_bytes = 64, word_bytes = 8;

using image = std::vector<std::byte>;

struct log_entry {
    std::size_t offset, bytes;
    std::size_t at; // in old_bytes
    std::size_t words; // entries that the section had made in line before
};

enum class logging { clobber, undo, redo };

struct open_section {
    const hf_txfunc* function = nullptr;
    image arguments;
    std::vector<image> preserved;
    std::size_t preserve_next = 0;
    bool re_executing = false;
    logging kind = logging::clobber;
    int depth = 0;
};

/// A store of the traced section, cut into words: what a line may hold a prefix of.
struct stored_word {
    std::uint16_t offset;
    std::uint8_t bytes;
    std::array<std::byte, word_bytes> value;
};

/// What the section did to one byte of the pool.
struct byte_state {
    bool input = false; // read before it was written
    bool written = false;
    bool logged = false;
    bool ahead = false; // by an entry made ahead of its store
    bool announced_ever = false;
    bool announced = false; // noted or logged, and no other call of the runtime since
};

/// What an uninterrupted run showed.
struct account {
    long logged = 0;   // entries
    long inputs = 0;   // bytes
    long clobbers = 0; // stores that were the first to overwrite an input
    long stores = 0;
    bool traced = false;
    bool left = false; // by an exception
};

alignas(64) std::byte storage[pool_bytes];
open_section section;
redo_model buffer; // of a section of engine redo
image start_image;
std::vector<log_entry> entries;
image old_bytes; // of all entries since the last reset(), also of those that are gone
std::size_t unfenced = 0; // of them: made ahead, the last ones, and not yet durable
std::vector<byte_state> bytes_seen(pool_bytes);
std::vector<std::size_t> announced; // where bytes_seen says so
std::vector<stored_word> history;   // of the attempt
account seen;
bool judging = false; // in the uninterrupted run
const char* broken_rule = nullptr;
std::size_t broken_at = 0;
struct taken_block {
    std::size_t offset = 0, bytes = 0;
};
std::vector<taken_block> taken; // by the attempt
std::size_t heap_used = 0;
std::size_t heap_kept = 0; // by the scenario's 'prepare'
int events = 0;
int crash_at = never;
std::jmp_buf crash;

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

bool is_fresh(std::size_t offset) { return offset >= heap_bytes; }
/// Whether the section has allocated it, and not the scenario's 'prepare'.
bool is_own(std::size_t offset) { return offset >= heap_bytes + heap_kept; }
bool is_redo() { return section.kind == logging::redo; }

void breaks(const char* rule, std::size_t offset) {
    if (broken_rule != nullptr) return;
    broken_rule = rule;
    broken_at = offset;
}

/// The runtime may write lines back now: an earlier note stands for no later store.
void forget_notes() {
    for (std::size_t i : announced) bytes_seen[i].announced = false;
    announced.clear();
}

void note(const void* address, std::uint64_t bytes) {
    if (!in_pool(address)) return;
    if (!is_own(offset_of(address))) unfenced = 0;
    if (!judging) return;
    for (std::size_t i = 0; i < bytes; ++i) {
        byte_state& b = bytes_seen.at(offset_of(address) + i);
        b.announced = b.announced_ever = true;
        announced.push_back(offset_of(address) + i);
    }
}

/// Entries that a section of engine undo makes in line, where the medium keeps order (hf_words).
struct line_entry {
    std::uint64_t what, old;
};
std::array<line_entry, 64> in_line;
std::uint64_t in_line_end; // as an address, less the pool's
bool orders = false;       // whether it does
bool chooses = false;      // the section's function has forms for both kinds of medium

void give_room(bool some) {
    auto* const first = reinterpret_cast<char*>(in_line.data());
    hf_words = {first, some ? first + sizeof in_line : first, &in_line_end,
                reinterpret_cast<char*>(storage), pool_bytes - (word_bytes - 1)};
    in_line_end = static_cast<std::uint64_t>(first - hf_words.base);
}
std::size_t made_in_line() {
    const char* const end = hf_words.base + in_line_end;
    return static_cast<std::size_t>(reinterpret_cast<const line_entry*>(end) - in_line.data());
}

void append(std::size_t offset, std::size_t bytes) {
    entries.push_back({offset, bytes, old_bytes.size(), made_in_line()});
    old_bytes.insert(old_bytes.end(), storage + offset, storage + offset + bytes);
    ++seen.logged;
}

void log(const void* address, std::uint64_t bytes) {
    event();
    forget_notes();
    if (!in_pool(address)) return;
    append(offset_of(address), bytes);
    if (judging)
        for (std::size_t i = 0; i < bytes; ++i)
            bytes_seen.at(offset_of(address) + i).logged = true;
    unfenced = 0;
    note(address, bytes);
}

/// Durable with the next entry, or the next note of a store in place.
void log_ahead(const void* address, std::uint64_t bytes) {
    event();
    forget_notes();
    if (!in_pool(address)) return;
    if (!is_own(offset_of(address))) {
        append(offset_of(address), bytes);
        ++unfenced;
    }
    if (!judging) return;
    for (std::size_t i = 0; i < bytes; ++i) {
        byte_state& b = bytes_seen.at(offset_of(address) + i);
        b.logged = b.ahead = true;
    }
}

/// Rule of the analysis (compiler/README.md, 1): the byte-exact form, whatever the values.
void judge_load(std::size_t offset, std::size_t bytes) {
    for (std::size_t i = offset; i < offset + bytes; ++i) {
        if (is_redo() && buffer.stored(i)) breaks("a buffered byte is read in place", i);
        if (bytes_seen[i].written || bytes_seen[i].input) continue;
        if (is_fresh(i)) breaks("fresh memory is read before it is written", i);
        bytes_seen[i].input = true;
        ++seen.inputs;
    }
}

void judge_store(std::size_t offset, std::size_t bytes) {
    bool clobbers = false;
    for (std::size_t i = offset; i < offset + bytes; ++i) {
        byte_state& b = bytes_seen[i];
        if (is_redo() && buffer.buffers(storage + i))
            breaks("a byte is stored in place before the commit", i);
        if (!b.announced) breaks("a store is neither noted nor logged", i);
        if (unfenced != 0 && !is_own(i))
            breaks("a byte is stored in place before an entry made ahead is durable", i);
        const bool undo = section.kind == logging::undo;
        if (!b.written && (b.input || undo) && !is_fresh(i) && !is_redo()) {
            clobbers |= b.input;
            if (!b.logged)
                breaks(undo ? "an old byte is not logged"
                                    : "an input is overwritten without a log entry",
                       i);
        }
        b.written = true;
    }
    seen.clobbers += clobbers;
    ++seen.stores;
}

/// Clips a report to the pool; calls 'use(offset, bytes)' when something is left.
template <class Use> void clip(const void* address, std::uint64_t bytes, Use use) {
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    const auto begin = reinterpret_cast<std::uintptr_t>(storage);
    const std::uintptr_t first = std::max(from, begin);
    const std::uintptr_t end = std::min(from + bytes, begin + pool_bytes);
    if (section.depth != 0 && first < end) use(first - begin, end - first);
}

void remember(std::size_t offset, std::size_t bytes) {
    while (bytes > 0) {
        const std::size_t part = std::min(bytes, word_bytes - offset % word_bytes);
        stored_word& w = history.emplace_back();
        w.offset = static_cast<std::uint16_t>(offset);
        w.bytes = static_cast<std::uint8_t>(part);
        std::memcpy(w.value.data(), storage + offset, part);
        offset += part;
        bytes -= part;
    }
}

int begin(const hf_txfunc* function, const void* packed, logging kind) {
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
    section.kind = kind;
    give_room(orders && kind == logging::undo && !judging);
    buffer.begin(storage, heap_bytes + heap_kept);
    const auto* from = static_cast<const std::byte*>(packed);
    section.arguments.assign(from, from + function->args_bytes);
    return 1;
}

void commit() {
    event();
    section.depth = 0;
}

/// Nothing that is not fresh was stored in place.
void judge_places() {
    for (std::size_t i = 0; i < heap_bytes + heap_kept; ++i)
        if (storage[i] != start_image[i]) breaks("a byte is stored in place before the commit", i);
}

void commit_redo() {
    event();
    judge_places();
    buffer.commit();
    section.depth = 0;
}

/// What the section took is as it was.
void forget_blocks() {
    std::memcpy(storage + heap_bytes + heap_kept, start_image.data() + heap_bytes + heap_kept,
                pool_bytes - heap_bytes - heap_kept);
    heap_used = heap_kept;
    taken.clear();
    section.depth = 0;
}

void abort_redo() {
    event();
    judge_places();
    forget_blocks();
}

/// A store of engine redo: it notes what it leaves where it is. 'here': and makes it, too.
void store(const void* address, std::uint64_t bytes, bool here) {
    event();
    forget_notes();
    if (!in_pool(address)) return;
    if (!buffer.buffers(address)) {
        for (std::size_t i = 0; here && i < bytes; ++i)
            bytes_seen.at(offset_of(address) + i).written = true;
        return note(address, bytes);
    }
    ++seen.logged;
    for (std::size_t i = 0; i < bytes; ++i)
        bytes_seen.at(offset_of(address) + i).announced_ever = true;
}

image snapshot() { return image(storage, storage + pool_bytes); }
void restore(const image& from) { std::memcpy(storage, from.data(), pool_bytes); }

void reset() {
    section = {};
    entries.clear();
    old_bytes.clear();
    unfenced = 0;
    bytes_seen.assign(pool_bytes, {});
    announced.clear();
    seen = {};
    broken_rule = nullptr;
    heap_used = heap_kept;
    taken.clear();
    events = 0;
    give_room(false);
}

/// Runs 'action' until it ends or crashes at 'event_number'; whether it ended.
template <class Action> bool attempt(int event_number, Action action) {
    events = 0;
    heap_used = heap_kept;
    taken.clear();
    section.preserve_next = 0;
    unfenced = 0;
    history.clear();
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
    std::size_t words = made_in_line();
    const auto restore_words = [&](std::size_t first) {
        while (words > first) {
            const line_entry& e = in_line.at(--words);
            std::memcpy(storage + (e.what << 8 >> 8), &e.old, (e.what >> 56) - 0x80);
        }
    };
    for (std::size_t i = entries.size(); i-- > 0;) {
        restore_words(entries[i].words);
        std::memcpy(storage + entries[i].offset, old_bytes.data() + entries[i].at,
                    entries[i].bytes);
    }
    restore_words(0);
}

void abort_undo() {
    event();
    restore_log();
    forget_blocks();
}

void re_execute() {
    section.re_executing = true;
    section.function->re_execute(section.arguments.data());
    event(); // the commit that recovery makes
}

/// Words that were stored since 'start' keep their new value or lose it.
void lose_some(const image& start, std::mt19937_64& random) {
    lose_words(storage, start.data(), pool_bytes, random);
}

/// Every line keeps a prefix of the words stored to it since 'start', some of them none or all.
void tear(const image& start, std::mt19937_64& random) {
    std::array<std::uint32_t, pool_bytes / line_bytes> kept{}, count{};
    for (const stored_word& w : history) ++count[w.offset / line_bytes];
    for (std::size_t l = 0; l < count.size(); ++l)
        kept[l] = static_cast<std::uint32_t>(random() % (count[l] + 1));
    restore(start);
    for (const stored_word& w : history) {
        std::uint32_t& left = kept[w.offset / line_bytes];
        if (left == 0) continue;
        --left;
        std::memcpy(storage + w.offset, w.value.data(), w.bytes);
    }
}

/// A legal image of PM after a crash of what began at 'start'.
void lose(const image& start, int mix, std::mt19937_64& random) {
    if (mix == 0) return;
    entries.resize(entries.size() - random() % (unfenced + 1));
    if (mix % 2 == 1 && !history.empty()) return tear(start, random);
    lose_some(start, random);
}

void fail(const scenario& s, int first, int second, const char* what) {
    std::printf("FAIL %s: crash at event %d, then %d: %s\n", s.name, first, second, what);
    ++failures;
}

void compare(const scenario& s, const image& expected, std::size_t bytes, int first, int second) {
    if (std::memcmp(storage, expected.data(), bytes) == 0) return; // nearly always
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

void check_redo(const scenario& s, const image& start, int at) {
    compare(s, start, heap_bytes + heap_kept, at, 0);
}

void check_clobber(const scenario& s, const image& start, const image& end, int at,
                   std::mt19937_64& random) {
    const image crashed = snapshot();
    const auto log_then = entries;
    restore_log();
    const image restored = snapshot();
    if (!attempt(never, re_execute)) return;
    compare(s, end, pool_bytes, at, 0);
    const int length = events;
    for (int nested = 1; nested <= std::min(length, nested_max); ++nested) {
        const int again = length <= nested_max ? nested : 1 + int(random() % unsigned(length));
        restore(crashed);
        entries = log_then;
        restore_log();
        if (attempt(again, re_execute)) break;
        lose(again % 4 < 2 ? restored : start, again % 4, random);
        restore_log();
        attempt(never, re_execute);
        compare(s, end, pool_bytes, at, again);
    }
}

/// The uninterrupted run, judged access by access.
account judge(const scenario& s) {
    reset();
    judging = true;
    attempt(never, s.run);
    judging = false;
    for (std::size_t i = 0; i < pool_bytes && seen.traced; ++i)
        if (bytes_seen[i].ahead && !bytes_seen[i].written)
            breaks("an entry made ahead has a byte that is not stored to", i);
    if (section.function == nullptr) fail(s, 0, 0, "no section began: its call was dropped");
    if (broken_rule != nullptr) {
        char what[100];
        std::snprintf(what, sizeof what, "%s: byte %zu", broken_rule, broken_at);
        fail(s, 0, 0, what);
    }
    return seen;
}

/// The section where what was stored is there, in order, and entries are made in line.
void explore_in_order(const scenario& s, const image& start) {
    orders = true;
    for (int at = 1;; ++at) {
        restore(start);
        reset();
        if (attempt(at, s.run)) break;
        check_undo(s, start, at);
    }
    orders = false;
    give_room(false);
}

/// The section's form for a medium that keeps order. It comes to the same end.
void explore_other_form(const scenario& s, const image& start, const image& end) {
    orders = true;
    restore(start);
    judge(s);
    compare(s, end, heap_bytes + heap_kept, never, 0);
    orders = false;
    explore_in_order(s, start);
}

void explore(const scenario& s) {
    std::memset(storage, 0, pool_bytes);
    heap_used = 0;
    s.prepare();
    heap_kept = heap_used;
    const image start = start_image = snapshot();

    const account whole = judge(s);
    const image end = snapshot();
    const int length = events;
    // Also changes without a report: code that is not traced.
    for (std::size_t i = 0; i < pool_bytes; ++i)
        if (start[i] != end[i] && !bytes_seen[i].announced_ever) {
            fail(s, 0, 0, "a changed byte was neither noted nor logged");
            break;
        }

    std::mt19937_64 random{std::hash<std::string_view>{}(s.name)};
    for (int at = 1; at <= length; ++at)
        for (int mix = 0; mix <= mixes_per_event; ++mix) {
            if (length > long_run_events && mix != at % (mixes_per_event + 1)) continue;
            restore(start);
            reset();
            if (attempt(at, s.run)) return fail(s, at, 0, "not deterministic");
            if (is_redo()) {
                check_redo(s, start, at);
                break;
            }
            lose(start, mix, random);
            if (section.kind == logging::undo)
                check_undo(s, start, at);
            else
                check_clobber(s, start, end, at, random);
        }
    if (section.kind == logging::undo) explore_in_order(s, start);
    if (std::exchange(chooses, false)) explore_other_form(s, start, end);
    std::printf("%-28s %3d events %3ld logged %3ld clobbers %4ld inputs%s\n", s.name, length,
                whole.logged, whole.clobbers, whole.inputs, whole.left ? " left" : "");
}

std::size_t offset_in(std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, storage + at, word_bytes);
    return word - reinterpret_cast<std::uintptr_t>(storage);
}

/// Blocks that the section took and nothing leads to: the compiler need not have filled them in.
void clear_unreachable() {
    const auto follow = [](auto& self, std::size_t at, std::size_t end) -> void {
        for (; at < end; at += word_bytes)
            for (taken_block& b : taken)
                if (offset_in(at) - b.offset < b.bytes) {
                    const taken_block found = std::exchange(b, {});
                    self(self, found.offset, found.offset + found.bytes);
                }
    };
    follow(follow, 0, heap_bytes + heap_kept);
    for (const taken_block b : taken) std::memset(storage + b.offset, 0, b.bytes);
}

} // namespace

/// Prints what the scenario makes of the pool, wherever the pool lies.
void print_image(const scenario& s) {
    std::memset(storage, 0, pool_bytes);
    heap_used = heap_kept = 0;
    s.prepare();
    heap_kept = heap_used;
    start_image = snapshot();
    reset();
    s.run();
    clear_unreachable();
    print_sum(s, storage);
}

void try_scenario(const scenario& s) { explore(s); }

std::byte* const pool = storage;

bool runs_in_order() { return section.depth != 0 && section.kind == logging::undo; }

void left_by_exception() {
    seen.left = true;
    if (section.function == nullptr) restore(start_image);
    if (section.depth != 0) breaks("an exception leaves the section open", 0);
}

} // namespace oracle

using namespace oracle;

extern "C" {

void hf_txfunc_register(const hf_txfunc* function) noexcept { registered().insert(function); }
int hf_clobber_begin(const hf_txfunc* f, const void* packed) noexcept {
    return begin(f, packed, logging::clobber);
}
void hf_clobber_commit() noexcept { commit(); }
void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept { log(address, bytes); }
int hf_undo_begin(const hf_txfunc* f, const void* packed) noexcept {
    return begin(f, packed, logging::undo);
}
void hf_undo_commit() noexcept { commit(); }
void hf_undo_commit_or_throw() { commit(); }
void hf_undo_abort() noexcept { abort_undo(); }
void hf_undo_log(const void* address, std::uint64_t bytes) noexcept { log(address, bytes); }
int hf_redo_begin(const hf_txfunc* f, const void* packed) noexcept {
    return begin(f, packed, logging::redo);
}
int hf_auto_begin(const hf_txfunc* f, const void* packed) noexcept {
    chooses = true;
    if (!orders) return begin(f, packed, logging::redo);
    return begin(f, packed, logging::undo) | HF_SECTION_IN_ORDER;
}
__thread const std::uint64_t* hf_redo_filter __attribute__((tls_model("initial-exec")));
void hf_redo_commit() noexcept { commit_redo(); }
void hf_redo_commit_or_throw() { commit_redo(); } // there is room
void hf_redo_abort() noexcept { abort_redo(); }
void* hf_redo_write(void* address, std::uint64_t bytes) noexcept {
    store(address, bytes, false);
    return buffer.write(address, bytes);
}
void hf_redo_put(void* to, const void* from, std::uint64_t bytes) noexcept {
    store(to, bytes, true);
    buffer.put(to, static_cast<const std::byte*>(from), bytes);
}
void hf_redo_copy(void* to, const void* from, std::uint64_t bytes) noexcept {
    store(to, bytes, true);
    buffer.copy(to, from, bytes);
}
void hf_redo_fill(void* to, int byte, std::uint64_t bytes) noexcept {
    store(to, bytes, true);
    const image filled(bytes, static_cast<std::byte>(byte));
    buffer.put(to, filled.data(), bytes);
}
const void* hf_redo_read(const void* address, std::uint64_t bytes) noexcept {
    return buffer.read(address, bytes);
}
const void* hf_redo_read_string(const void* address) noexcept {
    return buffer.read_string(address);
}
void hf_log_ahead(const void* address, std::uint64_t bytes) noexcept {
    log_ahead(address, bytes);
}
void hf_clobber_note(const void* address, std::uint64_t bytes) noexcept {
    event();
    note(address, bytes);
}
void hf_note_store(const void* address, std::uint64_t bytes) noexcept { // of C's library
    hf_clobber_note(address, bytes);
}
void hf_undo_note(const void* address, std::uint64_t bytes) noexcept {
    hf_clobber_note(address, bytes);
}
void hf_redo_note(const void* address, std::uint64_t bytes) noexcept {
    hf_clobber_note(address, bytes);
}
void* hf_alloc(std::size_t bytes) noexcept {
    event();
    forget_notes();
    bytes = (bytes + 15) / 16 * 16;
    if (heap_used + bytes > pool_bytes - heap_bytes) return nullptr;
    taken.push_back({heap_bytes + heap_used, bytes});
    void* block = storage + heap_bytes + heap_used;
    heap_used += bytes;
    return block;
}
void hf_free(void*) noexcept { forget_notes(); }
void hf_adopt(void*) noexcept { forget_notes(); }
alignas(64) hf_trace_region hf_trace_watched{reinterpret_cast<std::uintptr_t>(storage), pool_bytes};
void hf_trace_load(const void* address, std::uint64_t bytes) {
    if (judging) clip(address, bytes, judge_load);
}
void hf_trace_store(const void* address, std::uint64_t bytes) {
    clip(address, bytes, [](std::size_t offset, std::size_t count) {
        seen.traced = true;
        remember(offset, count);
        if (judging) judge_store(offset, count);
        event();
    });
}
void hf_trace_rmw(const void*, std::uint64_t) {} // atomics: no section has them
void hf_trace_fence() {}

const void* hf_vlog_preserve(const void* bytes, std::size_t count) noexcept {
    if (section.re_executing) return section.preserved.at(section.preserve_next++).data();
    const auto* from = static_cast<const std::byte*>(bytes);
    section.preserved.emplace_back(from, from + count);
    return section.preserved.back().data();
}
}

int main(int argc, char** argv) {
    nested_max = never;
    return run(argc, argv);
}
