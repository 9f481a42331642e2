// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operational model: every way in which threads, their store buffers and persistent_memory, the
// class that the crash checker runs real code on, may execute a litmus test.
//
// (1) Threads issue their instructions in order. Stores, flushes and sfence enter the thread's
//     store buffer; a load takes the newest buffered store to its word, or memory.
// (2) An entry leaves the buffer when nothing before it is ordered before it (px86::ordered).
// (3) mfence and locked operations execute on memory, and only with an empty buffer.
// (4) A failure is possible in every state; persistent_memory says what it leaves.
//
// Memory and Rules are parameters so that tests can break them, one rule at a time.
#pragma once

#include <base/assert.hpp>
#include <check/litmus/litmus.hpp>
#include <check/persistent_memory.hpp>

#include <unordered_set>
#include <utility>

namespace hf::check::litmus {

/// Px86_sim (POPL'20); of non-temporal stores, the least order that the manuals leave.
struct px86 {
    /// Whether 'first' leaves the store buffer before 'second', which was issued after it.
    static bool ordered(const instruction& first, const instruction& second);
    /// Whether the instruction makes its thread's flushes and non-temporal stores durable.
    static bool fences(const instruction& i) { return i.what != op::load; }
    /// Whether it waits for an empty store buffer.
    static bool drains(const instruction& i) { return i.what != op::load; }
};

template <class Memory, class Rules> class machine {
public:
    machine(const program& of, Memory initial)
        : of_(of), start_{.threads = std::vector<thread_state>(of.threads.size()),
                          .registers = std::string(of.registers, unset),
                          .line_logs = std::vector<std::string>(of.lines),
                          .memory = std::move(initial)} {}

    outcomes run() {
        visit(start_);
        return std::move(found_);
    }

private:
    struct thread_state {
        std::size_t issued = 0;
        std::string buffer; // positions in the thread's program
    };
    struct state {
        std::vector<thread_state> threads;
        std::string registers;
        std::vector<std::string> line_logs; // the events of each line: makes states comparable
        Memory memory;
    };

    const instruction& at(std::size_t thread, std::size_t position) const {
        return of_.threads[thread][position];
    }

    void visit(const state& s) {
        if (!seen_.insert(key(s)).second) return;
        record_failure(s);
        for (std::size_t t = 0; t < s.threads.size(); ++t) {
            issue(s, t);
            for (std::size_t i = 0; i < s.threads[t].buffer.size(); ++i)
                if (may_leave(s.threads[t], t, i)) leave(s, t, i);
        }
    }

    bool may_leave(const thread_state& own, std::size_t thread, std::size_t i) const {
        for (std::size_t j = 0; j < i; ++j)
            if (Rules::ordered(at(thread, own.buffer[j]), at(thread, own.buffer[i]))) return false;
        return true;
    }

    void issue(const state& s, std::size_t t) {
        const thread_state& own = s.threads[t];
        if (own.issued == of_.threads[t].size()) return;
        const instruction& i = at(t, own.issued);
        const bool locked = i.what == op::xchg || i.what == op::add || i.what == op::cas;
        const bool at_once = locked || i.what == op::mfence || i.what == op::load;
        if (at_once && Rules::drains(i) && !own.buffer.empty()) return;
        state next = s;
        if (!at_once) next.threads[t].buffer += static_cast<char>(own.issued);
        if (i.what == op::load) next.registers[i.reg] = value_seen(s, t, i.word);
        if (locked) execute_locked(next, t, i);
        if (at_once && Rules::fences(i)) fence(next, t);
        ++next.threads[t].issued;
        visit(next);
    }

    char value_seen(const state& s, std::size_t t, unsigned word) const {
        const std::string& buffer = s.threads[t].buffer;
        for (std::size_t j = buffer.size(); j-- > 0;) {
            const instruction& i = at(t, buffer[j]);
            if ((i.what == op::store || i.what == op::nt_store) && i.touches(word))
                return static_cast<char>('0' + i.value);
        }
        return value_in_memory(s, word);
    }
    static char value_in_memory(const state& s, unsigned word) {
        const auto line = s.memory.newest(word / words_per_line);
        return static_cast<char>('0' + line[word % words_per_line]);
    }

    void execute_locked(state& s, std::size_t t, const instruction& i) {
        const char was = value_in_memory(s, i.word);
        s.registers[i.reg] = was;
        if (i.what == op::cas && was != '0' + i.expected) return;
        instruction stored = i;
        stored.what = op::store;
        if (i.what == op::add) stored.value = static_cast<std::uint8_t>(i.value + (was - '0'));
        apply(s, t, stored);
    }

    void leave(const state& s, std::size_t t, std::size_t i) {
        state next = s;
        const instruction& what = at(t, s.threads[t].buffer[i]);
        next.threads[t].buffer.erase(i, 1);
        if (what.what == op::sfence) fence(next, t);
        else apply(next, t, what);
        visit(next);
    }

    static void fence(state& s, std::size_t t) {
        s.memory.fence(static_cast<unsigned>(t));
        for (std::string& log : s.line_logs) log += {'f', static_cast<char>(t)};
    }

    static void apply(state& s, std::size_t t, const instruction& i) {
        const std::uint64_t values[] = {i.value, i.value};
        const std::size_t offset = i.word * word_bytes, bytes = i.words * word_bytes;
        const auto thread = static_cast<unsigned>(t);
        if (i.what == op::store) s.memory.store(offset, values, bytes);
        else if (i.what == op::nt_store) s.memory.nt_store(thread, offset, values, bytes);
        else if (i.what == op::clflush) s.memory.flush_now(i.line());
        else s.memory.flush(thread, i.line());
        s.line_logs[i.line()] +=
            {static_cast<char>(i.what), static_cast<char>(t), static_cast<char>(i.word),
             static_cast<char>(i.words), static_cast<char>(i.value)};
    }

    /// Lines are independent of each other, so the logs of each describe memory completely.
    std::string key(const state& s) const {
        std::string out = s.registers;
        for (const thread_state& t : s.threads)
            out.append(1, static_cast<char>(t.issued)).append(t.buffer).append(1, '\xff');
        for (const std::string& log : s.line_logs) out.append(log).append(1, '\xff');
        return out;
    }

    void record_failure(const state& s) {
        bool done = true;
        for (std::size_t t = 0; t < s.threads.size(); ++t)
            done &= s.threads[t].issued == of_.threads[t].size() && s.threads[t].buffer.empty();
        std::vector<std::vector<line_content>> possible;
        for (unsigned line = 0; line < of_.lines; ++line)
            possible.push_back(s.memory.possible(line));
        HF_ASSERT(!s.memory.reduced());
        std::vector<line_content> image(of_.lines);
        record_images(possible, image, 0, s.registers, done);
        if (!done) return;
        for (unsigned line = 0; line < of_.lines; ++line) image[line] = s.memory.newest(line);
        found_.final.insert(outcome_of(image, s.registers));
    }

    void record_images(const std::vector<std::vector<line_content>>& possible,
                       std::vector<line_content>& image, std::size_t line,
                       const std::string& registers, bool done) {
        if (line == possible.size()) {
            const outcome o = outcome_of(image, registers);
            found_.crash.insert(o);
            if (done) found_.done.insert(o);
            return;
        }
        for (const line_content& content : possible[line]) {
            image[line] = content;
            record_images(possible, image, line + 1, registers, done);
        }
    }

    outcome outcome_of(const std::vector<line_content>& image, const std::string& registers) const {
        outcome out;
        for (const unsigned word : of_.locations)
            out += static_cast<char>('0' + image[word / words_per_line][word % words_per_line]);
        return out + registers;
    }

    const program& of_;
    state start_;
    outcomes found_;
    std::unordered_set<std::string> seen_;
};

/// Every outcome of the test according to the model.
outcomes explore(const program& of, hf::domain d);

} // namespace hf::check::litmus
