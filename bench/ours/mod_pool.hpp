// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool for one of engine mod's structures, and what a run says of it.
#pragma once

#include "../map_under_test.hpp"
#include "../temporary_file.hpp"

#include <holdfast/author/mod/store.hpp>
#include <holdfast/pool.hpp>

#include <optional>
#include <utility>

namespace hf::bench {

class mod_pool {
public:
    explicit mod_pool(const map_options& given)
        : file_(given.directory, "mod", given.keep_at), pool_(open(given)),
          on_return_(given.durable_on_return) {}

    /// The structure of this name, with the durability that was asked for.
    template <class Structure> Structure structure(std::string_view name) {
        auto opened = Structure::open(pool_, mod::place{name});
        if (!opened) give_up(opened.error().what());
        opened->set_durability(on_return_ ? mod::durability::on_return
                                          : mod::durability::by_next_section);
        return *opened;
    }
    map_facts facts() const {
        map_facts all{pool_.emulated(), true, true, "survives the process"};
        if (pool_.mode() == hf::mode::process) return all;
        all.durability = on_return_ ? "return" : "next";
        all.note = on_return_ ? "survives power loss on PM, each update on return"
                              : "survives power loss on PM, each update when the next one returns";
        return all;
    }
    std::optional<memory_use> memory(std::uint64_t elements) {
        if (!store().collect().ok()) return std::nullopt;
        const mod::store_account now = store().account();
        return memory_use{elements, now.node_bytes, now.arena_bytes};
    }
    std::optional<reopened> state(std::uint64_t keys) {
        reopened seen;
        seen.open_ms = pool_.recovered().open_ms;
        seen.file_bytes = pool_.size_bytes();
        seen.sections_pending = pool_.recovered().sections_pending;
        seen.keys = keys;
        seen.sound = store().verify().ok();
        return seen;
    }
    mod::store& store() { return mod::store::in(pool_); }
    void begin_batch() { together_.emplace(pool_); }
    static void end_batch() { together_.reset(); }

private:
    hf::pool open(const map_options& given) {
        hf::open_options options;
        options.layout = "bench/mod/1";
        options.create_bytes = pool_bytes(given);
        options.max_bytes = 4 * options.create_bytes;
        options.mode = given.mode;
        options.expert.prefault = given.prefault;
        options.engines = {mod::engine()};
        options.expert.seal = false; // nobody opens it again
        auto opened = hf::pool::open(file_.path(), options);
        if (!opened) give_up(opened.error().what());
        return std::move(*opened);
    }

    temporary_file file_;
    hf::pool pool_;
    bool on_return_;
    static inline thread_local std::optional<durable_together> together_;
};

} // namespace hf::bench
