// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a compacted pool is good, and sealed, before it has a name and afterwards. Method: the
// whole examination of the new file, and of the file in the pool's place.
#include <mod/compaction.hpp>
#include <pool/os_file.hpp>
#include <verify/examine.hpp>
#include <verify/read_file.hpp>
#include <verify/test_pools.hpp>

#include <holdfast/mod/map.hpp>

namespace {

using namespace hf;
using namespace hf::test;
using verify::depth;
using verify::examine;
using verify::verdict;

class Compacted : public Pools {};

TEST_F(Compacted, IsSealedAndVerifiesBeforeItHasTheName) {
    options.engines = {mod::engine()};
    options.create_bytes = 1_MiB;
    options.max_bytes = 16_MiB;
    {
        auto opened = pool::open(path, options);
        ASSERT_TRUE(opened) << opened.error().what();
        auto all = *mod::map<std::string, std::string>::open(*opened, {"all"});
        for (int n = 0; n < 500; ++n)
            ASSERT_TRUE(all.insert(std::to_string(n), std::string(n % 100, 'x')));
        for (int n = 0; n < 450; ++n) ASSERT_TRUE(all.erase(std::to_string(n)));
    }
    const auto expect_good = [](const verify::report& found) {
        EXPECT_EQ(found.outcome, verdict::good);
        EXPECT_EQ(found.seal, seal_state::intact);
        EXPECT_GT(found.blocks, 1U);
        EXPECT_EQ(found.blocks_verified, found.blocks);
        EXPECT_TRUE(found.findings.empty());
    };
    bool looked = false;
    const auto made = mod::compact_pool(path, options, [&](const os_file& file) {
        const auto bytes = verify::read_file::of_locked(path, file.descriptor());
        if (!bytes) return bytes.error();
        expect_good(examine(bytes->bytes(), depth::deep));
        looked = true;
        return status();
    });
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_TRUE(looked);
    const bytes file = read_all(path);
    expect_good(examine(file, depth::deep));
    EXPECT_LT(file.size(), made->bytes_before);
}

} // namespace
