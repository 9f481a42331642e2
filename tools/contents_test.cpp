// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the lines of a pool say what its containers and objects hold, whatever their types and
// bytes; the pool that is made of them holds the same; damage and wrong lines do no harm. Method:
// the lines are compared with what the typed interface reads, and made into pools; pools are
// damaged at random places, lines in every part.
#include "contents.hpp"
#include "contents_text.hpp"
#include <open/pool_impl.hpp>
#include <pool/pool_file.hpp>
#include <verify/image.hpp>
#include <verify/read_file.hpp>

#include <holdfast/mod/cache.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <semaphore>
#include <set>
#include <sstream>
#include <streambuf>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {
/// Called before a folder is synced.
std::function<void()> syncs_folder;
} // namespace

// In place of the C library's.
extern "C" int fsync(int file) {
    struct stat about{};
    if (syncs_folder && ::fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) syncs_folder();
    return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace {

using namespace hf;
using tools::load_contents;

class tally {
public:
    static constexpr simpo::class_name simpo_class{"tally", 3};
    void add(std::uint64_t n) noexcept { sum_ += n; }

private:
    std::uint64_t sum_ = 0;
};

class counted {
public:
    static constexpr simpo::class_name simpo_class{"c\xe9", 1};
    void add() noexcept { ++count_; }

private:
    std::uint64_t count_ = 0;
};

const std::string odd_bytes("\xff\0\n\"\\\x80", 6); // not UTF-8

class Contents : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_contents_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        other = directory + "/other.hf";
        ::setenv("HOLDFAST_ADDRESSES", (directory + "/register").c_str(), 1);
        how.layout = "contents/1";
        how.create_bytes = 1 << 20;
        how.max_bytes = 64 << 20;
        how.engines = {mod::engine(), simpo::engine()};
    }
    void TearDown() override {
        ::unsetenv("HOLDFAST_ADDRESSES");
        std::filesystem::remove_all(directory);
    }
    pool opened(const std::string& at) const {
        auto open = pool::open(at, how);
        if (!open) throw std::runtime_error(open.error().what());
        return std::move(*open);
    }
    struct dumped {
        std::vector<std::string> lines, faults;
        bool has(const std::string& line) const {
            return std::ranges::find(lines, line) != lines.end();
        }
        std::string text() const {
            std::string all;
            for (const std::string& line : lines) all += line + '\n';
            return all;
        }
    };
    dumped dump(const std::string& at) const {
        const auto file = verify::read_file::open(at);
        if (!file) throw std::runtime_error(file.error().what());
        const pool_header header = verify::read_headers(file->bytes()).chosen();
        dumped all;
        auto faults =
            tools::read_contents(at, header, header.open != 0 ? std::optional(how) : std::nullopt,
                                 [&](std::string line) { all.lines.push_back(std::move(line)); });
        if (!faults) throw std::runtime_error(faults.error().what());
        all.faults = std::move(*faults);
        return all;
    }
    result<std::uint64_t> load(const std::string& text) const {
        std::istringstream lines(text);
        return load_contents(other, lines);
    }
    std::set<std::string> names() const {
        std::set<std::string> all;
        for (const auto& each : std::filesystem::directory_iterator(directory))
            all.insert(each.path().filename());
        return all;
    }
    static void good(const status& done) { ASSERT_TRUE(done.ok()) << done.what(); }

    /// Containers of every kind that a pool can be made of.
    static void fill(pool& in) {
        auto words = *mod::map<std::string, std::string>::open(in, {"words"});
        auto numbers = *mod::map<std::uint64_t, std::uint64_t>::open(in, {"numbers"});
        auto small = *mod::map<std::string, std::uint32_t>::open(in, {"small"});
        auto names = *mod::set<std::string>::open(in, {"names"});
        auto ids = *mod::set<std::uint32_t>::open(in, {"ids"});
        auto texts = *mod::vector<std::string>::open(in, {"texts"});
        auto squares = *mod::vector<std::uint64_t>::open(in, {"squares"});
        auto pile = *mod::stack<std::string>::open(in, {"pile"});
        auto line = *mod::queue<std::uint64_t>::open(in, {"line"});
        auto sorted = *mod::ordered_map<std::string, std::uint64_t>::open(in, {"sorted"});
        for (std::uint64_t i = 0; i < 700; ++i) {
            const std::string text = fmt::format("{}-{}", i, std::string(i % 90, 'x'));
            ASSERT_TRUE(words.insert("key " + text, text));
            ASSERT_TRUE(numbers.insert(i * i, i));
            ASSERT_TRUE(small.insert(text, static_cast<std::uint32_t>(i)));
            ASSERT_TRUE(names.insert(text));
            ASSERT_TRUE(ids.insert(static_cast<std::uint32_t>(i)));
            good(texts.push_back(text));
            good(squares.push_back(i * i));
            good(pile.push(text));
            good(line.push(i));
            ASSERT_TRUE(sorted.insert(text, i));
        }
        for (int i = 0; i < 333; ++i) { // parts of nodes are nobody's
            ASSERT_TRUE(pile.pop());
            ASSERT_TRUE(line.pop());
        }
        ASSERT_TRUE(words.insert(odd_bytes, odd_bytes));
        ASSERT_TRUE(words.insert("", ""));
        good(texts.push_back(odd_bytes));
    }

    std::string directory, path, other;
    open_options how;
};

