// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::map: a durable unordered map, whose every update is one failure-atomic section with one
// ordering point.                                             Source: MOD §4.1-4.3.
//
//     auto ages = *hf::mod::map<std::string, int>::open(pool, {"ages"});
//     ages.insert("Ada", 36);                          // durable when the next update returns
//     if (const int* age = ages.get("Ada")) …          // read in place
//     ages.update([](auto& batch) { batch.erase("Ada"); batch.insert("Bob", 41); });  // one commit
//     auto then = ages.snapshot();                     // stays as it is, readable beside writers
//     auto tried = then.insert("Eve", 29).erase("Bob");   // pure: a version that only we know
//     auto status = ages.commit(tried);                // conflict, if somebody was faster
//
// Keys and values are trivially copyable (up to 64 KiB, aligned to 16 at most) or std::string, of
// which a key and a value take up to 1 GiB together. Strings are given and read as
// std::string_view. Iteration is in the order of hashes; iterators and what they and get() lead to
// are valid until the handle's next update, from a version as long as it lives.
#pragma once

#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/store.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace hf::mod {

/// A named map in a pool: a handle, cheap to copy, that lives no longer than the pool is open.
/// size, empty, find, contains, count, get, begin, end: detail::map_reading.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Hash = hash<Key>, class Equal = equal_to<Key>>
class map : public detail::map_reading<map<Key, Value, Hash, Equal>,
                                       detail::trie<Key, Value, Hash, Equal>> {
    using trie = detail::trie<Key, Value, Hash, Equal>;
    using when_there = typename trie::when_there;

public:
    using hasher = Hash;
    using key_equal = Equal;
    using key_view = typename trie::key_view;
    using value_view = typename trie::value_view;

    /// Several updates that become one version. Reads see the updates before them.
    class batch : public detail::map_reading<batch, trie> {
    public:
        /// Of what 'word' names: for sections over several structures.
        batch(shadow& work, std::uint64_t word) noexcept : work_(&work), word_(word) {}
        /// As map's. When the pool is full they change nothing more, and the commit says it.
        bool insert(key_view key, value_view value) {
            return trie::insert(*work_, word_, key, value, when_there::keep);
        }
        bool insert_or_assign(key_view key, value_view value) {
            return trie::insert(*work_, word_, key, value, when_there::assign);
        }
        bool erase(key_view key) { return trie::erase(*work_, word_, key); }
        template <class Query>
            requires trie::template
        looks_up<Query> bool erase(const Query& key) {
            return trie::erase(*work_, word_, key);
        }
        void clear() { trie::clear(*work_, word_); }
        /// The pool is full: this batch will not be committed.
        bool failed() const noexcept { return work_->failed(); }

        std::uint64_t word() const noexcept { return word_; }
        const std::byte* base() const noexcept { return work_->base(); }

    private:
        shadow* work_;
        std::uint64_t word_;
    };

    /// A value: what a map was at some time, or what it may become. Updates give other versions and
    /// leave this one as it is.
    ///
    /// Cost:     O(log16 n) new nodes each; those of versions never committed are given back.
    /// Ordering: 0.
    /// Errors:   none; when the pool was full, the commit says it.
    class version : public mod::version, public detail::map_reading<version, trie> {
    public:
        /// Empty, and of no map: for reading and assigning only.
        version() noexcept = default;
        [[nodiscard]] version insert(key_view key, value_view value) const {
            return update([&](batch& to) { to.insert(key, value); });
        }
        [[nodiscard]] version insert_or_assign(key_view key, value_view value) const {
            return update([&](batch& to) { to.insert_or_assign(key, value); });
        }
        [[nodiscard]] version erase(key_view key) const {
            return update([&](batch& to) { to.erase(key); });
        }
        [[nodiscard]] version clear() const {
            return update([](batch& to) { to.clear(); });
        }
        /// Several at once: change(batch&).
        template <class Change> [[nodiscard]] version update(Change&& change) const {
            return version(updated([&](shadow& work, std::uint64_t word) {
                batch to(work, word);
                change(to);
                return to.word();
            }));
        }
        /// The value of this key, or Value{} when there is none.
        auto operator[](key_view key) const {
            using read = std::remove_cvref_t<value_view>;
            const auto found = this->get(key);
            return found ? read(*found) : read{};
        }
        using mod::version::word;
        const std::byte* base() const noexcept { return *this ? mod::version::base() : nullptr; }

    private:
        friend class map;
        explicit version(mod::version of) noexcept : mod::version(std::move(of)) {}
    };

    /// The map of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or other sizes of keys and values, or another
    ///           hash's identity), pool_full, limit_reached, bad_argument.
    static result<map> open(const pool& in, const place& at) {
        auto opened = store::of(in).open(at, detail::hash_trie_kind, trie::shape());
        if (!opened) return opened.error();
        return map(**opened);
    }

    /// Inserts the key with this value, unless it is there. Whether it is new.
    ///
    /// Cost:     O(log16 n) new nodes, each a line but the last.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the map before the call or after it, never between.
    /// Errors:   pool_full; the map is unchanged. Also for strings that are too long.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    result<bool> insert(key_view key, value_view value) {
        return change([&](batch& to) { return to.insert(key, value); });
    }
    /// Inserts the key, or gives it another value. Whether it is new. Otherwise as insert.
    result<bool> insert_or_assign(key_view key, value_view value) {
        return change([&](batch& to) { return to.insert_or_assign(key, value); });
    }
    /// Erases the key. Whether it was there. Otherwise as insert.
    result<bool> erase(key_view key) {
        return change([&](batch& to) { return to.erase(key); });
    }
    template <class Query>
        requires trie::template
    looks_up<Query> result<bool> erase(const Query& key) {
        return change([&](batch& to) { return to.erase(key); });
    }
    /// Erases all. Cost: O(1) before it returns.
    status clear() {
        return update([](batch& to) { to.clear(); });
    }
    /// Several updates as one: change(batch&), which may return false: then nothing is changed.
    /// Ordering, crash and errors as one insertion.
    template <class Change> status update(Change&& change) {
        auto writing = root_->write();
        batch to(writing.work(), writing.word());
        if constexpr (std::is_void_v<std::invoke_result_t<Change, batch&>>) change(to);
        else if (!change(to)) return {};
        return finish(writing, to);
    }

    /// The map as it is now, kept. Never blocks.
    version snapshot() const { return version(root_->read()); }
    /// Makes 'next' the map, if what it was derived from is still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Errors:   conflict (another commit came first), pool_full; the map is unchanged.
    status commit(const version& next) { return root_->commit(next); }

    durability when_durable() const noexcept { return root_->when_durable(); }
    void set_durability(durability wanted) noexcept { root_->set_durability(wanted); }
    /// For store::commit of several.
    mod::root* of() const noexcept { return root_; }

    std::uint64_t word() const noexcept { return root_->word(); }
    const std::byte* base() const noexcept { return root_->base(); }

private:
    explicit map(mod::root& at) noexcept : root_(&at) {}

    static status finish(mod::root::writing& writing, const batch& to) {
        if (to.word() == writing.word() && !to.failed()) return {}; // nothing was changed
        return writing.commit(to.word());
    }
    template <class Change> result<bool> change(Change&& once) {
        auto writing = root_->write();
        batch to(writing.work(), writing.word());
        const bool done = once(to);
        if (status committed = finish(writing, to); !committed.ok()) return committed;
        return done;
    }

    mod::root* root_;
};

} // namespace hf::mod
