// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent memory behind a write queue, under ADR: a line is durable as soon as the queue accepts
// it.
//
// (1) The durable image changes only in write(), by whole lines, one at a time.
// (2) An entry of the queue is held from acceptance until its media write ends. Released earlier,
//     the queue would hide the media's latency, and with it every difference between techniques.
// (3) Writes of one bank follow each other; banks work at the same time.
#pragma once

#include <base/line.hpp>
#include <sim/parameters.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace hf::sim {

class persistent_memory {
public:
    persistent_memory(const memory_parameters& how, std::uint64_t bytes);

    /// Gives a line to the queue, not before `at`; returns when it is accepted, and durable. Calls
    /// of one core come in the order in which it issues them.
    ticks write(std::uint64_t line, const std::byte* bytes, ticks at);

    /// The contents that are durable now.
    std::span<const std::byte> durable() const { return durable_; }
    /// Bytes that are there before the machine starts: no line is counted.
    void preset(std::span<const std::byte> image);
    /// Is called after each acceptance: a crash may come there, and finds durable().
    void on_acceptance(std::function<void()> observer) { observer_ = std::move(observer); }

    std::uint64_t lines_written() const { return lines_written_; }
    /// How often each line was written.
    const std::vector<std::uint32_t>& wear() const { return wear_; }
    ticks read_latency() const { return read_; }

private:
    const ticks read_, media_, accept_;
    const std::uint64_t lines_per_bank_;
    std::vector<std::byte> durable_;
    std::vector<std::uint32_t> wear_;
    std::vector<ticks> released_; // of each entry of the queue: when it is free
    std::vector<ticks> idle_;     // of each bank
    ticks accepted_ = 0;
    std::uint64_t lines_written_ = 0;
    std::function<void()> observer_;
};

} // namespace hf::sim