TEST_F(Contents, EveryElementHasItsLine) {
    {
        pool in = opened(path);
        fill(in);
        auto days = *mod::ordered_map<std::uint64_t, double>::open(in, {"days"});
        ASSERT_TRUE(days.insert(7, 1.5));
        auto joined = *mod::vector<std::uint64_t>::open(in, {"joined"});
        auto squares = *mod::vector<std::uint64_t>::open(in, {"squares"});
        const auto both = squares.snapshot();
        good(joined.commit(joined.snapshot().append(both).slice(3, 650).append(both)));
        auto it = *simpo::object<tally>::create(in, "it");
        it.defer<&tally::add>(0x0102);
        it.sync();
    }
    const dumped all = dump(path);
    EXPECT_TRUE(all.faults.empty()) << all.faults[0];
    const auto in = [&](const char* root) {
        return std::ranges::count_if(all.lines, [&](const std::string& line) {
            return line.find(fmt::format("\"in\":\"{}\"", root)) != std::string::npos;
        });
    };
    EXPECT_EQ(in("words"), 702);
    for (const char* root : {"numbers", "small", "names", "ids", "squares", "sorted"})
        EXPECT_EQ(in(root), 700) << root;
    EXPECT_EQ(in("texts"), 701);
    EXPECT_EQ(in("pile"), 367);
    EXPECT_EQ(in("line"), 367);
    EXPECT_EQ(in("joined"), 647 + 700);
    EXPECT_EQ(all.lines[0], "{\"pool\":\"holdfast\",\"version\":1,\"layout\":\"contents/1\","
                            "\"layout_hash\":0,\"max_bytes\":67108864}");
    const std::string odd = "{\"base64\":\"/wAKIlyA\"}";
    const std::string x77(77, 'x'), x3(3, 'x');
    for (const std::string& line : std::initializer_list<std::string>{
             "{\"root\":\"words\",\"kind\":\"map\",\"key\":\"string\",\"value\":\"string\","
             "\"identity\":1,\"elements\":702}",
             "{\"in\":\"words\",\"key\":\"key 3-xxx\",\"value\":\"3-xxx\"}",
             "{\"in\":\"words\",\"key\":" + odd + ",\"value\":" + odd + "}",
             "{\"in\":\"words\",\"key\":\"\",\"value\":\"\"}",
             "{\"in\":\"numbers\",\"key\":{\"hex\":\"0900000000000000\"},"
             "\"value\":{\"hex\":\"0300000000000000\"}}",
             "{\"in\":\"ids\",\"key\":{\"hex\":\"bb020000\"}}",
             "{\"in\":\"texts\",\"at\":700,\"value\":" + odd + "}",
             "{\"in\":\"squares\",\"at\":699,\"value\":{\"hex\":\"9974070000000000\"}}",
             "{\"in\":\"pile\",\"at\":3,\"value\":\"3-" + x3 + "\"}",
             "{\"in\":\"line\",\"at\":0,\"value\":{\"hex\":\"4d01000000000000\"}}",
             "{\"in\":\"line\",\"at\":366,\"value\":{\"hex\":\"bb02000000000000\"}}",
             "{\"in\":\"joined\",\"at\":647,\"value\":{\"hex\":\"0000000000000000\"}}",
             "{\"in\":\"joined\",\"at\":0,\"value\":{\"hex\":\"0900000000000000\"}}",
             "{\"in\":\"days\",\"key\":{\"hex\":\"0700000000000000\"},"
             "\"value\":{\"hex\":\"000000000000f83f\"}}",
             "{\"object\":\"it\",\"class\":\"tally\",\"class_version\":3,\"bytes\":8,"
             "\"calls_behind\":0,\"state\":\"AgEAAAAAAAA=\"}"})
        EXPECT_TRUE(all.has(line)) << line;
}

