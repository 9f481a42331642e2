// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "corpus.hpp"

#include "files.hpp"

#include <vector>

/// All subjects, as this build has them.
extern "C" hf::bench::plain::subjects HF_STRUCTURES_JOIN(hf_bench_plain_, HF_BENCH_BUILD)() {
    using namespace hf::bench::plain;
    static const std::vector<subject> all = [] {
        std::vector<subject> found;
        for (const subjects& some :
             {textbook::list(), ut_hash::list(), boost_trees::list(), boost_hash::list(),
              libstdcxx::list(), libstdcxx_nodes::list(), libcxx::list()})
            found.insert(found.end(), some.first, some.first + some.count);
        return found;
    }();
    return {all.data(), all.size()};
}
