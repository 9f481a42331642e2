// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that this build cannot resume is refused, and the message says which build can
// and what else is possible; the file is untouched. Giving the section up opens the pool, and loses
// nothing else.
// Method: a pool left by a thread that died in a section, its bytes changed as another build would
// have left them.
#include <justdo/inspect.hpp>
#include <justdo/registered.hpp>
#include <justdo/room.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/justdo.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace {

using namespace hf;
namespace by_hand = hf::justdo::by_hand;
using namespace by_hand;

struct root {
    by_hand::account accounts[2];
    list nodes;
    table words;
    shelf locks;
};

thread_local std::jmp_buf stopped;
thread_local std::uint32_t points_left;

class JustdoRefusal : public ::testing::Test {
protected:
    ~JustdoRefusal() override {
        justdo::places_in_use = {};
        ::unlink(path_.c_str());
    }
    result<pool> try_open() {
        open_options o;
        o.layout = "justdo_refusal_test/1";
        o.create_bytes = o.max_bytes = 128_KiB;
        o.engines = {justdo::engine({.open_waits = true})};
        o.recovery = policy;
        o.salvage = salvage;
        o.read_only = read_only;
        return pool::open(path_, o);
    }
    /// Leaves a push, or what is given, open at its n-th point, behind two that are whole.
    void leave_open(
        std::uint32_t points,
        const std::function<void(root&)>& work = [](root& r) { push(&r.nodes, 3); }) {
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        auto* r = p->root<root>();
        push(&r->nodes, 1), push(&r->nodes, 2);
        std::thread([&] {
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            if (setjmp(stopped) == 0) work(*r);
        }).join();
        const auto super = justdo::superblock_of(*p->internals().file);
        for (const std::uint64_t offset : justdo::thread_words(*super))
            if (offset != 0 && block_in(*p, offset)->log.counter != 0) thread_at_ = offset;
        pool::impl::abandon(std::move(*p));
        ASSERT_NE(thread_at_, 0U);
    }
    static justdo::thread_block* block_in(pool& p, std::uint64_t offset) {
        return static_cast<justdo::thread_block*>(p.internals().at(offset));
    }
    template <class T> void change(std::uint64_t at, const std::function<void(T&)>& how) {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        T value;
        file.seekg(static_cast<std::streamoff>(at));
        file.read(reinterpret_cast<char*>(&value), sizeof value);
        how(value);
        file.seekp(static_cast<std::streamoff>(at));
        file.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
    std::string bytes() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    static std::uint64_t word_at(const std::string& of, std::uint64_t at) {
        std::uint64_t word = 0;
        std::memcpy(&word, of.data() + at, sizeof word);
        return word;
    }
    void put_back(const std::string& file) {
        {
            std::fstream out(path_, std::ios::in | std::ios::out | std::ios::binary);
            out.write(file.data(), static_cast<std::streamsize>(file.size()));
        }
        ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(file.size())), 0);
    }
    void put_back() { put_back(good_); }
    /// Each with every bit turned, and as what a careless reader would take for a small number,
    /// none, or the farthest place. How often the pool was refused, and how often opened.
    std::pair<std::size_t, std::size_t> try_every_bit_of(const std::vector<std::uint64_t>& places) {
        std::size_t refused = 0, resumed = 0;
        for (const std::uint64_t at : places) {
            const std::uint64_t was = word_at(good_, at);
            std::vector<std::uint64_t> words{
                0, 1, 2, 64, ~std::uint64_t{0}, ~std::uint64_t{0} >> 1, was + 8, was - 8};
            for (unsigned bit = 0; bit < 64; ++bit) words.push_back(was ^ std::uint64_t{1} << bit);
            for (const std::uint64_t word : words) {
                std::string bad = good_;
                std::memcpy(bad.data() + at, &word, sizeof word);
                put_back(bad);
                auto p = try_open();
                ++(p ? resumed : refused);
                if (p) continue;
                EXPECT_NE(p.error().what().find("engine justdo"), std::string::npos)
                    << fmt::format("{:#x} at {:#x}: {}", word, at, p.error().what());
            }
        }
        return {refused, resumed};
    }
    void expect_refused(errc code, const std::vector<std::string>& words,
                        bool had_gone_on = false) {
        const std::string before = bytes();
        auto p = try_open();
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), code) << p.error().what();
        for (const std::string& word : words)
            EXPECT_NE(p.error().what().find(word), std::string::npos)
                << "'" << word << "' in: " << p.error().what();
        EXPECT_EQ(bytes() != before, had_gone_on) << "the file was changed, or was not";
    }
    /// The way out of every refusal: the section stays half done, the rest is as it was.
    void give_up_and_go_on() {
        policy = recovery_policy::roll_back;
        expect_refused(errc::torn, {"salvage", "half done"});
        salvage = true;
        {
            const std::string before = bytes();
            read_only = true; // a look first
            auto p = try_open();
            read_only = false;
            ASSERT_TRUE(p) << p.error().what();
            EXPECT_EQ(p->root<root>()->nodes.head->value, 3U);
            EXPECT_EQ(bytes(), before);
        }
        {
            auto p = try_open();
            ASSERT_TRUE(p) << p.error().what();
            ASSERT_EQ(p->warnings().size(), 1U);
            EXPECT_NE(p->warnings()[0].find("given up"), std::string::npos) << p->warnings()[0];
            auto* r = p->root<root>();
            EXPECT_EQ(r->nodes.head->value, 3U); // linked, and not counted
            push(&r->nodes, 4);                  // its lock is free
            pop(&r->nodes);
        }
        policy = recovery_policy::complete;
        salvage = false;
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().sections_pending, 0U);
    }

    const std::string path_ = "/dev/shm/hf_justdo_refusal." + std::to_string(::getpid());
    std::uint64_t thread_at_ = 0;
    std::string good_; // the file's bytes
    recovery_policy policy = recovery_policy::complete;
    bool salvage = false;
    bool read_only = false;
};