TEST_F(Contents, APoolMadeOfTheLinesHoldsTheSame) {
    {
        pool in = opened(path);
        fill(in);
    }
    const dumped first = dump(path);
    const auto loaded = load(first.text());
    ASSERT_TRUE(loaded) << loaded.error().what();
    EXPECT_EQ(*loaded, 702U + 6 * 700 + 701 + 2 * 367);
    dumped second = dump(other), sorted = first;
    std::ranges::sort(sorted.lines);
    std::ranges::sort(second.lines);
    EXPECT_EQ(second.lines, sorted.lines);
    pool in = opened(other);
    auto words = *mod::map<std::string, std::string>::open(in, {"words"});
    EXPECT_EQ(words.get(odd_bytes), odd_bytes);
    auto pile = *mod::stack<std::string>::open(in, {"pile"});
    EXPECT_EQ(pile.size(), 367U);
    EXPECT_EQ(pile.top(), "366-xxxxxx");
    auto numbers = *mod::map<std::uint64_t, std::uint64_t>::open(in, {"numbers"});
    EXPECT_EQ(*numbers.get(81), 9U);
}

TEST_F(Contents, TheNameOfALoadedPoolIsOnTheDisk) {
    {
        pool in = opened(path);
        fill(in);
    }
    const std::string lines = dump(path).text();
    int with_name = 0;
    syncs_folder = [&] { with_name += std::filesystem::exists(other) ? 1 : 0; };
    const auto loaded = load(lines);
    syncs_folder = nullptr;
    ASSERT_TRUE(loaded) << loaded.error().what();
    EXPECT_EQ(with_name, 1);
}

TEST_F(Contents, APoolThatMayNotBecomeLargeIsMadeAnew) {
    for (const std::uint64_t max_bytes : {64_KiB, 1_MiB, 20_MiB}) {
        how.create_bytes = std::min<std::uint64_t>(1_MiB, max_bytes);
        how.max_bytes = max_bytes;
        {
            pool in = opened(path);
            auto map = *mod::map<std::string, std::string>::open(in, {"map"});
            ASSERT_TRUE(map.insert("a", "b"));
        }
        const dumped first = dump(path);
        const auto loaded = load(first.text());
        ASSERT_TRUE(loaded) << loaded.error().what();
        EXPECT_EQ(dump(other).lines, first.lines);
        EXPECT_EQ(verify::read_headers(verify::read_file::open(other)->bytes()).chosen().max_bytes,
                  max_bytes);
        std::filesystem::remove(path);
        std::filesystem::remove(other);
    }
    const auto none = load("{\"pool\":\"holdfast\",\"version\":1,\"layout\":\"a/1\","
                           "\"layout_hash\":0,\"max_bytes\":9}");
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().what().find("max_bytes: expected 0 or 65536 to "), std::string::npos)
        << none.error().what();
}

