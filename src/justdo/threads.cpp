// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/log.hpp>
#include <base/of_thread.hpp>
#include <justdo/threads.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>
#include <section/section.hpp>

#include <holdfast/justdo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <pthread.h>

namespace hf::justdo {

constinit thread_local thread_at_hand at_hand;

bool threads::in_section() noexcept {
    std::scoped_lock held{lock_};
    return std::ranges::any_of(all_, [](const auto& t) { return t->open(); });
}

superblock* threads::make_superblock() {
    const geometry& shape = pool_->file->shape();
    return static_cast<superblock*>(
        make_own_block(*pool_, shape.chunk_bytes, purpose::data,
                       pool_->file->roots()->anchor(engine_justdo), [&](void* at, block) {
                           auto& super = *static_cast<superblock*>(at);
                           super.magic = superblock_magic;
                           super.thread_bytes = thread_bytes_for(shape.max_bytes);
                           super.threads_max = threads_max_for(shape.chunk_bytes);
                       }));
}

/// From here on sections of other engines ask whether one that resumes is open. A program without
/// functions that resume has none: it does not come here. A library that has some may be loaded
/// later, when this thread's next section is offered to begin like its last one.
static void let_others_ask() noexcept {
    resumes_here = []() noexcept -> resumed_section {
        if (current == nullptr || current->function() == nullptr) return {};
        return {&engine_rows::justdo, current->open() ? current->function()->name : nullptr};
    };
    next_section_here.offered = next_section::none;
}

result<thread*> threads::lease() {
    let_others_ask();
    const pool_file& file = *pool_->file;
    std::scoped_lock held{lock_};
    if (!idle_.empty()) {
        thread* const again = idle_.back();
        idle_.pop_back();
        return again;
    }
    superblock* super = superblock_of(file);
    if (super == nullptr) super = make_superblock();
    if (super == nullptr) return pool_->blocks.full("engine justdo's superblock");
    const auto words = thread_words(*super);
    const auto word = std::ranges::find(words, std::uint64_t{0});
    if (word == words.end())
        return refusal(
            file.path(), errc::limit_reached,
            fmt::format("engine justdo: expected at most {} threads at a time, found one more: let "
                        "another one end first",
                        words.size()));
    all_.reserve(all_.size() + 1);
    const void* const made =
        make_own_block(*pool_, super->thread_bytes, purpose::data, *word, [](void* at, block) {
            static_cast<thread_block*>(at)->magic = thread_magic;
        });
    if (made == nullptr) return pool_->blocks.full("a thread's log of engine justdo");
    all_.push_back(std::make_unique<thread>(*pool_, *word, super->thread_bytes));
    return all_.back().get();
}

void threads::give_back(thread* mine) noexcept {
    if (mine->open()) return;
    mine->retire();
    std::scoped_lock held{lock_};
    idle_.push_back(mine); // has room: lease() has taken it from here, or made 'all_' grow
}

status threads::recover(engine_recovery& done, bool to_the_end) {
    superblock* const super = superblock_of(*pool_->file);
    if (super == nullptr) return {};
    const hf::medium pm = pool_->file->medium();
    std::vector<thread*> open;
    for (const std::uint64_t offset : thread_words(*super))
        if (offset != 0)
            all_.push_back(std::make_unique<thread>(*pool_, offset, super->thread_bytes));
    idle_.reserve(all_.size());
    for (const auto& t : all_) {
        if (status s = t->take_up(); !s.ok()) return s;
        t->reset_locks();
        (t->open() ? open : idle_).push_back(t.get());
    }
    if (!open.empty()) let_others_ask();
    pm.fence();
    for (const auto& t : all_) t->forget_intentions();
    pm.fence();
    done.sections_pending = static_cast<std::uint32_t>(open.size());
    done[recovery_verb::resume] = done.sections_pending;
    if (open.empty()) return {};
    resuming_ = std::make_unique<resumption>(*pool_, std::move(open), [this](thread* ended) {
        std::scoped_lock held{lock_};
        idle_.push_back(ended); // has room: recover()
    });
    status s = resuming_->own_again();
    return s.ok() && to_the_end ? resuming_->finish() : s;
}

void threads::end_own_work(bool stop) noexcept {
    if (stop) resuming_.reset();
    if (resuming_ == nullptr) return;
    if (const status s = resuming_->finish(); !s.ok()) say(severity::error, s.what().c_str());
}

void threads::free_locks() noexcept {
    for (const auto& t : all_) t->free_locks();
}

namespace {

/// This thread's blocks in pools; given back when it ends, to those that are still open.
struct leases {
    struct lease {
        std::uint64_t instance;
        threads* from;
        thread* mine;
    };
    std::vector<lease> all;
    ~leases() {
        current = nullptr;
        at_hand = {};
        std::scoped_lock held{registry::guard()};
        for (const lease& l : all)
            if (registry::is_open(l.instance)) l.from->give_back(l.mine);
    }
};
leases& mine() { return of_thread<leases>::get(); }

/// The reason why a thread cannot have a block in the pool.
status why_none(const pool::impl& in) {
    const std::string& path = in.file->path();
    if (in.file->read_only()) return refusal(path, errc::permission, "the pool is open read-only");
    if (in.state_of(engine_justdo) == nullptr)
        return refusal(path, errc::missing_engine,
                       "expected engine justdo, found the pool opened without it: give "
                       "open_options::engines hf::justdo::engine()");
    return {};
}

/// Requires: why_none() says nothing.
result<thread*> lease_in(pool::impl& in) {
    for (const leases::lease& l : mine().all)
        if (l.instance == in.instance) return l.mine;
    auto* const from = static_cast<threads*>(in.state_of(engine_justdo));
    {
        std::scoped_lock held{registry::guard()};
        std::erase_if(mine().all, [](const auto& l) { return !registry::is_open(l.instance); });
    }
    mine().all.reserve(mine().all.size() + 1);
    const result<thread*> leased = from->lease();
    if (leased) mine().all.push_back({in.instance, from, *leased});
    return leased;
}

thread& thread_of(pool::impl& in, const char* what) {
    for (const leases::lease& l : mine().all)
        if (l.instance == in.instance) return *l.mine;
    if (in.file->is_parents()) registry::refuse_parents(nullptr, in.file->path().c_str());
    if (const status s = why_none(in); !s.ok()) fatal("%s cannot run: %s", what, s.what().c_str());
    const result<thread*> leased = lease_in(in);
    if (!leased) fatal("%s", leased.error().what().c_str());
    return **leased;
}

/// In a child of fork() the parent's pools are not this process's.
[[maybe_unused]] const int watching = pthread_atfork(nullptr, nullptr, [] {
    current = nullptr;
    at_hand = {};
    hf_justdo_steps.words_end = 0;
});

} // namespace

result<thread*> lease_thread(pool::impl& in) {
    if (in.file->is_parents()) registry::refuse_parents(nullptr, in.file->path().c_str());
    if (status s = why_none(in); !s.ok()) return s;
    return lease_in(in);
}
status check_usable(const pool::impl& in) { return why_none(in); }

void wait(pool& in) noexcept { in.internals().wait_for_own_work("hf::justdo::wait"); }

thread& find_calling_thread(const void* in, const char* what) {
    if (current != nullptr) return *current;
    pool::impl* pool = registry::pool_of(in);
    if (pool == nullptr) registry::refuse_parents(in, what);
    if (pool == nullptr) pool = registry::only_pool();
    if (pool == nullptr) registry::refuse_parents(nullptr, what);
    if (pool == nullptr)
        fatal("%s: none of its arguments lies in a pool, and not exactly one pool is open", what);
    current = &thread_of(*pool, what);
    if (pool->instance == registry::only_instance()) at_hand = {pool->instance, current};
    return *current;
}

} // namespace hf::justdo
