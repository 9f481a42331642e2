// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON: written as text that grows, members in the order in which they came; and read, an object at
// a time.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf::tools {

/// A value. Invalid UTF-8 in a text becomes U+FFFD.
class json_text {
public:
    struct member;

    json_text(std::initializer_list<member> members); // an object
    static json_text array();

    json_text(std::string_view text);
    json_text(const std::string& text) : json_text(std::string_view(text)) {}
    json_text(const char* text) : json_text(std::string_view(text)) {}
    json_text(const std::vector<std::string>& texts);
    json_text(double number);
    template <std::same_as<bool> Bool> json_text(Bool yes) : text_(yes ? "true" : "false") {}
    template <std::integral Integer>
        requires(!std::same_as<Integer, bool>)
    json_text(Integer number) : text_(std::to_string(number)) {}

    /// Requires: this is an object without that member.
    void add(std::string_view name, const json_text& value);
    /// Requires: this is an array.
    void push(const json_text& value);
    const std::string& text() const { return text_; }

private:
    json_text() = default;
    void append(const std::string& what);

    std::string text_;
};

struct json_text::member {
    std::string_view name;
    json_text value;
};

/// A member of an object that was read. Members of an object within it have names like
/// "value.hex".
struct json_found {
    std::string name;
    bool is_text;
    std::string text; // of a number, its digits
};
/// The members of one object of texts, whole numbers, truth values and objects of those; 'why' says
/// what else the text is.
std::optional<std::vector<json_found>> read_json_object(std::string_view text, std::string& why);

} // namespace hf::tools
