// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool's file in a process that reads beside one that may write (open_options::shared). It is
// mapped for reading, and never stored to: a reader's locks are all that the writer sees of it
// (os_file::announce).
//
// (1) A reader has its lock before it looks at the header. From then on only writers come that let
//     it read.
// (2) It goes on only when no process can store to what it reads: the pool was closed, or a writer
//     that lets others read has recovered it, whether that writer's process still lives or not
//     (reader_words::ready).
// (3) Mappings stay. A new part of the file is mapped before anything in it is followed.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/boot_id.hpp>
#include <pool/file_checks.hpp>
#include <pool/mapping.hpp>
#include <pool/pool_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace hf {
namespace {

constexpr auto recovery_max = std::chrono::seconds(5); // of a writer that has just come
constexpr std::uint64_t page_bytes = 4096;

} // namespace

reader_words* pool_file::words_for_readers() const noexcept {
    HF_ASSERT_SLOW(asked_.shared);
    return reinterpret_cast<reader_words*>(base_ + reader_words_offset);
}

/// Judges the present header. 'in_flux': a refusal may pass once the writer has gone on.
status pool_file::look_beside(bool& in_flux) {
    header_bytes_read read;
    in_flux = true; // read while it is written a copy does not verify
    if (status ok = read_copies(file_, read); !ok.ok()) return ok;
    const auto file_bytes =
        file_.size_bytes(); // behind the header, which may name what grew just now
    if (!file_bytes) return file_bytes.error();
    read.file_bytes = *file_bytes;
    auto chosen = choose_header(path_, read);
    if (!chosen) return chosen.error();
    pool_header& h = *header_;
    h = chosen->header;
    if (status ok = check_header(path_, h, read.file_bytes); !ok.ok()) return ok;
    in_flux = false;
    const auto boot = boot_here(path_);
    if (!boot) return boot.error();
    if (status ok = check_use(path_, h, asked_, **boot); !ok.ok()) return ok;
    if (status ok = find_doubts(h, **boot); !ok.ok()) return ok;
    if (h.open == 0) return {};
    reader_words words{};
    if (status ok = file_.read_at(reader_words_offset, &words, sizeof words); !ok.ok()) return ok;
    // After another boot nobody knows whether the word is newer than the state that it describes.
    const bool readers_words =
        (h.required_features & feature_power_log) == 0 && same_boot(h, **boot);
    if (readers_words && words.ready == h.generation) return {};
    in_flux = file_.has_writer();
    if (in_flux)
        return refusal(path_, errc::in_use, "the process that has it open is still recovering it");
    return refusal(
        path_, errc::torn,
        "left open by a process that has died, and was alone with it or had not yet recovered it: "
        "expected a pool that was closed, or one that a writer with open_options::shared has "
        "recovered; open it for writing once, or with read_only alone");
}

/// Upholds (1), (2).
status pool_file::take_over_beside() {
    const auto until = std::chrono::steady_clock::now() + recovery_max;
    bool in_flux = false;
    status looked = look_beside(in_flux);
    while (!looked.ok() && in_flux && file_.has_writer() &&
           std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        looked = look_beside(in_flux);
    }
    if (!looked.ok()) return looked;
    const pool_header& h = *header_;
    if (status ok = place(h, asked_.relocate); !ok.ok()) return ok;
    take_shape(h);
    if (status ok = settle_mode(); !ok.ok()) return ok;
    beside_.covered_bytes = size_bytes();
    if (status ok = map(0, beside_.covered_bytes); !ok.ok()) return ok;
    // Readers bound their reads by the first copy, and only the writer may mend it.
    if (reinterpret_cast<const pool_header*>(base_ + header_a_offset)->max_bytes != h.max_bytes)
        return refusal(path_, errc::corrupt,
                       "expected a first header copy that verifies, found it damaged: open the "
                       "pool for writing once, which mends it");
    note_mapping();
    watch();
    return {};
}

/// Upholds (3). A seal, which may stand behind the pool's end in its file, is not mapped.
bool pool_file::cover_growth() noexcept try {
    HF_ASSERT_SLOW(reads_beside());
    const std::scoped_lock held{beside_.covering};
    const auto present = file_.size_bytes();
    if (!present) return false;
    const std::uint64_t there = round_down(*present, page_bytes);
    const std::uint64_t end = std::min(there, reserved_bytes_);
    if (end > beside_.covered_bytes) {
        if (!map(beside_.covered_bytes, end - beside_.covered_bytes).ok()) return false;
        beside_.covered_bytes = end;
    }
    if (there <= reserved_bytes_ || reserved_bytes_ == shape_.max_bytes) return true;
    header_bytes_read read; // not all of its addresses could be had
    if (!read_copies(file_, read).ok()) return false;
    read.file_bytes = *present;
    const auto now = choose_header(path_, read);
    if (!now || !check_header(path_, now->header, *present).ok()) return false;
    const extent& last = now->header.extents[now->header.extent_count - 1];
    return last.offset_bytes + last.size_bytes <= reserved_bytes_;
} catch (const std::bad_alloc&) {
    return false;
}

} // namespace hf
