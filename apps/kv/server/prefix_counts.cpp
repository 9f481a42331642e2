// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "prefix_counts.hpp"

#include <kv/protocol/protocol.hpp>

namespace hf::kv {

void prefix_counts::add_counted(what happened, std::string_view key) {
    const std::size_t length = key.substr(0, key.find('\0')).find(delimiter_);
    if (length == std::string_view::npos) return;
    const std::string_view prefix = key.substr(0, length);
    const std::lock_guard held(lock_);
    auto at = prefixes_.find(prefix);
    if (at == prefixes_.end()) {
        if (prefixes_.size() >= prefixes_max) return; // (2)
        at = prefixes_.emplace(prefix, entry{}).first;
    }
    ++at->second.of[static_cast<std::size_t>(happened)];
    if (happened == what::hit) ++at->second.of[static_cast<std::size_t>(what::get)];
}

void prefix_counts::reset() {
    const std::lock_guard held(lock_);
    prefixes_.clear();
}

void prefix_counts::append_to(byte_buffer& out) const {
    constexpr std::string_view names[] = {" get ", " hit ", " set ", " del "};
    const std::lock_guard held(lock_);
    for (const auto& [prefix, counted] : prefixes_) {
        out.append("PREFIX ");
        out.append(prefix);
        for (std::size_t i = 0; i < std::size(names); ++i) {
            char digits[20];
            out.append(names[i]);
            out.append({digits, format_number(digits, counted.of[i])});
        }
        out.append("\r\n");
    }
    out.append(reply::end);
}

} // namespace hf::kv
