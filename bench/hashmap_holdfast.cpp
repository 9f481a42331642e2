// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our hash map under the benchmark's interface. This file is built once per engine.
#include "map_under_test.hpp"
#include "temporary_file.hpp"
#include <structures/engine_of_build.hpp>
#include <structures/hash_map.hpp>

#include <array>
#include <cstring>

namespace hf::bench {
namespace {

template <std::size_t ValueBytes> class holdfast_map final : public map_under_test {
    using value = std::array<std::byte, ValueBytes>;
    using map = structures::hash_map<std::uint64_t, value>;

public:
    explicit holdfast_map(const map_options& given)
        : file_(given.directory, structures::engine_of_build()), pool_(open(given)),
          map_(pool_.root<map>()) {
        if (map_ == nullptr) give_up("the pool is full");
        if (given.reserve && !map_->reserve(given.keys)) give_up("the pool is full");
    }
    bool insert(std::uint64_t key, const void* bytes) noexcept override {
        return map_->insert(key, *static_cast<const value*>(bytes));
    }
    bool find(std::uint64_t key, void* bytes) noexcept override {
        return map_->find(key, static_cast<value*>(bytes));
    }
    map_facts facts() const override {
        return {pool_.emulated(), true,
                structures::engine_of_build() == "none" ? "not failure-atomic" : ""};
    }

private:
    hf::pool open(const map_options& given) {
        hf::open_options options;
        options.layout = "bench/hashmap/1";
        options.create_bytes = pool_bytes(given);
        options.max_bytes = 4 * options.create_bytes;
        options.mode = given.mode;
        options.prefault = given.prefault;
        options.engines = structures::engines_of_build();
        auto opened = hf::pool::open(file_.path(), options);
        if (!opened) give_up(opened.error().what());
        return std::move(*opened);
    }

    temporary_file file_;
    hf::pool pool_;
    map* map_;
};

} // namespace

std::unique_ptr<map_under_test> HF_STRUCTURES_JOIN(make_map_, HF_ENGINE)(const map_options& given) {
    switch (given.value_bytes) {
    case 64: return std::make_unique<holdfast_map<64>>(given);
    case 256: return std::make_unique<holdfast_map<256>>(given);
    case 1024: return std::make_unique<holdfast_map<1024>>(given);
    default: give_up("--value-bytes is 64, 256 or 1024");
    }
}

} // namespace hf::bench
