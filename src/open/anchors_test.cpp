// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a root word that names no block of its own is refused before anything is stored; salvage
//       gives up that word, and what it names, alone; then the pool opens without salvage.
// Method: words of a pool that was closed, with a root object and MOD's state, are written over;
//         every byte is compared.
#include <base/engines.hpp>
#include <pool/header.hpp>
#include <pool/test_support.hpp>

#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <cstring>
#include <fstream>

namespace {

using namespace hf;

struct root_object {
    std::uint64_t words[8];
};

class Anchors : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_anchors_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        auto made = open(false);
        ASSERT_TRUE(made) << made.error().what();
        auto* const root = made->root<root_object>();
        ASSERT_NE(root, nullptr);
        root->words[0] = 77;
        ASSERT_TRUE(mod::vector<std::uint64_t>::open(*made, {"words"}));
    }
    void TearDown() override { std::filesystem::remove_all(directory); }
    result<pool> open(bool salvage) const {
        open_options o;
        o.layout = "anchors/1";
        o.create_bytes = 1_MiB;
        o.engines = {undo::engine(), mod::engine()};
        o.salvage = salvage;
        return pool::open(path, o);
    }
    root_words words() const {
        root_words out;
        std::memcpy(&out, hf::test::contents(path).data() + root_words_offset, sizeof out);
        return out;
    }
    void set_words(const root_words& to) const {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(root_words_offset);
        file.write(reinterpret_cast<const char*>(&to), sizeof to);
    }
    /// The open without salvage refuses and changes nothing. With salvage it opens, and later
    /// without.
    void expect_refused_and_salvaged(const char* what) {
        const std::string before = hf::test::contents(path);
        const auto refused = open(false);
        ASSERT_FALSE(refused) << what;
        EXPECT_EQ(refused.error().code(), errc::corrupt) << refused.error().what();
        EXPECT_TRUE(hf::test::contents(path) == before) << what << ": the refusal stored something";
        { EXPECT_TRUE(open(true)) << what; }
        const auto again = open(false);
        EXPECT_TRUE(again) << what << ": " << again.error().what();
    }
    bool root_is_there() const {
        auto opened = open(false);
        return opened && opened->root<root_object>()->words[0] == 77;
    }
    std::string directory, path;
};

TEST_F(Anchors, OfNoBlockAreRefusedAndThePoolStaysAsItWas) {
    const root_words sound = words();
    for (const std::uint64_t offset :
         {std::uint64_t{4096}, ~std::uint64_t{0}, sound.root_offset + 4}) {
        root_words forged = sound;
        forged.root_offset = offset;
        set_words(forged);
        expect_refused_and_salvaged("the root object");
        set_words(sound);
        forged = sound;
        forged.anchor(engine_mod) = offset;
        set_words(forged);
        expect_refused_and_salvaged("MOD's superblock");
        EXPECT_TRUE(root_is_there());
        set_words(sound);
    }
}

TEST_F(Anchors, OfAnotherEngineAreGivenUpAndTheRootObjectStays) {
    for (const unsigned slot :
         {1U, 12U, engines_max - 1}) { // an engine of the table, and some of none
        root_words forged = words();
        forged.anchors[slot] = forged.root_offset;
        set_words(forged);
        expect_refused_and_salvaged("a superblock");
        EXPECT_TRUE(root_is_there()) << slot;
        EXPECT_EQ(words().anchors[slot], 0U) << slot;
        EXPECT_NE(words().anchor(engine_mod), 0U) << slot;
    }
}

TEST_F(Anchors, OfAMigrationAreGivenUpAndTheRootObjectStays) {
    for (const std::uint64_t offset : {std::uint64_t{4096}, words().root_offset + 8}) {
        root_words forged = words();
        forged.migration_offset = offset;
        set_words(forged);
        expect_refused_and_salvaged("the record of a migration");
        EXPECT_TRUE(root_is_there());
    }
}

} // namespace
