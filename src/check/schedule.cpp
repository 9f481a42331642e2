// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/guard.hpp>
#include <check/lock_sets.hpp>
#include <check/schedule.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <numeric>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <thread>

namespace hf::check {

/// The system's semaphore: the standard library's yields while it waits, which is a point here.
class semaphore {
public:
    semaphore() { ::sem_init(&own_, 0, 0); }
    ~semaphore() { ::sem_destroy(&own_); }
    semaphore(const semaphore&) = delete;
    semaphore& operator=(const semaphore&) = delete;
    void acquire() {
        while (::sem_wait(&own_) != 0) {}
    }
    void release() { ::sem_post(&own_); }

private:
    sem_t own_;
};

struct turn_takers::shared {
    struct taker {
        semaphore turn;
        bool running = false; // has something left to do
        std::thread thread;
    };
    std::vector<std::unique_ptr<taker>> takers;
    semaphore ended;
    const std::function<void(unsigned)>* body = nullptr; // null: end the threads
    const std::function<void(unsigned)>* turned = nullptr;
    const schedule* by = nullptr;
    std::size_t points = 0;
    std::size_t next_switch = 0;
    std::size_t waits_in_a_row = 0;
    std::size_t choices = 0;
    std::vector<unsigned> ring;
    bool left_behind = false; // a run was begun and has not ended
    std::atomic<unsigned> holder{0};
    std::atomic<std::uint64_t> progress{0}; // points passed and turns taken
    std::uint64_t progress_seen = 0;        // by the clock
    double cpu_seen = 0;                    // of the holder, then

    /// The thread that is running so many steps along the ring; 'from' when no other is.
    /// Allocates nothing: a signal handler asks, too (look_for_spinning).
    unsigned next(unsigned from, unsigned steps = 1) const {
        const auto n = ring.size();
        const auto at = static_cast<std::size_t>(std::ranges::find(ring, from) - ring.begin());
        unsigned others = 0;
        for (std::size_t i = 1; i < n; ++i) others += takers[ring[(at + i) % n]]->running;
        if (others == 0) return from;
        unsigned left = (steps - 1) % others;
        for (std::size_t i = 1;; ++i)
            if (const unsigned t = ring[(at + i) % n]; takers[t]->running && left-- == 0) return t;
    }
    /// The next thread if the schedule names none.
    unsigned next_by_ring(unsigned from) {
        std::size_t others = 0;
        for (unsigned t = 0; t < takers.size(); ++t) others += t != from && takers[t]->running;
        if (others > 1) ++choices;
        return next(from);
    }
    void hand_over(unsigned from, unsigned to) {
        if (from == to) return;
        give(to);
        takers[from]->turn.acquire();
    }
    void give(unsigned to) {
        (*turned)(to);
        holder = to;
        ++progress;
        takers[to]->turn.release();
    }
    void live(unsigned self);
};

namespace {
// For one core. It includes what a virtual machine's host takes: far more than any real step.
constexpr double spinning_seconds = 0.25;
void look_for_spinning(void* of);
thread_local turn_takers::shared* mine = nullptr; // of a thread that takes turns
thread_local unsigned self = 0;

} // namespace

void turn_takers::shared::live(unsigned number) {
    mine = this;
    self = number;
    taker& me = *takers[number];
    for (;;) {
        me.turn.acquire();
        if (body == nullptr) return;
        (*body)(number);
        me.running = false;
        const unsigned other = next_by_ring(number);
        if (other == number) ended.release();
        else give(other);
    }
}

turn_takers::turn_takers(unsigned threads) : shared_(std::make_unique<shared>()) {
    for (unsigned t = 0; t < threads; ++t)
        shared_->takers.push_back(std::make_unique<shared::taker>());
    for (unsigned t = 0; t < threads; ++t)
        shared_->takers[t]->thread = std::thread([s = shared_.get(), t] { s->live(t); });
}

turn_takers::~turn_takers() {
    if (shared_->left_behind) { // they may never end: the process does
        for (auto& t : shared_->takers) t->thread.detach();
        static_cast<void>(shared_.release());
        return;
    }
    shared_->body = nullptr;
    for (auto& t : shared_->takers) {
        t->turn.release();
        t->thread.join();
    }
}

std::size_t turn_takers::run(const schedule& by, const std::function<void(unsigned)>& body,
                             const std::function<void(unsigned)>& turned) {
    shared& s = *shared_;
    s.body = &body;
    s.turned = &turned;
    s.by = &by;
    s.points = s.next_switch = s.waits_in_a_row = s.choices = 0;
    s.ring.resize(s.takers.size());
    std::iota(s.ring.begin(), s.ring.end(), 0U);
    for (unsigned i = 0; i < by.ring; ++i)
        std::ranges::next_permutation(s.ring.begin() + 1, s.ring.end());
    for (auto& t : s.takers) t->running = true;
    s.left_behind = true;
    at_every_tick(look_for_spinning, &s);
    s.give(by.first);
    s.ended.acquire();
    at_every_tick(nullptr, nullptr);
    s.left_behind = false;
    return s.points;
}

std::size_t turn_takers::choices() const noexcept { return shared_->choices; }

unsigned turn_takers::rings(unsigned threads) noexcept {
    return threads < 3 ? 1 : (threads - 1) * rings(threads - 1);
}

void turn_takers::point() {
    shared* s = mine;
    if (s == nullptr) return;
    s->waits_in_a_row = 0;
    ++s->progress;
    const std::size_t now = s->points++;
    const std::size_t at = s->next_switch;
    if (at == s->by->switches.size() || s->by->switches[at] != now) return;
    ++s->next_switch;
    s->hand_over(self, s->next(self, at < s->by->steps.size() ? s->by->steps[at] : 1));
}

namespace {

/// The calling thread cannot go on: another must.
bool waited(std::size_t as_many = 1) {
    turn_takers::shared* s = mine;
    if (s == nullptr) return false;
    s->waits_in_a_row += as_many;
    if (s->waits_in_a_row > 100000) fatal("every thread waits for another: deadlock");
    s->hand_over(self, s->next_by_ring(self));
    return true;
}

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Called by the clock, on any thread. One that has computed since the last time and passed no
/// point spins on something that is not in the pool: it waits.
void look_for_spinning(void* of) {
    auto& s = *static_cast<turn_takers::shared*>(of);
    const unsigned holder = s.holder;
    if (mine != &s || self != holder) {
        // A thread that has just been created holds the turn before it has noticed.
        const pthread_t asked = s.takers[holder]->thread.native_handle();
        if (::pthread_equal(asked, ::pthread_self()) == 0) ::pthread_kill(asked, SIGALRM);
        return;
    }
    const double cpu = cpu_seconds();
    const std::uint64_t progress = s.progress;
    if (progress != s.progress_seen) {
        s.progress_seen = progress;
        s.cpu_seen = cpu;
    } else if (cpu - s.cpu_seen > spinning_seconds) waited(2000);
}

} // namespace

void turn_takers::wait() { waited(); }

} // namespace hf::check

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    if (hf::check::mine == nullptr) return __real_pthread_mutex_lock(mutex);
    for (;;) {
        const int got = __real_pthread_mutex_trylock(mutex);
        if (got == 0) hf::check::lock_sets::took(mutex, true, __builtin_return_address(0));
        if (got != EBUSY) return got;
        hf::check::waited();
    }
}

int __real_sched_yield(void);
int __wrap_sched_yield(void) { return hf::check::waited() ? 0 : __real_sched_yield(); }

} // extern "C"
