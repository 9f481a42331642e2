// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <pool/file_checks.hpp>
#include <verify/repair.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace hf::verify {
namespace {

constexpr std::size_t lines_max = 1000; // of 'done' and 'lost'

bool in_bounds(const pool_header& h) { return check_header("", h, ~std::uint64_t{0}).ok(); }

/// The newest seal whose head verifies and that is where its own header says. The search begins at
/// the end, so that a pool stored as somebody's object is not mistaken for the pool itself.
bool header_from_seal(std::span<const std::byte> file, pool_header& out) {
    constexpr std::uint64_t step = 4096; // extents end at multiples of it
    for (std::uint64_t at = round_down(file.size(), step); at >= pool_bytes_min; at -= step) {
        std::uint64_t magic = 0;
        if (file.size() - at < sizeof(seal_head)) continue;
        std::memcpy(&magic, file.data() + at, sizeof magic);
        if (magic != seal_magic) continue;
        seal_head head;
        std::memcpy(&head, file.data() + at, sizeof head);
        if (seal_head_checksum(head) != head.checksum || !in_bounds(head.header)) continue;
        if (header_checksum(head.header) != head.header.checksum) continue;
        const extent& last = head.header.extents[head.header.extent_count - 1];
        if (last.offset_bytes + last.size_bytes != at) continue;
        out = head.header;
        return true;
    }
    return false;
}

class planning {
public:
    explicit planning(std::span<const std::byte> file) : file_(file) {}

    repair_plan run() {
        plan_.file_bytes = file_.size();
        if (!choose_header()) return std::move(plan_);
        plan_.possible = true;
        const pool_image pool(file_, header_);
        pool_ = &pool;
        length();
        if (header_.open != 0) {
            plan_.lost.emplace_back("the pool was not closed cleanly: lanes and tables are left "
                                    "to recovery; open and close the pool");
            return std::move(plan_);
        }
        seal_ = find_seal(file_, pool.pool_bytes(), header_, true);
        if (seal_.state == seal_state::intact && !seal_is_sound())
            seal_.state = seal_state::damaged;
        const bool sealed = seal_.state == seal_state::intact;
        if (seal_.state == seal_state::damaged)
            lost("the seal does not verify: the bytes of objects cannot be verified any more");
        lanes();
        if (sealed) {
            roots();
            tables();
        } else tables_without_seal();
        return std::move(plan_);
    }

private:
    void done(std::string line) {
        if (plan_.done.size() < lines_max) plan_.done.push_back(std::move(line));
    }
    void lost(std::string line) {
        if (plan_.lost.size() < lines_max) plan_.lost.push_back(std::move(line));
    }
    void put(std::uint64_t offset, const void* bytes, std::size_t count) {
        const auto* from = static_cast<const std::byte*>(bytes);
        plan_.changes.push_back({offset, {from, from + count}});
    }
    bool put_word(std::uint64_t offset, std::uint64_t wanted) {
        if (pool_->word(offset) == wanted) return false;
        put(offset, &wanted, sizeof wanted);
        return true;
    }

    bool choose_header();
    void write_header(const header_copies& copies, const char* from);
    void length();
    void lanes();
    void order(const lane_image& image, std::uint64_t committed);
    void roots();
    void tables();
    void chunk(const extent_image& e, std::uint64_t c);
    void tables_without_seal();
    bool seal_is_sound() const;

