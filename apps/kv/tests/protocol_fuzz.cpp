// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes into the protocol's parser (libFuzzer). An input is two bytes that choose how it is cut
// into pieces, then what a client sent. Checked of every input:
//
// (1) How the bytes are cut changes nothing: the same requests come out. An exception is a line
//     longer than the limit, which is given up when it is seen without its end; such inputs are
//     only parsed.
// (2) Views of a request lie inside its line; keys and lengths keep their limits; an invalid
//     request has a complete reply line.
// (3) A number that was parsed is printed and parsed again as itself, and a VALUE block has the
//     length its parts add up to.
// (4) Read as packets of the binary protocol, from each byte on that could begin one, (2) holds for
//     them, too: a packet's request adds up, and an answer to it has the length in its header.
#include "fuzz_pieces.hpp"
#include <kv/protocol/binary.hpp>
#include <kv/protocol/meta.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace {

using namespace hf::kv;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "kv_protocol_fuzz: %s\n", what);
    std::abort();
}

// Order and content of all requests seen, as one number.
class digest {
public:
    void add(std::uint64_t word) noexcept { sum_ = (sum_ ^ word) * 0x9e3779b97f4a7c15ULL; }
    void add(std::string_view text) noexcept {
        add(text.size());
        for (char c : text) add(static_cast<unsigned char>(c));
    }
    void add(const request& r) noexcept {
        add(static_cast<std::uint64_t>(r.what) << 3 | unsigned{r.noreply} << 2 |
            unsigned{r.with_cas} << 1 | unsigned{r.touches});
        add(std::uint64_t{r.flags} << 32 | r.value_bytes);
        add(static_cast<std::uint64_t>(r.exptime));
        add(r.cas);
        add(r.delta);
        add(r.key);
        add(r.keys);
        add(r.reply);
    }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 1;
};

bool inside(std::string_view part, std::string_view whole) noexcept {
    return part.empty() || (part.data() >= whole.data() &&
                            part.data() + part.size() <= whole.data() + whole.size());
}

// A key in base64 may have any bytes; its flags are the line's words all the same.
void check_meta(std::string_view line) {
    meta_request m;
    parse_meta(line, m);
    const request& r = m.asks;
    require(r.key.size() <= key_bytes_max, "(2) a meta key beyond the limit");
    require(m.passed_over_bytes <= 0x7fffffffU, "(2) a length beyond the limit");
    require(r.what == verb::reply ? r.reply.ends_with("\r\n") : r.reply.empty(),
            "(2) a meta request without an answer, or with one too early");
    require(r.what == verb::reply || !r.key.empty(), "(2) a meta key is missing");
    for (std::size_t i = m.first_flag; i < m.word_count; ++i)
        require(inside(m.words[i], line), "(2) a flag outside the line");
    byte_buffer out;
    append_meta_flags(out, m, "stcflhOk", {.key = r.key, .binary_key = r.binary_key});
    require(r.what == verb::reply || out.size() < 1024, "(3) flags of a reply without a limit");
}

void check_request(const request& r, std::string_view line) {
    require(inside(r.key, line) && inside(r.keys, line), "(2) a view outside the line");
    require(r.key.size() <= key_bytes_max, "(2) a key beyond the limit");
    require(r.key.find_first_of(std::string_view(" \0\n", 3)) == std::string_view::npos,
            "(2) a key with a separator");
    require(r.what == verb::reply ? r.reply.ends_with("\r\n") : r.reply.empty(),
            "(2) a request without an answer, or with one too early");
    const bool named = carries_value(r.what) || r.what == verb::incr || r.what == verb::decr ||
                       r.what == verb::touch || r.what == verb::remove;
    require(r.what == verb::reply || named == !r.key.empty(), "(2) the key is missing");
    require(r.value_bytes <= 0x7fffffff - 2, "(2) a length beyond the limit");
    if (r.what == verb::meta) check_meta(r.keys);
    if (r.what != verb::retrieve) return;
    std::string_view rest = r.keys;
    for (auto key = next_word(rest); !key.empty(); key = next_word(rest))
        require(key.size() <= key_bytes_max, "(2) a retrieved key beyond the limit");
}

// In a block of exactly its size: one byte read too far is seen by the sanitizer.
request parse_alone(std::string_view line, digest& seen) {
    const std::unique_ptr<char[]> block(new char[line.size()]);
    if (!line.empty()) std::memcpy(block.get(), line.data(), line.size());
    const std::string_view text = without_end({block.get(), line.size()});
    request r = parse(text);
    check_request(r, text);
    seen.add(r);
    r.key = r.keys = {};
    return r;
}

