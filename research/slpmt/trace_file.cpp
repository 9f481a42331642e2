// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <slpmt/trace_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <istream>
#include <optional>

namespace hf::slpmt {
namespace {

constexpr std::uint64_t memory_bytes_max = 1ULL << 32, log_lines_max = 1 << 20;
constexpr std::uint64_t read_at_once = 1 << 20;        // bytes
constexpr std::uint64_t instructions_max = 1ULL << 32; // of one event
// A store makes a record of at most two lines, and its line's departure may make two more.
constexpr std::uint64_t log_lines_per_store = 4;

/// How many numbers follow the first byte.
constexpr unsigned numbers_of(event_kind kind) {
    return kind == event_kind::load || kind == event_kind::store ? 2
           : kind == event_kind::compute                         ? 1
                                                                 : 0;
}

void put_number(std::vector<std::uint8_t>& to, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) to.push_back(static_cast<std::uint8_t>(value | 0x80));
    to.push_back(static_cast<std::uint8_t>(value));
}

void put(std::vector<std::uint8_t>& to, const event& one) {
    to.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(one.kind) |
                                           (one.how.lazy ? 8U : 0U) |
                                           (one.how.log_free ? 16U : 0U)));
    if (numbers_of(one.kind) == 2) put_number(to, one.offset / 8);
    if (numbers_of(one.kind) >= 1) put_number(to, one.value);
}

std::uint64_t sum_of(const trace_header& head, std::span<const std::uint8_t> events) {
    const std::uint64_t first = checksum(&head, offsetof(trace_header, checksum), trace_magic);
    return checksum(events.data(), events.size(), first);
}

/// Reads events one after another, and looks at each.
class reader {
public:
    reader(const layout& where, std::span<const std::uint8_t> from) : where_(where), left_(from) {}

    /// Empty: all are read, and right.
    std::string read_all(recorded& to) {
        const trace_counts& counts = to.counts;
        while (!left_.empty()) {
            event one;
            if (!read(one)) return fmt::format("event {} is cut", counts.events);
            if (std::string wrong = judge(one, counts); !wrong.empty())
                return fmt::format("event {}: {}", counts.events, wrong);
            to.add(one);
        }
        return in_transaction_ ? "expected a commit at the end, found none" : "";
    }

private:
    std::optional<std::uint64_t> number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
            const std::uint8_t part = left_.front();
            left_ = left_.subspan(1);
            value |= static_cast<std::uint64_t>(part & 0x7f) << shift;
            if ((part & 0x80) == 0) return value;
        }
        return {};
    }
    bool read(event& one) {
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        one.kind = static_cast<event_kind>(first & 7);
        one.how = {(first & 8) != 0, (first & 16) != 0};
        unknown_ = (first & ~0x1f) != 0 || one.kind > event_kind::stop;
        if (numbers_of(one.kind) == 2) {
            const auto word = number();
            if (!word) return false;
            one.offset = std::min(*word, memory_bytes_max) * 8;
        }
        if (numbers_of(one.kind) >= 1) {
            const auto value = number();
            if (!value) return false;
            one.value = *value;
        }
        return true;
    }
    std::string judge(const event& one, const trace_counts& before) {
        if (unknown_) return "is none that is known";
        if (one.how != operands{} && one.kind != event_kind::store)
            return "has a store's operands, and is none";
        switch (one.kind) {
        case event_kind::begin:
        case event_kind::commit:
            if (in_transaction_ != (one.kind == event_kind::commit))
                return in_transaction_ ? "begins a transaction in another"
                                       : "commits where no transaction has begun";
            in_transaction_ = !in_transaction_;
            stores_ = 0;
            return "";
        case event_kind::compute:
            return one.value <= instructions_max
                       ? ""
                       : fmt::format("expected at most {} instructions, found {}", instructions_max,
                                     one.value);
        case event_kind::load:
            if (one.value > before.loads)
                return fmt::format("expected one of {} loads before it, found number {}",
                                   before.loads, one.value);
            return judge_offset(one.offset);
        case event_kind::store:
            if (in_transaction_ && ++stores_ * log_lines_per_store > where_.log_lines)
                return fmt::format("expected at most {} stores in a transaction, found more",
                                   where_.log_lines / log_lines_per_store);
            return judge_offset(one.offset);
        case event_kind::start:
        case event_kind::stop:
            if (measuring_ != (one.kind == event_kind::stop) || in_transaction_)
                return "begins or ends the measurement where it cannot";
            measuring_ = !measuring_;
            return "";
        }
        return "";
    }
    std::string judge_offset(std::uint64_t offset) const {
        if (offset >= where_.heap() && offset <= where_.bytes - 8) return "";
        return fmt::format("expected an offset from {:#x} to {:#x}, found {:#x}", where_.heap(),
                           where_.bytes - 8, offset);
    }

    const layout where_;
    std::span<const std::uint8_t> left_;
    bool in_transaction_ = false, measuring_ = false, unknown_ = false;
    std::uint64_t stores_ = 0; // of the transaction
};

