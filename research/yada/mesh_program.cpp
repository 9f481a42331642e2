// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refinement for the crash checker, built once per engine: a point of the input and two steps.
#include <check/pool_program.hpp>

#include <holdfast/engines.hpp>

#include <yada/sections.hpp>

namespace hf::apps::yada::HF_APPLICATION_BUILD {
namespace {

class mesh_program final : public hf::crash::pool_program {
public:
    explicit mesh_program(bool eadr)
        : pool_program({.layout = "crash/yada", .engines = hf::engines_of_build(), .eadr = eadr}) {
        if (hf::resumes_sections()) options_.max_bytes = 16_MiB; // room for the cavity's frame
    }

    void setup(hf::pool& p) override {
        auto* const at = p.root<mesh>();
        lay_out(at, 0.4); // about 22 degrees
        place_one(at, {grid_side / 3, grid_side / 5});
    }
    unsigned operations(unsigned) const override { return 3; }
    void run(hf::pool& p, unsigned, unsigned i) override {
        auto* const at = p.root<mesh>();
        if (i == 0) place_one(at, {grid_side / 7 * 5, grid_side / 30});
        else refine_one(at);
    }
    void describe(hf::pool& p, hf::crash::state& s) override {
        const auto* const at = p.root<mesh>();
        const mesh_report seen = look(*at);
        s.expect(seen.wrong.empty(), seen.wrong);
        for (const std::uint64_t each : {seen.elements, seen.segments, seen.bad, seen.digest,
                                         at->placed, at->processed, at->left})
            s.add(each);
        for (const element* each : elements_of(*at)) {
            s.object(each);
            for (const segment* border : each->border)
                if (border != nullptr) s.object(border);
        }
    }
};

[[maybe_unused]] const bool added = [] {
    const std::string engine(hf::engine_of_build());
    hf::crash::add("yada/refine/" + engine, std::make_unique<mesh_program>(false));
    hf::crash::add("yada/refine, caches survive/" + engine, std::make_unique<mesh_program>(true));
    return true;
}();

} // namespace
} // namespace hf::apps::yada::HF_APPLICATION_BUILD
