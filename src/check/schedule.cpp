// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/schedule.hpp>

#include <algorithm>
#include <cerrno>
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

    /// The next thread after 'from' that is running; 'from' when no other is.
    unsigned next(unsigned from) const {
        const auto n = static_cast<unsigned>(takers.size());
        for (unsigned i = 1; i < n; ++i)
            if (takers[(from + i) % n]->running) return (from + i) % n;
        return from;
    }
    void hand_over(unsigned from, unsigned to) {
        if (from == to) return;
        (*turned)(to);
        takers[to]->turn.release();
        takers[from]->turn.acquire();
    }
    void live(unsigned self);
};

namespace {
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
        const unsigned other = next(number);
        if (other == number) ended.release();
        else {
            (*turned)(other);
            takers[other]->turn.release();
        }
    }
}

turn_takers::turn_takers(unsigned threads) : shared_(std::make_unique<shared>()) {
    for (unsigned t = 0; t < threads; ++t)
        shared_->takers.push_back(std::make_unique<shared::taker>());
    for (unsigned t = 0; t < threads; ++t)
        shared_->takers[t]->thread = std::thread([s = shared_.get(), t] { s->live(t); });
}

turn_takers::~turn_takers() {
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
    s.points = s.next_switch = s.waits_in_a_row = 0;
    for (auto& t : s.takers) t->running = true;
    turned(by.first);
    s.takers[by.first]->turn.release();
    s.ended.acquire();
    return s.points;
}

void turn_takers::point() {
    shared* s = mine;
    if (s == nullptr) return;
    s->waits_in_a_row = 0;
    const std::size_t now = s->points++;
    if (s->next_switch == s->by->switches.size() || s->by->switches[s->next_switch] != now) return;
    ++s->next_switch;
    s->hand_over(self, s->next(self));
}

namespace {

/// The calling thread cannot go on: another must.
bool waited() {
    turn_takers::shared* s = mine;
    if (s == nullptr) return false;
    if (++s->waits_in_a_row > 100000) fatal("every thread waits for another: deadlock");
    s->hand_over(self, s->next(self));
    return true;
}

} // namespace
} // namespace hf::check

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
    if (hf::check::mine == nullptr) return __real_pthread_mutex_lock(mutex);
    for (;;) {
        const int got = ::pthread_mutex_trylock(mutex);
        if (got != EBUSY) return got;
        hf::check::waited();
    }
}

int __real_sched_yield(void);
int __wrap_sched_yield(void) { return hf::check::waited() ? 0 : __real_sched_yield(); }

} // extern "C"
