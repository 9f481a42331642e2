// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the parts of the C API: the pool behind the pointer, and the report of a failure.
#pragma once

#include <holdfast/holdfast.h>
#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

struct hf_pool {
    explicit hf_pool(hf::pool&& made) : own(std::move(made)), opened(*own) {}
    explicit hf_pool(hf::pool& migrated) : opened(migrated) {} // not yet the caller's
    hf_pool(const hf_pool&) = delete;

    std::optional<hf::pool> own;
    hf::pool& opened;

    hf::result<void*> root(std::size_t bytes) { return opened.root_bytes(bytes); }
};

namespace hf::c {

/// Keeps the sentence for hf_error_text().
hf_status fail(errc code, std::string text) noexcept;
/// Runs a migration that is written in C.
status migrated(migration& of, hf_migrate_function run, void* context);
inline hf_status told(const status& ended) noexcept {
    return ended.ok() ? HF_OK : fail(ended.code(), ended.what());
}

} // namespace hf::c
