// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rebase.hpp"

#include "movable.hpp"
#include <open/pool_impl.hpp>
#include <pool/file_checks.hpp>
#include <verify/read_file.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

namespace hf::tools {
namespace {

result<pool_header> header_in(const std::string& path) {
    const auto file = verify::read_file::open(path);
    if (!file) return file.error();
    const header_copies copies = verify::read_headers(file->bytes());
    if (!copies.any_valid())
        return refusal(path, errc::corrupt, "expected a header that verifies, found none");
    const pool_header& h = copies.chosen();
    if (status s = check_header(path, h, file->bytes().size()); !s.ok()) return s;
    return h;
}

status refuse_what_holds_addresses(const std::string& path, const pool_header& header) {
    const auto file = verify::read_file::open(path);
    if (!file) return file.error();
    const std::string found = held_in_place_by(verify::pool_image(file->bytes(), header));
    if (found.empty()) return {};
    return refusal(path, errc::conflict,
                   fmt::format("expected containers of MOD or Python and persistent objects alone, "
                               "found {}: addresses in it would lead nowhere if the pool moved. "
                               "Its program must be built relocatable to open it elsewhere",
                               found));
}

} // namespace

result<rebased> rebase_pool(const std::string& path, const open_options& how) {
    auto before = header_in(path);
    if (!before) return before.error();
    if (before->open != 0) { // recovers it
        if (const auto recovered = pool::impl::open_with(path, how); !recovered)
            return recovered.error();
        before = header_in(path);
        if (!before) return before.error();
    }
    if (status s = refuse_what_holds_addresses(path, *before); !s.ok()) return s; // upholds (2)
    std::uint64_t to = 0;
    {
        const auto opened = pool::impl::open_with(path, how);
        if (!opened) return opened.error();
        pool_file& file = *opened->internals().file;
        if (file.generation() != before->generation + 1)
            return refusal(path, errc::conflict,
                           "another process has opened the pool meanwhile: run the command again");
        const auto next = file.move_with_close();
        if (!next) return next.error();
        to = *next;
    } // upholds (1)
    const auto after = header_in(path);
    if (!after) return after.error();
    if (after->base_address == to && after->open == 0) return rebased{before->base_address, to};
    return refusal(path, errc::io_error,
                   fmt::format("the pool could not be closed: expected it at {:#x}, found it at "
                               "{:#x}, as it was: run the command again",
                               to, after->base_address));
}

} // namespace hf::tools
