// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A growing run of bytes, filled at its end and consumed from its front: what a connection has
// received and not yet understood, or has answered and not yet sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace hf::kv {

class byte_buffer {
public:
    byte_buffer() noexcept = default;
    byte_buffer(const byte_buffer&) = delete;
    byte_buffer& operator=(const byte_buffer&) = delete;
    byte_buffer(byte_buffer&& other) noexcept { swap(other); }
    ~byte_buffer() { std::free(bytes_); }

    bool empty() const noexcept { return begin_ == end_; }
    std::size_t size() const noexcept { return end_ - begin_; }
    std::size_t capacity() const noexcept { return capacity_; }
    std::string_view view() const noexcept { return {bytes_ + begin_, size()}; }

    /// Room for 'count' more bytes at the end; commit() what was written there. A caller that
    /// passes 'most' says that the buffer will never hold more bytes: it reserves no more then.
    ///
    /// Cost: amortised O(count); consumed bytes in front are reclaimed first.
    char* room(std::size_t count, std::size_t most = SIZE_MAX) {
        if (capacity_ - end_ < count) make_room(count, most);
        return bytes_ + end_;
    }
    std::size_t room_bytes() const noexcept { return capacity_ - end_; }
    void commit(std::size_t count) noexcept { end_ += count; }

    void append(std::string_view text) {
        char* to = room(text.size());
        if (!text.empty()) std::memcpy(to, text.data(), text.size());
        end_ += text.size();
    }

    void consume(std::size_t count) noexcept {
        begin_ += count;
        if (begin_ == end_) begin_ = end_ = 0;
    }
    void clear() noexcept { begin_ = end_ = 0; }
    /// Keeps the first 'count' bytes of what it holds. Requires: it holds so many.
    void cut(std::size_t count) noexcept {
        end_ = begin_ + count;
        if (count == 0) clear();
    }

    void swap(byte_buffer& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(begin_, other.begin_);
        std::swap(end_, other.end_);
        std::swap(capacity_, other.capacity_);
    }

    /// Gives the memory back when nothing is held and more than 'keep' bytes are reserved.
    void shrink(std::size_t keep) noexcept {
        if (!empty() || capacity_ <= keep) return;
        std::free(bytes_);
        bytes_ = nullptr;
        capacity_ = 0;
    }

private:
    void make_room(std::size_t count, std::size_t most) {
        if (begin_ > 0 && (begin_ >= size() || capacity_ - size() >= count)) {
            std::memmove(bytes_, bytes_ + begin_, size());
            end_ -= begin_;
            begin_ = 0;
            if (capacity_ - end_ >= count) return;
        }
        const std::size_t needed = end_ + count;
        std::size_t capacity = capacity_ < 1024 ? 1024 : capacity_ * 2;
        if (capacity > most) capacity = most;
        if (capacity < needed) capacity = needed;
        auto* grown = static_cast<char*>(std::realloc(bytes_, capacity));
        if (grown == nullptr) throw std::bad_alloc();
        bytes_ = grown;
        capacity_ = capacity;
    }

    char* bytes_ = nullptr;
    std::size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

} // namespace hf::kv
