// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of an open pool in mode power: what line_log promises, on a file.
//
// (1) order() takes lines under one lock, so batches are in the order of line_log (1); a batch is
//     in the log whole or not at all.
// (2) One thread at a time writes: the open batch becomes the written one, and other threads' lines
//     go to the next. It is durable before another is written, and no caller is promised more than
//     is durable. Full blocks of the open batch may be written while it grows, at their final
//     place: without its head they are as torn as after a failure in its write.
// (3) A thread of the log's own brings a full segment home, while the other one is written: home is
//     durable before the header says so, and the header before the segment is overwritten. Until
//     then a thread that needs the segment waits.
// (4) After an error nothing is written and nothing promised any more: a failed write, and above
//     all a failed sync, may have left anything. The next open judges what it finds.
// (5) Where sections run (line_log.hpp, 3), an appended line is pending, once, until it is taken.
//     All pending lines are taken together, while no section runs. So a batch may be written at any
//     moment as it stands. The pending lines fit a batch, with those that running sections may yet
//     cover.
//
// Source: SIMPO §3 for the log between memory and storage. Differs: lines, not operations; and one
//         copy at home, since a line that a failure tears there is whole in the log.
#pragma once

#include <persist/line_log.hpp>
#include <power/batch.hpp>
#include <power/block_file.hpp>
#include <power/found_log.hpp>
#include <power/home.hpp>
#include <power/pending_lines.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hf::power {

/// The log's work since it was opened.
struct log_counts {
    std::uint64_t batches = 0;        // each one write and one sync
    std::uint64_t batch_bytes = 0;    // written to the log
    std::uint64_t checkpoints = 0;    // segments brought home
    std::uint64_t waits_for_room = 0; // of a writer, for a segment or a piece of it to be home
    std::uint64_t home_bytes = 0;     // written to the pool's file by checkpoints
};

class log final : public line_log {
public:
    /// 'name' is for messages. Until start() it takes lines, and keeps them. Throws std::bad_alloc.
    explicit log(std::string name);
    ~log();
    log(const log&) = delete;
    log& operator=(const log&) = delete;

    /// Sizes for a pool that is created with so many bytes.
    static log_header sized_for(std::uint64_t pool_bytes) noexcept;
    /// Requires, before any line is taken: the pool's image, which begins at a multiple of a line.
    void watch(const std::byte* base, const log_header& sizes);
    /// Begins a new log in a file of file_bytes(header) bytes. On return its header is durable, and
    /// whatever the file held before is void. 'header': uuid, generation, sizes, and the writes of
    /// the last header there. Requires: the contents of the last log are durable at home.
    /// 'own_thread': a thread of its own makes checkpoints; otherwise the caller that needs the
    /// room makes them (the crash model).
    status start(block_file& file, block_file& home, const log_header& header, bool own_thread);

    void note(const void* address, std::size_t bytes) noexcept override;
    void order() noexcept override;
    void wait() noexcept override;
    runner& runner_of(std::uint32_t lane) override;
    std::uint64_t cover_lines() const noexcept override;
    bool end_section(runner& mine) noexcept override;
    bool hold_section(runner& mine, std::uint64_t lines_max) noexcept override;
    void hold_cover() noexcept override;
    void hold(std::uint64_t lines) noexcept override;
    void add(const void* address, std::size_t bytes) noexcept override;
    void let_go() noexcept override;
    void let_go(runner& mine) noexcept override;
    /// wait(), for a caller that can report a failure.
    status make_durable();
    /// Everything that was ordered is durable, and the log's thread has ended. No line is taken any
    /// more.
    status finish();
    log_counts counts() const;
    /// Around fork(), for all logs. The child cannot use them: its thread's notes there belong to
    /// the parent.
    static void hold_all() noexcept;
    static void release_all() noexcept;
    static void forget_inherited() noexcept;
    /// Chosen by start().
    std::uint64_t salt() const noexcept { return header_.salt; }

private:
    struct noted_lines;
    static noted_lines* mine() noexcept;
    noted_lines* noted_here() const noexcept;
    void take_noted(noted_lines& noted) noexcept;
    void take(std::uintptr_t first, std::uintptr_t end, std::unique_lock<std::mutex>& held);
    std::uint64_t number_of(std::uintptr_t line) const noexcept;
    void put_off(std::uint64_t number, std::unique_lock<std::mutex>& held);
    bool put_off(std::uintptr_t first, std::uintptr_t end) noexcept;
    void append_range(std::uintptr_t first, std::uintptr_t end) noexcept;
    std::uint64_t reserved_lines() const noexcept;
    bool has_room(std::uint64_t lines) const noexcept;
    bool is_quiet(const runner* but) noexcept;
    void reopen() noexcept;
    void take_pending() noexcept;
    void take_pending_if_quiet(std::unique_lock<std::mutex>& held);
    void absorb(std::unique_lock<std::mutex>& held);
    void wait_until_open(runner& mine) noexcept override;
    void make_room(std::unique_lock<std::mutex>& held);
    void write_early();
    void write_open(std::unique_lock<std::mutex>& held);
    status write(batch& full);
    std::uint64_t next_offset() const noexcept;
    status next_segment();
    void keep_pace();
    status bring_segment_home(unsigned segment, std::uint64_t bytes, std::uint64_t last);
    status write_header();
    void run_checkpoints();
    void stop_thread() noexcept;

    const std::string name_;
    const std::uint64_t instance_;
    const std::byte* base_ = nullptr;
    block_file* file_ = nullptr;
    block_file* home_ = nullptr;
    log_header header_{};
    std::uint64_t lines_max_ = 0; // of a batch

    mutable std::mutex lock_; // of what follows
    std::condition_variable written_;
    std::unique_ptr<batch> open_, spare_;
    pending_lines pending_; // (5)
    std::deque<runner> runners_;
    bool absorbing_ = false; // a thread waits for sections to end, or writes to make room
    bool at_once_ = false;   // what add() appends is taken: no other section runs
    bool writing_ = false;
    std::uint64_t durable_ = 0; // number of a batch
    status failed_;
    log_counts counts_;
    std::atomic<std::uint64_t> checkpoints_{0}, waits_for_room_{0}, home_bytes_{0};

    // For the thread that writes; while none writes, for the lock's holder.
    unsigned segment_ = 0;
    std::uint64_t next_in_segment_ = 0;
    std::uint64_t last_in_segment_ = 0; // number of its last batch

    // Between that one and the checkpoints' thread.
    std::mutex checkpoint_lock_;
    std::condition_variable checkpoint_changed_;
    struct {
        bool due = false;
        unsigned segment = 0;
        std::uint64_t bytes = 0, last = 0;
        double next = 0; // which part of it is home with the next sync
    } checkpoint_;
    bool stopping_ = false;
    status checkpoint_failed_;
    std::thread thread_;

    // For the thread that makes a checkpoint; kept, because fresh memory for each costs more than
    // its use.
    struct {
        std::unique_ptr<std::byte[]> content;
        std::vector<logged_line> lines;
        way_home way;
    } going_home_;
};

} // namespace hf::power
