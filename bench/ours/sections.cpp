// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sections of `holdfast bench section`, once per engine.
#include "../section/plain_sections.hpp"
#include "holdfast_map.hpp"

#include <holdfast/alloc.hpp>

#include <cstdlib>

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {
namespace sections {

HF_TXFUNC void nothing(section_object* o) noexcept { plain_sections::nothing(o); }
HF_TXFUNC void one(section_object* o) noexcept { plain_sections::one(o); }
HF_TXFUNC void four(section_object* o) noexcept { plain_sections::four(o); }
HF_TXFUNC void many(section_object* o) noexcept { plain_sections::many(o); }
HF_TXFUNC void loop(section_object* o) noexcept { plain_sections::loop(o); }
HF_TXFUNC void link(section_object* o) noexcept {
    auto* made = hf::make<section_node>(o->first, std::uint64_t{7});
    if (made == nullptr) std::abort();
    o->first = made;
}
HF_TXFUNC void unlink(section_object* o) noexcept {
    section_node* gone = o->first;
    o->first = gone->next;
    hf::destroy(gone);
}
void node(section_object* o) {
    link(o);
    unlink(o);
}

class ours final : public sections_under_test {
public:
    explicit ours(const map_options& given)
        : sections_under_test({nothing, one, four, many, loop, node}),
          file_(given.directory, HF_BENCH_BUILD_TEXT), pool_(open(given)),
          root_(pool_.root<section_root>()) {
        if (root_ == nullptr) give_up("the pool is full");
    }
    section_root* root() noexcept override { return root_; }
    map_facts facts() const override {
        return {pool_.emulated(), true, true, note_of_build(pool_.mode())};
    }

private:
    hf::pool open(const map_options& given) {
        hf::open_options options;
        options.layout = "bench/section/1";
        options.create_bytes = pool_bytes(given);
        options.mode = given.mode;
        options.expert.prefault = given.prefault;
        options.engines = engines_of_build();
        options.expert.seal = false; // nobody opens it again
        auto opened = hf::pool::open(file_.path(), options);
        if (!opened) give_up(opened.error().what());
        return std::move(*opened);
    }

    temporary_file file_;
    hf::pool pool_;
    section_root* root_;
};

} // namespace sections
} // namespace HF_STRUCTURES_ENGINE

std::unique_ptr<sections_under_test> HF_STRUCTURES_JOIN(make_sections_,
                                                        HF_BENCH_BUILD)(const map_options& given) {
    return std::make_unique<sections::ours>(given);
}

} // namespace hf::bench
