// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/litmus/litmus.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace hf::check::litmus {
namespace {

constexpr std::string_view line_names = "xyzw";

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> out;
    while (true) {
        const std::size_t at = text.find(separator);
        if (const auto part = trimmed(text.substr(0, at)); !part.empty()) out.push_back(part);
        if (at == std::string_view::npos) return out;
        text.remove_prefix(at + separator.size());
    }
}

bool is_location(std::string_view name) {
    return !name.empty() && line_names.find(name[0]) != std::string_view::npos &&
           (name.size() == 1 || (name.size() == 2 && name[1] >= '1' && name[1] <= '7'));
}
std::uint8_t location(std::string_view name) {
    HF_ASSERT(is_location(name));
    const std::size_t word = name.size() == 1 ? 0 : static_cast<std::size_t>(name[1] - '0');
    return static_cast<std::uint8_t>(line_names.find(name[0]) * words_per_line + word);
}
std::string location_name(unsigned word) {
    std::string out(1, line_names[word / words_per_line]);
    if (word % words_per_line != 0) out += static_cast<char>('0' + word % words_per_line);
    return out;
}

bool is_register(std::string_view name) {
    return name.size() == 1 && name[0] >= 'a' && name[0] <= 'h';
}
std::uint8_t number(std::string_view digit) {
    HF_ASSERT(digit.size() == 1 && std::isdigit(static_cast<unsigned char>(digit[0])) != 0);
    return static_cast<std::uint8_t>(digit[0] - '0');
}

/// The source of a register: "x", "xchg x 1", "add x 1" or "cas x 0 1".
instruction parse_load(std::uint8_t reg, const std::vector<std::string_view>& words) {
    if (words.size() == 1) return {.what = op::load, .word = location(words[0]), .reg = reg};
    const op what = words[0] == "xchg" ? op::xchg : words[0] == "add" ? op::add : op::cas;
    HF_ASSERT(what != op::cas || words[0] == "cas");
    HF_ASSERT(words.size() == (what == op::cas ? 4 : 3));
    instruction out{
        .what = what, .word = location(words[1]), .value = number(words.back()), .reg = reg};
    if (what == op::cas) out.expected = number(words[2]);
    return out;
}

instruction parse_store(std::string_view to, const std::vector<std::string_view>& words) {
    const auto parts = split(to, ":");
    const bool nt = words[0] == "nt";
    instruction out{.what = nt ? op::nt_store : op::store,
                    .word = location(parts[0]),
                    .value = number(words.back())};
    if (parts.size() == 2) out.words = number(parts[1]);
    HF_ASSERT(words.size() == (nt ? 2 : 1) && (out.words == 1 || (out.words == 2 && !nt)));
    HF_ASSERT(out.word % words_per_line + out.words <= words_per_line);
    return out;
}

instruction parse_instruction(std::string_view text) {
    if (text == "sfence") return {.what = op::sfence};
    if (text == "mfence") return {.what = op::mfence};
    if (const std::size_t at = text.find('='); at != std::string_view::npos) {
        const auto to = trimmed(text.substr(0, at));
        const auto words = split(text.substr(at + 1), " ");
        HF_ASSERT(!words.empty());
        if (!is_register(to)) return parse_store(to, words);
        return parse_load(static_cast<std::uint8_t>(to[0] - 'a'), words);
    }
    constexpr std::array<std::pair<std::string_view, op>, 3> flushes{
        {{"clflush", op::clflush}, {"clflushopt", op::clflushopt}, {"clwb", op::clwb}}};
    const auto words = split(text, " ");
    const auto found =
        std::ranges::find(flushes, words[0], &std::pair<std::string_view, op>::first);
    HF_ASSERT(words.size() == 2 && found != flushes.end());
    return {.what = found->second, .word = location(words[1])};
}

bool names_location(const instruction& i) { return i.what != op::sfence && i.what != op::mfence; }
bool names_register(const instruction& i) {
    return i.what == op::load || i.what == op::xchg || i.what == op::add || i.what == op::cas;
}

std::size_t index_of(const program& of, std::string_view name) {
    if (is_register(name)) return of.locations.size() + static_cast<std::size_t>(name[0] - 'a');
    const auto found = std::ranges::find(of.locations, location(name));
    HF_ASSERT(found != of.locations.end());
    return static_cast<std::size_t>(found - of.locations.begin());
}

void add_missing(const program& of, const std::set<outcome>& from, const std::set<outcome>& in,
                 std::string_view what, std::string& out) {
    for (const outcome& o : from)
        if (!in.contains(o)) out.append(what).append(to_string(of, o)).append("\n");
}

} // namespace

program parse(std::string_view text) {
    program out;
    std::set<std::uint8_t> locations;
    for (const std::string_view thread : split(text, "||")) {
        out.threads.emplace_back();
        for (const std::string_view part : split(thread, ";")) {
            const instruction i = parse_instruction(part);
            out.threads.back().push_back(i);
            if (names_location(i))
                for (unsigned w = 0; w < i.words; ++w)
                    locations.insert(static_cast<std::uint8_t>(i.word + w));
            if (names_register(i)) out.registers = std::max(out.registers, i.reg + 1u);
        }
    }
    HF_ASSERT(!out.threads.empty() && !locations.empty());
    out.locations.assign(locations.begin(), locations.end());
    out.lines = out.locations.back() / words_per_line + 1u;
    return out;
}

std::vector<expectation> parse_expected(const program& of, std::string_view text) {
    std::vector<expectation> out;
    for (const std::string_view sentence : split(text, ";")) {
        const auto words = split(sentence, " ");
        HF_ASSERT(words.size() > 2 && (words[1] == "allows" || words[1] == "forbids"));
        HF_ASSERT(words[0] == "crash" || words[0] == "done" || words[0] == "final");
        expectation e{words[0] == "crash"  ? &outcomes::crash
                      : words[0] == "done" ? &outcomes::done
                                           : &outcomes::final,
                      words[1] == "allows",
                      {}};
        for (std::size_t i = 2; i < words.size(); ++i) {
            const auto sides = split(words[i], "=");
            HF_ASSERT(sides.size() == 2 && sides[1].size() == 1);
            e.values.emplace_back(index_of(of, sides[0]), sides[1][0]);
        }
        out.push_back(std::move(e));
    }
    return out;
}

bool holds(const expectation& what, const outcomes& found) {
    const auto matches = [&](const outcome& o) {
        return std::ranges::all_of(what.values, [&](auto v) { return o[v.first] == v.second; });
    };
    return std::ranges::any_of(found.*what.where, matches) == what.allowed;
}

std::string to_string(const program& of, const outcome& what) {
    std::string out;
    for (std::size_t i = 0; i < what.size(); ++i) {
        const std::size_t locations = of.locations.size();
        if (i != 0) out += ' ';
        out += i < locations ? location_name(of.locations[i])
                             : std::string(1, static_cast<char>('a' + (i - locations)));
        out += '=';
        out += what[i];
    }
    return out;
}

std::string difference(const program& of, const outcomes& model, const outcomes& enumerated) {
    std::string out;
    const auto both = [&](std::set<outcome> outcomes::* set, const std::string& name) {
        add_missing(of, model.*set, enumerated.*set, "  " + name + ", model only:      ", out);
        add_missing(of, enumerated.*set, model.*set, "  " + name + ", enumerator only: ", out);
    };
    both(&outcomes::crash, "crash");
    both(&outcomes::done, "done");
    both(&outcomes::final, "final");
    return out;
}

} // namespace hf::check::litmus
