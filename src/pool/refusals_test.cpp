// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: whatever lies at the path, open() returns a pool or refuses with the right code, and a
// refusal leaves the file byte-identical (and its time of change too). Method: make every kind of
// wrong file, by hand and by mutation, and compare fingerprints around open().
#include <pool/test_support.hpp>

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstring>
#include <grp.h>
#include <random>
#include <string>
#include <sys/mman.h>

namespace {

using namespace hf;
using namespace hf::test;

/// The part of a refusal that names a process of this test which has the pool.
std::string named(pid_t process) {
    return "open in process " + std::to_string(process) + " (pool_test)";
}

TEST_F(PoolFile, EmptyFileIsRefused) {
    write_file(path, "");
    expect_refused(path, options, errc::not_a_pool);
}

TEST_F(PoolFile, MissingFileIsRefusedWhenCreationIsNotAskedFor) {
    options.creation = create::never;
    expect_refused(path, options, errc::not_found);
    EXPECT_EQ(fingerprint(path), "missing");
}

TEST_F(PoolFile, ExistingFileIsRefusedWhenANewOneIsAskedFor) {
    make_pool();
    options.creation = create::always_new;
    expect_refused(path, options, errc::exists);
}

TEST_F(PoolFile, TruncatedFileIsRefusedAtEveryLength) {
    make_pool();
    const std::string whole = contents(path);
    for (std::size_t length :
         {8UL, 100UL, 4095UL, 4096UL, 6000UL, 8192UL, 12288UL, 40000UL, whole.size() - 1}) {
        write_file(path, whole.substr(0, length));
        const std::string said = expect_refused(path, options, errc::truncated);
        EXPECT_NE(said.find("found " + std::to_string(length)), std::string::npos) << said;
        EXPECT_NE(said.find("65536"), std::string::npos) << said;
    }
}

TEST_F(PoolFile, ForeignFileIsRefused) {
    for (std::size_t length : {1UL, 511UL, 4096UL, 8192UL, 65536UL, 100000UL}) {
        std::string bytes(length, 'x');
        write_file(path, bytes);
        expect_refused(path, options, errc::not_a_pool);
    }
}

TEST_F(PoolFile, CreationCutShortIsRefusedAndSaysSo) {
    write_file(path, std::string(65536, '\0'));
    const std::string said = expect_refused(path, options, errc::not_a_pool);
    EXPECT_NE(said.find("creation was cut short"), std::string::npos) << said;
}

TEST_F(PoolFile, CreationCutShortBetweenTheHeaderCopiesIsAPool) {
    make_pool();
    std::string bytes = contents(path);
    bytes.replace(0, 4096, std::string(4096, '\0'));
    write_file(path, bytes);
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(PoolFile, DirectoryIsRefused) {
    ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
    const std::string said = expect_refused(path, options, errc::not_a_pool);
    EXPECT_NE(said.find("directory"), std::string::npos) << said;
}

TEST_F(PoolFile, FifoIsRefusedWithoutWaiting) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const std::string said = expect_refused(path, options, errc::not_a_pool);
    EXPECT_NE(said.find("FIFO"), std::string::npos) << said;
}

TEST_F(PoolFile, DeviceIsRefused) { expect_refused("/dev/null", options, errc::not_a_pool); }

TEST_F(PoolFile, SymlinkIsRefusedUnlessFollowingIsAskedFor) {
    make_pool();
    const std::string link = directory + "/link.hf";
    ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
    const std::string before = fingerprint(path);
    const std::string said = expect_refused(link, options, errc::not_a_pool);
    EXPECT_NE(said.find("symbolic link"), std::string::npos) << said;
    EXPECT_EQ(fingerprint(path), before);
    options.follow_symlinks = true;
    EXPECT_TRUE(pool_file::open(link, options));
}

TEST_F(PoolFile, DanglingSymlinkDoesNotCreateItsTarget) {
    ASSERT_EQ(::symlink((directory + "/elsewhere").c_str(), path.c_str()), 0);
    expect_refused(path, options, errc::not_a_pool);
    EXPECT_EQ(fingerprint(directory + "/elsewhere"), "missing");
}

TEST_F(PoolFile, OtherFormatVersionIsRefusedWithBothNumbers) {
    make_pool();
    edit_header(path, [](pool_header& h) { h.format_version = 7; });
    const std::string said = expect_refused(path, options, errc::wrong_version);
    EXPECT_NE(said.find("expected format version 1, found 7"), std::string::npos) << said;
}

TEST_F(PoolFile, UnknownRequiredFeatureIsRefusedAndOptionalAccepted) {
    make_pool();
    edit_header(path, [](pool_header& h) { h.optional_features = 1ULL << 40; });
    EXPECT_NE(open_good(), nullptr);
    edit_header(path, [](pool_header& h) { h.required_features = 1ULL << 40; });
    expect_refused(path, options, errc::unknown_feature);
}

TEST_F(PoolFile, AMarkOfAnEngineThatTheHeaderDoesNotNameIsRefused) {
    make_pool_left_open();
    edit_header(path, [](pool_header& h) { set_marks(h, {.drop_bytes = engine_redo}); });
    expect_refused(path, options, errc::unknown_feature);
    edit_header(path, [](pool_header& h) { set_marks(h, {.rebuild = engine_redo}); });
    expect_refused(path, options, errc::unknown_feature);
    edit_header(path, [](pool_header& h) { set_marks(h, {engine_undo, engine_clobber}); });
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(PoolFile, OtherLayoutNameIsRefusedWithBothNames) {
    make_pool();
    options.layout = "other/2";
    const std::string said = expect_refused(path, options, errc::wrong_layout);
    EXPECT_NE(said.find("expected layout \"other/2\", found \"pool_test/1\""), std::string::npos)
        << said;
}

TEST_F(PoolFile, OtherLayoutHashIsRefused) {
    options.layout_hash = 1;
    make_pool();
    options.layout_hash = 2;
    expect_refused(path, options, errc::wrong_layout);
}

TEST_F(PoolFile, LayoutNameFromTheFileIsPrintedHarmlessly) {
    make_pool();
    edit_header(path, [](pool_header& h) { std::strcpy(h.layout, "\x1b[2Jgone"); });
    const std::string said = expect_refused(path, options, errc::wrong_layout);
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

TEST_F(PoolFile, MissingEngineIsNamedWithTheWaysOut) {
    make_pool_left_open();
    options.engines = engine_undo;
    const std::string said = expect_refused(path, options, errc::missing_engine);
    for (const char* words :
         {"expected engine clobber, found undo given to open", "the build that left it",
          "open_options::engines", "repair --roll-back", "read_only"})
        EXPECT_NE(said.find(words), std::string::npos) << words;
    edit_header(path, [](pool_header& h) { h.engines = 1u << 9; });
    EXPECT_NE(expect_refused(path, options, errc::missing_engine).find("unknown engine bit 9"),
              std::string::npos);
}

TEST_F(PoolFile, OneDamagedHeaderCopyIsRepairedWithAWarning) {
    for (std::uint64_t copy : {header_a_offset, header_b_offset}) {
        for (std::uint64_t place : {0UL, 64UL, 3000UL, 4095UL}) {
            std::filesystem::remove(path);
            make_pool();
            damage(path, copy + place);
            const std::string before = fingerprint(path);
            auto file = open_good();
            ASSERT_NE(file, nullptr);
            ASSERT_EQ(file->warnings().size(), 1U);
            EXPECT_NE(file->warnings()[0].find(copy == 0 ? "copy A" : "copy B"), std::string::npos);
            EXPECT_EQ(fingerprint(path), before) << "open wrote";
            ASSERT_TRUE(file->mark_open().ok());
            file.reset();
            file = open_good();
            ASSERT_NE(file, nullptr);
            EXPECT_TRUE(file->warnings().empty()) << "mark_open left the damage in place";
        }
    }
}

TEST_F(PoolFile, BothHeaderCopiesDamagedIsRefused) {
    make_pool();
    damage(path, header_a_offset + 700);
    damage(path, header_b_offset + 700);
    expect_refused(path, options, errc::corrupt);
}

TEST_F(PoolFile, TheHigherSequenceNumberCounts) {
    make_pool();
    edit_header(path, [](pool_header& h) { h.sequence += 1, h.generation = 77; }, which::b);
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->generation(), 77U);
    EXPECT_TRUE(file->warnings().empty()) << "an older copy is not a damaged one";
}

TEST_F(PoolFile, EveryNumberIsBounded) {
    using edit = std::function<void(pool_header&)>;
    const edit edits[] = {
        [](pool_header& h) { h.header_bytes = 4095; },
        [](pool_header& h) { h.base_address += 4096; },
        [](pool_header& h) { h.base_address = 0x7f0000000000; },
        [](pool_header& h) { h.base_address = 0; },
        [](pool_header& h) { h.max_bytes = 1ULL << 50; },
        [](pool_header& h) { h.max_bytes += 1; },
        [](pool_header& h) { h.max_bytes = 0; },
        [](pool_header& h) { h.chunk_bytes = 0; },
        [](pool_header& h) { h.chunk_bytes = 1ULL << 63; },
        [](pool_header& h) { h.lanes_offset = 8192; },
        [](pool_header& h) { h.lane_bytes = 1ULL << 60; },
        [](pool_header& h) { h.lane_count = 1; },
        [](pool_header& h) { h.lane_count = ~0u; },
        [](pool_header& h) { h.lane_count = 4096; }, // runs into extent 0
        [](pool_header& h) { h.mode = 3; },
        [](pool_header& h) { h.open = 2; },
        [](pool_header& h) { h.sequence = 0; },
        [](pool_header& h) { h.sequence = ~0ULL; },
        [](pool_header& h) { h.generation = ~0ULL; },
        [](pool_header& h) { std::memset(h.layout, 'a', sizeof h.layout); },
        [](pool_header& h) { std::memset(h.boot_id, 'a', sizeof h.boot_id); },
        [](pool_header& h) { h.extent_count = 0; },
        [](pool_header& h) { h.extent_count = 129; },
        [](pool_header& h) { h.extent_count = 2; },
        [](pool_header& h) { h.extents[0].offset_bytes = 0; },
        [](pool_header& h) { h.extents[0].offset_bytes += 8; },
        [](pool_header& h) { h.extents[0].size_bytes = 0; },
        [](pool_header& h) { h.extents[0].size_bytes -= 1; },
        [](pool_header& h) { h.extents[0].size_bytes = 0xfffffffffffff000; },
        [](pool_header& h) { h.extents[0].offset_bytes = 0xfffffffffffff000; },
        [](pool_header& h) { h.extents[1] = h.extents[0], h.extent_count = 2; },
        [](pool_header& h) { h.laid_out_bytes[0] -= 4096; },
        [](pool_header& h) { h.laid_out_bytes[0] += 1; },
        [](pool_header& h) { h.laid_out_bytes[0] = pool_bytes_max; }, // its tables do not fit
        [](pool_header& h) { h.laid_out_bytes[0] = ~std::uint64_t{4095}; },
    };
    make_pool();
    const std::string whole = contents(path);
    int number = 0;
    for (const edit& e : edits) {
        SCOPED_TRACE(number++);
        edit_header(path, e);
        expect_refused(path, options, errc::corrupt);
        write_file(path, whole);
    }
    // An extent beyond the file's end is within bounds, but the file is too short for it.
    edit_header(path, [](pool_header& h) {
        h.extents[0].size_bytes += 4096;
        h.laid_out_bytes[0] += 4096;
    });
    expect_refused(path, options, errc::truncated);
}

TEST_F(PoolFile, SecondOpenerInThisProcessIsRefused) {
    make_pool();
    const auto file = open_good();
    EXPECT_NE(expect_refused(path, options, errc::in_use).find("in this process"),
              std::string::npos);
    const std::string twin = directory + "/twin.hf"; // another name of the same file
    ASSERT_EQ(::link(path.c_str(), twin.c_str()), 0);
    EXPECT_NE(expect_refused(twin, options, errc::in_use).find("in this process"),
              std::string::npos);
}

TEST_F(PoolFile, SecondOpenerInAnotherProcessIsRefused) {
    make_pool();
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    const auto child = [&] {
        return expect_refused(path, options, errc::in_use).find(named(::getppid())) !=
                   std::string::npos &&
               !HasFailure();
    };
    EXPECT_TRUE(in_child(child));
    file.reset();
    EXPECT_TRUE(in_child([&] { return open_good() != nullptr; }));
}

/// The search for the process that has the pool meets descriptors that go meanwhile.
TEST_F(PoolFile, SecondOpenerIsRefusedWhileOthersComeAndGo) {
    make_pool();
    options.read_only = true; // no writer: everybody is looked at
    const auto file = open_good();
    options.read_only = false;
    std::array<pid_t, 2> passing{};
    for (pid_t& one : passing) {
        one = ::fork();
        ASSERT_GE(one, 0);
        if (one != 0) continue;
        const int held = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        for (;;) {
            for (unsigned n = 0; n < 100; ++n) (void)::dup(held);
            ::close_range(static_cast<unsigned>(held) + 1, ~0U, 0);
        }
    }
    EXPECT_TRUE(in_child([&] {
        for (unsigned n = 0; n < 40; ++n)
            EXPECT_NO_THROW((void)expect_refused(path, options, errc::in_use));
        return !HasFailure();
    }));
    for (const pid_t one : passing) {
        ::kill(one, SIGKILL);
        ::waitpid(one, nullptr, 0);
    }
}

TEST_F(PoolFile, ForkedChildThatInheritsAPoolNeitherClosesNorUnlocksIt) {
    auto file = open_good();
    ASSERT_TRUE(file->mark_open().ok());
    EXPECT_TRUE(in_child([&] {
        file.reset();
        return true;
    }));
    EXPECT_EQ(read_header(path, header_a_offset).open, 1U);
    EXPECT_TRUE(in_child([&] {
        return expect_refused(path, options, errc::in_use).find(named(::getppid())) !=
               std::string::npos;
    }));
}

TEST_F(PoolFile, ReadOnlyFileIsRefused) {
    make_pool();
    ASSERT_EQ(::chmod(directory.c_str(), 0711), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
    EXPECT_TRUE(in_child([&, owner = ::geteuid()] {
        // Root may write anything: become nobody first.
        if (::geteuid() == 0 &&
            (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0))
            return false;
        const std::string said = expect_refused(path, options, errc::permission);
        EXPECT_NE(said.find(fmt::format("the file is that of user {} with mode 444, and this "
                                        "process is user {}",
                                        owner, ::geteuid())),
                  std::string::npos)
            << said;
        return !HasFailure();
    }));
}

TEST_F(PoolFile, ProcessModePoolLeftOpenByAnEarlierBootIsTorn) {
    make_pool_left_open();
    EXPECT_NE(open_good(), nullptr) << "same boot: a process crash tears nothing";
    const auto earlier_boot = [](pool_header& h) {
        std::strcpy(h.boot_id, "00000000-1111-2222-3333-444444444444");
    };
    edit_header(path, earlier_boot);
    const std::string said = expect_refused(path, options, errc::torn);
    EXPECT_NE(said.find("00000000-1111"), std::string::npos) << said;
    options.mode = mode::pmem;
    expect_refused(path, options, errc::torn);
    options.mode = mode::process;
    options.salvage = true;
    auto file = open_good();
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->warnings().size(), 1U);
    EXPECT_FALSE(file->was_clean());
}

TEST_F(PoolFile, CleanOrPmemPoolOfAnEarlierBootOpens) {
    make_pool();
    const auto earlier_boot = [](pool_header& h) {
        std::strcpy(h.boot_id, "00000000-1111-2222-3333-444444444444");
    };
    edit_header(path, earlier_boot);
    EXPECT_NE(open_good(), nullptr);
    options.mode = mode::pmem;
    make_pool_left_open();
    edit_header(path, earlier_boot);
    EXPECT_NE(open_good(), nullptr);
    options.mode = mode::process;
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(PoolFile, TakenAddressIsNamed) {
    make_pool();
    const std::uint64_t base = read_header(path, 0).base_address;
    const std::uint64_t limit = read_header(path, 0).max_bytes;
    for (std::uint64_t offset : {std::uint64_t{0}, limit - 4096}) { // growth's room counts too
        void* const there = ::mmap(reinterpret_cast<void*>(base + offset), 4096, PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        ASSERT_NE(there, MAP_FAILED);
        const std::string said = expect_refused(path, options, errc::address_taken);
        char text[32];
        std::snprintf(text, sizeof text, "%#lx", base);
        EXPECT_NE(said.find(text), std::string::npos) << said;
        ::munmap(there, 4096);
    }
    EXPECT_NE(open_good(), nullptr);
}

TEST_F(PoolFile, WhatTakesTheAddressIsNamedWithTheWayOut) {
    make_pool();
    const std::string copy = directory + "/copy.hf";
    write_file(copy, contents(path));
    const std::uint64_t base = read_header(path, 0).base_address;
    const auto refused_for = [&](const std::string& words) {
        const std::string said = expect_refused(copy, options, errc::address_taken);
        EXPECT_NE(said.find(words), std::string::npos) << said;
        EXPECT_NE(said.find("holdfast rebase " + copy), std::string::npos) << said;
    };
    {
        const auto open = open_good();
        ASSERT_NE(open, nullptr);
        refused_for("the pool " + path + " is there, which this process has open: close it first");
    }
    const auto map_there = [&](int descriptor, int flags) {
        void* const there = ::mmap(reinterpret_cast<void*>(base + 4096), 4096, PROT_READ,
                                   MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags, descriptor, 0);
        ASSERT_NE(there, MAP_FAILED);
    };
    const std::string other = directory + "/a library";
    write_file(other, std::string(4096, 'x'));
    const int descriptor = ::open(other.c_str(), O_RDONLY | O_CLOEXEC);
    map_there(descriptor, 0);
    char place[32];
    std::snprintf(place, sizeof place, "%#lx", base + 4096);
    refused_for(other + " is mapped at " + place);
    refused_for("start the program again");
    ::munmap(reinterpret_cast<void*>(base + 4096), 4096);
    map_there(-1, MAP_ANONYMOUS);
    refused_for(std::string("memory of this process is mapped at ") + place);
    ::munmap(reinterpret_cast<void*>(base + 4096), 4096);
    ::close(descriptor);
}

/// A root object, and the state of most engines, may have addresses in them.
TEST_F(PoolFile, OnlyAPoolWithoutAddressesInItIsReadBesideItsCopy) {
    make_pool_left_open();
    file_options reads = options;
    reads.read_only = true;
    const std::string copy = directory + "/copy.hf";
    const auto copied = [&](std::uint64_t root, std::uint32_t engine) {
        std::string bytes = contents(path);
        root_words words{};
        words.root_offset = root;
        if (engine != 0) words.anchors[std::countr_zero(engine)] = 65536;
        std::memcpy(bytes.data() + root_words_offset, &words, sizeof words);
        write_file(copy, bytes);
        edit_header(copy, [](pool_header& h) { h.file_inode = h.file_birth_ns = 0; });
    };
    const auto original = open_good();
    ASSERT_NE(original, nullptr);
    for (const std::uint32_t engines : {0U, std::uint32_t{engine_mod}, engine_mod | engine_simpo}) {
        copied(0, engines);
        edit_header(copy, [&](pool_header& h) { h.engines = reads.engines = engines; });
        const auto beside = pool_file::open(copy, reads);
        ASSERT_TRUE(beside) << beside.error().what();
        EXPECT_NE((*beside)->base(), original->base());
        EXPECT_TRUE((*beside)->relocated());
        expect_refused(
            copy,
            [&] {
                auto o = reads;
                o.read_only = false;
                return o;
            }(),
            errc::in_use);
    }
    copied(4711, 0);
    edit_header(copy, [&](pool_header& h) { h.open = 0, h.engines = 0; });
    expect_refused(copy, reads, errc::address_taken);
    copied(0, engine_justdo);
    edit_header(copy, [&](pool_header& h) { h.open = 0, h.engines = 0; });
    expect_refused(copy, reads, errc::address_taken);
    copied(0, 0);
    reads.engines = both_engines;
    expect_refused(copy, reads, errc::address_taken); // a section may be pending
}

TEST_F(PoolFile, BadOptionsAreRefusedAndCreateNothing) {
    const auto refused = [&](const std::function<void(file_options&)>& edit) {
        file_options bad = options;
        edit(bad);
        expect_refused(path, bad, errc::bad_argument);
    };
    refused([](file_options& o) { o.layout = std::string(64, 'x'); });
    refused([](file_options& o) { o.layout = std::string("a\0b", 3); });
    refused([](file_options& o) { o.create_bytes = 65535; });
    refused([](file_options& o) { o.create_bytes = ~0ULL; });
    refused([](file_options& o) { o.max_bytes = 65535; });
    refused([](file_options& o) { o.max_bytes = ~0ULL; });
    refused([](file_options& o) { o.max_threads = 0; });
    refused([](file_options& o) { o.max_threads = 1u << 30; });
    refused([](file_options& o) { o.mode = hf::mode(3); });
    refused([](file_options& o) { o.creation = create(3); });
    refused([](file_options& o) { o.relocate = relocation(9); });
    EXPECT_EQ(fingerprint(path), "missing");
}

/// Every mutation opens or is refused. In a pool that opens, every page of the extents can be read.
TEST_F(PoolFile, MutatedHeadersOpenOrAreRefusedAndNeverFault) {
    make_pool_left_open();
    const std::string whole = contents(path);
    std::mt19937_64 random(20260101);
    int opened_count = 0, refused_count = 0;
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    for (int i = 0; i < 6000; ++i) {
        std::string pages = whole.substr(0, 8192);
        const std::size_t place = random() % 4096;
        const char value = static_cast<char>(random());
        const unsigned copies =
            random() % 4; // in half of the cases the checksums are made right again
        for (std::size_t copy : {0UL, 4096UL}) {
            if (copies == 0 && copy != 0) continue;
            pages[copy + place] = value;
            if (copies < 2) continue;
            pool_header h;
            std::memcpy(&h, pages.data() + copy, sizeof h);
            h.checksum = header_checksum(h);
            std::memcpy(pages.data() + copy, &h, sizeof h);
        }
        ASSERT_EQ(::pwrite(fd, pages.data(), pages.size(), 0), 8192);
        const auto opened = pool_file::open(path, options);
        if (!opened) {
            ++refused_count;
            continue;
        }
        ++opened_count;
        for (const extent& e : (*opened)->extents())
            for (std::uint64_t at = 0; at < e.size_bytes; at += 4096)
                ASSERT_EQ((*opened)->base()[e.offset_bytes + at], std::byte{0});
    }
    ::close(fd);
    EXPECT_GT(opened_count, 500);
    EXPECT_GT(refused_count, 500);
}

} // namespace
