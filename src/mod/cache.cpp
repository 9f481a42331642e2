// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cache's calls do. What they evict: cache_eviction.cpp.
#include <mod/cache_impl.hpp>
#include <mod/store_impl.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <set>
#include <utility>

namespace hf::mod {
namespace {

using detail::cache_entries;
using detail::cache_entry;
using detail::cache_head;
using detail::flight;
using detail::read_counts;

constexpr unsigned rounds_max = 16; // of making room in a full pool
constexpr std::size_t erased_at_once = 256;
constexpr std::uint64_t ttl_max_s = UINT32_MAX;

std::size_t place_of_thread() noexcept {
    static thread_local const std::size_t place =
        std::hash<std::thread::id>{}(std::this_thread::get_id()) % detail::read_counts_of;
    return place;
}

/// The roots of all caches that this process has open.
struct open_roots {
    std::mutex lock;
    std::set<const root*> all;
    static open_roots& of_process() {
        static auto* const made = new open_roots; // caches may outlive static destructors
        return *made;
    }
};

} // namespace

cache::impl::~impl() {
    give_up_reserve();
    if (!listed_) return;
    auto& open = open_roots::of_process();
    const std::scoped_lock held{open.lock};
    open.all.erase(items_.its_root());
}

bool cache::impl::list() {
    auto& open = open_roots::of_process();
    const std::scoped_lock held{open.lock};
    return listed_ = open.all.insert(items_.its_root()).second;
}

cache::impl::impl(const pool& in, std::string_view name, const cache_options& how,
                  detail::cache_entries items)
    : name_(name), path_(in.internals().file->path()),
      chunk_bytes_(in.internals().file->shape().chunk_bytes),
      pool_bytes_max_(in.internals().file->shape().max_bytes),
      read_only_(in.internals().file->read_only()), max_bytes_(how.max_bytes), ttl_(how.ttl),
      items_(items), clock_(how.clock_s), uses_(places_for(how.max_bytes)) {
    items_.set_durability(how.when_durable);
}

status cache::impl::fail(errc code, const std::string& why) const {
    return {code, fmt::format("{}: {}: cache \"{}\": {}", path_, hf::name(code), name_, why)};
}

std::uint64_t cache::impl::bytes_of(std::size_t key_bytes, std::size_t value_bytes) const noexcept {
    const std::uint64_t node = sizeof(detail::blob) + sizeof(cache_head) + key_bytes + value_bytes;
    const std::uint64_t slot = node <= chunk_bytes_ / 8
                                   ? class_bytes(class_of(node))
                                   : round_up(slots_at(1) + node, chunk_bytes_);
    return slot + entry_nodes_bytes;
}

status cache::impl::begin() {
    std::uint64_t bytes = 0, newest = 0;
    {
        const auto now = items_.snapshot(); // while it lives, it holds back what is evicted
        for (const auto& [key, stored] : now) {
            bytes += bytes_of_stored(key, stored);
            const std::uint32_t stored_s = cache_entry(stored).head.stored_s;
            if (stored_s <= detail::latest_put_s)
                newest = std::max<std::uint64_t>(newest, stored_s);
        }
    }
    clock_.start(newest);
    bytes_ = bytes;
    if (read_only_) return {}; // it keeps what it has
    const std::scoped_lock held{changes_};
    if (bytes > pool_bytes_max_ / 2) hold_reserve(); // it may have been full
    return evict_surplus();
}

// Reads.

cached_value cache::impl::view(std::string_view key) {
    auto now = items_.snapshot();
    read_counts& counts = reads_[place_of_thread()];
    if (const auto stored = now.get(key)) {
        const cache_entry found(*stored);
        if (!is_over(found)) {
            note_use(key);
            count(counts.hits);
            return {std::move(now), found.value};
        }
    }
    count(counts.misses);
    return {};
}

std::optional<std::string> cache::impl::peek(std::string_view key) const {
    const auto now = items_.snapshot();
    const auto stored = now.get(key);
    if (!stored || is_over(cache_entry(*stored))) return {};
    return std::string(cache_entry(*stored).value);
}

bool cache::impl::contains(std::string_view key) const {
    const auto now = items_.snapshot();
    const auto stored = now.get(key);
    return stored && !is_over(cache_entry(*stored));
}

cache_statistics cache::impl::statistics() const {
    cache_statistics all{.evictions = evictions_, .expirations = expirations_};
    all.not_stored = not_stored_;
    for (const read_counts& each : reads_) all.hits += each.hits, all.misses += each.misses;
    return all;
}

// Changes.

result<std::uint32_t> cache::impl::ttl_of(std::optional<seconds> wanted) const {
    const seconds ttl = wanted.value_or(ttl_);
    if (ttl == forever) return std::uint32_t{0};
    if (ttl.count() < 1 || static_cast<std::uint64_t>(ttl.count()) > ttl_max_s)
        return fail(errc::bad_argument,
                    fmt::format("ttl: expected 1 to {} seconds, or forever, found {}", ttl_max_s,
                                ttl.count()));
    return static_cast<std::uint32_t>(ttl.count());
}

std::optional<cache_entry> cache::impl::alive(std::string_view key) const {
    const auto stored = items_.get(key);
    if (!stored || is_over(cache_entry(*stored))) return {};
    return cache_entry(*stored);
}

result<bool> cache::impl::store(std::string_view key, std::string_view value,
                                std::optional<seconds> ttl, only when) {
    const auto ttl_s = ttl_of(ttl);
    if (!ttl_s) return ttl_s.error();
    const std::scoped_lock held{changes_};
    if (when != only::always && alive(key).has_value() != (when == only::if_there)) return false;
    const auto stored_s = static_cast<std::uint32_t>(std::min<std::uint64_t>(now_s(), UINT32_MAX));
    if (status kept = keep(key, {stored_s, *ttl_s}, value); !kept.ok()) return kept;
    return true;
}

result<bool> cache::impl::touch(std::string_view key, std::optional<seconds> ttl) {
    const auto ttl_s = ttl_of(ttl);
    if (!ttl_s) return ttl_s.error();
    const std::scoped_lock held{changes_};
    const auto found = alive(key);
    if (!found) return false;
    const auto stored_s = static_cast<std::uint32_t>(std::min<std::uint64_t>(now_s(), UINT32_MAX));
    if (status kept = keep(key, {stored_s, *ttl_s}, found->value); !kept.ok()) return kept;
    return true;
}

// Makes the change of the key. While the pool is full, it evicts others until the change finds
// memory, a string of so many bytes included.
template <class Change>
status cache::impl::in_room(std::string_view key, std::size_t string_bytes, Change&& change) {
    for (unsigned round = 0;; ++round) {
        status made = change();
        if (made.ok() || made.code() != errc::pool_full || round == rounds_max) return made;
        if (!clear_memory(key, string_bytes, round >= rounds_max / 2)) return made;
    }
}

// Stores head and value under the key.
status cache::impl::keep(std::string_view key, cache_head head, std::string_view value) {
    if (const std::uint64_t needed = bytes_of(key.size(), value.size()); needed > max_bytes_)
        return fail(errc::bad_argument, fmt::format("an entry: expected at most {} bytes, found {}",
                                                    max_bytes_, needed));
    stored_.assign(reinterpret_cast<const char*>(&head), sizeof head).append(value);
    status kept = in_room(key, key.size() + stored_.size(), [&] { return keep_once(key); });
    if (!kept.ok()) return kept;
    constexpr std::size_t worth_keeping_bytes = 64 << 10;
    if (stored_.capacity() > worth_keeping_bytes) stored_ = {};
    std::uint32_t next = puts_.load(std::memory_order_relaxed) + 1;
    if (next == 0) next = 1; // (2)
    puts_.store(next, std::memory_order_relaxed);
    note_use(key);
    return {};
}

status cache::impl::keep_once(std::string_view key) {
    std::vector<candidate> gone;
    std::uint64_t after = bytes() + bytes_of_stored(key, stored_);
    bool replaces_expired = false;
    if (const auto old = items_.get(key)) {
        after -= std::min(after, bytes_of_stored(key, *old));
        replaces_expired = is_over(cache_entry(*old));
    }
    if (after > max_bytes_) gone = to_go(after - max_bytes_, &key);
    bool found = true;
    status kept = items_.update([&](auto& batch) {
        for (const candidate& each : gone) found = batch.erase(each.key) && found;
        batch.insert_or_assign(key, stored_);
        return found || batch.failed();
    });
    if (kept.ok() && !found)
        kept = fail(errc::corrupt, "expected an entry where its hash leads to, found none");
    if (!kept.ok()) return kept;
    account(after, gone);
    if (replaces_expired) count(expirations_);
    return {};
}

result<bool> cache::impl::erase(std::string_view key) {
    const std::scoped_lock held{changes_};
    const auto old = items_.get(key);
    if (!old) return false;
    const bool over = is_over(cache_entry(*old));
    const std::uint64_t its = bytes_of_stored(key, *old);
    status erased = in_room(key, 0, [&] {
        const auto gone = items_.erase(key);
        return gone ? status() : gone.error();
    });
    if (!erased.ok()) return erased;
    bytes_ = bytes() - std::min(bytes(), its);
    if (over) count(expirations_);
    return !over;
}

status cache::impl::clear() {
    const std::scoped_lock held{changes_};
    status cleared = items_.clear();
    if (cleared.ok()) bytes_ = 0;
    return cleared;
}

result<std::size_t> cache::impl::expire() {
    std::vector<std::string> over;
    {
        const auto now = items_.snapshot();
        for (const auto& [key, stored] : now)
            if (is_over(cache_entry(stored))) over.emplace_back(key);
    }
    std::size_t erased_count = 0;
    for (std::size_t from = 0; from < over.size(); from += erased_at_once) {
        const std::scoped_lock held{changes_};
        std::vector<candidate> gone;
        for (std::size_t i = from; i < std::min(from + erased_at_once, over.size()); ++i) {
            const auto stored = items_.get(over[i]);
            if (stored && is_over(cache_entry(*stored)))
                gone.push_back(candidate_of(over[i], *stored, now_s()));
        }
        const auto erased = erase_in_pieces(gone);
        if (!erased) return erased.error();
        erased_count += *erased;
    }
    return erased_count;
}

// Whether the value waits for this thread: its maker is this one, or waits for a value that does.
bool cache::impl::waits_for_itself(const flight& wanted) const {
    for (const flight* next = &wanted; !next->landed;) {
        if (next->maker == std::this_thread::get_id()) return true;
        const auto waits = waiting_.find(next->maker);
        if (waits == waiting_.end()) return false;
        next = waits->second.get();
    }
    return false;
}

result<std::string> cache::impl::compute(std::string_view key,
                                         const std::function<result<std::string>()>& make,
                                         std::optional<seconds> ttl) {
    if (const auto valid = ttl_of(ttl); !valid) return valid.error();
    if (const auto there = view(key)) return std::string(*there);
    std::shared_ptr<flight> mine;
    for (std::unique_lock held{flights_lock_}; mine == nullptr;) {
        const auto known = flights_.find(key);
        if (known == flights_.end()) {
            mine = std::make_shared<flight>();
            flights_.emplace(std::string(key), mine);
            continue;
        }
        const std::shared_ptr<flight> theirs = known->second;
        if (waits_for_itself(*theirs))
            return fail(errc::bad_argument,
                        "get_or_compute: expected a function that does without its own value, "
                        "found one that asks for it");
        const auto waits = waiting_.emplace(std::this_thread::get_id(), theirs).first;
        landed_.wait(held, [&] { return theirs->landed; });
        waiting_.erase(waits);
        if (theirs->value) return *theirs->value;
    }
    struct landing {
        impl& of;
        std::string_view key;
        flight& made;
        ~landing() {
            const std::scoped_lock held{of.flights_lock_};
            of.flights_.erase(of.flights_.find(key));
            made.landed = true;
            of.landed_.notify_all();
        }
    } const lands{*this, key, *mine};
    // Another thread may have put it since this one looked.
    mine->value = peek(key);
    if (mine->value) return *mine->value;
    result<std::string> made = make();
    if (!made) return made;
    if (const auto kept = store(key, *made, ttl, only::always); !kept) count(not_stored_);
    mine->value = *made;
    return made;
}

// The face.

result<cache> cache::open(const pool& in, std::string_view name, const cache_options& how) try {
    const auto refused = [&](errc code, const std::string& why) {
        return status{code, fmt::format("{}: {}: cache \"{}\": {}", in.internals().file->path(),
                                        hf::name(code), name, why)};
    };
    if (how.max_bytes == 0)
        return refused(errc::bad_argument,
                       "max_bytes: expected a number of bytes above 0, found 0");
    auto items = cache_entries::open(in, {name});
    if (!items) return items.error();
    auto made = std::make_shared<impl>(in, name, how, *items);
    if (const auto ttl = made->default_ttl(); !ttl) return ttl.error();
    if (!made->list())
        return refused(errc::in_use,
                       "expected one open handle in this process, found another: copy that");
    if (status begun = made->begin(); !begun.ok()) return begun;
    return cache(std::move(made));
} catch (const std::bad_alloc&) {
    return out_of_memory(in.internals().file->path());
}

std::optional<std::string> cache::get(std::string_view key) const {
    const cached_value found = impl_->view(key);
    if (!found) return {};
    return std::string(*found);
}
cached_value cache::view(std::string_view key) const { return impl_->view(key); }
bool cache::contains(std::string_view key) const { return impl_->contains(key); }
status cache::put(std::string_view key, std::string_view value, std::optional<seconds> ttl) {
    const auto kept = impl_->store(key, value, ttl, impl::only::always);
    return kept ? status() : kept.error();
}
result<bool> cache::add(std::string_view key, std::string_view value, std::optional<seconds> ttl) {
    return impl_->store(key, value, ttl, impl::only::if_missing);
}
result<bool> cache::replace(std::string_view key, std::string_view value,
                            std::optional<seconds> ttl) {
    return impl_->store(key, value, ttl, impl::only::if_there);
}
result<bool> cache::touch(std::string_view key, std::optional<seconds> ttl) {
    return impl_->touch(key, ttl);
}
result<bool> cache::erase(std::string_view key) { return impl_->erase(key); }
result<std::string> cache::compute(std::string_view key,
                                   const std::function<result<std::string>()>& make,
                                   std::optional<seconds> ttl) {
    return impl_->compute(key, make, ttl);
}
status cache::clear() { return impl_->clear(); }
result<std::size_t> cache::expire() { return impl_->expire(); }
struct cache::cursor::place {
    cache of;
    cache_entries::version through; // before the iterator, which reads it
    cache_entries::iterator at;
};
cache::cursor cache::entries() const {
    auto now = impl_->snapshot();
    const auto begin = now.begin();
    return cursor(std::make_shared<cursor::place>(cursor::place{*this, std::move(now), begin}));
}
std::optional<std::pair<std::string_view, std::string_view>> cache::cursor::next() {
    for (; at_->at != at_->through.end();) {
        const auto [key, stored] = *at_->at;
        ++at_->at;
        const cache_entry found(stored);
        if (!at_->of.impl_->is_over(found)) return std::pair(key, found.value);
    }
    return {};
}
std::size_t cache::size() const noexcept { return impl_->size(); }
std::uint64_t cache::bytes() const noexcept { return impl_->bytes(); }
std::uint64_t cache::max_bytes() const noexcept { return impl_->max_bytes(); }
cache_statistics cache::statistics() const { return impl_->statistics(); }
std::uint64_t cache::bytes_of(std::size_t key_bytes, std::size_t value_bytes) const noexcept {
    return impl_->bytes_of(key_bytes, value_bytes);
}
root* cache::its_root() const noexcept { return impl_->its_root(); }

} // namespace hf::mod
