// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <simpo/core.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>

namespace hf::simpo::detail {

void core::free_memory::operator()(std::byte* memory) const noexcept {
    ::operator delete(memory, std::align_val_t{line_bytes});
}

core::core(pool::impl& in, keeper& of, object_head& head)
    : pool_(&in), head_(&head), layout_(layout_of(head)), keeper_(&of),
      working_(is_swapped(head) ? nullptr : new_memory()),
      log_(in.file->medium(), head, is_swapped(head)), forked_(forks::count()),
      swapped_(is_swapped(head)), resilient_(copy_of(head.resilient)) {
    of.note_use(used_);
    if (head.history != 0 && in.file->own_file() != nullptr)
        history_ = std::make_unique<history_file>(in.file->own_file()->full_path(), head);
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

namespace {
// This thread makes that object's calls without holding its lock.
constinit thread_local const core* helped __attribute__((tls_model("initial-exec"))) = nullptr;
} // namespace

bool core::is_called_here() const noexcept {
    return owner_.load(std::memory_order_relaxed) == writer_lock::thread_number() || helped == this;
}

/// Takes the lock, and while another thread has it, helps that one.
void core::wait_for_lock() {
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

void core::refuse_use(const char* what) const {
    if (pool_->file->is_parents()) registry::refuse_parents(nullptr, what);
    if (any_section_here())
        fatal(
            "%s: a persistent object is used inside a section, whose log would not have that: use "
            "it before the section or after it",
            what);
    if (destroyed_)
        fatal("%s: the persistent object was destroyed: a handle is of no use after that", what);
    if (is_called_here())
        fatal("%s: a function of the persistent object \"%s\" uses a handle on it: let it use its "
              "members",
              what, head_->name);
}

/// Upholds (5). Requires: the lock.
void core::be_here() {
    if (!swapped()) [[likely]]
        return;
    if (const status s = keeper_->bring_back(*this); !s.ok())
        fatal("the persistent object \"%s\" is swapped out, and its next call could not bring it "
              "back: %s",
              head_->name, s.what().c_str());
}

status core::come_back() {
    if (!swapped()) return {};
    const held here(*this);
    return swapped() ? keeper_->bring_back(*this) : status{};
}

bool core::close() {
    if (is_called_here() || !lock_.try_lock()) return false; // upholds (6)
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
    log_.reopen(head, at, std::move(in.slots));
    head_ = &head;
    working_ = std::move(in.working);
    resilient_ = 0;
    durable_ = {true, false};
    came_at_ = at;
    swapped_.store(false, std::memory_order_release);
}

void core::begin(object_head& at) noexcept {
    head_ = &at;
    log_.lie_with(at);
    durable_ = {true, false};
}

void core::end() noexcept {
    destroyed_ = true;
    working_.reset();
    log_.end();
}

void core::check_writable(const char* what) const {
    if (pool_->file->read_only())
        fatal("%s: %s changes an object, and the pool is open read-only",
              pool_->file->path().c_str(), what);
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
    if (!log_.all_done()) commit(record_kind::instant, nullptr, nullptr);
}

/// Ends the group: everything logged so far is durable, and made, except an instant call. Requires:
/// the lock.
void core::commit(record_kind kind, const function* f, const std::uint64_t* arguments,
                  operation which) {
    const auto at = log_.append(kind, f, arguments, 0, which);
    HF_ASSERT(at.has_value()); // deferred calls leave room, and calls checkpoint
    const std::uint64_t words = f == nullptr ? 0 : f->words;
    const position end = *at + record_lines(operation_words(std::uint8_t(kind)) + words);
    // Its caller makes an instant call, which has no slot.
    const position below = kind == record_kind::instant ? *at : end;
    log_.commit(below, end);
    owed_ = !pm().promises();
    if (log_.done() != below) make_calls(below);
    log_.set_done(end);
}

/// Calls that were made are durable on return, by any thread; not within a durable_together.
/// Requires: the lock.
void core::promise_done() noexcept {
    if (!owed_ || !pm().promises()) return;
    pm().promise();
    owed_ = false;
}

/// Makes the calls below. Requires: the lock; they are durable.
void core::make_calls(position below) {
    record room;
    for (position p = log_.done(); p < below;) {
        if (serving_.awaited()) [[unlikely]]
            p = serving_.serve(log_, working(), p, below);
        if (p == below) break;
        const auto [r, f, next] = log_.call_at(p, room);
        make_call(working_.get(), *head_, r, f);
        p = next;
    }
}

void* core::begin_call(const function* f, const std::uint64_t* arguments) {
    check_usable("call");
    if (f != nullptr) check_writable("call");
    held here(*this);
    be_here();
    if (f != nullptr || !log_.all_done()) commit(record_kind::instant, f, arguments);
    promise_done();
    here.keep();
    return working();
}

void core::end_call() noexcept {
    const held here(*this, std::adopt_lock);
    if (log_.half_full()) make_resilient();
}

void core::sync() {
    (void)begin_call(nullptr, nullptr);
    end_call();
}

void core::checkpoint() {
    check_usable("checkpoint");
    const held here(*this);
    serve();
    promise_done();
}

bool core::settle() noexcept {
    if (pool_->file->read_only() || destroyed_ || is_called_here())
        return true; // that call goes on
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
    if (history_ != nullptr) {
        pm().promise(); // in a durable_together the calls' fences have only ordered
        if (const status s = keep_calls(done, done); !s.ok())
            fatal(
                "the history of the persistent object \"%s\" cannot be continued; its calls are in "
                "the pool yet: %s",
                head_->name, s.what().c_str());
    }
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

void defer(core& on, const function& f, const std::uint64_t* arguments, std::uint16_t hint) {
    on.defer(f, arguments, hint);
}
void* begin_call(core& on, const function* f, const std::uint64_t* arguments) {
    return on.begin_call(f, arguments);
}
void end_call(core& on) noexcept { on.end_call(); }
void sync(core& on) { on.sync(); }
void checkpoint(core& on) { on.checkpoint(); }
} // namespace hf::simpo::detail