TEST_F(Contents, ACacheStaysOneWithItsTimes) {
    const mod::cache_options bound{.max_bytes = 10'000};
    {
        pool in = opened(path);
        auto pages = *mod::cache::open(in, "pages", bound);
        ASSERT_TRUE(pages.put("always", odd_bytes).ok());
        ASSERT_TRUE(pages.put("hour", "1", std::chrono::hours(1)).ok());
    }
    const dumped first = dump(path);
    EXPECT_TRUE(first.has("{\"root\":\"pages\",\"kind\":\"cache\",\"key\":\"string\","
                          "\"value\":\"string\",\"identity\":1,\"elements\":2}"))
        << first.text();
    const auto loaded = load(first.text());
    ASSERT_TRUE(loaded) << loaded.error().what();
    EXPECT_EQ(dump(other).lines, first.lines);
    pool in = opened(other);
    const auto pages = *mod::cache::open(in, "pages", bound);
    EXPECT_EQ(pages.get("always"), odd_bytes);
    EXPECT_EQ(pages.get("hour"), "1");
}

TEST_F(Contents, NamesThatAreNoUtf8StayWhatTheyAre) {
    using map = mod::map<std::string, std::string>;
    how.layout = "caf\xe9/1";
    {
        pool in = opened(path);
        ASSERT_TRUE(map::open(in, {"caf\xe9"})->insert("a", "b"));
        ASSERT_TRUE(map::open(in, {"caf\xe8"})->insert("c", "d"));
        ASSERT_TRUE(map::open(in, {"caf\xc3\xa9"})->insert("e", "f"));
    }
    const dumped first = dump(path);
    for (const char* line : {"{\"in\":{\"base64\":\"Y2Fm6Q==\"},\"key\":\"a\",\"value\":\"b\"}",
                             "{\"in\":\"caf\xc3\xa9\",\"key\":\"e\",\"value\":\"f\"}"})
        EXPECT_TRUE(first.has(line)) << first.text();
    const auto loaded = load(first.text());
    ASSERT_TRUE(loaded) << loaded.error().what();
    pool in = opened(other);
    EXPECT_EQ(map::open(in, {"caf\xe9"})->get("a"), "b");
    EXPECT_EQ(map::open(in, {"caf\xe8"})->get("c"), "d");
    EXPECT_EQ(map::open(in, {"caf\xc3\xa9"})->get("e"), "f");
}

TEST_F(Contents, AnObjectsNameAndClassThatAreNoUtf8StayWhatTheyAre) {
    {
        pool in = opened(path);
        ASSERT_TRUE(simpo::object<counted>::create(in, "n\xe9"));
        ASSERT_TRUE(simpo::object<counted>::create(in, "n\xc3\xa9"));
    }
    const dumped all = dump(path);
    EXPECT_TRUE(all.has("{\"object\":{\"base64\":\"buk=\"},\"class\":{\"base64\":\"Y+k=\"},"
                        "\"class_version\":1,\"bytes\":8,\"calls_behind\":0,"
                        "\"state\":\"AAAAAAAAAAA=\"}"))
        << all.text();
    EXPECT_NE(all.text().find("{\"object\":\"n\xc3\xa9\","), std::string::npos) << all.text();
    const auto loaded = load(all.text());
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().what().find("found the object \"n"), std::string::npos)
        << loaded.error().what();
}

TEST_F(Contents, ElementsOfPythonKeepTheirKinds) {
    how.layout = "python/1";
    const std::string text("prices \xc3\xa9\x01"),
        raw = odd_bytes + '\0', value("\x03\x01\x05\x02"), file_name("caf\xed\xb3\xa9\x01");
    {
        pool in = opened(path);
        auto map = *mod::map<std::string, std::string>::open(in, {"map"});
        ASSERT_TRUE(map.insert(text, raw));
        ASSERT_TRUE(map.insert(value, text));
        ASSERT_TRUE(map.insert(file_name, file_name)); // os.fsdecode(b"caf\xe9")
    }
    const dumped first = dump(path);
    EXPECT_TRUE(first.has("{\"in\":\"map\",\"key\":{\"base64\":\"Y2Fm7bOpAQ==\"},"
                          "\"value\":{\"base64\":\"Y2Fm7bOpAQ==\"}}"))
        << first.text();
    EXPECT_TRUE(first.has("{\"in\":\"map\",\"key\":{\"str\":\"prices \xc3\xa9\"},"
                          "\"value\":{\"bytes\":\"/wAKIlyA\"}}"))
        << first.text();
    EXPECT_TRUE(first.has("{\"in\":\"map\",\"key\":{\"encoded\":\"AwEF\"},"
                          "\"value\":{\"str\":\"prices \xc3\xa9\"}}"));
    ASSERT_TRUE(load(first.text()));
    pool in = opened(other);
    auto map = *mod::map<std::string, std::string>::open(in, {"map"});
    EXPECT_EQ(map.get(text), raw);
    EXPECT_EQ(map.get(value), text);
    EXPECT_EQ(map.get(file_name), file_name);
}

