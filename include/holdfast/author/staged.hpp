// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block that is filled before the section that adopts it: the section logs a pointer instead of
// the bytes.
//
//     auto text = hf::staged::in(pool, bytes);            // reserved
//     std::memcpy(text->get(), from, bytes);              // plain stores, outside of sections
//     hf::staged::persist(pool, text->get(), bytes);      // durable
//     if (write(book, text->as<char>())) text->release(); // a section that calls hf::staged::adopt
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <utility>

extern "C" void hf_adopt(void* staged_block) noexcept;

namespace hf {

class pool;

/// Owns a staged block as a std::unique_ptr owns an object, and gives it back unless it was
/// released. A crash gives it back, too: nothing leaks.
///
/// Requires: one thread stages a block, adopts it and gives it back, with at most 16 at a time. No
///           section is open on that thread, except for adopt(). A block that a section has adopted
///           is released before its owner ends. A block that is not released is given back before
///           the pool is closed. A call in an open section ends the process with a message.
/// Forks:    in a child of fork() the block is its parent's: ending or resetting an owner does
///           nothing there.
class staged {
public:
    /// Reserves a block.
    ///
    /// Ordering: 0 points.
    /// Errors:   pool_full, io_error (the disk failed while the pool grew), limit_reached,
    ///           permission, in_use.
    static result<staged> in(pool& where, std::size_t bytes);
    /// The same for structures, which have no pool at hand but an address in it.
    ///
    /// Errors:   empty when the pool is full, or 16 blocks are staged.
    static staged near(const void* in_pool, std::size_t bytes) noexcept;

    /// Owns nothing.
    staged() noexcept = default;
    /// Owns a block again that was released and not adopted.
    explicit staged(void* released) noexcept : block_(released) {}
    staged(staged&& other) noexcept : block_(other.release()) {}
    staged& operator=(staged&& other) noexcept {
        if (this == &other) return *this;
        reset();
        block_ = other.release();
        return *this;
    }
    ~staged() { reset(); }

    explicit operator bool() const noexcept { return block_ != nullptr; }
    void* get() const noexcept { return block_; }
    template <class T> T* as() const noexcept { return static_cast<T*>(block_); }
    /// Gives the block up: the section that has adopted it owns it.
    void* release() noexcept { return std::exchange(block_, nullptr); }
    /// Gives the block back unused.
    ///
    /// Ordering: 0 points; 1 if the mark of this thread's last section is due, 2 of engine redo.
    void reset() noexcept {
        if (block_ != nullptr) give_back(release());
    }

    /// In a section: the block becomes allocated when the section commits.
    ///
    /// Ordering: 0 points.
    /// Crash:    allocated if and only if the section completes.
    static void adopt(void* staged_block) noexcept { hf_adopt(staged_block); }

    /// Copies into a staged block so that the next persist() makes the copy durable, whatever range
    /// that call names. In the ADR domain it copies non-temporally: a large value would otherwise
    /// pass through the caches only to be flushed again.
    ///
    /// Ordering: 0 points. Outside of blocks that this thread has staged since its last section, as
    ///           copy_words.
    static void copy(pool& where, void* to, const void* from, std::size_t bytes) noexcept;
    /// Makes staged bytes durable. Call it after filling a block and before the section that adopts
    /// it.
    ///
    /// Ordering: 1 point; 0 in mode process.
    static void persist(pool& where, const void* bytes, std::size_t count) noexcept;
    /// Copies whole words to a staged block, or to bytes of the pool that nobody can reach yet, for
    /// the section that begins next on this thread. They are durable before that section stores
    /// anything in place. Unlike copy() it needs no persist(); the section's log gets 40 bytes with
    /// their checksum.
    ///
    /// Requires: 'to' and 'bytes' are multiples of 8.
    /// Ordering: 0 points in a block that this thread has staged since its last section. Elsewhere
    ///           logs may still need the old bytes: a section of any thread whose mark is due might
    ///           be re-executed, or replayed over the new ones. So such sections are made final
    ///           first, as by hf::settle: 1 point, 2 of engine redo, 0 if no mark is due.
    /// Crash:    the section is re-executed only if the bytes were durable with its log.
    static void copy_words(void* to, const void* from, std::size_t bytes) noexcept;
    /// The same for bytes that were stored at 'at' already: relocatable code stores pointers in
    /// place, in their canonical form.
    ///
    /// Requires: they lie in a block that this thread has staged since its last section. Elsewhere
    ///           the call comes too late to settle what logs have of them, and ends the process.
    static void note_written(const void* at, std::size_t bytes) noexcept;

private:
    static void give_back(void* staged_block) noexcept;

    void* block_ = nullptr;
};

} // namespace hf
