// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hf::tools {
namespace {

/// Bytes of the character that 'text' begins with; 0: it begins with none.
std::size_t character_bytes(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const std::size_t bytes = lead < 0x80                   ? 1
                              : lead >= 0xc2 && lead < 0xe0 ? 2
                              : lead >= 0xe0 && lead < 0xf0 ? 3
                              : lead >= 0xf0 && lead < 0xf5 ? 4
                                                            : 0;
    if (bytes > text.size()) return 0;
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    return std::ranges::all_of(text.substr(1, bytes == 0 ? 0 : bytes - 1), continues) ? bytes : 0;
}

std::string quoted(std::string_view text) {
    constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        if (const auto at = escaped.find(text[0]); at != escaped.npos) {
            out += '\\';
            out += letters[at];
        } else if (bytes == 1 && static_cast<unsigned char>(text[0]) < 0x20) {
            out += fmt::format("\\u{:04x}", text[0]);
        } else if (bytes == 0) {
            out += "\\ufffd";
        } else {
            out += text.substr(0, bytes);
        }
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return out + '"';
}

} // namespace

json_text::json_text(std::initializer_list<member> members) : text_("{}") {
    for (const member& each : members) add(each.name, each.value);
}

json_text json_text::array() {
    json_text out;
    out.text_ = "[]";
    return out;
}

json_text::json_text(std::string_view text) : text_(quoted(text)) {}

json_text::json_text(const std::vector<std::string>& texts) : text_("[]") {
    for (const std::string& each : texts) push(each);
}

json_text::json_text(double number) : text_(fmt::format("{}", number)) {
    if (text_.find_first_of(".en") == text_.npos)
        text_ += ".0"; // a number with a fraction stays one
}

void json_text::add(std::string_view name, const json_text& value) {
    append(quoted(name) + ":" + value.text_);
}

void json_text::push(const json_text& value) { append(value.text_); }

void json_text::append(const std::string& what) {
    text_.insert(text_.size() - 1, text_.size() > 2 ? "," + what : what);
}

} // namespace hf::tools
