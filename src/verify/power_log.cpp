// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_checks.hpp>
#include <pool/power_files.hpp>
#include <verify/power_log.hpp>

#include <fmt/format.h>

#include <filesystem>

namespace hf::verify {
namespace {

bool asks_for_log(const pool_header& h) noexcept {
    return h.open != 0 && (h.required_features & feature_power_log) != 0;
}

std::uint64_t end_of(const pool_header& h) noexcept {
    const extent& last = h.extents[h.extent_count - 1];
    return last.offset_bytes + last.size_bytes;
}

void add_finding(report& to, const std::string& log, const status& why) {
    to.outcome = verdict::damaged;
    to.findings.push_back({0, log, "the log of the pool's last open", text_of(why, log)});
}

} // namespace

report examine_with_log(const std::string& path, read_file& file, depth how) {
    report alone = examine(file.bytes(), depth::header);
    // The log's lines may lie anywhere in the pool, and of a file that was cut not all of it is
    // there.
    if (!alone.has_header || !asks_for_log(alone.header) ||
        file.bytes().size() < end_of(alone.header))
        return examine(file.bytes(), how);
    const std::string log = power_files::log_path_of(path);
    os_file none;
    power_files files(path, none);
    const status fits = files.find(alone.header, true);
    if (fits.code() == errc::in_use) {
        alone.notes.push_back("its log is in use, and was not read: " + text_of(fits, log));
        return alone;
    }
    if (!fits.ok()) {
        add_finding(alone, log, fits);
        return alone;
    }
    const auto own = file.own_bytes();
    if (!own) {
        alone.notes.push_back(text_of(own.error(), path));
        return alone;
    }
    files.put_over(own->data());
    report whole = examine(file.bytes(), how);
    whole.notes.insert(whole.notes.begin(),
                       fmt::format("left open in mode power: examined with {} lines of {} groups "
                                   "that its log holds, {}",
                                   files.found_lines(), files.found_batches(), log));
    return whole;
}

status repairable(const std::string& path, const read_file& file) {
    const report found = examine(file.bytes(), depth::header);
    if (found.has_header ? !asks_for_log(found.header)
                         : !std::filesystem::exists(power_files::log_path_of(path)))
        return {};
    return refusal(
        path, errc::mode_unavailable,
        "part of it may be in its log of mode power: open it in mode power once, and close it, "
        "before it is repaired");
}

} // namespace hf::verify
