// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A write buffer by the letter of hf_redo_* (holdfast_abi.h) and no better: what the caller may not
// rely on does not hold.
//
// 1. Every byte of the pool that is not fresh is read from a copy, stored or not. The copy is at an
//    odd address, and spoilt as soon as it may be.
// 2. The filter says of every other granule that it may be in the buffer, whether it is or not.
// 3. Where a store goes is spoilt, and is looked at when the next call comes.
#pragma once

#include "callees_model.hpp"

#include <holdfast/abi/holdfast_abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace oracle {

class redo_model {
  public:
    /// 'buffered' bytes from 'base' on are kept out of place.
    void begin(std::byte* base, std::size_t buffered) {
        *this = {};
        base_ = base;
        filter_.fill(0x5555555555555555);
        hf_redo_filter = filter_.data();
        stored_.assign(buffered, false);
        values_.assign(buffered, {});
    }

    /// Whether the section has stored to the byte.
    bool stored(std::size_t offset) const { return offset < stored_.size() && stored_[offset]; }
    bool buffers(const void* address) const {
        const auto* at = static_cast<const std::byte*>(address);
        return at >= base_ && at < base_ + stored_.size();
    }

    void* write(void* address, std::uint64_t bytes) {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        if (bytes > write_bytes_max ||
            (bytes != 0 && at / write_bytes_max != (at + bytes - 1) / write_bytes_max)) {
            std::printf("FAIL hf_redo_write: %zu bytes across a multiple of 16\n",
                        std::size_t(bytes));
            std::exit(1);
        }
        start_store();
        if (!buffers(address)) return address;
        pending_ = {address, bytes};
        place_.fill(spoilt);
        auto* at_place = place_.data() + at % write_bytes_max;
        for (std::size_t i = 0; i < bytes; ++i) mark(static_cast<std::byte*>(address) + i);
        return at_place;
    }

    void put(void* to, const std::byte* from, std::uint64_t bytes) {
        const std::vector<std::byte> copy(from, from + bytes);
        start_store();
        set(to, copy);
    }
    void copy(void* to, const void* from, std::uint64_t bytes) {
        settle();
        std::vector<std::byte> copy(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            copy[i] = value(static_cast<const std::byte*>(from) + i);
        start_store();
        set(to, copy);
    }

    const void* read(const void* address, std::uint64_t bytes) {
        settle();
        if (!buffers(address)) return address;
        std::vector<std::byte>& place = places_[next_++ % places_.size()];
        place.assign(bytes + 1, spoilt);
        for (std::size_t i = 0; i < bytes; ++i)
            place[i + 1] = value(static_cast<const std::byte*>(address) + i);
        return place.data() + 1;
    }
    const void* read_string(const void* address) {
        settle();
        std::uint64_t bytes = 0;
        while (value(static_cast<const std::byte*>(address) + bytes) != std::byte{}) ++bytes;
        return read(address, bytes + 1);
    }

    void commit() {
        settle();
        for (std::size_t i = 0; i < stored_.size(); ++i)
            if (stored_[i]) base_[i] = values_[i];
    }

  private:
    static constexpr std::size_t write_bytes_max = 16, load_bytes_max = 16;
    static constexpr std::byte spoilt{0xa5};

    struct pending_store {
        void* address = nullptr;
        std::uint64_t bytes = 0;
    };

    std::byte* base_ = nullptr;
    std::vector<bool> stored_;
    std::vector<std::byte> values_;
    pending_store pending_;
    alignas(write_bytes_max) std::array<std::byte, write_bytes_max> place_{};
    std::array<std::vector<std::byte>, HF_REDO_READS> places_;
    std::size_t next_ = 0;
    std::array<std::uint64_t, HF_REDO_FILTER_WORDS> filter_{};

    std::size_t offset_of(const void* address) const {
        return static_cast<std::size_t>(static_cast<const std::byte*>(address) - base_);
    }
    std::byte value(const std::byte* at) const {
        return buffers(at) && stored_[offset_of(at)] ? values_[offset_of(at)] : *at;
    }
    void mark(const std::byte* at) {
        stored_[offset_of(at)] = true;
        // Where a load may begin that meets the byte.
        for (auto from = reinterpret_cast<std::uintptr_t>(at) - load_bytes_max + 1;
             from <= reinterpret_cast<std::uintptr_t>(at); ++from)
            filter_[from / 1024 % filter_.size()] |= std::uint64_t{1} << from / 16 % 64;
    }
    /// Takes what was stored since write() said where.
    void settle() {
        const auto* from =
            place_.data() + reinterpret_cast<std::uintptr_t>(pending_.address) % write_bytes_max;
        for (std::size_t i = 0; i < pending_.bytes; ++i)
            values_[offset_of(pending_.address) + i] = from[i];
        pending_ = {};
    }
    void start_store() {
        settle();
        for (auto& place : places_) place.assign(place.size(), spoilt);
    }
    void set(void* to, const std::vector<std::byte>& bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            std::byte* at = static_cast<std::byte*>(to) + i;
            if (!buffers(at)) {
                *at = bytes[i];
                continue;
            }
            mark(at);
            values_[offset_of(at)] = bytes[i];
        }
    }
};

} // namespace oracle
