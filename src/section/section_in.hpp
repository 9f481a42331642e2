// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engines make a section's protocol of these steps, compiled for each kind of medium
// (pool/medium.hpp). The few that differ are written twice, below: a section in an ordered medium
// notes no lines, flushes nothing and leaves no mark out. An engine whose protocol differs as well
// writes that class twice, too. A call of the compiler's chooses once, where it enters
// (with_protocol), and nothing behind it asks.
#pragma once

#include <log/flush_set.hpp>
#include <log/lane.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <type_traits>
#include <utility>

namespace hf {

/// What a section's begin record says, and the records behind it.
struct log_start {
    const void* payload = nullptr; // behind begin_payload
    std::uint64_t payload_bytes = 0;
    bool arguments = false;   // the payload is the function's packed arguments
    std::uint16_t floats = 0; // the floating-point environment in which the function may run again
    bool staged = true;       // name the blocks that are staged
    bool sums = false;        // and the sums of what is filled in
};

template <class Medium> class section_in final : public section {
public:
    section_in(hf::pool::impl& pool, std::uint32_t lane, thread_cache& cache, std::mutex* turns)
        : section(pool, lane, cache, turns), pm_(medium_), log_(pm_) {}

    // What engines log and note.
    /// A store comes that needs no log. 'ahead(offset)' runs first unless it goes to fresh memory.
    template <class Ahead>
    void note_store(const void* address, std::uint64_t bytes, Ahead&& ahead);
    void note_store(const void* address, std::uint64_t bytes) {
        note_store(address, bytes, [](std::uint64_t) {});
    }
    /// The old bytes are in the log, durable, when it returns; also notes the store.
    void log_old_bytes(const void* address, std::uint64_t bytes);
    /// The old bytes are in the log, and durable before the section's next store in place. The
    /// section will store to each of these bytes, and to one of them next. Notes nothing.
    void log_ahead(const void* address, std::uint64_t bytes);
    /// A store comes, and nothing has to be done before it.
    void will_store(const void* address, std::uint64_t bytes);

    // The steps of an engine's protocol, in their order.
    /// The protocol of an engine, here; made when it is first asked for. Throws std::bad_alloc.
    template <class Protocol> Protocol& of() {
        if (protocol_ != nullptr && &protocol_->engine() == &Protocol::row) [[likely]]
            return static_cast<Protocol&>(*protocol_);
        for (const auto& p : protocols_)
            if (&p->engine() == &Protocol::row) return static_cast<Protocol&>(*p);
        protocols_.push_back(std::make_unique<Protocol>(*this));
        return static_cast<Protocol&>(*protocols_.back());
    }
    /// The lane's next section begins, and is open on this thread. 'as_it_goes': what it will store
    /// is not known before it does.
    void begin(protocol& by, const hf_txfunc& function, bool as_it_goes = true);
    /// Its begin record is appended.
    void start_log(const log_start& what);
    void append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                const void* payload = nullptr);
    /// The log goes on in a block of the heap. False: there is no room.
    bool extend_if_room(std::uint64_t payload_bytes, purpose what);
    /// A block for so many bytes of a log; offset 0: there is no room. The block is only ever
    /// reserved: the log that lives in it names it, so nothing leaks whenever a crash comes.
    block reserve_segment(std::uint64_t bytes, purpose what = purpose::log);
    void before_in_place_store() {
        if (unfenced_) fence(); // upholds section.hpp (1)
    }
    void fence();
    /// Its blocks change hands (section.hpp, 2).
    void publish_blocks();
    /// The same, with an ordering point between chunks' entries and blocks' bits: others may make
    /// any line durable meanwhile, and no log with checks says what may be missing.
    void publish_blocks_apart()
        requires(!Medium::keeps_order());
    /// An ordering point, if the section has stored anything.
    void make_stores_durable();
    /// Those blocks it no longer needs wait for its mark.
    void settle_blocks();
    /// Its mark is durable when it returns, and nothing of it waits for that any more.
    void store_mark();
    /// All of these, and no mark is left out.
    void commit();