    std::span<const std::byte> file_;
    repair_plan plan_;
    pool_header header_{};
    const pool_image* pool_ = nullptr;
    seal_found seal_;
    std::uint64_t next_ = 0; // block of the seal that the walk over chunks comes to next
};

bool planning::choose_header() {
    const header_copies copies = read_headers(file_);
    const char* from = nullptr;
    if (copies.any_valid() && in_bounds(copies.chosen())) {
        header_ = copies.chosen();
        const bool a = copies.a == copy_state::valid, b = copies.b == copy_state::valid;
        if (a && b) return true; // the next open settles their differences
        from = a ? "copy A" : "copy B";
    } else if (copies.any_valid()) {
        lost("header: " + text_of(check_header("", copies.chosen(), ~std::uint64_t{0}), "") +
             ", in a page that verifies");
        return false;
    } else if (merge_headers(copies, header_) && in_bounds(header_))
        from = "the two copies together";
    else if (header_from_seal(file_, header_)) from = "the seal";
    else {
        lost(copies.any_pool() ? "both header copies are damaged, and no seal repeats them: where "
                                 "lanes, extents and objects are is not known"
                               : "this is no pool: neither header nor seal");
        return false;
    }
    write_header(copies, from);
    return true;
}

void planning::write_header(const header_copies& copies, const char* from) {
    for (const bool first : {true, false}) {
        if ((first ? copies.a : copies.b) == copy_state::valid) continue;
        put(first ? header_a_offset : header_b_offset, &header_, sizeof header_);
        done(fmt::format("header copy {}: rebuilt from {}", first ? 'A' : 'B', from));
    }
}

/// Lists the blocks that a cut file no longer has; those of tables that are gone themselves cannot
/// be listed.
class blocks_beyond final : public table_visitor {
public:
    blocks_beyond(std::uint64_t end, std::vector<std::string>& lost) : end_(end), lost_(lost) {}
    void on_block(block b) override {
        if (b.offset + b.bytes <= end_) return;
        const std::uint64_t left = b.offset < end_ ? end_ - b.offset : 0;
        if (lost_.size() < lines_max)
            lost_.push_back(
                fmt::format("block {:#x}: {} of {} bytes were cut off and read as zeros", b.offset,
                            b.bytes - left, b.bytes));
    }
    void on_fault(const table_fault&) override {}

private:
    std::uint64_t end_;
    std::vector<std::string>& lost_;
};

void planning::length() {
    const std::uint64_t wanted = pool_->pool_bytes();
    if (file_.size() >= wanted) return;
    plan_.grown_bytes = wanted - file_.size();
    plan_.file_bytes = wanted;
    done(fmt::format("file: lengthened by {} zero bytes to {}", plan_.grown_bytes, wanted));
    if (file_.size() < header_.lanes_offset + header_.lane_bytes * header_.lane_count)
        lost("root words or log lanes were cut off");
    for (const extent_image& e : pool_->extents())
        if (file_.size() < e.data_offset)
            lost(fmt::format("extent {:#x}: its allocator tables were cut off; its blocks cannot "
                             "be listed",
                             e.entries_offset));
    blocks_beyond beyond(file_.size(), plan_.lost);
    walk_tables(*pool_, beyond);
}

/// (2): in a pool that its header says was closed, every section is committed.
void planning::lanes() {
    std::uint64_t budget = log_budget(*pool_);
    const bool sealed = seal_.state == seal_state::intact;
    for (std::uint32_t l = 0; l < header_.lane_count; ++l) {
        const lane_image image = read_lane(*pool_, l, budget);
        if (!pool_->has(image.offset, word_bytes)) return;
        const std::uint64_t wanted =
            sealed ? seal_.lane_word(l) : std::max(image.committed, image.newest);
        const bool changed = put_word(image.offset, wanted);
        if (changed)
            done(fmt::format("lane {}: 'committed' put back to {:#x}, from {}", l, wanted,
                             sealed ? "the seal" : "its newest begin record"));
        if (put_word(image.offset + offsetof(lane_header, logged), 0))
            done(fmt::format("lane {}: the end of a log of words that nothing wrote is taken out",
                             l));
        // Such a record would be pending: the mark for "no record" replaces it.
        for (const half_image& half : image.halves)
            if (half.epoch > wanted) {
                put_word(half.at, ~first_chain);
                lost(fmt::format("lane {}: a begin record of epoch {:#x}, newer than the seal", l,
                                 half.epoch));
            }
        if (changed || *image.damage != 0) order(image, wanted);
    }
}

/// Gives a lane whose mark is 'committed' now its witness. If a half is damaged: the note that
/// nobody may believe its order until a thread takes the lane.
void planning::order(const lane_image& image, std::uint64_t committed) {
    const std::uint64_t at = image.offset + offsetof(lane_header, witness);
    const std::uint64_t witness = pool_->word(at);
    const bool never = (witness == 0 && *image.damage == 0) || witness == lane_unordered;
    if (never) return;
    const bool halves = std::ranges::none_of(image.halves, &half_image::damaged);
    if (put_word(at, halves ? witness_of(committed) : lane_unordered))
        done(fmt::format("lane {}: {}", image.lane,
                         halves ? "the witness of 'committed' put back"
                                : "a half begins with no record: its order counts no more"));
}

void planning::roots() {
    const root_words words = pool_->roots();
    if (std::memcmp(&words, &seal_.head.roots, sizeof words) == 0) return;
    put(root_words_offset, &seal_.head.roots, sizeof words);
    done(fmt::format("root words: put back to {:#x}, {} bytes, from the seal",
                     seal_.head.roots.root_offset, seal_.head.roots.root_bytes));
}

/// A forger that can compute checksums may have written a seal that verifies: its blocks are
/// bounded all the same, and must be blocks, in order and apart.
bool planning::seal_is_sound() const {
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < seal_.block_count(); ++i) {
        const sealed_block b = seal_.block(i);
        if (b.offset < end || !pool_->well_formed({b.offset, b.bytes})) return false;
        end = b.offset + b.bytes;
    }
    return true;
}

