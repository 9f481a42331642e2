// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What maps, sets and ordered maps have in common: handles, batches and versions of containers with
// keys.
//
// 'Of' is the container's structure: functions on words (insert, erase, clear), key_view and
// value_view, reading<Self>, the names that users read by, and what its roots are: its_kind, shape.
#pragma once

#include <holdfast/mod/detail/handle.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf::mod::detail {

/// The value of a set's key.
struct nothing {};

template <class Of>
inline constexpr bool is_map = !std::is_same_v<typename Of::mapped_type, nothing>;

/// The container's updates. They return what the container's do.
template <class Of>
class keyed_batch : public batch_base, public Of::template reading<keyed_batch<Of>> {
public:
    using key_view = typename Of::key_view;
    using value_view = typename Of::value_view;
    using batch_base::batch_base;

    bool insert(key_view key)
        requires(!is_map<Of>)
    {
        return Of::insert(*work_, word_, key, {}, Of::when_there::keep);
    }
    bool insert(key_view key, value_view value)
        requires is_map<Of>
    {
        return Of::insert(*work_, word_, key, value, Of::when_there::keep);
    }
    bool insert_or_assign(key_view key, value_view value)
        requires is_map<Of>
    {
        return Of::insert(*work_, word_, key, value, Of::when_there::assign);
    }
    bool erase(key_view key) { return Of::erase(*work_, word_, key); }
    template <class Query>
        requires(Of::template looks_up<Query>)
    bool erase(const Query& key) {
        return Of::erase(*work_, word_, key);
    }
    std::size_t erase(key_view from, key_view upto)
        requires requires(shadow& to, std::uint64_t& word) { Of::erase(to, word, from, upto); }
    {
        return Of::erase(*work_, word_, from, upto);
    }
    void clear() { Of::clear(*work_, word_); }
};

template <class Of>
class keyed_version : public version_base<keyed_version<Of>, keyed_batch<Of>>,
                      public Of::template reading<keyed_version<Of>> {
    using batch = keyed_batch<Of>;

public:
    using key_view = typename Of::key_view;
    using value_view = typename Of::value_view;
    using version_base<keyed_version, batch>::version_base;

    [[nodiscard]] keyed_version insert(key_view key) const
        requires(!is_map<Of>)
    {
        return this->update([&](batch& to) { to.insert(key); });
    }
    [[nodiscard]] keyed_version insert(key_view key, value_view value) const
        requires is_map<Of>
    {
        return this->update([&](batch& to) { to.insert(key, value); });
    }
    [[nodiscard]] keyed_version insert_or_assign(key_view key, value_view value) const
        requires is_map<Of>
    {
        return this->update([&](batch& to) { to.insert_or_assign(key, value); });
    }
    [[nodiscard]] keyed_version erase(key_view key) const {
        return this->update([&](batch& to) { to.erase(key); });
    }
    [[nodiscard]] keyed_version erase(key_view from, key_view upto) const
        requires requires(batch& to) { to.erase(from, upto); }
    {
        return this->update([&](batch& to) { to.erase(from, upto); });
    }
    /// The value of this key, or Value{} when there is none.
    auto operator[](key_view key) const
        requires is_map<Of>
    {
        using read = std::remove_cvref_t<value_view>;
        const auto found = this->get(key);
        return found ? read(*found) : read{};
    }
};

/// A named container with keys in a pool: a handle, cheap to copy, that lives no longer than the
/// pool is open. 'Self' is the container that users name.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <class Self, class Of>
class keyed_handle : public handle<keyed_batch<Of>, keyed_version<Of>>,
                     public Of::template reading<Self> {
    using handle = detail::handle<keyed_batch<Of>, keyed_version<Of>>;

public:
    using key_view = typename Of::key_view;
    using value_view = typename Of::value_view;
    using typename handle::batch;

    /// The container of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or other sizes of keys and values, or another
    ///           identity of the hash or the order), pool_full, limit_reached, bad_argument.
    static result<Self> open(const pool& in, const place& at) {
        return handle::template opened<Self>(in, at, Of::its_kind, Of::shape());
    }

    /// Inserts the key, for maps with this value, unless it is there. Whether it is new.
    ///
    /// Cost:     maps and sets: O(log16 n) new nodes, each a line but the last. Ordered maps:
    ///           O(log n) new nodes of at most two lines, and a leaf of a few.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the container before the call or after it, never between.
    /// Errors:   pool_full; the container is unchanged. Also for strings that are too long.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    result<bool> insert(key_view key)
        requires(!is_map<Of>)
    {
        return this->change([&](batch& to) { return to.insert(key); });
    }
    result<bool> insert(key_view key, value_view value)
        requires is_map<Of>
    {
        return this->change([&](batch& to) { return to.insert(key, value); });
    }
    /// Inserts the key, or gives it another value. Whether it is new. Otherwise as insert.
    result<bool> insert_or_assign(key_view key, value_view value)
        requires is_map<Of>
    {
        return this->change([&](batch& to) { return to.insert_or_assign(key, value); });
    }
    /// Erases the key. Whether it was there. Otherwise as insert.
    result<bool> erase(key_view key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    template <class Query>
        requires(Of::template looks_up<Query>)
    result<bool> erase(const Query& key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    /// Erases the keys from one on, up to another, which stays: of ordered maps. How many there
    /// were. O(log n) new nodes, and time for each leaf that loses entries. Otherwise as insert.
    result<std::size_t> erase(key_view from, key_view upto)
        requires requires(batch& to) { to.erase(from, upto); }
    {
        return this->change([&](batch& to) { return to.erase(from, upto); });
    }

protected:
    using handle::handle;
};

} // namespace hf::mod::detail