/// Calls add(), as the table's first word says: above 8 it never ends.
extern const hf_justdo_function deep_function;
void deep(table* of) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<table**>(hf_justdo_enter(&deep_function, of, &resumed));
    switch (resumed) {
    case 0:
        f = of;
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&of->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_store(&f->sum, 77, 8, 2); [[fallthrough]];
    case 2: hf_justdo_call(3); [[fallthrough]];
    case 3: add(f, f->word[0]); hf_justdo_unlock(&f->lock, HF_JUSTDO_EXCLUSIVE, 4);
    }
    hf_justdo_leave();
}
const hf_justdo_function deep_function{
    HF_ABI_VERSION, 8, 4100, 1, "deep", "by_hand", 4, 0, [] { deep(nullptr); }, nullptr};

constexpr const char* way_out = "holdfast repair --roll-back --force";
std::uint64_t frame_at(std::uint64_t thread) { return thread + sizeof(justdo::thread_block); }

TEST_F(JustdoRefusal, AnotherVersionOfTheFunctionNamesItAndBothVersions) {
    static_assert(engine_rows::justdo.build == recovery_build::its_build);
    leave_open(2);
    change<justdo::frame_head>(frame_at(thread_at_),
                               [](auto& head) { head.function_version = 77; });
    expect_refused(errc::function_changed,
                   {"push(list*, unsigned long) (by_hand)", "expected version 0x1", "found 0x4d",
                    "the build that made it", way_out});
    give_up_and_go_on();
}

/// A frame holds their addresses as distances: in a program that was linked again they are others.
TEST_F(JustdoRefusal, AProgramWithItsConstantsElsewhereNamesTheFunction) {
    leave_open(2);
    change<justdo::frame_head>(frame_at(thread_at_), [](auto& head) { head.constants = 0x1234; });
    expect_refused(errc::function_changed,
                   {"push(list*, unsigned long) (by_hand)", "constants lie elsewhere",
                    "expected layout 0x0", "found 0x1234", "the build that made it", way_out});
    give_up_and_go_on();
}

