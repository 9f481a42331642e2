// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A structure of ours under the benchmark's interface.
#pragma once

#include "../map_under_test.hpp"
#include "../temporary_file.hpp"
#include "../workload.hpp"
#include <structures/namespace.hpp>

#include <holdfast/engines.hpp>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>

// HF_BENCH_BUILD is the build's name as part of an identifier: clobber, vlog_only …
#define HF_BENCH_BUILD_TEXT HF_ENGINE_TEXT(HF_BENCH_BUILD)

namespace hf::bench {
inline namespace HF_STRUCTURES_ENGINE {

// One per structure, each in a source of its own.
std::unique_ptr<map_under_test> make_hashmap(const map_options& given);
std::unique_ptr<map_under_test> make_bptree(const map_options& given);
std::unique_ptr<map_under_test> make_skiplist(const map_options& given);
std::unique_ptr<map_under_test> make_rbtree(const map_options& given);
std::unique_ptr<map_under_test> make_avl(const map_options& given);

inline std::string note_of_build(hf::mode mode) {
    const std::string_view build = HF_BENCH_BUILD_TEXT;
    if (build == "none") return "not failure-atomic";
    if (build == "vlog_only" || build == "clobberlog_only") return "half a log: not failure-atomic";
    const std::string survives = mode == hf::mode::process ? "survives the process"
                                 : mode == hf::mode::pmem  ? "survives power loss on PM"
                                                           : "survives power loss";
    return build == "clobber_unrefined" ? survives + "; refinement off" : survives;
}

inline std::uint64_t as_key(std::uint64_t key, const std::uint64_t*) { return key; }
template <class Key> Key as_key(std::uint64_t key, const Key*) {
    const auto bytes = key_bytes_of<sizeof(Key)>(key);
    Key made;
    static_assert(sizeof made == sizeof bytes);
    std::memcpy(static_cast<void*>(&made), bytes.data(), sizeof bytes);
    return made;
}

/// Map: a structure of the interface that all of ours have.
template <class Map, class Key, class Value> class holdfast_map final : public map_under_test {
public:
    explicit holdfast_map(const map_options& given)
        : file_(given.directory, HF_BENCH_BUILD_TEXT, given.keep_at), pool_(open(given)),
          when_durable_(given.sections_on_return ? "return" : "next"), map_(pool_.root<Map>()) {
        if (map_ == nullptr) give_up("the pool is full");
        if constexpr (requires { map_->reserve(given.keys); })
            if (given.reserve && !map_->reserve(given.keys)) give_up("the pool is full");
    }
    bool insert(std::uint64_t key, const void* bytes) noexcept override {
        return map_->insert(own(key), *static_cast<const Value*>(bytes));
    }
    bool find(std::uint64_t key, void* bytes) noexcept override {
        return map_->find(own(key), static_cast<Value*>(bytes));
    }
    bool update(std::uint64_t key, const void* bytes) noexcept override {
        return insert(key, bytes); // inserts or replaces
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* bytes) noexcept override {
        std::uint64_t seen = 0;
        if constexpr (requires {
                          map_->range(own(key), [](const Key&, const Value&) { return true; });
                      })
            map_->range(own(key), [&](const Key&, const Value& value) {
                std::memcpy(bytes, &value, sizeof value);
                return ++seen < count;
            });
        return seen;
    }
    void begin_batch(std::uint64_t) noexcept override { together_.emplace(pool_); }
    void end_batch() noexcept override { together_.reset(); }
    map_facts facts() const override {
        map_facts all{pool_.emulated(), true, true, note_of_build(pool_.mode())};
        const bool chooses = std::string_view(HF_BENCH_BUILD_TEXT) == "undo";
        if (chooses && pool_.mode() == hf::mode::pmem) all.durability = when_durable_;
        return all;
    }
    std::optional<reopened> state() const override {
        return reopened{pool_.recovered().open_ms, pool_.size_bytes(),
                        pool_.recovered().sections_pending, map_->size(), map_->check()};
    }

private:
    static Key own(std::uint64_t key) { return as_key(key, static_cast<const Key*>(nullptr)); }

    hf::pool open(const map_options& given) {
        hf::open_options options;
        options.layout = "bench/map/1";
        options.create_bytes = pool_bytes(given);
        options.max_bytes = 4 * options.create_bytes;
        options.mode = given.mode;
        options.expert.prefault = given.prefault;
        engine_options engines;
        engines.undo.durable =
            given.sections_on_return ? durability::on_return : durability::by_next_section;
        if constexpr (requires(Map& of, hf::pool& in) { of.rebuild(in); })
            engines.selective.rebuild = [](hf::pool& p) { p.root<Map>()->rebuild(p); };
        options.engines = engines_of_build(engines);
        options.expert.seal = false; // nobody opens it again
        auto opened = hf::pool::open(file_.path(), options);
        if (!opened) give_up(opened.error().what());
        return std::move(*opened);
    }

    static inline thread_local std::optional<durable_together> together_;

    temporary_file file_;
    hf::pool pool_;
    std::string when_durable_;
    Map* map_;
};

template <std::size_t Bytes> using value_of = std::array<std::byte, Bytes>;

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench
