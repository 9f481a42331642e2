// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>
#include <simpo/core.hpp>
#include <simpo/functions.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace hf::simpo {

namespace {

object_head& head_at(const pool::impl& in, std::uint64_t offset) {
    return *static_cast<object_head*>(in.at(offset));
}
const std::byte* log_at(const object_head& h) {
    return reinterpret_cast<const std::byte*>(&h) + layout_of(h).log_offset;
}

/// The part of a log that counts, and that this build can replay.
struct found_log {
    position end; // of the last group with known functions only
    std::uint32_t groups = 0;
    std::string unknown;             // why the group behind has unknown ones; empty: no group
    std::optional<position> damaged; // the place of a lost record before committed groups
};

found_log read_log(const object_head& h) {
    found_log found{position_of(h.resilient), 0, {}, {}};
    const position limit = found.end + h.log_lines;
    const auto read = [&](position p, record& r) {
        return p < limit && log_array::read(log_at(h), h.log_lines, h.salt, p, r);
    };
    record r;
    std::string unknown;
    position p = found.end;
    while (read(p, r)) {
        p += r.lines();
        if (r.head.kind == 0 || r.head.kind > record_kind_last)
            unknown = fmt::format("a record of kind {}", r.head.kind);
        if (r.head.function != 0 && unknown.empty()) (void)find_function(h, r.head, &unknown);
        if (!ends_group(r.head.kind)) continue;
        if (found.unknown = unknown; !unknown.empty()) break;
        found.end = p;
        ++found.groups;
    }
    if (!found.unknown.empty()) return found;
    // A group's end is written when the one before it is durable, and all that lies before that.
    unsigned ends = 0;
    for (position behind = p + 1; behind < limit && ends < 2; ++behind)
        ends += read(behind, r) && ends_group(r.head.kind);
    if (ends == 2) found.damaged = p;
    return found;
}

std::string damage_in(const pool::impl& in, const object_head& h, const found_log& found) {
    const std::uint64_t line = *found.damaged & (h.log_lines - 1);
    return fmt::format("the record at offset {:#x} of its log does not verify, and committed "
                       "calls stand behind it",
                       in.offset_of(log_at(h) + line * line_bytes));
}

bool zero_ended(const char (&text)[text_bytes_max + 1]) {
    return text[0] != 0 && text[text_bytes_max] == 0;
}

} // namespace

block block_of(const pool::impl& in, std::uint64_t offset) {
    return {offset, rounded_to_lines(in.blocks.durable(), block_bytes_of(head_at(in, offset)))};
}

const char* wrong_in(const object_head& h) noexcept {
    if (h.magic != object_magic && !is_swapped(h)) return "its magic number is another one";
    if (h.check != head_check(h)) return "its head's checksum does not hold";
    const std::uint64_t log_bytes = h.log_lines * line_bytes;
    if (h.object_bytes == 0 || h.object_bytes > object_bytes_max ||
        !std::has_single_bit(h.log_lines) || h.log_lines > log_bytes_max / line_bytes ||
        log_bytes < log_bytes_min || !zero_ended(h.class_text) || !zero_ended(h.name) ||
        !callers_of(h).valid())
        return "its head says what cannot be";
    if (is_swapped(h) && h.file == 0) return "it is swapped out, and has no file";
    return nullptr;
}

status check_head(const pool::impl& in, std::uint64_t offset) {
    const auto wrong = [&](const char* what) {
        return corrupt(*in.file, fmt::format("the object at offset {:#x}: {}", offset, what));
    };
    const heap& blocks = in.blocks.durable();
    if (offset % line_bytes != 0 || !blocks.covers(offset, sizeof(object_head)))
        return wrong("no block of the heap");
    const object_head& h = head_at(in, offset);
    if (const char* const what = wrong_in(h)) return wrong(what);
    if (!blocks.well_formed(block_of(in, offset))) return wrong("no block of its size fits there");
    if (rounded_to_lines(blocks, layout_of(h).block_bytes) ==
        0) // nor, swapped out, where it came from
        return wrong("it is larger than the pool may become");
    if (!index_holds(h.resilient, h.salt)) return wrong("its resilient index does not verify");
    return {};
}

status check_copy(const pool::impl& in, std::uint64_t offset) {
    const object_head& h = head_at(in, offset);
    if (is_swapped(h)) return {}; // checked when it comes back
    const object_layout parts = layout_of(h);
    const unsigned which = copy_of(h.resilient);
    const auto* const copy = reinterpret_cast<const std::byte*>(&h) + parts.copy_offset(which);
    if (h.copy_checks[which] != copy_check(h, copy, parts.copy_bytes))
        return corrupt(*in.file, fmt::format("the object at offset {:#x}: its copy's checksum "
                                             "does not hold",
                                             offset));
    return {};
}