/// An inline function of two libraries: each has its own constants.
TEST(JustdoRegistration, OfOneFunctionTheOneWithTheFramesLayoutIsFound) {
    static const std::uint64_t words[4] = {};
    static const void* const near[] = {&words[0], &words[1]};
    static const void* const far[] = {&words[0], &words[3]};
    static hf_justdo_constants one{0, 2, near}, other{0, 2, far}, same{0, 2, near};
    const auto function = [](hf_justdo_constants& of) {
        return hf_justdo_function{HF_ABI_VERSION, 8, 4711, 5, "inline", "here", 1, 0, nullptr, &of};
    };
    static const hf_justdo_function first = function(one), second = function(other),
                                    third = function(same);
    for (const auto* f : {&first, &second, &third}) hf_justdo_register(f);
    EXPECT_NE(one.layout, 0U);
    EXPECT_NE(one.layout, other.layout);
    EXPECT_EQ(one.layout, same.layout);
    EXPECT_EQ(justdo::find_function(4711, 5, one.layout), &first);
    EXPECT_EQ(justdo::find_function(4711, 5, other.layout), &second);
    EXPECT_EQ(justdo::find_function(4711, 5, 99)->version, 5U);
    EXPECT_EQ(justdo::find_function(4712, 5, one.layout), nullptr);
}

TEST_F(JustdoRefusal, AFunctionThatThisBuildDoesNotHaveIsNamedByItsNumber) {
    leave_open(2);
    change<justdo::frame_head>(frame_at(thread_at_), [](auto& head) { head.function_id = 0xabcd; });
    expect_refused(errc::function_changed, {"0xabcd", "the build that made it", way_out});
    give_up_and_go_on();
}

TEST_F(JustdoRefusal, AKindOfLockThatNobodyRegistered) {
    leave_open(2);
    change<justdo::lock_place>(thread_at_ + offsetof(justdo::thread_block, locks), [](auto& place) {
        place.owned = justdo::lock_word(9, justdo::lock_offset(place.owned));
    });
    expect_refused(errc::function_changed, {"has registered, found kind 9"});
}

TEST_F(JustdoRefusal, AMutexThatCannotStandThereIsCorrupt) {
    leave_open(3, [](root& r) { total(&r.words, 2); });
    change<justdo::lock_place>(thread_at_ + offsetof(justdo::thread_block, locks), [](auto& place) {
        ASSERT_EQ(justdo::lock_kind(place.owned), HF_JUSTDO_EXCLUSIVE);
        place.owned += 4; // between two words: a sanitizer saw the lock being taken there
    });
    expect_refused(errc::corrupt, {"owned lock", way_out});
}

/// So `holdfast repair`, which has no kinds but the library's: the lock waits for a program that
/// has its own.
TEST_F(JustdoRefusal, AKindOfLockThatNobodyRegisteredIsLeftToItsProgramBySalvage) {
    leave_open(2);
    const std::uint64_t at =
        thread_at_ + offsetof(justdo::thread_block, locks) + offsetof(justdo::lock_place, intended);
    const auto of_kind = [&](std::uint32_t kind) {
        change<std::uint64_t>(at, [&](std::uint64_t& word) {
            ASSERT_NE(word, 0U) << "it was forgotten";
            word = justdo::lock_word(kind, justdo::lock_offset(word));
        });
    };
    of_kind(9);
    expect_refused(errc::function_changed, {"has registered, found kind 9", way_out});
    policy = recovery_policy::roll_back;
    salvage = true;
    for (int i = 0; i < 2; ++i) {
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->root<root>()->nodes.lock.taken, 1U);
    }
    policy = recovery_policy::complete;
    salvage = false;
    good_ = bytes();
    of_kind(plain_kind);
    {
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->root<root>()->nodes.lock.taken, 0U);
    }
    put_back();
    expect_refused(errc::function_changed, {"has registered, found kind 9"});
    salvage = true; // by a program that knows that no other has that kind
    EXPECT_TRUE(try_open());
    salvage = false;
    EXPECT_TRUE(try_open());
}

