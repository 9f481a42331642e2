// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool.hpp"

#include <pthread.h>

namespace hf_python {

namespace {

/// How many fork()s lie between this process and the one that loaded the module.
unsigned forks() noexcept {
    static unsigned counted = 0;
    [[maybe_unused]] static const int watching =
        pthread_atfork(nullptr, nullptr, [] { ++counted; });
    return counted;
}

} // namespace

void unlocked::regain(PyThreadState* state) noexcept {
    in_python([=] { PyEval_RestoreThread(state); });
}

pool::pool(std::string path, const hf_open_options& options)
    : path_(std::move(path)), forks_(forks()),
      beside_(options.shared != 0 && options.read_only != 0) {
    hf_status found;
    {
        const unlocked released; // recovers
        found = hf_pool_open(path_.c_str(), &options, &opened_);
    }
    check(found);
}

pool::~pool() {
    if (!closed()) hf_pool_close(opened_); // nothing is attached: that would keep this alive
}

void pool::close() {
    if (closed()) return;
    set_ending(true);
    while (away_) {
        const unlocked released;
        std::unique_lock held(turn_);
        turned_.wait(held, [this] { return !away_; });
    }
    if (!closed()) {                                // else another thread was first
        while (first_ != nullptr) first_->detach(); // (3)
        hf_pool* const closing = std::exchange(opened_, nullptr);
        const unlocked released; // reads all of it
        hf_pool_close(closing);
    }
    set_ending(false);
}

void pool::set_ending(bool ending) {
    {
        const std::lock_guard held(turn_);
        ending_ = ending;
    }
    turned_.notify_all();
}

bool pool::foreign() const noexcept { return forks_ != forks(); }

hf_pool* pool::get() const {
    if (foreign()) raise("closed", "closed: the pool is the parent process's");
    if (opened_ == nullptr) raise("closed", "closed: the pool is closed");
    return opened_;
}

void pool::await_turn() {
    while (busy()) {
        const unlocked released;
        std::unique_lock held(turn_);
        turned_.wait(held, [this] { return !busy(); });
    }
}

void pool::leave() {
    const std::lock_guard held(turn_);
    away_ = true;
}

void pool::arrive() {
    {
        const std::lock_guard held(turn_);
        away_ = false;
    }
    turned_.notify_all();
}

attachment::attachment(nb::object owner)
    : owner_(std::move(owner)), pool_(nb::cast<pool*>(owner_)) {
    pool_->get();
    after_ = pool_->first_;
    if (after_ != nullptr) after_->before_ = this;
    pool_->first_ = this;
}

pool& attachment::in() const {
    require_attached();
    return *pool_;
}

void attachment::require_attached() const {
    if (pool_ == nullptr) raise("closed", "closed: the structure, or its pool, is closed");
    if (pool_->foreign()) pool_->get();
}

void attachment::detach() noexcept {
    if (pool_ == nullptr) return;
    if (!pool_->foreign()) drop(); // (4): else a lock in there may be held, by nobody
    leave();
}

void attachment::leave() noexcept {
    if (pool_ == nullptr) return;
    (before_ != nullptr ? before_->after_ : pool_->first_) = after_;
    if (after_ != nullptr) after_->before_ = before_;
    before_ = after_ = nullptr;
    pool_ = nullptr;
    owner_.reset();
}

} // namespace hf_python
