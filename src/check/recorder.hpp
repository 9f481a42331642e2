// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps what code does to the watched memory, for the explorer to replay. Threads take turns
// (schedule.hpp), so nothing here is locked.
#pragma once

#include <check/explorer.hpp>
#include <check/shadow_trace.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace hf::check {

class recorder final : public observer {
public:
    explicit recorder(std::span<std::byte> memory, domain d = domain::adr)
        : memory_(memory), reported_(memory.begin(), memory.end()), shadows_(memory, d) {}
    ~recorder() override { last_ = std::move(trace_); }
    recorder(const recorder&) = delete;
    recorder& operator=(const recorder&) = delete;

    /// The events of the recorder that was destroyed last. Exploration stops at the run that fails,
    /// so after a violation this is that run.
    static const event_record& last() noexcept { return last_; }

    /// The thread whose events come next.
    void set_thread(unsigned thread) noexcept {
        thread_ = static_cast<std::uint8_t>(thread);
        shadows_.set_thread(thread);
    }
    /// From here on recovery must arrive at a state of this set.
    void legal(std::uint32_t set) { add(event_kind::legal, set, 0); }
    /// Everything is closed, and vouched for.
    void closed() { add(event_kind::closed, 0, 0); }
    /// Called where another thread may get the turn: after every event, and, for memory that
    /// several threads use, between a load of it and the access that follows.
    std::function<void()> at_event;
    /// Called when a thread does nothing but look, again and again: another must go on.
    std::function<void()> at_wait;
    /// For each word of memory the threads that store to it, a bit each; it is kept and filled.
    void note_writers(std::vector<std::uint8_t>& by_word) { writers_ = &by_word; }
    /// The result of another run: where loads race.
    void loads_race(const std::vector<std::uint8_t>& writers) { racing_ = &writers; }

    const event_record& recorded() const noexcept { return trace_; }
    /// Offset of a store that nobody reported, found at a fence; none: ~0.
    std::size_t unreported() const noexcept { return unreported_; }

    /// Judges functional shadowing during the run.
    const shadow_trace& shadows() const noexcept { return shadows_; }

    void load(std::size_t offset, std::size_t bytes) override {
        between();
        ++looks_;
        if (looks_ > looks_max && at_wait) {
            looks_ = 0;
            at_wait();
        }
        if (racing_ == nullptr) return;
        for (std::size_t w = offset / word_bytes; w <= (offset + bytes - 1) / word_bytes; ++w)
            if (((*racing_)[w] & ~(1u << thread_)) != 0) raced_ |= 1u << thread_;
    }
    void turn(std::size_t, std::size_t) override { between(); }
    void store(std::size_t offset, std::size_t bytes) override {
        shadows_.store(offset, bytes);
        add_stored(event_kind::store, offset, bytes);
    }
    void nt_store(std::size_t offset, std::size_t bytes) override {
        shadows_.nt_store(offset, bytes);
        add_stored(event_kind::nt_store, offset, bytes);
    }
    void flush(std::size_t offset, std::size_t bytes) override {
        shadows_.flush(offset, bytes);
        for (std::size_t l = offset / line_bytes; l <= (offset + bytes - 1) / line_bytes; ++l)
            add(event_kind::flush, l * line_bytes, line_bytes);
        event();
    }
    void flush_now(std::size_t offset, std::size_t bytes) override {
        shadows_.flush(offset, bytes);
        shadows_.fence();
        add(event_kind::flush_now, round_down(offset, line_bytes), line_bytes);
        event();
    }
    void fence() override {
        // Only the repeated store's own fence, not one of the next thread.
        if (std::exchange(repeated_, false) && trace_.events.back().kind == event_kind::fence)
            return;
        find_unreported();
        shadows_.fence();
        add(event_kind::fence, 0, 0);
        event();
    }
    void checked(std::size_t, std::size_t, bool) override {}
    void fresh(std::size_t offset, std::size_t bytes) override { shadows_.fresh(offset, bytes); }
    void named(std::size_t offset, std::size_t bytes) override { shadows_.named(offset, bytes); }
    void commit(std::size_t offset, std::size_t bytes) override { shadows_.commit(offset, bytes); }
    void in_place(std::size_t offset, std::size_t bytes) override {
        shadows_.in_place(offset, bytes);
    }

private:
    void add(event_kind kind, std::size_t offset, std::size_t bytes) {
        trace_.events.push_back({kind, thread_, static_cast<std::uint32_t>(offset),
                                 static_cast<std::uint32_t>(bytes),
                                 static_cast<std::uint32_t>(trace_.data.size()), reported_place()});
    }
    /// One event a line.
    void add_stored(event_kind kind, std::size_t offset, std::size_t bytes) {
        if (repeats(kind, offset, bytes)) return;
        note_writer(offset, bytes);
        for (std::size_t at = offset, end = offset + bytes; at < end;) {
            const std::size_t n = std::min(end, round_down(at, line_bytes) + line_bytes) - at;
            add(kind, at, n);
            trace_.data.insert(trace_.data.end(), memory_.data() + at, memory_.data() + at + n);
            std::memcpy(reported_.data() + at, memory_.data() + at, n);
            at += n;
        }
        event();
    }

    void event() {
        looks_ = 0;
        raced_ &= ~(1u << thread_);
        if (at_event) at_event();
    }
    /// Before an access of the thread: another one may now change what it has loaded.
    void between() {
        if ((raced_ >> thread_ & 1) == 0) return;
        raced_ &= ~(1u << thread_);
        if (at_event) at_event();
    }

    /// Whether a store repeats what is there: an attempt to take a lock, say. It is left out,
    /// together with its fence, and counts as a look.
    bool repeats(event_kind kind, std::size_t offset, std::size_t bytes) {
        const trace_event* before = nullptr;
        for (std::size_t i = trace_.events.size(); i-- > 0 && before == nullptr;)
            if (trace_.events[i].kind != event_kind::fence) before = &trace_.events[i];
        repeated_ = before != nullptr && before->kind == kind && before->thread == thread_ &&
                    before->offset == offset && before->bytes == bytes && at_wait &&
                    std::memcmp(reported_.data() + offset, memory_.data() + offset, bytes) == 0;
        if (repeated_) looks_ += looks_max / 16;
        return repeated_;
    }

    void note_writer(std::size_t offset, std::size_t bytes) {
        if (writers_ == nullptr || !at_event) return;
        for (std::size_t w = offset / word_bytes; w <= (offset + bytes - 1) / word_bytes; ++w)
            (*writers_)[w] |= static_cast<std::uint8_t>(1u << thread_);
    }

    /// Code that is not built in trace mode stores unseen: memory shows its stores.
    void find_unreported() {
        if (unreported_ != none ||
            std::memcmp(memory_.data(), reported_.data(), memory_.size()) == 0)
            return;
        unreported_ = 0;
        while (memory_[unreported_] == reported_[unreported_]) ++unreported_;
    }

    static constexpr std::size_t none = ~std::size_t{0};
    std::span<std::byte> memory_;
    std::vector<std::byte> reported_; // the memory according to the reports
    std::size_t unreported_ = none;
    event_record trace_;
    shadow_trace shadows_;
    static inline event_record last_;
    std::uint8_t thread_ = 0;
    static constexpr unsigned looks_max = 100000;
    unsigned looks_ = 0;    // in a row, and nothing else
    unsigned raced_ = 0;    // threads that have loaded words that others change, a bit each
    bool repeated_ = false; // the store before was left out
    std::vector<std::uint8_t>* writers_ = nullptr;
    const std::vector<std::uint8_t>* racing_ = nullptr;
};

} // namespace hf::check
