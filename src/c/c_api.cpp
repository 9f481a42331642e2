// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C API: hf::pool behind a pointer, a status instead of a result.
#include <base/of_thread.hpp>
#include <c/pool_handle.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/mod/store.hpp>
#include <holdfast/copy.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/log.hpp>
#include <holdfast/statistics.hpp>

#include <new>
#include <string>

static_assert(int(HF_OK) == int(hf::errc::ok) && int(HF_EXISTS) == int(hf::errc::exists) &&
              int(HF_CORRUPT) == int(hf::errc::corrupt) &&
              int(HF_WRONG_LAYOUT) == int(hf::errc::wrong_layout) &&
              int(HF_IN_USE) == int(hf::errc::in_use) && int(HF_TORN) == int(hf::errc::torn) &&
              int(HF_POOL_FULL) == int(hf::errc::pool_full) &&
              int(HF_POISONED) == int(hf::errc::poisoned) &&
              int(HF_CONFLICT) == int(hf::errc::conflict) &&
              int(HF_NOT_INSTRUMENTED) == int(hf::errc::not_instrumented));
static_assert(int(HF_MODE_POWER) == int(hf::mode::power) &&
              int(HF_CREATE_ALWAYS_NEW) == int(hf::create::always_new) &&
              int(HF_RECOVERY_ROLL_BACK) == int(hf::recovery_policy::roll_back) &&
              int(HF_NOTE) == int(hf::severity::note) && int(HF_FATAL) == int(hf::severity::fatal));

namespace {

struct error_text {
    std::string words;
};

hf::open_options options_from(const hf_open_options* given) {
    hf::open_options o;
    o.engines = hf::all_engines();
    o.create_bytes = 0;
    if (given == nullptr) return o;
    if (given->layout != nullptr) o.layout = given->layout;
    o.layout_hash = given->layout_hash;
    o.create_bytes = given->create_bytes;
    o.max_bytes = given->max_bytes;
    o.creation = static_cast<hf::create>(given->creation);
    o.mode = static_cast<hf::mode>(given->mode);
    if (given->max_threads != 0) o.max_threads = given->max_threads;
    o.salvage = given->salvage != 0;
    o.recovery = static_cast<hf::recovery_policy>(given->recovery);
    o.read_only = given->read_only != 0;
    o.shared = given->shared != 0;
    if (o.shared && o.read_only) o.engines = {hf::mod::engine()};
    if (given->migrate != nullptr)
        o.migrate = [run = given->migrate, context = given->migrate_context](hf::migration& of) {
            return hf::c::migrated(of, run, context);
        };
    return o;
}

/// The reason why a number from C is no value of its enumeration; empty: all are values.
std::string out_of_range(const hf_open_options& o) {
    const struct {
        const char* option;
        int found, last;
    } all[] = {{"creation", o.creation, HF_CREATE_ALWAYS_NEW},
               {"mode", o.mode, HF_MODE_POWER},
               {"recovery", o.recovery, HF_RECOVERY_ROLL_BACK}};
    for (const auto& one : all)
        if (one.found < 0 || one.found > one.last)
            return std::string("bad_argument: hf_open_options: ") + one.option +
                   ": expected 0 to " + std::to_string(one.last) + ", found " +
                   std::to_string(one.found);
    return {};
}

} // namespace

hf_status hf::c::fail(errc code, std::string text) noexcept {
    try {
        hf::of_thread<error_text>::get().words = std::move(text);
    } catch (const std::bad_alloc&) { // the code alone says it
    }
    return static_cast<hf_status>(code);
}
using hf::c::fail;

extern "C" {

hf_status hf_pool_open(const char* path, const hf_open_options* options, hf_pool** pool) noexcept
    try {
    *pool = nullptr;
    if (path == nullptr)
        return fail(hf::errc::bad_argument, "bad_argument: path: expected text, found null");
    if (options != nullptr)
        if (std::string wrong = out_of_range(*options); !wrong.empty())
            return fail(hf::errc::bad_argument, std::move(wrong));
    auto opened = hf::pool::open(path, options_from(options));
    if (!opened) return fail(opened.error().code(), opened.error().what());
    *pool = new hf_pool(std::move(*opened));
    return HF_OK;
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {}); // no room for words either
}

