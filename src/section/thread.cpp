// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <base/of_thread.hpp>
#include <open/registry.hpp>
#include <section/thread.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <utility>

namespace hf {

constinit thread_local attachment* last_attachment = nullptr;

namespace {

/// A thread's attachments; given back when it ends, to those pools that are still open.
struct thread_attachments {
    std::vector<std::unique_ptr<attachment>> all;
    ~thread_attachments();
    static void leave(attachment& a) {
        a.work.leave();
        for (block b : a.work.prepared().staged()) a.pool->blocks.release(a.cache, b);
        a.pool->blocks.release_all(a.cache);
        std::scoped_lock lanes_held{a.pool->lanes.lock};
        HF_ASSERT_SLOW(a.pool->lanes[a.lane].taken);
        if (!a.shared) a.pool->lanes[a.lane].taken = false;
    }
};
/// What comes next on this thread looks anew.
void forget_last() noexcept {
    last_attachment = nullptr;
    next_section_here.offered = next_section::none;
}
thread_attachments& mine() { return of_thread<thread_attachments>::get(); }

thread_attachments::~thread_attachments() {
    forget_last();
    std::scoped_lock held{registry::guard()};
    for (auto& a : all) {
        const bool is_open = registry::is_open(a->instance);
        // A section that its thread does not end, and that cannot be taken back here, keeps its
        // lane, and what its log names: the pool is left open (pool::impl::close), and the next
        // open recovers it. What runs later joins it.
        if (current_section == &a->work && !(is_open && a->work.by().end_early()))
            (void)a.release();
        else if (is_open) leave(*a);
    }
}

/// Requires: the lock of the pool's lanes held.
attachment& attach_to(pool::impl& pool, std::uint32_t lane, std::mutex* turns) {
    HF_ASSERT_SLOW(held_here(pool.lanes.lock));
    HF_ASSERT_SLOW(turns != nullptr || !pool.lanes[lane].taken);
    attachment& made = *mine().all.emplace_back(std::make_unique<attachment>(pool, lane, turns));
    // Taken last: a lane that is taken stays so, whatever throws.
    if (std::exchange(pool.lanes[lane].taken, true)) return made;
    // The lane's epochs start above what the open found, and the next open must find that,
    // whatever becomes of the first sections: it starts above it again (commit_marks.hpp, 6).
    start_lane(*pool.file, lane, pool.lanes[lane].epoch);
    return made;
}

attachment& attach_new(pool::impl& pool) {
    if (!pool.file->in_memory()) persist::count_this_thread();
    {
        std::scoped_lock held{registry::guard()};
        std::erase_if(mine().all, [](const auto& a) { return !registry::is_open(a->instance); });
    }
    std::scoped_lock held{pool.lanes.lock};
    // The crash checker's few threads have a lane each: its pools need none to be shared.
    const bool in_memory = pool.file->in_memory();
    const auto last_lane = static_cast<std::uint32_t>(pool.lanes.size() - 1);
    for (std::uint32_t l = 0; l < last_lane + in_memory; ++l)
        if (!pool.lanes[l].taken) return attach_to(pool, l, nullptr);
    if (in_memory)
        fatal("a pool in memory: expected at most %zu threads, one for each lane, found another: "
              "raise max_threads",
              pool.lanes.size());
    return attach_to(pool, last_lane, &pool.lanes.last_lane_turns);
}

pool::impl& sole_pool(const char* what) {
    pool::impl* pool = registry::only_pool();
    if (pool == nullptr) registry::refuse_parents(nullptr, what);
    if (pool == nullptr)
        fatal("%s: no argument points into a pool: expected exactly one open pool in this process, "
              "found none or several: open one, or pass a pointer into the pool",
              readable_name(what));
    return *pool;
}

} // namespace

attachment& attach(pool::impl& pool) {
    if (last_attachment != nullptr && last_attachment->instance == pool.instance)
        return *last_attachment;
    if (pool.file->is_parents()) registry::refuse_parents(nullptr, pool.file->path().c_str());
    for (auto& a : mine().all)
        if (a->instance == pool.instance) return *(last_attachment = a.get());
    last_attachment = nullptr;
    last_attachment = &attach_new(pool);
    HF_ASSERT_SLOW(last_attachment->instance == pool.instance);
    HF_ASSERT_SLOW(last_attachment->pool == &pool);
    return *last_attachment;
}

/// In a child of fork() the next attach() looks anew: the parent's pools are not this process's.
[[maybe_unused]] static const int watching = pthread_atfork(nullptr, nullptr, forget_last);

void no_memory_for(const char* call) noexcept {
    fault_guard::fatal_means(errc::io_error);
    const section* open = current_section;
    if (open == nullptr || open->function() == nullptr) fatal("out of memory in %s", call);
    fatal("out of memory in %s: section %s (%s) ends here, and the process with it; the next open "
          "completes it or rolls it back",
          call, readable_name(open->function()->name), open->function()->where);
}

/// "argument 2", counted as people count; of a closure "a captured pointer".
struct argument_in_words {
    char text[32];
};
static argument_in_words argument(const hf_txfunc& function, std::uint64_t index) noexcept {
    argument_in_words out{};
    if (is_closure(function.name)) std::snprintf(out.text, sizeof out.text, "a captured pointer");
    else std::snprintf(out.text, sizeof out.text, "argument %u", static_cast<unsigned>(index) + 1);
    return out;
}

section& section_for(const engine_row& engine, const hf_txfunc& function, const void* args) {
    pool::impl* pool = nullptr;
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        if (function.args[i].kind != HF_ARG_POOL_POINTER) continue;
        const void* pointer = nullptr;
        std::memcpy(&pointer, static_cast<const std::byte*>(args) + function.args[i].offset_bytes,
                    sizeof pointer);
        if (pointer == nullptr || (pool != nullptr && pool->contains(pointer))) continue;
        if (pool != nullptr && !runs_again(engine) && registry::pool_of(pointer) == nullptr)
            continue;
        if (pool != nullptr)
            fatal("%s (%s): %s (%p): expected an address in the pool of the arguments before it, "
                  "found %s",
                  readable_name(function.name), function.where, argument(function, i).text, pointer,
                  registry::pool_of(pointer) != nullptr
                      ? "one in another pool: a section works on one pool; copy what is elsewhere "
                        "first"
                      : "memory of this process, as the stack, the heap and literals are: it is "
                        "gone when the section runs again; read it through hf::vlog_preserve");
        pool = registry::pool_of(pointer);
        if (pool == nullptr) registry::refuse_parents(pointer, function.name);
        // It may be given what dies with the process.
        if (pool == nullptr && !runs_again(engine)) continue;
        if (pool == nullptr)
            fatal("%s (%s): %s (%p): expected an address in an open pool, found volatile memory or "
                  "a closed pool, which a re-execution would not find: pass the value itself, "
                  "allocate the object in the pool, or read it through hf::vlog_preserve only",
                  readable_name(function.name), function.where, argument(function, i).text,
                  pointer);
    }
    return attach(pool != nullptr ? *pool : sole_pool(function.name)).work;
}