template <class T> status unless(const std::string& path, errc code, const char* what, T expected,
                                 T found) {
    return {code, fmt::format("{}: {}: {}: expected {}, found {}", path, name(code), what, expected,
                              found)};
}

status check_header(const std::string& path, const trace_header& head) {
    const auto text = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
    if (head.magic != trace_magic)
        return unless(path, errc::corrupt, "no trace of simulated memory: magic", text(trace_magic),
                      text(head.magic));
    if (head.version != trace_version)
        return unless(path, errc::wrong_version, "version", trace_version, head.version);
    if (head.header_bytes != sizeof head)
        return unless<std::uint64_t>(path, errc::corrupt, "bytes of the header", sizeof head,
                                     head.header_bytes);
    return {};
}

/// The header and all bytes of a file that has as many as its header says. One without an end (a
/// device) is read no further than that, and a folder is an error and no exception, which iterators
/// would make of it.
status read_whole(const std::string& path, std::istream& file, trace_header& head,
                  std::vector<std::uint8_t>& bytes) {
    const auto read_up_to = [&](std::uint64_t end) {
        const std::size_t had = bytes.size();
        bytes.resize(had + std::min(end - had, read_at_once));
        file.read(reinterpret_cast<char*>(bytes.data() + had),
                  static_cast<std::streamsize>(bytes.size() - had));
        bytes.resize(had + static_cast<std::size_t>(file.gcount()));
    };
    const auto failed = [&] {
        return status{errc::io_error, fmt::format("{}: io_error: {}", path, std::strerror(errno))};
    };
    read_up_to(sizeof head);
    if (file.bad()) return failed();
    if (bytes.size() < sizeof head)
        return unless(path, errc::truncated, "bytes of the header", sizeof head, bytes.size());
    std::memcpy(&head, bytes.data(), sizeof head);
    if (status s = check_header(path, head); !s.ok()) return s;
    while (file && bytes.size() < head.file_bytes) read_up_to(head.file_bytes);
    if (file.bad()) return failed();
    if (bytes.size() < head.file_bytes)
        return unless<std::uint64_t>(path, errc::truncated, "bytes of the file", head.file_bytes,
                                     bytes.size());
    if (head.file_bytes < sizeof head || file.peek() != std::istream::traits_type::eof())
        return {errc::corrupt,
                fmt::format("{}: corrupt: bytes of the file: expected {}, found more", path,
                            head.file_bytes)};
    return {};
}

} // namespace

void recorded::add(const event& one) {
    events.push_back(one);
    ++counts.events;
    counts.loads += one.kind == event_kind::load;
    counts.stores += one.kind == event_kind::store;
    counts.transactions += one.kind == event_kind::begin;
}

status write_trace(const std::string& path, const recorded& what) {
    HF_ASSERT(what.where.cores == 1);
    std::vector<std::uint8_t> events;
    for (const event& one : what.events) put(events, one);
    trace_header head{trace_magic,          trace_version,
                      sizeof(trace_header), sizeof(trace_header) + events.size(),
                      what.where.bytes,     what.where.log_lines,
                      what.counts,          0};
    head.checksum = sum_of(head, events);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&head), sizeof head);
    file.write(reinterpret_cast<const char*>(events.data()),
               static_cast<std::streamsize>(events.size()));
    file.close();
    if (file) return {};
    return {errc::io_error, fmt::format("{}: io_error: {}", path, std::strerror(errno))};
}

result<recorded> read_trace(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return status{errc::not_found,
                      fmt::format("{}: not_found: {}", path, std::strerror(errno))};
    trace_header head;
    std::vector<std::uint8_t> bytes;
    if (status s = read_whole(path, file, head, bytes); !s.ok()) return s;
    const auto events = std::span(bytes).subspan(sizeof head);
    if (const std::uint64_t sum = sum_of(head, events); sum != head.checksum)
        return unless(path, errc::corrupt, "checksum", fmt::format("{:#x}", head.checksum),
                      fmt::format("{:#x}", sum));
    recorded got;
    got.where.bytes = head.memory_bytes;
    got.where.log_lines = head.log_lines;
    const bool fits = head.memory_bytes <= memory_bytes_max && head.memory_bytes % 64 == 0 &&
                      head.log_lines > 0 && head.log_lines <= log_lines_max &&
                      got.where.heap() < head.memory_bytes;
    if (!fits)
        return status{
            errc::corrupt,
            fmt::format(
                "{}: corrupt: expected at most {} bytes of memory, more than its log, found {} "
                "and a log of {} lines",
                path, memory_bytes_max, head.memory_bytes, head.log_lines)};
    if (std::string wrong = reader(got.where, events).read_all(got); !wrong.empty())
        return status{errc::corrupt, fmt::format("{}: corrupt: {}", path, wrong)};
    if (got.counts != head.counts)
        return unless(path, errc::corrupt, "events, loads, stores, transactions",
                      fmt::format("{}, {}, {}, {}", head.counts.events, head.counts.loads,
                                  head.counts.stores, head.counts.transactions),
                      fmt::format("{}, {}, {}, {}", got.counts.events, got.counts.loads,
                                  got.counts.stores, got.counts.transactions));
    return got;
}

} // namespace hf::slpmt
