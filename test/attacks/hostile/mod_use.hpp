// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD's structures in the pools that are mutated: filling them, and using them after any mutation.
// Every kind, of plain elements and of strings; siblings; roots that share nodes.
#pragma once

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hf::hostile {

/// Which structures a pool holds.
enum class mod_shape : std::uint8_t { maps, ordered, sequences, family, shared };
inline constexpr mod_shape mod_shapes[] = {mod_shape::maps, mod_shape::ordered,
                                           mod_shape::sequences, mod_shape::family,
                                           mod_shape::shared};
const char* name(mod_shape of) noexcept;

/// Makes and fills them. False when the pool is full.
bool fill_mod(const pool& in, mod_shape what);

/// Uses them as a program does: verifies, reads all, changes some. A refusal is a valid answer.
/// Returns an empty text, or the fault.
struct mod_use {
    std::string wrong;
    bool verified = false; // store::verify() called it good
    bool full = false;
    std::uint64_t refused = 0; // structures
};
mod_use use_mod(const pool& in, mod_shape what);

/// For the parts of 'use', which are instantiated in several files.
class mod_user {
public:
    mod_user(const pool& in, mod_use& to) : in_(&in), to_(&to) {}

    template <class Structure>
    std::optional<Structure> opened(const char* name, const char* family = "") {
        mod::place at{.name = name, .family = family};
        if (*family != '\0') at.members = {"left", "right"};
        auto found = Structure::open(*in_, at);
        if (found) return *found;
        if (std::string(found.error().what()).empty()) to_->wrong = "a refusal without a word";
        ++to_->refused;
        return {};
    }
    /// As many as it is said to have, when it was verified; and never many more. A vector of shared
    /// parts may have billions: then not all of them.
    template <class Range> std::uint64_t all_of(const Range& range) {
        constexpr std::uint64_t enough = 100'000;
        std::uint64_t seen = 0, bytes = 0;
        for (const auto& element : range) {
            bytes += look(element);
            if (++seen == enough) break;
        }
        if (seen > 64 * range.size()) to_->wrong = "many more elements than there are";
        if (to_->verified && seen != std::min<std::uint64_t>(range.size(), enough))
            to_->wrong = "verified, and of " + std::to_string(range.size()) +
                         " elements it shows " + std::to_string(seen);
        looked_at += bytes;
        return seen;
    }
    void ended(const status& s) {
        if (s.code() == errc::pool_full) to_->full = true;
        if (!s.ok() && std::string(s.what()).empty()) to_->wrong = "an error without a word";
    }
    template <class T> void ended(const result<T>& r) {
        if (!r) ended(r.error());
    }
    /// Checks that good parts are still good.
    void still_good(const char* after) {
        if (!to_->verified || !to_->wrong.empty()) return;
        const status now = mod::store::in(*in_).verify();
        if (!now.ok())
            to_->wrong = std::string("verified, and after '") + after + "': " + now.what();
    }
    const pool& in() const noexcept { return *in_; }
    /// So that no read is left out.
    std::uint64_t looked_at = 0;

private:
    static std::uint64_t look(std::string_view text) {
        std::uint64_t sum = text.size();
        for (std::size_t i = 0; i < text.size(); i += 64)
            sum += static_cast<unsigned char>(text[i]);
        return sum;
    }
    static std::uint64_t look(std::uint64_t value) { return value; }
    template <class K, class V> static std::uint64_t look(const mod::entry<K, V>& of) {
        return look(of.first) + look(of.second);
    }
    const pool* in_;
    mod_use* to_;
};

bool fill_sequences(const pool& in);
void use_sequences(mod_user& by);
bool fill_shared(const pool& in);
void use_shared(mod_user& by);

} // namespace hf::hostile
