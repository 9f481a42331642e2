// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions across processes: a writer (open_options::shared) and the processes that read beside it.
//
// Among threads a reader pins (store_impl.hpp, 2). Among processes it announces a number instead:
// it locks the byte of that number, and the kernel drops the lock with the process. Numbers are
// those of commits; 'sequence' is in the file.
//
// (1) The writer counts a commit in 'sequence' when its word is visible to readers. If words go
//     past the caches, that is behind the writer's fence. So a reader that reads q there reads
//     words that no commit up to q has replaced.
// (2) Reader: read 'sequence', q; announce q; then read the word. Writer: read 'sequence', s; then
//     ask which numbers are announced; reclaim what was retired up to the least of them, or s. A
//     reader that the writer misses announces itself later. So it reads the word of commit s or a
//     later one. A reader that the writer finds reads the word of its q or a later one. All nodes
//     that such a word leads to were retired after q. The number q may be old by the time it is
//     announced: that keeps more than is needed, and never less.
// (3) The writer waits until the lock is gone, however the reader ends. The next writer waits for
//     it, too.
// (4) Numbers never fall, from one writer to the next: the next begins above all numbers that can
//     be announced. The next writer does not know which nodes older readers see. After a clean
//     close they see only what is current. Otherwise the next writer takes no slot of an older
//     arena until all readers are gone that announce less than its first number.
// (5) Nothing is stored in place (overwrite.cpp): a writer could not ask a reader not to look.
// (6) A reader stores nothing, and waits for nobody.
#include <base/assert.hpp>
#include <base/raise.hpp>
#include <mod/contents.hpp>
#include <mod/reader_steps.hpp>
#include <mod/store_impl.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <optional>

namespace hf::mod {
namespace {

constexpr unsigned commits_between_questions = 64; // of a root: a question is a few system calls
constexpr auto older_readers_looked_for_every = std::chrono::milliseconds(20);

std::uint64_t load(const std::uint64_t& word) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_seq_cst);
}

} // namespace

namespace reader_steps {
void (*taken)(step) = nullptr;
}
static void take(reader_steps::step s) {
    if (reader_steps::taken != nullptr) reader_steps::taken(s);
}

// The writer.

/// Before anything is written: the numbers go on from there, and each has a byte that can be
/// locked.
status store::impl::check_sequence(const pool_file& file) {
    const std::uint64_t told = load(file.words_for_readers()->sequence);
    if (told <= os_file::announced_max) return {};
    return corrupt(
        file,
        fmt::format(
            "the number of the last commit, which readers look at: found {}, expected at most "
            "{}: open the pool without shared, which does not use the number",
            told, os_file::announced_max));
}

/// Upholds (4). Requires: what a crash left is redone, and nothing is committed yet.
void store::impl::let_read() noexcept {
    if (words_ == nullptr || reads_) return;
    first_sequence_ = load(words_->sequence) + 1;
    sequence_ = first_sequence_;
    tell_sequence(first_sequence_);
    std::atomic_ref(words_->ready).store(pool_->file->generation(), std::memory_order_seq_cst);
}

/// Upholds (1).
void store::impl::tell_sequence(std::uint64_t number) noexcept {
    if (words_ == nullptr) return;
    std::atomic_ref<std::uint64_t> told(words_->sequence);
    raise(told, number);
}

/// Upholds (2), the writer's part.
void store::impl::ask_readers() noexcept {
    if (words_ == nullptr) return;
    const std::uint64_t to = load(words_->sequence);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    raise(released_to_, std::min(to, pool_->file->own_file()->oldest_announced()));
}

/// The number up to which no reader sees retired nodes. It never falls.
std::uint64_t store::impl::released_by_readers(root::volatile_part& owner) noexcept {
    if (words_ == nullptr) return ~std::uint64_t{0};
    const bool some =
        owner.batches.front().sequence <= released_to_.load(std::memory_order_acquire);
    if (!some && ++owner.commits_unasked >= commits_between_questions) {
        owner.commits_unasked = 0;
        ask_readers();
    }
    return released_to_.load(std::memory_order_acquire);
}

/// Upholds (4). Nothing else waits: counts are known, and new nodes come from new arenas.
/// False: there still are some.
bool store::impl::await_older_readers(bool may_wait) noexcept {
    if (words_ == nullptr) return true;
    const auto none = [&] {
        return pool_->file->own_file()->oldest_announced() >= first_sequence_;
    };
    std::unique_lock waiting{trace_lock_};
    bool gone = none();
    while (!gone && may_wait && !stop_trace_) {
        held_back_ = true;
        traced_.notify_all();
        traced_.wait_for(waiting, older_readers_looked_for_every);
        gone = none();
    }
    held_back_ = false;
    return gone;
}

/// For people, when the pool is full: what a reader keeps.
std::string store::impl::held_back() const {
    if (words_ == nullptr) return {};
    const std::uint64_t oldest = pool_->file->own_file()->oldest_announced();
    if (oldest >= sequence_.load()) return {};
    return fmt::format("; another process holds a snapshot that is {} commits old, so no node "
                       "replaced since can be used again: let that process drop or refresh it",
                       sequence_.load() - oldest);
}

// The reader.

