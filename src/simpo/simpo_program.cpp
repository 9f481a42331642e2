// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Persistent objects (holdfast/simpo.hpp), in every persistence domain: groups, checkpoints into
// both copies, a log that goes round and runs full, threads that defer while another one commits,
// objects that come and go. Calls append digits, so their order shows. Deferred calls are buffered.
// An uncommitted tail must not come back with records that are later logged in its place.
#include <check/pool_program.hpp>
#include <simpo/objects.hpp>
#include <simpo/view.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/swap.hpp>
#include <holdfast/simpo/table.hpp>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sched.h>
#include <span>
#include <string>

namespace {

using namespace hf;
using namespace hf::crash;

using near = std::array<std::uint64_t, 8>; // makes a record of two lines
using far = std::array<std::uint64_t, 55>; // makes one of eight

/// Two numbers that have nothing in common. A call lets the other thread go on halfway: that is
/// where it helps.
class pair {
public:
    static constexpr simpo::class_name simpo_class{"pair", 1};
    void append(std::uint32_t which, std::uint64_t digit) noexcept {
        const std::uint64_t before = of_[which % 2].number;
        ::sched_yield();
        of_[which % 2].number = before * 10 + digit;
    }
    std::uint64_t number(std::uint32_t which) const { return of_[which % 2].number; }

private:
    struct alignas(64) part {
        std::uint64_t number = 0;
    };
    std::array<part, 2> of_{};
};

/// Several lines; a call changes two of them.
class digits {
public:
    static constexpr simpo::class_name simpo_class{"digits", 1};
    void append(std::uint64_t digit) noexcept {
        number_ = number_ * 10 + digit;
        sums_[digit % sums_.size()] += digit;
    }
    void append_near(std::uint64_t digit, near filling) noexcept { append(digit + filling[7]); }
    void append_far(std::uint64_t digit, far filling) noexcept {
        for (const std::uint64_t each : filling) digit += each; // a record that is torn shows
        append(digit);
    }
    std::uint64_t append_and_get(std::uint64_t digit) noexcept { return append(digit), number_; }
    std::uint64_t number() const noexcept { return number_; }
    std::uint64_t sum() const {
        std::uint64_t all = 0;
        for (const std::uint64_t s : sums_) all += s;
        return all;
    }

private:
    std::uint64_t number_ = 0;
    std::array<std::uint64_t, 20> sums_{};
};

struct variant {
    const char* name;
    hf::mode mode = hf::mode::pmem;
    bool eadr = false;
};
constexpr variant variants[] = {
    {"adr"}, {"eadr", hf::mode::pmem, true}, {"process", hf::mode::process}};

class simpo_program : public pool_program {
public:
    explicit simpo_program(const variant& v)
        : pool_program({.layout = "crash/simpo",
                        .engines = {simpo::engine()},
                        .mode = v.mode,
                        .eadr = v.eadr}) {}
    void setup(pool& p) override { (void)make(p, "it"); }
    unsigned operations_after() const override { return 1; }
    void run_after(pool& p, unsigned) override { append_and_sync(p, 9); }
    void describe(pool& p, state& s) override {
        const auto all = simpo::objects_of(p);
        s.expect(static_cast<bool>(all), "the engine is there");
        for (const char* name : {"it", "other"}) {
            const auto found = simpo::object<digits>::find(p, name);
            s.add(static_cast<bool>(found));
            if (!found) continue;
            found->internals().look([&](const void* at) { describe(at, s); });
            s.expect(found->internals().log().valid(), "cursors are in their order");
        }
        (*all)->for_each_block([&](const void* block) { s.object(block); });
    }

protected:
    static void describe(const void* object, state& s) {
        const auto& d = *static_cast<const digits*>(object);
        s.add(d.number());
        std::uint64_t sum = 0;
        for (std::uint64_t n = d.number(); n != 0; n /= 10) sum += n % 10;
        s.expect(d.sum() == sum, "all of a call has happened, or nothing of it");
    }
    static simpo::object<digits> make(pool& p, const char* name, std::uint64_t log_bytes = 1_KiB) {
        auto made = simpo::object<digits>::create(p, name, simpo::object_options{log_bytes});
        if (!made) std::abort();
        return *made;
    }
    static simpo::object<digits> get(pool& p, const char* name = "it") {
        auto found = simpo::object<digits>::find(p, name);
        if (!found) std::abort();
        return *found;
    }
    static void append_and_sync(pool& p, std::uint64_t digit) {
        auto it = get(p);
        it.defer<&digits::append>(digit);
        it.sync();
    }
};

/// An operation is a group of several records, or one deferred call.
class groups final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 3; }
    bool buffered(unsigned, unsigned i) const override { return i == 2; }
    void run(pool& p, unsigned, unsigned i) override {
        auto it = get(p);
        it.defer<&digits::append>(3 * i + 1);
        if (i == 2) return;
        it.defer<&digits::append>(3 * i + 2);
        if (i == 0) (void)it.call<&digits::append_and_get>(3U);
        else (void)it.call<&digits::number>();
    }
};