    // The same of a medium that loses what is not fenced.
    /// A fence behind a log that may be replayed (commit_marks.hpp, 3).
    void fence_log()
        requires(!Medium::keeps_order())
    {
        pm_.fence();
        unfenced_ = false;
        marks_.log_fenced();
    }
    /// Whether the lane allows that the mark is left out.
    bool may_leave_mark() const noexcept
        requires(!Medium::keeps_order())
    {
        return turns_ == nullptr;
    }
    /// Tells the next section, and other threads, what is left to the next fence, and what the log
    /// stands for (commit_marks.hpp, 3). 'named': so many of the lines are no allocator's.
    void leave_stores(std::size_t named)
        requires(!Medium::keeps_order());
    /// Tells other threads of what memory the log has sums (commit_marks.hpp, 5).
    void leave_sums()
        requires(!Medium::keeps_order());

    /// go_on(), and its log as well, where it ends.
    void take_up(protocol& by, const hf_txfunc& function, const pending_section& from)
        requires(!Medium::keeps_order());

    Medium medium() const noexcept { return pm_; }
    lane_writer_in<Medium>& log() noexcept { return log_; }
    auto& dirty() noexcept { return dirty_; }

private:
    bool extend(std::uint64_t payload_bytes);
    void append_prepared(std::size_t sums);
    void append_old_bytes(const void* address, std::uint64_t offset, std::uint64_t bytes);
    // These differ:
    void settle_before(const protocol& by, bool as_it_goes);
    void before_noted_store();

    [[no_unique_address]] Medium pm_;
    lane_writer_in<Medium> log_;
    std::conditional_t<Medium::keeps_order(), no_lines, flush_set> dirty_;
};

// Ordered: what is there is a prefix of what was stored, so that a compiler's fence keeps
// section.hpp (1) and (2).

template <>
inline void section_in<ordered_medium>::settle_before(const protocol&, bool /*as_it_goes*/) {
    HF_ASSERT_SLOW(!marks_.due());
}
template <> inline void section_in<ordered_medium>::before_noted_store() {}
template <> inline void section_in<ordered_medium>::fence() {
    pm_.fence();
    unfenced_ = false;
}
template <> inline void section_in<ordered_medium>::store_mark() { marks_.store_in_order(epoch_); }

// Fenced.

template <>
inline void section_in<fenced_medium>::settle_before(const protocol& by, bool as_it_goes) {
    // What is left to the next log of an engine is left to no other's (commit_marks.hpp, 3).
    if (protocol_ != &by && marks_.stores_left()) settle_mark();
    // The section before stored nothing and so never fenced: its begin record must be durable
    // before the one before that, whose mark it stands for, is overwritten. Its own mark stays due.
    if (unfenced_ && marks_.due()) pm_.fence();
    marks_.settle_others(as_it_goes);
}
template <> inline void section_in<fenced_medium>::fence() {
    pm_.fence();
    unfenced_ = false;
    marks_.fenced();
}
template <> inline void section_in<fenced_medium>::before_noted_store() {
    if (unfenced_) fence(); // upholds section.hpp (1)
}
template <> inline void section_in<fenced_medium>::store_mark() {
    marks_.store(epoch_);
    unfenced_ = false;
}

template <class Medium>
template <class Ahead>
inline void section_in<Medium>::note_store(const void* address, std::uint64_t bytes,
                                           Ahead&& ahead) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (prepared_.in_filled(offset, bytes)) [[unlikely]] // upholds section.hpp (3)
        return log_old_bytes(address, bytes);
    if (!fresh(offset)) {
        ahead(offset);
        before_noted_store();
    }
    will_store(address, bytes);
}

template <class Medium>
inline void section_in<Medium>::will_store(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(bytes != 0);
    HF_ASSERT_SLOW(pool_->contains(address));
    stored_ = true;
    persist::thread_counters().pm_bytes += bytes;
    trace::announce(trace::store, address, bytes);
    // To be flushed, and looked at by other threads (commit_marks.hpp, 4).
    dirty_.add(address, bytes);
}

extern template class section_in<ordered_medium>;
extern template class section_in<fenced_medium>;

