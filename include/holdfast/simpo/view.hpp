// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A persistent object as a process reads it that does not write it.  docs/guide/simpo.md
//
//     auto pool = hf::pool::open(path, {.layout = "rows/1", .engines = {hf::simpo::engine()},
//                                       .read_only = true, .shared = true});
//     auto r = hf::simpo::view<row>::open<&row::add>(*pool, "r");  // which functions its log may call
//     std::printf("%ld\n", (*r)->sum());
//     if (auto s = r->refresh(); !s.ok()) …                        // what was committed meanwhile
//
// (1) What it shows is a private copy of the object, as it was at one moment: all groups of calls
//     that were committed by then, and nothing of any other.
// (2) It holds nothing, stores nothing to the pool and waits for nobody: neither knows the writer
//     of it, nor is anything left of a reader that dies.
#pragma once

#include <holdfast/simpo.hpp>

#include <memory>
#include <string_view>

namespace hf::simpo {
namespace detail {

class seen; // an object as it was seen (src/simpo/view.hpp)
struct end_seen {
    void operator()(seen* which) const noexcept;
};
using seen_pointer = std::unique_ptr<seen, end_seen>;
result<seen_pointer> look(pool& in, std::string_view name, const class_shape& what);
status look_again(seen& at);
const void* object_of(const seen& at) noexcept;
std::uint64_t version_of(const seen& at) noexcept;
std::uint64_t instance_of(const seen& at) noexcept;

} // namespace detail

/// An object of a pool that is open with read_only: beside a writer with open_options::shared,
/// where this process has it, too; or alone, as recovery would leave it.
///
/// Threads:  one at a time; const functions by any.
/// Requires: refresh() is called while the pool is open; what was seen stays when it is closed.
/// Source:   SIMPO §3.4, objects that processes share. Differs: src/simpo/README.md.
template <class T> class view {
    static_assert(persistent_class<T>, "a view shows an object of a persistent class (simpo.hpp)");

public:
    /// The object of this name, with all that was committed when this was called. `F`: functions of
    /// T that its log may call, where this program calls them nowhere else; recovery must know
    /// those, and so must a view.
    ///
    /// Cost:     the object and its log are copied, and the calls behind the last checkpoint made
    ///           on the copy.
    /// Errors:   not_found; wrong_layout: the object's class, its version or its size is another
    ///           one; function_changed: its log calls a function that this program does not have,
    ///           or has of another version; in_use: its writer made a checkpoint, or another
    ///           object, during each of a thousand attempts, or this process is a child of the one
    ///           that opened the pool; corrupt (as pool::open has it); bad_argument (the pool is
    ///           open for writing: object<T>::call reads), missing_engine.
    template <auto... F> static result<view> open(pool& in, std::string_view name) {
        ((void)detail::registered<T, F>::done, ...);
        auto found =
            detail::look(in, name, {T::simpo_class.text, T::simpo_class.version, sizeof(T)});
        if (!found) return found.error();
        return view(std::move(*found));
    }
    /// Shows all that is committed now. Where another object has taken the name, that one.
    /// References to what it showed before end. Never goes back, but for what a next writer gives
    /// up by recovery_policy::roll_back, or salvage.
    ///
    /// Cost:     without a checkpoint since, only calls committed since are read and made; else as
    ///           open.
    /// Errors:   as open; then it shows what it did.
    status refresh() { return detail::look_again(*at_); }

    const T& operator*() const noexcept {
        return *std::launder(static_cast<const T*>(detail::object_of(*at_)));
    }
    const T* operator->() const noexcept { return &**this; }
    /// How far the object has come: lines of its log since it was made. Only ever grows, by
    /// committed calls, and by the log's length where a writer was cut short; equal ones of one
    /// object are equal states.
    std::uint64_t version() const noexcept { return detail::version_of(*at_); }
    /// Of this object alone: another one that is made under its name has another.
    std::uint64_t instance() const noexcept { return detail::instance_of(*at_); }

private:
    explicit view(detail::seen_pointer at) noexcept : at_(std::move(at)) {}
    detail::seen_pointer at_;
};

} // namespace hf::simpo
