// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects that make room for others, and come back.  SIMPO §3.4.3; (3) of objects.hpp
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <simpo/objects.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <sched.h>
#include <set>
#include <sys/random.h>
#include <utility>

namespace hf::simpo {
namespace {

constexpr std::chrono::seconds patience{10}; // with objects that are used all the time

} // namespace

detail::core* objects::least_recently_used(const std::vector<const detail::core*>& but) const {
    detail::core* found = nullptr;
    for (const auto& each : all_) {
        if (each->destroyed() || each->swapped() || std::ranges::count(but, each.get()) != 0)
            continue;
        if (found == nullptr || each->used() < found->used()) found = each.get();
    }
    return found;
}

/// The remains of an object that goes, in the pool: 'sizeof(object_head)' bytes. Throws
/// std::bad_alloc.
block objects::take_remains(room_for whom) {
    block b = take_block(sizeof(object_head));
    if (b.offset == 0 && whom == room_for::coming) b = std::exchange(spare_, {});
    return b.offset == 0 ? take_block(sizeof(object_head), purpose::log) : b;
}

/// Upholds (4). False: there is no room for it, or no memory.
bool objects::keep_spare() noexcept try {
    if (spare_.offset == 0) spare_ = take_block(sizeof(object_head));
    return spare_.offset != 0;
} catch (const std::bad_alloc&) {
    return false;
}

/// A block; others make room for it. 'in_use': whether objects in use could make room. Requires:
/// the lock. Throws std::bad_alloc.
result<block> objects::reserve_now(std::uint64_t bytes, room_for whom, bool& in_use) {
    if (!swap_) return take_block(bytes);
    std::vector<const detail::core*> used;
    for (;;) {
        const bool spare = whom == room_for::coming || keep_spare();
        const block b = take_block(bytes);
        if (b.offset != 0 && spare) return b;
        if (b.offset != 0) free_block(b);
        detail::core* const next = least_recently_used(used);
        if (next == nullptr) break;
        if (next->close()) {
            if (status s = put_away(*next, whom); !s.ok()) return s;
        } else {
            in_use = true;
            used.push_back(next);
        }
    }
    // Its chunk may be the place that an object needs which comes back.
    if (spare_.offset != 0) free_block(std::exchange(spare_, {}));
    return block{};
}

/// A block, for which others make room, and the lock under which it is put: without the lock other
/// threads would meanwhile find the pool full, with nothing in it that can go. Throws
/// std::bad_alloc.
result<block> objects::reserve(std::uint64_t bytes, room_for whom,
                               std::unique_lock<std::mutex>& held) {
    if (rounded_to_lines(pool_->blocks.durable(), bytes) ==
        0) // and no other object has to go for it
        return refusal(
            pool_->file->path(), errc::pool_full,
            fmt::format(
                "an object needs a block of {} bytes, and the pool may not grow to that size: "
                "it takes a pool with a larger open_options::max_bytes",
                bytes));
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
        bool in_use = false;
        held = std::unique_lock(lock_);
        const result<block> b = reserve_now(bytes, whom, in_use);
        if (b && b->offset != 0) return b;
        held.unlock();
        if (!b) return b;
        if (!in_use || std::chrono::steady_clock::now() > until)
            return pool_->blocks.full(fmt::format("an object's block of {} bytes", bytes),
                                      in_use ? "; other objects could make room, but are in use"
                                             : "");
        ::sched_yield();
    }
}

/// Requires: the lock; close().
status objects::put_away(detail::core& which, room_for whom) try {
    status s = write_and_leave(which, whom);
    if (!s.ok()) which.stay();
    return s;
} catch (const std::bad_alloc&) {
    which.stay();
    return out_of_memory(pool_->file->path());
}

status objects::write_and_leave(detail::core& which, room_for whom) {
    if (status s = which.keep_all_calls(); !s.ok()) return s;
    const object_head was = which.head();
    object_head left = was;
    const position at = which.log().done();
    left.magic = swapped_magic;
    left.since = at;
    left.check = head_check(left);
    left.resilient = index_of(left.salt, at, 0);
    left.copy_checks[1] = 0;
    if (!which.as_in_file() || !swap_->has(was)) { // else its check is that of copy 0, as it came
        const auto* const copy = static_cast<const std::byte*>(which.working());
        left.file = at + 1;
        left.copy_checks[0] = copy_check(left, copy, layout_of(left).copy_bytes);
        if (status s = swap_->write(left, left.file, copy); !s.ok()) return s;
    }
    const block b = take_remains(whom);
    if (b.offset == 0) {
        if (left.file != was.file) remove_file(left);
        return pool_->blocks.full(
            fmt::format("{} bytes for what stays of object \"{}\" when it is swapped out",
                        sizeof left, was.name));
    }
    const block old = block_of(which);
    which.leave(put(left, nullptr, b, word_of(which), old));
    free_block(old);
    if (left.file != was.file) remove_file(was); // behind the fence of put()
    return {};
}

