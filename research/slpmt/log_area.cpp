// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <slpmt/log_area.hpp>

#include <fmt/format.h>

#include <cstring>
#include <optional>

namespace hf::slpmt {
namespace {

// An address word: tier (2 bits), first of a batch, old, number of the word (29 bits), tag (31
// bits).
constexpr std::uint64_t first_bit = 4, old_bit = 8;
constexpr unsigned word_shift = 4, tag_shift = 33;
constexpr std::uint64_t words_max = std::uint64_t{1} << (tag_shift - word_shift);

std::uint64_t address_word(const record& one, std::uint64_t tag, bool first, bool old) {
    HF_ASSERT(one.word < words_max && tag >> (64 - tag_shift) == 0 && tag != 0);
    return tag << tag_shift | one.word << word_shift | (old ? old_bit : 0) |
           (first ? first_bit : 0) | one.tier;
}

/// Reads words of a log in a circle of lines.
class log_reader {
public:
    log_reader(std::span<const std::byte> image, const log_layout& where, std::uint64_t place)
        : image_(image), where_(where), word_(place * line_words) {}

    std::uint64_t peek() const {
        std::uint64_t value = 0;
        const std::uint64_t line = where_.line_at(word_ / line_words);
        std::memcpy(&value, &image_[line * line_bytes + word_ % line_words * word_bytes],
                    sizeof value);
        return value;
    }
    std::uint64_t next() {
        const std::uint64_t value = peek();
        ++word_;
        return value;
    }
    bool line_begins() const { return word_ % line_words == 0; }
    void skip_line() { word_ = round_up(word_, line_words); }
    std::uint64_t word() const { return word_; }

private:
    std::span<const std::byte> image_;
    const log_layout& where_;
    std::uint64_t word_;
};

} // namespace

line_image resolution::image() const {
    line_image bytes{};
    std::memcpy(bytes.data(), this, sizeof *this);
    return bytes;
}

std::vector<line_image> pack(std::span<const record> records, std::uint64_t tag, bool old) {
    std::vector<std::uint64_t> words;
    for (const record& one : records) {
        words.push_back(address_word(one, tag, words.empty(), old));
        words.insert(words.end(), one.values.begin(), one.values.begin() + one.words());
    }
    std::vector<line_image> lines(round_up(words.size(), line_words) / line_words, line_image{});
    std::memcpy(lines.data(), words.data(), words.size() * word_bytes);
    return lines;
}

resolution newest(std::span<const std::byte> image, const log_layout& where) {
    resolution best;
    for (std::uint64_t slot = 0; slot < log_layout::slots; ++slot) {
        resolution one;
        std::memcpy(&one, &image[where.slot_line(slot) * line_bytes], sizeof one);
        if (one.tag > best.tag) best = one;
    }
    return best;
}

result<std::vector<logged>> read_log(std::span<const std::byte> image, const log_layout& where,
                                     std::uint64_t place, std::uint64_t tag) {
    std::vector<logged> found;
    log_reader at{image, where, place};
    const std::uint64_t end = (place + where.lines) * line_words; // then the circle is full
    bool in_batch = false;
    while (at.word() < end) {
        const std::uint64_t head = at.peek();
        const bool ours = head >> tag_shift == tag;
        if (!in_batch || at.line_begins()) {
            // upholds (3); a batch goes on over the line's end, or another begins, or there is no
            // more
            if (!ours || (!in_batch && (head & first_bit) == 0)) return found;
        } else if (head == 0) { // the rest of a batch's last line is empty
            at.skip_line();
            in_batch = false;
            continue;
        }
        const std::uint64_t word = head >> word_shift & (words_max - 1);
        logged one{{word, static_cast<unsigned>(head & 3), {}}, (head & old_bit) != 0};
        if (!ours || word % one.what.words() != 0 ||
            (word + one.what.words()) * word_bytes > image.size() ||
            at.word() + 1 + one.what.words() > end)
            return status{
                errc::corrupt,
                fmt::format(
                    "log word {}: expected a record of transaction {} within {} bytes, found {:#x}",
                    at.word(), tag, image.size(), head)};
        at.next();
        for (unsigned i = 0; i < one.what.words(); ++i) one.what.values[i] = at.next();
        found.push_back(one);
        in_batch = true;
    }
    return found;
}

} // namespace hf::slpmt