/// A deferred call counts when hf::settle has returned.
class settled final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 4; }
    bool buffered(unsigned, unsigned i) const override { return i % 2 == 0; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i % 2 == 1) return hf::settle(p);
        auto it = get(p);
        it.defer<&digits::append>(i + 1);
        it.defer<&digits::append>(i + 2);
    }
};

/// Into one copy, into the other, and into the first again.
class checkpoints final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 3; }
    void run(pool& p, unsigned, unsigned i) override {
        append_and_sync(p, i + 1);
        get(p).checkpoint();
    }
    void run_after(pool& p,
                   unsigned i) override { // the copy of before the failure is written again
        simpo_program::run_after(p, i);
        get(p).checkpoint();
    }
};

/// Records as long as half the log: each that is deferred commits the one before it, and truncates.
class full_log final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 3; }
    bool buffered(unsigned, unsigned) const override { return true; }
    void run(pool& p, unsigned, unsigned i) override {
        get(p).defer<&digits::append_far>(i + 1, far{});
    }
};

/// Small records, often enough to pass the log's end.
class round_trip final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 9; }
    void run(pool& p, unsigned, unsigned i) override { append_and_sync(p, i % 8 + 1); }
};

/// Both threads defer, and one of them commits everything. A record of the other one goes round the
/// log's end: it is written in two pieces, and the commit may come between them.
class two_threads final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        auto it = make(p, "it", 2_KiB); // of 32 lines
        for (int i = 0; i < 15; ++i) append_and_sync(p, 0);
        (void)it.call<&digits::append_and_get>(0U); // the 31st
        it.checkpoint();
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread + 1; }
    bool buffered(unsigned, unsigned i) const override { return i == 0; }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto it = get(p);
        if (i == 0 && thread == 0) it.defer<&digits::append_near>(1, near{});
        else if (i == 0) it.defer<&digits::append>(2);
        else (void)it.call<&digits::append_and_get>(3U);
    }
};

/// Two defer, a third one calls.
class one_commits final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned threads() const override { return 3; }
    unsigned operations(unsigned) const override { return 1; }
    bool buffered(unsigned thread, unsigned) const override { return thread != 2; }
    void run(pool& p, unsigned thread, unsigned) override {
        auto it = get(p);
        if (thread == 2) (void)it.call<&digits::append_and_get>(3U);
        else it.defer<&digits::append>(thread + 1);
    }
};

