// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells the service manager that started the server how it is, where one asks (NOTIFY_SOCKET,
// sd_notify(3)): its protocol is a datagram of text, and promised to stay.
#pragma once

#include <string_view>

namespace hf::kv {

/// "READY=1", "STOPPING=1". Without a service manager that listens, nothing happens.
void tell_service_manager(std::string_view state) noexcept;

} // namespace hf::kv
