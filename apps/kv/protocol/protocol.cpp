// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "protocol.hpp"

#include "journal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace hf::kv {
namespace {

// A command other than a retrieval has at most 7 words; one more shows that there are too many.
constexpr std::size_t words_max = 8;

struct words {
    std::array<std::string_view, words_max> at;
    std::size_t count = 0;
    std::string_view rest; // behind these
};

words split(std::string_view line) noexcept {
    words found;
    while (found.count < words_max) {
        const std::string_view word = next_word(line);
        if (word.empty()) break;
        found.at[found.count++] = word;
    }
    found.rest = line;
    return found;
}

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

// As memcached's safe_strto…: white space and a sign may stand in front, white space behind.
template <class Number> bool parse_integer(std::string_view text, Number& number) noexcept {
    std::size_t start = 0;
    while (start < text.size() && is_space(text[start])) ++start;
    if (start < text.size() && text[start] == '+') {
        ++start;
        if (start < text.size() && text[start] == '-') return false;
    }
    const char* const last = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + start, last, number);
    if (parsed.ec != std::errc()) return false;
    return parsed.ptr == last || is_space(*parsed.ptr);
}

// As its safe_strtod.
bool parse_real(std::string_view text, double& number) noexcept {
    char copy[line_bytes_max + 1] = {}; // which has an end
    if (text.empty() || text.size() >= sizeof copy) return false;
    std::memcpy(copy, text.data(), text.size());
    char* last = nullptr;
    errno = 0;
    number = std::strtod(copy, &last);
    return errno != ERANGE && last != copy && (*last == '\0' || is_space(*last));
}

request answer(std::string_view text, bool noreply = false) noexcept {
    request r;
    r.reply = text;
    r.noreply = noreply;
    return r;
}

bool ends_in_noreply(const words& w) noexcept {
    std::string_view last = w.at[w.count - 1], rest = w.rest;
    for (auto word = next_word(rest); !word.empty(); word = next_word(rest)) last = word;
    return last == "noreply";
}

request parse_storage(verb what, const words& w) noexcept {
    const std::size_t least = what == verb::cas ? 6 : 5;
    if (w.count != least && w.count != least + 1) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    r.key = w.at[1];
    std::int32_t value_bytes = 0;
    if (r.key.size() > key_bytes_max || !parse_flags(w.at[2], r.flags) ||
        !parse_integer(w.at[3], r.exptime) || !parse_integer(w.at[4], value_bytes) ||
        (what == verb::cas && !parse_integer(w.at[5], r.cas)) || value_bytes < 0 ||
        value_bytes > std::numeric_limits<std::int32_t>::max() - 2)
        return answer(reply::bad_format, r.noreply);
    r.what = what;
    r.value_bytes = static_cast<std::uint32_t>(value_bytes);
    return r;
}

request parse_delta(verb what, const words& w) noexcept {
    if (w.count != 3 && w.count != 4) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    r.key = w.at[1];
    if (r.key.size() > key_bytes_max) return answer(reply::bad_format, r.noreply);
    if (!parse_integer(w.at[2], r.delta)) return answer(reply::bad_delta, r.noreply);
    r.what = what;
    return r;
}

request parse_touch(const words& w) noexcept {
    if (w.count != 3 && w.count != 4) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    r.key = w.at[1];
    if (r.key.size() > key_bytes_max) return answer(reply::bad_format, r.noreply);
    if (!parse_integer(w.at[2], r.exptime)) return answer(reply::bad_exptime, r.noreply);
    r.what = verb::touch;
    return r;
}

request parse_delete(const words& w) noexcept {
    if (w.count < 2 || w.count > 4) return answer(reply::error);
    request r;
    if (w.count > 2) {
        // A hold time of zero was once an argument and is still accepted.
        const bool hold_is_zero = w.at[2] == "0";
        r.noreply = ends_in_noreply(w);
        const bool valid = w.count == 3 ? hold_is_zero || r.noreply : hold_is_zero && r.noreply;
        if (!valid) return answer(reply::bad_delete, r.noreply);
    }
    r.key = w.at[1];
    if (r.key.size() > key_bytes_max) return answer(reply::bad_format, r.noreply);
    r.what = verb::remove;
    return r;
}

