// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The seal: what a clean close writes past the end of the last extent so that every allocated byte
// can be verified later, and what a copy of a pool in use has there.  docs/format/pool.md
//
//   seal = head, lanes × u64, blocks × sealed_block
//
// (1) A seal counts only for the header that it repeats byte for byte. That header says closed, or
//     that this is a whole copy; opening the pool for writing gives it another sequence number,
//     which ends the seal's life.
// (2) It is written and durable before that header is: no crash leaves a clean pool with half a
//     seal that counts. Without room for it the pool is closed all the same, unsealed.
// (3) It is never mapped, and is where growth cuts off the rest of a crash.
// (4) Everything in it is bounded before it is used; head and body have checksums of their own, so
//     that the head's copy of the header helps even when the body is damaged.
#pragma once

#include <pool/header.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace hf {

inline constexpr std::uint64_t seal_magic = 0x4c41455354534648ULL; // "HFSTSEAL" in the file
inline constexpr std::uint32_t seal_version = 1;

struct seal_head {
    std::uint64_t magic;         // seal_magic
    std::uint32_t version;       // seal_version
    std::uint32_t head_bytes;    // size of this head, 4416
    std::uint64_t total_bytes;   // head, lane words and blocks
    std::uint64_t lane_count;    // lane words that follow: each lane's 'committed'
    std::uint64_t block_count;   // sealed_block entries that follow those
    std::uint64_t body_checksum; // XXH3-64 of all bytes after the head, seeded with seal_magic
    // XXH3-64 of the pool's bytes from the root words on, logs and free memory too; 0 unless the
    // pool is a copy that was left open.
    std::uint64_t content_checksum;
    std::uint64_t reserved;     // zero
    root_words roots;           // as they stood at the close
    pool_header header;         // as the close then wrote it, checksum included
    std::uint64_t reserved2[7]; // zero
    std::uint64_t checksum;     // XXH3-64 of all bytes before it, seeded with seal_magic
};
static_assert(sizeof(seal_head) == 4416 && offsetof(seal_head, header) == 256 &&
              offsetof(seal_head, checksum) == 4408);
static_assert(std::has_unique_object_representations_v<seal_head>, "no padding");

/// An allocated block at the close; in address order.
struct sealed_block {
    std::uint64_t offset;   // from pool start
    std::uint64_t bytes;    // what it occupies
    std::uint64_t checksum; // XXH3-64 of those bytes
};
static_assert(sizeof(sealed_block) == 24 && std::is_trivially_copyable_v<sealed_block>);

inline std::uint64_t seal_head_checksum(const seal_head& head) noexcept {
    return checksum(&head, offsetof(seal_head, checksum), seal_magic);
}

/// Writes a seal behind a pool: all lanes, then all blocks, then finish().
class seal_writer {
public:
    /// 'at': end of the last extent. The file belongs to the caller and outlives the writer.
    seal_writer(const os_file& file, std::uint64_t at);
    ~seal_writer(); // without a successful finish(), the file ends at 'at' again
    seal_writer(const seal_writer&) = delete;
    seal_writer& operator=(const seal_writer&) = delete;

    void add_lane(std::uint64_t committed);
    void add_block(const sealed_block& block);
    /// Writes the head and makes the seal durable. False if there was no room for it: then the
    /// earlier bytes there are gone, too. 'content_checksum': seal_head's, or 0.
    bool finish(const pool_header& closing, const root_words& roots,
                std::uint64_t content_checksum = 0);

private:
    struct body;
    void append(const void* bytes, std::size_t count);
    void write_out();

    const os_file* file_;
    std::uint64_t at_;
    std::unique_ptr<body> body_;
    std::uint64_t lanes_ = 0, blocks_ = 0;
    bool failed_ = false, finished_ = false;
};

enum class seal_state : std::uint8_t {
    absent,  // nothing there claims to be a seal
    stale,   // of another generation of the pool
    damaged, // a checksum or a count does not hold
    intact
};

/// A seal as found in a file's bytes. 'lanes' and 'blocks' are empty unless it is intact.
struct seal_found {
    seal_state state = seal_state::absent;
    const char* why = ""; // what makes it damaged
    seal_head head{};     // valid when head_holds
    bool head_holds = false;
    std::span<const std::byte> lane_words, blocks;

    std::uint64_t lane_word(std::uint64_t i) const noexcept;
    std::uint64_t block_count() const noexcept { return blocks.size() / sizeof(sealed_block); }
    sealed_block block(std::uint64_t i) const noexcept;
};

/// Judges the bytes of 'file' from 'at' on as a seal of 'header'. Without 'body', the body's
/// checksum is not computed. Pure; 'file' may hold anything.
seal_found find_seal(std::span<const std::byte> file, std::uint64_t at, const pool_header& header,
                     bool body);

} // namespace hf
