// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/result.hpp>

namespace hf {

std::string_view name(errc code) noexcept {
    switch (code) {
    case errc::ok: return "ok";
    case errc::not_found: return "not_found";
    case errc::exists: return "exists";
    case errc::not_a_pool: return "not_a_pool";
    case errc::truncated: return "truncated";
    case errc::corrupt: return "corrupt";
    case errc::wrong_version: return "wrong_version";
    case errc::unknown_feature: return "unknown_feature";
    case errc::wrong_layout: return "wrong_layout";
    case errc::missing_engine: return "missing_engine";
    case errc::function_changed: return "function_changed";
    case errc::in_use: return "in_use";
    case errc::permission: return "permission";
    case errc::mode_unavailable: return "mode_unavailable";
    case errc::torn: return "torn";
    case errc::address_taken: return "address_taken";
    case errc::pool_full: return "pool_full";
    case errc::limit_reached: return "limit_reached";
    case errc::bad_argument: return "bad_argument";
    case errc::io_error: return "io_error";
    case errc::poisoned: return "poisoned";
    case errc::conflict: return "conflict";
    case errc::not_instrumented: return "not_instrumented";
    }
    return "unknown";
}

} // namespace hf
