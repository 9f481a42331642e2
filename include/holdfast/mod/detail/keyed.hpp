// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches and versions of containers with keys: maps, sets, ordered maps.
//
// 'Of' is the container's structure: functions on words (insert, erase, clear), key_view and
// value_view, and reading<Self>, the names that users read by.
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

template <class Of> using keyed_handle = handle<keyed_batch<Of>, keyed_version<Of>>;

} // namespace hf::mod::detail