TEST_F(JustdoRefusal, WordsThatAreNoLogAreCorruptAndThePoolCanBeOpenedWithoutThem) {
    using entry_change = std::function<void(justdo::thread_log&)>;
    const std::pair<const char*, entry_change> cases[] = {
        {"program counter", [](auto& log) { log.counter &= ~(std::uint64_t{1} << 62); }},
        {"frame", [](auto& log) { log.counter += std::uint64_t{3} << 40; }},
        {"resume point", [](auto& log) { log.counter += 9; }},
        {"log entry",
         [](auto& log) {
             for (auto& e : log.entries) e.where |= std::uint64_t{1} << 40;
         }},
        {"log entry",
         [](auto& log) {
             for (auto& e : log.entries) e.where = std::uint64_t{99} << 56;
         }},
    };
    for (const auto& [word, how] : cases) {
        ::unlink(path_.c_str());
        thread_at_ = 0;
        leave_open(3);
        change<justdo::thread_log>(thread_at_, how);
        expect_refused(errc::corrupt, {word, way_out});
        give_up_and_go_on();
    }
}

TEST_F(JustdoRefusal, ACopyOntoItselfIsCorrupt) {
    leave_open(3);
    change<justdo::thread_log>(thread_at_, [](auto& log) {
        auto& e = log.entries[justdo::program_counter{log.counter}.active()];
        ASSERT_EQ(e.what(), justdo::action::store);
        const std::uint64_t at = e.offset();
        e = {justdo::log_entry::where_of(justdo::action::copy, 0, at), at + 8, 16};
    });
    expect_refused(errc::corrupt, {"log entry", way_out});
}

/// The words that decide where a section resumes: of the superblock, of the thread's log and locks,
/// of the heads of its frames.
TEST_F(JustdoRefusal, AnyBitOfAnyWordIsResumedOrRefusedAndNothingElse) {
    leave_open(8, [](root& r) { total(&r.words, 2); }); // in frames of add(), called by total()
    good_ = bytes();
    std::vector<std::uint64_t> places;
    const auto add_places = [&](std::uint64_t at, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; i += 8) places.push_back(at + i);
    };
    add_places(thread_at_, sizeof(justdo::thread_log) + 8);
    add_places(thread_at_ + offsetof(justdo::thread_block, locks), 2 * sizeof(justdo::lock_place));
    const std::uint64_t depth = justdo::program_counter{word_at(good_, thread_at_)}.depth();
    ASSERT_GT(depth, 2U);
    std::uint64_t head = frame_at(thread_at_);
    for (std::uint64_t d = 0; d < depth; ++d) {
        add_places(head, offsetof(justdo::frame_head, reserved));
        head += word_at(good_, head + offsetof(justdo::frame_head, bytes));
    }
    std::uint64_t super = 0;
    for (std::uint64_t at = 0; at + 8 < good_.size() && super == 0; at += 64)
        if (word_at(good_, at) == justdo::superblock_magic) super = at;
    ASSERT_NE(super, 0U);
    add_places(super, sizeof(justdo::superblock) + 16);

    const auto [refused, resumed] = try_every_bit_of(places);
    EXPECT_GT(refused, 1000U);
    EXPECT_GT(resumed,
              100U); // words that count for nothing there: reserved ones, the other entry's
}

