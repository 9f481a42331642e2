// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inside a run: the process dies and another takes the pool up as it lies in the caches.
#pragma once

#include <base/assert.hpp>
#include <open/pool_impl.hpp>
#include <section/section.hpp>

#include <chrono>

namespace hf::crash {

/// Recovers 'p', which goes on as if it had been opened anew, in its mode.
inline void take_over(pool& p, open_options options) {
    options.mode = p.mode();
    current_section = nullptr;
    static memory_image image; // as long as the pool, which is closed after this
    image = {p.internals().file->base(), p.max_bytes(), p.max_bytes(), false};
    pool::impl::abandon(std::move(p));
    auto again = pool_file::open_image(image, file_options_of(options));
    if (!again) fatal("%s", again.error().what().c_str());
    open_options as_image = options;
    as_image.expert.guard_signals = false;
    auto opened = pool::impl::open(std::move(*again), as_image, std::chrono::steady_clock::now());
    if (!opened) fatal("%s", opened.error().what().c_str());
    p = std::move(*opened);
}

} // namespace hf::crash
