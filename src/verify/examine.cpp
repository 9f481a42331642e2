// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/engines.hpp>
#include <pool/file_checks.hpp>
#include <verify/examine.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::verify {
namespace {

constexpr std::size_t findings_max = 1000;

class examination {
public:
    examination(std::span<const std::byte> file, depth how) : file_(file), how_(how) {
        out_.file_bytes = file.size();
    }
    report run() {
        const bool known = headers();
        if (known && how_ < depth::structure && !clean()) left_open();
        if (known && how_ >= depth::structure) {
            const pool_image pool(file_, out_.header);
            pool_ = &pool;
            structure();
            if (how_ >= depth::tables) tables();
            if (how_ == depth::deep) content();
            if (how_ == depth::deep && clean() && seal_.state != seal_state::intact)
                cannot("without a seal the bytes of objects cannot be verified");
        }
        return std::move(out_);
    }

private:
    class block_checks;

    template <class Found>
    void wrong(std::uint64_t offset, std::string where, std::string expected, Found&& found) {
        out_.outcome = verdict::damaged;
        if (out_.findings.size() == findings_max) ++out_.findings_left_out;
        else
            out_.findings.push_back({offset, std::move(where), std::move(expected),
                                     std::string(std::forward<Found>(found))});
    }
    void cannot(std::string why) {
        if (out_.outcome == verdict::good) out_.outcome = verdict::not_verifiable;
        out_.notes.push_back(std::move(why));
    }
    void unreadable(std::string why) {
        if (out_.outcome == verdict::good) out_.outcome = verdict::unreadable;
        out_.notes.push_back(std::move(why));
    }
    bool clean() const noexcept { return out_.header.open == 0; }
    const pool_header& header() const noexcept { return out_.header; }

    bool headers();
    void copy(char which, copy_state state);
    void copies_agree(const header_copies& copies);
    void structure();
    void find_the_seal();
    void left_open();
    void content();
    void roots();
    void lanes();
    void lane(const lane_image& image);
    void resumable();
    void objects();
    void tables();
    void prepare_pending_blocks();
    bool settled_by_recovery(std::uint64_t offset, std::uint64_t bytes) const noexcept;

