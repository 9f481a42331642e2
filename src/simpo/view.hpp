// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object as a process sees it that does not write it, beside one that may.  SIMPO §3.4
//
// (1) Nothing that is read is believed: a writer may store to all of it meanwhile, and the block be
//     another one's by now. It is copied to private memory first, and judged there; offsets are
//     bounded by what a header of the file names.
// (2) A copy is the object at the resilient index if the index is the same before it was read and
//     behind: the next checkpoint but one is the first that writes it again.
// (3) Where the log was found to end it ends, and not only seems to as its lines are written again,
//     if the index is then not beyond: lines are written again behind the index that frees them
//     alone.
// (4) All of that was this object's if a word of the table names it still when all is read, and it
//     has its salt.
// (5) So what is shown has all that was committed when it was asked for, and a later look has no
//     less: positions and the index only grow.
// (6) Nothing is stored, and nobody waited for: what was overtaken is read again, a bounded number
//     of times.
// (7) A log that has lost committed groups is damage, as recovery has it (core.cpp), and not a
//     shorter log: the end of a group is written when all that lies before the end of the one
//     before it is, so no writer leaves two ends behind a record that is none.
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

namespace view_steps { // for tests: what happens between them is what a writer may do
enum class step : std::uint8_t { found, read_index, copied, read_log, asked_again };
extern void (*taken)(step);
} // namespace view_steps

namespace detail {

class seen {
public:
    /// Of the object of this name; nothing is seen yet. Throws std::bad_alloc.
    seen(pool::impl& in, std::string_view name, const class_shape& what);

    /// Sees all that is committed now, or, with an error, what it did. Throws std::bad_alloc.
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
