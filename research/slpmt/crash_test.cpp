// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: no crash of the simulated machine loses or tears a committed insertion, whatever the
// technique and the structure. Method: crash_proof.hpp, with the caches of Table III and with tiny
// ones.
#include <slpmt/crash_proof.hpp>
#include <slpmt/mutants.hpp>
#include <slpmt/workloads/found_by_compiler.hpp>

#include <gtest/gtest.h>

namespace {

using namespace hf::slpmt;

const technique slpmt_redo = with_redo(slpmt, "SLPMT, redo"), fg_redo = with_redo(fg, "FG, redo"),
                slpmt_lines_redo = with_redo(slpmt_lines, "SLPMT, lines, redo");

void expect_proved(const proof_case& what) {
    const proof done = prove(what);
    EXPECT_EQ(done.violations, 0U) << done.first;
    EXPECT_GT(done.points, what.insertions);
    EXPECT_GT(done.interrupted, 0U);
    EXPECT_GT(done.continued, 0U);
}

class Proof : public ::testing::TestWithParam<std::tuple<const char*, technique, bool>> {};

TEST_P(Proof, EveryAcceptanceCanBeTheLast) {
    const auto& [name, how, small] = GetParam();
    // A radix tree's nodes are of two thousand bytes.
    const bool large = name == std::string_view("kv-rtree");
    proof_case what{.workload = name,
                    .how = how,
                    .insertions = large ? 12U : 50U,
                    .interrupt_every = large ? 60U : 9U};
    if (small) what.parts = small_caches();
    expect_proved(what);
}

std::string case_name(const ::testing::TestParamInfo<Proof::ParamType>& at) {
    std::string name = std::string(std::get<0>(at.param)) + "_" +
                       std::string(std::get<1>(at.param).name) +
                       (std::get<2>(at.param) ? "_small" : "_whole");
    std::erase_if(name, [](char c) { return c == ' ' || c == ','; });
    for (char& c : name)
        if (c == '+' || c == '-') c = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Hashtable, Proof,
                         ::testing::Combine(::testing::Values("hashtable"),
                                            ::testing::Values(fg_lg, fg_lz, fg_lines, slpmt_lines,
                                                              slpmt_lines_redo),
                                            ::testing::Bool()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(All, Proof,
                         ::testing::Combine(::testing::Values("hashtable", "rbtree", "heap", "avl",
                                                              "kv-btree", "kv-ctree"),
                                            ::testing::Values(slpmt, fg, atom, ede, slpmt_redo,
                                                              fg_redo),
                                            ::testing::Bool()),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Radix, Proof,
                         ::testing::Combine(::testing::Values("kv-rtree"),
                                            ::testing::Values(slpmt, fg, ede, slpmt_redo),
                                            ::testing::Bool()),
                         case_name);

/// The annotations that the compiler finds, and no others.
class FoundByCompiler : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(FoundByCompiler, EveryAcceptanceCanBeTheLast) {
    const auto& [name, small] = GetParam();
    proof_case what{.workload = name,
                    .insertions = name == std::string_view("hashtable")  ? 160U
                                  : name == std::string_view("kv-rtree") ? 24U
                                                                         : 60U,
                    .interrupt_every = 20,
                    .annotations = annotations_by_compiler(name)};
    if (small) what.parts = small_caches();
    expect_proved(what);
}

INSTANTIATE_TEST_SUITE_P(Kernels, FoundByCompiler,
                         ::testing::Combine(::testing::ValuesIn(kernel_names), ::testing::Bool()));
INSTANTIATE_TEST_SUITE_P(KeyValue, FoundByCompiler,
                         ::testing::Combine(::testing::Values("kv-btree", "kv-ctree"),
                                            ::testing::Bool()));
INSTANTIATE_TEST_SUITE_P(Radix, FoundByCompiler,
                         ::testing::Combine(::testing::Values("kv-rtree"),
                                            ::testing::Values(false)));

TEST(Mutants, EveryOneIsRejected) {
    std::size_t rejected = 0;
    for (const mutant& one : mutants(1)) {
        const proof found = prove(one.what);
        EXPECT_GT(found.violations, 0U) << one.name;
        rejected += found.violations != 0;
    }
    EXPECT_GE(rejected, 50U);
}

/// Caches that outlive the power: a crash may come behind every store.
TEST(PersistentCaches, EveryStoreCanBeTheLast) {
    for (const char* name : {"hashtable", "rbtree", "heap", "avl", "kv-btree", "kv-ctree"})
        for (const technique& how : {slpmt, fg, atom})
            for (const bool small : {false, true}) {
                proof_case what{.workload = name,
                                .how = how,
                                .insertions = 12,
                                .value_bytes = 16,
                                .interrupt_every = 60,
                                .continue_every = 60};
                if (name == std::string_view("hashtable")) what.insertions = 52; // resizes once
                if (small) what.parts = small_caches();
                what.parts.memory.caches_persist = true;
                SCOPED_TRACE(std::string(name) + ", " + std::string(how.name) +
                             (small ? ", tiny" : ""));
                expect_proved(what);
            }
}

/// Every resize of a thousand insertions' first 450, with recoveries cut short.
TEST(Resizes, EveryAcceptanceCanBeTheLast) {
    proof_case what{.workload = "hashtable",
                    .insertions = 450,
                    .value_bytes = 16,
                    .interrupt_every = 60,
                    .continue_every = 60};
    expect_proved(what);
    what.parts = small_caches();
    expect_proved(what);
}

} // namespace
