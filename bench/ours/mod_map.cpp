// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine mod's map and set. One lock, as its writers take turns anyway and a handle is not read
// beside them; the peers' locks cost as much.
#include "maps.hpp"
#include "mod_pool.hpp"

#include <holdfast/lock.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/set.hpp>

#include <array>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

template <std::size_t Bytes> class mod_map final : public map_under_test {
    using value = std::array<std::byte, Bytes>;

public:
    explicit mod_map(const map_options& given)
        : pool_(given), map_(pool_.structure<mod::map<std::uint64_t, value>>("map")) {}
    bool insert(std::uint64_t key, const void* bytes) noexcept override {
        const std::unique_lock held{lock_};
        const auto done = map_.insert(key, *static_cast<const value*>(bytes));
        return done && *done;
    }
    bool update(std::uint64_t key, const void* bytes) noexcept override {
        const std::unique_lock held{lock_};
        return bool(map_.insert_or_assign(key, *static_cast<const value*>(bytes)));
    }
    bool find(std::uint64_t key, void* bytes) noexcept override {
        const std::shared_lock held{lock_};
        const value* found = map_.get(key);
        if (found != nullptr) std::memcpy(bytes, found, sizeof *found);
        return found != nullptr;
    }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    void begin_batch(std::uint64_t) noexcept override { pool_.begin_batch(); }
    void end_batch() noexcept override { mod_pool::end_batch(); }
    map_facts facts() const override { return pool_.facts(); }
    std::optional<memory_use> memory() override { return pool_.memory(map_.size()); }

private:
    mod_pool pool_;
    mod::map<std::uint64_t, value> map_;
    hf::shared_mutex lock_;
};

class mod_set final : public map_under_test {
public:
    explicit mod_set(const map_options& given)
        : pool_(given), set_(pool_.structure<mod::set<std::uint64_t>>("set")) {}
    bool insert(std::uint64_t key, const void*) noexcept override {
        const std::unique_lock held{lock_};
        const auto done = set_.insert(key);
        return done && *done;
    }
    bool update(std::uint64_t key, const void*) noexcept override { return find(key, nullptr); }
    bool find(std::uint64_t key, void*) noexcept override {
        const std::shared_lock held{lock_};
        return set_.contains(key);
    }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    void begin_batch(std::uint64_t) noexcept override { pool_.begin_batch(); }
    void end_batch() noexcept override { mod_pool::end_batch(); }
    map_facts facts() const override { return pool_.facts(); }
    std::optional<memory_use> memory() override { return pool_.memory(set_.size()); }

private:
    mod_pool pool_;
    mod::set<std::uint64_t> set_;
    hf::shared_mutex lock_;
};

} // namespace

std::unique_ptr<map_under_test> make_map_mod(const map_options& given) {
    if (given.which == structure::set) return std::make_unique<mod_set>(given);
    switch (given.value_bytes) {
    case 32: return std::make_unique<mod_map<32>>(given);
    case 64: return std::make_unique<mod_map<64>>(given);
    case 256: return std::make_unique<mod_map<256>>(given);
    case 1024: return std::make_unique<mod_map<1024>>(given);
    default: give_up("--value-bytes is 32, 64, 256 or 1024");
    }
}

} // namespace hf::bench
