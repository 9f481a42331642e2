// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber logging: begin records the function and its arguments (the v_log), the compiler logs each
// input before it is overwritten, recovery puts those back and re-executes.  Clobber §3-4.
//
// Differs: the v_log entry is not fenced by itself; it is durable before the section's first
// in-place store, together with whatever was appended until then. Before that nothing needs
// recovering. And old bytes are kept of every word that is overwritten, not of inputs alone, so
// that a section that cannot be completed can be rolled back (kept_bytes.hpp); only inputs
// cost an ordering point.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <clobber/engine.hpp>
#include <clobber/kept_bytes.hpp>
#include <clobber/re_execution.hpp>
#include <log/restore.hpp>
#include <open/registry.hpp>
#include <persist/float_environment.hpp>
#include <pool/file_checks.hpp>
#include <section/recovery.hpp>
#include <section/roll_back.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

namespace hf::clobber {
namespace {

class clobber_engine final : public section_engine {
public:
    explicit clobber_engine(const options& how) : how_(how) {}
    const options& how() const noexcept { return how_; }
    const engine_row& row() const noexcept override { return engine_rows::clobber; }
    bool drops_bytes() const noexcept override { return !how_.keep_overwritten; }
    status check(const pool::impl& pool, const pending_section& section) const override;

protected:
    void recover(pool::impl& pool, pending_section& section,
                 section_recovery& state) const override;
    bool end_otherwise(pool::impl& pool, const pending_section& section,
                       section_recovery& state) const override;

private:
    options how_;
};

/// Whether logged bytes that are not known as pointers may be addresses of another mapping:
/// by-value arguments, preserved bytes.
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
                                  file.path(), section.lane, readable_name(function.name),
                                  function.where, why, ways_out(file))};
    };
    if ((function.abi_version & HF_ABI_RELOCATABLE) != 0) return {};
    if (file.relocated())
        return refuse("it is not built relocatable, and the canonical address is not to be had");
    const auto here = reinterpret_cast<std::uint64_t>(file.base());
    if (here != file.logged_base() && holds_old_addresses(file, function, section))
        return refuse(
            fmt::format("its log holds addresses of the mapping at {:#x} that look like numbers, "
                        "and the pool is now at {:#x}: recover it with a relocatable build",
                        file.logged_base(), here));
    return {};
}

/// Whether a section that runs again can append to that log: its own is plain words where order is
/// kept, and no others. It is rolled back elsewhere.
bool can_go_on(const pool_file& file, const pending_section& section) noexcept {
    return section.in_words == file.medium().keeps_order();
}

status clobber_engine::check(const pool::impl& pool, const pending_section& section) const {
    if (pool.recovery == recovery_policy::roll_back) return can_roll_back(pool, section);
    const pool_file& file = *pool.file;
    if (!can_go_on(file, section))
        return can_roll_back(pool, section).ok()
                   ? status{}
                   : refusal(file.path(), errc::mode_unavailable,
                             fmt::format("lane {}: its section can be completed in the mode that "
                                         "the pool was left in alone, expected {}, and not be "
                                         "rolled back for certain: open it in that mode once{}",
                                         section.lane,
                                         section.in_words ? "process" : "pmem or power",
                                         ways_out(file)));
    const begin_payload& begin = section.begin;
    const hf_txfunc* function = registry::find_txfunc(begin.function_id, begin.function_version);
    if (function == nullptr)
        return {errc::function_changed,
                fmt::format(
                    "{}: function_changed: lane {} holds a pending section: expected a txfunc of "
                    "this program, found {:#x}, which this program does not have; open it with the "
                    "build that made it{}",
                    file.path(), section.lane, begin.function_id, ways_out(file))};
    if (function->version != begin.function_version || function->args_bytes != begin.args_bytes)
        return {errc::function_changed,
                fmt::format("{}: function_changed: lane {} holds a pending section of {} ({}): "
                            "expected version {:#x}, found {:#x}; open it with the build that "
                            "made it{}",
                            file.path(), section.lane, readable_name(function->name),
                            function->where, function->version, begin.function_version,
                            ways_out(file))};
    if (!persist::float_environment(begin.floats).valid())
        return {
            errc::corrupt,
            fmt::format(
                "{}: corrupt: lane {}: expected a floating-point environment of this processor, "
                "found {:#x}, of {}{}",
                file.path(), section.lane, begin.floats, readable_name(function->name),
                ways_out(file))};
    HF_ASSERT_SLOW(section.args.size() == function->args_bytes);
    for (std::uint64_t i = 0; i < function->args_count; ++i) {
        if (function->args[i].kind != HF_ARG_POOL_POINTER) continue;
        const void* pointer = nullptr;
        std::memcpy(&pointer, section.args.data() + function->args[i].offset_bytes, sizeof pointer);
        const std::uint64_t offset =
            reinterpret_cast<std::uint64_t>(pointer) - file.canonical_base();
        if (pointer != nullptr && offset >= file.shape().max_bytes)
            return {errc::corrupt,
                    fmt::format(
                        "{}: corrupt: lane {}: argument {} of {}: expected an address in the pool, "
                        "found one outside{}",
                        file.path(), section.lane, i + 1, readable_name(function->name),
                        ways_out(file))};
    }
    return check_place(file, *function, section);
}

