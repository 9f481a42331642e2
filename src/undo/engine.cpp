// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undo logging: the old bytes of every store, once a word; an unfinished section is rolled back.
// Its commit mark is durable before the section returns: a section without one is undone.
#include <base/assert.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/undo.hpp>

namespace hf::undo {
namespace {

class undo_engine final : public section_engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::undo; }
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
    static const undo_engine only;
    return &only;
}

} // namespace hf::undo

extern "C" {

int hf_undo_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    // Recovery needs neither function nor arguments; they are named for reports only.
    return hf::without_exceptions("hf_undo_begin", [&] {
        return hf::begin_section(hf::engine_rows::undo, *function, packed_args, 0);
    });
}

void hf_undo_commit(void) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_undo_commit", [] { hf::current_section->commit(true); });
    hf::current_section = nullptr;
}

void hf_undo_log(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_undo_log",
                           [&] { hf::current_section->log_old_bytes(address, bytes); });
}

} // extern "C"
