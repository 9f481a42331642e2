// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections of engine clobber: the begin record names the function and its arguments, inputs are
// logged before they are overwritten, and recovery runs a pending section again (re_execution.hpp).
//
// (1) An input is in the log, durably, before the section overwrites it: the compiler calls
//     hf_clobber_log.
// (2) The old bytes of everything else that is overwritten in place are in the log ahead of the
//     store, in program order and without a fence: only rolling back needs them (kept_bytes.hpp).
//     If the log has no room for them it records that.
// (3) A complete section may be run again until its mark is durable, with the same result. It
//     leaves the mark out if no other thread would depend on it (section/commit_marks.hpp, 2).
// (4) What a section reads from volatile memory is in the log before its first store
//     (hf::vlog_preserve).
// (5) Where order is kept the log is plain words (section/word_protocol.hpp), with the function and
//     its arguments in front, and nothing is durable by a fence. A section is pending from its
//     first entry on, or its first store in place; one that only reads leaves nothing.
#pragma once

#include <clobber/engine.hpp>
#include <log/logged_words.hpp>
#include <section/section_in.hpp>
#include <section/word_protocol.hpp>

#include <span>
#include <type_traits>

namespace hf::clobber {

class re_execution;

/// The protocol's part of a re-execution, in any medium.
class taken_up {
public:
    /// Goes on with a pending section, whose inputs are restored. 'first' has its log, and outlives
    /// it.
    virtual void take_up(const pending_section& from, re_execution& first) = 0;
    /// Ends it, durably.
    virtual void complete() = 0;
    /// Ends a section that was taken up and has stored nothing in place: it leaves no trace.
    /// 'untaken': blocks of its log that it has not come to.
    virtual void discard(std::span<const block> untaken) = 0;
    /// Keeps what the section has freed and starts write-back of its stores: it will be discarded.
    virtual void forsake() = 0;

protected:
    ~taken_up() = default;
};

template <class Medium>
using logging = std::conditional_t<Medium::keeps_order(), word_protocol, protocol_in<Medium>>;

template <class Medium>
class clobber_protocol final : public logging<Medium>, public taken_up {
public:
    static constexpr const engine_row& row = engine_rows::clobber;
    explicit clobber_protocol(section_in<Medium>& in) noexcept
        : logging<Medium>(in, row), how_(options_of(in.pool())) {}

    void begin(const hf_txfunc& function, const void* args);
    /// The same where the thread's next section can begin like its last one. False: it cannot.
    static bool begin_again(const hf_txfunc& function, const void* args) noexcept
        requires(Medium::keeps_order());
    void commit();

    void take_up(const pending_section& from, re_execution& first) override;
    void complete() override;
    void discard(std::span<const block> untaken) override;
    void forsake() override;

    void note(const void* address, std::uint64_t bytes) override;
    void* alloc(std::uint64_t bytes) override;
    void free(block b) override;
    const void* preserve(const void* volatile_bytes, std::uint64_t bytes) override;
    void give_up() override;
    void entered() const noexcept override;
    void stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) override;
    bool logged(std::uint64_t offset, std::uint64_t bytes) const noexcept override;

private:
    using logging<Medium>::in_;

    // These differ:
    void start_log(const hf_txfunc& function, const void* args);
    void go_on(const hf_txfunc& function, const pending_section& from);
    void end_discarded();
    bool has_stored() const;
    void log_preserved(const void* bytes, std::uint64_t count);
    void log_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes);
    bool already_logged(std::uint64_t offset, std::uint64_t bytes) const noexcept;
    std::uint64_t serial() const noexcept;

    void keep_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes);
    bool already_kept(std::uint64_t offset, std::uint64_t bytes);

    const options& how_;       // of the pool's engine
    bool keeping_ = false;     // what is overwritten (2)
    logged_words overwritten_; // as records say
    kept_ranges overwritten_long_;
    re_execution* first_ = nullptr; // the first run's log, for a section that runs again
};

} // namespace hf::clobber
