// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verdict.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

namespace hf::classify {

const char* text_of(kind k) {
    switch (k) {
    case kind::interface: return "interface";
    case kind::argument: return "argument";
    case kind::layout: return "layout";
    case kind::effect: return "effect";
    }
    return "";
}

/// Steps inside the system's headers say little: names their caller and what is behind them.
std::string reason::text() const {
    std::string out = at.text() + ": ";
    std::size_t shown = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (i > 0 && steps[i].at.of_system) continue;
        out += (shown++ == 0 ? "calls " : "which calls ") + steps[i].callee + "()";
        if (i > 0) out += " (" + steps[i].at.text() + ")";
        out += ", ";
    }
    out += (shown == 0 ? "" : "which ") + what;
    if (shown > 0) out += " (" + cause.text() + ")";
    return out;
}

bool verdict::repeatable() const {
    return std::ranges::all_of(reasons, [](const reason& r) { return r.is == kind::interface; });
}

const body& effects::look(const clang::FunctionDecl& with_body) {
    std::unique_ptr<body>& known = known_[&with_body];
    if (!known) known = std::make_unique<body>(look_into(with_body, all_));
    return *known;
}

/// Breadth first from the callee, so that circles of calls end and the nearest finding is reported.
bool effects::shortest_way(const call& first, reason& out) {
    struct visited {
        const clang::FunctionDecl* function;
        place called_at;
        std::size_t from;
    };
    std::deque<visited> queue{
        {first.callee, first.at, 0}}; // grows at its end, and keeps what is done
    std::set<const clang::FunctionDecl*> seen{first.callee};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        const body& here = look(*queue[i].function);
        if (!here.findings.empty()) {
            out.what = here.findings.front().what;
            out.cause = here.findings.front().at;
            for (std::size_t at = i;; at = queue[at].from) {
                out.steps.insert(out.steps.begin(),
                                 {queue[at].called_at, name_of(*queue[at].function)});
                if (at == 0) return true;
            }
        }
        for (const call& next : here.calls)
            if (seen.insert(next.callee).second) queue.push_back({next.callee, next.at, i});
    }
    return false;
}

std::vector<reason> effects::of(const clang::FunctionDecl& with_body) {
    std::vector<reason> out;
    const body& own = look(with_body);
    for (const finding& each : own.findings)
        out.push_back({kind::effect, each.at, each.what, {}, each.at});
    for (const call& each : own.calls) {
        reason found{kind::effect, each.at, "", {}, {}};
        if (shortest_way(each, found)) out.push_back(std::move(found));
    }
    std::ranges::sort(out, [](const reason& a, const reason& b) {
        return std::tie(a.at, a.what) < std::tie(b.at, b.what);
    });
    return out;
}

} // namespace hf::classify