/// Both threads defer a call with a hint of its own, and commit. The first one makes both calls, or
/// the one that waits for it makes one of them. Then there is a checkpoint, which must contain the
/// helper's call.
class helpers final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        auto made = simpo::object<pair>::create(p, "pair", simpo::object_options{1_KiB});
        if (!made) std::abort();
        defer(*made, 0); // from now on a waiting thread helps
        made->checkpoint();
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned) const override { return 2; }
    bool buffered(unsigned, unsigned i) const override { return i == 0; }
    void run(pool& p, unsigned thread, unsigned i) override {
        auto it = get_pair(p);
        if (i == 0) defer(it, thread);
        else it.checkpoint();
    }
    unsigned operations_after() const override { return 0; }
    void describe(pool& p, state& s) override {
        get_pair(p).internals().look([&](const void* at) {
            const auto& is = *static_cast<const pair*>(at);
            for (const std::uint64_t n : {is.number(0), is.number(1)}) s.add(n);
        });
        const auto all = simpo::objects_of(p);
        (*all)->for_each_block([&](const void* block) { s.object(block); });
    }
    static simpo::object<pair> get_pair(pool& p) {
        auto found = simpo::object<pair>::find(p, "pair");
        if (!found) std::abort();
        return *found;
    }
    static void defer(simpo::object<pair>& it, unsigned which) {
        it.defer_beside<&pair::append>(simpo::hint{static_cast<std::uint16_t>(which + 1)}, which,
                                       std::uint64_t{which} + 3);
    }
};

/// Calls of a caller; behind a failure it repeats them all from the first, and each answers as it
/// did. There is a checkpoint between them, and a log so short that it is truncated. Which have
/// been made follows from the number.
class repeated final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        auto made = simpo::object<digits>::create(
            p, "it", simpo::object_options{.log_bytes = 1_KiB, .callers = 2, .results = 4});
        if (!made || !simpo::caller<digits>::of(*made, 5)) std::abort();
    }
    unsigned operations(unsigned) const override { return calls; }
    bool buffered(unsigned, unsigned i) const override { return i % 2 == 0; }
    void run(pool& p, unsigned, unsigned i) override {
        auto me = of(p);
        const std::uint64_t digit = i + 1;
        if (i == 3) get(p).checkpoint();
        if (i % 2 == 0) return me.defer<&digits::append>(digit, digit);
        const auto answer = me.call<&digits::append_and_get>(digit, digit);
        if (!answer || *answer != number_after(digit)) std::abort();
    }
    unsigned operations_after() const override { return calls; }
    void run_after(pool& p, unsigned i) override {
        run(p, 0, i);
        get(p).sync();
    }
    static constexpr unsigned calls = 4;
    static std::uint64_t number_after(std::uint64_t digit) {
        std::uint64_t number = 0;
        for (std::uint64_t d = 1; d <= digit; ++d) number = number * 10 + d;
        return number;
    }
    static simpo::caller<digits> of(pool& p) {
        auto found = simpo::caller<digits>::of(get(p), 5);
        if (!found) std::abort();
        return *found;
    }
};

/// Calls of two callers in one group, as of processes that share the object: both survive, or none.
/// Behind a failure both repeat all of theirs, and each answers as it did.
class together final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        auto made = simpo::object<digits>::create(
            p, "it", simpo::object_options{.log_bytes = 1_KiB, .callers = 2, .results = 4});
        if (!made) std::abort();
        for (const std::uint64_t id : {5U, 6U})
            if (!simpo::caller<digits>::of(*made, id)) std::abort();
    }
    unsigned operations(unsigned) const override { return calls; }
    void run(pool& p, unsigned, unsigned i) override {
        using append = simpo::detail::registered<digits, &digits::append_and_get>;
        (void)append::done;
        const std::uint64_t number = i + 1, first = 2 * i + 1, second = first + 1;
        std::array<std::uint64_t, 2> answers{};
        std::array<simpo::detail::one_call, 2> both{
            {{&append::entry, {5, number}, &first, &answers[0], false, {}},
             {&append::entry, {6, number}, &second, &answers[1], false, {}}}};
        get(p).internals().call_all_once(both);
        std::uint64_t before = 0;
        for (std::uint64_t d = 1; d < first; ++d) before = before * 10 + d;
        if (answers[0] != before * 10 + first || answers[1] != answers[0] * 10 + second)
            std::abort();
    }
    unsigned operations_after() const override { return calls; }
    void run_after(pool& p, unsigned i) override { run(p, 0, i); }
    static constexpr unsigned calls = 3;
};

