// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "watch.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace hf::kv {
namespace {

constexpr int round_ms = 20;       // between two looks into the journals while somebody watches
constexpr unsigned reads_max = 16; // of a watcher's words, in a round: all others wait meanwhile

} // namespace

watch_hub::watch_hub(service& serving)
    : serving_(&serving), wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (wake_fd_ < 0) throw std::bad_alloc();
}

watch_hub::~watch_hub() {
    stop();
    ::close(wake_fd_);
}

journal& watch_hub::join() {
    const std::scoped_lock held(lock_);
    journals_.push_back(
        std::make_unique<journal>(wanted_, number_, serving_->chosen.journal_bytes_max));
    return *journals_.back();
}

std::string_view watch_hub::add(stream& client, std::unique_ptr<connection_list::entry>& listed,
                                watched kinds) {
    byte_buffer pending;
    pending.append(reply::ok);
    {
        const std::scoped_lock held(lock_);
        if (watchers_.size() >= watchers_max) return reply::too_many_watchers;
        try {
            if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
        } catch (const std::system_error&) { // no memory, or no more threads
            return reply::no_watcher;
        }
        watchers_.reserve(watchers_max);
        watchers_.push_back(std::make_unique<watcher>(std::move(client), std::move(listed), kinds,
                                                      number_.load(), 0, std::move(pending)));
        watchers_.back()->listed->now(client_state::watch);
        wanted_ = wanted_ | kinds;
        serving_->curr_connections.fetch_add(1);
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
    return {};
}

void watch_hub::stop() {
    {
        const std::scoped_lock held(lock_);
        stopping_ = true;
        wanted_ = watched::nothing;
    }
    const std::uint64_t one = 1;
    (void)!::write(wake_fd_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    while (!watchers_.empty()) close(watchers_.size() - 1);
}

watch_counts::totals watch_hub::counted() const {
    const std::scoped_lock held(lock_);
    totals all{.watchers = watchers_.size(), .sent = sent_, .skipped = skipped_};
    for (const auto& each : journals_) {
        all.written += each->written();
        all.dropped += each->dropped();
    }
    return all;
}

void watch_hub::close(std::size_t number) {
    watchers_.erase(watchers_.begin() + static_cast<std::ptrdiff_t>(number));
    serving_->curr_connections.fetch_sub(1);
}

// Upholds (1): a full buffer takes no line, and first the number of those that it did not take.
void watch_hub::offer(watcher& to, std::string_view text) {
    char note[40] = "skipped=";
    std::size_t note_bytes = 0;
    if (to.skipped > 0) {
        note_bytes = 8 + format_number(note + 8, to.skipped);
        note[note_bytes++] = '\n';
    }
    if (to.pending.size() + note_bytes + text.size() > serving_->chosen.watcher_bytes_max) {
        ++to.skipped;
        skipped_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    to.pending.append({note, note_bytes});
    to.pending.append(text);
    to.skipped = 0;
    sent_.fetch_add(1, std::memory_order_relaxed);
}

struct watch_hub::line {
    journal::entry of;
    std::string_view text;
};

void watch_hub::distribute(const line& what) {
    for (const auto& to : watchers_)
        if (what.of.number > to->from && has(to->kinds, what.of.kind)) offer(*to, what.text);
}

// Requires: lock_ held.
void watch_hub::collect(std::vector<byte_buffer>& taken) {
    while (taken.size() < journals_.size()) taken.emplace_back();
    std::vector<line> lines;
    for (std::size_t i = 0; i < journals_.size(); ++i) {
        journals_[i]->take(taken[i]);
        std::string_view rest = taken[i].view();
        while (!rest.empty()) {
            line next;
            std::memcpy(&next.of, rest.data(), sizeof next.of);
            next.text = rest.substr(sizeof next.of, next.of.bytes);
            rest.remove_prefix(sizeof next.of + next.of.bytes);
            lines.push_back(next);
        }
    }
    std::ranges::sort(lines, {}, [](const line& l) { return l.of.number; }); // (2)
    for (const line& each : lines) distribute(each);
    for (byte_buffer& each : taken) each.clear();
}

// False: it is gone.
bool watch_hub::send(watcher& to) {
    while (!to.pending.empty()) {
        const std::string_view bytes = to.pending.view();
        const ssize_t sent = to.client.send(bytes);
        if (sent < 0) {
            if (errno == EINTR) continue;
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        to.pending.consume(static_cast<std::size_t>(sent));
    }
    return true;
}

// Ignores what a watcher says; it can only hang up.
bool watch_hub::hung_up(watcher& is) {
    char passed_over[4096];
    for (unsigned n = 0; n < reads_max; ++n) {
        const ssize_t got = is.client.read(passed_over, sizeof passed_over);
        if (got == 0) return true;
        if (got < 0 && errno != EINTR) return errno != EAGAIN && errno != EWOULDBLOCK;
    }
    return false; // it has more to say
}

void watch_hub::wait() {
    pollfd waiting{.fd = wake_fd_, .events = POLLIN, .revents = 0};
    bool any = false;
    {
        const std::scoped_lock held(lock_);
        any = !watchers_.empty();
    }
    (void)::poll(&waiting, 1, any ? round_ms : -1);
    std::uint64_t wakes = 0;
    (void)!::read(wake_fd_, &wakes, sizeof wakes);
}

void watch_hub::run() {
    std::vector<byte_buffer> taken;
    for (;;) {
        {
            const std::scoped_lock held(lock_);
            if (stopping_) return;
            try {
                collect(taken);
            } catch (const std::bad_alloc&) {
                for (byte_buffer& each : taken) each.clear(); // lost, like lines that find no room
            }
            watched wanted = watched::nothing;
            for (std::size_t i = watchers_.size(); i-- > 0;) {
                if (!send(*watchers_[i]) || hung_up(*watchers_[i])) close(i);
                else wanted = wanted | watchers_[i]->kinds;
            }
            wanted_ = wanted;
        }
        wait();
    }
}

} // namespace hf::kv