bool store::impl::announce(std::uint64_t number) noexcept try {
    const std::scoped_lock held{announced_lock_};
    unsigned& versions = announced_[number];
    if (versions == 0 && !pool_->file->own_file()->announce(number)) {
        announced_.erase(number);
        return false;
    }
    ++versions;
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

/// A child of fork() leaves it: the lock is its parent's, and the descriptor may be of a pool of
/// its own by now.
void store::impl::withdraw(std::uint64_t number) noexcept {
    if (pool_->file->is_parents()) return;
    const std::scoped_lock held{announced_lock_};
    const auto found = announced_.find(number);
    HF_ASSERT(found != announced_.end());
    if (--found->second != 0) return;
    pool_->file->own_file()->withdraw(number);
    announced_.erase(found);
}

/// Upholds (2), the reader's part.
version::state* store::impl::pin_announced(root::volatile_part& to) {
    version::state* s = fresh_state();
    s->to = &to;
    s->done = s->committed = true;
    if (pool_->file->is_parents()) { // its elements cannot be read, nor can anything here
        s->word = to.load();
        return s;
    }
    const std::uint64_t number = load(words_->sequence);
    take(reader_steps::step::read_sequence);
    if (!announce(number)) {
        recycle(s);
        throw std::bad_alloc();
    }
    s->pinned_at = number + 1;
    take(reader_steps::step::announced);
    const std::optional<std::uint64_t> word = word_in_file(to);
    if (!word || !pool_->file->cover_growth()) { // before it is followed
        withdraw(number);
        recycle(s);
        throw std::bad_alloc();
    }
    s->word = *word;
    return s;
}

/// The word of the version that is current now; nothing if it leads to a part that cannot be
/// mapped. Requires: pinned.
std::optional<std::uint64_t>
store::impl::word_in_file(const root::volatile_part& part) const noexcept {
    if (part.family == nullptr) return load(part.durable->word);
    const std::uint64_t parent = load(part.family->durable->word);
    if (parent == 0 || parent > ref_max) return 0;
    if (!pool_->file->cover_growth()) return {};
    const std::byte* const words = detail::bytes_at(base(), static_cast<ref>(parent),
                                                    part.family->durable->members * word_bytes);
    return load(reinterpret_cast<const std::uint64_t*>(words)[part.member]);
}

void store::impl::refresh(root::volatile_part& part) {
    if (!reads_ || pool_->file->is_parents()) return;
    const std::scoped_lock held{roots_lock_};
    look_again(part);
}

/// A handle is read for the first time. A process that only takes snapshots keeps nothing by its
/// handles.
void store::impl::look_first(root::volatile_part& part) noexcept try {
    if (pool_->file->is_parents()) return;
    const std::scoped_lock held{roots_lock_};
    if (part.seen == nullptr) look_again(part);
} catch (const std::bad_alloc&) {
    fatal("%s: out of memory while a snapshot of \"%s\" was taken for a handle's first read",
          pool_->file->path().c_str(), part.durable->name);
}

/// Requires: roots_lock_ held.
void store::impl::look_again(root::volatile_part& part) {
    version::state* const old = std::exchange(part.seen, pin_announced(part));
    part.word.store(part.seen->word, std::memory_order_seq_cst);
    part.unseen.store(false, std::memory_order_release);
    if (old == nullptr) return;
    unpin(*old);
    recycle(old);
}

/// Whether there is one. The writer may make it meanwhile.
bool store::impl::find_superblock() {
    if (super_ != nullptr) return true;
    const std::uint64_t at = load(pool_->file->roots()->anchor(engine_mod));
    if (!pool_->file->cover_growth()) throw std::bad_alloc();
    const geometry& shape = pool_->file->shape();
    if (at == 0 || at % shape.chunk_bytes != 0 || at > shape.max_bytes - shape.chunk_bytes)
        return false;
    auto* const found = reinterpret_cast<superblock*>(base() + at);
    if (load(found->magic) == superblock_magic) super_ = found;
    return super_ != nullptr;
}

result<root*> store::impl::open_beside(const place& at, const kind& what, std::uint64_t shape) {
    const auto missing = [&] {
        return status{
            errc::not_found,
            fmt::format(
                "{}: not_found: no container \"{}\", and this process cannot make it, as it only "
                "reads beside a writer: let the writer open the container first",
                pool_->file->path(), at.name)};
    };
    const std::scoped_lock held{roots_lock_};
    if (!find_superblock()) return missing();
    const std::uint64_t count = load(super_->cell_count);
    take(reader_steps::step::counted);
    if (count > cells_max(*pool_->file))
        return corrupt(*pool_->file, fmt::format("found {} roots, expected at most {}", count,
                                                 cells_max(*pool_->file)));
    if (roots_.size() < count) roots_.resize(count);
    std::uint32_t index = find_cell(at.family.empty() ? at.name : at.family, 0, count);
    if (index == no_cell) return missing();
    if (!at.family.empty()) {
        if (cells()[index].kind != builtin_kind::family)
            return differs(at, cells()[index], "a family");
        index = find_cell(at.name, index + 1, count);
        if (index == no_cell) return missing();
    }
    const cell& c = cells()[index];
    if (std::atomic_ref(const_cast<cell&>(c).kind).load(std::memory_order_acquire) == 0)
        return missing();
    if (c.kind != what.id || c.shape != shape)
        return differs(at, c, shape_text(what.name, what.id, shape));
    if (!sound(cells(), count, index) || (c.family != 0 && !sound(cells(), count, c.family - 1)))
        return corrupt(
            *pool_->file,
            fmt::format("root cell {}: expected a name and numbers in bounds, found others",
                        index));
    root::volatile_part& part = part_of(index);
    return face_of(part, what);
}

} // namespace hf::mod