/// A deterministic program, run again from its beginning after each failure. Beside it, a caller is
/// made and dismissed.
class rerun final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        if (!simpo::object<digits>::create(
                p, "it", simpo::object_options{.log_bytes = 1_KiB, .callers = 2, .results = 4}))
            std::abort();
    }
    unsigned operations(unsigned) const override { return 3; }
    bool buffered(unsigned, unsigned i) const override { return i == 1; }
    void run(pool& p, unsigned, unsigned i) override { steps(p, i + 1); }
    unsigned operations_after() const override { return 3; }
    void run_after(pool& p, unsigned i) override {
        steps(p, i + 1);
        get(p).sync();
        if (!simpo::caller<digits>::of(get(p), 8) ||
            !simpo::caller<digits>::dismiss(get(p), 8).ok())
            std::abort();
    }
    static void steps(pool& p, unsigned count) {
        auto me = simpo::retraced<digits>::of(get(p), 7);
        if (!me) std::abort();
        const auto first = me->call<&digits::append_and_get>(std::uint64_t{1});
        if (!first || *first != 1) std::abort();
        if (count > 1) me->defer<&digits::append>(*first + 1);
        if (count < 3) return;
        const auto seen = me->call<&digits::number>();
        if (!seen || *seen != 12) std::abort();
    }
};

/// Becomes another one, with a longer log and then a shorter one, while a call is pending.
class remade final : public simpo_program {
    using simpo_program::simpo_program;
    unsigned operations(unsigned) const override { return 3; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 1) return append_and_sync(p, 2);
        get(p).defer<&digits::append>(i + 1);
        remake(p, i == 0 ? 4_KiB : 1_KiB);
    }
    void run_after(pool& p, unsigned i) override {
        simpo_program::run_after(p, i);
        remake(p, 2_KiB);
    }
    static void remake(pool& p, std::uint64_t log_bytes) {
        const auto same = [](const digits& was) { return was; };
        if (!simpo::remake<digits, digits>(p, "it", {.log_bytes = log_bytes}, same)) std::abort();
    }
};

/// One that takes the place of another one, and of its log: of whole chunks, the first that are
/// free.
class come_and_go final : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool&) override {}
    unsigned operations(unsigned) const override { return 4; }
    void run(pool& p, unsigned, unsigned i) override {
        if (i == 0) (void)make(p, "it", 4_KiB);
        if (i == 1) append_and_sync(p, 1);
        if (i == 2 && !simpo::object<digits>::destroy(p, "it").ok()) std::abort();
        if (i == 3) (void)make(p, "other", 4_KiB);
    }
    unsigned operations_after() const override { return 0; }
};

