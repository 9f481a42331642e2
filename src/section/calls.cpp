// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the compiler, and a program's own code, call (holdfast_abi.h), of the section on this
// thread.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <open/registry.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <holdfast/author/staged.hpp>

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

namespace hf {

constinit thread_local next_section next_section_here;

namespace {

/// The build that the function has: its engine, or the choice of two.
const char* build_of(const engine_row& engine, std::uint32_t engines) noexcept {
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs)
#define HF_ENGINE_CHOICE(name, in_order, elsewhere)                                                \
    if (engines == (engine_rows::in_order.bit | engine_rows::elsewhere.bit)) return name;
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
    return engine.name;
}

/// The function is a library's that was loaded after the open, or is built for another engine than
/// the rest of the program.
[[noreturn]] void refuse_engine(const pool::impl& pool, const engine_row& engine,
                                const hf_txfunc& function) {
    const char* const path = pool.file->path().c_str();
    if (pool.file->read_only())
        fatal("%s: %s (%s) cannot run: the pool is open read-only (open_options::read_only)", path,
              readable_name(function.name), function.where);
    const std::string given = engine_names(pool.engine_bits);
    std::uint32_t needed = registry::engines_of(function);
    if (needed == 0) needed = engine.bit;
    std::string calls;
    for (std::uint32_t left = needed; left != 0; left &= left - 1)
        calls += fmt::format("{}hf::{}::engine()", calls.empty() ? "" : ", ",
                             engine_of(left & ~(left - 1))->name);
    fatal("%s: %s (%s) is built for engine %s, and the pool was opened with %s: leave "
          "open_options::engines empty, or give it %s as well; a library that is loaded later is "
          "loaded before the open",
          path, readable_name(function.name), function.where, build_of(engine, needed),
          given.empty() ? "none" : given.c_str(), calls.c_str());
}

} // namespace

section* open_section(const engine_row& engine, const hf_txfunc& function, const void* args) {
    if (section* open = current_section) {
        if (open->pool().file->is_parents()) registry::refuse_parents(nullptr, function.name);
        if (&open->engine() != &engine)
            fatal("%s (%s) is built for another engine than the section it is called in: build "
                  "what calls each other with one engine (holdfast_instrument(target ENGINE …))",
                  readable_name(function.name), function.where);
        return nullptr;
    }
    if (const auto asks = resumes_here.load(std::memory_order_relaxed); asks != nullptr)
        if (const resumed_section other = asks(); other.function != nullptr)
            fatal("%s (%s), of engine %s, is called while a section of engine %s is open, in %s, "
                  "which would call it again when it is resumed: call it before the first lock or "
                  "behind the last unlock",
                  readable_name(function.name), function.where, engine.name, other.engine->name,
                  readable_name(other.function));
    section* const at_hand = runs_again(engine) ? nullptr : section_at_hand();
    section& opened = at_hand != nullptr ? *at_hand : section_for(engine, function, args);
    pool::impl& pool = opened.pool();
    if ((pool.engine_bits & engine.bit) == 0) refuse_engine(pool, engine, function);
    pool.file->medium().begin_group();
    return &opened;
}

} // namespace hf

extern "C" {

const void* hf_vlog_preserve(const void* volatile_bytes, std::size_t bytes) noexcept {
    hf::section* s = hf::current_section;
    if (s == nullptr) return volatile_bytes;
    return hf::without_exceptions("hf_vlog_preserve",
                                  [&] { return s->by().preserve(volatile_bytes, bytes); });
}

void hf_adopt(void* staged_block) noexcept {
    hf::without_exceptions("hf_adopt", [&] {
        if (hf::section* s = hf::current_section) s->adopt(staged_block);
        else hf::adopt_at_once(staged_block);
    });
}

void* hf_alloc(std::size_t bytes) noexcept {
    hf::section* s = hf::current_section;
    return hf::without_exceptions(
        "hf_alloc", [&] { return s == nullptr ? hf::alloc_at_once(bytes) : s->by().alloc(bytes); });
}

void hf_free(void* block) noexcept {
    if (block == nullptr) return;
    hf::without_exceptions("hf_free", [&] {
        if (hf::section* s = hf::current_section) s->free(block);
        else hf::free_at_once(block);
    });
}

void hf_abort_section(void) noexcept {
    hf::section* s = hf::current_section;
    if (s == nullptr)
        hf::fatal("hf::abort_section: no section is open on this thread, so there is nothing to "
                  "take back (engine none, and code outside failure-atomic functions, have stored "
                  "for good)");
    s->by().doom();
}

void hf_note_store(const void* address, std::uint64_t bytes) noexcept {
    if (hf::section* s = hf::current_section)
        hf::without_exceptions("hf_note_store", [&] { s->by().note(address, bytes); });
}

void hf_crash_point(const char* name) noexcept {
    static const char* const armed = std::getenv("HOLDFAST_CRASH_AT");
    if (armed != nullptr && std::strcmp(armed, name) == 0) ::kill(::getpid(), SIGKILL);
}

} // extern "C"
