// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an object was: its history, and what of its log is not in there yet.
#pragma once

#include <simpo/history.hpp>

#include <holdfast/simpo/history.hpp>

#include <functional>
#include <span>

namespace hf::simpo {

/// An object's file, and the records of its log that were committed, as they were read before the
/// file is.
struct past_source {
    history_file file;
    pool_name pool;
    const compression* packing;
    position from; // of the log: the file has all before
    std::vector<record> logged;
    object_head head;
};
/// Errors:   corrupt: the file ends before 'from'.
status
for_each_past_call(past_source& of, std::byte* copy,
                   const std::function<bool(const record&, std::string_view, bool in_pool)>& visit);
/// For people. Errors: as history().
result<std::vector<past_call>> past_calls(past_source& of);
/// The records of a log that were committed, of a pool that nobody need have opened.
std::vector<record> logged_calls(const object_head& head, const std::byte* log);

} // namespace hf::simpo