status check_log(const pool::impl& in, std::uint64_t offset) {
    const object_head& h = head_at(in, offset);
    if (is_swapped(h)) return {}; // it has none
    const found_log found = read_log(h);
    if (found.damaged && !in.salvage)
        return corrupt(*in.file,
                       fmt::format("object \"{}\" of class {}: {}; to give these up, open the "
                                   "pool with salvage",
                                   h.name, h.class_text, damage_in(in, h, found)));
    if (found.unknown.empty() || in.recovery == recovery_policy::roll_back) return {};
    return refusal(in.file->path(), errc::function_changed,
                   fmt::format("object \"{}\" of class {}: its log calls {}{}", h.name,
                               h.class_text, found.unknown, ways_out(*in.file)));
}

namespace detail {

void core::free_memory::operator()(std::byte* memory) const noexcept {
    ::operator delete(memory, std::align_val_t{line_bytes});
}

core::core(pool::impl& in, keeper& of, object_head& head)
    : pool_(&in), head_(&head), layout_(layout_of(head)), keeper_(&of),
      working_(is_swapped(head) ? nullptr : new_memory()),
      log_(in.file->medium(), reinterpret_cast<std::byte*>(&head) + layout_.log_offset,
           head.log_lines, head.salt, position_of(head.resilient), is_swapped(head)),
      swapped_(is_swapped(head)), resilient_(copy_of(head.resilient)) {
    of.note_use(used_);
}

core::memory core::new_memory() const {
    memory made(
        static_cast<std::byte*>(::operator new(layout_.copy_bytes, std::align_val_t{line_bytes})));
    std::memset(made.get(), 0, layout_.copy_bytes);
    return made;
}

std::byte* core::copy(unsigned which) const noexcept {
    return reinterpret_cast<std::byte*>(head_) + layout_.copy_offset(which);
}

/// The lock.
struct core::held {
    explicit held(core& of) : of_(of) {
        of.take_lock();
        of.owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    /// For a lock that has been taken already.
    held(core& of, std::adopt_lock_t) : of_(of) {
        of.owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ~held() {
        if (kept_) return;
        of_.owner_.store(std::thread::id(), std::memory_order_relaxed);
        of_.lock_.unlock();
    }
    held(const held&) = delete;
    /// For a caller that gives the lock back itself.
    void keep() noexcept { kept_ = true; }

private:
    core& of_;
    bool kept_ = false;
};

namespace {
thread_local const core* helped = nullptr; // whose calls this thread makes without holding its lock
}

/// Takes the lock, and while another thread has it, helps that one.
void core::take_lock() {
    if (lock_.try_lock()) return;
    if (hinted_.load(std::memory_order_relaxed)) {
        constexpr int patience = 100; // then it sleeps: the other thread may wait for a disk
        constexpr int looks = 500;    // before it lets go of a processor, on which it would help
        serving_.begin_waiting();
        bool taken = false;
        for (int idle = 0; idle < patience && !(taken = lock_.try_lock()); ++idle) {
            helped = this;
            for (int look = 0; look < looks; ++look)
                if (serving_.help()) idle = look = 0;
            helped = nullptr;
            std::this_thread::yield();
        }
        serving_.end_waiting();
        if (taken) return;
    }
    lock_.lock();
}

void core::check_usable(const char* what) const {
    if (pool_->file->is_parents()) registry::refuse_parents(nullptr, what);
    if (destroyed_) fatal("%s: the persistent object was destroyed", what);
    if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id() || helped == this)
        fatal("%s: a function of the persistent object \"%s\" uses a handle on it", what,
              head_->name);
    keeper_->note_use(used_);
}

/// Upholds (5). Requires: the lock.
void core::be_here() {
    if (!swapped()) return;
    if (const status s = keeper_->bring_back(*this); !s.ok())
        fatal("the persistent object \"%s\" is swapped out, and cannot be brought back: %s",
              head_->name, s.what().c_str());
}

status core::come_back() {
    if (!swapped()) return {};
    const held here(*this);
    return swapped() ? keeper_->bring_back(*this) : status{};
}

bool core::close() {
    if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return false;
    if (!lock_.try_lock()) return false; // upholds (6)
    held here(*this, std::adopt_lock);
    if (pins_ != 0) return false;
    make_pending();
    if (!log_.close()) return false; // somebody has logged a call behind those
    here.keep();
    return true;
}

void core::stay() noexcept {
    const held here(*this, std::adopt_lock);
    if (log_.half_full()) make_resilient(); // the record that ended the group was one more
    log_.reopen();
}

void core::leave(object_head& head) noexcept {
    const held here(*this, std::adopt_lock);
    head_ = &head;
    working_.reset();
    log_.end();
    came_at_.reset();
    swapped_.store(true, std::memory_order_release);
}

void core::come(object_head& head, room in) noexcept {
    const position at = position_of(head.resilient);
    log_.reopen(reinterpret_cast<std::byte*>(&head) + layout_.log_offset, at, std::move(in.slots));
    head_ = &head;
    working_ = std::move(in.working);
    resilient_ = 0;
    durable_ = {true, false};
    came_at_ = at;
    swapped_.store(false, std::memory_order_release);
}

void core::begin(object_head& at) noexcept {
    head_ = &at;
    log_.lie_at(reinterpret_cast<std::byte*>(&at) + layout_.log_offset);
    durable_ = {true, false};
}

void core::end() noexcept {
    destroyed_ = true;
    working_.reset();
    log_.end();
}

void core::recover(engine_recovery& done) {
    resilient_ = copy_of(head_->resilient);
    std::memcpy(working_.get(), copy(resilient_), layout_.copy_bytes);
    if (pool_->file->was_clean()) {
        durable_ = {true, true};
        return;
    }
    durable_[resilient_] = true;
    const found_log found = read_log(*head_);
    if (!found.unknown.empty()) // by the policy: check_log refuses
        pool_->file->warn(
            fmt::format("{}: rolled back: object \"{}\" to what it was before a call of {}",
                        pool_->file->path(), head_->name, found.unknown));
    if (found.damaged)
        pool_->file->warn(fmt::format("{}: salvaged: object \"{}\": {}: they are given up",
                                      pool_->file->path(), head_->name,
                                      damage_in(*pool_, *head_, found)));
    replay(found.end);
    if (found.groups != 0) {
        write_copy(1 - resilient_);
        resilient_ = 1 - resilient_;
    }
    // After a kill the index may be stored and not durable. Then no group is behind it, and nothing
    // that an older index needs was written before this makes it durable.
    const position anew = found.end + head_->log_lines; // upholds (4)
    store_resilient(anew, resilient_);
    if (pool_->salvage) log_.erase();
    log_.start_at(anew);
    done.sections_pending += found.groups;
    done[recovery_verb::replay] += found.groups;
}

/// Makes the calls again that are in the log behind the resilient copy, and below 'end'.
void core::replay(position end) {
    record r;
    for (position p = position_of(head_->resilient); p < end; p += r.lines()) {
        const bool read = log_array::read(log_at(*head_), head_->log_lines, head_->salt, p, r);
        HF_ASSERT(read); // as read_log did
        const function* const f = r.head.function == 0 ? nullptr : find_function(*head_, r.head);
        make_call(working_.get(), callers(), r, f);
    }
}

void core::check_writable(const char* what) const {
    if (pool_->file->read_only())
        fatal("%s: %s: the pool is open read-only", pool_->file->path().c_str(), what);
}

void core::defer(const function& f, const std::uint64_t* arguments, std::uint16_t hint) {
    check_usable("defer");
    check_writable("defer");
    if (hint != 0 && !hinted_.load(std::memory_order_relaxed))
        hinted_.store(true, std::memory_order_relaxed);
    log_deferred(record_kind::deferred, f, arguments, hint, {});
}

void core::log_deferred(record_kind kind, const function& f, const std::uint64_t* arguments,
                        std::uint16_t hint, operation which) {
    while (!log_.append(kind, &f, arguments, hint, which)) {
        const held here(*this); // no room: this thread serves, or waits for the one that does
        be_here();
        serve();
    }
    if (log_.crowded() && lock_.try_lock()) {
        const held here(*this, std::adopt_lock);
        serve();
    }
}

/// Commits and makes the logged calls, and truncates. Requires: the lock.
void core::serve() {
    if (swapped()) return;
    make_pending();
    make_resilient();
}

/// Commits and makes the logged calls. Requires: the lock.
void core::make_pending() {
    if (!all_done()) make_calls(commit(record_kind::instant, nullptr, nullptr));
}

/// Ends the group; everything logged so far is durable when it returns. Requires: the lock.
position core::commit(record_kind kind, const function* f, const std::uint64_t* arguments,
                      operation which) {
    const auto at = log_.append(kind, f, arguments, 0, which);
    HF_ASSERT(at.has_value()); // deferred calls leave room, and calls checkpoint
    const std::uint64_t words = f == nullptr ? 0 : f->words;
    const position end = *at + record_lines(operation_words(std::uint8_t(kind)) + words);
    log_.commit(end);
    owed_ = !pm().promises();
    return end;
}

/// Calls that were made are durable on return, by any thread; not within a durable_together.
/// Requires: the lock.
void core::promise_done() noexcept {
    if (!owed_ || !pm().promises()) return;
    pm().promise();
    owed_ = false;
}

/// Makes the calls below, but not its caller's instant one. Requires: the lock; they are durable.
void core::make_calls(position below) {
    record r;
    for (position p = log_.done(), next = p; p < below; p = next) {
        if (serving_.awaited()) p = serving_.serve(log_, working(), p, below);
        if (p == below) break;
        const function* const f = log_.call_at(p, r, next);
        if (r.head.kind != std::uint8_t(record_kind::instant))
            make_call(working_.get(), callers(), r, f);
    }
    log_.set_done(below);
}

void core::call(const function* f, const std::uint64_t* arguments, body run, void* context) {
    check_usable("call");
    if (f != nullptr) check_writable("call");
    const held here(*this);
    be_here();
    if (f != nullptr || !all_done()) make_calls(commit(record_kind::instant, f, arguments));
    promise_done();
    if (f == nullptr && log_.half_full()) make_resilient(); // before it: F may throw
    run(working(), context);
    if (log_.half_full()) make_resilient();
}

void core::sync() {
    call(nullptr, nullptr, [](void*, void*) {}, nullptr);
}

void core::checkpoint() {
    check_usable("checkpoint");
    const held here(*this);
    serve();
    promise_done();
}

bool core::settle() noexcept {
    const bool called_here = owner_.load() == std::this_thread::get_id() || helped == this;
    if (pool_->file->read_only() || destroyed_ || called_here) return true; // that call goes on
    if (!lock_.try_lock()) return false;
    const held here(*this, std::adopt_lock);
    if (!swapped()) make_pending(), promise_done();
    if (!swapped() && log_.half_full()) make_resilient();
    return true;
}

void core::settle_for_close() noexcept {
    if (pool_->file->read_only() || destroyed_) return;
    const held here(*this);
    serve();
}

/// The calls so far are in the pool, and their records are needed no more. Requires: the lock; all
/// that is committed is done.
void core::make_resilient() {
    const position done = log_.done();
    if (done == position_of(head_->resilient)) return;
    write_copy(1 - resilient_);
    resilient_ = 1 - resilient_;
    store_resilient(done, resilient_);
    log_.set_resilient(done);
}

/// The working copy, into this one. Durable on return.
void core::write_copy(unsigned which) noexcept {
    constexpr std::uint64_t piece = 4 * line_bytes;
    for (std::uint64_t at = 0; at < layout_.copy_bytes; at += piece) {
        const std::uint64_t bytes = std::min(piece, layout_.copy_bytes - at);
        const std::byte* const from = working_.get() + at;
        std::byte* const to = copy(which) + at;
        if (durable_[which] && std::memcmp(to, from, bytes) == 0) continue; // (3)
        pm().copy(to, from, bytes);
        persist::thread_counters().pm_bytes += bytes;
    }
    std::uint64_t& check = head_->copy_checks[which];
    pm().store_word(&check, copy_check(*head_, working_.get(), layout_.copy_bytes));
    pm().order(); // upholds (2)
    durable_[which] = true;
}

void core::store_resilient(position at, unsigned which) noexcept {
    HF_ASSERT(at <= 2 * position_max);
    pm().store_word(&head_->resilient, index_of(head_->salt, at, which));
    pm().order(); // upholds (2)
}

/// Requires: the lock.
status core::unknown_caller(std::uint64_t id) {
    promise_done(); // it may have been dismissed just now
    return refusal(pool_->file->path(), errc::not_found,
                   fmt::format("object \"{}\" knows no caller {}", head_->name, id));
}

status core::add_caller(std::uint64_t id) {
    check_usable("caller::of");
    check_writable("caller::of");
    if (id == 0)
        return refusal(pool_->file->path(), errc::bad_argument, "0 is no caller's identifier");
    const held here(*this);
    be_here();
    if (callers().find(id) != nullptr) return promise_done(), status{};
    if (callers().shape().callers == 0 || callers().room() == nullptr)
        return refusal(pool_->file->path(), errc::limit_reached,
                       fmt::format("object \"{}\" knows as many callers as it was made for: {}",
                                   head_->name, head_->callers));
    make_calls(commit(record_kind::add_caller, nullptr, nullptr, {id, 0}));
    if (log_.half_full()) make_resilient();
    return {};
}

status core::dismiss(std::uint64_t id) {
    check_usable("caller::dismiss");
    check_writable("caller::dismiss");
    const held here(*this);
    be_here();
    if (id == 0 || callers().find(id) == nullptr) return unknown_caller(id);
    make_calls(commit(record_kind::dismiss, nullptr, nullptr, {id, 0}));
    if (log_.half_full()) make_resilient();
    return {};
}

result<std::uint64_t> core::last_of(std::uint64_t id) {
    check_usable("caller::last");
    const held here(*this);
    be_here();
    make_pending();
    promise_done();
    if (log_.half_full()) make_resilient();
    const caller_entry* const by = id == 0 ? nullptr : callers().find(id);
    if (by == nullptr) return unknown_caller(id);
    return by->last;
}

void core::defer_once(const function& f, operation which, const std::uint64_t* arguments) {
    check_usable("caller::defer");
    check_writable("caller::defer");
    log_deferred(record_kind::deferred_once, f, arguments, 0, which);
}

/// Whether there is a place for the result of a call that has not been made.
status core::keepable(const function& f, const caller_entry& by, operation which, bool all) const {
    const std::string& path = pool_->file->path();
    if (f.result_words > head_->result_words)
        return refusal(
            path, errc::bad_argument,
            fmt::format("{}::{} returns {} bytes, and object \"{}\" keeps {} of a result",
                        f.class_text, f.text, f.result_words * word_bytes, head_->name,
                        head_->result_words * word_bytes));
    if (!all || !callers().full(by)) return {};
    return refusal(path, errc::limit_reached,
                   fmt::format("object \"{}\" keeps {} results of a caller: call {} of caller {} "
                               "would be one more",
                               head_->name, head_->results, which.number, which.caller));
}

/// The call's answer from when it was made.
status core::answer(const function& f, operation which, const std::uint64_t* arguments,
                    std::uint64_t* result) const {
    const std::string& path = pool_->file->path();
    const caller_entry* const by = callers().find(which.caller);
    const result_head* const kept = callers().result_of(*by, which.number);
    if (kept == nullptr)
        return refusal(path, errc::not_found,
                       fmt::format("object \"{}\": the result of call {} of caller {}, whose last "
                                   "is {}, is not kept",
                                   head_->name, which.number, which.caller, by->last));
    if (kept->what != sum_of_call(f.id, f.schema, f.version, arguments, f.words) ||
        f.result_words > head_->result_words)
        return refusal(path, errc::bad_argument,
                       fmt::format("object \"{}\": call {} of caller {} was made, and was another "
                                   "function's or had other arguments than {}::{} now",
                                   head_->name, which.number, which.caller, f.class_text, f.text));
    std::memcpy(result, kept + 1, f.result_words * word_bytes);
    return {};
}

status core::call_once(const function& f, operation which, const std::uint64_t* arguments, bool all,
                       std::uint64_t* result) {
    check_usable("caller::call");
    check_writable("caller::call");
    const held here(*this);
    be_here();
    const caller_entry* const by = which.caller == 0 ? nullptr : callers().find(which.caller);
    if (by == nullptr) return unknown_caller(which.caller);
    if (which.number > by->last) {
        if (status s = keepable(f, *by, which, all); !s.ok()) return s;
        make_calls(commit(record_kind::instant_once, &f, arguments, which));
    } else {
        make_pending(); // it was made, and what was logged since ends its group here all the same
        promise_done();
    }
    if (log_.half_full()) make_resilient();
    return answer(f, which, arguments, result);
}

void defer(core& on, const function& f, const std::uint64_t* arguments, std::uint16_t hint) {
    on.defer(f, arguments, hint);
}
void call(core& on, const function* f, const std::uint64_t* arguments, body run, void* context) {
    on.call(f, arguments, run, context);
}
void sync(core& on) { on.sync(); }
void checkpoint(core& on) { on.checkpoint(); }
status add_caller(core& on, std::uint64_t id) { return on.add_caller(id); }
status dismiss(core& on, std::uint64_t id) { return on.dismiss(id); }
result<std::uint64_t> last_of(core& on, std::uint64_t id) { return on.last_of(id); }
void defer_once(core& on, const function& f, operation which, const std::uint64_t* arguments) {
    on.defer_once(f, which, arguments);
}
status call_once(core& on, const function& f, operation which, const std::uint64_t* arguments,
                 bool all, std::uint64_t* result) {
    return on.call_once(f, which, arguments, all, result);
}

} // namespace detail
} // namespace hf::simpo
