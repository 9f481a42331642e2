// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache behind a pointer.
#include <c/bytes.hpp>

#include <holdfast/mod/cache.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

using namespace hf::c;
using hf::errc;

struct hf_mod_cache {
    hf::mod::cache of;
};

namespace {

/// 0: the cache's.
std::optional<std::chrono::seconds> ttl_of(std::uint32_t ttl_s) noexcept {
    if (ttl_s == 0) return {};
    return ttl_s == HF_MOD_FOREVER ? hf::mod::forever : std::chrono::seconds(ttl_s);
}
hf_status told_whether(const hf::result<bool>& stored, int* whether) noexcept {
    if (!stored) return told(stored.error());
    if (whether != nullptr) *whether = *stored;
    return HF_OK;
}
hf_status if_there(const hf::result<bool>& done) noexcept {
    if (!done) return told(done.error());
    return *done ? HF_OK : not_found();
}

class cache_cursor final : public hf_mod_cursor {
public:
    explicit cache_cursor(const hf::mod::cache& of) : left_(of.entries()) {}
    bool next(hf_bytes* element, hf_bytes* value) noexcept override {
        const auto found = left_.next();
        if (!found) return false;
        *element = bytes(found->first);
        if (value != nullptr) *value = bytes(found->second);
        return true;
    }

private:
    hf::mod::cache::cursor left_;
};

} // namespace

extern "C" {

hf_status hf_mod_cache_open(hf_pool* pool, const char* name, const hf_mod_cache_options* options,
                            hf_mod_cache** cache) noexcept {
    *cache = nullptr;
    return guarded([&] {
        auto found = hf::mod::cache::open(
            pool->opened, name,
            {.max_bytes = options->max_bytes,
             .ttl = ttl_of(options->ttl_s).value_or(hf::mod::forever),
             .when_durable = static_cast<hf::mod::durability>(options->when_durable)});
        if (!found) return told(found.error());
        *cache = new hf_mod_cache{*std::move(found)};
        return HF_OK;
    });
}
void hf_mod_cache_close(hf_mod_cache* cache) noexcept { delete cache; }

hf_status hf_mod_cache_get(hf_mod_cache* cache, hf_bytes key, hf_bytes* value) noexcept {
    return guarded([&] {
        const auto found = cache->of.view(view(key));
        if (!found) return not_found();
        give(*found, value);
        return HF_OK;
    });
}
hf_status hf_mod_cache_find(const hf_mod_cache* cache, hf_bytes key) noexcept {
    return guarded([&] { return cache->of.contains(view(key)) ? HF_OK : not_found(); });
}

hf_status hf_mod_cache_put(hf_mod_cache* cache, hf_bytes key, hf_bytes value,
                           std::uint32_t ttl_s) noexcept {
    return guarded([&] { return told(cache->of.put(view(key), view(value), ttl_of(ttl_s))); });
}
hf_status hf_mod_cache_add(hf_mod_cache* cache, hf_bytes key, hf_bytes value, std::uint32_t ttl_s,
                           int* stored) noexcept {
    return guarded(
        [&] { return told_whether(cache->of.add(view(key), view(value), ttl_of(ttl_s)), stored); });
}
hf_status hf_mod_cache_replace(hf_mod_cache* cache, hf_bytes key, hf_bytes value,
                               std::uint32_t ttl_s, int* stored) noexcept {
    return guarded([&] {
        return told_whether(cache->of.replace(view(key), view(value), ttl_of(ttl_s)), stored);
    });
}
hf_status hf_mod_cache_touch(hf_mod_cache* cache, hf_bytes key, std::uint32_t ttl_s) noexcept {
    return guarded([&] { return if_there(cache->of.touch(view(key), ttl_of(ttl_s))); });
}
hf_status hf_mod_cache_erase(hf_mod_cache* cache, hf_bytes key) noexcept {
    return guarded([&] { return if_there(cache->of.erase(view(key))); });
}

hf_status hf_mod_cache_get_or_compute(hf_mod_cache* cache, hf_bytes key, std::uint32_t ttl_s,
                                      hf_mod_cache_make make, void* context,
                                      hf_bytes* value) noexcept {
    return guarded([&] {
        hf_status why = HF_OK;
        const auto found = cache->of.get_or_compute(
            view(key),
            [&]() -> hf::result<std::string> {
                hf_bytes made{nullptr, 0};
                why = make(context, key, &made);
                if (why != HF_OK) return hf::status{errc::not_found, {}}; // 'why' is what counts
                return std::string(view(made));
            },
            ttl_of(ttl_s));
        if (why != HF_OK) return why;
        if (!found) return told(found.error());
        give(*found, value);
        return HF_OK;
    });
}

hf_status hf_mod_cache_clear(hf_mod_cache* cache) noexcept {
    return guarded([&] { return told(cache->of.clear()); });
}
hf_status hf_mod_cache_expire(hf_mod_cache* cache, std::uint64_t* removed_count) noexcept {
    return guarded([&] {
        const auto removed = cache->of.expire();
        if (!removed) return told(removed.error());
        if (removed_count != nullptr) *removed_count = *removed;
        return HF_OK;
    });
}
hf_status hf_mod_cache_iterate(const hf_mod_cache* cache, hf_mod_cursor** cursor) noexcept {
    return give_cursor(cursor, [&] { return new cache_cursor(cache->of); });
}

std::uint64_t hf_mod_cache_count(const hf_mod_cache* cache) noexcept { return cache->of.size(); }
std::uint64_t hf_mod_cache_bytes(const hf_mod_cache* cache) noexcept { return cache->of.bytes(); }
hf_mod_cache_statistics hf_mod_cache_read_statistics(const hf_mod_cache* cache) noexcept {
    const auto is = cache->of.statistics();
    return {is.hits, is.misses, is.evictions, is.expirations, is.not_stored};
}

} // extern "C"