/// No log names the block: its chunk's entry is durable before its bit, or a failure could leave a
/// bit without a block.
std::unique_lock<std::mutex> section::at_once(block b) {
    HF_ASSERT_SLOW(current_section == nullptr);
    HF_ASSERT_SLOW(pool_->blocks.durable().well_formed(b));
    std::unique_lock<std::mutex> turn;
    if (turns_ != nullptr) turn = std::unique_lock(*turns_);
    if (medium_.loses_caches())
        std::atomic_ref(marks_.header().at_once).store(b.offset, std::memory_order_release);
    return turn;
}

static void publish_at_once(pool::impl& pool, section& work, block b) {
    const hf::medium pm = pool.file->medium();
    HF_ASSERT_SLOW(!pool.blocks.durable().bit(b.offset));
    const auto held = work.at_once(b);
    const auto dirty = [&](const void* word) { pm.flush(word, word_bytes); };
    pool.blocks.durable().name_chunk(b, dirty);
    pm.fence();
    pool.blocks.durable().set_bit(b, dirty);
    pm.fence();
}

void* alloc_at_once(std::size_t bytes) try {
    pool::impl& pool = sole_pool("hf_alloc");
    if (pool.file->read_only()) return nullptr;
    attachment& mine = attach(pool);
    const block b = pool.blocks.reserve(mine.cache, bytes);
    if (b.offset == 0) return nullptr;
    publish_at_once(pool, mine.work, b);
    return pool.at(b.offset);
} catch (const std::bad_alloc&) { // thrown before the block was published
    return nullptr;
}

void free_at_once(void* given) {
    pool::impl* pool = registry::pool_of(given);
    const block b = pool == nullptr ? block{0, 0} : pool->blocks.find(pool->offset_of(given));
    if (pool == nullptr) registry::refuse_parents(given, "hf_free");
    if (b.bytes == 0)
        fatal("hf_free(%p): expected an allocated block of an open pool, found none: it was freed "
              "before, belongs to a closed pool, or came from malloc or new",
              given);
    if (pool->file->read_only())
        fatal("%s: hf_free(%p): the pool is open read-only: open it for writing",
              pool->file->path().c_str(), given);
    attachment& mine = attach(*pool); // may find no memory: before anything is changed
    // A section whose mark is still due may name the block; re-executed, it would take it again.
    pool->lanes.store_due_marks();
    const hf::medium pm = pool->file->medium();
    const auto held = mine.work.at_once(b);
    pm.fence();
    pool->blocks.durable().clear_bit(b, [&](const void* word) { pm.flush(word, word_bytes); });
    pm.fence();
    pool->blocks.release(mine.cache, b);
}

void adopt_at_once(void* staged_block) {
    pool::impl* pool = registry::pool_of(staged_block);
    if (pool == nullptr) registry::refuse_parents(staged_block, "hf_adopt");
    if (pool == nullptr)
        fatal("hf_adopt(%p): expected a staged block, found no open pool there", staged_block);
    attachment& mine = attach(*pool);
    prepared_memory& prepared = mine.work.prepared();
    const auto found = prepared.find(pool->offset_of(staged_block));
    if (found == prepared.staged().end())
        fatal("hf_adopt(%p): expected a block that this thread has staged, found another: stage it "
              "with hf::staged::in, and adopt it once",
              staged_block);
    // A section whose mark is still due names the block as staged: recovery would take it back.
    mine.work.settle_mark();
    publish_at_once(*pool, mine.work, *found);
    prepared.forget_filled(*found); // fenced with it
    prepared.staged().erase(found);
}

} // namespace hf
