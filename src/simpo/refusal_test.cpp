// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: an object or a record that does not fit is refused, with what was expected and what was
// found, and the file stays as it was. Method: pools made by classes and functions that have
// changed, and forged ones.
#include <simpo/functions.hpp>
#include <simpo/test_support.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/justdo_abi.h>
#include <holdfast/justdo.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace hf::simpo {
namespace {

using test::digits;
using test::test_pool;

struct digits_2 { // the class as a later build has it
    static constexpr class_name simpo_class{"digits", 2};
    std::array<std::uint64_t, 202> cells;
};
struct short_digits {
    static constexpr class_name simpo_class{"digits", 1};
    std::uint64_t cell;
};

std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void expect_refused(const status& s, errc code, std::initializer_list<const char*> parts) {
    EXPECT_EQ(s.code(), code) << s.what();
    for (const char* part : parts) EXPECT_NE(s.what().find(part), std::string::npos) << s.what();
}

TEST(SimpoRefusal, AnotherClassVersionOrSizeIsToldApart) {
    test_pool in;
    in.open();
    in.make<digits>();
    const auto newer = object<digits_2>::find(in.pool(), "it");
    ASSERT_FALSE(newer);
    expect_refused(newer.error(), errc::wrong_layout,
                   {"expected class digits of version 2, 1616 bytes",
                    "found digits of version 1, 1616 bytes"});
    const auto smaller = object<short_digits>::find(in.pool(), "it");
    ASSERT_FALSE(smaller);
    expect_refused(smaller.error(), errc::wrong_layout, {"8 bytes", "1616 bytes"});
    EXPECT_EQ(object<short_digits>::destroy(in.pool(), "it").code(), errc::wrong_layout);
    expect_refused(object<digits>::find(in.pool(), "other").error(), errc::not_found,
                   {"\"other\""});
}

/// A section would not take it back, or would use it once more when it is resumed.
TEST(SimpoRefusal, ASectionUsesNoObject) {
    static const hf_arg schema[] = {{0, sizeof(void*), HF_ARG_POOL_POINTER}};
    static const hf_txfunc described{HF_ABI_VERSION, sizeof(void*), 2472, 1,      "uses",
                                     "here",         schema,        1,    nullptr};
    static const hf_justdo_function resumes{HF_ABI_VERSION, 8, 2473, 1,     "resumes",
                                            "here",         3, 0,    [] {}, nullptr};
    hf_justdo_register(&resumes);
    const auto in_section = [](bool resuming, const auto& use) {
        test_pool in;
        in.how.engines.push_back(undo::engine());
        in.how.engines.push_back(justdo::engine());
        in.open();
        auto made = in.make<digits>();
        auto* const word = in.pool().root<std::uint64_t>();
        if (resuming) {
            std::uint32_t resumed = 0;
            static_cast<void>(hf_justdo_enter(&resumes, word, &resumed));
            hf_justdo_lock(word, HF_JUSTDO_NO_LOCK, 1);
            use(in.pool(), made);
            hf_justdo_unlock(word, HF_JUSTDO_NO_LOCK, 2);
            hf_justdo_leave();
        } else {
            hf_undo_begin(&described, &word);
            use(in.pool(), made);
            hf_undo_commit();
        }
        EXPECT_TRUE(object<digits>::find(in.pool(), "it"));
    };
    for (const bool resuming : {false, true}) {
        in_section(resuming, [](pool& p, auto&) {
            expect_refused(object<digits>::create(p, "another").error(), errc::bad_argument,
                           {"inside a section"});
            expect_refused(object<digits>::destroy(p, "it"), errc::bad_argument,
                           {"inside a section"});
        });
        const auto finds = [](pool& p, auto&) { static_cast<void>(object<digits>::find(p, "it")); };
        EXPECT_DEATH(in_section(resuming, finds),
                     "find: a persistent object is used inside a section");
        const auto keeps = [](pool&, auto& made) { made.checkpoint(); };
        EXPECT_DEATH(in_section(resuming, keeps),
                     "checkpoint: a persistent object is used inside a section");
    }
}

TEST(SimpoRefusal, NamesAndLogsHaveBounds) {
    test_pool in;
    in.open();
    for (const auto& [name, found] : {std::pair{std::string(), "found 0"},
                                      {std::string(64, 'x'), "found 64"},
                                      {std::string("a\0b", 3), "found 3 with a 0"}})
        expect_refused(object<digits>::create(in.pool(), name).error(), errc::bad_argument,
                       {"expected 1 to 63 bytes, none of them 0", found});
    EXPECT_TRUE(object<digits>::create(in.pool(), std::string(63, 'x')));
    for (const std::uint64_t bytes : {std::uint64_t{1023}, 2_GiB})
        expect_refused(object<digits>::create(in.pool(), "it", object_options{bytes}).error(),
                       errc::bad_argument, {"expected 1024 to 1073741824, found"});
}

TEST(SimpoRefusal, APoolWithoutTheEngineIsRefusedAndNoObjectIsMadeWithoutIt) {
    test_pool in;
    in.how.engines.clear();
    in.open();
    expect_refused(object<digits>::create(in.pool(), "it").error(), errc::missing_engine,
                   {"hf::simpo::engine()"});
    in.how.engines = {engine()};
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(1);
    d.sync();
    in.let_go();
    in.how.engines.clear();
    const std::string before = content(in.path());
    expect_refused(in.try_open(), errc::missing_engine, {"simpo"});
    EXPECT_EQ(content(in.path()), before);
}

/// Changes a committed record of the one object so that its check holds again.
template <class Change> void forge_record(test_pool& in, position at, Change&& change) {
    auto d = in.get<digits>();
    const object_head& h = d.internals().head();
    auto* const lines = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&h)) +
                        layout_of(h.object_bytes, h.log_lines).log_offset;
    record r{};
    std::memcpy(&r, lines + at % h.log_lines * line_bytes, line_bytes);
    change(r);
    r.head.check = r.sum(h.salt);
    std::memcpy(lines + at % h.log_lines * line_bytes, &r, line_bytes);
}

