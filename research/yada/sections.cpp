// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A refinement in a pool. CMakeLists.txt builds this file once for each engine.
#include "sections.hpp"

#include <holdfast/engines.hpp>

#include <cmath>
#include <mutex>
#include <numbers>
#include <utility>

namespace hf::apps::yada::HF_APPLICATION_BUILD {

class pool_refinement final : public refinement {
public:
    pool_refinement(hf::pool&& in, mesh* at) : pool_(std::move(in)), mesh_(at) {}

    const mesh& seen() const override { return *mesh_; }
    outcome place(point next) override {
        const std::scoped_lock held{mesh_->lock};
        return place_one(mesh_, next);
    }
    outcome refine() override {
        const std::scoped_lock held{mesh_->lock};
        return refine_one(mesh_);
    }

private:
    hf::pool pool_;
    mesh* mesh_;
};

result<std::unique_ptr<refinement>> open(const mesh_options& given) {
    hf::open_options options;
    options.layout = "yada/1";
    options.root_bytes = sizeof(mesh);
    // An element needs a block of 96 bytes; at 30 degrees there are five for each point.
    options.create_bytes = (std::uint64_t{16} << 20) + given.points * 1024;
    options.max_bytes = 16 * options.create_bytes;
    options.mode = given.mode;
    options.expert.prefault = given.prefault;
    options.engines = engines_of_build();
    auto opened = hf::pool::open(given.path, options);
    if (!opened) return opened.error();
    const auto root = opened->find_root<mesh>();
    if (!root) return root.error();
    mesh* const at = *root;
    const double limit = std::tan(given.degrees * std::numbers::pi / 180);
    if (at->elements == 0) {
        const std::scoped_lock held{at->lock};
        if (!lay_out(at, limit)) return opened->why_full();
    }
    if (at->limit != limit)
        return status(errc::bad_argument, "the pool's mesh has another smallest angle than " +
                                              std::to_string(given.degrees) +
                                              " degrees: give that one, or another file");
    return std::unique_ptr<refinement>(std::make_unique<pool_refinement>(std::move(*opened), at));
}

} // namespace hf::apps::yada::HF_APPLICATION_BUILD
