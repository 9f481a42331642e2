// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: packets become the requests, and the refusals, that memcached 1.6 makes of them. Method: a
// packet for each command, by hand. That the answers are memcached's is binary_answers_test.py's
// business.
#include "binary.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace hf::kv;

std::string packet(unsigned code, std::string_view extras, std::string_view key,
                   std::size_t value_bytes, char cas = 0) {
    const std::size_t body = extras.size() + key.size() + value_bytes;
    std::string text = "\x80";
    for (const std::size_t byte : {std::size_t{code}, key.size() >> 8, key.size() & 255,
                                   extras.size(), std::size_t{0}, std::size_t{0}, std::size_t{0},
                                   body >> 24, body >> 16 & 255, body >> 8 & 255, body & 255})
        text += static_cast<char>(byte);
    text += "\x01\x02\x03\x04" + std::string(7, '\0') + cas;
    return text.append(extras).append(key);
}

constexpr std::string_view storage_extras("\x80\0\0\x07\0\0\0\x64", 8);

TEST(Binary, StoragePacketGivesEveryField) {
    const std::string front = packet(0x01, storage_extras, "key", 0x01020304);
    const binary::command c = binary::parse_packet(front);
    EXPECT_EQ(c.asks.what, verb::set);
    EXPECT_EQ(c.asks.key, "key");
    EXPECT_EQ(c.asks.flags, 0x80000007U);
    EXPECT_EQ(c.asks.exptime, 100);
    EXPECT_EQ(c.asks.value_bytes, 0x01020304U);
    EXPECT_EQ(c.head.opaque, 0x01020304U);
    EXPECT_FALSE(c.quiet);
    EXPECT_EQ(c.head.front_bytes(), front.size());
}

TEST(Binary, CasNumberMakesEachStorageCommandACas) {
    for (const unsigned code : {0x01U, 0x02U, 0x03U, 0x11U, 0x12U, 0x13U}) {
        const std::string front = packet(code, storage_extras, "key", 1, 9);
        const binary::command c = binary::parse_packet(front);
        EXPECT_EQ(c.asks.what, verb::cas) << code;
        EXPECT_EQ(c.asks.cas, 9U) << code;
        EXPECT_EQ(c.quiet, code > 0x10) << code;
    }
}

TEST(Binary, ExpiryOfAllOnesMakesNoNumber) {
    for (const bool makes : {true, false}) {
        std::string extras(20, '\0');
        extras[7] = 5;
        extras[15] = 6;
        if (!makes) extras.replace(16, 4, "\xff\xff\xff\xff");
        const std::string front = packet(0x15, extras, "n", 0);
        const binary::command c = binary::parse_packet(front);
        EXPECT_EQ(c.asks.what, verb::incr);
        EXPECT_EQ(c.asks.delta, 5U);
        EXPECT_EQ(c.asks.initial, 6U);
        EXPECT_EQ(c.asks.vivifies, makes);
        EXPECT_TRUE(c.quiet);
    }
}

TEST(Binary, WrongPartsAreRefusedAndHungUpOn) {
    const std::string long_key(251, 'k');
    for (const std::string& front :
         {packet(0x01, storage_extras.substr(1), "k", 1), packet(0x01, storage_extras, "", 1),
          packet(0x00, "", "", 0), packet(0x00, "", "k", 1), packet(0x0a, "", "k", 0),
          packet(0x05, "", "k", 0), packet(0x1c, "", "k", 0), packet(0x08, "xx", "", 0),
          packet(0x10, "x", "", 0), packet(0x00, "", long_key, 0), packet(0x1b, "", "", 0)}) {
        const binary::command c = binary::parse_packet(front);
        EXPECT_EQ(c.asks.what, verb::reply) << unsigned{c.head.code};
        EXPECT_EQ(c.refused, binary::status::bad_arguments) << unsigned{c.head.code};
        EXPECT_TRUE(c.hangs_up) << unsigned{c.head.code};
    }
}

TEST(Binary, LengthsThatDoNotAddUpEndTheConnection) {
    std::string front = packet(0x01, storage_extras, "key", 0);
    front[11] = 10; // of eleven
    const binary::command c = binary::parse_packet(front);
    EXPECT_EQ(c.refused, binary::status::unknown);
    EXPECT_TRUE(c.hangs_up);
}

TEST(Binary, UnknownCommandIsPassedOverWhole) {
    const std::string front = packet(0x55, "x", "key", 0xff000000 - 4);
    const binary::command c = binary::parse_packet(front);
    EXPECT_EQ(c.refused, binary::status::unknown);
    EXPECT_FALSE(c.hangs_up);
    EXPECT_EQ(c.passed_over_bytes, 0xff000000U - 4);
}

TEST(Binary, AnswerIsItsHeaderAndParts) {
    byte_buffer out;
    binary::append_response(out, {.code = 0x0c, .opaque = 0xdeadbeef}, binary::status::not_found,
                            "ext", "key", "value", 0x0102030405060708);
    EXPECT_EQ(out.view(), std::string_view("\x81\x0c\0\x03\x03\0\0\x01\0\0\0\x0b\xde\xad\xbe\xef"
                                           "\x01\x02\x03\x04\x05\x06\x07\x08"
                                           "extkeyvalue",
                                           35));
}

} // namespace