/// The object is swapped out, comes back, and is swapped out again: changed, and unchanged. Then it
/// makes room for another object, and the other one for it. The recovered pool reads from a folder
/// with every file that ever existed, because failures are tried when all of this is over.
/// swap_test checks that the files which a failure needs exist.
class swapped : public simpo_program {
public:
    explicit swapped(const variant& v) : simpo_program(v) {
        options_.create_bytes = options_.max_bytes = 128_KiB;
    }

private:
    void setup(pool& p) override {
        folder_.emplace();
        kept_.emplace();
        (void)make(p, "it", 32_KiB);
    }
    void teardown() override {
        folder_.reset();
        kept_.reset();
    }
    unsigned operations(unsigned) const override { return 8; }
    void run(pool& p, unsigned thread, unsigned i) override {
        swap_to(p, folder_);
        work(p, thread, i);
        for (const auto& each : std::filesystem::directory_iterator(folder_->path)) {
            const auto kept = kept_->path / each.path().filename();
            std::filesystem::remove(kept); // of a run before this one
            std::filesystem::create_hard_link(each, kept);
        }
    }
    virtual void work(pool& p, unsigned, unsigned i) {
        if (i == 1 || i == 3 || i == 5) return swap_out(p);
        if (i == 6) return (void)make(p, "other", 32_KiB);
        if (i != 4) append_and_sync(p, i + 1);
        // A state that is lost without a failure is lost in the runs that this one is compared
        // with, too.
        const std::uint64_t expected = i == 0 ? 1 : i < 7 ? 13 : 138;
        if (get(p).call<&digits::number>() != expected) std::abort();
    }
    void run_after(pool& p, unsigned i) override {
        swap_to(p, kept_);
        if (simpo::list(p)->size() == 1) simpo_program::run_after(p, i); // else another one goes
    }
    void describe(pool& p, state& s) override {
        simpo::objects& all = **simpo::objects_of(p);
        auto folder = simpo::swap_folder::open(*p.internals().file, kept_->path, {}, 1);
        const auto listed = all.list();
        s.expect(folder && listed, "the engine and the folder are there");
        for (const simpo::object_info& each : *listed) s.add(each.name == "it");
        all.for_each_block([&](const void* block) {
            s.object(block);
            const auto& head = *static_cast<const simpo::object_head*>(block);
            if (head.magic != simpo::object_magic && !simpo::is_swapped(head)) return;
            if (!simpo::is_swapped(head)) {
                const auto it = simpo::object<digits>::find(p, head.name);
                return it->internals().look(
                    [&](const void* at) { simpo_program::describe(at, s); });
            }
            alignas(digits) std::byte copy[round_up(sizeof(digits), line_bytes)];
            s.expect(folder && (*folder).read(head, copy).ok(), "its file has it");
            simpo_program::describe(copy, s);
        });
    }

protected:
    static void swap_out(pool& p) {
        if (!simpo::swap_out(p, "it").ok()) std::abort();
    }

private:
    struct temporary_folder {
        std::filesystem::path path;
        temporary_folder() {
            char name[] = "/dev/shm/hf_swapped.XXXXXX";
            if (::mkdtemp(name) == nullptr) std::abort();
            path = name;
        }
        ~temporary_folder() { std::filesystem::remove_all(path); }
        temporary_folder(const temporary_folder&) = delete;
    };
    static void swap_to(pool& p, const std::optional<temporary_folder>& folder) {
        const status given = simpo::swap_to(p, folder->path);
        if (!given.ok() && given.code() != errc::exists) std::abort();
    }
    std::optional<temporary_folder> folder_, kept_;
};

/// One defers and commits, the other one puts the object away meanwhile: if nothing is logged that
/// is not done.
class swapped_beside final : public swapped {
    using swapped::swapped;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 3 : 1; }
    bool buffered(unsigned, unsigned i) const override { return i < 2; } // a swap promises nothing
    void work(pool& p, unsigned thread, unsigned i) override {
        if (thread == 1) {
            get(p).defer<&digits::append>(5); // so that a group is committed when the object goes
            return (void)simpo::swap_out(p, "it"); // it may be used just then
        }
        if (i == 0) handle_.emplace(get(p)); // a search waits for a thread that swaps out
        if (i == 1) handle_->defer<&digits::append>(3);
        if (i == 2) (void)handle_->call<&digits::append_and_get>(4U);
    }
    unsigned operations_after() const override { return 0; }
    std::optional<simpo::object<digits>> handle_;
};

/// One thread goes from one copy to the other, and round its log; one looks at the object, and the
/// other thread goes on between any two of its loads. It sees whole groups, all that were committed
/// before it looked, and never less than before.
class viewed : public simpo_program {
    using simpo_program::simpo_program;
    void setup(pool& p) override {
        (void)make(p, "it", 2_KiB); // of 32 lines
        append_and_sync(p, 0);
    }
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 4 : 1; }
    void run(pool& p, unsigned thread, unsigned i) override {
        if (thread == 1) look_twice(p);
        else write(p, i);
    }
    virtual void write(pool& p, unsigned i) { // both copies, then once round the log
        if (i > 1) return append_twice(p, i + 1);
        auto it = get(p);
        it.defer<&digits::append>(i + 1);
        it.defer<&digits::append>(i + 1);
        it.checkpoint();
    }

