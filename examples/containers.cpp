// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::map, std::unordered_map and std::vector in a file. Every run adds to them; kill it halfway
// and the next run finds all three whole:
//
//   $ example_containers
//   3 articles, 5 pieces
//   $ HOLDFAST_CRASH_AT=half-added example_containers
//   Killed
//   $ example_containers
//   recovered 1 section
//   7 articles, 11 pieces
//
// Built with -stdlib=libc++ throughout; Holdfast itself may be built with another library, so the
// pool is opened through the C API.
#include "inventory.hpp"

#include <holdfast/holdfast.h>

#include <cstdio>
#include <mutex>

using namespace inventory;

int main(int argc, char** argv) {
    hf_pool* pool = nullptr;
    hf_open_options options{};
    options.layout = layout;
    if (hf_pool_open(argc > 1 ? argv[1] : "inventory.hf", &options, &pool) != HF_OK)
        return std::puts(hf_error_text()), 1;
    const hf_recovered recovered = hf_pool_recovered(pool);
    if (recovered.sections_pending != 0)
        std::printf("recovered %u section\n", recovered.sections_pending);

    void* root = nullptr;
    if (hf_pool_root(pool, sizeof(store), &root) != HF_OK) return std::puts(hf_error_text()), 1;
    store* s = static_cast<store*>(root);
    {
        const std::scoped_lock held{s->lock};
        if (!create(s)) return std::puts("the pool is full"), 1;
        const number next = s->all->articles.size() + 1;
        add(pool, s, next, 1);
        add(pool, s, next + 1, 2);
        add(pool, s, next + 2, 1);
        add(pool, s, next, 1);
        number pieces = 0;
        for (const auto& [article, amount] : s->all->amount) pieces += amount;
        std::printf("%zu articles, %llu pieces%s\n", s->all->articles.size(),
                    static_cast<unsigned long long>(pieces),
                    whole(*s->all) ? "" : ": they do not agree");
    }
    hf_pool_close(pool);
}
