// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool.hpp"

#include <atomic>
#include <chrono>
#include <pthread.h>

namespace hf_python {

namespace {

/// Pools that are being closed, and that no Python object stands for any more: an open of one of
/// them waits.
std::atomic<int> closing_count = 0;

PyObject* transactions = nullptr; // a context variable

std::uint64_t transactions_count = 0;

[[maybe_unused]] const int watching = pthread_atfork(nullptr, nullptr, [] {
    ++fork_count;
    closing_count = 0; // by the parent's threads
});

} // namespace

unsigned fork_count = 0;

void unlocked::regain(PyThreadState* state) noexcept {
    in_python([=] { PyEval_RestoreThread(state); });
}

pool::pool(std::string path, const hf_open_options& options)
    : path_(std::move(path)), forks_(fork_count),
      beside_(options.shared != 0 && options.read_only != 0),
      waits_for_disk_(options.mode == HF_MODE_POWER) {
    hf_status found;
    {
        const unlocked released; // recovers
        for (;;) {
            const int closing = closing_count;
            found = hf_pool_open(path_.c_str(), &options, &opened_);
            if (found != HF_IN_USE || closing == 0) break;
            closing_count.wait(closing); // one of them may be this
        }
    }
    check(found);
}

pool::~pool() {
    if (!closed()) close_away(opened_); // nothing is attached: that would keep this alive
}

/// Without the interpreter's lock: closing reads all of the pool.
void pool::close_away(hf_pool* closing) {
    ++closing_count; // before another thread can ask for the pool
    const unlocked released;
    hf_pool_close(closing);
    --closing_count;
    closing_count.notify_all();
}

void pool::close() {
    if (closed()) return;
    set_ending(true);
    const auto alone = [this] { return !changing_ && looking_ == 0; };
    while (!alone()) {
        const unlocked released;
        std::unique_lock held(turn_);
        turned_.wait(held, alone);
    }
    if (!closed()) { // else another thread was first
        for (attachment* each = first_; each != nullptr; each = each->after_) {
            if (each->lent_ == 0) continue;
            set_ending(false);
            attachment::refuse_lent();
        }
        while (first_ != nullptr) first_->detach(); // (3)
        close_away(std::exchange(opened_, nullptr));
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

hf_pool* pool::get() const {
    if (foreign()) raise("closed", "closed: the pool is the parent process's");
    if (opened_ == nullptr) raise("closed", "closed: the pool is closed");
    return opened_;
}

hf_pool* pool::await(work what) const {
    for (;;) {
        hf_pool* const opened = get(); // first: nobody would wake a child of fork()
        if (what == work::look ? !ending_ : !refuses_change()) return opened;
        const bool inside = what == work::look || joined() != nullptr;
        if (!inside && open_ != nullptr && open_->thread() == PyThread_get_thread_ident())
            raise("in_use", "in_use: a transaction is open in this thread that this code has no "
                            "part in, as it is another task's: expected no await in a transaction");
        if (in_python([] { return PyErr_CheckSignals(); }) != 0) throw nb::python_error();
        const unlocked released;
        std::unique_lock held(turn_);
        turned_.wait_for(held, std::chrono::milliseconds(100), [&] {
            return what == work::look ? !ending_ : !busy() && (inside || open_ == nullptr);
        });
    }
}

transaction* pool::joined_here() const {
    PyObject* found = nullptr;
    if (PyContextVar_Get(transactions, nullptr, &found) != 0) throw nb::python_error();
    const nb::object numbers = nb::steal(found);
    if (!numbers.is_valid() || open_->get() == nullptr) return nullptr; // it is being committed
    for (Py_ssize_t i = PyTuple_GET_SIZE(found); i-- > 0;) {
        if (PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(found, i)) == open_->number()) return open_;
    }
    return nullptr;
}

void pool::set_open(transaction* open) noexcept {
    {
        const std::lock_guard held(turn_);
        open_ = open;
    }
    turned_.notify_all();
}

void pool::leave(work what) {
    const std::lock_guard held(turn_);
    if (what == work::change) changing_ = true;
    else ++looking_;
}

void pool::arrive(work what) {
    {
        const std::lock_guard held(turn_);
        if (what == work::change) changing_ = false;
        else --looking_;
    }
    turned_.notify_all();
}

transaction::transaction(nb::object owner)
    : attachment(std::move(owner)), number_(++transactions_count),
      thread_(PyThread_get_thread_ident()) {
    const nb::object kept = this->owner();
    hf_pool* const opened = in().await(pool::work::change);
    in(); // it may have been closed meanwhile
    check(hf_mod_transaction_begin(opened, &held_));
    in().set_open(this);
}

void transaction::commit() {
    pool& changed = in();
    const nb::object kept = owner();
    changed.await(pool::work::change);
    in();
    hf_status ended;
    {
        const pool::absence away(changed, pool::work::change);
        ended = hf_mod_transaction_commit(std::exchange(held_, nullptr));
    }
    const std::string said = ended == HF_OK ? "" : hf_error_text();
    close();
    if (ended != HF_OK) raise(hf_strerror(ended), said.c_str());
}

void transaction::close() noexcept { detach(); }

void transaction::drop() noexcept {
    hf_mod_transaction_close(std::exchange(held_, nullptr));
    if (usable()) in().set_open(nullptr);
}

void set_transactions_variable(nb::object variable) { transactions = variable.release().ptr(); }

attachment::attachment(nb::object owner)
    : owner_(std::move(owner)), pool_(nb::cast<pool*>(owner_)) {
    pool_->get();
    after_ = pool_->first_;
    if (after_ != nullptr) after_->before_ = this;
    pool_->first_ = this;
}

void attachment::refuse() const {
    if (pool_ != nullptr) pool_->get();
    raise("closed", "closed: the structure, or its pool, is closed");
}

void attachment::refuse_lent() {
    throw nb::buffer_error("cannot close: a memoryview of a stored value is in use: release it "
                           "first, and let go of arrays that were made of it");
}

void attachment::detach() noexcept {
    if (pool_ == nullptr) return;
    if (!pool_->foreign()) drop(); // (5): else a lock in there may be held, by nobody
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