TEST_F(Contents, APoolThatWasLeftOpenIsReadAsItsRecoveryLeavesIt) {
    {
        pool in = opened(path);
        fill(in);
        ASSERT_NE(in.root<std::uint64_t>(), nullptr);
        auto it = *simpo::object<tally>::create(in, "it");
        it.defer<&tally::add>(7);
        it.sync();
        pool::impl::abandon(std::move(in));
    }
    std::ifstream in(path, std::ios::binary);
    const std::string before{std::istreambuf_iterator<char>(in), {}};
    const dumped all = dump(path);
    EXPECT_TRUE(all.faults.empty()) << all.faults[0];
    EXPECT_EQ(all.lines.size(), 1U + 10 + 702 + 6 * 700 + 701 + 2 * 367 + 2);
    EXPECT_EQ(all.lines.back(), "{\"unlisted\":\"the root object\",\"bytes\":8}");
    std::ifstream again(path, std::ios::binary);
    EXPECT_TRUE((before == std::string{std::istreambuf_iterator<char>(again), {}}));
}

/// What is damaged is said; whatever it is, the rest is written, and reading ends.
TEST_F(Contents, DamageCostsWhatItHasHit) {
    {
        pool in = opened(path);
        fill(in);
    }
    std::ifstream in(path, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    const std::size_t lines = dump(path).lines.size();
    constexpr unsigned seed = 20261129;
    std::mt19937 random(seed);
    const std::uint64_t heap = 64 << 10, runs = 30;
    unsigned reported = 0, shorter = 0;
    for (unsigned run = 0; run < runs; ++run) {
        std::string bytes = whole;
        if (run % 10 == 9) bytes.resize(heap + random() % (bytes.size() - heap)); // cut
        for (unsigned n = run % 3 == 0 ? 1 : 200; n > 0; --n) {
            const std::size_t at = heap + random() % (bytes.size() - heap);
            bytes[at] = static_cast<char>(run % 2 == 0 ? random() : 0xff);
        }
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        const dumped left = dump(path);
        reported += !left.faults.empty();
        shorter += left.lines.size() < lines;
        if (left.lines.size() < lines) EXPECT_FALSE(left.faults.empty()) << "seed " << seed;
        EXPECT_LT(left.lines.size(), 100 * lines) << "seed " << seed << ", run " << run;
    }
    EXPECT_GT(reported, 5U);
    EXPECT_GT(shorter, 2U);
}

/// What is missing reads as zeros: a ref of 0 leads to the pool's first bytes, which say a length.
TEST_F(Contents, ACutPoolGivesNoMoreThanItHas) {
    constexpr std::uint64_t count = 20'000;
    {
        pool p = opened(path);
        auto v = *mod::vector<std::string>::open(p, {"v"});
        for (std::uint64_t n = 0; n < count; ++n)
            ASSERT_TRUE(v.push_back(std::string(100, 'x') + std::to_string(n)).ok());
    }
    const std::uint64_t whole = std::filesystem::file_size(path);
    for (const unsigned percent : {20, 40, 60, 80}) {
        const std::string cut = directory + "/cut.hf";
        std::filesystem::copy_file(path, cut, std::filesystem::copy_options::overwrite_existing);
        std::filesystem::resize_file(cut, whole * percent / 100);
        const dumped found = dump(cut);
        EXPECT_FALSE(found.faults.empty());
        EXPECT_LE(found.lines.size(), count + 10);
        EXPECT_LE(found.text().size(), 4 * whole) << percent;
    }
}

TEST_F(Contents, ALineThatIsNotAsExpectedIsNamedAndLeavesNoPool) {
    const std::string first = "{\"pool\":\"holdfast\",\"version\":1,\"layout\":\"a/1\","
                              "\"layout_hash\":0,\"max_bytes\":67108864}\n";
    const std::string words = "{\"root\":\"w\",\"kind\":\"map\",\"key\":\"string\","
                              "\"value\":\"string\",\"identity\":1}\n";
    const std::string row = "{\"root\":\"v\",\"kind\":\"vector\",\"value\":\"8 bytes, aligned to "
                            "8\"}\n";
    const struct {
        std::string lines, says;
    } wrong[] = {
        {"", "line 0: expected lines of `holdfast dump`, found none"},
        {"{\"pool\":", "line 1: expected an object of JSON"},
        {"[1]", "line 1: expected an object, found array"},
        {"{\"pool\":\"other\",\"version\":1}", "line 1: expected version 1 of such lines, found 1"},
        {words, "line 1: expected a text as \"pool\", found none"},
        {first + "{}", "line 2: expected a text as \"in\", found none"},
        {first + "{\"in\":\"w\"}", "line 2: expected a container whose line came before"},
        {first + words + words, "line 3: expected a name that is new, found \"w\""},
        {first + words + "{\"in\":\"w\",\"key\":\"a\"}", "line 3: expected a text as \"value\""},
        {first + words + "{\"in\":\"w\",\"key\":1,\"value\":\"\"}", "as \"key\", found 1"},
        {first + words + "{\"in\":\"w\",\"key\":{\"base64\":\"A\"},\"value\":\"\"}",
         "line 3: expected text that encodes bytes as \"key.base64\", found \"A\""},
        {first + words + "{\"in\":\"w\",\"key\":\"a\",\"value\":\"b\"}\n" +
             "{\"in\":\"w\",\"key\":\"a\",\"value\":\"c\"}",
         "line 4: expected a key that is new"},
        {first + words + "{\"in\":\"w\",\"key\":null}", "found null"},
        {first + row + "{\"in\":\"v\",\"at\":1,\"value\":{\"hex\":\"0000000000000000\"}}",
         "line 3: expected element 0, found 1"},
        {first + row + "{\"in\":\"v\",\"at\":-1,\"value\":{\"hex\":\"00\"}}", "found -1"},
        {first + row + "{\"in\":\"v\",\"at\":0,\"value\":{\"hex\":\"00\"}}",
         "line 3: expected an element of 8 bytes, found 1"},
        {first + row + "{\"in\":\"v\",\"at\":0,\"value\":{\"hex\":\"0g00000000000000\"}}",
         "as \"value.hex\""},
        {first + "{\"root\":{\"base64\":\"AGE=\"},\"kind\":\"queue\",\"value\":\"string\"}",
         "line 2: expected a name without a zero byte as \"root\""},
        {first + "{\"root\":{\"base64\":\"a\"},\"kind\":\"queue\",\"value\":\"string\"}",
         "line 2: expected text that encodes bytes as \"root.base64\""},
        {first +
             "{\"root\":{\"base64\":\"Y+k=\"},\"kind\":\"map\",\"family\":{\"base64\":\"Y+k=\"}}",
         "line 2: expected a container of its own"},
        {first + "{\"root\":\"x\",\"kind\":\"heap\",\"value\":\"string\"}",
         "line 2: expected map, set, ordered_map, cache, vector, stack or queue as "
         "\"kind\""},
        {first + "{\"root\":\"x\",\"kind\":\"queue\",\"value\":\"12 bytes, aligned to 4\"}",
         "line 2: expected elements that are strings, or of 4 or 8 bytes"},
        {first + "{\"root\":\"x\",\"kind\":\"ordered_map\",\"key\":\"8 bytes, aligned to 8\","
                 "\"value\":\"string\",\"identity\":1}",
         "line 2: expected strings as keys of an ordered map"},
        {first + "{\"root\":\"x\",\"kind\":\"map\",\"key\":\"string\",\"value\":\"string\","
                 "\"identity\":9}",
         "line 2: expected \"identity\" 1"},
        {first + "{\"unlisted\":\"the root object\",\"bytes\":8}",
         "line 2: expected containers, found the root object"},
        {first + "{\"object\":\"it\"}", "line 2: expected containers, found the object \"it\""},
        {first + std::string("{\"root\":\"") + std::string(64, 'n') +
             "\",\"kind\":\"queue\",\"value\":\"string\"}",
         "line 2: "},
    };
    for (const auto& each : wrong) {
        const auto loaded = load(each.lines);
        ASSERT_FALSE(loaded) << each.lines;
        EXPECT_NE(loaded.error().what().find(each.says), std::string::npos)
            << loaded.error().what();
        EXPECT_TRUE(names().empty() || names() == std::set<std::string>{"register"});
    }
    ASSERT_TRUE(load(first + words));
    const auto again = load(first + words);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), errc::exists);
}