status objects::bring_back(detail::core& which) try {
    const result<const swap_folder*> from = folder();
    if (!from) return from.error();
    detail::core::room room = which.new_room();
    std::unique_lock held{lock_};
    if (which.destroyed()) return is_destroyed();
    object_head head = which.head();
    const block left = block_of(which);
    held.unlock();
    if (status s = (*from)->read(head, room.working.get()); !s.ok()) {
        held.lock();
        return which.destroyed() ? is_destroyed() : s;
    }
    if (pool_->file->read_only()) {
        held.lock();
        which.come(const_cast<object_head&>(which.head()), std::move(room));
        return {};
    }
    const position anew = position_of(head.resilient) + head.log_lines;
    if (status s = which.move_history(anew); !s.ok()) return s;
    head.magic = object_magic;
    head.since = anew; // for a reader that found it here before, and another object meanwhile
    head.check = head_check(head);
    head.resilient = index_of(head.salt, anew, 0);
    const result<block> b = reserve(block_bytes_of(head), room_for::coming, held);
    if (!b) return b.error();
    if (which.destroyed()) return free_block(*b), is_destroyed();
    object_head& now = put(head, room.working.get(), *b, word_of(which), left);
    which.come(now, std::move(room));
    free_block(left);
    (void)keep_spare(); // here it was just given back
    return {};
} catch (const std::bad_alloc&) {
    return out_of_memory(pool_->file->path());
}

result<const swap_folder*> objects::folder() {
    const std::scoped_lock held{lock_};
    if (swap_) return &*swap_;
    return refusal(
        pool_->file->path(), errc::bad_argument,
        "objects of this pool are swapped out: expected their folder, found none given: call "
        "hf::simpo::swap_to with the folder that has their files");
}

/// Requires: no word names an object with this file, and that is fenced.
void objects::remove_file(const object_head& of) const noexcept {
    if (of.file == 0 || !swap_) return;
    pool_->file->medium().promise(); // in a durable_together the fence has only ordered
    swap_->remove(of, of.file);
}

status objects::swap_to(std::string folder, const swap_options& how) {
    if (status here = pool_->usable(); !here.ok()) return here;
    const std::scoped_lock held{lock_};
    if (swap_)
        return refusal(
            pool_->file->path(), errc::exists,
            "swap_to: the pool has a folder for swapped-out objects already: close the pool "
            "before you give it another one");
    while (opened_by_ == 0)
        if (::getrandom(&opened_by_, sizeof opened_by_, 0) < 0 && errno != EINTR)
            return refusal(pool_->file->path(), errc::io_error,
                           fmt::format("swap_to: getrandom: {}", std::strerror(errno)));
    auto opened = swap_folder::open(*pool_->file, std::move(folder), how, opened_by_);
    if (!opened) return opened.error();
    std::set<swap_folder::state> named;
    for (const auto& each : all_)
        if (!each->destroyed() && each->head().file != 0)
            named.emplace(each->head().salt, each->head().file);
    pool_->file->medium().promise(); // an object that has ended in a group may need its file yet
    opened->remove_all_but(named);
    swap_.emplace(std::move(*opened));
    uses_ = 1;
    if (!pool_->file->read_only()) (void)keep_spare(); // before others fill the pool
    return {};
}

status objects::swap_out(std::string_view name) {
    if (status s = usable(true); !s.ok()) return s;
    const std::scoped_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    const std::string& path = pool_->file->path();
    if (!swap_)
        return refusal(
            path, errc::bad_argument,
            "swap_out: expected a folder, found none given: call hf::simpo::swap_to first");
    if ((*it)->swapped()) return {};
    if (!(*it)->close())
        return refusal(
            path, errc::in_use,
            fmt::format(
                "object \"{}\" is in use by another thread, and cannot be swapped out now: try "
                "again",
                name));
    return put_away(**it, room_for::made);
}

status swap_to(pool& in, std::string folder, const swap_options& how) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->swap_to(std::move(folder), how) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

status swap_out(pool& in, std::string_view name) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->swap_out(name) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

} // namespace hf::simpo
