// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selective logging in software: undo, but of what the program says needs no log, or need not be durable
// at the commit. Source: SLPMT (section II) without its hardware; docs/guide/selective-logging.md.
#include <base/assert.hpp>
#include <open/registry.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/derived.hpp>
#include <holdfast/selective.hpp>

namespace hf::selective {
namespace {

/// Rolls pending sections back, whatever they did not log.
class selective_engine final : public section_engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::selective; }
    /// Rolling back needs no function of this build.
    status check(const pool::impl&, const pending_section&) const override { return {}; }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        HF_ASSERT_SLOW(current_section == nullptr);
        HF_ASSERT_SLOW(pending.begin.args_bytes == 0);
        roll_back(pool, pending);
        ++state.count[recovery_verb::roll_back];
    }
};

} // namespace

const hf::engine* engine() noexcept {
    static const selective_engine only;
    return &only;
}

} // namespace hf::selective

namespace hf::derived::detail {
namespace {
const hf_arg root_pointer[] = {{0, 8, HF_ARG_POOL_POINTER}};
/// For reports: recovery of this engine calls no function.
constexpr hf_txfunc rebuild_of(std::uint32_t abi_version) {
    return {abi_version,  8, 1,      1, "hf::derived::recovery::rebuild", "holdfast/derived.hpp",
            root_pointer, 1, nullptr};
}
const hf_txfunc rebuild = rebuild_of(HF_ABI_VERSION),
                relocatable_rebuild = rebuild_of(HF_ABI_VERSION | HF_ABI_RELOCATABLE);
} // namespace

bool may_be_lazy(const void* in_pool) noexcept {
    const pool::impl* in = registry::pool_of(in_pool);
    return in != nullptr && (in->engine_bits & engine_rows::selective.bit) != 0 &&
           in->file->stores_lazily();
}

finding::finding(const void* first, bool is_relocatable) noexcept {
    hf_selective_begin(is_relocatable ? &relocatable_rebuild : &rebuild, &first);
}
finding::~finding() { hf_selective_commit(); }
} // namespace hf::derived::detail

extern "C" {

int hf_selective_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    // Recovery needs neither function nor arguments; they are named for reports only.
    return hf::without_exceptions("hf_selective_begin", [&] {
        return hf::begin_section(hf::engine_rows::selective, *function, packed_args, 0);
    });
}

void hf_selective_commit(void) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_selective_commit", [] { hf::current_section->commit(true); });
    hf::leave_section();
}

void hf_selective_log(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_selective_log",
                           [&] { hf::current_section->log_old_bytes(address, bytes); });
}

void hf_log_free(const void* address, std::uint64_t bytes) noexcept {
    if (hf::section* s = hf::current_section; s != nullptr && s->selects())
        hf::without_exceptions("hf_log_free", [&] { s->note_log_free(address, bytes); });
}

void hf_lazy(const void* address, std::uint64_t bytes) noexcept {
    if (hf::section* s = hf::current_section; s != nullptr && s->selects())
        hf::without_exceptions("hf_lazy", [&] { s->note_lazy(address, bytes); });
}

} // extern "C"