request parse_flush(const words& w) noexcept {
    if (w.count > 3) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    if (w.count != (r.noreply ? 2U : 1U) && !parse_integer(w.at[1], r.exptime))
        return answer(reply::bad_exptime, r.noreply);
    r.what = verb::flush_all;
    return r;
}

request parse_verbosity(const words& w) noexcept {
    if (w.count != 2 && w.count != 3) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    std::uint32_t level = 0;
    if (!parse_flags(w.at[1], level)) return answer(reply::bad_format, r.noreply);
    r.delta = level;
    r.what = verb::verbosity;
    return r;
}

request parse_memory_limit(const words& w) noexcept {
    constexpr std::uint64_t least = 8, most = 1'000'000'000; // megabytes, as memcached has it
    if (w.count != 2 && w.count != 3) return answer(reply::error);
    request r;
    r.noreply = ends_in_noreply(w);
    if (!parse_integer(w.at[1], r.delta)) return answer(reply::error, r.noreply);
    if (r.delta < least) return answer(reply::limit_too_small, r.noreply);
    if (r.delta > most) return answer(reply::limit_in_bytes, r.noreply);
    r.what = verb::memory_limit;
    return r;
}

// The answers of a memcached that was started with -o no_slab_reassign. Tools that move slabs ask
// whether they may, and accept a level that has no effect.
request parse_slabs(const words& w) noexcept {
    if (w.count == 4 && w.at[1] == "reassign") return answer(reply::no_reassign);
    if (w.count < 3 || w.at[1] != "automove") return answer(reply::error);
    const bool quiet = ends_in_noreply(w);
    if (w.at[2] == "ratio") {
        double ratio = 0;
        const bool valid = w.count > 3 && parse_real(w.at[3], ratio);
        return answer(valid ? reply::ok : reply::error, quiet);
    }
    std::uint32_t level = 0;
    if (!parse_flags(w.at[2], level)) return answer(reply::bad_format, quiet);
    return answer(level <= 2 ? reply::ok : reply::error, quiet);
}

// The answers of a memcached that was started with -o no_lru_maintainer.
request parse_lru(const words& w) noexcept {
    if (w.count < 2) return answer(reply::error);
    const bool quiet = ends_in_noreply(w);
    std::uint32_t hot = 0, warm = 0;
    double hot_factor = 0, warm_factor = 0;
    if (w.count < 6 || w.at[1] != "tune" || !parse_flags(w.at[2], hot) ||
        !parse_flags(w.at[3], warm) || !parse_real(w.at[4], hot_factor) ||
        !parse_real(w.at[5], warm_factor))
        return answer(reply::error, quiet);
    if (hot + warm > 80) return answer(reply::bad_percents, quiet);
    const bool valid = !(hot_factor <= 0) && !(warm_factor <= 0);
    return answer(valid ? reply::ok : reply::bad_factors, quiet);
}

// lru_crawler's commands, except the one that lists items: the answers of a memcached that was
// started with -o no_lru_crawler, and cannot start one.
request parse_crawling(const words& w) noexcept {
    std::uint32_t number = 0;
    const std::string_view asked = w.count > 1 ? w.at[1] : std::string_view();
    if (w.count == 2 && asked == "enable") return answer(reply::crawler_failed);
    if (w.count == 2 && asked == "disable") return answer(reply::ok);
    if (w.count != 3) return answer(reply::error);
    if (asked == "crawl") return answer(reply::no_crawler);
    if (asked != "tocrawl" && asked != "sleep") return answer(reply::error);
    if (!parse_flags(w.at[2], number)) return answer(reply::bad_format);
    return answer(asked == "sleep" && number > 1'000'000 ? reply::bad_sleep : reply::ok);
}

request parse_crawler(const words& w) noexcept {
    if (w.count != 3 || w.at[1] != "metadump") return parse_crawling(w);
    request r;
    r.what = verb::dump;
    std::string_view classes = w.at[2];
    if (classes == "all" || classes == "hash") r.delta = ~std::uint64_t{0};
    else
        while (!classes.empty()) {
            const std::string_view one = classes.substr(0, classes.find(','));
            classes.remove_prefix(std::min(one.size() + 1, classes.size()));
            std::uint32_t number = 0;
            if (one.empty()) continue;
            if (!parse_integer(one, number) || number == 0 || number > size_class_max)
                return answer(reply::bad_class);
            r.delta |= std::uint64_t{1} << number;
        }
    return r;
}

