// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contents_text.hpp"

#include <algorithm>
#include <cstdint>

namespace hf::tools {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::uint32_t byte_at(std::string_view bytes, std::size_t i) noexcept {
    return static_cast<unsigned char>(bytes[i]);
}

} // namespace

bool is_utf8(std::string_view bytes) noexcept {
    for (std::size_t i = 0; i < bytes.size();) {
        const std::uint32_t first = byte_at(bytes, i);
        const std::size_t n = first < 0x80   ? 1
                              : first < 0xc2 ? 0
                              : first < 0xe0 ? 2
                              : first < 0xf0 ? 3
                              : first < 0xf5 ? 4
                                             : 0;
        if (n == 0 || n > bytes.size() - i) return false;
        std::uint32_t code = n == 1 ? first : first & (0x7fU >> n);
        for (std::size_t k = 1; k < n; ++k) {
            const std::uint32_t next = byte_at(bytes, i + k);
            if ((next & 0xc0) != 0x80) return false;
            code = code << 6 | (next & 0x3f);
        }
        const bool overlong = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
        if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
        i += n;
    }
    return true;
}

std::string to_hex(std::string_view bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        text += hex_digits[byte_at(bytes, i) >> 4];
        text += hex_digits[byte_at(bytes, i) & 15];
    }
    return text;
}

std::string to_base64(std::string_view bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t bits = byte_at(bytes, i) << 16;
        if (n > 1) bits |= byte_at(bytes, i + 1) << 8;
        if (n > 2) bits |= byte_at(bytes, i + 2);
        for (unsigned k = 0; k < 4; ++k)
            text += k <= n ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return {};
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const auto high = hex_digits.find(text[i]), low = hex_digits.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) return {};
        bytes += static_cast<char>(high << 4 | low);
    }
    return bytes;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return {};
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); i += 4) {
        const bool last = i + 4 == text.size();
        std::size_t n = 4;
        while (last && n > 2 && text[i + n - 1] == '=') --n;
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const auto digit = k < n ? base64_digits.find(text[i + k]) : 0;
            if (digit == std::string_view::npos) return {};
            bits = bits << 6 | static_cast<std::uint32_t>(digit);
        }
        for (std::size_t k = 0; k + 1 < n; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k));
    }
    return to_base64(bytes) == text ? std::optional(bytes) : std::nullopt; // one text for all bytes
}

} // namespace hf::tools
