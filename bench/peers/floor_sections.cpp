// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sections of `holdfast bench section` by hand: the least that each mode's promise can cost.
// Nodes are malloc's.
//
//   by-hand, process  old words go into a log in the file by plain stores, and one word says how many count. A
//                     killed process leaves its stores in program order: the log's words, put back
//                     newest first, undo what a section had begun
//   by-hand, pmem     as floor-2f: the old words, in lines that are stored non-temporally and fenced; then the words
//                     that change, flushed and fenced. No check shows a recovery that a line is
//                     torn
//   by-hand-1f        the log's lines, fenced, then the words; the next section flushes those ahead of its own fence, and so
//                     has them in the cache still, which a flush may empty. A log of new words
//                     costs as much, and its section is durable on return
#include "floor_sections.hpp"

#include "mapped_file.hpp"
#include <base/line.hpp>

#include <holdfast/author/persist.hpp>

#include <algorithm>
#include <cstdlib>

namespace hf::bench {
namespace {

std::uint64_t* word_at(section_object* o, std::uint64_t line) { return &o->lines[line].word; }
std::uint64_t* first_of(section_object* o) { return reinterpret_cast<std::uint64_t*>(&o->first); }

section_node* made(section_node* next) {
    auto* fresh = static_cast<section_node*>(std::malloc(sizeof(section_node)));
    if (fresh == nullptr) give_up("there is no memory");
    *fresh = {next, 7};
    return fresh;
}

} // namespace

namespace in_order {

constinit thread_local undo_log* own __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

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

} // namespace
} // namespace in_order

namespace {
namespace fenced {

constexpr std::uint64_t entries_of_line = 3;
struct alignas(line_bytes) log_line {
    std::uint64_t section; // its number
    std::uint64_t used;    // of the entries
    in_order::old_word entries[entries_of_line];
};
// In turns, so that the section before has its lines still: until the next fence it may need them.
constexpr std::uint64_t log_lines = 64;
struct undo_log {
    std::uint64_t sections;
    std::uint64_t next; // line
    log_line lines[log_lines];
};
constinit thread_local undo_log* own __attribute__((tls_model("initial-exec"))) = nullptr;

/// Old words, so that the next fence makes them durable.
template <std::size_t Count> void log(std::uint64_t* const (&words)[Count]) {
    constexpr std::uint64_t count = (Count + entries_of_line - 1) / entries_of_line;
    static_assert(count <= log_lines / 2);
    log_line lines[count] = {};
    ++own->sections;
    for (std::size_t i = 0; i < Count; ++i) {
        log_line& in = lines[i / entries_of_line];
        in.section = own->sections;
        in.used = i % entries_of_line + 1;
        in.entries[i % entries_of_line] = {words[i], *words[i]};
    }
    if (own->next + count > log_lines) own->next = 0;
    persist::copy(domain::adr, own->lines + own->next, lines, sizeof lines);
    own->next += count;
}

template <std::size_t Count> void flush(std::uint64_t* const (&words)[Count]) {
    for (const std::uint64_t* word : words) persist::flush(domain::adr, word, sizeof *word);
}

struct two_fences {
    template <std::size_t Count> static void keep(std::uint64_t* const (&words)[Count]) {
        log(words);
        persist::fence(domain::adr);
    }
    template <std::size_t Count> static void commit(std::uint64_t* const (&words)[Count]) {
        flush(words);
        persist::fence(domain::adr);
    }
};

struct one_fence {
    template <std::size_t Count> static void keep(std::uint64_t* const (&words)[Count]) {
        log(words);
        for (; changed_count != 0; --changed_count)
            persist::flush(domain::adr, changed[changed_count - 1], sizeof(std::uint64_t));
        persist::fence(domain::adr);
    }
    template <std::size_t Count> static void commit(std::uint64_t* const (&words)[Count]) {
        std::copy(words, words + Count, changed);
        changed_count = Count;
    }
    // By the section before.
    static constinit thread_local inline std::uint64_t* changed[section_lines]
        __attribute__((tls_model("initial-exec"))) = {};
    static constinit thread_local inline std::uint64_t changed_count
        __attribute__((tls_model("initial-exec"))) = 0;
};

/// Fences: when a section waits. A section logs its words, changes them and commits them.
template <class Fences> struct sections {
    static void nothing(section_object* o) {
        if (o->lines[0].word != ~std::uint64_t{0}) return;
        std::uint64_t* const words[] = {word_at(o, 1)};
        Fences::keep(words);
        o->lines[1].word = 1;
        Fences::commit(words);
    }
    static void one(section_object* o) {
        std::uint64_t* const words[] = {word_at(o, 0)};
        Fences::keep(words);
        o->lines[0].word += 1;
        Fences::commit(words);
    }
    static void four(section_object* o) {
        std::uint64_t* const words[] = {word_at(o, 0), word_at(o, 1), word_at(o, 2), word_at(o, 3)};
        Fences::keep(words);
        o->lines[0].word += 1;
        o->lines[1].word += o->lines[0].word;
        o->lines[2].word ^= o->lines[1].word;
        o->lines[3].word += 3;
        Fences::commit(words);
    }
    static void many(section_object* o) {
        std::uint64_t* words[section_lines];
        for (std::uint64_t i = 0; i < section_lines; ++i) words[i] = word_at(o, i);
        Fences::keep(words);
        for (std::uint64_t i = 0; i < section_lines; ++i) *words[i] += i + 1;
        Fences::commit(words);
    }
    static void loop(section_object* o) {
        std::uint64_t* const words[] = {word_at(o, o->places[0])};
        Fences::keep(words);
        for (std::uint64_t i = 0; i < section_lines; ++i) o->lines[o->places[i]].word += i + 1;
        Fences::commit(words);
    }
    [[gnu::noinline]] static void link(section_object* o) {
        section_node* const fresh = made(o->first);
        persist::flush(domain::adr, fresh, sizeof *fresh); // the log's fence waits for it as well
        std::uint64_t* const words[] = {first_of(o)};
        Fences::keep(words);
        o->first = fresh;
        Fences::commit(words);
    }
    [[gnu::noinline]] static void unlink(section_object* o) {
        section_node* const gone = o->first;
        std::uint64_t* const words[] = {first_of(o)};
        Fences::keep(words);
        o->first = gone->next;
        Fences::commit(words);
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
        given, given.mode == hf::mode::process ? in_order::calls()
                                               : fenced::sections<fenced::two_fences>::calls());
}
std::unique_ptr<sections_under_test> make_sections_by_hand_1f(const map_options& given) {
    return std::make_unique<floor_sections>(given, fenced::sections<fenced::one_fence>::calls());
}

} // namespace hf::bench
