// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What MOD's tests share: a pool on tmpfs that is opened, closed and crashed; the nodes that a root
// reaches; elements made of numbers.
#pragma once

#include <base/assert.hpp>
#include <mod/kinds.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/author/mod/store.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/mod/detail/element.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace hf::mod::test {

using namespace hf::literals;

/// A pool in a file that goes with it. A test that cannot open it cannot go on.
class test_pool {
public:
    test_pool() {
        char directory[] = "/dev/shm/hf_mod_test.XXXXXX";
        if (::mkdtemp(directory) == nullptr) std::abort();
        directory_ = directory;
        how.layout = "mod test/1";
        how.create_bytes = 1_MiB;
        how.max_bytes = 1_GiB;
        how.engines = {engine()};
    }
    test_pool(test_pool&&) = delete;
    ~test_pool() {
        pool_.reset();
        std::filesystem::remove_all(directory_);
    }
    /// Closes it first, if it is open.
    void open() {
        pool_.reset();
        auto opened = hf::pool::open(path(), how);
        if (!opened) fatal("%s", opened.error().what().c_str());
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    void close() { pool_.reset(); }
    /// An empty one in its place; max_bytes 0: as many as before.
    void make_new(hf::mode mode, std::uint64_t max_bytes = 0) {
        pool_.reset();
        std::filesystem::remove(path());
        how.mode = mode;
        if (max_bytes != 0) how.max_bytes = max_bytes;
        open();
    }
    /// Lets go of it as a crash would; the trace goes on beside the caller.
    void crash() {
        hf::pool::impl::abandon(std::move(*pool_));
        open();
    }
    void crash_and_open() {
        crash();
        EXPECT_TRUE(store().wait_for_trace().ok());
    }
    /// Mode power: a copy of what the disk has, for open_kept().
    void keep_disk() const {
        for (const char* suffix : {"", "-power"})
            std::filesystem::copy_file(path() + suffix, path() + ".kept" + suffix);
    }
    /// As the power's failure would leave it if it had come at keep_disk().
    void open_kept() {
        close();
        for (const char* suffix : {"", "-power"})
            std::filesystem::rename(path() + ".kept" + suffix, path() + suffix);
        how.salvage = true; // a copy of a pool in use
        open();
        how.salvage = false;
    }

    std::string path() const { return directory_ + "/pool.hf"; }
    hf::pool& pool() { return *pool_; }
    mod::store& store() { return mod::store::in(*pool_); }
    template <class Container> Container get(const place& at = {"it"}) {
        auto opened = Container::open(*pool_, at);
        if (!opened) fatal("%s", opened.error().what().c_str());
        return *opened;
    }
    /// After a collection; the store finds nothing wrong.
    std::uint64_t nodes_in_use() {
        const status collected = store().collect();
        EXPECT_TRUE(collected.ok()) << collected.what();
        const status sound = store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        return store().account().nodes - store().account().retired;
    }

    open_options how; // of the next open()

private:
    std::string directory_;
    std::unique_ptr<hf::pool> pool_;
};

/// A test on such a pool; in both modes, if it is one of INSTANTIATE_TEST_SUITE_P(both_modes).
class PoolTest : public testing::TestWithParam<hf::mode> {
protected:
    test_pool in;
};
inline constexpr hf::mode both_modes[] = {hf::mode::process, hf::mode::pmem};
inline std::string mode_name(const testing::TestParamInfo<hf::mode>& of) {
    return of.param == hf::mode::process ? "process" : "pmem";
}

/// Every node that words reach, as reclamation finds them.
struct reached_nodes final : visitor {
    struct named {
        ref at;
        std::uint32_t context;
    };
    std::vector<named> left;
    std::unordered_set<ref> seen;
    std::uint64_t visits = 0;

    void node(ref at, std::size_t, std::uint32_t context) override {
        ++visits;
        if (seen.insert(at).second) left.push_back({at, context});
    }
    bool corrupt() const { return seen.contains(ref_max); }
    void follow(const kind& what, const root& from) {
        what.top(*this, from.base(), from.word(), from.shape());
        while (!left.empty()) {
            const named next = left.back();
            left.pop_back();
            if (next.at == ref_max) continue; // corrupt: it counts as an element, which shows
            what.children(*this, detail::node_at<std::byte>(from.base(), next.at), node_bytes_max,
                          next.context, from.shape());
        }
    }
};
inline std::uint64_t nodes_of(const kind& what, std::initializer_list<const root*> roots) {
    reached_nodes reached;
    for (const root* each : roots) reached.follow(what, *each);
    return reached.seen.size();
}

/// Elements without comparisons of their own are compared as bytes.
struct empty {
    bool operator==(const empty&) const = default;
};
template <std::size_t Words, std::size_t Align = 8> struct alignas(Align) words {
    std::array<std::uint64_t, Words> at;
    auto operator<=>(const words&) const = default;
};

/// An element that differs from those of other numbers, as far as it can.
template <class T> T made_of(std::uint64_t n) {
    if constexpr (std::is_same_v<T, std::string>) { // of 1 to 300 bytes, zeros among them
        return std::to_string(n) + std::string(n % 13 == 0 ? 280 : n % 5, static_cast<char>(n % 3));
    } else if constexpr (std::is_empty_v<T>) {
        return {};
    } else {
        T made{};
        for (std::size_t at = 0; at < sizeof made; at += 8, n = n * 0x9e37'79b9'7f4a'7c15 + 1)
            std::memcpy(reinterpret_cast<char*>(&made) + at, &n,
                        std::min<std::size_t>(8, sizeof made - at));
        return made;
    }
}

/// The result of an update of a handle, or of a batch.
inline bool told(bool said) { return said; }
inline std::size_t told(std::size_t said) { return said; }
inline bool told(const status& done) {
    EXPECT_TRUE(done.ok()) << done.what();
    return done.ok();
}
template <class T> T told(const result<T>& done) {
    EXPECT_TRUE(done) << done.error().what();
    return done ? *done : T{};
}

inline std::uint64_t points_of(const auto& work) {
    const auto before = persist::thread_counters().ordering_points;
    work();
    return persist::thread_counters().ordering_points - before;
}

} // namespace hf::mod::test
