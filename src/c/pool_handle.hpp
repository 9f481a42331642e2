// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the C API share: the pool behind the pointer, and how a failure is told.
#pragma once

#include <holdfast/holdfast.h>
#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <cstddef>
#include <string>

struct hf_pool {
    hf::pool opened;

    hf::result<void*> root(std::size_t bytes) { return opened.root_bytes(bytes); }
};

namespace hf::c {

/// Keeps the sentence for hf_error_text().
hf_status fail(errc code, std::string text) noexcept;
inline hf_status told(const status& ended) noexcept {
    return ended.ok() ? HF_OK : fail(ended.code(), ended.what());
}

} // namespace hf::c
