// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/seal.hpp>

#include <cstring>
#include <new>

namespace hf {
namespace {

constexpr std::size_t buffer_bytes = 256 << 10;

} // namespace

struct seal_writer::body {
    XXH3_state_t hash{};    // the reset reads the old contents: they may not be indeterminate
    std::uint64_t next = 0; // the buffer's offset in the file
    std::size_t used = 0;
    std::byte buffer[buffer_bytes];
};

seal_writer::seal_writer(const os_file& file, std::uint64_t at)
    : file_(&file), at_(at), body_(new(std::nothrow) body) {
    failed_ = body_ == nullptr;
    if (failed_) return;
    XXH3_64bits_reset_withSeed(&body_->hash, seal_magic);
    body_->next = at + sizeof(seal_head);
    // Removes an older seal first: its head must not stand before another body.
    if (const auto present = file.size_bytes(); present && *present > at)
        failed_ = file.truncate(at) != 0;
}

seal_writer::~seal_writer() {
    if (!finished_) (void)file_->truncate(at_); // left there, it names another header: stale
}

void seal_writer::append(const void* bytes, std::size_t count) {
    if (failed_) return;
    HF_ASSERT_SLOW(!finished_);
    HF_ASSERT_SLOW(count <= buffer_bytes);
    if (body_->used + count > buffer_bytes) write_out();
    std::memcpy(body_->buffer + body_->used, bytes, count);
    body_->used += count;
}

void seal_writer::write_out() {
    body& b = *body_;
    XXH3_64bits_update(&b.hash, b.buffer, b.used);
    failed_ = failed_ || !file_->write_at(b.next, b.buffer, b.used).ok();
    b.next += b.used;
    b.used = 0;
}

void seal_writer::add_lane(std::uint64_t committed) {
    HF_ASSERT_SLOW(blocks_ == 0); // lanes come first
    append(&committed, sizeof committed);
    ++lanes_;
}

void seal_writer::add_block(const sealed_block& block) {
    append(&block, sizeof block);
    ++blocks_;
}

bool seal_writer::finish(const pool_header& closing, const root_words& roots,
                         std::uint64_t content_checksum) {
    if (failed_) return false;
    write_out();
    seal_head head{};
    head.magic = seal_magic;
    head.version = seal_version;
    head.head_bytes = sizeof head;
    head.total_bytes = body_->next - at_;
    head.lane_count = lanes_;
    head.block_count = blocks_;
    head.body_checksum = XXH3_64bits_digest(&body_->hash);
    head.content_checksum = content_checksum;
    head.roots = roots;
    head.header = closing;
    head.checksum = seal_head_checksum(head);
    HF_ASSERT_SLOW(head.total_bytes ==
                   sizeof head + lanes_ * sizeof(std::uint64_t) + blocks_ * sizeof(sealed_block));
    failed_ = failed_ || !file_->write_at(at_, &head, sizeof head).ok() || !file_->sync().ok();
    finished_ = !failed_;
    return finished_;
}

std::uint64_t seal_found::lane_word(std::uint64_t i) const noexcept {
    HF_ASSERT_SLOW((i + 1) * sizeof(std::uint64_t) <= lane_words.size());
    std::uint64_t word = 0;
    std::memcpy(&word, lane_words.data() + i * sizeof word, sizeof word);
    return word;
}

sealed_block seal_found::block(std::uint64_t i) const noexcept {
    HF_ASSERT_SLOW(i < block_count());
    sealed_block one;
    std::memcpy(&one, blocks.data() + i * sizeof one, sizeof one);
    return one;
}

namespace {

/// Empty when the head's numbers fit each other, the header and the file.
const char* numbers_wrong(const seal_head& head, const pool_header& header, std::uint64_t room) {
    HF_ASSERT_SLOW(room >= sizeof head);
    const std::uint64_t body = room - sizeof head;
    if (head.lane_count != header.lane_count) return "its number of lanes is not the header's";
    const std::uint64_t lane_bytes = head.lane_count * sizeof(std::uint64_t);
    if (lane_bytes > body || head.block_count > (body - lane_bytes) / sizeof(sealed_block))
        return "it is cut short";
    if (head.total_bytes != sizeof head + lane_bytes + head.block_count * sizeof(sealed_block))
        return "its length does not fit its counts";
    return "";
}

} // namespace

seal_found find_seal(std::span<const std::byte> file, std::uint64_t at, const pool_header& header,
                     bool body) {
    seal_found found;
    const auto damaged = [&](const char* why) {
        found.state = seal_state::damaged;
        found.why = why;
        return found;
    };
    if (file.size() < at || file.size() - at < sizeof found.head.magic) return found;
    const std::span<const std::byte> rest = file.subspan(at);
    std::memcpy(&found.head, rest.data(), std::min(rest.size(), sizeof found.head));
    if (found.head.magic != seal_magic) return found;
    if (rest.size() < sizeof found.head) return damaged("it is cut short");
    if (seal_head_checksum(found.head) != found.head.checksum)
        return damaged("its head does not verify");
    if (found.head.version != seal_version || found.head.head_bytes != sizeof found.head)
        return damaged("its version is unknown");
    found.head_holds = true;
    if (std::memcmp(&found.head.header, &header, sizeof header) != 0) {
        // Upholds (1). The same sequence number with other bytes was never written by a close.
        if (found.head.header.sequence == header.sequence)
            return damaged("it repeats another header with the same sequence number");
        found.state = seal_state::stale;
        return found;
    }
    if (const char* why = numbers_wrong(found.head, header, rest.size()); *why != 0)
        return damaged(why);
    const auto content = rest.first(found.head.total_bytes).subspan(sizeof found.head);
    if (body && checksum(content.data(), content.size(), seal_magic) != found.head.body_checksum)
        return damaged("its body does not verify");
    found.lane_words = content.first(found.head.lane_count * sizeof(std::uint64_t));
    found.blocks = content.subspan(found.lane_words.size());
    HF_ASSERT_SLOW(found.block_count() == found.head.block_count);
    found.state = seal_state::intact;
    return found;
}

} // namespace hf
