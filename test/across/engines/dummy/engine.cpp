// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine as a newcomer would add it: its row of the table, its recovery, the three calls that the
// compiler makes. It logs as undo does, and counts what it does.
#include "engine.hpp"

#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

namespace hf::dummy {
namespace {

class dummy_engine final : public section_engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::dummy; }
    status check(const pool::impl&, const pending_section&) const override { return {}; }

protected:
    void recover(pool::impl& pool, pending_section& pending,
                 section_recovery& state) const override {
        roll_back(pool, pending);
        ++state.count[recovery_verb::roll_back];
    }
};

} // namespace

engine_ptr engine() noexcept {
    static const dummy_engine only;
    return lasting(only);
}

int begun = 0;

namespace {

/// What protocol does by default is enough.
class dummy_protocol final : public protocol {
public:
    static constexpr const engine_row& row = engine_rows::dummy;
    explicit dummy_protocol(section& in) noexcept : protocol(in, row) {}
    void begin(const hf_txfunc& function) {
        in_.begin(*this, function);
        in_.start_log({});
    }
};

} // namespace
} // namespace hf::dummy

extern "C" {

int hf_dummy_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    ++hf::dummy::begun;
    hf::section* const opened = hf::open_section(hf::engine_rows::dummy, *function, packed_args);
    if (opened == nullptr) return 0;
    opened->of<hf::dummy::dummy_protocol>().begin(*function);
    return 1;
}

void hf_dummy_log(const void* address, std::uint64_t bytes) noexcept {
    hf::current_section->log_old_bytes(address, bytes);
}

void hf_dummy_commit(void) noexcept {
    hf::current_section->commit();
    hf::current_section = nullptr;
}

} // extern "C"
