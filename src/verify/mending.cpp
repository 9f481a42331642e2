// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_checks.hpp>
#include <pool/header.hpp>
#include <pool/os_file.hpp>
#include <verify/mending.hpp>
#include <verify/read_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hf::verify {
namespace {

status apply(const os_file& file, const repair_plan& plan) {
    const auto present = file.size_bytes();
    if (!present) return present.error();
    if (*present < plan.file_bytes)
        if (status ok = file.allocate(*present, plan.file_bytes - *present); !ok.ok()) return ok;
    for (const change& c : plan.changes)
        if (status ok = file.write_at(c.offset, c.bytes.data(), c.bytes.size()); !ok.ok())
            return ok;
    return file.sync();
}

status copy_bytes(std::span<const std::byte> from, const os_file& to) {
    if (from.empty()) return {};
    if (status ok = to.allocate(0, from.size()); !ok.ok()) return ok; // a full disk says so here
    constexpr std::size_t step_bytes = 1 << 20;
    for (std::size_t at = 0; at < from.size(); at += step_bytes)
        if (status ok = to.write_at(at, from.data() + at, std::min(step_bytes, from.size() - at));
            !ok.ok())
            return ok;
    return {};
}

/// The pool in the copy was not copied while it was in use: nobody had it open.
status forget_file(const os_file& file) {
    for (const std::uint64_t copy : {header_a_offset, header_b_offset}) {
        pool_header h{};
        if (status ok = file.read_at(copy, &h, sizeof h); !ok.ok()) return ok;
        if (h.magic != header_magic || h.checksum != header_checksum(h)) continue;
        h.file_inode = h.file_birth_ns = 0;
        h.checksum = header_checksum(h);
        if (status ok = file.write_at(copy, &h, sizeof h); !ok.ok()) return ok;
    }
    return file.sync();
}

} // namespace

std::string journal_text(const std::string& path, std::span<const std::byte> before,
                         const repair_plan& plan) {
    std::string out = fmt::format("holdfast repair journal 1: bytes of {} before its repair\n"
                                  "length {}\n",
                                  path, before.size());
    for (const change& c : plan.changes) {
        const std::uint64_t from = std::min<std::uint64_t>(c.offset, before.size());
        const auto old =
            before.subspan(from, std::min<std::uint64_t>(c.bytes.size(), before.size() - from));
        fmt::format_to(std::back_inserter(out), "{:#x} ", c.offset);
        for (const std::byte b : old)
            fmt::format_to(std::back_inserter(out), "{:02x}", static_cast<unsigned>(b));
        out += '\n';
    }
    return out;
}

status mend_copy(const std::string& path, const std::string& copy, const repair_plan& plan) {
    const auto file = read_file::open(path);
    if (!file) return file.error();
    auto made = os_file::create_new(copy);
    if (!made) return made.error();
    status done = copy_bytes(file->bytes(), *made);
    if (done.ok()) done = apply(*made, plan);
    if (done.ok()) done = forget_file(*made);
    if (done.ok()) made->take_owner_or_say(file->descriptor());
    if (done.ok()) done = made->publish();
    if (!done.ok()) {
        made->unlink();
        return done;
    }
    return made->sync_directory();
}

result<repair_plan> mend_in_place(const std::string& path, const std::string& journal) {
    const auto file = os_file::open_existing(path, false);
    if (!file) return file.error();
    const auto mapped = read_file::of_locked(path, file->descriptor());
    if (!mapped) return mapped.error();
    repair_plan plan = plan_repair(mapped->bytes());
    if (!plan.possible || plan.nothing_to_do()) return plan;
    auto backup = os_file::create_new(journal);
    if (!backup) return backup.error();
    const std::string text = journal_text(path, mapped->bytes(), plan);
    if (status ok = backup->write_at(0, text.data(), text.size()); !ok.ok()) return ok;
    if (status ok = backup->sync(); !ok.ok()) return ok;
    backup->take_owner_or_say(file->descriptor()); // it holds bytes of the pool
    if (status ok = backup->publish(); !ok.ok()) return ok;
    if (status ok = backup->sync_directory(); !ok.ok()) return ok;
    if (status ok = apply(*file, plan); !ok.ok()) return ok;
    return plan;
}

} // namespace hf::verify
