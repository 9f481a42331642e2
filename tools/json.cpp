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

static bool add_members(const nlohmann::json& object, const std::string& before,
                        std::vector<json_found>& to, std::string& why) {
    for (const auto& [name, value] : object.items()) {
        if (value.is_object() && before.empty()) {
            if (!add_members(value, name + ".", to, why)) return false;
        } else if (value.is_string()) {
            to.push_back({before + name, true, value.get<std::string>()});
        } else if (value.is_number_integer() || value.is_boolean()) {
            to.push_back({before + name, false, value.dump()});
        } else {
            why = "expected a text, a whole number or an object of those as \"" + before + name +
                  "\", found " + value.type_name();
            return false;
        }
    }
    return true;
}

std::optional<std::vector<json_found>> read_json_object(std::string_view text, std::string& why) {
    try {
        const auto value = nlohmann::json::parse(text);
        std::vector<json_found> found;
        why = "expected an object, found " + std::string(value.type_name());
        if (value.is_object() && add_members(value, "", found, why)) return found;
    } catch (const nlohmann::json::exception& failed) {
        why = std::string("expected an object of JSON, found another text: ") + failed.what();
    }
    return {};
}

} // namespace hf::tools