TEST(SimpoRefusal, ALogWithAFunctionThatThisBuildHasNotIsRefusedAndThePoolUntouched) {
    static_assert(engine_rows::simpo.build == recovery_build::its_build);
    const struct {
        void (*change)(record&);
        const char* said;
    } cases[] = {{[](record& r) { r.head.function ^= 1; }, "this build does not have"},
                 {[](record& r) { r.head.version = 7; }, "digits::append of version 7"},
                 {[](record& r) { r.head.schema ^= 1; }, "this build has version 1, schema"},
                 {[](record& r) { r.head.words = 2; }, "digits::append of version 1"}};
    for (const auto& each : cases) {
        test_pool in;
        in.open();
        auto d = in.make<digits>();
        d.defer<&digits::append>(1);
        d.sync();
        const position second = d.internals().log().head();
        d.defer<&digits::append>(2);
        d.sync();
        forge_record(in, second, each.change);
        in.let_go();
        const std::string before = content(in.path());
        expect_refused(in.try_open(), errc::function_changed, {"object \"it\"", each.said});
        EXPECT_EQ(content(in.path()), before);
        in.how.recovery = recovery_policy::roll_back; // keeps the group before it
        in.open();
        EXPECT_EQ(in.get<digits>().call<&digits::number>(), 1U);
        EXPECT_EQ(in.pool().warnings().size(), 1U);
    }
}

/// Recovery called the functions of this build's class on an object of an older version, which may
/// be shorter. It looked for them by the class's name alone, and only find, later, looked at
/// version and size.
TEST(SimpoRefusal, ALogOfAnotherVersionOrSizeOfItsClassIsNotReplayed) {
    const struct {
        void (*change)(object_head&);
        const char* said;
    } cases[] = {{[](object_head& h) { h.class_version = 9; }, "version 9"},
                 {[](object_head& h) { h.object_bytes += 8; }, "1624 bytes"}};
    static_assert(sizeof(digits) == 1616); // 8 more change no part's place
    for (const auto& each : cases) {
        test_pool in;
        in.open();
        auto d = in.make<digits>();
        d.defer<&digits::append>(1);
        d.sync();
        auto& h = const_cast<object_head&>(d.internals().head());
        each.change(h);
        h.check = head_check(h);
        in.let_go();
        const std::string before = content(in.path());
        expect_refused(in.try_open(), errc::function_changed,
                       {"object \"it\"", "digits::append", each.said});
        EXPECT_TRUE(content(in.path()) == before);
    }
}

