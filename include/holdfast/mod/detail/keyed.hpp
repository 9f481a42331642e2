// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What maps, sets and ordered maps share: handles, batches and versions of containers with keys.
//
// 'Of' is the container's structure: functions on words (insert, erase, clear), key_view and
// value_view, reading<Self> (the users' names of reading functions), and the properties of its
// roots: its_kind, shape.
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

/// The container's updates. They return what the container's own return.
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
    /// The value of this key, or Value{} without such a key.
    auto operator[](key_view key) const
        requires is_map<Of>
    {
        using read = std::remove_cvref_t<value_view>;
        const auto found = this->get(key);
        return found ? read(*found) : read{};
    }
};

/// A handle: 'Self' is the container that users name. map.hpp, set.hpp and ordered_map.hpp say what
/// its members promise and cost.
template <class Self, class Of>
class keyed_handle : public handle<keyed_batch<Of>, keyed_version<Of>>,
                     public Of::template reading<Self> {
    using handle = detail::handle<keyed_batch<Of>, keyed_version<Of>>;

public:
    using key_view = typename Of::key_view;
    using value_view = typename Of::value_view;
    using typename handle::batch;

    static result<Self> open(const pool& in, const place& at) {
        return handle::template opened<Self>(in, at, Of::its_kind, Of::shape());
    }

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
    result<bool> insert_or_assign(key_view key, value_view value)
        requires is_map<Of>
    {
        return this->change([&](batch& to) { return to.insert_or_assign(key, value); });
    }
    result<bool> erase(key_view key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    template <class Query>
        requires(Of::template looks_up<Query>)
    result<bool> erase(const Query& key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    result<std::size_t> erase(key_view from, key_view upto)
        requires requires(batch& to) { to.erase(from, upto); }
    {
        return this->change([&](batch& to) { return to.erase(from, upto); });
    }

protected:
    using handle::handle;
};

} // namespace hf::mod::detail
