// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: every ordered structure is a map, with every engine, mode and kind of key, while nothing
// crashes. Crash programs explore crashes.
// Method: one suite beside std::map, random operations with fixed seeds, keys in awkward orders,
// several threads, pools that run full. After each the structure's own blocks are all that its pool
// has allocated. The suite (ordered_map_test.cpp) is compiled once: it sees a structure as an
// any_map. A test file defines the structures:
//
//     std::vector<configuration> configurations() { return every_configuration<tree>(); }
#pragma once

#include <structures/bytes_key.hpp>

#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hf::structures::test {

struct value {
    std::array<std::uint64_t, 32> words;
    bool operator==(const value&) const = default;
};

// Keys in the order of their numbers. Keys of 32 bytes differ late, in the last of their words.
using long_key = bytes_key<32>;
inline void make_key(std::uint64_t number, std::uint64_t& key) { key = number; }
inline void make_key(std::uint64_t number, long_key& key) {
    char text[33];
    std::snprintf(text, sizeof text, "user %027llu", static_cast<unsigned long long>(number));
    std::memcpy(key.bytes, text, sizeof key.bytes);
}
inline std::uint64_t number_of(std::uint64_t key) { return key; }
inline std::uint64_t number_of(const long_key& key) {
    const std::string text(reinterpret_cast<const char*>(key.bytes), sizeof key.bytes);
    return std::stoull(text.substr(5));
}

/// A structure in a pool, of any kind and with any keys: numbers represent the keys.
class any_map {
public:
    virtual ~any_map() = default;
    virtual bool insert(std::uint64_t number, const value& given) = 0;
    virtual bool erase(std::uint64_t number) = 0;
    virtual bool find(std::uint64_t number, value* found) const = 0;
    virtual bool check() const = 0;
    virtual std::uint64_t size() const = 0;
    using visitor = std::function<void(std::uint64_t number, const value&)>;
    virtual void for_each(const visitor& visit) const = 0;
    using goes_on = std::function<bool(std::uint64_t number, const value&)>;
    virtual std::uint64_t range(std::uint64_t from, const goes_on& visit) const = 0;
    /// The structure itself and all blocks that it owns.
    virtual std::vector<const void*> blocks() const = 0;
};

template <class Key, class Map> class map_of final : public any_map {
public:
    explicit map_of(hf::pool& pool) : map_(pool.root<Map>()) {}
    bool insert(std::uint64_t number, const value& given) override {
        return map_->insert(key_of(number), given);
    }
    bool erase(std::uint64_t number) override { return map_->erase(key_of(number)); }
    bool find(std::uint64_t number, value* found) const override {
        return map_->find(key_of(number), found);
    }
    bool check() const override { return map_->check(); }
    std::uint64_t size() const override { return map_->size(); }
    void for_each(const visitor& visit) const override {
        map_->for_each([&](const Key& key, const value& found) { visit(number_of(key), found); });
    }
    std::uint64_t range(std::uint64_t from, const goes_on& visit) const override {
        return map_->range(key_of(from), [&](const Key& key, const value& found) {
            return visit(number_of(key), found);
        });
    }
    std::vector<const void*> blocks() const override {
        std::vector<const void*> owned{map_};
        map_->for_each_block([&](const void* block) { owned.push_back(block); });
        return owned;
    }

private:
    static Key key_of(std::uint64_t number) {
        Key made;
        make_key(number, made);
        return made;
    }
    Map* map_;
};

/// A configuration of the suite.
struct configuration {
    const char* name;
    hf::mode mode;
    std::unique_ptr<any_map> (*root)(hf::pool&);
    std::vector<hf::engine_ptr> engines = engines_of_build();
    bool resumes = resumes_sections();
};

template <class Key, class Map> std::unique_ptr<any_map> root_of(hf::pool& pool) {
    return std::make_unique<map_of<Key, Map>>(pool);
}
template <template <class, class> class Structure>
std::vector<configuration> every_configuration() {
    const auto numbers = root_of<std::uint64_t, Structure<std::uint64_t, value>>;
    return {{"process", mode::process, numbers},
            {"pmem", mode::pmem, numbers},
            {"long_keys", mode::pmem, root_of<long_key, Structure<long_key, value>>}};
}

/// The configurations of a structure, which its test file defines.
std::vector<configuration> configurations();

} // namespace hf::structures::test