    std::span<const std::byte> file_;
    depth how_;
    report out_;
    const pool_image* pool_ = nullptr;
    seal_found seal_;
    std::vector<block> pending_blocks_; // that recovery will settle, the root's among them
};

/// True when there is a header whose numbers are in bounds, so that the rest can be looked at.
bool examination::headers() {
    const header_copies copies = read_headers(file_);
    if (!copies.any_pool()) {
        unreadable("this is no pool: the file does not start with a pool header");
        return false;
    }
    copy('A', copies.a);
    copy('B', copies.b);
    if (!copies.any_valid()) return false;
    out_.header = copies.chosen();
    copies_agree(copies);
    // The file's length is checked later: a cut file can still be examined.
    if (const status bad = check_header("", header(), ~std::uint64_t{0}); !bad.ok()) {
        const bool unknown =
            bad.code() == errc::wrong_version || bad.code() == errc::unknown_feature;
        if (unknown) unreadable(text_of(bad, ""));
        else
            wrong(&copies.chosen() == &copies.first ? header_a_offset : header_b_offset, "header",
                  "numbers in bounds", text_of(bad, ""));
        return false;
    }
    out_.has_header = true;
    const extent& last = header().extents[header().extent_count - 1];
    const std::uint64_t end = last.offset_bytes + last.size_bytes;
    if (file_.size() < end)
        wrong(file_.size(), "file", fmt::format("{} bytes", end),
              fmt::format("{} bytes", file_.size()));
    return true;
}

void examination::copy(char which, copy_state state) {
    if (state == copy_state::valid) return;
    wrong(which == 'A' ? header_a_offset : header_b_offset, fmt::format("header copy {}", which),
          "a page that verifies",
          state == copy_state::damaged ? "a checksum that does not hold" : "no pool header");
}

void examination::copies_agree(const header_copies& copies) {
    if (copies.a != copy_state::valid || copies.b != copy_state::valid) return;
    const pool_header &a = copies.first, &b = copies.second;
    if (std::memcmp(&a, &b, sizeof a) == 0) return;
    if (a.sequence == b.sequence)
        wrong(header_b_offset, "header copies", "the same page twice, or another sequence number",
              fmt::format("different pages, both of sequence number {}", a.sequence));
    else if (std::memcmp(a.uuid, b.uuid, sizeof a.uuid) != 0)
        wrong(header_a_offset, "header copies", "two of one pool",
              fmt::format(
                  "A and B with the identity of different ones, of sequence numbers {} and {}",
                  a.sequence, b.sequence));
    else // which is written first depends on which counted
        out_.notes.push_back(
            fmt::format("a header write was cut short between the copies; {} counts",
                        a.sequence > b.sequence ? 'A' : 'B'));
}

void examination::structure() {
    find_the_seal();
    roots();
    lanes();
    resumable();
    objects();
}

void examination::find_the_seal() {
    if (clean() || is_whole_copy(header()))
        seal_ = find_seal(file_, pool_->pool_bytes(), header(), how_ >= depth::tables);
    out_.seal = seal_.state;
    if (seal_.state == seal_state::damaged)
        wrong(pool_->pool_bytes(), "seal", "a seal that verifies", seal_.why);
    else if (clean() && seal_.state != seal_state::intact)
        out_.notes.push_back(seal_.state == seal_state::stale
                                 ? "unsealed: the seal is of an earlier close"
                                 : "unsealed: the pool was closed without a seal");
    if (clean()) return;
    if (seal_.state == seal_state::intact)
        out_.notes.emplace_back("a copy of a pool in use, of one moment: its first open recovers "
                                "what was under way");
    else left_open();
}

void examination::left_open() {
    cannot("the pool is open, or was not closed cleanly: sections may be pending; open and close "
           "it to recover and seal it");
}

/// A copy of a pool in use is sealed as a whole: its first open recovers from logs, and from blocks
/// that are not allocated yet.
void examination::content() {
    if (clean() || seal_.state != seal_state::intact) return;
    if (!pool_->has(0, pool_->pool_bytes())) return; // cut, which is said
    const auto bytes = file_.first(pool_->pool_bytes()).subspan(root_words_offset);
    const std::uint64_t found = checksum(bytes.data(), bytes.size(), seal_magic);
    if (found != seal_.head.content_checksum)
        wrong(root_words_offset, "the pool's bytes behind its headers",
              fmt::format("checksum {:016x} (the seal)", seal_.head.content_checksum),
              fmt::format("{:016x}", found));
}

void examination::roots() {
    if (!pool_->has(root_words_offset, sizeof(root_words))) return;
    const root_words words = pool_->roots();
    const auto said = [](const root_words& w) {
        return fmt::format("root {:#x}, {} bytes", w.root_offset, w.root_bytes);
    };
    if (seal_.state == seal_state::intact &&
        std::memcmp(&words, &seal_.head.roots, sizeof words) != 0) {
        const bool same = words.root_offset == seal_.head.roots.root_offset &&
                          words.root_bytes == seal_.head.roots.root_bytes;
        wrong(root_words_offset, "root words", said(seal_.head.roots) + " (the seal)",
              same ? "others behind the root object's" : said(words));
    }
    const auto named = [&](std::uint64_t place, const char* what, std::uint64_t offset,
                           std::uint64_t bytes) {
        if (offset == 0) return false;
        const block b{offset, pool_->rounded(bytes)};
        const bool sound = pool_->well_formed(b);
        if (!sound)
            wrong(place, what, "a block of the heap",
                  fmt::format("{:#x}, {} bytes", offset, bytes));
        else if (!clean()) pending_blocks_.push_back(b); // named before it is allocated
        return sound;
    };
    const std::uint64_t record_at = words.migration_offset;
    migration_record record{};
    if (named(root_words_offset, "the record of a migration", record_at, sizeof record) &&
        pool_->has(record_at, sizeof record)) {
        std::memcpy(&record, file_.data() + record_at, sizeof record);
        named(record_at, "the new root object", record.next_offset, record.next_bytes);
        named(record_at, "the old root object", record.old_offset, record.old_bytes);
    }
    // Cut short behind the header write that gave it the new layout, a migration may have left the
    // root words torn, once the old root was noted.
    const bool torn = record.old_offset != 0 && !is_migrating(header());
    if (!torn) named(root_words_offset, "root words", words.root_offset, words.root_bytes);
}

void examination::lanes() {
    std::uint64_t budget = log_budget(*pool_);
    for (std::uint32_t l = 0; l < header().lane_count; ++l) {
        const lane_image image = read_lane(*pool_, l, budget);
        if (seal_.state == seal_state::intact && seal_.lane_word(l) != image.committed)
            wrong(image.offset, fmt::format("lane {}", l),
                  fmt::format("committed {:#x} (the seal)", seal_.lane_word(l)),
                  fmt::format("{:#x}", image.committed));
        if (image.pending) lane(image);
        if (*image.damage != 0 && !clean())
            wrong(image.damaged_at, fmt::format("lane {}", l), image.damage,
                  fmt::format("{:#x}", pool_->word(image.damaged_at)));
    }
}

void examination::lane(const lane_image& image) {
    const std::string where = fmt::format("lane {}", image.lane);
    if (clean()) {
        wrong(image.offset, where, "no pending section in a pool that was closed cleanly",
              fmt::format("epoch {:#x} above committed {:#x}", image.begin.epoch, image.committed));
        return;
    }
    out_.pending.push_back({image.lane, image.begin, image.records.size()});
    const engine_row* engine = engine_of(image.begin.engine);
    if (engine == nullptr || engine->sections == engine_sections::none ||
        engine->sections == engine_sections::steps) // it logs in blocks of its own
        wrong(image.offset, where, "a known engine", fmt::format("engine {}", image.begin.engine));
    for (const auto* records : {&image.earlier, &image.records})
        for (const lane_record& r : *records) {
            if (const char* rule = record_fault(*pool_, r); *rule != 0)
                wrong(r.at, where, rule,
                      fmt::format("{} record of {:#x}, {} bytes", name_of(r.kind), r.offset,
                                  r.bytes));
            else if (names_block(r.kind)) pending_blocks_.push_back({r.offset, r.bytes});
        }
}

void examination::resumable() {
    justdo_image found = read_justdo(*pool_);
    for (justdo_fault& f : found.faults)
        wrong(f.offset, std::move(f.where), std::move(f.expected), std::move(f.found));
    if (!clean()) {
        pending_blocks_.insert(pending_blocks_.end(), found.blocks.begin(), found.blocks.end());
        out_.resumable = std::move(found.open);
        return;
    }
    for (const resumable_section& section : found.open)
        wrong(section.thread, fmt::format("engine justdo's thread {:#x}", section.thread),
              "no section open in a pool that was closed cleanly",
              fmt::format("one at resume point {} of function {:#x}", section.point,
                          section.function_id));
}

void examination::objects() {
    objects_image found = read_objects(*pool_, how_ >= depth::tables);
    for (object_fault& f : found.faults)
        wrong(f.offset, std::move(f.where), std::move(f.expected), std::move(f.found));
    if (!clean())
        pending_blocks_.insert(pending_blocks_.end(), found.blocks.begin(), found.blocks.end());
    out_.objects = std::move(found.all);
}

/// True when a pending section's block touches these bytes. Requires: pending_blocks_ prepared.
bool examination::settled_by_recovery(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    const auto next = std::ranges::lower_bound(pending_blocks_, offset + bytes, {}, &block::offset);
    return next != pending_blocks_.begin() &&
           std::prev(next)->offset + std::prev(next)->bytes > offset;
}

/// Sorts the pending sections' blocks and joins those that overlap.
void examination::prepare_pending_blocks() {
    std::ranges::sort(pending_blocks_, {}, &block::offset);
    std::size_t kept = 0;
    for (const block b : pending_blocks_) {
        if (kept > 0 &&
            b.offset <= pending_blocks_[kept - 1].offset + pending_blocks_[kept - 1].bytes) {
            block& before = pending_blocks_[kept - 1];
            before.bytes = std::max(before.bytes, b.offset + b.bytes - before.offset);
        } else pending_blocks_[kept++] = b;
    }
    pending_blocks_.resize(kept);
}

/// Compares the tables' blocks with the seal's, both in address order.
class examination::block_checks final : public table_visitor {
public:
    explicit block_checks(examination& of)
        : of_(of), sealed_(of.seal_.state == seal_state::intact) {}

