// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber logging: begin records the function and its arguments (the v_log), the compiler logs each
// input before it is overwritten, recovery puts those back and re-executes.  Clobber §3-4.
//
// Differs: the v_log entry is not fenced by itself; it is durable before the section's first
// in-place store, together with whatever was appended until then. Before that nothing needs
// recovering.
#include <section/registry.hpp>
#include <section/restore.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/clobber.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

namespace hf::clobber {
namespace {

class clobber_engine final : public hf::engine {
public:
    engine_bit bit() const noexcept override { return engine_clobber; }
    const char* name() const noexcept override { return "clobber"; }
    status check(pool_file& file, const pending_section& section) const override;
    void recover(pool::impl& pool, pending_section& section, recovery& state) const override;
};

status clobber_engine::check(pool_file& file, const pending_section& section) const {
    const begin_payload& begin = section.begin;
    const hf_txfunc* function = registry::find_txfunc(begin.function_id);
    if (function == nullptr)
        return {
            errc::function_changed,
            fmt::format(
                "{}: function_changed: lane {} holds a pending section of txfunc {:#x}, which this "
                "program does not have; open it with the build that made it",
                file.path(), section.lane, begin.function_id)};
    if (function->version != begin.function_version || function->args_bytes != begin.args_bytes)
        return {errc::function_changed,
                fmt::format("{}: function_changed: lane {} holds a pending section of {} ({}): "
                            "expected version "
                            "{:#x}, found {:#x}; open it with the build that made it",
                            file.path(), section.lane, function->name, function->where,
                            function->version, begin.function_version)};
    for (std::uint64_t i = 0; i < function->args_count; ++i) {
        if (function->args[i].kind != HF_ARG_POOL_POINTER) continue;
        const void* pointer = nullptr;
        std::memcpy(&pointer, section.args.data() + function->args[i].offset_bytes, sizeof pointer);
        if (pointer != nullptr && !file.contains(pointer))
            return {errc::corrupt,
                    fmt::format("{}: corrupt: lane {}: argument {} of {} points outside the pool",
                                file.path(), section.lane, i, function->name)};
    }
    return {};
}

/// Runs the body again, for as long as the pool's options allow.
void re_execute(const pool::impl& pool, section& work, const pending_section& pending) {
    const fault_guard::clock running(
        pool.recovery_ms_max, [](void* late) noexcept { static_cast<section*>(late)->expire(); },
        &work);
    work.function()->re_execute(pending.args.data());
}

/// Whether everything made before the section is there: the blocks it may adopt are named, bytes
/// filled in are as they were. If not, the section had stored nothing in place: its log and those
/// bytes are durable before that. Requires: old bytes are restored.
bool made_ready(const pool_file& file, const pending_section& pending) {
    std::uint64_t found = 0;
    for (const record_view& r : pending.records) {
        found += r.kind == record_kind::staged || r.kind == record_kind::filled;
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        const std::byte* at = file.base() + r.offset;
        persist::trace(persist::event::checked, at, filled.bytes);
        if (XXH3_64bits(at, filled.bytes) != filled.sum) return false;
    }
    return found >= pending.announced;
}

void clobber_engine::recover(pool::impl& pool, pending_section& pending, recovery& state) const {
    restore_old_bytes(*pool.file, pending);
    attachment& again = state.work.emplace(pool, pending.lane);
    recovery_report& count = state.count;
    again.work.resume(pending);
    current_section = &again.work;
    if (!made_ready(*pool.file, pending)) {
        again.work.discard();
        ++count.discarded;
    } else if (setjmp(again.work.discard_point()) == 0) {
        re_execute(pool, again.work, pending);
        again.work.commit(true);
        ++count.re_executed;
    } else {
        again.work.discard();
        ++count.discarded;
    }
    current_section = nullptr;
    for (block b : again.work.staged())
        pool.blocks.release(again.cache, b); // staged, never adopted
    pool.blocks.release_all(again.cache);
}

} // namespace

const hf::engine* engine() noexcept {
    static const clobber_engine only;
    return &only;
}

} // namespace hf::clobber

extern "C" {

int hf_clobber_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    return hf::without_exceptions("hf_clobber_begin", [&] {
        return hf::begin_section(hf::engine_clobber, *function, packed_args, function->args_bytes);
    });
}

void hf_clobber_commit(void) noexcept {
    hf::without_exceptions("hf_clobber_commit", [] { hf::current_section->commit(false); });
    hf::current_section = nullptr;
}

void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept {
    hf::without_exceptions("hf_clobber_log",
                           [&] { hf::current_section->log_old_bytes(address, bytes); });
}

} // extern "C"
