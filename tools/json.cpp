// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json.hpp"

#include <nlohmann/json.hpp>

namespace hf::tools {

/// As the library writes one value: this source alone includes it, because it takes long to
/// compile.
static std::string written(const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

json_text::json_text(std::initializer_list<member> members) : text_("{}") {
    for (const member& each : members) add(each.name, each.value);
}

json_text json_text::array() {
    json_text out;
    out.text_ = "[]";
    return out;
}

json_text::json_text(std::string_view text) : text_(written(text)) {}

json_text::json_text(const std::vector<std::string>& texts) : text_("[]") {
    for (const std::string& each : texts) push(each);
}

json_text::json_text(double number) : text_(written(number)) {}

void json_text::add(std::string_view name, const json_text& value) {
    append(written(name) + ":" + value.text_);
}

void json_text::push(const json_text& value) { append(value.text_); }

void json_text::append(const std::string& what) {
    text_.insert(text_.size() - 1, text_.size() > 2 ? "," + what : what);
}

} // namespace hf::tools
