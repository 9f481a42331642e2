// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine as a newcomer would add it: its row of the table, its recovery, the four calls that the
// compiler makes. It logs as undo does, and counts its actions.
#include "engine.hpp"

#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/section_in.hpp>

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

/// protocol_in does all that it needs.
template <class Medium> class dummy_protocol final : public protocol_in<Medium> {
public:
    static constexpr const engine_row& row = engine_rows::dummy;
    explicit dummy_protocol(section_in<Medium>& in) noexcept : protocol_in<Medium>(in, row) {}
    void begin(const hf_txfunc& function, const void*) {
        this->in_.begin(*this, function);
        this->in_.start_log({});
    }
    void commit() { this->in_.commit(); }
};

} // namespace
} // namespace hf::dummy

extern "C" {

int hf_dummy_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    ++hf::dummy::begun;
    return int{hf::begin_section<hf::dummy::dummy_protocol>(*function, packed_args)};
}

void hf_dummy_log(const void* address, std::uint64_t bytes) noexcept {
    hf::log_store<hf::dummy::dummy_protocol>("hf_dummy_log", address, bytes);
}

void hf_dummy_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::dummy::dummy_protocol>("hf_dummy_note", address, bytes);
}

void hf_dummy_commit(void) noexcept {
    hf::commit_section<hf::dummy::dummy_protocol>("hf_dummy_commit");
}

} // extern "C"
