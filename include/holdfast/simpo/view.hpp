// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A persistent object as seen by a process that does not write it.  docs/guide/simpo.md
//
//     auto pool = hf::pool::open(path, {.layout = "rows/1", .engines = {hf::simpo::engine()},
//                                       .read_only = true, .shared = true});
//     auto r = hf::simpo::view<row>::open<&row::add>(*pool, "r");  // which functions its log may call
//     std::printf("%ld\n", (*r)->sum());
//     if (auto s = r->refresh(); !s.ok()) …                        // what was committed meanwhile
//
// (1) It shows a private copy of the object as of one moment: with all groups of calls that were
//     committed by then, and nothing of any other group.
// (2) It holds nothing, stores nothing to the pool and waits for nobody. The writer knows nothing
//     of it, and a reader that dies leaves nothing behind.
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

/// An object of a pool that is open with read_only: beside a writer, if both have
/// open_options::shared; or alone, as recovery would leave it.
///
/// Requires: call refresh() only while the pool is open. What was seen stays readable when it is
///           closed.
/// Threads:  one at a time; const functions by any.
template <class T> class view {
    static_assert(persistent_class<T>, "a view shows an object of a persistent class (simpo.hpp)");

public:
    /// The object of this name, with all that was committed when this was called. `F`: functions of
    /// T that its log may call, if this program calls them nowhere else. Recovery must know those,
    /// and a view must, too.
    ///
    /// Cost:     copies the object and its log, and makes the calls behind the last checkpoint on
    ///           the copy.
    /// Errors:   not_found; wrong_layout: the object has another class, version or size;
    ///           function_changed: its log calls a function that this program does not have, or has
    ///           in another version; in_use: its writer made a checkpoint, or another object,
    ///           during each of a thousand attempts, or this process is a child of the one that
    ///           opened the pool; corrupt (as in pool::open); bad_argument (the pool is open for
    ///           writing: read with object<T>::call), missing_engine.
    template <auto... F> static result<view> open(pool& in, std::string_view name) {
        ((void)detail::registered<T, F>::done, ...);
        auto found =
            detail::look(in, name, {T::simpo_class.text, T::simpo_class.version, sizeof(T)});
        if (!found) return found.error();
        return view(std::move(*found));
    }
    /// Shows all that is committed now. If another object has taken the name, shows that one.
    /// References to what it showed before become invalid. It never goes back, except to what a
    /// next writer leaves after recovery_policy::roll_back, or salvage.
    ///
    /// Cost:     if there was no checkpoint since, reads and makes only the calls committed since;
    ///           else as open.
    /// Errors:   as open; then it still shows the old state.
    status refresh() { return detail::look_again(*at_); }

    const T& operator*() const noexcept {
        return *std::launder(static_cast<const T*>(detail::object_of(*at_)));
    }
    const T* operator->() const noexcept { return &**this; }
    /// How far the object has come: lines of its log since it was made. It only grows, by committed
    /// calls, and by the log's length if a writer was cut short. Equal versions of one object are
    /// equal states.
    std::uint64_t version() const noexcept { return detail::version_of(*at_); }
    /// Identifies this object: another object that is made under its name has another number.
    std::uint64_t instance() const noexcept { return detail::instance_of(*at_); }

private:
    explicit view(detail::seen_pointer at) noexcept : at_(std::move(at)) {}
    detail::seen_pointer at_;
};

} // namespace hf::simpo
