// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/names.hpp>
#include <log/word_log.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <persist/float_environment.hpp>
#include <pool/file_checks.hpp>
#include <section/recovery.hpp>
#include <section/section.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <ranges>
#include <system_error>
#include <thread>

namespace hf {
namespace {

// Pending sections are recovered by at most this many threads at a time.
constexpr std::size_t recovering_threads_max = 16;

/// A section may run again in the floating-point environment of its first run, and end by a jump
/// out of a signal handler: the thread gets its own back either way.
class keeps_floats {
public:
    keeps_floats() noexcept = default;
    keeps_floats(const keeps_floats&) = delete;
    keeps_floats& operator=(const keeps_floats&) = delete;
    ~keeps_floats() { callers_.apply(); }

private:
    persist::float_environment callers_ = persist::float_environment::current();
};

} // namespace

/// Recovers one section. Whatever it meets that cannot be gone on with becomes a refusal, here at
/// the latest; the section's effects so far stay in the file, as a crash would leave them.
status section_engine::recover_one(pool::impl& pool, pending_section& section,
                                   section_recovery& state) const try {
    HF_ASSERT_SLOW(current_section == nullptr);
    HF_ASSERT_SLOW(section.sound);
    HF_ASSERT_SLOW(section.begin.engine == bit());
    const keeps_floats floats;
    if (!pool.guard_signals) {
        recover(pool, section, state);
        HF_ASSERT_SLOW(current_section == nullptr);
        return {};
    }
    bool no_memory = false; // no exception leaves a guarded run
    const auto guarded = [&] {
        try {
            recover(pool, section, state);
        } catch (const std::bad_alloc&) {
            no_memory = true;
        }
    };
    const fault_guard::ending how = fault_guard::run(fault_guard::against::everything, guarded);
    if (no_memory) throw std::bad_alloc();
    HF_ASSERT_SLOW(how.stopped || current_section == nullptr);
    if (!how.stopped) return {};
    current_section = nullptr;
    word_log::forget();
    if (how.code == errc::pool_full && end_otherwise(pool, section, state)) {
        ++state.count.no_room;
        return {};
    }
    const hf_txfunc* function =
        registry::find_txfunc(section.begin.function_id, section.begin.function_version);
    return {
        how.code,
        fmt::format(
            "{}: {}: lane {}: recovering {} ({}), engine {}: {}; the pool stays marked open, for "
            "a build that can recover it{}",
            pool.file->path(), hf::name(how.code), section.lane,
            function != nullptr ? readable_name(function->name) : "a txfunc of another build",
            function != nullptr ? function->where : "unknown place", this->name(), how.why,
            how.code == errc::truncated || how.code == errc::io_error ? "" : ways_out(*pool.file))};
} catch (const std::bad_alloc&) {
    current_section = nullptr;
    return out_of_memory(pool.file->path());
}

/// Under salvage: rolled back, where that is known, or else as far done as it is.
void section_engine::give_up(pool::impl& pool, const pending_section& section, const status& why,
                             section_recovery& state) const {
    state.count = {};
    const bool ended = end_otherwise(pool, section, state);
    pool.file->warn(fmt::format(
        "{}: salvaged: the section of lane {} is {}: {}", pool.file->path(), section.lane,
        ended ? "rolled back" : "given up, and stays as far done as it is", why.what()));
    if (ended) return;
    lane_header* const lane = lane_at(*pool.file, section.lane);
    end_word_log(pool.file->medium(), lane);
    store_mark(pool.file->medium(), lane, section.begin.epoch);
    pool.file->medium().fence();
    ++state.count[recovery_verb::discard];
}

status section_engine::recover_all(pool::impl& pool, std::span<pending_section> pending,
                                   const recovery_order& order, engine_recovery& done) const {
    std::vector<section_recovery> states(pending.size());
    std::vector<status> outcomes(pending.size());
    std::vector<std::size_t> turns(pending.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    if (order) order(turns);
    HF_ASSERT_SLOW(
        std::ranges::is_permutation(turns, std::views::iota(std::size_t{0}, turns.size())));
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < turns.size(); i = next++)
            outcomes[turns[i]] = recover_one(pool, pending[turns[i]], states[turns[i]]);
    };
    std::vector<std::thread> threads;
    // The crash checker follows one thread.
    const std::size_t wanted =
        order || pool.file->in_memory() ? 1 : std::min(pending.size(), recovering_threads_max);
    try {
        while (threads.size() + 1 < wanted) threads.emplace_back(work);
    } catch (const std::system_error&) { // no more threads: those that are there do it all
    } catch (const std::bad_alloc&) {    // the same
    }
    work();
    for (auto& t : threads) t.join();
    for (std::size_t i = 0; i < pending.size(); ++i) {
        if (salvages(pool, outcomes[i])) {
            give_up(pool, pending[i], outcomes[i], states[i]);
            outcomes[i] = {};
        }
        if (!outcomes[i].ok()) return outcomes[i];
        HF_ASSERT_SLOW(std::ranges::count(states[i].count.ended_by, 1U) == 1); // each in one way
        for (std::size_t v = 0; v < recovery_verbs; ++v)
            done.ended_by[v] += states[i].count.ended_by[v];
        done.no_room += states[i].count.no_room;
    }
    return {};
}

} // namespace hf
