// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <power/found_log.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::power {

result<header_state> read_header(const block_file& file, log_header& out) {
    auto best = header_state::foreign;
    for (std::uint64_t copy = 0; copy < header_copies; ++copy) {
        log_header h;
        if (status ok = file.read(copy * block_bytes, &h, sizeof h); !ok.ok()) return ok;
        if (h.magic != log_magic) continue;
        if (header_checksum(h) != h.checksum) {
            if (best == header_state::foreign) best = header_state::damaged;
        } else if (best != header_state::valid || h.writes > out.writes) {
            best = header_state::valid;
            out = h;
        }
    }
    return best;
}

std::string numbers_wrong(const log_header& h, std::uint64_t size_bytes) {
    const auto wrong = [](const char* field, std::uint64_t found, std::uint64_t low,
                          std::uint64_t high) {
        return fmt::format("header field {}: expected {} to {}, found {}", field, low, high, found);
    };
    if (h.header_bytes != sizeof h)
        return wrong("header_bytes", h.header_bytes, sizeof h, sizeof h);
    if (h.segment_bytes < segment_bytes_min || h.segment_bytes > segment_bytes_max ||
        h.segment_bytes % block_bytes != 0)
        return wrong("segment_bytes", h.segment_bytes, segment_bytes_min, segment_bytes_max);
    if (h.batch_bytes_max < block_bytes || h.batch_bytes_max > h.segment_bytes ||
        h.batch_bytes_max % block_bytes != 0)
        return wrong("batch_bytes_max", h.batch_bytes_max, block_bytes, h.segment_bytes);
    constexpr std::uint64_t counter_max = UINT64_MAX >> 1;
    if (h.applied > counter_max) return wrong("applied", h.applied, 0, counter_max);
    if (h.writes > counter_max) return wrong("writes", h.writes, 0, counter_max);
    if (size_bytes < file_bytes(h))
        return fmt::format("expected {} bytes, found {}", file_bytes(h), size_bytes);
    return {};
}

std::optional<batch_head> verified(const std::byte* at, std::uint64_t room,
                                   const log_header& of) noexcept {
    batch_head head;
    if (room < sizeof head) return {};
    std::memcpy(&head, at, sizeof head);
    if (head.magic != batch_magic || head.salt != of.salt || head.sequence == 0) return {};
    if (head.bytes > room || head.bytes > of.batch_bytes_max || head.bytes < block_bytes ||
        head.lines == 0 || head.lines > lines_in(head.bytes) ||
        head.bytes != batch_bytes(head.lines))
        return {};
    if (batch_checksum(at, head) != head.checksum) return {};
    return head;
}

/// Empty, or what is damaged.
std::string found_log::read_run(const block_file& file, unsigned segment, const owner& whose,
                                run& out) {
    out.bytes.resize(header_.segment_bytes);
    if (status ok = file.read(segments_offset + segment * header_.segment_bytes, out.bytes.data(),
                              out.bytes.size());
        !ok.ok())
        return std::string(ok.what());
    std::string wrong;
    for (;;) {
        const auto head = verified(out.bytes.data() + out.end, out.bytes.size() - out.end, header_);
        if (!head || (out.last != 0 && head->sequence != out.last + 1)) return wrong;
        if (out.first == 0) out.first = head->sequence;
        for_each_line(out.bytes.data() + out.end, *head, [&](const logged_line& line) {
            if (line.number < whose.first_line || line.number >= whose.end_line)
                wrong = fmt::format("batch {}: expected a line from {} to {}, found {}",
                                    head->sequence, whose.first_line, whose.end_line, line.number);
        });
        if (!wrong.empty()) return wrong;
        out.last = head->sequence;
        out.end += head->bytes;
    }
}

/// Upholds (1).
std::string found_log::put_together() {
    last_ = header_.applied;
    std::vector<const run*> live;
    for (const run& r : runs_)
        if (r.last > header_.applied) live.push_back(&r);
    std::ranges::sort(live, {}, [](const run* r) { return r->first; });
    for (const run* r : live) {
        if (r->first > last_ + 1 || (r != live.front() && r->first != last_ + 1))
            return fmt::format("expected batch {}, found {}: what is between them is damaged",
                               last_ + 1, r->first);
        for (std::uint64_t at = 0; at < r->end;) {
            const std::byte* const bytes = r->bytes.data() + at;
            batch_head head;
            std::memcpy(&head, bytes, sizeof head);
            for_each_line(bytes, head, [&](const logged_line& line) { lines_.push_back(line); });
            at += head.bytes;
        }
        last_ = r->last;
    }
    for (const run& r : runs_)
        for (std::uint64_t at = r.end; at < r.bytes.size(); at += block_bytes)
            if (const auto head = verified(r.bytes.data() + at, r.bytes.size() - at, header_);
                head && head->sequence > last_)
                return fmt::format("batch {} is there, and batch {} before it is damaged",
                                   head->sequence, last_ + 1);
    return {};
}

result<found_log> found_log::read(const std::string& name, const block_file& file,
                                  std::uint64_t size_bytes, const owner& whose) {
    const auto refusal = [&](errc code, const std::string& why) {
        return status{code, fmt::format("{}: {}: {}", name, hf::name(code), why)};
    };
    found_log log;
    log_header& h = log.header_;
    const auto state = read_header(file, h);
    if (!state) return state.error();
    if (*state == header_state::foreign)
        return refusal(errc::not_a_pool,
                       "expected the header of a log of mode power at the start of the file, found "
                       "other bytes: move the file away if it is not this pool's");
    if (*state == header_state::damaged)
        return refusal(errc::corrupt,
                       "expected a header copy of the log that verifies, found none");
    if (h.version != log_version)
        return refusal(errc::wrong_version, fmt::format("expected version {} of the log, found {}",
                                                        log_version, h.version));
    if (const std::string wrong = numbers_wrong(h, size_bytes); !wrong.empty())
        return refusal(size_bytes < segments_offset ? errc::truncated : errc::corrupt, wrong);
    if (std::memcmp(h.uuid, whose.uuid, sizeof h.uuid) != 0)
        return refusal(errc::torn, "the log is another pool's");
    if (h.generation != whose.generation && h.generation != whose.generation + 1)
        return refusal(errc::torn,
                       fmt::format("the log is another open's: expected that of open {}, found "
                                   "that of {}",
                                   whose.generation, h.generation));
    // A copy of the pool has its uuid, and may have been opened as often.
    const bool next = h.generation == whose.generation + 1;
    if (const std::uint64_t of = next ? h.follows : h.salt; of != whose.salt)
        return refusal(errc::torn,
                       fmt::format("the log is that of a copy of the pool, or of another open: "
                                   "expected {} {:#x}, found {:#x}",
                                   next ? "one that follows" : "salt", whose.salt, of));
    for (unsigned segment = 0; segment < segment_count; ++segment)
        if (const std::string wrong = log.read_run(file, segment, whose, log.runs_[segment]);
            !wrong.empty())
            return refusal(errc::corrupt, wrong);
    if (const std::string wrong = log.put_together(); !wrong.empty())
        return refusal(errc::corrupt, wrong);
    // The next open's, which had not yet said in the pool that it is open: nobody has written to
    // it.
    if (h.generation != whose.generation && log.last_ != 0)
        return refusal(errc::torn,
                       fmt::format("the log is that of open {}, and the pool knows only of open {}",
                                   h.generation, whose.generation));
    return log;
}

} // namespace hf::power
