// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HF_ENGINES is HF_ENGINE(name) of each engine that this build links, in the table's order
// (src/CMakeLists.txt).
#include <holdfast/engines.hpp>

#undef HF_ENGINE // of a source without an engine
#define HF_ENGINE(name)                                                                            \
    namespace hf::name {                                                                           \
    engine_ptr engine() noexcept;                                                                  \
    }
HF_ENGINES
#undef HF_ENGINE

namespace hf {

std::vector<engine_ptr> all_engines() {
    std::vector<engine_ptr> all;
#define HF_ENGINE(name) all.push_back(name::engine());
    HF_ENGINES
#undef HF_ENGINE
    return all;
}

} // namespace hf
