// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by kill_beside and kill_views: processes that read a pool beside the one that writes it
// (open_options::shared), and kills of readers, of the writer, of both, at moments drawn from a
// seed. test/attacks/kill/README.md
//
// (1) A child ends by the kill alone: a child that found something wrong has ended by itself, and
//     fails the test.
// (2) Reports of children to each other and to the parent outlive them, in words that all of them
//     share.
// (3) One seed gives the same kills and the same draws of children; how far they have come differs.
#pragma once

#include <holdfast/pool.hpp>

#include <atomic>
#include <cstdint>
#include <new>
#include <random>
#include <string>

namespace kill_test {

using u64 = std::uint64_t;

/// Prints the fault, and ends this process.
[[noreturn]] void broken(const char* what, u64 expected, u64 found);
[[noreturn]] void broken(const hf::status& s);

/// Zeros that this process and its children share.
void* shared_memory(std::size_t bytes);
template <class Words> Words& shared_words() {
    return *::new (shared_memory(sizeof(Words))) Words{};
}

class beside_test {
public:
    struct pace {
        u64 pause_us;      // between two kills, at most
        u64 writers_kills; // of ten; three more take a reader with them, the others are of readers
    };
    explicit beside_test(const pace& how) : pace_(how) {}
    beside_test(const beside_test&) = delete;
    virtual ~beside_test() = default;

    /// [--kills N] [--seed N]. Returns what main() does: 0 when nothing is wrong, and enough was
    /// seen.
    int run(int argc, char** argv);

protected:
    hf::mode mode() const noexcept { return mode_; }

private:
    // In the parent.
    /// Layout and engines.
    virtual hf::open_options options() const = 0;
    /// The next pool is the one of this number.
    virtual void begin(u64 number) = 0;
    /// Fills it.
    virtual void make(hf::pool& pool) = 0;
    /// When nobody is left: whether it is whole. Ends the process where more than that is known.
    virtual bool is_whole(hf::pool& pool) = 0;
    /// Prints what was done; whether it is enough to prove something.
    virtual bool say(u64 kills) const = 0;

    // In a child, over and over, with the pool just opened.
    virtual void write(hf::pool& pool, std::mt19937_64& chance) = 0;
    virtual void read(hf::pool& pool, std::mt19937_64& chance) = 0;
    /// Before all that.
    virtual void settle_in(bool) {}

    hf::result<hf::pool> open(bool shared, bool read_only) const;
    [[noreturn]] void write_for_ever(u64 seed);
    [[noreturn]] void read_for_ever(u64 seed);
    pid_t new_child(bool reads, u64 seed);
    bool one_pool(std::mt19937_64& chance, u64 kills);

    pace pace_;
    std::string path_;
    hf::mode mode_ = hf::mode::process;
    std::atomic<u64>& refused_ = shared_words<std::atomic<u64>>();
};

} // namespace kill_test
