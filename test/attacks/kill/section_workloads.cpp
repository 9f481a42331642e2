// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workload.hpp"

#include <holdfast/author/selective.hpp>

namespace kill_test {

std::vector<workload*> workloads() {
    std::vector<workload*> all{&map_workload(), &bank_workload(), &blob_workload(),
                               &grid_workload()};
#ifdef KILL_CONTAINERS
    all.push_back(&containers_workload());
#endif
    if (hf::selective::chosen) all.push_back(&tree_workload());
    return all;
}

} // namespace kill_test
