// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a process has left of an object: whether it can be used, and the calls that are made again.
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/core.hpp>
#include <simpo/functions.hpp>

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace hf::simpo {

namespace {

object_head& head_at(const pool::impl& in, std::uint64_t offset) {
    return *static_cast<object_head*>(in.at(offset));
}
const std::byte* log_at(const object_head& h) {
    return reinterpret_cast<const std::byte*>(&h) + layout_of(h).log_offset;
}

/// The part of a log that counts, and that this build can replay.
struct found_log {
    position end; // of the last group with known functions only
    std::uint32_t groups = 0;
    std::string unknown;             // why the group behind has unknown ones; empty: no group
    std::optional<position> damaged; // the place of a lost record before committed groups
};

found_log read_log(const object_head& h) {
    found_log found{position_of(h.resilient), 0, {}, {}};
    const position limit = found.end + h.log_lines;
    const auto read = [&](position p, record& r) {
        return p < limit && log_array::read(log_at(h), h, h.logged, p, r);
    };
    record r;
    std::string unknown;
    position p = found.end;
    while (read(p, r)) {
        p += r.lines();
        if (r.head.kind == 0 || r.head.kind > record_kind_last)
            unknown = fmt::format("a record of kind {}", r.head.kind);
        if (r.head.function != 0 && unknown.empty()) (void)find_function(h, r.head, &unknown);
        if (!ends_group(r.head.kind)) continue;
        if (found.unknown = unknown; !unknown.empty()) break;
        found.end = p;
        ++found.groups;
    }
    if (!found.unknown.empty()) return found;
    // A group's end is written when the one before it is durable, and all that lies before that.
    unsigned ends = found.end < h.logged ? 2 : 0; // and 'logged' behind a group's end
    for (position behind = p + 1; behind < limit && ends < 2; ++behind)
        ends += read(behind, r) && ends_group(r.head.kind);
    if (ends == 2) found.damaged = p;
    return found;
}

std::string damage_in(const pool::impl& in, const object_head& h, const found_log& found) {
    const std::uint64_t line = *found.damaged & (h.log_lines - 1);
    return fmt::format(
        "the record at offset {:#x} of its log: expected one that verifies, found damage, and "
        "committed calls behind it",
        in.offset_of(log_at(h) + line * line_bytes));
}

bool zero_ended(const char (&text)[text_bytes_max + 1]) {
    return text[0] != 0 && text[text_bytes_max] == 0;
}

} // namespace

block block_of(const pool::impl& in, std::uint64_t offset) {
    return {offset, rounded_to_lines(in.blocks.durable(), block_bytes_of(head_at(in, offset)))};
}

const char* wrong_in(const object_head& h) noexcept {
    if (h.magic != object_magic && !is_swapped(h))
        return "its head: expected an object's magic number, found another";
    if (h.check != head_check(h)) return "its head: expected a checksum that holds, found another";
    const std::uint64_t log_bytes = h.log_lines * line_bytes;
    if (h.object_bytes == 0 || h.object_bytes > object_bytes_max ||
        !std::has_single_bit(h.log_lines) || h.log_lines > log_bytes_max / line_bytes ||
        log_bytes < log_bytes_min || !zero_ended(h.class_text) || !zero_ended(h.name) ||
        !callers_of(h).valid())
        return "its head: expected sizes and texts in bounds, found others";
    if (is_swapped(h) && h.file == 0)
        return "its head: expected a file, as it is swapped out, found none";
    return nullptr;
}

status check_head(const pool::impl& in, std::uint64_t offset) {
    const auto wrong = [&](const char* what) {
        return corrupt(*in.file, fmt::format("the object at offset {:#x}: {}", offset, what));
    };
    const heap& blocks = in.blocks.durable();
    if (offset % line_bytes != 0 || !blocks.covers(offset, sizeof(object_head)))
        return wrong("expected it in a block of the heap, found it elsewhere");
    const object_head& h = head_at(in, offset);
    if (const char* const what = wrong_in(h)) return wrong(what);
    if (!blocks.well_formed(block_of(in, offset)))
        return wrong("expected a block of its size, found none that fits there");
    if (rounded_to_lines(blocks, layout_of(h).block_bytes) ==
        0) // nor, swapped out, where it came from
        return wrong("its head: expected a size that the pool may have, found a larger one");
    if (!index_holds(h.resilient, h.salt))
        return wrong("its resilient index: expected one that verifies, found another");
    if (h.logged > position_of(h.resilient) + h.log_lines)
        return wrong("its head: expected as much logged as its log holds, found more");
    return {};
}

status check_copy(const pool::impl& in, std::uint64_t offset) {
    const object_head& h = head_at(in, offset);
    if (is_swapped(h)) return {}; // checked when it comes back
    const object_layout parts = layout_of(h);
    const unsigned which = copy_of(h.resilient);
    const auto* const copy = reinterpret_cast<const std::byte*>(&h) + parts.copy_offset(which);
    if (h.copy_checks[which] != copy_check(h, copy, parts.copy_bytes))
        return corrupt(
            *in.file,
            fmt::format(
                "the object at offset {:#x}: its copy: expected a checksum that holds, found "
                "another",
                offset));
    return {};
}

status check_log(const pool::impl& in, std::uint64_t offset) {
    const object_head& h = head_at(in, offset);
    if (is_swapped(h)) return {}; // it has none
    const found_log found = read_log(h);
    if (found.damaged && !in.salvage)
        return corrupt(*in.file,
                       fmt::format("object \"{}\" of class {}: {}; to give these up, open the "
                                   "pool with salvage",
                                   h.name, h.class_text, damage_in(in, h, found)));
    if (found.unknown.empty() || in.recovery == recovery_policy::roll_back) return {};
    return refusal(
        in.file->path(), errc::function_changed,
        fmt::format(
            "object \"{}\" of class {}: its log: expected functions of this build, found {}{}",
            h.name, h.class_text, found.unknown, ways_out(*in.file)));
}

status check_history(const pool::impl& in, std::uint64_t offset) {
    const object_head& h = head_at(in, offset);
    const os_file* const pool = in.file->own_file();
    if (h.history == 0 || is_swapped(h) || in.file->read_only() || pool == nullptr) return {};
    history_file its(pool->full_path(), h);
    if (status s = its.find_end(*pool); !s.ok()) return s;
    const position from = position_of(h.resilient);
    const position to = in.file->was_clean() ? from : read_log(h).end;
    if (its.end() >= from && its.end() <= to) return {};
    if (its.end() == to + h.log_lines && !in.file->was_clean()) return {}; // upholds (4) of it
    return refusal(
        its.path(), errc::corrupt,
        fmt::format("the history of object \"{}\": expected the calls up to position {}, "
                    "or up to {}, as the pool has them; found those up to {}: one of the "
                    "two is of another state",
                    h.name, from, to, its.end()));
}

namespace detail {

status core::recover(engine_recovery& done) {
    resilient_ = copy_of(head_->resilient);
    std::memcpy(working_.get(), copy(resilient_), layout_.copy_bytes);
    if (pool_->file->was_clean()) {
        durable_ = {true, true};
        return recover_history(position_of(head_->resilient), position_of(head_->resilient));
    }
    durable_[resilient_] = true;
    const found_log found = read_log(*head_);
    if (!found.unknown.empty()) // by the policy: check_log refuses
        pool_->file->warn(
            fmt::format("{}: rolled back: object \"{}\" is as it was before a call of {}",
                        pool_->file->path(), head_->name, found.unknown));
    if (found.damaged)
        pool_->file->warn(fmt::format("{}: salvaged: object \"{}\": {}: these calls are given up",
                                      pool_->file->path(), head_->name,
                                      damage_in(*pool_, *head_, found)));
    replay(found.end);
    const position anew = found.end + head_->log_lines; // upholds (4)
    if (pool_->file->read_only()) left_ = {position_of(head_->resilient), found.end};
    if (status s = recover_history(found.end, anew); !s.ok()) return s;
    if (found.groups != 0) {
        write_copy(1 - resilient_);
        resilient_ = 1 - resilient_;
    }
    // After a kill the index may be stored and not durable. Then no group is behind it, and nothing
    // that an older index needs was written before this makes it durable.
    store_resilient(anew, resilient_);
    if (pool_->salvage) log_.erase();
    log_.start_at(anew);
    done.sections_pending += found.groups;
    done[recovery_verb::replay] += found.groups;
    return {};
}

/// The history has the calls below 'end', and goes on at 'anew' with the object.
status core::recover_history(position end, position anew) {
    if (history_ == nullptr || pool_->file->read_only()) return {};
    status s = check_history(*pool_, pool_->offset_of(head_));
    if (s.ok()) s = history_->find_end(*pool_->file->own_file());
    if (s.ok()) {
        // What was logged before a kill may have reached the caches alone.
        pm().flush(log_at(*head_), head_->log_lines * line_bytes);
        pm().flush(&head_->logged, word_bytes);
        pm().fence(); // upholds (3) of the history
        pm().promise();
        s = keep_calls(end, anew);
    }
    if (s.ok() || !pool_->salvage) return s;
    pool_->file->warn(fmt::format("{}: salvaged: the history of object \"{}\" ends, and its file "
                                  "stays as it is: {}",
                                  pool_->file->path(), head_->name, s.what()));
    pm().store_word(&head_->history, 0);
    pm().fence();
    history_.reset();
    return {};
}

/// Makes the calls again that are in the log behind the resilient copy, and below 'end'.
void core::replay(position end) {
    record r;
    for (position p = position_of(head_->resilient); p < end; p += r.lines()) {
        const bool read = log_array::read(log_at(*head_), *head_, head_->logged, p, r);
        HF_ASSERT(read); // as read_log did
        const function* const f = r.head.function == 0 ? nullptr : find_function(*head_, r.head);
        make_call(working_.get(), *head_, r, f);
    }
}

} // namespace detail
} // namespace hf::simpo
