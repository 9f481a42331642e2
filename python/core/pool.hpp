// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An open pool, and what lies in it.
//
// (1) Everything here is read and written under the interpreter's lock, but in an absence. At most
//     one absence of a pool is a change, and no other change begins beside it. Looks change
//     nothing, and go on beside anything.
// (2) A structure is read directly as long as no change runs beside, in this process or another;
//     else through a snapshot.
// (3) What holds memory of the pool is attached to it. Closing takes that away first: a later use
//     finds nothing and raises.
// (4) While a transaction is open, the pool is changed in its context alone (Python's contextvars:
//     a thread, or a task). Other threads wait for its end.
// (5) A child of fork() has the parent's memory. It neither changes nor closes the pool: both
//     processes would.
#pragma once

#include "element.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

namespace hf_python {

class attachment;
class transaction;

/// How many fork()s lie between this process and the one that loaded the module.
extern unsigned fork_count;

/// As long as it lives this thread is without the interpreter's lock.
class unlocked {
public:
    unlocked() : state_(PyEval_SaveThread()) {}
    ~unlocked() { regain(state_); }
    unlocked(const unlocked&) = delete;

    /// Takes the lock again, or awaits the end.
    static void regain(PyThreadState* state) noexcept;

private:
    PyThreadState* state_;
};

class pool {
public:
    /// Raises holdfast.Error.
    pool(std::string path, const hf_open_options& options);
    ~pool();
    pool(const pool&) = delete;

    /// Closes cleanly, when all absences have ended; a second time does nothing. Raises BufferError
    /// while memory of it is lent.
    void close();
    bool closed() const noexcept { return opened_ == nullptr || foreign(); }
    /// Raises holdfast.Error "closed".
    hf_pool* get() const;
    const std::string& path() const noexcept { return path_; }

    enum class work { change, look };
    /// Whether a change runs beside, or the pool is being closed: no change begins any more then,
    /// as threads that take turns could keep the closing one waiting for ever.
    bool busy() const noexcept { return changing_ || ending_; }
    /// Whether a change has to wait, for a transaction of others, too.
    bool refuses_change() const { return busy() || (open_ != nullptr && joined() == nullptr); }
    /// The transaction that is open in this context, or null.
    transaction* joined() const { return open_ == nullptr ? nullptr : joined_here(); }
    /// Whether another process may change it: it is read beside a writer.
    bool beside() const noexcept { return beside_; }
    /// Whether a change that is durable on return waits for the disk.
    bool waits_for_disk() const noexcept { return waits_for_disk_; }
    /// Waits, without the interpreter's lock, until such work may begin, and gives the pool for it.
    /// Raises holdfast.Error "closed". Raises "in_use" when a transaction of another task of this
    /// thread is open: it would never end. Raises what a signal handler raises. Requires: the
    /// caller has a reference.
    hf_pool* await(work what) const;
    /// A time without the interpreter's lock. Requires: await(what) under the lock that is held
    /// since, and a reference.
    class absence {
    public:
        absence(pool& from, work what)
            : from_(from), what_(what), state_((from.leave(what), PyEval_SaveThread())) {}
        ~absence() {
            unlocked::regain(state_);
            from_.arrive(what_);
        }
        absence(const absence&) = delete;

    private:
        pool& from_;
        work what_;
        PyThreadState* state_;
    };

private:
    friend class attachment;
    friend class transaction;
    bool foreign() const noexcept { return forks_ != fork_count; }
    transaction* joined_here() const;
    void set_open(transaction* open) noexcept;
    void leave(work what);
    void arrive(work what);
    void set_ending(bool ending);
    static void close_away(hf_pool* closing);

    std::string path_;
    hf_pool* opened_ = nullptr;
    unsigned forks_;
    attachment* first_ = nullptr;
    transaction* open_ = nullptr;
    mutable std::mutex turn_;
    mutable std::condition_variable turned_;
    bool changing_ = false;
    unsigned looking_ = 0;
    bool ending_ = false;
    bool beside_ = false;
    bool waits_for_disk_ = false;
};

/// A Python object that holds memory of a pool, and the pool itself as long as it does.
class attachment {
public:
    explicit attachment(nb::object owner);
    virtual ~attachment() { leave(); }
    attachment(const attachment&) = delete;

    pool& in() const {
        require_attached();
        return *pool_;
    }
    nb::object owner() const { return owner_; }
    bool usable() const noexcept { return pool_ != nullptr && !pool_->closed(); }

    /// Memory of the pool that stays as long as this holds it, for a buffer of Python's.
    void lend() {
        require_attached();
        ++lent_;
    }
    void give_back() noexcept { --lent_; }
    /// Raises BufferError.
    void require_nothing_lent() const {
        if (lent_ != 0) refuse_lent();
    }

protected:
    /// Lets go of the pool's memory, and of the pool. For destructors, too.
    void detach() noexcept;
    /// Raises holdfast.Error "closed" unless it may be used.
    void require_attached() const {
        if (pool_ == nullptr || pool_->foreign()) [[unlikely]]
            refuse();
    }

private:
    friend class pool;
    virtual void drop() noexcept = 0;
    void leave() noexcept;
    [[noreturn]] void refuse() const;
    [[noreturn]] static void refuse_lent();
    nb::object owner_;
    pool* pool_;
    attachment *before_ = nullptr, *after_ = nullptr;
    unsigned lent_ = 0; // buffers
};

/// A transaction of a pool, from its making to commit() or close(). Its number stands in the
/// context variable that Python code sets: holdfast/__init__.py.
class transaction final : public attachment {
public:
    /// Waits for its turn.
    explicit transaction(nb::object owner);
    ~transaction() override { close(); }
    /// Unlike others: 0 is no transaction's.
    std::uint64_t number() const noexcept { return number_; }
    unsigned long thread() const noexcept { return thread_; }
    /// Raises holdfast.Error: "closed"; what hf_mod_transaction_commit() returns.
    void commit();
    void close() noexcept;
    hf_mod_transaction* get() const noexcept { return held_; }

private:
    void drop() noexcept override;
    hf_mod_transaction* held_ = nullptr;
    std::uint64_t number_;
    unsigned long thread_;
};

/// The context variable that has the numbers of the transactions that are open in a context.
void set_transactions_variable(nb::object variable);

} // namespace hf_python