/// Lines that end with the process.
struct killing : std::stringbuf {
    using std::stringbuf::stringbuf;
    int_type underflow() override {
        const int_type next = std::stringbuf::underflow();
        if (next == traits_type::eof()) ::raise(SIGKILL);
        return next;
    }
};

TEST_F(Contents, AKilledLoadLeavesNoPoolAndIsRepeated) {
    {
        pool in = opened(path);
        fill(in);
    }
    const std::string text = dump(path).text();
    for (const std::size_t part : {std::size_t{2000}, text.size() / 2, text.size()}) {
        const pid_t child = ::fork();
        if (child == 0) {
            killing until(text.substr(0, part));
            std::istream lines(&until);
            ::_exit(load_contents(other, lines) ? 0 : 1);
        }
        int state = 0;
        ASSERT_EQ(::waitpid(child, &state, 0), child);
        ASSERT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);
        EXPECT_FALSE(std::filesystem::exists(other));
    }
    ASSERT_TRUE(load(text));
    EXPECT_EQ(names(), (std::set<std::string>{"other.hf", "pool.hf", "register"}));
    EXPECT_EQ(dump(other).lines.size(), dump(path).lines.size());
}

/// Lines that call a function when half of them are read.
class interrupted : public std::streambuf {
public:
    interrupted(std::string lines, std::function<void()> in_the_midst)
        : lines_(std::move(lines)), in_the_midst_(std::move(in_the_midst)) {
        setg(lines_.data(), lines_.data(), lines_.data() + lines_.size() / 2);
    }

private:
    int_type underflow() override {
        char* const end = lines_.data() + lines_.size();
        if (egptr() == end) return traits_type::eof();
        in_the_midst_();
        setg(lines_.data(), egptr(), end);
        return traits_type::to_int_type(*gptr());
    }
    std::string lines_;
    std::function<void()> in_the_midst_;
};

