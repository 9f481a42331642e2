// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records the accesses of code that the plugin has built in trace mode (holdfast/abi/trace_abi.h):
// plain code on native pointers, in an arena that represents the simulated memory. It defines the
// functions that such code calls, so a program has either this or the crash checker.
//
// Differs from a recorded program (program.hpp): the load that an address came from is unknown, so
// every load starts at once; and every store is eager and logged.
#pragma once

#include <slpmt/trace_file.hpp>

#include <span>

namespace hf::slpmt {

/// One at a time, of one thread.
class trace_mode_recorder {
public:
    /// 'arena' begins on a line; its first byte is that of the simulated heap.
    explicit trace_mode_recorder(std::span<std::byte> arena);
    ~trace_mode_recorder();
    trace_mode_recorder(const trace_mode_recorder&) = delete;
    trace_mode_recorder& operator=(const trace_mode_recorder&) = delete;

    void begin() { made_.add({event_kind::begin}); }
    void commit() { made_.add({event_kind::commit}); }
    /// The measured part begins here; take() ends it.
    void start() { made_.add({event_kind::start}); }
    recorded take();

    void load(const void* address, std::uint64_t bytes);
    void store(const void* address, std::uint64_t bytes);

private:
    template <class Visit> void for_each_word(const void* address, std::uint64_t bytes,
                                              Visit visit);

    const std::span<std::byte> arena_;
    recorded made_;
};

} // namespace hf::slpmt
