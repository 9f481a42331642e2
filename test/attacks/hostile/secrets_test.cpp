// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that were only ever in volatile memory stay there: a secret lies in freed heap blocks, all
// over the stack, and in the gaps of packed arguments, while everything that a pool can do is done.
// Then neither the open file, as a crash would leave it, nor the closed one may hold eight bytes of
// it in a row.
#include "sections.hpp"
#include <open/pool_impl.hpp>
#include <pool/pool_file.hpp>

#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::hostile;

// Every eight bytes of it, at any place, are its own. Never stored in one piece in this program's
// image: put together here.
void write_secret(volatile unsigned char* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        to[i] = static_cast<unsigned char>(0xC1 + (i % 32) * 7 + (i % 32) / 5);
}
std::string secret() {
    std::string out(32, '\0');
    write_secret(reinterpret_cast<volatile unsigned char*>(out.data()), out.size());
    return out;
}

/// Leaves the secret in freed blocks of the sizes that the library allocates.
void plant_in_heap() {
    std::vector<void*> blocks;
    for (std::size_t bytes = 24; bytes <= 300'000; bytes += bytes / 3)
        for (int i = 0; i < 6; ++i) {
            void* b = std::malloc(bytes);
            write_secret(static_cast<volatile unsigned char*>(b), bytes);
            blocks.push_back(b);
        }
    for (void* b : blocks) std::free(b);
}

/// Leaves it on the stack below the caller.
__attribute__((noinline)) void plant_on_stack() {
    volatile unsigned char below[48 << 10];
    write_secret(below, sizeof below);
}

void plant() {
    plant_in_heap();
    plant_on_stack();
}

/// Arguments with gaps, and what remains of the block behind the last one.
struct gapped {
    char first; // then seven bytes of nothing
    chain* c;   //
    char last;  // then seven more
};
const hf_arg gapped_schema[] = {
    {0, 1, HF_ARG_VALUE}, {8, 8, HF_ARG_POOL_POINTER}, {16, 1, HF_ARG_VALUE}};
void gapped_body(const gapped& a) {
    hf_clobber_log(&a.c->sum, 8);
    a.c->sum += static_cast<std::uint64_t>(a.first + a.last);
}
const hf_txfunc gapped_desc{
    HF_ABI_VERSION,
    sizeof(gapped),
    7101,
    1,
    "gapped",
    "here",
    gapped_schema,
    3,
    [](const void* packed) { gapped_body(*static_cast<const gapped*>(packed)); }};

void call_with_gaps(chain* c) {
    gapped a;
    write_secret(reinterpret_cast<volatile unsigned char*>(&a), sizeof a);
    a.first = 1;
    a.c = c;
    a.last = 2;
    hf_clobber_begin(&gapped_desc, &a);
    gapped_body(a);
    hf_clobber_commit();
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The place of eight bytes of the secret; npos if nowhere. Gaps hold seven at most: those count
/// from six on.
std::size_t find_secret(const std::string& in, std::size_t piece = 8) {
    const std::string twice = secret() + secret();
    for (std::size_t i = 0; i < 32; ++i)
        if (const auto at = in.find(twice.substr(i, piece)); at != std::string::npos) return at;
    return std::string::npos;
}

class Secrets : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_secrets_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
        options_.layout = "secrets_test/1";
        options_.create_bytes = 256_KiB;
        options_.max_bytes = 4_MiB;
        options_.mode = GetParam();
        options_.engines = {clobber::engine(), undo::engine()};
        hf_txfunc_register(&gapped_desc);
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    void expect_none(const char* when) {
        const std::string file = bytes_of(path_);
        EXPECT_EQ(find_secret(file), std::string::npos) << when;
        EXPECT_EQ(find_secret(file, 6), std::string::npos) << when << ", in a gap";
    }

    std::string path_;
    open_options options_;
};

/// Everything that sections and the allocator can do.
void use(pool& p, unsigned rounds) {
    auto* r = p.root<root_object>();
    plant();
    if (r->chains[0] == nullptr) r->chains[0] = make_chain();
    chain* c = r->chains[0];
    for (unsigned i = 0; i < rounds; ++i) {
        const built_for engine = i % 2 == 0 ? built_for::clobber : built_for::undo;
        plant();
        push(engine, c, i);
        plant();
        replace(engine, c, i + 1);
        plant();
        sweep(engine, c, 1);
        plant();
        call_with_gaps(c);
        plant();
        auto* staged = static_cast<node*>(staged::in(p, sizeof(node))->release());
        std::memset(staged, 0, sizeof(node)); // uninitialised, it would be the user's own
        staged->value = i;
        adopt(engine, c, staged);
        plant();
        pop(engine, c);
        hf_free(hf_alloc(3000));
    }
    return_spare_blocks(p);
}

TEST_P(Secrets, NeverReachTheFile) {
    {
        plant();
        auto p = pool::open(path_, options_);
        ASSERT_TRUE(p) << p.error().what();
        use(*p, 20);
        while (p->size_bytes() < 1_MiB) std::memset(hf_alloc(60'000), 1, 60'000); // grows
        expect_none("open");
        plant();
    }
    expect_none("closed, sealed");
    auto p = pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    use(*p, 4);
    pool::impl::abandon(std::move(*p));
    expect_none("left open");
    plant();
    p = pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    expect_none("opened after a crash");
}

TEST_P(Secrets, InGapsOfArgumentsAreNotLogged) {
    auto p = pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    chain* c = make_chain();
    for (int i = 0; i < 2; ++i) { // both halves of the lane
        call_with_gaps(c);
        expect_none("just logged");
    }
}

TEST(SecretsSearch, FindsWhatIsThere) {
    EXPECT_EQ(find_secret(std::string(100, 'x') + secret().substr(5, 8)), 100U);
    EXPECT_EQ(find_secret(std::string(100, 'x') + secret().substr(5, 7)), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Modes, Secrets, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& info) {
                             return std::string(info.param == mode::process ? "process" : "pmem");
                         });

} // namespace
