// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the pool's tests share: a directory of their own on tmpfs, fingerprints of files, and
// editing of headers behind the pool's back.
#pragma once

#include <base/engines.hpp>
#include <pool/header.hpp>
#include <pool/pool_file.hpp>

#include <holdfast/sizes.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::test {

inline constexpr std::uint32_t both_engines = engine_clobber | engine_undo;

/// A place for a pool, in a folder of the test's own, and the options to open it with.
template <class Options> class PoolPath : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_pool_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        options.layout = "pool_test/1";
        options.create_bytes = 64_KiB;
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    std::string directory, path;
    Options options;
};

class PoolFile : public PoolPath<file_options> {
protected:
    void SetUp() override {
        PoolPath::SetUp();
        options.engines = both_engines;
    }

    std::unique_ptr<pool_file> open_good() {
        auto opened = pool_file::open(path, options);
        if (opened) return std::move(*opened);
        ADD_FAILURE() << opened.error().what();
        return nullptr;
    }
    /// A pool that was opened and closed cleanly once.
    void make_pool() {
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        ASSERT_TRUE(file->mark_open().ok());
    }
    void make_pool_left_open() {
        auto file = open_good();
        ASSERT_NE(file, nullptr);
        ASSERT_TRUE(file->mark_open().ok());
        pool_file::abandon(std::move(file));
    }
};

inline std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

inline void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Bytes, size, permissions and time of change of a file; for anything else, its type.
inline std::string fingerprint(const std::string& path) {
    struct stat about{};
    if (::lstat(path.c_str(), &about) != 0) return "missing";
    std::ostringstream text;
    text << about.st_mode << ' ' << about.st_size << ' ' << about.st_ino << ' '
         << about.st_mtim.tv_sec << '.' << about.st_mtim.tv_nsec;
    if (S_ISREG(about.st_mode)) {
        const std::string bytes = contents(path);
        text << ' ' << checksum(bytes.data(), bytes.size(), 0);
    }
    return text.str();
}

/// Opens what must be refused with 'code' and left exactly as it was; returns what open said.
inline std::string expect_refused(const std::string& path, const file_options& options, errc code) {
    const std::string before = fingerprint(path);
    std::string said;
    {
        const auto opened = pool_file::open(path, options);
        if (opened) ADD_FAILURE() << "opened, expected " << name(code);
        else {
            said = opened.error().what();
            EXPECT_EQ(name(opened.error().code()), name(code)) << said;
            EXPECT_NE(said.find(path), std::string::npos) << said;
        }
    }
    EXPECT_EQ(fingerprint(path), before) << "the refused file was touched";
    return said;
}

enum class which : std::uint8_t { a = 1, b = 2, both = 3 };

/// Changes header copies in the file and makes their checksums right again.
inline void edit_header(const std::string& path, const std::function<void(pool_header&)>& edit,
                        which copies = which::both) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    for (int i = 0; i < 2; ++i) {
        if ((static_cast<int>(copies) >> i & 1) == 0) continue;
        const off_t at = i * 4096;
        pool_header h;
        ASSERT_EQ(::pread(fd, &h, sizeof h, at), static_cast<ssize_t>(sizeof h));
        edit(h);
        h.checksum = header_checksum(h);
        ASSERT_EQ(::pwrite(fd, &h, sizeof h, at), static_cast<ssize_t>(sizeof h));
    }
    ::close(fd);
}

/// Flips one byte of the file.
inline void damage(const std::string& path, std::uint64_t offset) {
    std::string bytes = contents(path);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 0x5a);
    write_file(path, bytes);
}

inline pool_header read_header(const std::string& path, std::uint64_t offset) {
    pool_header h{};
    std::memcpy(&h, contents(path).data() + offset, sizeof h);
    return h;
}

/// Runs 'body' in a forked child; true when it returned true there and nothing killed it.
inline bool in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int how = 0;
    ::waitpid(child, &how, 0);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

} // namespace hf::test