/// What a protocol does where its engine logs old bytes, and rolls back.
template <class Medium> class protocol_in : public protocol {
public:
    protocol_in(section_in<Medium>& in, const engine_row& of) noexcept
        : protocol(in, of), in_(in) {}

    void note(const void* address, std::uint64_t bytes) override { in_.note_store(address, bytes); }
    /// The old bytes are in the log, durably, when it returns.
    void log(const void* address, std::uint64_t bytes) { in_.log_old_bytes(address, bytes); }
    void log_ahead(const void* address, std::uint64_t bytes) override {
        in_.log_ahead(address, bytes);
    }
    void overwrite(const void* address, std::uint64_t bytes) override { log(address, bytes); }
    void* alloc(std::uint64_t bytes) override;
    void free(block b) override;

protected:
    section_in<Medium>& in_;
};

extern template class protocol_in<ordered_medium>;
extern template class protocol_in<fenced_medium>;

/// Whether the engine has a protocol of its own in batched media, on the steps for fenced ones.
template <template <class> class Protocol> inline constexpr bool works_in_batches = false;

/// Calls 'step' with the section as its kind of medium has it.
template <class Step> decltype(auto) with_section(section& s, Step&& step) {
    if (s.keeps_order()) return step(static_cast<section_in<ordered_medium>&>(s));
    return step(static_cast<section_in<fenced_medium>&>(s));
}
/// Calls 'step' with the protocol of the section that is open on this thread. Requires: it is of
/// that engine.
template <template <class> class Protocol, class Step> decltype(auto) with_protocol(Step&& step) {
    HF_ASSERT_SLOW(current_section != nullptr);
    section& open = *current_section;
    if (open.keeps_order()) return step(open.as<Protocol<ordered_medium>>());
    if constexpr (works_in_batches<Protocol>)
        if (open.medium().loses_batches()) return step(open.as<Protocol<batched_medium>>());
    return step(open.as<Protocol<fenced_medium>>());
}

// What an engine's entry points do (holdfast_abi.h).
/// Begins a section. False: one is open, and the function is a part of it.
template <template <class> class Protocol>
bool begin_section(const hf_txfunc& function, const void* args) {
    section* const opened = open_section(Protocol<ordered_medium>::row, function, args);
    if (opened == nullptr) return false;
    with_section(*opened, [&]<class Medium>(section_in<Medium>& in) {
        if constexpr (works_in_batches<Protocol> && !Medium::keeps_order())
            if (in.medium().loses_batches())
                return in.template of<Protocol<batched_medium>>().begin(function, args);
        in.template of<Protocol<Medium>>().begin(function, args);
    });
    return true;
}
/// What hf_NAME_begin returns where the section cannot begin like the last one of its thread. It is
/// apart, as commit_section is, so that what is nearly always enough saves no registers.
template <template <class> class Protocol>
[[gnu::noinline]] int begin_apart(const hf_txfunc& function, const void* args,
                                  const char* call) noexcept {
    return without_exceptions(call, [&] { return int{begin_section<Protocol>(function, args)}; });
}
template <template <class> class Protocol>
void log_store(const char* call, const void* address, std::uint64_t bytes) noexcept {
    if (section::is_known_fresh(address)) return current_section->store_to_own(address, bytes);
    if (current_section->surely_outside(address)) return;
    without_exceptions(call,
                       [&] { with_protocol<Protocol>([&](auto& p) { p.log(address, bytes); }); });
}
template <template <class> class Protocol>
void note_store(const char* call, const void* address, std::uint64_t bytes) noexcept {
    if (section::is_known_fresh(address)) return current_section->store_to_own(address, bytes);
    without_exceptions(call,
                       [&] { with_protocol<Protocol>([&](auto& p) { p.note(address, bytes); }); });
}
/// Ends the section that is open on this thread.
template <template <class> class Protocol>
[[gnu::noinline]] void commit_section(const char* call) noexcept {
    without_exceptions(call, [] { with_protocol<Protocol>([](auto& p) { p.commit(); }); });
    leave_section();
}

} // namespace hf
