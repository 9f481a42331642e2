// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects in simulated memory: structs of words, at offsets, so that addresses are the same in
// every run. A program (program.hpp) reaches them through the machine; recovery and checks, in an
// image.
#pragma once

#include <base/assert.hpp>
#include <sim/parameters.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace hf::slpmt {

/// A pointer as memory holds it: an offset; 0 is null.
template <class T> struct link {
    std::uint64_t at = 0;
};

/// A pointer in a register, and when the load that brought it is done.
template <class T> struct ref {
    std::uint64_t at = 0;
    sim::ticks ready = 0;
    explicit operator bool() const { return at != 0; }
    friend bool operator==(ref a, ref b) { return a.at == b.at; }
};

/// The type as which a member is read.
template <class T> struct read_as {
    static_assert(std::is_same_v<T, std::uint64_t>);
    using type = std::uint64_t;
    static std::uint64_t of(std::uint64_t word, sim::ticks) { return word; }
};
template <class T> struct read_as<link<T>> {
    using type = ref<T>;
    static ref<T> of(std::uint64_t word, sim::ticks ready) { return {word, ready}; }
};
inline std::uint64_t word_of(std::uint64_t value) { return value; }
template <class T> std::uint64_t word_of(ref<T> value) { return value.at; }

/// Offset of a member, and of an element of an array that is a member, in its struct.
template <class T, class M> std::uint64_t offset_of(M T::* member) {
    alignas(T) static const T whole{};
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&(whole.*member)) -
                                      reinterpret_cast<const std::byte*>(&whole));
}

/// Reads of members, on Memory::word(offset, ready), which gives a word and when it is there.
template <class Memory> class readable {
public:
    template <class T, class M> auto get(ref<T> in, M T::* member) const {
        return read<M>(in.at + offset_of(member), in.ready);
    }
    template <class T, class M, std::size_t N> auto get(ref<T> in, M (T::*member)[N],
                                                        std::uint64_t i) const {
        HF_ASSERT(i < N);
        return read<M>(in.at + offset_of(member) + i * sizeof(M), in.ready);
    }
    /// An element of an array of words or links.
    template <class M> auto at(ref<M> array, std::uint64_t i) const {
        return read<M>(array.at + i * sizeof(M), array.ready);
    }

private:
    template <class M> auto read(std::uint64_t offset, sim::ticks ready) const {
        const auto got = static_cast<const Memory&>(*this).word(offset, ready);
        return read_as<M>::of(got.value, got.ready);
    }
};

/// Bytes of persistent memory as a crash left them; what recovery writes is remembered, in order.
class image : public readable<image> {
public:
    explicit image(std::vector<std::byte> bytes)
        : bytes_(std::move(bytes)), reads_left_(reads_per_byte * bytes_.size()) {}

    struct loaded {
        std::uint64_t value;
        sim::ticks ready;
    };
    /// Garbage pointers lead nowhere, and garbage that is a circle has an end: a word outside of
    /// the image, or after very many reads, is 0, and that is remembered.
    loaded word(std::uint64_t offset, sim::ticks = 0) const {
        std::uint64_t value = 0;
        if (reads_left_ == 0 || !holds(offset)) {
            wild_ = true;
        } else {
            --reads_left_;
            std::memcpy(&value, bytes_.data() + offset, sizeof value);
        }
        return {value, 0};
    }
    bool wild() const { return std::exchange(wild_, false); }

    void put(std::uint64_t offset, std::uint64_t value) {
        HF_ASSERT(holds(offset));
        std::memcpy(bytes_.data() + offset, &value, sizeof value);
        writes_.emplace_back(offset, value);
    }
    /// Stores only if the word differs: recovery that is repeated writes less.
    template <class T, class M, class V> void set(ref<T> in, M T::* member, V value) {
        const std::uint64_t offset = in.at + offset_of(member);
        if (word(offset).value != word_of(value) && holds(offset)) put(offset, word_of(value));
    }

    std::span<const std::byte> bytes() const { return bytes_; }
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& writes() const { return writes_; }

private:
    bool holds(std::uint64_t offset) const { return offset % 8 == 0 && offset < bytes_.size(); }
    static constexpr std::uint64_t reads_per_byte = 4; // a sound recovery takes a tenth of that
    std::vector<std::byte> bytes_;
    mutable std::uint64_t reads_left_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> writes_;
    mutable bool wild_ = false;
};

} // namespace hf::slpmt
