// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object as seen by a process that does not write it, beside one that may.  SIMPO §3.4
//
// (1) A view trusts nothing that it reads: a writer may store to all of it meanwhile, and the block
//     may belong to another object by now. The view copies it to private memory first, and judges
//     the copy; a header of the file bounds the offsets.
// (2) A copy is the object at the resilient index if the index is the same before and behind the
//     read: only the next checkpoint but one writes that copy again.
// (3) The end that was found in the log is real if the index is not beyond it afterwards. Otherwise
//     it may be a line that is being written again: lines are written again only behind the index
//     that frees them. Records without checks (log_array.hpp, 7) are real if the index is not
//     beyond the first of them.
// (4) All of that belonged to this object if, when all is read, a word of the table still names it,
//     and it has its salt.
// (5) So a view shows all that was committed when it was asked, and a later look shows no less:
//     positions and the index only grow.
// (6) A view stores nothing and waits for nobody: what a writer has overtaken is read again, a
//     bounded number of times.
// (7) A log that has lost committed groups is damaged, as for recovery (core.cpp), and not a
//     shorter log. The end of a group is written only when everything before the end of the
//     previous group has been written. So no writer leaves two ends behind an invalid record.
#pragma once

#include <open/pool_impl.hpp>
#include <simpo/core.hpp>

#include <holdfast/simpo/view.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf::simpo {

namespace view_steps { // for tests: a writer may act between them
enum class step : std::uint8_t { found, read_index, copied, read_log, asked_again };
extern void (*taken)(step);
} // namespace view_steps

namespace detail {

class seen {
public:
    /// The object of this name; nothing is seen yet. Throws std::bad_alloc.
    seen(pool::impl& in, std::string_view name, const class_shape& what);

    /// Sees all that is committed now; on an error it still has the old state. Throws
    /// std::bad_alloc.
    status look();
    const std::byte* object() const noexcept { return now_.get(); }
    position version() const noexcept { return version_; }
    std::uint64_t salt() const noexcept { return at_.head.salt; }
    const std::string& path() const noexcept { return in_->file->path(); }

private:
    struct place {
        const std::uint64_t* word = nullptr; // of the table
        std::uint64_t offset = 0;            // that it named
        object_head head{};                  // as it was read there
    };
    struct free_lines {
        void operator()(std::byte* memory) const noexcept;
    };
    using lines = std::unique_ptr<std::byte[], free_lines>;
    struct alignas(line_bytes) line {
        std::byte bytes[line_bytes];
    };

    // False: overtaken.
    result<bool> try_to_look();
    result<bool> find(place& at);
    result<bool> search(place& at);
    bool covers(std::uint64_t offset, std::uint64_t bytes);
    const char* read_head(place& at);
    bool is_there(const place& at) const noexcept;
    const std::byte* block(const place& at) const noexcept;
    struct read_to {
        position end;     // of the last group
        position stopped; // where there is no record
        position logged;  // below it records had no checks
    };
    read_to read_calls(const place& at, position from);
    bool stands_before_groups(const place& at, position hole, position from) const noexcept;
    void make_room(std::uint64_t bytes);
    result<bool> look_into_file(place& at, std::uint64_t index, bool anew);
    void show(const place& at, std::uint64_t index, position end, bool anew);
    status check_calls(const object_head& of) const;
    void make_calls(std::byte* on, const object_head& of) const;
    template <class Visit> void for_each_call(Visit&& visit) const;

    pool::impl* in_;
    std::string name_;
    class_shape what_;
    std::uint64_t end_; // of the pool, as far as all of it is known to be mapped
    place at_;          // of what is seen
    lines now_, next_;  // seen; the copy that is being read
    std::uint64_t next_bytes_ = 0;
    std::vector<line> calls_; // records, whole groups of them
    position version_ = 0;
    std::uint64_t index_ = 0; // the resilient one, when it was seen
};

} // namespace detail
} // namespace hf::simpo
