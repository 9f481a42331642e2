// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clients that `watch`: a thread of its own takes what the journals have gathered and sends each
// line to those that want it. It begins with the first watcher.
//
// (1) No serving thread waits for a watcher: journals (journal.hpp) drop lines that they cannot
//     hold, and the buffer of a watcher that reads too slowly drops them, too. The watcher gets
//     "skipped=N" when it reads on.
// (2) Lines come in the order of their numbers, except lines of another thread that were not yet
//     written when the first were taken.
#pragma once

#include "connection_list.hpp"
#include "service.hpp"
#include "stream.hpp"
#include <kv/protocol/journal.hpp>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hf::kv {

class watch_hub : public watch_counts {
public:
    static constexpr std::size_t watchers_max = 20; // memcached's

    explicit watch_hub(service& serving);
    watch_hub(const watch_hub&) = delete;
    watch_hub& operator=(const watch_hub&) = delete;
    ~watch_hub() override;

    /// A journal for a thread; lives as long as the hub.
    journal& join();
    /// Takes the client and its entry in the list of connections: the client gets lines of these
    /// kinds from here on, behind an OK. Or leaves it, and returns the refusal to send. From any
    /// thread.
    std::string_view add(stream& client, std::unique_ptr<connection_list::entry>& listed,
                         watched kinds);
    /// Hangs up on all watchers; add() must not be called any more.
    void stop();

    totals counted() const override;

private:
    struct watcher {
        stream client;
        std::unique_ptr<connection_list::entry> listed;
        watched kinds;
        std::uint64_t from; // wants what is numbered higher
        std::uint64_t skipped = 0;
        byte_buffer pending;
    };
    struct line;

    void run();
    void collect(std::vector<byte_buffer>& taken);
    void distribute(const line& what);
    void offer(watcher& to, std::string_view text);
    bool send(watcher& to);
    static bool hung_up(watcher& is);
    void close(std::size_t number);
    void wait();

    service* serving_;
    std::atomic<watched> wanted_{watched::nothing};
    std::atomic<std::uint64_t> number_{0};
    mutable std::mutex lock_; // guards what follows
    std::vector<std::unique_ptr<journal>> journals_;
    std::vector<std::unique_ptr<watcher>> watchers_;
    bool stopping_ = false;
    int wake_fd_;
    std::atomic<std::uint64_t> sent_{0}, skipped_{0};
    std::thread thread_;
};

} // namespace hf::kv
