// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operating errors are values. Every call that can meet a missing, full, foreign or damaged file
// returns a result<T>; its status says what was expected and what was found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hf {

enum class errc : std::uint8_t {
    ok,
    not_found,        // no such file, and creating it was not asked for
    exists,           // creation was asked for and the file is already there
    not_a_pool,       // foreign, empty, directory, FIFO, device …
    truncated,        // shorter than its header says
    corrupt,          // a checksum or a bound does not hold
    wrong_version,    // format version this build does not know
    unknown_feature,  // a required feature bit this build does not know
    wrong_layout,     // made by an application with another layout
    missing_engine,   // an engine holds durable state and was not given to open
    function_changed, // a pending section's function is missing or differs in this build
    in_use,           // open in another process, or already open in this one
    permission,       // the file system refuses
    mode_unavailable, // the file cannot give the durability mode asked for
    torn,             // left open in process mode by an earlier boot, or copied while open
    address_taken,    // the canonical address is occupied in this process
    pool_full,        // the pool's limit, the disk, a quota or a ulimit leaves no room
    limit_reached,    // a fixed table (lanes, extents) is full
    bad_argument,     // an option is out of range
    io_error,         // any other failed system call
    poisoned,         // an earlier failure while committing; reopen to recover
    conflict,         // compare-and-commit: another commit came first
    not_instrumented, // failure-atomic functions were compiled without the plugin
};

/// Short stable name of a code, e.g. "wrong_layout".
std::string_view name(errc code) noexcept;

/// An error: its code, its place, and what was expected and found. Empty text fields do not apply.
class [[nodiscard]] status {
public:
    status() noexcept = default;
    status(errc code, std::string what) : code_(code), what_(std::move(what)) {}

    errc code() const noexcept { return code_; }
    bool ok() const noexcept { return code_ == errc::ok; }
    /// One line for people: "numbers.hf: wrong_layout: expected "kv/1", found "bank/1"".
    const std::string& what() const noexcept { return what_; }

private:
    errc code_ = errc::ok;
    std::string what_;
};

/// A T, or the status that says why there is no T. Not std::expected: libraries and users compiled
/// at different language standards must agree on its layout (docs/internals/design.md).
template <class T> class [[nodiscard]] result {
public:
    result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    result(status why) : held_(std::in_place_index<1>, std::move(why)) {}

    explicit operator bool() const noexcept { return held_.index() == 0; }
    T& operator*() & noexcept { return *std::get_if<0>(&held_); }
    const T& operator*() const& noexcept { return *std::get_if<0>(&held_); }
    T&& operator*() && noexcept { return std::move(*std::get_if<0>(&held_)); }
    T* operator->() noexcept { return std::get_if<0>(&held_); }
    const T* operator->() const noexcept { return std::get_if<0>(&held_); }
    const status& error() const noexcept { return *std::get_if<1>(&held_); }

private:
    std::variant<T, status> held_;
};

} // namespace hf
