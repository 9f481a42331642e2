// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The public face of a pool: opened, asked, closed.
#include <base/assert.hpp>
#include <base/environment.hpp>
#include <base/log.hpp>
#include <open/mark_guard.hpp>
#include <open/migration.hpp>
#include <open/pending.hpp>
#include <open/pool_impl.hpp>
#include <open/program_engines.hpp>
#include <open/registry.hpp>
#include <open/sealing.hpp>
#include <pool/copying.hpp>
#include <pool/file_checks.hpp>
#include <pool/mapping.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

// The linker defines it if there is a section of that name: functions that the plugin has not seen
// (mark.h).
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const char __start_hf_uninstrumented[];

namespace hf {

std::uint32_t engine_bits_of(const std::vector<engine_ptr>& engines) noexcept {
    std::uint32_t bits = 0;
    for (const engine_ptr& e : engines) bits |= e->bit();
    return bits;
}

std::uint32_t engine_bits_of(const std::vector<engine_ptr>& engines,
                             bool (engine::*which)() const noexcept) noexcept {
    std::uint32_t bits = 0;
    for (const engine_ptr& e : engines)
        if (((*e).*which)()) bits |= e->bit();
    return bits;
}

file_options file_options_of(const open_options& options) {
    return {.layout = options.layout,
            .layout_hash = options.layout_hash,
            .create_bytes = options.create_bytes,
            .max_bytes = options.max_bytes,
            .creation = options.creation,
            .mode = options.mode,
            .max_threads = options.max_threads,
            .salvage = options.salvage,
            .prefault = options.expert.prefault,
            .eadr = options.expert.eadr,
            .follow_symlinks = options.expert.follow_symlinks,
            .guard_signals = options.expert.guard_signals,
            .read_only = options.read_only,
            .shared = options.shared,
            .relocate = options.expert.relocate,
            .migrates = options.migrate != nullptr,
            .seal = options.expert.seal,
            .engines = engine_bits_of(options.engines),
            .drop_bytes = engine_bits_of(options.engines, &engine::drops_bytes),
            .rebuild = engine_bits_of(options.engines, &engine::rebuilds)};
}

namespace {

/// Two states of one engine would each write their own over the other's.
status check_given(const std::string& path, const std::vector<engine_ptr>& engines) {
    std::uint32_t seen = 0;
    for (const engine_ptr& e : engines) {
        if (e == nullptr)
            return refusal(path, errc::bad_argument,
                           "open_options::engines: expected engines, found a null pointer");
        if ((seen & e->bit()) != 0)
            return refusal(
                path, errc::bad_argument,
                fmt::format("open_options::engines: expected each engine once, found {} twice",
                            e->name()));
        seen |= e->bit();
        if (status s = e->check_options(path); !s.ok()) return s;
    }
    return {};
}

/// Readers beside a writer may read some engines' state; other engines change their data in place.
status check_shared(const std::string& path, const open_options& options) {
    if (!options.shared) return {};
    const auto readable = [](const engine_ptr& e) { return e->read_beside() != nullptr; };
    const auto some = std::ranges::count_if(options.engines, readable);
    const auto all = static_cast<std::ptrdiff_t>(options.engines.size());
    if (some != 0 && (!options.read_only || some == all)) return {};
    std::string what, which;
    for (const engine_ptr& e : linked_engines()) {
        if (!readable(e)) continue;
        what += fmt::format("{}{}", what.empty() ? "" : " and ", e->read_beside());
        which += fmt::format("{}{}::engine()", which.empty() ? "" : ", ", e->name());
    }
    if (which.empty()) what = "nothing that this program's engines keep", which = "such an engine";
    const std::uint32_t bits = engine_bits_of(options.engines);
    return refusal(
        path, errc::bad_argument,
        fmt::format("open_options::shared: {} {}: expected {}, one at least{}, in "
                    "open_options::engines, found {}",
                    options.read_only ? "beside a writer this process reads" : "others read", what,
                    which, options.read_only ? " and no other" : "",
                    bits == 0 ? "no engine" : engine_names(bits)));
}

} // namespace

result<pool> pool::open(const std::string& path, const open_options& options) try {
    if (path.empty())
        return status{errc::bad_argument,
                      "bad_argument: path: expected the name of a file, found an empty one"};
    if (status s = check_given(path, options.engines); !s.ok()) return s;
    const std::uint32_t given = engine_bits_of(options.engines);
    if ((options.engines.empty() || bits_with_sections(given) != 0) &&
        __start_hf_uninstrumented != nullptr)
        return status{errc::not_instrumented,
                      fmt::format("{}: not_instrumented: this program has failure-atomic "
                                  "functions (HF_TXFUNC) compiled without Holdfast's plugin, "
                                  "which no crash would spare: build them with "
                                  "holdfast_instrument or holdfast-clang++, or define "
                                  "HOLDFAST_UNINSTRUMENTED",
                                  path)};
    const bool fenced = options.mode == mode::pmem && !options.expert.eadr && !caches_persist();
    if (!options.read_only)
        if (status s = check_program(path, fenced, given); !s.ok()) return s;
    if (!options.engines.empty()) return impl::open_with(path, options);
    open_options of_program = options;
    of_program.engines = engines_of_program();
    return impl::open_with(path, of_program);
} catch (const std::bad_alloc&) {
    return out_of_memory(path);
}

result<pool> pool::impl::open_with(const std::string& path, const open_options& options) try {
    const auto start = std::chrono::steady_clock::now();
    if (options.recovery > recovery_policy::roll_back)
        return refusal(path, errc::bad_argument,
                       no_such_value("recovery", "complete or roll_back",
                                     static_cast<unsigned>(options.recovery)));
    if (status s = check_shared(path, options); !s.ok()) return s;
    auto file = pool_file::open(path, file_options_of(options));
    if (!file) return file.error();
    return impl::open(std::move(*file), options, start);
} catch (const std::bad_alloc&) { // thrown before the pool was marked open
    return out_of_memory(path);
}

result<pool> pool::impl::open(std::unique_ptr<pool_file> file, const open_options& options,
                              std::chrono::steady_clock::time_point start,
                              const recovery_order& order) {
    const auto ms_since = [](std::chrono::steady_clock::time_point before) {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
            .count();
    };
    const double map_ms = ms_since(start);
    auto opened = std::make_unique<impl>(std::move(file), options);
    if (!options.read_only) opened->engine_bits = engine_bits_of(options.engines);
    opened->runs_again = std::ranges::any_of(options.engines, [](const engine_ptr& e) {
        const recovery_verb verb = e->row().verb;
        return verb == recovery_verb::re_execute || verb == recovery_verb::resume;
    });
    static std::atomic<std::uint64_t> instances{0};
    opened->instance = ++instances;
    HF_ASSERT_SLOW(opened->valid(false));

    opened->map_ms = map_ms;
    const auto checking = std::chrono::steady_clock::now();
    const bool beside = opened->file->reads_beside(); // its writer has recovered it
    status s;
    if (beside) registry::add(opened.get());
    else s = opened->can_rebuild();
    if (s.ok() && !beside && !opened->file->migrates()) s = opened->check_root(options.root_bytes);
    if (s.ok() && !beside)
        s = opened->check_and_recover(order, [&] { opened->check_ms = ms_since(checking); });
    if (s.ok()) s = opened->attach_engines();
    if (s.ok() && !opened->file->migrating()) s = finish_migration(*opened); // of an earlier open
    if (s.ok()) s = opened->go_on();
    if (!s.ok()) {
        opened->states.clear();
        registry::remove(opened.get());
        pool_file::give_up(std::move(opened->file)); // as it was, still marked open, or gone
        return s;
    }
    opened->report.open_ms = ms_since(start);
    opened->sections_ms = ms_since(checking) - opened->check_ms;
    if (!opened->file->in_memory()) opened->say_opened();
    HF_ASSERT_SLOW(opened->valid(true));
    pool whole(std::move(opened));
    // Durable with the close. If a crash or a failure comes before it is done, the next open runs
    // it again.
    const auto to_rebuild = [&] { return !beside && whole.impl_->has_to_rebuild(); };
    try {
        if (whole.impl_->file->migrates()) s = impl::migrate(whole, options);
        if (s.ok() && to_rebuild()) impl::rebuild(whole);
    } catch (...) {
        if (to_rebuild()) abandon(std::move(whole));
        throw;
    }
    if (s.ok() && !beside) mark_guard::start(options.expert, *whole.impl_);
    if (s.ok()) return whole;
    if (to_rebuild()) abandon(std::move(whole));
    return s;
}

void pool::impl::say_opened() const noexcept try {
    say(severity::note,
        fmt::format("{}: opened in {:.1f} ms: {} sections were pending, {} completed, {} resumed, "
                    "{} rolled back, {} discarded",
                    file->path(), report.open_ms, report.sections_pending,
                    report.re_executed + report.replayed, report.resumed, report.rolled_back,
                    report.discarded)
            .c_str());
} catch (const std::bad_alloc&) { // a line less in the log, and the pool is open
}

/// Whether this open can compute what the last one's engines have left to rebuild.
status pool::impl::can_rebuild() const {
    for (const engine_ptr& e : engines) {
        if ((file->left_to_rebuild() & e->bit()) == 0) continue;
        if (e->rebuilds() && !file->read_only()) continue;
        if (!salvage)
            return refusal(
                file->path(), errc::missing_engine,
                fmt::format(
                    "a crash left it open with what is computed again: expected {}, found none, "
                    "or a read-only open; salvage does without",
                    e->rebuild_needs()));
        file->warn(fmt::format("{}: salvaged: what engine {} would compute again is as the crash "
                               "left it",
                               file->path(), e->name()));
    }
    return {};
}

bool pool::impl::has_to_rebuild() const noexcept {
    return (file->left_to_rebuild() & engine_bits_of(engines, &engine::rebuilds)) != 0;
}

void pool::impl::rebuild(pool& whole) {
    const std::uint32_t left = whole.impl_->file->left_to_rebuild();
    for (const engine_ptr& e : whole.impl_->engines)
        if ((left & e->bit()) != 0 && e->rebuilds()) e->rebuild(whole);
}

bool pool::impl::valid(bool attached) const noexcept {
    std::uint32_t seen = 0; // engines' bits
    for (const engine_ptr& e : engines) {
        if (e == nullptr || (seen & e->bit()) != 0) return false;
        seen |= e->bit();
    }
    if (engine_bits != (file->read_only() ? 0 : seen)) return false;
    if (attached && states.size() != engines.size()) return false;
    return instance != 0 && lanes.size() == file->shape().lane_count && blocks.durable().valid();
}

status pool::impl::attach_engines() try {
    HF_ASSERT_SLOW(valid(false));
    HF_ASSERT_SLOW(states.empty());
    // A log is bounded by blocks of the heap, and an engine's own state is in such blocks. So a
    // forged log may have changed state that the engine has found sound.
    for (const engine_ptr& e : engines) {
        if (report.sections_pending == 0) break;
        status s = e->inspect(*this);
        if (salvages(*this, s)) {
            e->give_up_unsound(*this);
            s = e->inspect(*this);
            if (!s.ok()) forget_state(*this, *e, std::exchange(s, {}));
        }
        if (!s.ok()) return s;
    }
    for (const engine_ptr& e : engines) {
        auto made = e->attach(*this);
        if (!made && salvages(*this, made.error())) {
            forget_state(*this, *e, made.error());
            made = e->attach(*this);
        }
        if (!made) return made.error();
        states.push_back(std::move(*made));
    }
    return {};
} catch (const std::bad_alloc&) {
    return out_of_memory(file->path());
}

status pool::impl::go_on() {
    for (auto& state : states)
        if (state != nullptr)
            if (status s = state->go_on(); !s.ok()) return s;
    return {};
}

void pool::impl::end_own_work(bool stop) noexcept {
    for (auto& state : states)
        if (state != nullptr) state->end_own_work(stop);
}

void pool::impl::wait_for_own_work(const char* call) noexcept {
    if (any_section_here())
        fatal("%s in a section: it would wait for that section's locks for ever", call);
    if (file->is_parents()) registry::refuse_parents(nullptr, call);
    for (auto& state : states)
        if (state != nullptr) state->wait_for_own_work();
}

void pool::impl::abandon(pool opened) {
    opened.impl_->end_own_work(true);
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

bool pool::impl::checks_pointers_anyway() noexcept {
#if defined(HF_SLOW_ASSERTIONS)
    return true;
#else
    static constinit environment_switch asked("HOLDFAST_CHECK_POINTERS");
    return asked.is_on();
#endif
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
    impl_->end_own_work(false); // sections look their pool up
    registry::remove(impl_.get());
    if (const pool_file& file = *impl_->file; impl_->guard_signals && !file.in_memory())
        fault_guard::note_closed(file.base(), file.shape().max_bytes, file.path().c_str());
    impl_->close();
}

std::string pool::impl::open_section::name() const {
    return lane != lane_set::no_lane ? fmt::format("a section in lane {}", lane)
                                     : fmt::format("a section of engine {}", of->name());
}

pool::impl::open_section pool::impl::find_open_section() noexcept {
    lanes.store_due_marks();
    open_section busy{lanes.in_section()};
    for (std::size_t i = 0; i < states.size(); ++i)
        if (states[i] != nullptr && states[i]->in_section()) busy.of = engines[i].get();
    return busy;
}

void pool::impl::settle() noexcept {
    for (auto& state : states)
        if (state != nullptr) state->settle();
    lanes.settle_all(); // durable before anything the caller stores
    if (file->mode() != hf::mode::power) return;
    // In a group, or after another thread's whose group goes on, fences have only ordered.
    file->medium().order();
    file->medium().promise();
}

/// On return marks are durable, and the work that engines had put off is, too.
/// Requires: no open section.
void pool::impl::settle_for_close() noexcept {
    for (auto& state : states)
        if (state != nullptr) state->settle_for_close();
    lanes.flush_lazy(file->medium());
    file->medium().fence();
}

void pool::impl::close() noexcept {
    HF_ASSERT_SLOW(valid(true));
    HF_ASSERT_SLOW(!registry::is_added(this)); // no thread finds it any more
    open_section busy;
    const auto settle = [this,
                         &busy] { // two words, so a std::function needs no memory for them
        busy = find_open_section();
        if (busy) return;
        settle_for_close(); // before the header says that nothing is pending
        HF_ASSERT_SLOW(lanes.valid());
        seal(*this);
    };
    const bool guarded = guard_signals && !file->in_memory();
    status s;
    if (guarded) s = file->whole();
    if (s.ok() && !guarded) settle();
    else if (s.ok())
        if (const auto how = fault_guard::run(fault_guard::against::cut_files, settle); how.stopped)
            s = {how.code, fmt::format("{}: {}: {}", file->path(), name(how.code), how.why)};
    if (busy)
        s = refusal(
            file->path(), errc::in_use,
            fmt::format("closed while {} is open, which the next open recovers", busy.name()));
    if (s.ok()) return;
    // A destructor has no caller to return it to.
    say(severity::error, (s.what() + "; the pool stays marked open").c_str());
    states.clear(); // before the file is unmapped
    pool_file::abandon(std::move(file));
}

result<copy_report> pool::copy_to(const std::string& path, const copy_options& options) const {
    if (status here = impl_->usable(); !here.ok()) return here;
    if (impl_->file->reads_beside())
        return refusal(
            this->path(), errc::permission,
            "opened with read_only and shared: its writer copies it, or `holdfast copy`");
    const os_file* const file = impl_->file->own_file();
    if (file == nullptr)
        return refusal(this->path(), errc::bad_argument,
                       "expected a pool in a file, found one in memory");
    return copy_own_file(*file, this->path(), path, options, seal_copy);
}

result<copy_report> pool::copy_to(const std::string& path) const { return copy_to(path, {}); }

result<std::uint64_t> pool::trim() try {
    if (status here = impl_->usable(); !here.ok()) return here;
    if (impl_->file->read_only())
        return refusal(path(), errc::permission, "the pool is open read-only");
    if (mode() == hf::mode::power)
        if (status s = impl_->file->give_back(0, 0); !s.ok()) return s; // says why
    for (auto& state : impl_->states)
        if (state != nullptr)
            if (status s = state->trim(); !s.ok()) return s;
    return impl_->blocks.trim();
} catch (const std::bad_alloc&) {
    return out_of_memory(path());
}

status pool::limit_growth(std::uint64_t bytes) {
    const geometry& shape = impl_->file->shape();
    if (bytes < shape.chunk_bytes || bytes > shape.max_bytes)
        return refusal(path(), errc::bad_argument,
                       fmt::format("limit_growth: expected {} to {} bytes, found {}",
                                   shape.chunk_bytes, shape.max_bytes, bytes));
    if (!impl_->blocks.limit_growth(bytes))
        return refusal(
            path(), errc::limit_reached,
            "expected an extent that is left, found all of them used: bring what the pool holds "
            "to a new pool");
    return {};
}
status pool::why_full() const { return impl_->blocks.why_full(); }
std::uint64_t pool::growth_limit() const noexcept { return impl_->blocks.growth_limit(); }

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
pool::log_written pool::logged() const noexcept {
    const written_to_log so_far = impl_->file->logged();
    return {so_far.bytes, so_far.waits, so_far.checkpoints};
}
bool pool::relocated() const noexcept { return impl_->file->relocated(); }
bool pool::contains(const void* address) const noexcept { return impl_->contains(address); }
std::uint64_t pool::offset_of(const void* address) const noexcept {
    return impl_->offset_of(address);
}

durable_together::durable_together(pool& in) noexcept : in_(&in.internals()) {
    if (!in_->file->is_parents()) in_->file->medium().begin_group();
}
durable_together::~durable_together() {
    if (in_->file->is_parents()) return; // its end and the log belong to the parent
    const medium pm = in_->file->medium();
    // Also promises flushes that the next update would fence, and what others have fenced, even if
    // this group has done nothing.
    if (in_->file->mode() == mode::power) pm.order();
    if (pm.promises()) pm.promise(); // within another pool's: there is no group that would wait
    pm.end_group();
}

} // namespace hf
