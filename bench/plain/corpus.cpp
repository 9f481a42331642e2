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
#if defined(HF_PLAIN_INTRUSIVE) // those that take no memory by themselves, or by a hook
             {ut_hash::list(), boost_trees::list()})
#else
             {textbook::list(), ut_hash::list(), boost_trees::list(), boost_hash::list(),
              libstdcxx::list(), libstdcxx_nodes::list(), libcxx::list()})
#endif
            found.insert(found.end(), some.first, some.first + some.count);
        return found;
    }();
    return {all.data(), all.size()};
}
