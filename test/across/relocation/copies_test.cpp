// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: every way to move a pointer into or out of a relocated pool either translates it or ends
// the process; the pool never keeps one in the wrong form.
// Method: each way to move one, between the pool and volatile memory; the stored pointer is read
// through the file, where it has its canonical form.
#include "fixture.hpp"

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/author/staged.hpp>

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <variant>

namespace {

using namespace relocation_test;

struct three {
    std::uint64_t number;
    item* at;
    std::uint64_t other;
};
struct two_links {
    item* one;
    item* two;
};

class Copies : public Pools {
protected:
    // A child of fork() cannot use its parent's pool: code that will die runs in a process that
    // opens its own.
    Copies() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    ~Copies() override { GTEST_FLAG_SET(death_test_style, "fast"); }
    void SetUp() override {
        Pools::SetUp();
        { auto made = open(original); }
        pool = open(original, hf::relocation::always);
        ASSERT_TRUE(pool && pool->relocated());
        in = pool->root<content>();
        push(in, 1);
        push(in, 2);
        one = in->first;
        two = one->next;
        room = static_cast<std::byte*>(hf_alloc(1024));
        std::memset(room, 0, 1024);
        shift = in_file(&in->first) - reinterpret_cast<std::uint64_t>(one);
        // It dies without cleaning up.
        if (testing::internal::InDeathTestChild()) std::filesystem::remove_all(directory);
    }
    void TearDown() override {
        pool.reset();
        Pools::TearDown();
    }

    std::uint64_t in_file(const void* address) const {
        const auto* base = reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(in) &
                                                              ~((std::uintptr_t{2} << 20) - 1));
        const int fd = ::open(original.c_str(), O_RDONLY | O_CLOEXEC);
        std::uint64_t word = 0;
        const auto offset = static_cast<const std::byte*>(address) - base;
        EXPECT_EQ(::pread(fd, &word, sizeof word, offset), 8);
        ::close(fd);
        return word;
    }
    /// The canonical form of 'pointer', as the pool's first item shows it.
    std::uint64_t canonical(const void* pointer) const {
        return reinterpret_cast<std::uint64_t>(pointer) + shift;
    }
    template <class T> T* at() { return reinterpret_cast<T*>(room); }

    std::optional<hf::pool> pool;
    content* in = nullptr;
    item* one = nullptr;
    item* two = nullptr;
    std::byte* room = nullptr;
    std::uint64_t shift = 0; // from an address here to its form in the file
};

struct either {
    bool is_number;
    union {
        double number;
        item* at;
    };
};
using variant = std::variant<double, item*>;
using four_floats [[gnu::vector_size(16)]] = float;
using two_floats [[gnu::vector_size(8)]] = float;

