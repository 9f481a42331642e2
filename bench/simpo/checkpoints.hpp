// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ways to keep a durable image of an object that is worked on in volatile memory.  SIMPO §3.2, Fig. 6
//
//   dual     writes the copy that does not count, then says that it counts           2 ordering points
//   double   writes the one copy, says so, then the other one                           4
//   kamino   the same, but a thread of its own copies from the one to the other, while calls go on     2, and 2
//   cow      copies the old image to fresh memory, names that, updates in place, frees it         4
//   file     dual, in a file: two pwrites, two fdatasyncs
//
// Each leaves, at any instruction, an image that is whole and a word that says where:
// checkpoints_test.cpp stops them at every fence. None of them skips unchanged parts, as Holdfast's
// own checkpoint does. Each of the comparators has the fewest ordering points that this allows:
// cow's allocator is one bit beside the word.
#pragma once

#include <pool/medium.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hf::bench {

class checkpoint_scheme {
public:
    virtual ~checkpoint_scheme() = default;
    /// The durable image is `object` on return.
    virtual void write(const std::byte* object) = 0;
    /// The image as an open after a crash would find it.
    virtual const std::byte* recovered() = 0;
    /// Finishes what write() has begun.
    virtual void settle() {}
};

/// In `memory` of memory_for(bytes) zeroed bytes, from a line on; `bytes` is a multiple of 64.
/// file: in `path`.
std::unique_ptr<checkpoint_scheme> make_scheme(std::string_view name, medium pm, std::byte* memory,
                                               std::size_t bytes, const std::string& path);
/// For all of them except file: the image that an open finds in the memory after a crash.
const std::byte* image_that_counts(const std::byte* memory, std::size_t bytes);
constexpr std::size_t memory_for(std::size_t bytes) { return 64 + 2 * bytes; }

} // namespace hf::bench
