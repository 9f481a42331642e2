// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variants of SIMPO's Table 7 that make a call at once, under a lock: hybrid, and what it is
// compared with. They log with Holdfast's own log and differ in how the object is made durable
// (checkpoints.hpp). Each flushes its log every 1000 calls.
//
//   ssd      in a file, after every call          nvram    two copies, after every call
//   hybrid   two copies, every so many calls      double, kamino, cow: as often as hybrid
#pragma once

#include "checkpoints.hpp"
#include "two_rows.hpp"
#include <base/line.hpp>
#include <simpo/log_array.hpp>

#include <array>
#include <mutex>
#include <string>

namespace hf::bench {

inline constexpr std::array<const char*, 6> locked_variants{"ssd",    "nvram",  "hybrid",
                                                            "double", "kamino", "cow"};

class locked_rows {
public:
    /// `calls_a_checkpoint`: for all except ssd and nvram. A mapped file in `directory` replaces
    /// persistent memory; ssd's copies are another file there.
    locked_rows(std::string_view variant, domain d, std::uint64_t calls_a_checkpoint,
                const std::string& directory);
    locked_rows(const locked_rows&) = delete;
    ~locked_rows();

    /// Durable once the log is flushed, or by the next checkpoint.
    void all_inc(std::int32_t by);
    void row_inc(std::int32_t by, std::uint32_t row);
    /// The sum in the durable image after a last checkpoint.
    std::int64_t durable_sum();

private:
    static constexpr std::size_t image_bytes =
        (sizeof(two_rows) + line_bytes - 1) & ~(line_bytes - 1);
    static constexpr std::uint64_t calls_a_flush = 1000;
    void log(const simpo::detail::function& f, const std::uint64_t* arguments);
    void called();
    void checkpoint();

    std::mutex lock_;
    alignas(line_bytes) std::array<std::byte, image_bytes> image_{};
    two_rows* rows_ = ::new (image_.data()) two_rows;
    std::uint64_t calls_ = 0, calls_a_checkpoint_, mapped_bytes_;
    std::byte* memory_;
    std::unique_ptr<simpo::log_array> log_;
    std::unique_ptr<checkpoint_scheme> scheme_;
};

} // namespace hf::bench