/// State that remains when a run is left by a jump.
struct run final : section_recovery::work {
    run(pool::impl& pool, std::uint32_t lane) : own(pool, lane) {}
    attachment own;
    std::optional<re_execution> again;
};

void clobber_engine::recover(pool::impl& pool, pending_section& pending,
                             section_recovery& state) const {
    if (pool.recovery == recovery_policy::roll_back || !can_go_on(*pool.file, pending)) {
        HF_ASSERT_SLOW(can_roll_back(pool, pending).ok());
        roll_back(pool, pending);
        ++state.count[recovery_verb::roll_back];
        return;
    }
    HF_ASSERT_SLOW(current_section == nullptr);
    HF_ASSERT_SLOW(state.run == nullptr);
    const auto start = std::chrono::steady_clock::now();
    restore_old_bytes(*pool.file, pending, restored::inputs);
    const auto restored = std::chrono::steady_clock::now();
    auto kept = std::make_unique<run>(pool, pending.lane);
    run& now = *kept;
    state.run = std::move(kept);
    now.again.emplace(now.own.work, pending);
    current_section = &now.own.work;
    ++state.count[now.again->run() ? recovery_verb::re_execute : recovery_verb::discard];
    current_section = nullptr;
    const auto ns = [](auto time) { return std::chrono::nanoseconds(time).count(); };
    recovery_took.restore_ns += ns(restored - start);
    recovery_took.re_execute_ns += ns(std::chrono::steady_clock::now() - restored);
    for (block b : now.own.work.prepared().staged())
        pool.blocks.release(now.own.cache, b); // staged, never adopted
    pool.blocks.release_all(now.own.cache);
}

/// Rolls the section back, unless that is not known to restore everything.
bool clobber_engine::end_otherwise(pool::impl& pool, const pending_section& section,
                                   section_recovery& state) const {
    HF_ASSERT_SLOW(current_section == nullptr); // the run was left in a call of the runtime
    pending_section now;                        // with the re-execution's own log records
    std::uint64_t newest = 0;
    lane_damage damage;
    if (!read_lane(*pool.file, pool.blocks.durable(), section.lane, now, newest, damage,
                   section.kept_known) ||
        damage.what != nullptr || !can_roll_back(pool, now).ok())
        return false;
    HF_ASSERT_SLOW(now.begin.epoch == section.begin.epoch);
    HF_ASSERT_SLOW(now.records.size() >= section.records.size());
    roll_back(pool, now);
    if (state.run != nullptr)
        pool.blocks.release_all(static_cast<run*>(state.run.get())->own.cache);
    ++state.count[recovery_verb::roll_back];
    return true;
}

} // namespace

engine_ptr engine() noexcept { return lasting_with<clobber_engine>(options{}); }

engine_ptr engine(const options& how) { return std::make_shared<const clobber_engine>(how); }

const options& options_of(const pool::impl& pool) noexcept {
    const hf::engine* const given = pool.given(engine_clobber);
    HF_ASSERT_SLOW(given != nullptr);
    return static_cast<const clobber_engine*>(given)->how();
}

} // namespace hf::clobber