// stats cachedump.
request parse_list(const words& w) noexcept {
    constexpr std::uint32_t classes = 64; // memcached's
    if (w.count < 4) return answer(reply::bad_line);
    std::uint32_t number = 0, lines = 0;
    if (!parse_flags(w.at[2], number) || !parse_flags(w.at[3], lines))
        return answer(reply::bad_format);
    if (number >= classes) return answer(reply::bad_list_class);
    request r;
    r.what = verb::dump;
    r.lists = true;
    r.delta = number;
    r.initial = lines;
    return r;
}

// Events of machinery that is not here are a kind, too, and never occur.
request parse_watch(std::string_view kinds) noexcept {
    constexpr std::pair<std::string_view, watched> names[] = {
        {"fetchers", watched::fetchers},   {"mutations", watched::mutations},
        {"evictions", watched::evictions}, {"connevents", watched::connections},
        {"rawcmds", watched::commands},    {"sysevents", watched::others},
        {"proxyreqs", watched::others},    {"proxyevents", watched::others},
        {"proxyuser", watched::others}};
    request r;
    r.what = verb::watch;
    for (auto kind = next_word(kinds); !kind.empty(); kind = next_word(kinds)) {
        const auto* const named =
            std::ranges::find(names, kind, &std::pair<std::string_view, watched>::first);
        if (named == std::end(names)) return answer(reply::error);
        r.delta |= static_cast<unsigned>(named->second);
    }
    if (r.delta == 0) r.delta = static_cast<unsigned>(watched::fetchers);
    return r;
}

// The keys are checked here, all of them: memcached answers one long key with an error alone.
request parse_retrieval(std::string_view keys, bool with_cas, bool touches) noexcept {
    request r;
    r.with_cas = with_cas;
    r.touches = touches;
    const std::string_view arguments = keys;
    std::string_view rest = keys;
    if (next_word(rest).empty()) return answer(reply::error);
    if (touches) {
        if (!parse_integer(next_word(keys), r.exptime)) return answer(reply::bad_exptime);
    }
    if (arguments.size() > key_bytes_max) {
        rest = keys;
        for (auto key = next_word(rest); !key.empty(); key = next_word(rest))
            if (key.size() > key_bytes_max) return answer(reply::bad_format);
    }
    r.what = verb::retrieve;
    r.keys = keys;
    return r;
}

request parse_stats(const words& w, std::string_view rest) noexcept {
    if (w.count > 1 && w.at[1] == "cachedump") return parse_list(w);
    if (w.count > 1 && w.at[1] == "extstore") return answer(reply::end); // not supported
    request r;
    r.what = w.count > 1 && w.at[1] == "conns" ? verb::connections : verb::stats;
    r.keys = rest;
    return r;
}

request parse_rare(std::string_view command, std::string_view line,
                   std::string_view rest) noexcept {
    const words w = split(line);
    if (command == "replace") return parse_storage(verb::replace, w);
    if (command == "prepend") return parse_storage(verb::prepend, w);
    if (command == "append") return parse_storage(verb::append, w);
    if (command == "cas") return parse_storage(verb::cas, w);
    if (command == "incr") return parse_delta(verb::incr, w);
    if (command == "decr") return parse_delta(verb::decr, w);
    if (command == "touch") return parse_touch(w);
    if (command == "flush_all") return parse_flush(w);
    if (command == "cache_memlimit") return parse_memory_limit(w);
    if (command == "verbosity") return parse_verbosity(w);
    if (command == "lru_crawler") return parse_crawler(w);
    if (command == "slabs") return parse_slabs(w);
    if (command == "lru") return parse_lru(w);
    if (command == "stats") return parse_stats(w, rest);
    if (command == "bget") return parse_retrieval(rest, false, false); // older than its manual
    if (command == "watch") return parse_watch(rest);
    if (command == "mn") return answer("MN\r\n");
    request r;
    if (command.size() == 2 && command[0] == 'm' &&
        std::string_view("gsdae").find(command[1]) != std::string_view::npos) {
        r.what = verb::meta;
        r.keys = line;
        return r;
    }
    if (command == "shutdown") {
        r.what = verb::shutdown;
        r.keys = rest;
        return r;
    }
    if (command == "version") r.what = verb::version;
    else if (command == "refresh_certs") r.what = verb::refresh_certs;
    else if (command == "quit") r.what = verb::quit;
    else if (w.count > 1 && w.at[w.count - 1].starts_with("HTTP/")) r.what = verb::close;
    else r.reply = reply::error;
    return r;
}

} // namespace

