// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HF_ENGINES is HF_ENGINE(name) of each engine that this build links, in the table's order (src/CMakeLists.txt).
#include <holdfast/engines.hpp>

#define HF_ENGINE(name)                                                                            \
    namespace hf::name {                                                                           \
    const hf::engine* engine() noexcept;                                                           \
    }
HF_ENGINES
#undef HF_ENGINE

namespace hf {

std::vector<const engine*> all_engines() {
    std::vector<const engine*> all;
#define HF_ENGINE(name) all.push_back(name::engine());
    HF_ENGINES
#undef HF_ENGINE
    return all;
}

} // namespace hf
