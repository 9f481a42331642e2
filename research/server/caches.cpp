// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache.hpp"

namespace hf::apps::server {

#define HF_DECLARE(build)                                                                          \
    namespace build_##build {                                                                      \
        result<std::unique_ptr<cache>> make(const cache_options& given);                           \
    }
HF_CACHE_ENGINES(HF_DECLARE)

result<std::unique_ptr<cache>> make_cache(std::string_view engine, const cache_options& options) {
#define HF_CHOOSE(build)                                                                           \
    if (engine == #build) return build_##build::make(options);
    HF_CACHE_ENGINES(HF_CHOOSE)
    if (engine == "pmdk") return make_pmdk_cache(options);
    return status(errc::bad_argument, "no such engine: " + std::string(engine));
}

} // namespace hf::apps::server