TEST(SimpoRefusal, AForgedHeadIsCorrupt) {
    const struct {
        void (*change)(object_head&);
        bool sum;
        const char* said;
    } cases[] = {
        {[](object_head& h) { h.magic = 1; }, true, "magic"},
        {[](object_head& h) { h.log_lines *= 2; }, false, "checksum"},
        {[](object_head& h) { h.log_lines = 48; }, true, "in bounds"},
        {[](object_head& h) { h.log_lines = 0; }, true, "in bounds"},
        {[](object_head& h) { h.object_bytes = 0; }, true, "in bounds"},
        {[](object_head& h) { h.object_bytes = ~std::uint64_t{0}; }, true, "in bounds"},
        {[](object_head& h) { h.object_bytes = 1ULL << 37; }, true, "none that fits"},
        {[](object_head& h) { std::memset(h.name, 'x', sizeof h.name); }, true, "in bounds"},
        {[](object_head& h) { h.class_text[0] = 0; }, true, "in bounds"},
        {[](object_head& h) { h.resilient = ~std::uint64_t{0}; }, true, "resilient index"},
        {[](object_head& h) { h.resilient ^= 1; }, true, "resilient index"},
        {[](object_head& h) { h.resilient = index_of(h.salt, position_max + 1, 0); }, true,
         "resilient index"}};
    for (const auto& each : cases) {
        test_pool in;
        in.open();
        auto& h = const_cast<object_head&>(in.make<digits>().internals().head());
        each.change(h);
        if (each.sum) h.check = head_check(h);
        in.let_go();
        const std::string before = content(in.path());
        expect_refused(in.try_open(), errc::corrupt, {"SIMPO", each.said});
        EXPECT_EQ(content(in.path()), before);
    }
}

TEST(SimpoRefusal, EveryBitOfAResilientIndexIsLookedAt) {
    test_pool in;
    in.open();
    auto it = in.make<digits>();
    it.defer<&digits::append>(std::uint32_t{7});
    it.checkpoint();
    it.defer<&digits::append>(std::uint32_t{8});
    it.sync();
    auto& word = const_cast<std::uint64_t&>(it.internals().head().resilient);
    for (unsigned bit = 0; bit < 64; ++bit) {
        word ^= std::uint64_t{1} << bit;
        EXPECT_FALSE(index_holds(word, it.internals().head().salt)) << bit;
        word ^= std::uint64_t{1} << bit;
    }
    word ^= 1; // the copy of before
    in.let_go();
    expect_refused(in.try_open(), errc::corrupt, {"SIMPO", "resilient index"});
}

TEST(SimpoRefusal, ForgedWordsAreCorrupt) {
    test_pool in;
    in.open();
    in.make<digits>();
    const std::uint64_t first = object_words(*superblock_of(*in.pool().internals().file))[0];
    for (const std::uint64_t word : {first, std::uint64_t{8}, first + 64, ~std::uint64_t{0}}) {
        test_pool forged;
        forged.open();
        forged.make<digits>();
        object_words(*superblock_of(*forged.pool().internals().file))[1] = word;
        forged.let_go();
        EXPECT_EQ(forged.try_open().code(), errc::corrupt) << word;
    }
}

TEST(SimpoRefusal, AHandleOnWhatWasDestroyedIsStopped) {
    const auto use = [](auto&& how) { // in the process that dies
        test_pool in;
        in.open();
        auto d = in.make<digits>();
        if (object<digits>::destroy(in.pool(), "it").ok()) how(d);
    };
    EXPECT_DEATH(use([](auto& d) { d.template defer<&digits::append>(1); }), "was destroyed");
    EXPECT_DEATH(use([](auto& d) { d.sync(); }), "was destroyed");
}

TEST(SimpoRefusal, AFunctionThatUsesAHandleOnItsObjectIsStopped) {
    const auto inside = [](auto&& use) { // in the process that dies
        test_pool in;
        in.open();
        auto d = in.make<digits>();
        for (int i = 0; i < 100; ++i) d.sync(); // the lock is this thread's own
        const detail::begun_call running(d.internals(), nullptr, nullptr);
        use(d);
    };
    EXPECT_DEATH(inside([](auto& d) { (void)d.template call<&digits::number>(); }),
                 "call: a function of the persistent object \"it\" uses a handle on it");
    EXPECT_DEATH(inside([](auto& d) { d.template defer<&digits::append>(1); }),
                 "defer: a function of the persistent object \"it\" uses a handle on it");
}

