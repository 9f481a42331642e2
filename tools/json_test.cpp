// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The output of commands with --json is JSON, for any contents of a pool or a path.
#include "json.hpp"

#include <gtest/gtest.h>

namespace hf::tools {
namespace {

TEST(Json, MembersStayInTheirOrder) {
    json_text out{{"b", 1}, {"a", true}, {"empty", json_text::array()}};
    json_text list = json_text::array();
    list.push({{"x", -1}});
    list.push({{"x", std::uint64_t{18446744073709551615U}}});
    out.add("list", list);
    out.add("words", std::vector<std::string>{"one", "two"});
    EXPECT_EQ(out.text(),
              R"({"b":1,"a":true,"empty":[],"list":[{"x":-1},{"x":18446744073709551615}],)"
              R"("words":["one","two"]})");
}

TEST(Json, ARealNumberStaysOne) {
    EXPECT_EQ(json_text(0.0).text(), "0.0");
    EXPECT_EQ(json_text(1234.5).text(), "1234.5");
    EXPECT_EQ(json_text(1e300).text(), "1e+300");
}

TEST(Json, ControlCharactersAndQuotesAreEscaped) {
    EXPECT_EQ(json_text("a\"b\\c\n\t\x01/é").text(), "\"a\\\"b\\\\c\\n\\t\\u0001/é\"");
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
    EXPECT_EQ(json_text("a\xff"
                        "b\xc3")
                  .text(),
              "\"a\xef\xbf\xbd"
              "b\xef\xbf\xbd\"");
    EXPECT_EQ(json_text("\xe2\x82").text(), "\"\xef\xbf\xbd\"");
}

} // namespace
} // namespace hf::tools
