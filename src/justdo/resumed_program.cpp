// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of two threads once more, engines justdo and ido: sections that are pending together are
// resumed in the opposite order. The programs themselves do not depend on the engine.
#include <check/program.hpp>
#include <justdo/resume.hpp>

#include <holdfast/author/crash.hpp>
#include <holdfast/engines.hpp>

#include <algorithm>
#include <string>

namespace {

class resumed_backwards final : public hf::crash::program {
public:
    explicit resumed_backwards(std::string of) : of_(std::move(of)) {}

    hf::open_options options() const override {
        hf::justdo::resume_order = [](auto& sections) { std::ranges::reverse(sections); };
        return of().options();
    }
    void setup(hf::pool& p) override { of().setup(p); }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return of().operations(thread); }
    void run(hf::pool& p, unsigned thread, unsigned operation) override {
        of().run(p, thread, operation);
    }
    unsigned operations_after() const override { return of().operations_after(); }
    void run_after(hf::pool& p, unsigned operation) override { of().run_after(p, operation); }
    void describe(hf::pool& p, hf::crash::state& s) override { of().describe(p, s); }

private:
    hf::crash::program& of() const { return *hf::crash::programs().at(of_); }
    std::string of_;
};

// Their names come behind all others': nobody sets the order back.
[[maybe_unused]] const bool added = [] {
    for (const char* what : {"map/two threads/", "map/same key/", "bank/two threads/"}) {
        const std::string of = what + std::string(hf::engine_of_build());
        hf::crash::add("resumed backwards/" + of, std::make_unique<resumed_backwards>(of));
    }
    return true;
}();

} // namespace