/// Found by the structures in holdfast/simpo/: recovery called queue<T, 64>'s function on a
/// queue<T, 128>, because both called themselves "queue" and whichever was registered first was
/// taken.
template <std::size_t N> class shares_its_name {
public:
    static constexpr class_name simpo_class{"shares_its_name", 1};
    void add(std::uint32_t by) noexcept { numbers_[N - 1] += by; }

private:
    std::array<std::uint32_t, N> numbers_{};
};

TEST(SimpoRefusal, TwoClassesOfOneNameWithTheSameFunctionAreStoppedAtOnce) {
    const auto named = [](const std::type_info& type) {
        return detail::function{1, 2, 3, 0, "shares_its_name", "add", nullptr, &type};
    };
    static const detail::function one = named(typeid(shares_its_name<1>)),
                                  again = named(typeid(shares_its_name<1>)),
                                  other = named(typeid(shares_its_name<2>));
    detail::add_function(&one);
    detail::add_function(&again); // of another library of the same program
    EXPECT_DEATH(detail::add_function(&other), "both call themselves \"shares_its_name\"");
}

/// Recovery called low::add for a logged high::add, and one instantiation for another: it
/// distinguished a class's functions by their names and parameters alone.
struct low {
    void add(std::uint32_t by) noexcept { lows += by; }
    std::uint64_t lows = 0;
};
struct high {
    void add(std::uint32_t by) noexcept { highs += by; }
    std::uint64_t highs = 0;
};
class low_and_high : public low, public high {
public:
    static constexpr class_name simpo_class{"low_and_high", 1};
    template <class> void count() noexcept { ++lows; }
    template <class> void count_again() noexcept { ++highs; }
};

} // namespace
template <> inline constexpr std::uint16_t function_version<&low_and_high::count_again<int>> = 2;
namespace {

template <auto F> constexpr const detail::function* logged =
    &detail::registered<low_and_high, F>::entry; // not added to the known ones

TEST(SimpoRefusal, TwoFunctionsOfOneClassWithOneNameAreStoppedAtOnce) {
    detail::add_function(logged<&low::add>);
    EXPECT_DEATH(detail::add_function(logged<&high::add>),
                 "\"low_and_high\" has two functions add");
    detail::add_function(logged<&low_and_high::count<int>>);
    EXPECT_DEATH(detail::add_function(logged<&low_and_high::count<char>>), "two functions count");
}

TEST(SimpoRefusal, AVersionTellsTwoFunctionsOfOneNameApart) {
    detail::add_function(logged<&low_and_high::count_again<int>>);
    detail::add_function(logged<&low_and_high::count_again<char>>);
    const auto* const one = logged<&low_and_high::count_again<int>>;
    const auto* const other = logged<&low_and_high::count_again<char>>;
    ASSERT_EQ(one->id, other->id);
    for (const auto* each : {one, other}) {
        record_head r{};
        r.function = each->id;
        r.schema = each->schema;
        r.version = each->version;
        r.words = each->words;
        object_head of{};
        of.class_version = 1;
        of.object_bytes = sizeof(low_and_high);
        EXPECT_EQ(find_function(of, r), each);
        of.class_version = 2;
        EXPECT_EQ(find_function(of, r), nullptr);
    }
}

/// A library that is unloaded takes its functions along, and leaves the same ones of another.
TEST(SimpoRefusal, AFunctionIsKnownAsLongAsALibraryHasIt) {
    static const detail::function one{5, 2, 1, 0, "of_two_libraries", "add", nullptr}, other = one;
    object_head of{};
    record_head r{};
    r.function = one.id;
    r.schema = one.schema;
    r.version = one.version;
    std::string why;
    {
        const detail::registration first(&one);
        EXPECT_EQ(find_function(of, r), &one);
        auto second = std::make_unique<detail::registration>(&other);
        second.reset();
        EXPECT_EQ(find_function(of, r), &one);
        detail::add_function(&other);
    }
    EXPECT_EQ(find_function(of, r), &other);
    detail::remove_function(&other);
    EXPECT_EQ(find_function(of, r, &why), nullptr);
    EXPECT_NE(why.find("this build does not have"), std::string::npos) << why;
}

} // namespace
} // namespace hf::simpo