    void on_block(block b) override {
        ++of_.out_.blocks;
        of_.out_.block_bytes += b.bytes;
        if (!of_.pool_->is_slab(b.bytes)) ++of_.out_.large_blocks;
        if (b.offset == root_.offset && b.bytes == root_.bytes) root_seen_ = true;
        if (!sealed_) return;
        while (next_ < of_.seal_.block_count() && of_.seal_.block(next_).offset < b.offset)
            missing(of_.seal_.block(next_++));
        if (next_ == of_.seal_.block_count() || of_.seal_.block(next_).offset != b.offset) {
            of_.wrong(b.offset, fmt::format("block {:#x}", b.offset), "no block (the seal)",
                      fmt::format("a block of {} bytes", b.bytes));
            return;
        }
        const sealed_block then = of_.seal_.block(next_++);
        if (then.bytes != b.bytes)
            of_.wrong(b.offset, fmt::format("block {:#x}", b.offset),
                      fmt::format("{} bytes (the seal)", then.bytes),
                      fmt::format("{} bytes", b.bytes));
        else if (of_.how_ == depth::deep) compare(then);
    }

    void on_fault(const table_fault& fault) override {
        if (of_.settled_by_recovery(fault.chunk_offset, of_.pool_->chunk_bytes())) return;
        const std::string chunk = fmt::format("chunk {:#x}", fault.chunk_offset);
        switch (fault.what) {
        case table_fault::kind::entry:
            of_.wrong(fault.offset, chunk, "an entry that fits its bits",
                      fmt::format("{:#x}", fault.found));
            break;
        case table_fault::kind::stray_bit:
            of_.wrong(fault.offset, chunk, "bits where its blocks start",
                      fmt::format("others: {:#x}", fault.found));
            break;
        case table_fault::kind::overlap:
            of_.wrong(fault.offset, chunk, "no block inside a large one",
                      fmt::format("bits {:#x}", fault.found));
            break;
        }
    }

