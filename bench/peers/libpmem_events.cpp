// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "libpmem_events.hpp"

#include <dlfcn.h>

namespace hf::bench {
namespace {

using counting = decltype(hf_bench_libpmem_events)*;
counting preloaded() {
    static const auto found =
        reinterpret_cast<counting>(dlsym(RTLD_DEFAULT, "hf_bench_libpmem_events"));
    return found;
}

} // namespace

bool libpmem_is_counted() { return preloaded() != nullptr; }

libpmem_events libpmem_events_now() {
    return preloaded() == nullptr ? libpmem_events{} : *preloaded()();
}

} // namespace hf::bench
