// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a server opens its pool, after a failure of the machine too.
#pragma once

#include "face.hpp"

namespace hf::kv {

/// open_to_grow(); a torn pool is treated as 'options.torn' says. A pool that is set aside is the
/// same file under the name POOL.torn-DATE, with its log of mode power behind it as
/// POOL.torn-DATE-power; a line for people says so.
///
/// Crash:    before or after it was set aside; the next start goes on.
/// Errors:   those of pool::open; in_use (another server was faster), permission and io_error if
///           the file cannot be renamed, which then stays.
result<pool> open_for_service(const store_options& options, open_options how);

} // namespace hf::kv
