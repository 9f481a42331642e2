// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workload.hpp"

namespace kill_test {

std::vector<workload*> workloads() {
    return {&map_workload(), &bank_workload(), &locked_workload()};
}

} // namespace kill_test
