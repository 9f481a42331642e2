// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::ordered_map: a durable map in the order of its keys, whose every update is one
// failure-atomic section with one ordering point. What mod::map is to std::unordered_map, this is
// to std::map.                                              Source: MOD §4.1-4.3.
//
//     auto prices = *hf::mod::ordered_map<std::uint64_t, double>::open(pool, {"prices"});
//     prices.insert(20261121, 17.5);                   // durable when the next update returns
//     for (auto [day, price] : prices.range(20261101, 20261201)) …   // November
//     prices.erase(0, 20260101);                       // all before this year, as one
//     auto then = prices.snapshot();                   // stays as it is, readable beside writers
//
// Keys, values, versions, batches and commits are as in <holdfast/mod/map.hpp>. Iterators go both
// ways; they and what they and get() lead to are valid until the handle's next update, from a
// version as long as it lives.
#pragma once

#include <holdfast/mod/detail/search_tree.hpp>
#include <holdfast/mod/store.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace hf::mod {

/// A named ordered map in a pool: a handle, cheap to copy, that lives no longer than the pool is
/// open. size, empty, find, contains, count, get, first, last, lower_bound, upper_bound,
/// equal_range, range, begin, end, rbegin, rend: detail::tree_reading.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Compare = less<Key>>
class ordered_map : public detail::tree_reading<ordered_map<Key, Value, Compare>,
                                                detail::search_tree<Key, Value, Compare>> {
    using tree = detail::search_tree<Key, Value, Compare>;
    using when_there = typename tree::when_there;

public:
    using key_compare = Compare;
    using key_view = typename tree::key_view;
    using value_view = typename tree::value_view;

    /// Several updates that become one version. Reads see the updates before them.
    class batch : public detail::tree_reading<batch, tree> {
    public:
        /// Of what 'word' names: for sections over several structures.
        batch(shadow& work, std::uint64_t word) noexcept : work_(&work), word_(word) {}
        /// As the map's. When the pool is full they change nothing more, and the commit says it.
        bool insert(key_view key, value_view value) {
            return tree::insert(*work_, word_, key, value, when_there::keep);
        }
        bool insert_or_assign(key_view key, value_view value) {
            return tree::insert(*work_, word_, key, value, when_there::assign);
        }
        bool erase(key_view key) { return tree::erase(*work_, word_, key); }
        template <class Query>
            requires tree::template
        looks_up<Query> bool erase(const Query& key) {
            return tree::erase(*work_, word_, key);
        }
        std::size_t erase(key_view from, key_view upto) {
            return tree::erase(*work_, word_, from, upto);
        }
        void clear() { tree::clear(*work_, word_); }
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
    /// Cost:     O(log n) new nodes each; those of versions never committed are given back.
    /// Ordering: 0.
    /// Errors:   none; when the pool was full, the commit says it.
    class version : public mod::version, public detail::tree_reading<version, tree> {
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
        [[nodiscard]] version erase(key_view from, key_view upto) const {
            return update([&](batch& to) { to.erase(from, upto); });
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
        friend class ordered_map;
        explicit version(mod::version of) noexcept : mod::version(std::move(of)) {}
    };

    /// The map of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or other sizes of keys and values, or another
    ///           order's identity), pool_full, limit_reached, bad_argument.
    static result<ordered_map> open(const pool& in, const place& at) {
        auto opened = store::of(in).open(at, detail::search_tree_kind, tree::shape());
        if (!opened) return opened.error();
        return ordered_map(**opened);
    }

    /// Inserts the key with this value, unless it is there. Whether it is new.
    ///
    /// Cost:     O(log n) new nodes of at most two lines, and a leaf of a few.
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
        requires tree::template
    looks_up<Query> result<bool> erase(const Query& key) {
        return change([&](batch& to) { return to.erase(key); });
    }
    /// Erases the keys from one on, up to another, which stays. How many there were. O(log n) new
    /// nodes, and time for each leaf that loses entries. Otherwise as insert.
    result<std::size_t> erase(key_view from, key_view upto) {
        return change([&](batch& to) { return to.erase(from, upto); });
    }
    /// Erases all. Cost: O(1) new nodes, and time for each node there was.
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
    explicit ordered_map(mod::root& at) noexcept : root_(&at) {}

    static status finish(mod::root::writing& writing, const batch& to) {
        if (to.word() == writing.word() && !to.failed()) return {}; // nothing was changed
        return writing.commit(to.word());
    }
    template <class Change>
    auto change(Change&& once) -> result<std::invoke_result_t<Change, batch&>> {
        auto writing = root_->write();
        batch to(writing.work(), writing.word());
        const auto done = once(to);
        if (status committed = finish(writing, to); !committed.ok()) return committed;
        return done;
    }

    mod::root* root_;
};

} // namespace hf::mod