// The optimiser must not see through the copies.
template <class T> [[gnu::noinline]] void assign(T* to, const T* from) { *to = *from; }
[[gnu::noinline]] void assign_array(item** to, item* const* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
[[gnu::noinline]] void assign_bytes(void* to, const void* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}
[[gnu::noinline]] int compared(const void* a, const void* b, std::size_t bytes) {
    return std::memcmp(a, b, bytes);
}
volatile std::uint64_t used; // no result is left out
template <class T> [[gnu::noinline]] T loaded(const T* from) { return *from; }
[[gnu::noinline]] void set_both(two_links* to, item* a, item* b) {
    to->one = a;
    to->two = b;
}

/// Makes one of them apart first: the optimiser moves either as a double.
[[gnu::noinline]] void put(either* to, item* at, double number) {
    either made;
    made.is_number = number > 0;
    if (made.is_number) made.number = number;
    else made.at = at;
    *to = made;
}
[[gnu::noinline]] std::uint64_t number_of(const either* from) {
    const either seen = *from;
    return seen.is_number ? static_cast<std::uint64_t>(seen.number * 2) : seen.at->number;
}
[[gnu::noinline]] void put(variant* to, item* at, double number) {
    *to = number > 0 ? variant(number) : variant(at);
}
[[gnu::noinline]] double number_of(const variant* from) {
    const variant seen = *from;
    if (const double* number = std::get_if<double>(&seen)) return *number;
    return static_cast<double>(std::get<item*>(seen)->number);
}

TEST_F(Copies, APointerHasItsCanonicalFormInTheFileAlone) {
    assign(at<item*>(), &one);
    EXPECT_EQ(in_file(room), canonical(one));
    EXPECT_GE(in_file(room), HF_CANONICAL_LOW);
    EXPECT_LT(in_file(room), HF_CANONICAL_HIGH);
    EXPECT_EQ(loaded(at<item*>()), one);
}

TEST_F(Copies, AStructMovesItsPointersAsPointers) {
    const three here{7, two, 9};
    assign(at<three>(), &here);
    EXPECT_EQ(in_file(&at<three>()->at), canonical(two));
    three back{};
    assign(&back, at<three>());
    EXPECT_TRUE(back.number == 7 && back.at == two && back.other == 9);
    const two_links both = loaded(at<two_links>() + 2);
    EXPECT_EQ(both.one, nullptr);
}

TEST_F(Copies, NeighbouringPointersMayGoAsOne) {
    set_both(at<two_links>(), one, two);
    EXPECT_EQ(in_file(&at<two_links>()->one), canonical(one));
    EXPECT_EQ(in_file(&at<two_links>()->two), canonical(two));
    const two_links back = loaded(at<two_links>());
    EXPECT_TRUE(back.one == one && back.two == two);
}

TEST_F(Copies, ALoopOverPointersMayBecomeACopy) {
    item* here[32];
    for (std::size_t i = 0; i < 32; ++i) here[i] = i % 2 == 0 ? one : two;
    assign_array(at<item*>(), here, 32);
    for (std::size_t i = 0; i < 32; ++i)
        EXPECT_EQ(in_file(at<item*>() + i), canonical(here[i])) << i;
    item* back[32] = {};
    assign_array(back, at<item*>(), 32);
    EXPECT_EQ(std::memcmp(here, back, sizeof here), 0);
    assign_array(at<item*>() + 40, at<item*>(), 32); // stays in the pool
    EXPECT_EQ(in_file(at<item*>() + 41), canonical(two));
}

TEST_F(Copies, AtomicPointersAreTranslated) {
    auto* word = reinterpret_cast<std::atomic<item*>*>(room);
    word->store(one);
    EXPECT_EQ(in_file(room), canonical(one));
    EXPECT_EQ(word->load(), one);
    EXPECT_EQ(word->exchange(two), one);
    EXPECT_EQ(in_file(room), canonical(two));
    item* expected = one;
    EXPECT_FALSE(word->compare_exchange_strong(expected, one));
    EXPECT_EQ(expected, two);
    EXPECT_TRUE(word->compare_exchange_strong(expected, one));
    EXPECT_EQ(in_file(room), canonical(one));
}

TEST_F(Copies, BytesThatHoldNoAddressMoveFreely) {
    std::uint64_t here[16];
    for (std::uint64_t i = 0; i < 16; ++i) here[i] = i * 0x9e3779b97f4a7c15ULL;
    assign_bytes(room, here, sizeof here);
    std::uint64_t back[16] = {};
    assign_bytes(back, room, sizeof back);
    EXPECT_EQ(std::memcmp(here, back, sizeof here), 0);
    assign(at<three>() + 8, at<three>()); // pool to pool
}

TEST_F(Copies, PointersUnderAnotherNameAreRefused) {
    three here{7, two, 9};
    EXPECT_DEATH(assign_bytes(room, &here, sizeof here),
                 "copies_test.cpp:[0-9]+: .*stored, but not as a pointer");
    assign(at<three>(), &here);
    EXPECT_DEATH(assign_bytes(&here, room, sizeof here),
                 "copies_test.cpp:[0-9]+: .*read, but not as a pointer");
    auto number = reinterpret_cast<std::uintptr_t>(one);
    EXPECT_DEATH(assign(at<std::uintptr_t>(), &number), "stored, but not as a pointer");
    EXPECT_DEATH(used = loaded(reinterpret_cast<std::uintptr_t*>(&at<three>()->at)),
                 "read, but not as a pointer");
    EXPECT_DEATH(used = static_cast<std::uint64_t>(compared(room, &here, sizeof here)),
                 "read, but not as a pointer");
}

TEST_F(Copies, NumbersThatShareAUnionWithAPointerMoveFreely) {
    put(at<either>(), nullptr, 2.5);
    EXPECT_EQ(number_of(at<either>()), 5u);
    auto* made = new (at<variant>() + 8) variant(1.0);
    put(made, nullptr, 2.5);
    EXPECT_EQ(number_of(made), 2.5);
    const four_floats here{1, -2, 3, 1e30F};
    assign(at<four_floats>() + 16, &here);
    const four_floats back = loaded(at<four_floats>() + 16);
    EXPECT_EQ(std::memcmp(&here, &back, sizeof here), 0);
}

TEST_F(Copies, PointersThatShareAUnionWithANumberAreRefused) {
    EXPECT_DEATH(put(at<either>(), one, -1),
                 "copies_test.cpp:[0-9]+: .*stored, but not as a pointer");
    at<either>()->at = one; // as a pointer, it is translated
    EXPECT_EQ(in_file(&at<either>()->at), canonical(one));
    EXPECT_DEATH(used = number_of(at<either>()),
                 "copies_test.cpp:[0-9]+: .*read, but not as a pointer");
    auto* made = new (at<variant>() + 8) variant(1.0);
    EXPECT_DEATH(put(made, one, -1), "stored, but not as a pointer");
}

TEST_F(Copies, PointersUnderTheNameOfNumbersAreRefused) {
    item* const here[2] = {one, two};
    const auto store = [&]<class Number>(Number* to) {
        EXPECT_DEATH(assign(to, reinterpret_cast<const Number*>(here)),
                     "stored, but not as a pointer");
    };
    const auto load = [&]<class Number>(const Number* from) {
        EXPECT_DEATH(
            {
                const Number seen = loaded(from);
                used = static_cast<std::uint64_t>(reinterpret_cast<const unsigned char&>(seen));
            },
            "read, but not as a pointer");
    };
    store(at<double>());
    store(at<two_floats>());
    store(at<four_floats>());
    assign_array(at<item*>(), here, 2);
    load(at<const double>());
    load(at<const two_floats>());
    load(at<const four_floats>());
}

TEST_F(Copies, PointersThatTheRuntimeCopiesAreRefused) {
    three here{7, two, 9};
    EXPECT_DEATH(
        {
            const hf::staged staged = hf::staged::near(in, sizeof here);
            hf::staged::copy_words(staged.get(), &here, sizeof here);
        },
        "hf::staged::copy_words: .*stored, but not as a pointer");
}

TEST_F(Copies, PointersToAnotherPoolAreRefused) {
    auto* other = reinterpret_cast<item*>(canonical(one)); // where the original would be
    EXPECT_DEATH(assign(at<item*>(), &other), "a pointer to another pool");
}

TEST_F(Copies, PointersThatAreNotAlignedAreRefused) {
    struct [[gnu::packed]] packed {
        char letter;
        item* at;
    };
    EXPECT_DEATH(at<packed>()->at = one, "a pointer that is not aligned");
}

} // namespace