/// Gives the chunk the entry and bits that the seal's blocks want. An entry of a chunk without
/// blocks says nothing and stays.
void planning::chunk(const extent_image& e, std::uint64_t c) {
    const std::uint64_t start = e.data_offset + c * pool_->chunk_bytes();
    const std::uint64_t end = start + pool_->chunk_bytes();
    std::array<std::uint64_t, 64> bits{};
    std::uint64_t entry = 0;
    bool agrees = true;
    for (; next_ < seal_.block_count() && seal_.block(next_).offset < end; ++next_) {
        const sealed_block b = seal_.block(next_);
        const std::uint64_t g = (b.offset - start) / granule_bytes;
        bits[g / 64] |= std::uint64_t{1} << g % 64;
        const chunk_entry own = pool_->is_slab(b.bytes)
                                    ? chunk_entry::slab(pool_->classes().class_of(b.bytes))
                                    : chunk_entry::large(b.bytes / pool_->chunk_bytes());
        agrees = agrees && (entry == 0 || entry == own.word);
        entry = own.word;
    }
    if (!agrees) { // only a forged seal: blocks of two sizes in one chunk
        lost(fmt::format("chunk {:#x}: the seal names blocks of different sizes in it", start));
        return;
    }
    bool changed = false;
    if (entry != 0) changed |= put_word(e.entries_offset + c * word_bytes, entry);
    const std::uint64_t words = pool_->words_per_chunk();
    for (std::uint64_t w = 0; w < words; ++w)
        changed |= put_word(e.bits_offset + (c * words + w) * word_bytes, bits[w]);
    if (changed) done(fmt::format("chunk {:#x}: entry and bits put back from the seal", start));
}

void planning::tables() {
    for (const extent_image& e : pool_->extents())
        for (std::uint64_t c = 0; c < e.chunks; ++c) chunk(e, c);
    for (std::uint64_t i = 0; i < seal_.block_count(); ++i) {
        const sealed_block b = seal_.block(i);
        if (XXH3_64bits(file_.data() + b.offset, b.bytes) != b.checksum)
            lost(fmt::format("block {:#x}, {} bytes: its bytes differ from those that were sealed",
                             b.offset, b.bytes));
    }
}

/// Lists the faults of the tables without mending them: of an entry and bits that disagree, either
/// may be the damaged one (1).
class unmended_faults final : public table_visitor {
public:
    explicit unmended_faults(std::vector<std::string>& lost) : lost_(lost) {}
    void on_block(block) override {}
    void on_fault(const table_fault& fault) override {
        if (lost_.size() < lines_max)
            lost_.push_back(
                fmt::format("chunk {:#x}: its entry and bits disagree; without a seal it cannot "
                            "be known which is wrong",
                            fault.chunk_offset));
    }

private:
    std::vector<std::string>& lost_;
};

void planning::tables_without_seal() {
    unmended_faults faults(plan_.lost);
    walk_tables(*pool_, faults);
}

} // namespace

repair_plan plan_repair(std::span<const std::byte> file) { return planning(file).run(); }

} // namespace hf::verify
