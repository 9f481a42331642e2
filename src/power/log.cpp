// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/of_thread.hpp>
#include <power/log.hpp>
#include <power/noted_lines.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <sys/random.h>
#include <system_error>
#include <utility>
#include <vector>

namespace hf::power {
namespace {

/// A section's log has at most so many lines before it goes to the disk: 4 KiB, or a sixteenth of
/// the longest batch.
constexpr std::uint64_t cover_lines_max = 64, cover_part = 16;
/// A part of the longest batch that is worth a write of its own. Shorter batches, those of most
/// sections and groups, are one write.
constexpr std::uint64_t early_part = 8;
/// How far a segment may be ahead of the other one's way home at the beginning, as a part of the
/// segment; at the end it may not be ahead at all. The first piece of that way counts as so much,
/// until reading, checking and sorting show how many pieces there are.
constexpr double ahead_max = 0.25;
std::atomic<std::uint64_t> instances{0};

// For lines that a thread has noted in another log than its present one.
std::mutex logs_lock;
std::vector<log*>& logs() { // never destroyed: pools may outlive static destructors
    static auto* all = new std::vector<log*>;
    return *all;
}

status no_memory_for_checkpoint(const std::string& name) noexcept try {
    return {errc::io_error, name + ": io_error: out of memory for a checkpoint"};
} catch (const std::bad_alloc&) {
    return {errc::io_error,
            "out of memory"}; // short enough to need none, however often it is copied
}

} // namespace

/// Null if there is no memory for it.
log::noted_lines* log::mine() noexcept try {
    return &of_thread<noted_lines>::get();
} catch (const std::bad_alloc&) {
    return nullptr;
}

/// What this thread has noted in this log; null: nothing ever.
log::noted_lines* log::noted_here() const noexcept {
    noted_lines* const noted = of_thread<noted_lines>::look();
    return noted != nullptr && noted->instance == instance_ ? noted : nullptr;
}

log::log(std::string name) : name_(std::move(name)), instance_(++instances) {
    const std::scoped_lock held{logs_lock};
    logs().push_back(this);
}

log::~log() {
    {
        const std::scoped_lock held{logs_lock};
        std::erase(logs(), this);
    }
    stop_thread();
}

void log::hold_all() noexcept { logs_lock.lock(); }
void log::release_all() noexcept { logs_lock.unlock(); }
void log::forget_inherited() noexcept {
    logs().clear();
    if (noted_lines* const noted = of_thread<noted_lines>::look(); noted != nullptr)
        noted->forget();
}

void log::stop_thread() noexcept {
    if (!thread_.joinable()) return;
    {
        const std::scoped_lock held{checkpoint_lock_};
        stopping_ = true;
    }
    checkpoint_changed_.notify_all();
    thread_.join();
}

log_header log::sized_for(std::uint64_t pool_bytes) noexcept {
    // A checkpoint writes each page once, whatever the number of lines in it that changed: of a
    // large pool, where changes are far apart, long segments save most. A short one is written,
    // with zeros, sooner at an open.
    const std::uint64_t small = std::min<std::uint64_t>(pool_bytes / 4, 16ULL << 20);
    const std::uint64_t large = std::min<std::uint64_t>(pool_bytes / 16, 32ULL << 20);
    log_header h{};
    h.segment_bytes =
        std::max(round_down(std::max(small, large), segment_bytes_min), segment_bytes_min);
    h.batch_bytes_max = std::min<std::uint64_t>(1 << 20, h.segment_bytes / 4);
    return h;
}

void log::watch(const std::byte* base, const log_header& sizes) {
    HF_ASSERT(reinterpret_cast<std::uintptr_t>(base) % line_bytes == 0);
    base_ = base;
    open_ = std::make_unique<batch>(sizes.batch_bytes_max);
    spare_ = std::make_unique<batch>(sizes.batch_bytes_max);
    lines_max_ = open_->lines_max();
    pending_.resize(lines_max_);
    open_->start(1);
}

status log::start(block_file& file, block_file& home, const log_header& header, bool own_thread) {
    HF_ASSERT(file_ == nullptr && open_ != nullptr);
    header_ = header;
    header_.magic = log_magic;
    header_.version = log_version;
    header_.header_bytes = sizeof header_;
    header_.applied = 0;
    // Zero means no log.
    for (ssize_t got = 0; got != sizeof header_.salt || header_.salt == 0;) {
        got = ::getrandom(&header_.salt, sizeof header_.salt, 0);
        if (got < 0 && errno != EINTR)
            return {errc::io_error,
                    fmt::format("{}: io_error: getrandom: {}", name_, std::strerror(errno))};
    }
    file_ = &file;
    home_ = &home;
    // Both copies, one after the other: the older log's header must not come back.
    for (unsigned copy = 0; copy < header_copies; ++copy)
        if (status ok = write_header(); !ok.ok()) return ok;
    if (!own_thread) return {};
    try {
        thread_ = std::thread([this] { run_checkpoints(); });
    } catch (const std::system_error&) { // no more threads: the caller that needs the room makes it
    }
    return {};
}

status log::write_header() {
    header_.writes += 1;
    header_.checksum = header_checksum(header_);
    const std::uint64_t copy = header_.writes % header_copies;
    if (status ok = file_->write(copy * block_bytes, &header_, sizeof header_); !ok.ok()) return ok;
    return file_->sync();
}

void log::note(const void* address, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    const std::uintptr_t first = line_of(address);
    const std::uintptr_t end =
        round_up(reinterpret_cast<std::uintptr_t>(address) + bytes, line_bytes);
    noted_lines* const noted = mine();
    if (noted == nullptr) { // taken at once: a line may be written back as soon as it is flushed
        std::unique_lock held{lock_};
        return take(first, end, held);
    }
    if (noted->instance != instance_) {
        const std::scoped_lock held{logs_lock};
        for (log* other : logs())
            if (other->instance_ == noted->instance) other->take_noted(*noted);
        noted->forget();
        noted->instance = instance_;
    }
    if (runs_here()) {
        noted->of_section = true;
        if (put_off(first, end)) return;
    }
    if (noted->count != 0) {
        auto& last = noted->ranges[noted->count - 1];
        if (first >= last.first && first <= last.end) {
            last.end = std::max(last.end, end);
            return;
        }
    }
    if (noted->count == noted_lines::ranges_max) {
        if (runs_here())
            noted->more.insert(noted->more.end(), noted->ranges, noted->ranges + noted->count);
        else take_noted(*noted);
        noted->count = 0;
    }
    noted->ranges[noted->count++] = {first, end};
}

void log::take_noted(noted_lines& noted) noexcept {
    std::unique_lock held{lock_};
    noted.for_each([&](const noted_lines::range& r) { take(r.first, r.end, held); });
    noted.forget();
    take_pending_if_quiet(held);
    write_early();
}

/// Writes full blocks of the open batch, where enough have come together. Requires: lock_ held.
void log::write_early() {
    // The batch's place is known only when the one before it has been written, and only if room is
    // left for its longest form.
    if (file_ == nullptr || writing_ || !failed_.ok() ||
        next_in_segment_ + header_.batch_bytes_max > header_.segment_bytes)
        return;
    const batch::part part = open_->early(header_.batch_bytes_max / early_part);
    if (part.bytes.empty()) return;
    const std::uint64_t at = next_offset() + part.at;
    if (status ok = file_->write(at, part.bytes.data(), part.bytes.size()); !ok.ok()) {
        failed_ = ok; // upholds (4)
        written_.notify_all();
        return;
    }
    file_->start(at, part.bytes.size());
}

std::uint64_t log::next_offset() const noexcept {
    return segments_offset + segment_ * header_.segment_bytes + next_in_segment_;
}

/// Takes lines [first, end), in more than one batch if one has no room for them: lines that are
/// flushed and not yet fenced may survive in part. Requires: lock_ held.
void log::take(std::uintptr_t first, std::uintptr_t end, std::unique_lock<std::mutex>& held) {
    for (std::uintptr_t line = first; line < end; line += line_bytes) {
        const std::uint64_t number = number_of(line);
        const auto is_put_off = [&] { return !runners_.empty() || !pending_.empty(); };
        while (failed_.ok() && !is_put_off() &&
               !open_->take(number, reinterpret_cast<const std::byte*>(line)))
            make_room(held);
        if (is_put_off()) put_off(number, held);
    }
}

std::uint64_t log::number_of(std::uintptr_t line) const noexcept {
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    HF_ASSERT_SLOW(line >= base);
    return (line - base) / line_bytes;
}

/// The open batch is written, or another thread has written one. Requires: lock_ held, as it is
/// again on return.
void log::make_room(std::unique_lock<std::mutex>& held) {
    HF_ASSERT(file_ != nullptr); // what is stored before start() is little
    if (writing_) written_.wait(held);
    else write_open(held);
}

void log::order() noexcept {
    if (runs_here()) return; // (5)
    noted_lines* const noted = mine();
    if (noted != nullptr && noted->instance == instance_ && noted->count != 0) take_noted(*noted);
}

// Sections that run.

line_log::runner& log::runner_of(std::uint32_t lane) {
    const std::scoped_lock held{lock_};
    // What they may cover is half a batch at most, beside what is pending.
    const std::uint64_t runners_max = lines_max_ / 2 / cover_lines();
    const std::uint64_t wanted = std::min<std::uint64_t>(lane, runners_max - 1);
    while (runners_.size() <= wanted) runners_.emplace_back();
    runners_[wanted].shared = wanted == runners_max - 1;
    return runners_[wanted];
}

std::uint64_t log::cover_lines() const noexcept {
    return std::min(cover_lines_max, lines_max_ / cover_part);
}

std::uint64_t log::reserved_lines() const noexcept { return runners_.size() * cover_lines(); }

/// For so many more lines that are put off. Requires: lock_ held.
bool log::has_room(std::uint64_t lines) const noexcept {
    return pending_.size() + lines + reserved_lines() <= lines_max_;
}

/// Whether no section runs, but that one. Then none begins, either, until reopen(). Requires: lock_
/// held.
bool log::is_quiet(const runner* but) noexcept {
    if (runners_.size() == 1 && &runners_.front() == but) return true;
    closed_.store(true); // upholds line_log (3)
    for (const runner& r : runners_)
        if (&r != but && r.runs.load()) return reopen(), false;
    return true;
}
void log::reopen() noexcept { closed_.store(absorbing_, std::memory_order_release); }

/// Requires: lock_ held, no section runs, and the open batch has room.
void log::take_pending() noexcept {
    pending_.for_each([this](std::uint64_t number) {
        [[maybe_unused]] const bool taken = open_->take(number, base_ + number * line_bytes);
        HF_ASSERT(taken);
    });
    pending_.clear();
}

void log::take_pending_if_quiet(std::unique_lock<std::mutex>& held) {
    if (pending_.empty()) return;
    if (open_->room() >= pending_.size() && is_quiet(nullptr)) {
        take_pending();
        reopen();
    }
    if (pending_.size() > lines_max_ / 2 && !runs_here()) absorb(held);
}

/// Appends a line that is not taken before absorb(). Requires: lock_ held, as it is again on
/// return.
void log::put_off(std::uint64_t number, std::unique_lock<std::mutex>& held) {
    while (failed_.ok() && !runs_here() && pending_.size() + reserved_lines() >= lines_max_)
        absorb(held);
    if (failed_.ok()) pending_.add(number);
}

/// Appends lines [first, end) of a section that runs. False: there is no room.
bool log::put_off(std::uintptr_t first, std::uintptr_t end) noexcept {
    const std::scoped_lock held{lock_};
    if (!has_room((end - first) / line_bytes)) return false;
    for (std::uintptr_t line = first; failed_.ok() && line < end; line += line_bytes)
        pending_.add(number_of(line));
    return true;
}

/// Takes what is pending as soon as no section runs. Requires: this thread's does not; lock_ held,
/// as it is again on return.
void log::absorb(std::unique_lock<std::mutex>& held) {
    HF_ASSERT(!runs_here());
    if (absorbing_) return written_.wait(held);
    absorbing_ = true;
    for (;;) {
        if (!is_quiet(nullptr)) written_.wait(held);
        else if (failed_.ok() && open_->room() < pending_.size()) make_room(held);
        else break;
    }
    if (failed_.ok()) take_pending();
    absorbing_ = false;
    reopen();
    written_.notify_all();
    write_early();
}

void log::wait_until_open(runner& mine) noexcept {
    std::unique_lock held{lock_};
    while (absorbing_) {
        mine.runs.store(false);
        written_.notify_all();
        written_.wait(held, [this] { return !absorbing_; });
        mine.runs.store(true);
    }
}

bool log::end_section(runner& mine) noexcept {
    noted_lines* const noted = noted_here();
    const bool any = noted != nullptr && (noted->of_section || noted->count != 0);
    // Lines of others that wait for its end may lead to those that it has noted.
    if (any && hold_section(mine, 0)) {
        let_go(mine);
    } else {
        stop(mine);
        if (closed_.load()) [[unlikely]] { // somebody may wait for its end
            const std::scoped_lock held{lock_};
            written_.notify_all();
        }
        order();
        if (any) noted->of_section = false;
    }
    leave(mine);
    return any;
}

bool log::hold_section(runner& mine, std::uint64_t lines_max) noexcept {
    lock_.lock();
    if (const noted_lines* const noted = noted_here(); noted != nullptr)
        lines_max += noted->lines();
    at_once_ = open_->room() >= pending_.size() + lines_max && is_quiet(&mine);
    if (at_once_) return true;
    if (has_room(lines_max)) return true;
    lock_.unlock();
    return false;
}

void log::hold_cover() noexcept {
    lock_.lock();
    HF_ASSERT_SLOW(pending_.size() + cover_lines() <= lines_max_); // upholds (5)
}

void log::hold(std::uint64_t lines) noexcept {
    std::unique_lock held{lock_};
    HF_ASSERT(lines + reserved_lines() <= lines_max_);
    while (failed_.ok() && !has_room(lines)) absorb(held);
    held.release();
}

void log::append_range(std::uintptr_t first, std::uintptr_t end) noexcept {
    if (!failed_.ok()) return;
    for (std::uintptr_t line = first; line < end; line += line_bytes)
        if (!at_once_) pending_.add(number_of(line));
        else if (!open_->take(number_of(line), reinterpret_cast<const std::byte*>(line)))
            HF_ASSERT(false);
}

void log::add(const void* address, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    append_range(line_of(address), reinterpret_cast<std::uintptr_t>(address) + bytes);
}

void log::let_go() noexcept {
    std::unique_lock held{lock_, std::adopt_lock};
    if (pending_.size() < lines_max_ / early_part) return;
    take_pending_if_quiet(held);
    write_early();
}

void log::let_go(runner& mine) noexcept {
    std::unique_lock held{lock_, std::adopt_lock};
    noted_lines* const noted = noted_here();
    // hold_cover() has made no room for them: then the next order() takes them.
    if (noted != nullptr && (at_once_ || has_room(noted->lines()))) {
        noted->for_each([this](const noted_lines::range& r) { append_range(r.first, r.end); });
        noted->forget();
    }
    if (noted != nullptr) noted->of_section = false;
    stop(mine);
    if (absorbing_) written_.notify_all();
    if (std::exchange(at_once_, false)) {
        take_pending(); // not before its end: the section has stored to lines of others
        reopen();
        write_early();
    } else {
        take_pending_if_quiet(held);
    }
}

/// Requires: nobody writes; lock_ held, as it is again on return.
void log::write_open(std::unique_lock<std::mutex>& held) {
    HF_ASSERT_SLOW(!writing_ && !open_->empty());
    writing_ = true;
    std::swap(open_, spare_);
    batch& full = *spare_;
    open_->start(full.sequence() + 1);
    held.unlock();
    const status written = write(full);
    held.lock();
    writing_ = false;
    if (written.ok()) {
        durable_ = full.sequence();
        ++counts_.batches;
        counts_.batch_bytes += full.bytes();
    } else failed_ = written; // upholds (4)
    written_.notify_all();
}

status log::write(batch& full) {
    full.seal(header_.salt);
    HF_ASSERT(full.bytes() <= header_.segment_bytes);
    if (next_in_segment_ + full.bytes() > header_.segment_bytes) {
        if (status ok = next_segment(); !ok.ok()) return ok;
    } else {
        keep_pace();
    }
    for (auto part = full.to_write(0); !part.bytes.empty();
         part = full.to_write(part.at + part.bytes.size()))
        if (status ok = file_->write(next_offset() + part.at, part.bytes.data(), part.bytes.size());
            !ok.ok())
            return ok;
    if (status ok = file_->sync(); !ok.ok()) return ok; // upholds (2)
    next_in_segment_ += full.bytes();
    last_in_segment_ = full.sequence();
    return {};
}

/// Upholds (3). Requires: all of the segment is durable.
status log::next_segment() {
    std::unique_lock held{checkpoint_lock_};
    if (checkpoint_.due) ++waits_for_room_;
    checkpoint_changed_.wait(held, [this] { return !checkpoint_.due || !checkpoint_failed_.ok(); });
    if (!checkpoint_failed_.ok()) return checkpoint_failed_;
    checkpoint_ = {true, segment_, next_in_segment_, last_in_segment_, ahead_max};
    segment_ = (segment_ + 1) % segment_count;
    next_in_segment_ = 0;
    if (thread_.joinable()) {
        checkpoint_changed_.notify_all();
        return {};
    }
    const auto now = checkpoint_;
    held.unlock();
    const status done = bring_segment_home(now.segment, now.bytes, now.last);
    held.lock();
    checkpoint_failed_ = done;
    checkpoint_.due = false;
    return done;
}

/// If segments fill faster than they are brought home, somebody has to wait: every batch a little,
/// not one of many for all of a segment.
void log::keep_pace() {
    const double full =
        static_cast<double>(next_in_segment_) / static_cast<double>(header_.segment_bytes);
    std::unique_lock held{checkpoint_lock_};
    const auto in_time = [&] {
        return !checkpoint_.due || !checkpoint_failed_.ok() ||
               full <= ahead_max + (1 - ahead_max) * checkpoint_.next;
    };
    if (in_time()) return;
    ++waits_for_room_;
    checkpoint_changed_.wait(held, in_time);
}

void log::run_checkpoints() {
    std::unique_lock held{checkpoint_lock_};
    for (;;) {
        checkpoint_changed_.wait(held, [this] { return checkpoint_.due || stopping_; });
        if (stopping_) return;
        const auto now = checkpoint_;
        held.unlock();
        const status done = bring_segment_home(now.segment, now.bytes, now.last);
        held.lock();
        checkpoint_failed_ = done;
        checkpoint_.due = false;
        checkpoint_changed_.notify_all();
        if (!done.ok()) return;
    }
}

status log::bring_segment_home(unsigned segment, std::uint64_t bytes, std::uint64_t last) try {
    if (going_home_.content == nullptr)
        going_home_.content = std::make_unique_for_overwrite<std::byte[]>(header_.segment_bytes);
    std::byte* const content = going_home_.content.get();
    if (status ok = file_->read(segments_offset + segment * header_.segment_bytes, content, bytes);
        !ok.ok())
        return ok;
    std::vector<logged_line>& lines = going_home_.lines;
    lines.clear();
    for (std::uint64_t at = 0; at < bytes;) {
        const auto head = verified(content + at, bytes - at, header_);
        if (!head) // the device has lost its own writes
            return {errc::corrupt,
                    fmt::format("{}: corrupt: a batch of the log: expected a checksum that holds, "
                                "found another: the disk has lost what it had written",
                                name_)};
        for_each_line(content + at, *head, [&](const logged_line& line) { lines.push_back(line); });
        at += head->bytes;
    }
    const auto tell = [this](std::size_t pieces_home, std::size_t pieces) {
        const std::scoped_lock held{checkpoint_lock_};
        checkpoint_.next = static_cast<double>(pieces_home + 1) / static_cast<double>(pieces);
        checkpoint_changed_.notify_all();
    };
    if (status ok = going_home_.way.bring(*home_, lines, tell); !ok.ok()) return ok;
    header_.applied = last;
    home_bytes_ = going_home_.way.bytes_written();
    ++checkpoints_;
    return write_header();
} catch (const std::bad_alloc&) {
    return no_memory_for_checkpoint(name_);
}

status log::make_durable() {
    std::unique_lock held{lock_};
    while (failed_.ok() && !pending_.empty()) absorb(held);
    const std::uint64_t wanted = open_->empty() ? open_->sequence() - 1 : open_->sequence();
    while (failed_.ok() && durable_ < wanted) {
        if (writing_) written_.wait(held);
        else write_open(held);
    }
    return failed_;
}

void log::wait() noexcept {
    if (file_ == nullptr || runs_here())
        return; // what is stored before the pool is marked open is promised by that
    if (const status s = make_durable(); !s.ok())
        fatal(
            "%s; the process ends here: nothing is promised that is not on the disk, and the next "
            "open finds what is",
            s.what().c_str());
}

status log::finish() {
    if (file_ == nullptr) return {};
    if (status ok = make_durable(); !ok.ok()) return ok;
    stop_thread();
    const std::scoped_lock held{checkpoint_lock_};
    return checkpoint_failed_;
}

log_counts log::counts() const {
    const std::scoped_lock held{lock_};
    log_counts all = counts_;
    all.checkpoints = checkpoints_;
    all.waits_for_room = waits_for_room_;
    all.home_bytes = home_bytes_;
    return all;
}

} // namespace hf::power
