// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sections of `holdfast bench section` by hand: the least that each mode's promise can cost. Nodes are malloc's.
//
//   by-hand, process  old words go into a log in the file by plain stores, and one word says how many count. A
//                     killed process leaves its stores in program order: the log's words, put back newest first,
//                     undo what a section had begun
//   by-hand, pmem     as floor-2f: the old words, in lines that are stored non-temporally and fenced; then the words
//                     that change, flushed and fenced. No check shows a recovery that a line is torn
//   by-hand-1f        as floor-1f: the next section's fence stands for the second one. A log of new words costs as
//                     much, and its section is durable on return
#include "../section/sections_under_test.hpp"
#include "mapped_file.hpp"
#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

#include <atomic>
#include <cstdlib>

namespace hf::bench {
namespace {

struct entry {
    std::uint64_t* where;
    std::uint64_t old;
};

std::uint64_t* word_at(section_object* o, std::uint64_t line) { return &o->lines[line].word; }
std::uint64_t* first_of(section_object* o) { return reinterpret_cast<std::uint64_t*>(&o->first); }

section_node* made(section_node* next) {
    auto* fresh = static_cast<section_node*>(std::malloc(sizeof(section_node)));
    if (fresh == nullptr) give_up("there is no memory");
    *fresh = {next, 7};
    return fresh;
}

namespace in_order {

struct undo_log {
    std::atomic<std::uint64_t> used; // entries that count
    entry entries[section_lines];
};
constinit thread_local undo_log* own __attribute__((tls_model("initial-exec"))) = nullptr;

/// The calling thread's; one at a time.
class section {
public:
    /// Before the word changes. x86 keeps the order of stores, and the compiler is held to it.
    void keep(std::uint64_t* word) {
        log_.entries[used_] = {word, *word};
        log_.used.store(++used_, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void commit() { log_.used.store(0, std::memory_order_release); }

private:
    undo_log& log_ = *own;
    std::uint64_t used_ = 0;
};

void nothing(section_object* o) {
    if (o->lines[0].word != ~std::uint64_t{0}) return;
    section s;
    s.keep(word_at(o, 1));
    o->lines[1].word = 1;
    s.commit();
}
void one(section_object* o) {
    section s;
    s.keep(word_at(o, 0));
    o->lines[0].word += 1;
    s.commit();
}
void four(section_object* o) {
    section s;
    s.keep(word_at(o, 0));
    o->lines[0].word += 1;
    s.keep(word_at(o, 1));
    o->lines[1].word += o->lines[0].word;
    s.keep(word_at(o, 2));
    o->lines[2].word ^= o->lines[1].word;
    s.keep(word_at(o, 3));
    o->lines[3].word += 3;
    s.commit();
}
void many(section_object* o) {
    section s;
    for (std::uint64_t i = 0; i < section_lines; ++i) {
        s.keep(word_at(o, i));
        o->lines[i].word += i + 1;
    }
    s.commit();
}
void loop(section_object* o) {
    section s;
    s.keep(word_at(o, o->places[0]));
    for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[o->places[i]].word += i + 1;
    s.commit();
}
[[gnu::noinline]] void link(section_object* o) {
    section_node* const fresh = made(o->first);
    section s;
    s.keep(first_of(o));
    o->first = fresh;
    s.commit();
}
[[gnu::noinline]] void unlink(section_object* o) {
    section_node* const gone = o->first;
    section s;
    s.keep(first_of(o));
    o->first = gone->next;
    s.commit();
    std::free(gone);
}
void node(section_object* o) {
    link(o);
    unlink(o);
}

section_calls calls() { return {nothing, one, four, many, loop, node}; }

} // namespace in_order

namespace fenced {

constexpr std::uint64_t entries_of_line = 3;
struct alignas(line_bytes) log_line {
    std::uint64_t section; // its number
    std::uint64_t used;    // of the entries
    entry entries[entries_of_line];
};
struct undo_log {
    std::uint64_t sections;
    log_line lines[section_lines / entries_of_line + 1];
};
constinit thread_local undo_log* own __attribute__((tls_model("initial-exec"))) = nullptr;

/// Before the words change.
template <std::size_t Count> void keep(std::uint64_t* const (&words)[Count]) {
    log_line lines[(Count + entries_of_line - 1) / entries_of_line] = {};
    ++own->sections;
    for (std::size_t i = 0; i < Count; ++i) {
        log_line& in = lines[i / entries_of_line];
        in.section = own->sections;
        in.used = i % entries_of_line + 1;
        in.entries[i % entries_of_line] = {words[i], *words[i]};
    }
    persist::copy(domain::adr, own->lines, lines, sizeof lines);
    persist::fence(domain::adr);
}
void flush(const std::uint64_t* word) { persist::flush(domain::adr, word, sizeof *word); }

template <unsigned Fences> struct sections {
    static void commit() {
        if constexpr (Fences == 2) persist::fence(domain::adr);
    }
    static void nothing(section_object* o) {
        if (o->lines[0].word != ~std::uint64_t{0}) return;
        keep({word_at(o, 1)});
        o->lines[1].word = 1;
        flush(word_at(o, 1));
        commit();
    }
    static void one(section_object* o) {
        keep({word_at(o, 0)});
        o->lines[0].word += 1;
        flush(word_at(o, 0));
        commit();
    }
    static void four(section_object* o) {
        keep({word_at(o, 0), word_at(o, 1), word_at(o, 2), word_at(o, 3)});
        o->lines[0].word += 1;
        o->lines[1].word += o->lines[0].word;
        o->lines[2].word ^= o->lines[1].word;
        o->lines[3].word += 3;
        for (std::uint64_t i = 0; i < 4; ++i) flush(word_at(o, i));
        commit();
    }
    static void many(section_object* o) {
        std::uint64_t* words[section_lines];
        for (std::uint64_t i = 0; i < section_lines; ++i) words[i] = word_at(o, i);
        keep(words);
        for (std::uint64_t i = 0; i < section_lines; ++i) {
            *words[i] += i + 1;
            flush(words[i]);
        }
        commit();
    }
    static void loop(section_object* o) {
        keep({word_at(o, o->places[0])});
        for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[o->places[i]].word += i + 1;
        flush(word_at(o, o->places[0]));
        commit();
    }
    [[gnu::noinline]] static void link(section_object* o) {
        section_node* const fresh = made(o->first);
        persist::flush(domain::adr, fresh, sizeof *fresh); // the log's fence waits for it as well
        keep({first_of(o)});
        o->first = fresh;
        flush(first_of(o));
        commit();
    }
    [[gnu::noinline]] static void unlink(section_object* o) {
        section_node* const gone = o->first;
        keep({first_of(o)});
        o->first = gone->next;
        flush(first_of(o));
        commit();
        std::free(gone);
    }
    static void node(section_object* o) {
        link(o);
        unlink(o);
    }
    static section_calls calls() { return {nothing, one, four, many, loop, node}; }
};

} // namespace fenced

struct floor_file {
    section_root root;
    in_order::undo_log in_order[section_threads];
    fenced::undo_log fenced[section_threads];
};

class floor_sections final : public sections_under_test {
public:
    floor_sections(const map_options& given, const section_calls& of)
        : sections_under_test(of), process_(given.mode == hf::mode::process), in_(given),
          file_(reinterpret_cast<floor_file*>(in_.bytes())) {}
    section_root* root() noexcept override { return &file_->root; }
    void enter(unsigned thread) noexcept override {
        in_order::own = &file_->in_order[thread];
        fenced::own = &file_->fenced[thread];
    }
    map_facts facts() const override {
        return {!process_, true, false,
                process_ ? "a log of old words: a floor" : "no recovery: a floor"};
    }

private:
    bool process_;
    mapped_file in_;
    floor_file* file_;
};

} // namespace

std::unique_ptr<sections_under_test> make_sections_by_hand(const map_options& given) {
    return std::make_unique<floor_sections>(
        given, given.mode == hf::mode::process ? in_order::calls() : fenced::sections<2>::calls());
}
std::unique_ptr<sections_under_test> make_sections_by_hand_1f(const map_options& given) {
    return std::make_unique<floor_sections>(given, fenced::sections<1>::calls());
}

} // namespace hf::bench