std::string_view next_word(std::string_view& words) noexcept {
    const char* at = words.data();
    const char* const last = at + words.size();
    while (at != last && *at == ' ') ++at;
    const char* const start = at;
    if (last - at > 64) {
        const void* space = std::memchr(at, ' ', static_cast<std::size_t>(last - at));
        at = space == nullptr ? last : static_cast<const char*>(space);
    } else {
        while (at != last && *at != ' ') ++at;
    }
    words = {at, static_cast<std::size_t>(last - at)};
    return {start, static_cast<std::size_t>(at - start)};
}

request parse(std::string_view line) noexcept {
    std::string_view rest = line;
    const std::string_view command = next_word(rest);
    // In the order of how often clients send them.
    if (command == "get") return parse_retrieval(rest, false, false);
    if (command == "set") return parse_storage(verb::set, split(line));
    if (command == "gets") return parse_retrieval(rest, true, false);
    if (command == "add") return parse_storage(verb::add, split(line));
    if (command == "delete") return parse_delete(split(line));
    if (command == "gat") return parse_retrieval(rest, false, true);
    if (command == "gats") return parse_retrieval(rest, true, true);
    if (command.size() < 2) return answer(reply::error);
    return parse_rare(command, line, rest);
}

std::size_t line_bytes(std::string_view input, std::size_t from) noexcept {
    if (from >= input.size()) return 0;
    const void* end = std::memchr(input.data() + from, '\n', input.size() - from);
    if (end == nullptr) return 0;
    return static_cast<std::size_t>(static_cast<const char*>(end) - input.data()) + 1;
}

std::string_view without_end(std::string_view line) noexcept {
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    // memcached works on C strings: what follows a zero byte in a command line is not seen.
    const void* zero = line.empty() ? nullptr : std::memchr(line.data(), 0, line.size());
    if (zero != nullptr)
        line =
            line.substr(0, static_cast<std::size_t>(static_cast<const char*>(zero) - line.data()));
    return line;
}

bool may_be_long(std::string_view input) noexcept {
    if (input.size() <= line_bytes_max) return true;
    const std::string_view command = next_word(input);
    return command == "get" || command == "gets" || command == "gat" || command == "gats";
}

bool parse_number(std::string_view text, std::uint64_t& number) noexcept {
    return parse_integer(text, number);
}

bool parse_signed(std::string_view text, std::int64_t& number) noexcept {
    return parse_integer(text, number);
}

bool parse_flags(std::string_view text, std::uint32_t& flags) noexcept {
    std::uint64_t all = 0;
    if (!parse_integer(text, all)) return false;
    flags = static_cast<std::uint32_t>(all);
    return true;
}

std::size_t format_number(char* to, std::uint64_t number) noexcept {
    return static_cast<std::size_t>(std::to_chars(to, to + 20, number).ptr - to);
}

void append_value(byte_buffer& out, std::string_view key, std::uint32_t flags,
                  std::string_view value, const std::uint64_t* cas) {
    // "VALUE " + key + three numbers of at most 20 digits + spaces and line ends
    char* const start = out.room(6 + key.size() + 64 + value.size() + 8);
    char* at = start;
    std::memcpy(at, "VALUE ", 6);
    at += 6;
    std::memcpy(at, key.data(), key.size());
    at += key.size();
    *at++ = ' ';
    if (flags == 0) *at++ = '0';
    else at += format_number(at, flags);
    *at++ = ' ';
    at += format_number(at, value.size());
    if (cas != nullptr) {
        *at++ = ' ';
        at += format_number(at, *cas);
    }
    *at++ = '\r';
    *at++ = '\n';
    std::memcpy(at, value.data(), value.size());
    at += value.size();
    *at++ = '\r';
    *at++ = '\n';
    out.commit(static_cast<std::size_t>(at - start));
}

void append_stat(byte_buffer& out, std::string_view name, std::string_view value) {
    out.append("STAT ");
    out.append(name);
    out.append(" ");
    out.append(value);
    out.append("\r\n");
}

void append_stat(byte_buffer& out, std::string_view name, std::uint64_t value) {
    char digits[20];
    append_stat(out, name, std::string_view(digits, format_number(digits, value)));
}

} // namespace hf::kv
