// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: lines become the requests, and the refusals, that memcached 1.6 makes of them. Method:
// lines by hand for what each command may carry; any short byte string for what it may not. That
// the answers are memcached's is same_answers_test.py's business.
#include "protocol.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

namespace {

using namespace hf::kv;

TEST(Protocol, StorageLineGivesEveryField) {
    const request r = parse("set key 7 100 3");
    EXPECT_EQ(r.what, verb::set);
    EXPECT_EQ(r.key, "key");
    EXPECT_EQ(r.flags, 7U);
    EXPECT_EQ(r.exptime, 100);
    EXPECT_EQ(r.value_bytes, 3U);
    EXPECT_FALSE(r.noreply);
    const request c = parse("cas key 4294967295 -1 0 18446744073709551615 noreply");
    EXPECT_EQ(c.what, verb::cas);
    EXPECT_EQ(c.flags, 4294967295U);
    EXPECT_EQ(c.exptime, -1);
    EXPECT_EQ(c.cas, 18446744073709551615U);
    EXPECT_TRUE(c.noreply);
}

TEST(Protocol, EveryStorageCommandIsKnown) {
    EXPECT_EQ(parse("add k 0 0 1").what, verb::add);
    EXPECT_EQ(parse("replace k 0 0 1").what, verb::replace);
    EXPECT_EQ(parse("append k 0 0 1").what, verb::append);
    EXPECT_EQ(parse("prepend k 0 0 1").what, verb::prepend);
    for (const verb v :
         {verb::set, verb::add, verb::replace, verb::append, verb::prepend, verb::cas})
        EXPECT_TRUE(carries_value(v));
    EXPECT_FALSE(carries_value(verb::incr));
    EXPECT_FALSE(carries_value(verb::retrieve));
}

TEST(Protocol, WrongNumberOfWordsIsAnError) {
    for (const char* line :
         {"set", "set k", "set k 0 0", "set k 0 0 1 noreply x", "cas k 0 0 1", "incr k", "touch k",
          "delete", "get", "gat", "gat 0", "verbosity", "flush_all 1 2 3"}) {
        const request r = parse(line);
        if (std::string_view(line) == "gat 0") continue; // no keys: memcached answers END
        EXPECT_EQ(r.what, verb::reply) << line;
        EXPECT_EQ(r.reply, reply::error) << line;
    }
}

TEST(Protocol, BadNumbersAreBadFormat) {
    for (const char* line :
         {"set k x 0 1", "set k 0 x 1", "set k 0 0 x", "set k 0 0 -1", "set k -1 0 1",
          "set k 18446744073709551616 0 1", "set k 0 0 2147483646", "cas k 0 0 1 x"})
        EXPECT_EQ(parse(line).reply, reply::bad_format) << line;
    EXPECT_EQ(parse("incr k x").reply, reply::bad_delta);
    EXPECT_EQ(parse("touch k x").reply, reply::bad_exptime);
    EXPECT_EQ(parse("delete k 1").reply, reply::bad_delete);
}

TEST(Protocol, FlagsKeepTheLowerHalfOf64Bits) {
    EXPECT_EQ(parse("set k 4294967295 0 1").flags, 4294967295U);
    EXPECT_EQ(parse("set k 4294967297 0 1").flags, 1U);
}

TEST(Protocol, KeysEndAt250Bytes) {
    const std::string longest(250, 'k'), longer(251, 'k');
    EXPECT_EQ(parse("set " + longest + " 0 0 1").what, verb::set);
    EXPECT_EQ(parse("get " + longest).what, verb::retrieve);
    for (const std::string& line :
         {"set " + longer + " 0 0 1", "get " + longer, "get a " + longer + " b", "gat 0 " + longer,
          "delete " + longer, "incr " + longer + " 1", "touch " + longer + " 1"})
        EXPECT_EQ(parse(line).reply, reply::bad_format) << line;
}

TEST(Protocol, RetrievalsHandOutTheirKeysOneByOne) {
    const std::string line = "gats 60  one two   three ";
    request r = parse(line);
    EXPECT_TRUE(r.touches);
    EXPECT_TRUE(r.with_cas);
    EXPECT_EQ(r.exptime, 60);
    EXPECT_EQ(next_word(r.keys), "one");
    EXPECT_EQ(next_word(r.keys), "two");
    EXPECT_EQ(next_word(r.keys), "three");
    EXPECT_EQ(next_word(r.keys), "");
}

TEST(Protocol, NoreplyIsTheLastWord) {
    EXPECT_TRUE(parse("delete k noreply").noreply);
    EXPECT_TRUE(parse("delete k 0 noreply").noreply);
    EXPECT_TRUE(parse("incr k 1 noreply").noreply);
    EXPECT_TRUE(parse("flush_all noreply").noreply);
    EXPECT_TRUE(parse("flush_all 10 noreply").noreply);
    EXPECT_TRUE(parse("set k x 0 1 noreply").noreply); // refused without an answer
}

TEST(Protocol, LinesEndWithOrWithoutACarriageReturn) {
    EXPECT_EQ(line_bytes("get a"), 0U);
    EXPECT_EQ(line_bytes("get a\r\nget b\r\n"), 7U);
    EXPECT_EQ(line_bytes("get a\n", 5), 6U);
    EXPECT_EQ(without_end("get a\r\n"), "get a");
    EXPECT_EQ(without_end("get a\n"), "get a");
    EXPECT_EQ(without_end("\n"), "");
}

TEST(Protocol, OnlyRetrievalsMayBeLong) {
    EXPECT_TRUE(may_be_long(std::string(2048, 'x')));
    EXPECT_FALSE(may_be_long(std::string(2049, 'x')));
    EXPECT_TRUE(may_be_long("get " + std::string(4000, 'x')));
}

TEST(Protocol, ValuesAreWrittenAsClientsReadThem) {
    byte_buffer out;
    append_value(out, "key", 7, "abc", nullptr);
    const std::uint64_t cas = 12;
    append_value(out, "k", 0, "", &cas);
    append_stat(out, "pid", std::uint64_t{0});
    EXPECT_EQ(out.view(), "VALUE key 7 3\r\nabc\r\nVALUE k 0 0 12\r\n\r\nSTAT pid 0\r\n");
}

TEST(Protocol, NumbersInValuesMayEndInSpace) {
    std::uint64_t n = 0;
    EXPECT_TRUE(parse_number("18446744073709551615", n));
    EXPECT_EQ(n, 18446744073709551615U);
    EXPECT_TRUE(parse_number("99  ", n));
    EXPECT_EQ(n, 99U);
    for (const char* text : {"", " ", "-1", "x", "1x", "18446744073709551616"})
        EXPECT_FALSE(parse_number(text, n)) << text;
}

// Random words from the protocol's own vocabulary reach deeper than random bytes; both are tried.
TEST(Protocol, AnyBytesAreUnderstoodOrRefused) {
    constexpr unsigned seed = 20241;
    std::mt19937 random(seed);
    const std::string_view words[] = {"get",  "set",   "cas",       "gat",
                                      "incr", "touch", "delete",    "noreply",
                                      "k",    "0",     "-1",        "99999999999999999999",
                                      " ",    "\x00x", "flush_all", "stats"};
    for (int round = 0; round < 100'000; ++round) {
        std::string line;
        for (unsigned n = random() % 10; n > 0; --n) {
            if (random() % 8 == 0) line += static_cast<char>(random());
            else line += words[random() % std::size(words)];
            if (random() % 8 != 0) line += ' ';
        }
        const request r = parse(without_end(line));
        if (r.what == verb::reply) {
            EXPECT_TRUE(r.reply.ends_with("\r\n")) << line;
        }
        EXPECT_LE(r.key.size(), key_bytes_max);
    }
}

TEST(ByteBuffer, ReservesNoMoreThanItWillEverHold) {
    byte_buffer buffer;
    const std::string piece(100'000, 'x');
    for (int i = 0; i < 10; ++i) {
        std::memcpy(buffer.room(piece.size(), 1'000'000), piece.data(), piece.size());
        buffer.commit(piece.size());
        EXPECT_LE(buffer.capacity(), 1'000'000U);
    }
    EXPECT_EQ(buffer.view(), std::string(1'000'000, 'x'));
    buffer.append("y"); // a caller with a wrong 'most' still gets room
    EXPECT_EQ(buffer.size(), 1'000'001U);
}

TEST(ByteBuffer, GivesBackWhatWasPutInThroughAnyPattern) {
    constexpr unsigned seed = 7;
    std::mt19937 random(seed);
    byte_buffer buffer;
    std::string expected;
    for (int round = 0; round < 20'000; ++round) {
        const std::string piece(random() % 300, static_cast<char>(random()));
        buffer.append(piece);
        expected += piece;
        const std::size_t gone = random() % (expected.size() + 1);
        ASSERT_EQ(buffer.view(), expected);
        buffer.consume(gone);
        expected.erase(0, gone);
        if (random() % 16 == 0) buffer.shrink(0);
    }
}

} // namespace
