// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of verify share: small pools made by the library, as bytes.
#pragma once

#include <section/list_sections.hpp>
#include <verify/examine.hpp>

#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace hf::verify {

inline void PrintTo(verdict v, std::ostream* out) { *out << name_of(v); }

} // namespace hf::verify

namespace hf::test {

using bytes = std::vector<std::byte>;

inline bytes read_all(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    bytes out(text.size());
    if (!out.empty()) std::memcpy(out.data(), text.data(), text.size());
    return out;
}

inline void write_all(const std::string& path, const bytes& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
}

template <class T> T load(const bytes& file, std::uint64_t offset) {
    T out;
    std::memcpy(&out, file.data() + offset, sizeof out);
    return out;
}
template <class T> void store(bytes& file, std::uint64_t offset, const T& value) {
    std::memcpy(file.data() + offset, &value, sizeof value);
}

/// Changes both header copies and makes their checksums right again.
inline void edit_headers(bytes& file, const std::function<void(pool_header&)>& edit) {
    for (std::uint64_t copy : {header_a_offset, header_b_offset}) {
        auto h = load<pool_header>(file, copy);
        edit(h);
        h.checksum = header_checksum(h);
        store(file, copy, h);
    }
}

/// Every line that a report would print, for messages of failed expectations.
inline std::string lines_of(const verify::report& r) {
    std::string out(name_of(r.outcome));
    for (const auto& f : r.findings)
        out += "\n  " + std::to_string(f.offset) + " " + f.where + ": expected " + f.expected +
               ", found " + f.found;
    for (const auto& n : r.notes) out += "\n  (" + n + ")";
    return out;
}

class Pools : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_verify_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        options.layout = "verify_test/1";
        options.create_bytes = options.max_bytes = 64_KiB;
        options.engines = {clobber::engine(), undo::engine()};
    }
    void TearDown() override { std::filesystem::remove_all(directory); }

    pool open_good() {
        auto opened = pool::open(path, options);
        if (!opened) throw std::runtime_error(opened.error().what());
        return std::move(*opened);
    }
    /// A list of 'nodes', blocks of several sizes, a large one, holes between them; closed.
    bytes make_pool(std::uint64_t nodes = 6) {
        {
            pool p = open_good();
            fill(p, nodes);
        }
        return read_all(path);
    }
    static void fill(pool& p, std::uint64_t nodes) {
        auto* l = p.root<list_sections::list>();
        if (l->count > 0) return; // filled before
        while (l->count < nodes) list_sections::push(true, l, l->count + 1);
        std::vector<void*> blocks;
        for (std::size_t size : {16, 16, 16, 48, 48, 9000, 32, 32}) {
            blocks.push_back(hf_alloc(size));
            ASSERT_NE(blocks.back(), nullptr);
            std::memset(blocks.back(), static_cast<int>(size % 251), size);
        }
        for (std::size_t i : {0, 3, 6}) hf_free(blocks[i]);
    }
    /// Runs 'body' in a child; true when nothing killed it and no expectation failed.
    static bool in_child(const std::function<void()>& body) {
        const pid_t child = ::fork();
        if (child == 0) {
            body();
            ::_exit(::testing::Test::HasFailure() ? 3 : 0);
        }
        int how = 0;
        EXPECT_EQ(::waitpid(child, &how, 0), child);
        return WIFEXITED(how) && WEXITSTATUS(how) == 0;
    }

    std::string directory, path;
    open_options options;
};

inline verify::verdict verdict_of(const bytes& file, verify::depth how = verify::depth::deep) {
    return verify::examine(file, how).outcome;
}

} // namespace hf::test
