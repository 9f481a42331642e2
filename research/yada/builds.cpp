// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../peer/builds.hpp"

#include "../peer/random.hpp"
#include "refinement.hpp"

namespace hf::apps::yada {

#define HF_DECLARE(build)                                                                          \
    namespace build_##build {                                                                      \
        result<std::unique_ptr<refinement>> open(const mesh_options& given);                       \
    }
HF_APPLICATION_BUILDS(HF_DECLARE)

result<std::unique_ptr<refinement>> open_mesh(std::string_view engine,
                                              const mesh_options& options) {
#define HF_CHOOSE(build)                                                                           \
    if (engine == #build) return build_##build::open(options);
    HF_APPLICATION_BUILDS(HF_CHOOSE)
    return status(errc::bad_argument, "no such engine: " + std::string(engine));
}

point input_point(std::uint64_t seed, std::uint64_t number) noexcept {
    random_words random(seed ^ number * 0x9e3779b97f4a7c15ULL);
    const auto inside = [&] { return static_cast<std::int32_t>(1 + random.below(grid_side - 1)); };
    const std::int32_t x = inside();
    return {x, inside()};
}

} // namespace hf::apps::yada