TEST_F(Contents, OfTwoLoadsAtOnceTheOneThatIsDoneFirstGetsTheName) {
    {
        pool in = opened(path);
        fill(in);
    }
    const std::string text = dump(path).text();
    const auto load_with = [&](const std::string& lines, std::function<void()> in_the_midst) {
        interrupted until(lines, std::move(in_the_midst));
        std::istream from(&until);
        return load_contents(other, from);
    };
    const auto second = load_with(text, [&] {
        const auto first = load(text);
        ASSERT_TRUE(first) << first.error().what();
    });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), errc::exists) << second.error().what();
    EXPECT_EQ(dump(other).lines.size(), dump(path).lines.size());
    EXPECT_EQ(names(), (std::set<std::string>{"other.hf", "pool.hf", "register"}));
}

TEST_F(Contents, ALoadThatIsRefusedLeavesTheFileOfAnotherAlone) {
    {
        pool in = opened(path);
        fill(in);
    }
    const std::string text = dump(path).text();
    std::counting_semaphore<> half(0), over(0);
    std::thread later;
    interrupted until(text, [&] {
        const std::string first_line = text.substr(0, text.find('\n') + 1);
        ASSERT_FALSE(load(first_line + "x"));
        ASSERT_FALSE(load("x"));
        later = std::thread([&] { // is half done when the first one ends
            interrupted part(text, [&] {
                half.release();
                over.acquire();
            });
            std::istream lines(&part);
            EXPECT_FALSE(load_contents(other, lines));
            half.release();
        });
        half.acquire();
    });
    std::istream lines(&until);
    const auto loaded = load_contents(other, lines);
    const auto made = verify::read_file::open(other);
    const bool closed = made && !made->in_use();
    over.release();
    if (later.joinable()) later.join();
    ASSERT_TRUE(loaded) << loaded.error().what();
    EXPECT_TRUE(closed);
    EXPECT_EQ(dump(other).lines.size(), dump(path).lines.size());
    EXPECT_EQ(names(), (std::set<std::string>{"other.hf", "pool.hf", "register"}));
}

} // namespace
