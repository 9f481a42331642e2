// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <verify/objects.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace hf::verify {
namespace {

using simpo::object_head;
using simpo::position;

template <class T> T load(const pool_image& pool, std::uint64_t offset) {
    T out{};
    if (pool.has(offset, sizeof out)) std::memcpy(&out, pool.file().data() + offset, sizeof out);
    return out;
}

/// Makes any text safe for a terminal.
std::string plain(std::string text) {
    std::ranges::replace_if(text, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return text;
}

/// One object's block.
class object_reading {
public:
    object_reading(const pool_image& pool, std::uint64_t at, objects_image& out)
        : pool_(pool), at_(at), out_(out), where_(fmt::format("persistent object {:#x}", at)),
          head_(load<object_head>(pool, at)) {}

    void run(bool copies) {
        if (!head()) return;
        const simpo::object_layout parts = layout_of(head_);
        const std::uint64_t bytes = simpo::block_bytes_of(head_);
        const block b{at_, simpo::rounded_to_lines(pool_, bytes)};
        if (!pool_.well_formed(b) || !pool_.has(at_, bytes))
            return wrong(0, "a block of the heap", fmt::format("{} bytes, which are none", bytes));
        if (simpo::rounded_to_lines(pool_, parts.block_bytes) == 0)
            return wrong(0, "an object that fits into the pool",
                         fmt::format("{} bytes", parts.block_bytes));
        out_.blocks.push_back(b);
        where_ = fmt::format("persistent object \"{}\"", found_.name);
        if (!found_.swapped_out) {
            log(parts.log_offset);
            if (copies) copy(parts);
        }
        out_.all.push_back(std::move(found_));
    }

private:
    void wrong(std::uint64_t offset, std::string expected, std::string found) {
        out_.faults.push_back({at_ + offset, where_, std::move(expected), std::move(found)});
    }

    /// False: nothing behind it can be found.
    bool head() {
        const auto differs = [&](const char* expected, std::string found) {
            wrong(0, expected, std::move(found));
            return false;
        };
        const bool swapped = simpo::is_swapped(head_);
        if (head_.magic != simpo::object_magic && !swapped)
            return differs("an object's magic number", fmt::format("{:#x}", head_.magic));
        if (head_.check != simpo::head_check(head_))
            return differs("a head that verifies", "a checksum that does not hold");
        const std::uint64_t log_bytes = head_.log_lines * line_bytes;
        const auto ended = [](const auto& text) {
            return text[0] != 0 && text[sizeof text - 1] == 0;
        };
        if (head_.object_bytes == 0 || head_.object_bytes > simpo::object_bytes_max ||
            !std::has_single_bit(head_.log_lines) || log_bytes < simpo::log_bytes_min ||
            head_.log_lines > simpo::log_bytes_max / line_bytes || !ended(head_.class_text) ||
            !ended(head_.name) || !callers_of(head_).valid() ||
            !simpo::index_holds(head_.resilient, head_.salt) || (swapped && head_.file == 0) ||
            head_.logged > simpo::position_of(head_.resilient) + head_.log_lines)
            return differs("a head that can be", "sizes, positions or texts out of bounds");
        found_ = {at_,
                  plain(head_.name),
                  plain(head_.class_text),
                  head_.class_version,
                  head_.callers,
                  head_.object_bytes,
                  log_bytes,
                  0,
                  0,
                  swapped};
        return true;
    }

    bool record(std::uint64_t log, position at, simpo::record& out) const {
        const auto take = [&](std::uint64_t line) {
            const std::uint64_t place = (at + line) & (head_.log_lines - 1);
            std::memcpy(reinterpret_cast<std::byte*>(&out) + line * line_bytes,
                        pool_.file().data() + at_ + log + place * line_bytes, line_bytes);
        };
        take(0);
        if (!out.begins(at)) return false;
        for (std::uint64_t line = 1; line < out.lines(); ++line) take(line);
        return out.counts(at, head_, head_.logged);
    }

    void log(std::uint64_t log) {
        const position first = simpo::position_of(head_.resilient);
        simpo::record r;
        position gap = first, end = first;
        for (std::uint64_t calls = 0; gap < first + head_.log_lines && record(log, gap, r);
             gap += r.lines()) {
            calls += r.head.function != 0;
            if (!simpo::ends_group(r.head.kind)) continue;
            ++found_.groups;
            end = gap + r.lines();
            found_.calls += std::exchange(calls, 0);
        }
        if (pool_.header().open == 0) {
            if (found_.groups != 0)
                wrong(log, "no call that a copy has not, in a pool that was closed cleanly",
                      fmt::format("{} groups of {} calls", found_.groups, found_.calls));
            return;
        }
        if (end < head_.logged)
            return wrong(log + (gap & (head_.log_lines - 1)) * line_bytes,
                         fmt::format("whole groups of records below {:#x}", head_.logged),
                         fmt::format("none behind {:#x}", end));
        // A group's end is written when the one before it is durable, and all that lies before
        // that.
        unsigned ends = 0;
        for (position p = gap + 1; p < first + head_.log_lines && ends < 2; ++p)
            ends += record(log, p, r) && simpo::ends_group(r.head.kind);
        if (ends == 2)
            wrong(log + (gap & (head_.log_lines - 1)) * line_bytes,
                  fmt::format("record {:#x}, behind which two groups were committed", gap),
                  "none that verifies");
    }

    void copy(const simpo::object_layout& parts) {
        const unsigned which = simpo::copy_of(head_.resilient);
        const std::uint64_t at = parts.copy_offset(which);
        const std::uint64_t now =
            simpo::copy_check(head_, pool_.file().data() + at_ + at, parts.copy_bytes);
        if (now != head_.copy_checks[which])
            wrong(at, fmt::format("copy {} of checksum {:016x}", which, head_.copy_checks[which]),
                  fmt::format("{:016x}", now));
    }

    const pool_image& pool_;
    std::uint64_t at_;
    objects_image& out_;
    std::string where_;
    object_head head_;
    persistent_object found_{};
};

} // namespace

objects_image read_objects(const pool_image& pool, bool copies) {
    objects_image out;
    const std::uint64_t at = pool.roots().anchor(engine_simpo), chunk = pool.chunk_bytes();
    if (at == 0) return out;
    const auto wrong = [&](std::uint64_t offset, std::string expected, std::string found) {
        out.faults.push_back(
            {offset, "engine simpo's superblock", std::move(expected), std::move(found)});
    };
    if (!pool.well_formed({at, chunk})) {
        wrong(root_words_offset, "a chunk of the heap", fmt::format("{:#x}", at));
        return out;
    }
    out.blocks.push_back({at, chunk});
    const auto super = load<simpo::superblock>(pool, at);
    if (super.magic != simpo::superblock_magic ||
        super.objects_max != simpo::objects_max_for(chunk)) {
        wrong(at,
              fmt::format("magic {:#x}, {} objects", simpo::superblock_magic,
                          simpo::objects_max_for(chunk)),
              fmt::format("{:#x}, {}", super.magic, super.objects_max));
        return out;
    }
    std::uint64_t budget = 2 * pool.file().size(); // words that name one object again and again
    for (std::uint64_t i = 0; i < super.objects_max; ++i) {
        const std::uint64_t word = at + sizeof super + i * word_bytes, offset = pool.word(word);
        if (offset == 0) continue;
        const extent_image* const e = pool.extent_of(offset);
        if (e == nullptr || offset % line_bytes != 0 || !pool.has(offset, sizeof(object_head))) {
            wrong(word, "an object in the heap", fmt::format("{:#x}", offset));
            continue;
        }
        const std::size_t before = out.blocks.size();
        object_reading(pool, offset, out).run(copies);
        const std::uint64_t read = out.blocks.size() == before ? 0 : out.blocks.back().bytes;
        if (read <= budget) budget -= read;
        else {
            wrong(word, "objects that lie in no other one", fmt::format("{:#x}", offset));
            break;
        }
    }
    return out;
}

} // namespace hf::verify
