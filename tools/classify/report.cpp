// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <llvm/Support/JSON.h>
#include <llvm/Support/raw_ostream.h>

namespace hf::classify {
namespace {

void print_reasons(const std::vector<reason>& reasons) {
    for (const reason& each : reasons) llvm::outs() << "    " << each.text() << "\n";
}

void place_json(llvm::json::OStream& to, const place& at) {
    to.attribute("file", llvm::json::fixUTF8(at.file));
    to.attribute("line", at.line);
}

void reasons_json(llvm::json::OStream& to, const std::vector<reason>& reasons) {
    to.attributeArray("reasons", [&] {
        for (const reason& each : reasons)
            to.object([&] {
                to.attribute("kind", text_of(each.is));
                to.attribute("text", llvm::json::fixUTF8(each.text()));
                place_json(to, each.at);
                to.attribute("what", llvm::json::fixUTF8(each.what));
                to.attributeObject("cause", [&] { place_json(to, each.cause); });
                to.attributeArray("through", [&] {
                    for (const reason::step& step : each.steps)
                        to.object([&] {
                            place_json(to, step.at);
                            to.attribute("function", llvm::json::fixUTF8(step.callee));
                        });
                });
            });
    });
}

void function_json(llvm::json::OStream& to, const verdict& v) {
    to.object([&] {
        to.attribute("name", v.name);
        to.attribute("signature", v.signature);
        place_json(to, v.at);
        to.attribute("type", v.deferrable() ? "deferrable" : "instant");
        to.attribute("repeatable", v.repeatable());
        reasons_json(to, v.reasons);
    });
}

} // namespace

void print(const std::vector<classified>& classes) {
    for (const classified& each : classes) {
        llvm::outs() << each.name << " (" << each.at.text() << ")\n";
        for (const verdict& v : each.functions) {
            llvm::outs() << "  " << (v.deferrable() ? "deferrable  " : "instant     ")
                         << v.signature << "\n";
            print_reasons(v.reasons);
        }
    }
}

void print(const std::vector<complaint>& complaints) {
    for (const complaint& each : complaints) {
        llvm::outs() << each.at.text() << ": error: " << each.what << "\n";
        print_reasons(each.because.reasons);
    }
}

void print_json(const std::vector<classified>& classes, const std::vector<complaint>& complaints) {
    llvm::json::OStream to(llvm::outs(), 2);
    to.object([&] {
        to.attributeArray("classes", [&] {
            for (const classified& each : classes)
                to.object([&] {
                    to.attribute("name", each.name);
                    place_json(to, each.at);
                    to.attributeArray("functions", [&] {
                        for (const verdict& v : each.functions) function_json(to, v);
                    });
                });
        });
        to.attributeArray("complaints", [&] {
            for (const complaint& each : complaints)
                to.object([&] {
                    place_json(to, each.at);
                    to.attribute("what", each.what);
                    reasons_json(to, each.because.reasons);
                });
        });
    });
    llvm::outs() << "\n";
}

} // namespace hf::classify
