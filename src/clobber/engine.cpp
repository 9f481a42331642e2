// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber logging: begin records the function and its arguments (the v_log), the compiler logs each
// input before it is overwritten, recovery puts those back and re-executes.  Clobber §3-4.
//
// Differs: the v_log entry is not fenced by itself; it is durable before the section's first
// in-place store, together with whatever was appended until then. Before that nothing needs
// recovering. And old bytes are kept of every word that is overwritten, not of inputs alone, so
// that a section that cannot be completed can be rolled back (section/roll_back.hpp); only inputs
// cost an ordering point.
#include <persist/float_environment.hpp>
#include <section/registry.hpp>
#include <section/restore.hpp>
#include <section/roll_back.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/relocate_abi.h>
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
    status check(const pool::impl& pool, const pending_section& section) const override;
    void recover(pool::impl& pool, pending_section& section, recovery& state) const override;
};

/// Whether the logged bytes that are not known as pointers may be such of another mapping: by-value
/// arguments, preserved bytes.
bool holds_old_addresses(const pool_file& file, const hf_txfunc& function,
                         const pending_section& section) {
    const auto any = [&](const std::byte* bytes, std::uint64_t count) {
        return holds_address(bytes, count, file.logged_base(), file.shape().max_bytes);
    };
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        const hf_arg& a = function.args[i];
        if (a.kind == HF_ARG_VALUE && any(section.args.data() + a.offset_bytes, a.size_bytes))
            return true;
    }
    for (const record_view& r : section.records)
        if (r.kind == record_kind::preserve && any(r.payload, r.bytes)) return true;
    return false;
}

/// Whether the section can be re-executed where the pool is mapped now.
status check_place(const pool_file& file, const hf_txfunc& function,
                   const pending_section& section) {
    const auto refuse = [&](const std::string& why) {
        return status{errc::address_taken,
                      fmt::format("{}: address_taken: lane {} holds a pending section of {} ({}): "
                                  "{}{}",
                                  file.path(), section.lane, function.name, function.where, why,
                                  ways_out)};
    };
    if ((function.abi_version & HF_ABI_RELOCATABLE) != 0) return {};
    if (file.relocated())
        return refuse("it is not built relocatable, and the canonical address is not to be had");
    const auto here = reinterpret_cast<std::uint64_t>(file.base());
    if (here != file.logged_base() && holds_old_addresses(file, function, section))
        return refuse(
            fmt::format("its log holds addresses of the mapping at {:#x} that cannot be told from "
                        "numbers, now the pool is at {:#x}: only a build that is relocatable can "
                        "recover it",
                        file.logged_base(), here));
    return {};
}

status clobber_engine::check(const pool::impl& pool, const pending_section& section) const {
    if (pool.recovery == recovery_policy::roll_back) return can_roll_back(pool, section);
    const pool_file& file = *pool.file;
    const begin_payload& begin = section.begin;
    const hf_txfunc* function = registry::find_txfunc(begin.function_id, begin.function_version);
    if (function == nullptr)
        return {
            errc::function_changed,
            fmt::format(
                "{}: function_changed: lane {} holds a pending section of txfunc {:#x}, which this "
                "program does not have; open it with the build that made it{}",
                file.path(), section.lane, begin.function_id, ways_out)};
    if (function->version != begin.function_version || function->args_bytes != begin.args_bytes)
        return {errc::function_changed,
                fmt::format("{}: function_changed: lane {} holds a pending section of {} ({}): "
                            "expected version "
                            "{:#x}, found {:#x}; open it with the build that made it{}",
                            file.path(), section.lane, function->name, function->where,
                            function->version, begin.function_version, ways_out)};
    if (!persist::float_environment(begin.floats).valid())
        return {errc::corrupt,
                fmt::format("{}: corrupt: lane {}: floating-point environment {:#x} of {} is unknown",
                            file.path(), section.lane, begin.floats, function->name)};
    for (std::uint64_t i = 0; i < function->args_count; ++i) {
        if (function->args[i].kind != HF_ARG_POOL_POINTER) continue;
        const void* pointer = nullptr;
        std::memcpy(&pointer, section.args.data() + function->args[i].offset_bytes, sizeof pointer);
        const std::uint64_t offset =
            reinterpret_cast<std::uint64_t>(pointer) - file.canonical_base();
        if (pointer != nullptr && offset >= file.shape().max_bytes)
            return {errc::corrupt,
                    fmt::format("{}: corrupt: lane {}: argument {} of {} points outside the pool{}",
                                file.path(), section.lane, i, function->name, ways_out)};
    }
    return check_place(file, *function, section);
}

/// Runs the body again, for as long as the pool's options allow. All addresses in the arguments get
/// the form that they were logged in; where that is another than today's, they are translated as
/// they are read.
void re_execute(const pool::impl& pool, section& work, pending_section& pending) {
    const pool_file& file = *pool.file;
    shift_pointers(*work.function(), pending.args.data(),
                   file.logged_base() - file.canonical_base());
    const void* args = work.as_read(pending.args.data(), pending.args.size());
    const fault_guard::clock running(
        pool.recovery_ms_max,
        [](void* run) noexcept { return static_cast<section*>(run)->progressed(); },
        [](void* late) noexcept { static_cast<section*>(late)->expire(); }, &work);
    persist::float_environment(pending.begin.floats).apply(); // recover_one restores the thread's own
    work.function()->re_execute(args);
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
    if (pool.recovery == recovery_policy::roll_back) {
        roll_back(pool, pending);
        ++state.count.rolled_back;
        return;
    }
    restore_old_bytes(*pool.file, pending, restored::inputs);
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
