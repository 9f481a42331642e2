// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening a pool: check, read the lanes, ask the engines, mark open, put blocks back, recover.
//
// (1) Until every check has passed nothing is written: a refusal leaves the file as it was.
// (2) Before any section is recovered, the blocks that pending logs name are put back as they were
//     before those sections, and kept out of circulation: a section being re-executed can neither
//     be given a block that another one's log holds, nor lose one that it has yet to read.
// (3) Everything here is idempotent: a crash while recovering is cured by opening again.
#include <base/assert.hpp>
#include <persist/float_environment.hpp>
#include <pool/file_checks.hpp>
#include <section/pool_impl.hpp>
#include <section/registry.hpp>
#include <section/roll_back.hpp>
#include <section/sealing.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/pool.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>

// Made by the linker where a section of that name is: functions that the plugin has not seen
// (mark.h).
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const char __start_hf_uninstrumented[];

namespace hf {
namespace {

// An open starts its lanes' epochs this far above what it finds. More sections than that cannot
// have been begun without one of their marks becoming durable.
constexpr std::uint64_t epoch_gap = std::uint64_t{1} << 32;
constexpr std::uint64_t epoch_max = ~std::uint64_t{0} - 2 * epoch_gap;
// Pending sections are recovered by at most this many threads at a time.
constexpr std::size_t recovering_threads_max = 16;

const engine* engine_for(const pool::impl& pool, const pending_section& section) {
    for (const engine* e : pool.engines)
        if (e->bit() == section.begin.engine) return e;
    return nullptr;
}

/// Why a lane keeps the pool shut; ok where nothing does, or where salvage was asked for.
status judge_lane(const pool::impl& pool, std::uint32_t lane, const pending_section* pending,
                  std::uint64_t newest, const lane_damage& damage) {
    const pool_file& file = *pool.file;
    const auto refuse = [&](const std::string& why) {
        return refusal(file.path(), errc::corrupt, fmt::format("lane {}: {}", lane, why));
    };
    if (file.was_clean() && pending != nullptr && !pool.salvage)
        return refuse(fmt::format("a pending section, epoch {:#x}, in a pool that was closed "
                                  "cleanly; `holdfast repair` puts the lane's mark right, salvage "
                                  "believes the close",
                                  pending->begin.epoch));
    const bool rolling = pool.recovery == recovery_policy::roll_back;
    const bool passes = pool.salvage && (pending == nullptr || rolling);
    // After a clean close nothing counts of what stands in lanes.
    if (damage.what != nullptr && !file.was_clean() && !passes)
        return refuse(fmt::format(
            "{} at offset {:#x}: expected {:#x}, found {:#x}; {} salvage, or run `holdfast repair "
            "--roll-back --force`",
            damage.what, damage.offset, damage.expected, damage.found,
            pending == nullptr ? "to take the lane for idle, as it looks, open the pool with"
                               : "to roll back what stands before it, open the pool with "
                                 "recovery_policy::roll_back and"));
    // Wrapped, an epoch would stand below its lane's mark: no section would count as pending.
    if (newest > epoch_max)
        return refuse(fmt::format("epoch {:#x}, at most {:#x} expected", newest, epoch_max));
    return {};
}

/// Reads every lane; fills 'pending' and the lanes' epochs. 'disbelieved': lanes that keep nobody
/// from opening the pool, though what stands in them is damaged or belies the clean close.
status read_lanes(pool::impl& pool, std::vector<pending_section>& pending,
                  std::vector<std::uint32_t>& disbelieved) {
    pool_file& file = *pool.file;
    const bool with_kept = pool.salvage || kept_records_count(file);
    for (std::uint32_t l = 0; l < pool.lanes.size(); ++l) {
        pending_section found;
        std::uint64_t newest = 0;
        lane_damage damage;
        const bool is_pending =
            read_lane(file, pool.blocks.durable(), l, found, newest, damage, with_kept);
        if (status s = judge_lane(pool, l, is_pending ? &found : nullptr, newest, damage); !s.ok())
            return s;
        if (is_pending && file.was_clean())
            file.warn(fmt::format("{}: salvaged: lane {}: a section that says it is pending counts "
                                  "as committed: the pool was closed cleanly",
                                  file.path(), l));
        if (is_pending && !file.was_clean()) pending.push_back(std::move(found));
        else if (is_pending || damage.what != nullptr) disbelieved.push_back(l);
        pool.lanes[l].epoch = newest + epoch_gap;
    }
    return {};
}

/// Starts these lanes anew, which nobody may take for long: else the next kill, whatever it cuts
/// short, would keep the pool shut, or have recovered what has been disbelieved here.
void start_anew(pool::impl& pool, const std::vector<std::uint32_t>& disbelieved) noexcept {
    for (std::uint32_t l : disbelieved) start_lane(*pool.file, l, pool.lanes[l].epoch);
}

/// Bounds everything a pending log says before anything is done with it.
status check_records(const pool::impl& pool, const pending_section& section) {
    const auto corrupt = [&](const record_view& r) {
        return status{
            errc::corrupt,
            fmt::format(
                "{}: corrupt: log of lane {}: record of kind {} names offset {:#x}, {} bytes",
                pool.file->path(), section.lane, static_cast<int>(r.kind), r.offset, r.bytes)};
    };
    if (!section.sound) return corrupt(section.records.back());
    const heap& blocks = pool.blocks.durable();
    for (const record_view& r : section.records) {
        // A section stores to blocks only: never to headers, lanes or the allocator's tables.
        const bool old = r.kind == record_kind::old_bytes || r.kind == record_kind::overwritten;
        if (old && !blocks.covers(r.offset, r.bytes)) return corrupt(r);
        if (r.kind == record_kind::filled) {
            filled_payload filled;
            if (r.bytes != sizeof filled) return corrupt(r);
            std::memcpy(&filled, r.payload, sizeof filled);
            if (!blocks.covers(r.offset, filled.bytes)) return corrupt(r);
        }
        const bool names_block = r.kind == record_kind::alloc || r.kind == record_kind::free ||
                                 r.kind == record_kind::staged || r.kind == record_kind::segment;
        const bool no_room = r.kind == record_kind::alloc && r.offset == 0;
        if (names_block && !no_room && !blocks.well_formed({r.offset, r.bytes})) return corrupt(r);
    }
    return {};
}

status check_pending(const pool::impl& pool, const std::vector<pending_section>& pending) {
    for (const pending_section& section : pending) {
        const engine* e = engine_for(pool, section);
        if (e == nullptr)
            return {errc::missing_engine,
                    fmt::format("{}: missing_engine: lane {} holds a pending section of engine {}",
                                pool.file->path(), section.lane, section.begin.engine)};
        if (status s = check_records(pool, section); !s.ok()) return s;
        if (status s = e->check(pool, section); !s.ok()) return s;
    }
    return {};
}

/// Upholds (2).
status put_blocks_back(pool::impl& pool, const std::vector<pending_section>& pending) {
    const hf::domain d = pool.file->domain();
    heap& blocks = pool.blocks.durable();
    // Of a process that was killed a mark may only be stored (section.hpp, 4), and so may the word
    // that names a root, or what says whose a block is. What it left finished must not be pending again, nor what is reached be
    // lost, once anything else has changed.
    if (!pool.file->was_clean()) {
        for (std::uint32_t l = 0; l < pool.lanes.size(); ++l) {
            const lane_header* const lane = lane_at(*pool.file, l);
            persist::flush(d, lane, sizeof *lane);
            if (blocks.covers(lane->at_once, granule_bytes))
                persist::flush(d, blocks.word_of(lane->at_once), word_bytes);
        }
        persist::flush(d, pool.file->roots(), sizeof(root_words));
    }
    const auto dirty = [&](const void* word) { persist::flush(d, word, word_bytes); };
    // What sections took becomes free, what they freed becomes allocated; then both are claimed.
    for (const pending_section& section : pending)
        for (const record_view& r : section.records) {
            const bool taken = r.kind == record_kind::alloc || r.kind == record_kind::staged;
            if (taken && r.offset != 0) blocks.retract({r.offset, r.bytes}, dirty);
        }
    for (const pending_section& section : pending)
        for (const record_view& r : section.records)
            if (r.kind == record_kind::free) blocks.publish({r.offset, r.bytes}, dirty);
    for (const pending_section& section : pending)
        for (const record_view& r : section.records) {
            const bool named = r.kind == record_kind::alloc || r.kind == record_kind::staged ||
                               r.kind == record_kind::segment;
            if (named && r.offset != 0 && !pool.blocks.claim({r.offset, r.bytes}))
                return {errc::corrupt,
                        fmt::format("{}: corrupt: lane {} names a block at {:#x} of {} bytes that "
                                    "is not its own, or lies in a chunk of other blocks",
                                    pool.file->path(), section.lane, r.offset, r.bytes)};
        }
    persist::fence(d);
    return {};
}

/// A re-execution runs in the floating-point environment of its first run, and may end by a jump
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

/// A section that the pool has no room to complete would keep it shut for good: rolls it back. Its
/// re-execution stopped in a call of the runtime that held nothing. False when that is not known to
/// restore everything.
bool give_up_for_room(pool::impl& pool, const pending_section& section, recovery& state) {
    pending_section now; // with what the re-execution has logged
    std::uint64_t newest = 0;
    lane_damage damage;
    if (!read_lane(*pool.file, pool.blocks.durable(), section.lane, now, newest, damage,
                   section.kept_known) ||
        damage.what != nullptr || !can_roll_back(pool, now).ok())
        return false;
    roll_back(pool, now);
    if (state.work) pool.blocks.release_all(state.work->cache);
    ++state.count.rolled_back;
    ++state.count.no_room;
    return true;
}

/// Recovers one section. Whatever it meets that cannot be gone on with becomes a refusal, here at
/// the latest; the section's effects so far stay in the file, as a crash would leave them.
status recover_one(pool::impl& pool, pending_section& section, recovery& state) try {
    const engine& e = *engine_for(pool, section);
    const keeps_floats floats;
    if (!pool.guard_signals) {
        e.recover(pool, section, state);
        return {};
    }
    bool no_memory = false; // no exception leaves a guarded run
    const auto recover = [&] {
        try {
            e.recover(pool, section, state);
        } catch (const std::bad_alloc&) {
            no_memory = true;
        }
    };
    const fault_guard::ending how = fault_guard::run(fault_guard::against::everything, recover);
    if (no_memory) throw std::bad_alloc();
    if (!how.stopped) return {};
    current_section = nullptr;
    if (how.code == errc::pool_full && give_up_for_room(pool, section, state)) return {};
    const hf_txfunc* function =
        registry::find_txfunc(section.begin.function_id, section.begin.function_version);
    return {how.code,
            fmt::format("{}: {}: lane {}: recovering {} ({}), engine {}: {}; the pool stays marked "
                        "open, for a build that can recover it{}",
                        pool.file->path(), name(how.code), section.lane,
                        function != nullptr ? function->name : "a txfunc of another build",
                        function != nullptr ? function->where : "unknown place", e.name(), how.why,
                        how.code == errc::truncated || how.code == errc::io_error ? "" : ways_out)};
} catch (const std::bad_alloc&) {
    current_section = nullptr;
    return out_of_memory(pool.file->path());
}

/// Locks kept the pending sections apart, so they are recovered independently (Clobber §4.3): of
/// two that touched the same, the later one began when the other's mark was durable (section.hpp,
/// 4).
status recover_all(pool::impl& pool, std::vector<pending_section>& pending,
                   const recovery_order& order) {
    std::vector<recovery> states(pending.size());
    std::vector<status> outcomes(pending.size());
    std::vector<std::size_t> turns(pending.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    if (order) order(turns);
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
    pool.report.sections_pending = static_cast<std::uint32_t>(pending.size());
    for (std::size_t i = 0; i < pending.size(); ++i) {
        if (!outcomes[i].ok()) return outcomes[i];
        pool.report.re_executed += states[i].count.re_executed;
        pool.report.rolled_back += states[i].count.rolled_back;
        pool.report.no_room += states[i].count.no_room;
        pool.report.discarded += states[i].count.discarded;
    }
    return {};
}

/// Makes the block that a word of root_words names allocated: such words are written first.
status settle_anchor(pool::impl& pool, const char* what, std::uint64_t offset,
                     std::uint64_t bytes) {
    if (offset == 0) return {};
    heap& blocks = pool.blocks.durable();
    const block b{offset, blocks.rounded(bytes)};
    if (!blocks.well_formed(b))
        return {errc::corrupt,
                fmt::format("{}: corrupt: {} at offset {:#x}, {} bytes, is no block of the heap",
                            pool.file->path(), what, offset, bytes)};
    if (blocks.allocated_at(b.offset).bytes == b.bytes) return {};
    const hf::domain d = pool.file->domain();
    const auto dirty = [&](const void* word) { persist::flush(d, word, word_bytes); };
    // Its bit may have persisted without its chunk's entry.
    blocks.retract(b, dirty);
    if (!pool.blocks.claim(b))
        return {errc::corrupt,
                fmt::format("{}: corrupt: {} at offset {:#x} lies in a chunk of other blocks",
                            pool.file->path(), what, offset)};
    blocks.publish(b, dirty);
    persist::fence(d);
    return {};
}

status settle_anchors(pool::impl& pool) {
    const root_words* words = pool.file->roots();
    if (status s = settle_anchor(pool, "root object", words->root_offset, words->root_bytes);
        !s.ok())
        return s;
    return settle_anchor(pool, "MOD's superblock", words->mod_offset,
                         pool.file->shape().chunk_bytes);
}

} // namespace

std::uint32_t engine_bits_of(const std::vector<const engine*>& engines) noexcept {
    std::uint32_t bits = 0;
    for (const engine* e : engines) bits |= e->bit();
    return bits;
}

result<pool> pool::open(const std::string& path, const open_options& options) try {
    const auto start = std::chrono::steady_clock::now();
    if (path.empty()) return status{errc::bad_argument, "bad_argument: the pool's path is empty"};
    if ((engine_bits_of(options.engines) & (engine_clobber | engine_undo)) != 0 &&
        __start_hf_uninstrumented != nullptr)
        return status{errc::not_instrumented,
                      fmt::format("{}: not_instrumented: this program has failure-atomic functions "
                                  "(HF_TXFUNC) compiled without Holdfast's plugin, which no crash "
                                  "would spare: build them with holdfast_instrument or "
                                  "holdfast-clang++, or define HOLDFAST_UNINSTRUMENTED",
                                  path)};
    auto file = pool_file::open(path, options, engine_bits_of(options.engines));
    if (!file) return file.error();
    return impl::open(std::move(*file), options, start);
} catch (const std::bad_alloc&) { // thrown before the pool was marked open
    return out_of_memory(path);
}

/// Without memory it fails as a crash would: what it has done so far stays in the file.
status pool::impl::check_and_recover(const recovery_order& order) try {
    std::vector<pending_section> pending;
    std::vector<std::uint32_t> disbelieved;
    status s;
    const auto before_recovery = [&] {
        try { // no exception leaves a guarded run
            s = read_lanes(*this, pending, disbelieved);
            if (s.ok()) s = check_pending(*this, pending);
            for (const engine* e : engines)
                if (s.ok()) s = e->inspect(*this);
            // Marked open, the pool would seem to have left pending what says so.
            const bool belied = file->was_clean() && salvage;
            if (s.ok() && belied) start_anew(*this, disbelieved);
            if (s.ok()) s = file->mark_open();
            if (s.ok() && !belied) start_anew(*this, disbelieved);
            if (s.ok()) s = put_blocks_back(*this, pending);
            if (s.ok()) s = settle_anchors(*this);
            for (const engine* e : engines)
                if (s.ok()) s = e->settle(*this);
        } catch (const std::bad_alloc&) {
            s = out_of_memory(file->path());
        }
    };
    if (!guard_signals || file->in_memory()) before_recovery();
    else if (const auto how = fault_guard::run(fault_guard::against::cut_files, before_recovery);
             how.stopped)
        return {how.code, fmt::format("{}: {}: {}", file->path(), name(how.code), how.why)};
    if (!s.ok()) return s;
    registry::add(this);
    s = recover_all(*this, pending, order);
    return s.ok() ? file->settle_place() : s;
} catch (const std::bad_alloc&) {
    return out_of_memory(file->path());
}

result<pool> pool::impl::open(std::unique_ptr<pool_file> file, const open_options& options,
                              std::chrono::steady_clock::time_point start,
                              const recovery_order& order) {
    auto opened = std::make_unique<impl>(std::move(file), options);
    if (!options.read_only) opened->engine_bits = engine_bits_of(options.engines);
    static std::atomic<std::uint64_t> instances{0};
    opened->instance = ++instances;

    status s = opened->check_and_recover(order);
    if (s.ok()) s = opened->attach_engines();
    if (!s.ok()) {
        opened->states.clear();
        registry::remove(opened.get());
        pool_file::abandon(std::move(opened->file)); // as it was, or still marked open
        return s;
    }
    opened->report.open_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return pool(std::move(opened));
}

status pool::impl::attach_engines() try {
    for (const engine* e : engines) {
        auto made = e->attach(*this);
        if (!made) return made.error();
        states.push_back(std::move(*made));
    }
    return {};
} catch (const std::bad_alloc&) {
    return out_of_memory(file->path());
}

void pool::impl::abandon(pool opened) {
    registry::remove(opened.impl_.get());
    opened.impl_->states.clear();
    pool_file::abandon(std::move(opened.impl_->file));
    delete opened.impl_.release();
}

pool::pool(std::unique_ptr<impl> opened) noexcept : impl_(std::move(opened)) {}
pool::pool(pool&&) noexcept = default;

pool& pool::operator=(pool&& other) noexcept {
    if (this != &other) {
        pool closing(std::move(*this));
        impl_ = std::move(other.impl_);
    }
    return *this;
}

status pool::impl::usable() const {
    if (!file->is_parents()) return {};
    return refusal(file->path(), errc::in_use,
                   "this is a child of the process that has opened the pool, and has no part in "
                   "it: it must open a pool of its own");
}

pool::~pool() {
    if (impl_ == nullptr) return;
    if (impl_->file->is_parents()) {
        static std::unique_ptr<impl>* let_go = new std::unique_ptr<impl>;
        impl_->let_go_before = std::move(*let_go);
        *let_go = std::move(impl_);
        return;
    }
    registry::remove(impl_.get());
    impl_->close();
}

/// A lane whose thread is, or has ended, inside a section, as when it calls exit() there; or none.
/// Requires: due marks are stored.
std::uint32_t pool::impl::lane_in_section() noexcept {
    std::scoped_lock held{lanes_lock};
    for (std::uint32_t l = 0; l < lanes.size(); ++l)
        if (lanes[l].taken && lane_at(*file, l)->committed != lanes[l].epoch) return l;
    return no_lane;
}

void pool::impl::close() noexcept {
    std::uint32_t busy = no_lane;
    const auto settle = [&] {
        for (std::uint32_t l = 0; l < lanes.size(); ++l) store_due_mark(l);
        busy = lane_in_section();
        if (busy != no_lane) return;
        for (auto& state : states)
            if (state != nullptr) state->settle();
        // Marks and states are durable before the header says that nothing is pending.
        persist::fence(file->domain());
        seal(*this);
    };
    const bool guarded = guard_signals && !file->in_memory();
    status s;
    if (guarded) s = file->whole();
    if (s.ok() && !guarded) settle();
    else if (s.ok())
        if (const auto how = fault_guard::run(fault_guard::against::cut_files, settle); how.stopped)
            s = {how.code, fmt::format("{}: {}: {}", file->path(), name(how.code), how.why)};
    if (busy != no_lane)
        s = refusal(file->path(), errc::in_use,
                    fmt::format("closed while a section is open in lane {}, which the next open "
                                "recovers",
                                busy));
    if (s.ok()) return;
    // There is nobody to return it to.
    std::fprintf(stderr, "holdfast: %s; the pool stays marked open\n", s.what().c_str());
    states.clear(); // before the file is unmapped
    pool_file::abandon(std::move(file));
}

hf::mode pool::mode() const noexcept { return impl_->file->mode(); }
hf::domain pool::domain() const noexcept { return impl_->file->domain(); }
bool pool::emulated() const noexcept { return impl_->file->emulated(); }
const std::string& pool::path() const noexcept { return impl_->file->path(); }
std::uint64_t pool::size_bytes() const noexcept { return impl_->file->size_bytes(); }
std::uint64_t pool::max_bytes() const noexcept { return impl_->file->shape().max_bytes; }
std::uint64_t pool::generation() const noexcept { return impl_->file->generation(); }
const recovery_report& pool::recovered() const noexcept { return impl_->report; }
const std::vector<std::string>& pool::warnings() const noexcept { return impl_->file->warnings(); }
void pool::leave_unsealed() noexcept { impl_->file->leave_unsealed(); }
bool pool::relocated() const noexcept { return impl_->file->relocated(); }
bool pool::contains(const void* address) const noexcept { return impl_->contains(address); }

void* pool::root_or_end(std::size_t bytes) noexcept {
    const result<void*> found = root_bytes(bytes);
    if (found) return *found;
    const errc why = found.error().code();
    if (why == errc::wrong_layout || why == errc::in_use) fatal("%s", found.error().what().c_str());
    return nullptr;
}

result<void*> pool::root_bytes(std::size_t bytes) try {
    impl& pool = *impl_;
    if (status here = pool.usable(); !here.ok()) return here;
    std::scoped_lock held{pool.root_lock};
    root_words* words = pool.file->roots();
    const hf::domain d = pool.file->domain();
    if (words->root_offset != 0) {
        if (words->root_bytes != bytes)
            return refusal(pool.file->path(), errc::wrong_layout,
                           fmt::format("the root object: expected {} bytes, found {}", bytes,
                                       words->root_bytes));
        return pool.at(words->root_offset);
    }
    const block b = pool.blocks.reserve(attach(pool).cache, bytes);
    if (b.offset == 0) return refusal(path(), errc::pool_full, "no room for the root object");
    std::memset(pool.at(b.offset), 0, b.bytes);
    persist::flush(d, pool.at(b.offset), b.bytes);
    persist::store_word(d, &words->root_bytes, bytes);
    persist::fence(d); // the root reads as zeros before anything names it
    persist::store_word(d, &words->root_offset, b.offset);
    persist::fence(d); // named before it is allocated: settle_root cures a crash in between
    pool.blocks.durable().publish(b,
                                  [&](const void* word) { persist::flush(d, word, word_bytes); });
    persist::fence(d);
    return pool.at(b.offset);
} catch (const std::bad_alloc&) { // thrown before anything was stored
    return out_of_memory(path());
}

} // namespace hf