    void finish() {
        while (sealed_ && next_ < of_.seal_.block_count()) missing(of_.seal_.block(next_++));
        if (root_.bytes != 0 && !root_seen_ && of_.clean())
            of_.wrong(root_words_offset, "root words", "an allocated block",
                      fmt::format("{:#x}, {} bytes, which is free", root_.offset, root_.bytes));
    }
    void expect_root(block root) noexcept { root_ = root; }

private:
    void missing(const sealed_block& then) {
        of_.wrong(then.offset, fmt::format("block {:#x}", then.offset),
                  fmt::format("a block of {} bytes (the seal)", then.bytes), "none");
    }
    void compare(const sealed_block& then) {
        // Bounded: the tables have the same block; but the file may be cut.
        const bool there = of_.pool_->has(then.offset, then.bytes);
        const std::uint64_t now =
            there ? XXH3_64bits(of_.file_.data() + then.offset, then.bytes) : 0;
        if (there && now == then.checksum) {
            ++of_.out_.blocks_verified;
            return;
        }
        ++of_.out_.blocks_damaged;
        of_.wrong(then.offset, fmt::format("block {:#x}, {} bytes", then.offset, then.bytes),
                  fmt::format("checksum {:016x} (the seal)", then.checksum),
                  there ? fmt::format("{:016x}", now) : "the file ends before it does");
    }

    examination& of_;
    bool sealed_;
    std::uint64_t next_ = 0; // in the seal
    block root_{0, 0};
    bool root_seen_ = false;
};

void examination::tables() {
    for (const extent_image& e : pool_->extents()) {
        out_.heap_bytes += e.chunks * pool_->chunk_bytes();
        out_.metadata_bytes += e.data_offset - e.entries_offset;
    }
    prepare_pending_blocks();
    block_checks checks(*this);
    const root_words words = pool_->roots();
    const block root{words.root_offset, pool_->rounded(words.root_bytes)};
    if (root.offset != 0 && pool_->well_formed(root)) checks.expect_root(root);
    walk_tables(*pool_, checks);
    checks.finish();
}

} // namespace

report examine(std::span<const std::byte> file, depth how) { return examination(file, how).run(); }

std::string_view name_of(verdict v) noexcept {
    switch (v) {
    case verdict::good: return "good";
    case verdict::damaged: return "damaged";
    case verdict::unreadable: return "unreadable";
    case verdict::not_verifiable: return "not verifiable";
    }
    return "?";
}

} // namespace hf::verify
