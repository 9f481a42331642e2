// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Draws litmus tests, and compares model and enumerator on all there are.
#include <check/litmus/enumerator.hpp>
#include <check/litmus/litmus.hpp>
#include <check/litmus/machine.hpp>

#include <random>
#include <string>

namespace hf::check::litmus {
namespace {

using choices =
    std::vector<std::string_view>; // weights are the number of times a line stands there

const choices instructions{
    "L=V",    "L=V",       "L=V",          "L=V",        "L=V",       "L:2=V",       "L=nt V",
    "L=nt V", "R=L",       "R=L",          "clwb L",     "clwb L",    "sfence",      "sfence",
    "mfence", "clflush L", "clflushopt L", "R=xchg L V", "R=add L 1", "R=cas L 0 V",
};
const choices locations{"x", "x", "x", "x1", "x1", "y", "y", "z"};
// The instructions for one line: every way in which kinds of stores meet.
const choices instructions_of_line{"L=V",    "L=V",    "L:2=V",  "L=nt V",    "L=nt V",
                                   "L=nt V", "clwb L", "sfence", "R=xchg L V"};
const choices locations_of_line{"x", "x", "x1", "x1", "x2"};
const choices domains_drawn{"adr", "adr", "adr", "adr", "eadr", "process"};

class drawing {
public:
    explicit drawing(std::uint64_t seed) : random_(seed) {}

    std::size_t below(std::size_t n) { return random_() % n; } // distributions differ by library
    std::string_view one_of(const choices& from) { return from[below(from.size())]; }
    std::string instruction(bool one_line) {
        std::string out;
        for (const char c : one_of(one_line ? instructions_of_line : instructions)) {
            if (c == 'L') out += one_of(one_line ? locations_of_line : locations);
            else if (c == 'V') out += static_cast<char>('0' + below(4));
            else if (c == 'R') out += static_cast<char>('a' + registers_++ % 8);
            else out += c;
        }
        return out;
    }

private:
    std::mt19937_64 random_;
    unsigned registers_ = 0;
};

void compare(const litmus_test& test, litmus_result& into) {
    const program p = parse(test.text);
    const outcomes model = explore(p, test.domain), enumerated = enumerate(p, test.domain);
    ++into.tests;
    into.outcomes += enumerated.crash.size() + enumerated.done.size() + enumerated.final.size();
    if (model != enumerated) {
        ++into.differences;
        into.text += test.name + ": " + test.text + "\n" + difference(p, model, enumerated);
    }
    for (const expectation& e : parse_expected(p, test.expected)) {
        ++into.expectations;
        if (holds(e, model) && holds(e, enumerated)) continue;
        ++into.unmet;
        into.text += test.name + ": " + test.text + "\n  not as expected: " + test.expected + "\n";
    }
}

} // namespace

litmus_test generated(std::uint64_t seed) {
    drawing draw(seed);
    const std::string_view domain = draw.one_of(domains_drawn);
    const bool one_line = draw.below(3) == 0;
    const std::size_t threads = 1 + draw.below(6) / 2; // 1, 2 or 3
    const std::size_t length = threads == 1 ? 6 : threads == 2 ? 4 : 2;
    std::string text = "x=1"; // so that there is something to lose
    for (std::size_t t = 0; t < threads; ++t) {
        text += t == 0 ? "" : " || ";
        for (std::size_t i = t == 0 ? 1 : 0; i < length; ++i)
            text += (i == 0 ? "" : "; ") + draw.instruction(one_line);
    }
    return {"seed " + std::to_string(seed),
            domain == "adr"    ? hf::domain::adr
            : domain == "eadr" ? hf::domain::eadr
                               : hf::domain::process,
            text, ""};
}

litmus_result run_litmus(unsigned drawn) {
    litmus_result out;
    for (const litmus_test& t : table()) compare(t, out);
    for (unsigned seed = 1; seed <= drawn; ++seed) compare(generated(seed), out);
    return out;
}

} // namespace hf::check::litmus
