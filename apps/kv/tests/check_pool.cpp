// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// kv_check_pool POOL: opens a pool of holdfast-kv, recovery included, and says whether it is whole.
#include <kv/store/pool_check.hpp>

#include <cstdio>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: kv_check_pool POOL\n");
        return 2;
    }
    hf::kv::store_options options;
    options.path = argv[1];
    options.create = false;
    auto opened = hf::kv::store::open(options);
    if (!opened) {
        std::fprintf(stderr, "kv_check_pool: %s\n", opened.error().what().c_str());
        return 2;
    }
    const hf::recovery_report& recovered = (*opened)->pool().recovered();
    const hf::kv::pool_findings found = hf::kv::check_pool(**opened);
    std::printf("items %llu bad_tables %llu bad_items %llu leaked %llu dangling %llu re_executed "
                "%u rolled_back %u discarded %u\n",
                static_cast<unsigned long long>(found.items),
                static_cast<unsigned long long>(found.bad_tables),
                static_cast<unsigned long long>(found.bad_items),
                static_cast<unsigned long long>(found.leaked),
                static_cast<unsigned long long>(found.dangling), recovered.re_executed,
                recovered.rolled_back, recovered.discarded);
    return found.whole() ? 0 : 1;
}
