// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What SIMPO's tests share: a pool on tmpfs that is opened, closed and crashed; a class whose calls
// do not commute.
#pragma once

#include <base/assert.hpp>
#include <open/pool_impl.hpp>
#include <simpo/objects.hpp>

#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace hf::simpo::test {

using namespace hf::literals;

/// Digits that were appended, and what they add up to; wide enough for several pieces of a copy.
class digits {
public:
    static constexpr class_name simpo_class{"digits", 1};
    digits() = default;
    explicit digits(std::uint64_t first) : number_(first) {}

    void append(std::uint32_t digit) noexcept {
        number_ = number_ * 10 + digit;
        cells_[count_++ % cells_.size()] += digit;
    }
    void append_all(std::array<std::uint8_t, 100> all) noexcept {
        for (const std::uint8_t d : all) append(d);
    }
    std::uint64_t append_and_get(std::uint32_t digit) noexcept { return append(digit), number_; }
    std::uint64_t number() const noexcept { return number_; }
    std::uint64_t count() const noexcept { return count_; }
    bool sums_to(const std::uint64_t& expected) const {
        std::uint64_t sum = 0;
        for (const std::uint64_t c : cells_) sum += c;
        return sum == expected;
    }

private:
    std::uint64_t number_ = 0, count_ = 0;
    std::array<std::uint64_t, 200> cells_{};
};

/// A pool in a file that goes with it. A test that cannot open it cannot go on.
class test_pool {
public:
    test_pool() {
        char directory[] = "/dev/shm/hf_simpo_test.XXXXXX";
        if (::mkdtemp(directory) == nullptr) std::abort();
        directory_ = directory;
        how.layout = "simpo test/1";
        how.create_bytes = 1_MiB;
        how.max_bytes = 64_MiB;
        how.engines = {engine()};
    }
    test_pool(test_pool&&) = delete;
    ~test_pool() {
        pool_.reset();
        std::filesystem::remove_all(directory_);
    }
    status try_open() {
        pool_.reset();
        auto opened = hf::pool::open(path(), how);
        if (!opened) return opened.error();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
        return {};
    }
    /// Closes it first, if it is open.
    void open() {
        if (const status s = try_open(); !s.ok()) fatal("%s", s.what().c_str());
    }
    void close() { pool_.reset(); }
    /// Lets go of it as a crash would.
    void let_go() {
        hf::pool::impl::abandon(std::move(*pool_));
        pool_.reset();
    }
    void crash() {
        let_go();
        open();
    }
    /// Mode power: as the power's failure leaves it now, what the disk has.
    void fail_power() {
        const auto each = [&](auto&& work) {
            for (const char* suffix : {"", "-power"})
                work(path() + suffix, path() + ".kept" + suffix);
        };
        each([](const std::string& from, const std::string& to) {
            std::filesystem::copy_file(from, to);
        });
        close();
        each([](const std::string& to, const std::string& from) {
            std::filesystem::rename(from, to);
        });
        how.salvage = true; // a copy of a pool in use
        open();
        how.salvage = false;
    }
    std::string path() const { return directory_ + "/pool.hf"; }
    hf::pool& pool() { return *pool_; }
    template <class T, class... Args> object<T> make(const Args&... args) {
        auto made = object<T>::create(*pool_, "it", args...);
        if (!made) fatal("%s", made.error().what().c_str());
        return *made;
    }
    object<digits> make_named(std::string_view name) {
        auto made = object<digits>::create(*pool_, name);
        if (!made) fatal("%s", made.error().what().c_str());
        return *made;
    }
    template <class T> object<T> get() {
        auto found = object<T>::find(*pool_, "it");
        if (!found) fatal("%s", found.error().what().c_str());
        return *found;
    }
    open_options how;

private:
    std::string directory_;
    std::unique_ptr<hf::pool> pool_;
};

/// In each mode.
class PoolTest : public ::testing::TestWithParam<mode> {
protected:
    PoolTest() { in.how.mode = GetParam(); }
    test_pool in;
};

} // namespace hf::simpo::test
