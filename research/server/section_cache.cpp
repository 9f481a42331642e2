// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache in a pool. CMakeLists.txt builds this file once for each of HF_CACHE_ENGINES.
#include "sections.hpp"

#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <utility>

namespace hf::apps::server::HF_APPLICATION_BUILD {

using structures::hash_table;

class section_cache final : public cache {
public:
    section_cache(hf::pool&& in, hash_table* at) : pool_(std::move(in)), table_(at) {}

    bool set(const cache_key& key, const cache_value& value) override {
        return put_item(table_, hash_of(key), key, &value);
    }
    bool get(const cache_key& key, cache_value& value) const override {
        const item* const found = find(table_, key, hash_of(key));
        if (found != nullptr) value = found->value;
        return found != nullptr;
    }
    std::uint64_t size() const override { return structures::size(table_); }

private:
    hf::pool pool_;
    hash_table* table_;
};

result<std::unique_ptr<cache>> make(const cache_options& given) {
    hf::open_options how;
    how.layout = "server-cache/1";
    how.root_bytes = sizeof(hash_table);
    how.create_bytes = 64_MiB + given.keys * 512;
    how.max_bytes = 4 * how.create_bytes;
    how.mode = mode::pmem;
    how.engines = engines_of_build();
    auto opened = pool::open(given.path, how);
    if (!opened) return opened.error();
    const auto root = opened->find_root<hash_table>();
    if (!root) return root.error();
    if (!reserve_buckets(*root, given.keys)) return opened->why_full();
    return std::unique_ptr<cache>(std::make_unique<section_cache>(std::move(*opened), *root));
}

} // namespace hf::apps::server::HF_APPLICATION_BUILD