void hf_pool_close(hf_pool* pool) noexcept { delete pool; }

hf_status hf_pool_root(hf_pool* pool, size_t bytes, void** root) noexcept {
    *root = nullptr;
    if (bytes == 0)
        return fail(hf::errc::bad_argument,
                    "bad_argument: the root object: expected 1 byte at least, found 0");
    const hf::result<void*> found = pool->root(bytes);
    if (!found) return fail(found.error().code(), found.error().what());
    *root = *found;
    return HF_OK;
}

const void* hf_pool_base(const hf_pool* pool) noexcept {
    return pool->opened.internals().file->base();
}

hf_recovered hf_pool_recovered(const hf_pool* pool) noexcept {
    const hf::recovery_report& r = pool->opened.recovered();
    return {.sections_pending = r.sections_pending,
            .re_executed = r.re_executed,
            .replayed = r.replayed,
            .resumed = r.resumed,
            .rolled_back = r.rolled_back,
            .discarded = r.discarded,
            .no_room = r.no_room};
}

hf_status hf_pool_copy_to(hf_pool* pool, const char* path, hf_copied* copied) noexcept try {
    if (path == nullptr)
        return fail(hf::errc::bad_argument, "bad_argument: path: expected text, found null");
    const auto made = pool->opened.copy_to(path);
    if (!made) return fail(made.error().code(), made.error().what());
    if (copied != nullptr) *copied = {made->bytes, made->pause_ms, made->bytes_in_pause};
    return HF_OK;
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {});
}

hf_status hf_pool_trim(hf_pool* pool, std::uint64_t* bytes) noexcept try {
    const auto given = pool->opened.trim();
    if (!given) return fail(given.error().code(), given.error().what());
    if (bytes != nullptr) *bytes = *given;
    return HF_OK;
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {});
}

void hf_pool_settle(hf_pool* pool) noexcept { pool->opened.internals().settle(); }
void hf_pool_wait_resumed(hf_pool* pool) noexcept {
    pool->opened.internals().wait_for_own_work("hf_pool_wait_resumed");
}

hf_status hf_pool_why_full(const hf_pool* pool) noexcept try {
    return hf::c::told(pool->opened.why_full());
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, {});
}

hf_status hf_pool_statistics(const hf_pool* pool, hf_statistics* found) noexcept try {
    const hf::statistics s = hf::statistics_of(pool->opened);
    *found = {s.sections,       s.ordering_points, s.flushes,    s.log_entries,        s.log_bytes,
              s.pm_bytes,       s.size_bytes,      s.max_bytes,  s.used_bytes,         s.free_bytes,
              s.metadata_bytes, s.blocks,          s.generation, s.sections_recovered, s.open_ms};
    return HF_OK;
} catch (const std::bad_alloc&) {
    return fail(hf::errc::io_error, "io_error: out of memory");
}

void hf_set_log(hf_log_function to, void* context) noexcept {
    struct receiver {
        hf_log_function to;
        void* context;
    };
    if (to == nullptr) return hf::set_log(nullptr);
    // Kept for good: another thread may be about to call the one before.
    auto* const kept = new (std::nothrow) receiver{to, context};
    if (kept == nullptr) return;
    hf::set_log(
        [](void* held, hf::severity level, const char* message) {
            const auto* const chosen = static_cast<const receiver*>(held);
            chosen->to(chosen->context, static_cast<hf_severity>(level), message);
        },
        kept);
}

const char* hf_strerror(hf_status status) noexcept {
    return hf::name(static_cast<hf::errc>(status)).data(); // literals: they end with a null
}

const char* hf_error_text(void) noexcept try {
    return hf::of_thread<error_text>::get().words.c_str();
} catch (const std::bad_alloc&) {
    return "";
}

} // extern "C"