/// The same for what a thread's block has grown by: the words that name it, the heads, places and
/// frames that are there.
TEST_F(JustdoRefusal, AnyBitOfWhatALogHasGrownByIsResumedOrRefused) {
    justdo::places_in_use = {.own = 2, .more = 1};
    const auto words_of_chain = [&](std::uint64_t word, std::size_t bytes) {
        std::vector<std::uint64_t> places{thread_at_ + word};
        std::size_t blocks = 0;
        for (std::uint64_t at = word_at(good_, thread_at_ + word); at != 0; ++blocks) {
            for (std::size_t i = 0; i < sizeof(justdo::more_head) + bytes; i += 8)
                places.push_back(at + i);
            at = word_at(good_, at + offsetof(justdo::more_head, next));
        }
        EXPECT_GT(blocks, 0U);
        return places;
    };
    leave_open(1, [](root& r) { grip(&r.locks); }); // with three locks
    good_ = bytes();
    auto [refused, resumed] = try_every_bit_of(
        words_of_chain(offsetof(justdo::thread_block, more_locks), 2 * sizeof(justdo::lock_place)));
    EXPECT_GT(refused, 300U);
    ::unlink(path_.c_str());
    thread_at_ = 0;
    leave_open(3, [](root& r) { plunge(&r.words); }); // with four frames
    good_ = bytes();
    auto more = words_of_chain(offsetof(justdo::thread_block, more_frames),
                               offsetof(justdo::frame_head, reserved));
    more.push_back(frame_at(thread_at_) + offsetof(justdo::frame_head, call_place));
    std::tie(refused, resumed) = try_every_bit_of(more);
    EXPECT_GT(refused, 300U);
}

/// A forged chain ends, and each refusal names its fault.
TEST_F(JustdoRefusal, AChainThatLeadsIntoItselfOrToAnotherThreadIsRefused) {
    justdo::places_in_use = {.own = 2, .more = 1};
    leave_open(1, [](root& r) { grip(&r.locks); });
    good_ = bytes();
    const std::uint64_t more =
        word_at(good_, thread_at_ + offsetof(justdo::thread_block, more_locks));
    const std::function<void(justdo::more_head&)> cases[] = {
        [&](auto& head) { head.next = more; },
        [&](auto& head) { head.next = thread_at_; },
        [&](auto& head) { head.next = ~std::uint64_t{0}; },
        [](auto& head) { head.next = 24; },
        [](auto& head) { head.thread += 4096; },
        [](auto& head) { head.number = 2; },
        [](auto& head) { head.magic = justdo::more_frames_magic; },
        [](auto& head) { head.bytes = std::uint64_t{1} << 50; },
        [](auto& head) { head.bytes = 64; },
    };
    for (const auto& how : cases) {
        put_back();
        change<justdo::more_head>(more, how);
        expect_refused(errc::corrupt, {"has grown by", way_out});
    }
    put_back();
    change<std::uint64_t>(thread_at_ + offsetof(justdo::thread_block, more_frames),
                          [&](auto& word) { word = more; });
    expect_refused(errc::corrupt, {"has grown by", way_out});
}