protected:
    static void append_twice(pool& p, std::uint64_t digit) { // 17 lines
        auto it = get(p);
        it.defer<&digits::append_far>(digit, far{});
        it.defer<&digits::append_far>(digit, far{});
        it.sync();
    }
    static std::uint64_t number_of(const void* object) {
        return static_cast<const digits*>(object)->number();
    }
    /// Reports a fault as a state that no operation leaves.
    static void look_twice(pool& p) {
        simpo::detail::seen it(p.internals(), "it", {"digits", 1, sizeof(digits)});
        std::uint64_t seen = 0;
        for (int looks = 0; looks < 2; ++looks) {
            const std::uint64_t made = number_of(get(p).internals().working());
            if (!it.look().ok()) return append_and_sync(p, 7);
            const std::uint64_t number = number_of(it.object());
            std::uint64_t whole = 11223344;
            while (whole != 0 && whole != number) whole /= 100;
            if (whole != number) return append_and_sync(p, 8);
            if (number < made || number < seen) return append_and_sync(p, 9);
            seen = number;
        }
    }
};

/// Another one takes the object's name, and another one its place: the first of its records are
/// where those were that the look reads, and its index is not beyond them.
class viewed_anew final : public viewed {
    using viewed::viewed;
    unsigned operations(unsigned thread) const override { return thread == 0 ? 4 : 1; }
    void write(pool& p, unsigned i) override {
        if (i == 0) return append_twice(p, 1);
        if (i == 2) return (void)make(p, "other", 2_KiB);
        if (i == 3) {
            auto other = get(p, "other");
            other.defer<&digits::append_far>(1U, far{});
            return other.sync();
        }
        const auto same = [](const digits& was) { return was; };
        if (!simpo::remake<digits, digits>(p, "it", {.log_bytes = 2_KiB}, same)) std::abort();
    }
    unsigned operations_after() const override { return 0; }
};

/// While a reader looks, the object is swapped out, comes back, and is swapped out unchanged.
/// Another object takes its place, and the first one returns to that place.
class viewed_swapped final : public swapped {
    using swapped::swapped;
    unsigned threads() const override { return 2; }
    unsigned operations(unsigned thread) const override { return thread == 0 ? 4 : 1; }
    void work(pool& p, unsigned thread, unsigned i) override {
        if (thread == 1) return look(p);
        if (i == 0) append_and_sync(p, 1);
        if (i < 2) swap_out(p);
        if (i == 1) return (void)make(p, "other", 32_KiB);
        if (i == 2 && !simpo::object<digits>::destroy(p, "other").ok()) std::abort();
        (void)get(p);
        if (i == 3) append_and_sync(p, 2);
    }
    unsigned operations_after() const override { return 0; }
    /// Reports a fault as a state that no operation leaves.
    static void look(pool& p) {
        simpo::detail::seen it(p.internals(), "it", {"digits", 1, sizeof(digits)});
        std::uint64_t seen = 0;
        for (int looks = 0; looks < 2; ++looks) {
            if (!it.look().ok()) return append_and_sync(p, 7);
            const std::uint64_t number = reinterpret_cast<const digits*>(it.object())->number();
            if (number != 0 && number != 1 && number != 12) return append_and_sync(p, 8);
            if (number < seen) return append_and_sync(p, 9);
            seen = number;
        }
    }
};

template <class Program>
bool add_variants(const std::string& what, std::span<const variant> of = variants) {
    for (const variant& v : of) add("simpo/" + what + "/" + v.name, std::make_unique<Program>(v));
    return true;
}
/// Only where caches survive: which lines of a whole log a failure takes, in millions of ways, has
/// no effect on the reader.
constexpr auto lasting = std::span(variants).subspan(1);
[[maybe_unused]] const bool added =
    (add_variants<groups>("groups"), add_variants<settled>("settled"),
     add_variants<checkpoints>("checkpoints"), add_variants<full_log>("full log"),
     add_variants<round_trip>("round trip"), add_variants<two_threads>("two threads"),
     add_variants<one_commits>("one commits"), add_variants<repeated>("repeated"),
     add_variants<together>("together"), add_variants<rerun>("rerun"),
     add_variants<remade>("remade"), add_variants<helpers>("helpers"),
     add_variants<come_and_go>("come and go"), add_variants<swapped>("swapped"),
     add_variants<swapped_beside>("swapped beside"),
     add_variants<viewed_swapped>("viewed swapped", lasting),
     add_variants<viewed>("viewed", lasting), add_variants<viewed_anew>("viewed anew"));

} // namespace
