// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `stats detail`: how often keys with a common beginning, up to a delimiter, are asked for, stored
// and removed. Off until a client or -D switches it on; volatile.
//
// (1) While it is off it costs a load.
// (2) Clients cannot make it grow without limit: at most prefixes_max prefixes are counted.
#pragma once

#include <kv/protocol/byte_buffer.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace hf::kv {

class prefix_counts {
public:
    static constexpr std::size_t prefixes_max = 1 << 16;
    enum class what : std::uint8_t { get, hit, set, removal, last_ };

    bool counting() const noexcept { return counting_.load(std::memory_order_relaxed); }
    void count(bool on) noexcept { counting_.store(on, std::memory_order_relaxed); }
    /// Before the first client is served.
    void delimit_by(char delimiter) noexcept { delimiter_ = delimiter; }
    char delimiter() const noexcept { return delimiter_; }

    /// One more of them; a hit is a get, too. Keys without the delimiter are not counted, as
    /// memcached does it.
    void add(what happened, std::string_view key) {
        if (counting()) add_counted(happened, key);
    }
    void reset();
    /// "PREFIX name get N hit N set N del N\r\n" for each, and END.
    void append_to(byte_buffer& out) const;

private:
    using counts = std::uint64_t[static_cast<std::size_t>(what::last_)];
    struct entry {
        counts of = {};
    };
    void add_counted(what happened, std::string_view key);

    std::atomic<bool> counting_{false};
    char delimiter_ = ':';
    mutable std::mutex lock_;
    std::map<std::string, entry, std::less<>> prefixes_;
};

} // namespace hf::kv