/// Feeds 'input' in pieces as a connection would; 'too_long' reports lines that (1) excepts.
digest converse(std::string_view input, hf::kv::fuzz::pieces cut, bool& too_long) {
    digest seen;
    std::size_t begin = 0, end = 0, scanned = 0, skip = 0;
    while (end < input.size() && !too_long) {
        end += cut.next(input.size() - end);
        while (begin < end) {
            const std::string_view rest = input.substr(begin, end - begin);
            const std::size_t passed = skip < rest.size() ? skip : rest.size();
            if (passed > 0) {
                skip -= passed;
                begin += passed;
                continue;
            }
            const std::size_t length = line_bytes(rest, scanned);
            if (length == 0) {
                scanned = rest.size();
                too_long = !may_be_long(rest);
                break;
            }
            scanned = 0;
            const request r = parse_alone(rest.substr(0, length), seen);
            if (carries_value(r.what)) skip = std::size_t{r.value_bytes} + 2;
            begin += length;
        }
    }
    seen.add(end - begin);
    seen.add(skip);
    return seen;
}

// In a block of exactly its size, as a line.
void check_packet(std::string_view input) {
    const binary::header head = binary::header_of(input);
    if (input.size() < head.front_bytes()) return;
    const std::unique_ptr<char[]> block(new char[head.front_bytes()]);
    std::memcpy(block.get(), input.data(), head.front_bytes());
    const std::string_view front(block.get(), head.front_bytes());
    const binary::command c = binary::parse_packet(front);
    const request& r = c.asks;
    require(inside(r.key, front) && inside(r.keys, front), "(4) a view outside the packet");
    require(r.key.size() <= key_bytes_max, "(4) a key beyond the limit");
    require(r.reply.empty() && !r.noreply, "(4) a text answer");
    const bool named = carries_value(r.what) || r.what == verb::incr || r.what == verb::decr ||
                       r.what == verb::retrieve || r.what == verb::remove;
    require(!named || !r.key.empty(), "(4) the key is missing");
    require(r.what == verb::reply || c.refused == binary::status::ok,
            "(4) refused, and asks for something");
    const std::size_t front_body = head.front_bytes() - binary::header_bytes;
    const bool adds_up = front_body <= head.body_bytes;
    require(adds_up || (c.hangs_up && c.refused == binary::status::unknown),
            "(4) lengths that do not add up");
    require(!adds_up || c.passed_over_bytes <= head.body_bytes - front_body,
            "(4) too much is passed over");
    require(!carries_value(r.what) || r.value_bytes == head.body_bytes - front_body,
            "(4) another value's length");
    byte_buffer out;
    binary::append_response(out, head, c.refused, front.substr(0, 4), r.key, front, head.cas);
    const binary::header said = binary::header_of(out.view());
    require(out.size() == binary::header_bytes + said.body_bytes &&
                said.key_bytes == r.key.size() && said.extras_bytes == 4 &&
                said.opaque == head.opaque && said.cas == head.cas,
            "(4) an answer that is not what its header says");
}

void check_packets(std::string_view input) {
    for (std::size_t at = 0; at + binary::header_bytes <= input.size(); ++at)
        if (at == 0 || static_cast<unsigned char>(input[at]) == binary::request_magic)
            check_packet(input.substr(at));
}

void check_numbers(std::string_view input) {
    std::uint64_t number = 0;
    std::string_view rest = input;
    const std::string_view word = next_word(rest);
    char digits[20];
    if (parse_number(word, number)) {
        std::uint64_t again = 0;
        const std::size_t length = format_number(digits, number);
        require(parse_number({digits, length}, again) && again == number, "(3) another number");
    }
    byte_buffer out;
    const std::string_view key = word.substr(0, key_bytes_max);
    const std::size_t lengths = format_number(digits, key.size()) +
                                format_number(digits, rest.size()) + format_number(digits, number);
    append_value(out, key, static_cast<std::uint32_t>(key.size()), rest, &number);
    require(out.size() == 6 + key.size() + 1 + lengths + 2 + 2 + rest.size() + 2,
            "(3) a VALUE block of another length");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
    bool too_long = false;
    const digest whole = converse(input, {}, too_long);
    const digest cut = converse(input, hf::kv::fuzz::pieces(data[0], data[1]), too_long);
    require(too_long || whole.sum() == cut.sum(), "(1) the pieces changed the requests");
    check_numbers(input);
    check_packets(input);
    return 0;
}