/// Salvage opens a copy whatever is wrong with a chain. Its locks are free, sections run, and grow,
/// and what they do is there when their process has been killed.
TEST_F(JustdoRefusal, SalvageWorksOnWhateverStandsInWhatALogHasGrownBy) {
    justdo::places_in_use = {.own = 2, .more = 1};
    std::size_t resumed = 0, given_up = 0;
    const auto works_on = [&](const std::string& which) {
        salvage = true;
        std::uint64_t balance = 0;
        {
            auto p = try_open();
            ASSERT_TRUE(p) << which << p.error().what();
            ++(p->recovered().resumed != 0 ? resumed : given_up);
            auto* const r = p->root<root>();
            EXPECT_EQ(r->locks.plain[0].taken, 0U) << which;
            r->locks.plain[1].taken = 0; // if the block that names it is lost, nobody knows of it
            for (hf::mutex* lock :
                 {&r->locks.accounts[0].lock, &r->locks.accounts[1].lock, &r->words.lock}) {
                ASSERT_TRUE(lock->try_lock()) << which;
                lock->unlock();
            }
            grip(&r->locks);
            plunge(&r->words);
            balance = r->locks.accounts[1].balance;
            pool::impl::abandon(std::move(*p));
        }
        salvage = false;
        auto p = try_open();
        ASSERT_TRUE(p) << which << p.error().what();
        EXPECT_EQ(p->recovered().sections_pending, 0U);
        EXPECT_EQ(p->root<root>()->locks.accounts[1].balance, balance) << which;
    };
    const auto damage_every_word_of = [&](std::uint64_t chain) {
        good_ = bytes();
        std::vector<std::uint64_t> places{thread_at_ + chain};
        for (std::uint64_t at = word_at(good_, thread_at_ + chain); at != 0;
             at = word_at(good_, at + offsetof(justdo::more_head, next)))
            for (std::uint64_t i = 0;
                 i < sizeof(justdo::more_head) + 2 * sizeof(justdo::lock_place); i += 8)
                places.push_back(at + i);
        for (const std::uint64_t at : places) {
            const std::uint64_t was = word_at(good_, at);
            for (const std::uint64_t word :
                 {std::uint64_t{0}, std::uint64_t{1}, thread_at_, was ^ 8,
                  was ^ std::uint64_t{1} << 40, was + 4096, ~std::uint64_t{0}}) {
                std::string bad = good_;
                std::memcpy(bad.data() + at, &word, sizeof word);
                ::unlink(path_.c_str());
                std::ofstream(path_, std::ios::binary) << bad;
                works_on(fmt::format("{:#x} at {:#x}: ", word, at));
                if (HasFatalFailure()) return;
            }
        }
    };
    leave_open(1, [](root& r) { grip(&r.locks); }); // with three locks
    damage_every_word_of(offsetof(justdo::thread_block, more_locks));
    if (HasFatalFailure()) return;
    ::unlink(path_.c_str());
    thread_at_ = 0;
    leave_open(3, [](root& r) { plunge(&r.words); }); // with four frames
    damage_every_word_of(offsetof(justdo::thread_block, more_frames));
    EXPECT_GT(resumed, 50U);
    EXPECT_GT(given_up, 100U);
}

/// A recursion without end takes all of the pool, and ends the process. The next open cannot
/// complete it either: it says so, and can give the section up.
TEST_F(JustdoRefusal, ARecursionWithoutEndSaysHowDeepItIsAndLeavesAPoolThatCanBeOpened) {
    hf_justdo_register(&deep_function);
    EXPECT_DEATH(
        {
            auto p = try_open();
            p->root<root>()->words.word[0] = 9;
            deep(&p->root<root>()->words);
        },
        "pool_full: no room for more of a thread's frames.*add .*call that is nested.*the section "
        "stays open.*half done");
    expect_refused(errc::pool_full, {"call that is nested", "the pool stays marked open", way_out},
                   true);
    policy = recovery_policy::roll_back;
    salvage = true;
    {
        auto p = try_open();
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->root<root>()->words.sum, 77U); // as it stood
        total(&p->root<root>()->words, 1);          // its lock is free
    }
    policy = recovery_policy::complete;
    salvage = false;
    auto p = try_open();
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->recovered().sections_pending, 0U);
}

/// If the section was cut short while it took or freed a block, the heap is whole afterwards.
TEST_F(JustdoRefusal, GivenUpAtAnAllocationLeavesAWholeHeap) {
    leave_open(1); // behind its allocation
    policy = recovery_policy::roll_back;
    salvage = true;
    auto p = try_open();
    ASSERT_TRUE(p) << p.error().what();
    std::vector<void*> taken;
    for (int i = 0; i < 300; ++i) taken.push_back(hf_alloc(sizeof(node)));
    std::ranges::sort(taken);
    EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end());
    const auto* r = p->root<root>();
    for (const node* n = r->nodes.head; n != nullptr; n = n->next)
        EXPECT_EQ(std::ranges::count(taken, static_cast<const void*>(n)), 0);
}

} // namespace
