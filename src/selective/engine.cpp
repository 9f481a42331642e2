// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selective logging in software: undo, except for stores that the program marks: they need no log,
// or need not be durable at the commit. Source: SLPMT (section II) without its hardware;
// docs/guide/selective-logging.md.
#include <base/assert.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/author/derived.hpp>
#include <holdfast/author/selective.hpp>

#include <selective/engine.hpp>

#include <memory>
#include <stdexcept>

namespace hf::selective {
namespace {

/// Rolls pending sections back, as far as they have logged.
class selective_engine final : public section_engine {
public:
    explicit selective_engine(const options& how) : how_(how) {}
    const options& how() const noexcept { return how_; }
    const engine_row& row() const noexcept override { return engine_rows::selective; }
    bool rebuilds() const noexcept override { return how_.rebuild != nullptr; }
    void rebuild(hf::pool& whole) const override { how_.rebuild(whole); }
    const char* rebuild_needs() const noexcept override {
        return "selective::options::rebuild, for lazy stores (engine selective)";
    }
    /// Rolling back needs no function of this build.
    status check(const pool::impl&, const pending_section&) const override { return {}; }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        HF_ASSERT_SLOW(current_section == nullptr);
        roll_back(pool, pending);
        ++state.count[recovery_verb::roll_back];
    }

private:
    options how_;
};

} // namespace

engine_ptr engine() noexcept { return lasting_with<selective_engine>(options{}); }

engine_ptr engine(const options& how) { return std::make_shared<const selective_engine>(how); }

const options& options_of(const pool::impl& pool) noexcept {
    const hf::engine* const given = pool.given(engine_selective);
    HF_ASSERT_SLOW(given != nullptr);
    return static_cast<const selective_engine*>(given)->how();
}

} // namespace hf::selective

namespace hf::derived::detail {
namespace {
const hf_arg root_pointer[] = {{0, 8, HF_ARG_POOL_POINTER}};
/// For reports: recovery of this engine calls no function.
constexpr hf_txfunc rebuild_of(std::uint32_t abi_version) {
    return {
        abi_version,  8, 1,      1, "hf::derived::recovery::rebuild", "holdfast/author/derived.hpp",
        root_pointer, 1, nullptr};
}
const hf_txfunc rebuild = rebuild_of(HF_ABI_VERSION),
                relocatable_rebuild = rebuild_of(HF_ABI_VERSION | HF_ABI_RELOCATABLE);
} // namespace

bool may_have_lazy(const pool& in) noexcept {
    return (in.internals().engine_bits & engine_rows::selective.bit) != 0;
}

finding::finding(const void* first, bool is_relocatable) noexcept {
    hf_selective_begin(is_relocatable ? &relocatable_rebuild : &rebuild, &first);
}
finding::~finding() { hf_selective_commit(); }

void root_of_another_type() {
    throw std::logic_error(
        "hf::derived: the pool's root is not of the type that the links begin in (the log says "
        "more): call recovery::rebuild_of() for each structure in it");
}
void rest_of_another_engine() {
    throw std::logic_error(
        "hf::derived: recovery::rebuild() with 'also' expected a translation unit that is built "
        "for engine selective, and is built for none, or another: its hf::lazy() is nothing there");
}
} // namespace hf::derived::detail
