// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/lane.hpp>
#include <mod/compaction.hpp>
#include <mod/relocator.hpp>
#include <mod/store_impl.hpp>
#include <pool/file_checks.hpp>
#include <pool/seal.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

namespace hf::mod {
namespace {

/// The new heap: the superblock's chunk, then arenas, filled from their first slot on. Places count
/// from its first chunk, which lies behind tables whose size is known last.
class new_heap {
public:
    explicit new_heap(std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

    struct arena_form {
        std::uint64_t at, bytes; // from the first chunk
        std::uint32_t slot_bytes, slots, used;
        std::uint64_t slot(std::uint32_t i) const noexcept {
            return at + slots_at(slots) + std::uint64_t{i} * slot_bytes;
        }
    };
    /// The next slot like one of 'like'.
    std::uint64_t take(const arena& like) {
        const bool alone = like.slots == 1;
        const auto room = alone ? rooms_.end() : rooms_.find(like.slot_bytes);
        if (room != rooms_.end() && arenas_[room->second].used < arenas_[room->second].slots) {
            arena_form& a = arenas_[room->second];
            return a.slot(a.used++);
        }
        const std::uint64_t bytes = alone ? like.bytes : chunk_bytes_;
        arenas_.push_back({end_, bytes, like.slot_bytes, slots_in(bytes, like.slot_bytes), 1});
        end_ += bytes;
        if (!alone) rooms_[like.slot_bytes] = arenas_.size() - 1;
        return arenas_.back().slot(0);
    }
    std::span<const arena_form> arenas() const noexcept { return arenas_; }
    std::uint64_t bytes() const noexcept { return end_; }

private:
    std::uint64_t chunk_bytes_;
    std::uint64_t end_ = chunk_bytes_; // behind the superblock
    std::vector<arena_form> arenas_;
    std::map<std::uint32_t, std::size_t> rooms_; // by slot size: the arena that is being filled
};

/// The new file, mapped.
class new_image {
public:
    new_image() = default;
    new_image(const new_image&) = delete;
    new_image& operator=(const new_image&) = delete;
    ~new_image() {
        if (at_ != nullptr) ::munmap(at_, bytes_);
    }
    int map(int descriptor, std::uint64_t bytes) noexcept {
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (at == MAP_FAILED) return errno;
        at_ = static_cast<std::byte*>(at);
        bytes_ = bytes;
        return 0;
    }
    std::byte* at(std::uint64_t offset) const noexcept {
        HF_ASSERT_SLOW(offset < bytes_);
        return at_ + offset;
    }

private:
    std::byte* at_ = nullptr;
    std::uint64_t bytes_ = 0;
};

class compaction {
public:
    explicit compaction(pool& old)
        : pool_(old.internals()), file_(*pool_.file), in_(store::in(old).internals()),
          heap_(file_.shape().chunk_bytes) {}

    /// Whether all that the pool holds is MOD's, and whole. Nothing is written here, and below.
    status check();
    /// Gives every node a new place.
    status plan();
    /// Fills the new file.
    status write(os_file& to);
    compact_report report() const noexcept { return {file_.size_bytes(), end(), nodes_}; }

private:
    struct item {
        ref node;
        std::uint32_t context, cell;
    };
    status corrupt_node(const cell& root, ref at) const {
        return corrupt(
            file_, fmt::format("root \"{}\": expected a node that its kind can have, found {:#x}",
                               root.name, std::uint64_t{at} * granule_bytes));
    }
    std::uint64_t end() const noexcept { return extent_.offset_bytes + extent_.size_bytes; }
    const kind* kind_of(std::uint32_t cell) const { return find_kind(in_.cells()[cell].kind); }
    node_form form_of(const item& of) const {
        return {kind_of(of.cell), of.context, in_.cells()[of.cell].shape};
    }
    std::span<const std::byte> bytes_of(ref node) const {
        return {in_.node_at<std::byte>(node), in_.space().bytes_of(node)};
    }
    status check_kinds() const;
    status meet(const visit& at, std::uint32_t cell);
    status plan_word(std::uint32_t cell, std::uint64_t word);
    status follow_items();
    void choose_extent();
    ref place_of(ref node) const;
    std::uint64_t new_word(std::uint32_t cell, std::uint64_t word) const;
    status write_nodes(const new_image& to);
    status write_node(const item& of, const new_image& to);
    void write_tables(const new_image& to) const;
    void write_arenas(const new_image& to) const;
    void write_superblock(const new_image& to) const;
    pool_header header() const;
    status seal(const os_file& to, const new_image& image, const pool_header& closing) const;

    pool::impl& pool_;
    pool_file& file_;
    store::impl& in_;
    new_heap heap_;
    extent extent_{};
    std::uint64_t first_chunk_ = 0; // from the pool's start
    std::uint64_t nodes_ = 0;
    std::vector<item> items_; // in the order in which they are met
    std::size_t next_ = 0;    // of items_ whose children are not met yet
    std::unordered_map<const arena*, std::vector<ref>> moved_; // by slot; 0: not reached
    std::unordered_set<std::uint64_t>
        contexts_; // where nodes have several parents: {context, node}
};

status compaction::check() {
    if (file_.roots()->anchor(engine_mod) != 0)
        if (status s = check_kinds(); !s.ok()) return s;
    if (status s = in_.wait_for_trace(); !s.ok()) return s;
    if (status s = in_.verify(); !s.ok()) return s;
    std::unordered_set<std::uint64_t> ours;
    if (in_.super() != nullptr) ours.insert(file_.roots()->anchor(engine_mod));
    in_.space().for_each([&](const arena& a) { ours.insert(a.offset); });
    std::uint64_t others = 0, bytes = 0;
    pool_.blocks.durable().for_each([&](block b) {
        if (ours.contains(b.offset)) return;
        ++others;
        bytes += b.bytes;
    });
    if (others == 0 && file_.roots()->root_offset == 0) return {};
    return refusal(
        file_.path(), errc::conflict,
        fmt::format(
            "expected MOD's containers alone, found {} other blocks of {} bytes: compaction would "
            "move them, and cannot change the pointers to them. Use pool.trim() or `holdfast trim` "
            "instead: it moves nothing and gives free space back",
            others, bytes));
}

status compaction::check_kinds() const {
    for (std::uint32_t i = 0; i < in_.super()->cell_count; ++i) {
        const cell& c = in_.cells()[i];
        if (c.kind != 0 && c.kind != builtin_kind::family && kind_of(i) == nullptr)
            return refusal(
                file_.path(), errc::missing_engine,
                fmt::format("root \"{}\": expected a kind that this program knows, found {}: call "
                            "mod::compact() in a program that registers the kind (mod::add_kind)",
                            c.name, c.kind));
    }
    return {};
}

/// A node that a root leads to gets a place when it is met first.
status compaction::meet(const visit& at, std::uint32_t cell) {
    const arena* const a = in_.space().find(at.node);
    if (a == nullptr || a->slot_bytes < at.bytes) return corrupt_node(in_.cells()[cell], at.node);
    std::vector<ref>& places = moved_[a];
    if (places.empty()) places.resize(a->slots);
    ref& place = places[a->slot_of(std::uint64_t{at.node} * granule_bytes)];
    const bool shares = in_.super()->shares != 0;
    if (place != 0 && !shares) return corrupt_node(in_.cells()[cell], at.node);
    if (place == 0) {
        const std::uint64_t granule = heap_.take(*a) / granule_bytes;
        if (granule > ref_max)
            return {
                errc::limit_reached,
                file_.path() +
                    ": limit_reached: expected nodes that fit the first 32 GiB of the new file, "
                    "found more: call pool.trim() instead"};
        place = static_cast<ref>(granule);
        ++nodes_;
    }
    // One vector's part may be another's with more elements: it is followed as each vector has it.
    if (!shares || contexts_.insert(std::uint64_t{at.context} << 32 | at.node).second)
        items_.push_back({at.node, at.context, cell});
    return {};
}

status compaction::plan_word(std::uint32_t cell, std::uint64_t word) {
    const mod::cell& c = in_.cells()[cell];
    if (c.kind == 0) return word == 0 ? status() : corrupt_node(c, static_cast<ref>(word));
    visits named;
    kind_of(cell)->top(named, in_.base(), word, c.shape);
    if (named.all.empty() && word == 0) return {};
    if (named.all.size() != 1 || named.all[0].node != (static_cast<ref>(word) & ref_max))
        return refusal(
            file_.path(), errc::conflict,
            fmt::format("root \"{}\": expected a word whose low half is the ref of the one node "
                        "that it names, found {:#x} and {} nodes: compaction cannot change it. "
                        "Call pool.trim() instead: it moves nothing",
                        c.name, word, named.all.size()));
    if (status s = meet(named.all[0], cell); !s.ok()) return s;
    return follow_items();
}

status compaction::follow_items() {
    for (; next_ < items_.size(); ++next_) {
        const item of = items_[next_];
        const std::vector<visit> named = form_of(of).visits_of(bytes_of(of.node));
        for (const visit& v : named)
            if (status s = meet(v, of.cell); !s.ok()) return s;
    }
    return {};
}

status compaction::plan() {
    const std::uint64_t count = in_.super() == nullptr ? 0 : in_.super()->cell_count;
    for (std::uint32_t i = 0; i < count; ++i) {
        const cell& c = in_.cells()[i];
        if (c.family != 0) continue; // followed with its family
        if (c.kind != builtin_kind::family) {
            if (status s = plan_word(i, c.word); !s.ok()) return s;
            continue;
        }
        if (c.word == 0) continue;
        const std::uint64_t* const words = in_.words_of(c, c.word);
        if (words == nullptr) return corrupt_node(c, static_cast<ref>(c.word));
        const visit parent{static_cast<ref>(c.word), c.members * word_bytes, 0};
        if (status s = meet(parent, i); !s.ok()) return s;
        items_.pop_back(); // its members' words are followed by their own kinds
        for (std::uint32_t m = 0; m < c.members; ++m)
            if (status s = plan_word(i + 1 + m, words[m]); !s.ok()) return s;
    }
    choose_extent();
    return {};
}

/// The smallest extent whose tables leave room for all.
void compaction::choose_extent() {
    const std::uint64_t chunk = file_.shape().chunk_bytes, wanted = heap_.bytes() / chunk;
    extent_ = {file_.extents()[0].offset_bytes, extent_bytes_for(wanted, chunk)};
    first_chunk_ = extent_.offset_bytes + split_extent(extent_.size_bytes, chunk).metadata_bytes;
}

/// Requires: it was met.
ref compaction::place_of(ref node) const {
    const arena* const a = in_.space().find(node);
    const ref place = moved_.at(a)[a->slot_of(std::uint64_t{node} * granule_bytes)];
    HF_ASSERT(place != 0);
    return place + static_cast<ref>(first_chunk_ / granule_bytes);
}

std::uint64_t compaction::new_word(std::uint32_t cell, std::uint64_t word) const {
    if (in_.cells()[cell].kind == 0 || word == 0) return word;
    const ref low = static_cast<ref>(word);
    return (word >> 32 << 32) | (low & ~ref_max) | place_of(low & ref_max);
}

/// Upholds (3).
status compaction::write_node(const item& of, const new_image& to) {
    const node_form form = form_of(of);
    const std::span<const std::byte> was = bytes_of(of.node);
    const std::span<std::byte> is(to.at(std::uint64_t{place_of(of.node)} * granule_bytes),
                                  was.size());
    std::vector<visit> named = form.visits_of(was);
    if (named.empty()) return {};
    for (const std::size_t word : find_refs(form, was, named))
        set_word(is, word, place_of(word_at(was, word) & ref_max));
    for (visit& v : named) v.node = place_of(v.node);
    if (form.visits_of(is) == named) return {};
    return refusal(
        file_.path(), errc::conflict,
        fmt::format("root \"{}\": expected each reference in the node at {:#x} to be a word of "
                    "4 bytes, found one that is not: compaction cannot change it. Call "
                    "pool.trim() instead: it moves nothing",
                    in_.cells()[of.cell].name, std::uint64_t{of.node} * granule_bytes));
}

status compaction::write_nodes(const new_image& to) {
    for (const auto& [a, places] : moved_)
        for (std::uint32_t slot = 0; slot < places.size(); ++slot)
            if (places[slot] != 0)
                std::memcpy(to.at(first_chunk_ + std::uint64_t{places[slot]} * granule_bytes),
                            pool_.at(a->offset + a->slots_at + std::uint64_t{slot} * a->slot_bytes),
                            a->slot_bytes);
    for (const item& of : items_)
        if (status s = write_node(of, to); !s.ok()) return s;
    return {};
}

/// Which blocks there are: the superblock, and every arena.
void compaction::write_tables(const new_image& to) const {
    const std::uint64_t chunk = file_.shape().chunk_bytes;
    const extent_split split = split_extent(extent_.size_bytes, chunk);
    const auto put = [&](std::uint64_t at, std::uint64_t bytes) { // from the first chunk
        const std::uint64_t entry = chunk_entry::large(bytes / chunk).word,
                            granule = at / granule_bytes;
        std::memcpy(to.at(extent_.offset_bytes + at / chunk * sizeof entry), &entry, sizeof entry);
        std::byte* const bits = to.at(extent_.offset_bytes + split.entry_table_bytes + granule / 8);
        *bits |= std::byte{1} << granule % 8;
    };
    if (in_.super() != nullptr) put(0, chunk);
    for (const auto& a : heap_.arenas()) put(a.at, a.bytes);
}

void compaction::write_arenas(const new_image& to) const {
    std::uint64_t before = 0;
    for (const auto& a : heap_.arenas()) {
        arena_head head{};
        head.magic = arena_magic;
        head.next = before;
        head.bytes = a.bytes;
        head.slot_bytes = a.slot_bytes;
        head.slots = a.slots;
        before = first_chunk_ + a.at;
        std::memcpy(to.at(before), &head, sizeof head);
        std::byte* const bits = to.at(before + sizeof head);
        for (std::uint32_t slot = 0; slot < a.used; ++slot)
            bits[slot / 8] |= std::byte{1} << slot % 8;
    }
}

/// Its records name old places, and everything that they record has been done.
void compaction::write_superblock(const new_image& to) const {
    if (in_.super() == nullptr) return;
    superblock super = *in_.super();
    super.arenas = heap_.arenas().empty() ? 0 : first_chunk_ + heap_.arenas().back().at;
    super.taking = super.taking_bytes = 0;
    super.clean = 1;
    super.redo = {};
    for (exchange_record& r : super.exchanges) r = {};
    std::memcpy(to.at(first_chunk_), &super, sizeof super);
    for (std::uint32_t i = 0; i < super.cell_count; ++i) {
        cell c = in_.cells()[i];
        c.in_place = 0;
        if (c.kind == builtin_kind::family && c.word != 0) {
            const std::uint64_t* const words = in_.words_of(c, c.word);
            c.word = place_of(static_cast<ref>(c.word));
            for (std::uint32_t m = 0; m < c.members; ++m) {
                const std::uint64_t word = new_word(i + 1 + m, words[m]);
                std::memcpy(to.at(c.word * granule_bytes + m * word_bytes), &word, sizeof word);
            }
        } else if (c.family == 0) c.word = new_word(i, c.word);
        std::memcpy(to.at(first_chunk_ + sizeof super + i * sizeof c), &c, sizeof c);
    }
}

pool_header compaction::header() const {
    pool_header h = file_.closing_header();
    std::ranges::fill(h.extents, extent{});
    std::ranges::fill(h.laid_out_bytes, std::uint64_t{0});
    h.extents[0] = extent_;
    h.laid_out_bytes[0] = extent_.size_bytes;
    h.extent_count = 1;
    h.optional_features &= ~(feature_whole | feature_holes);
    h.checksum = header_checksum(h);
    return h;
}

/// As a clean close would (open/sealing.cpp).
status compaction::seal(const os_file& to, const new_image& image,
                        const pool_header& closing) const {
    seal_writer writer(to, end());
    for (std::uint32_t l = 0; l < closing.lane_count; ++l)
        writer.add_lane(lane_at(file_, l)->committed);
    const auto add = [&](std::uint64_t at, std::uint64_t bytes) {
        writer.add_block(
            {first_chunk_ + at, bytes, XXH3_64bits(image.at(first_chunk_ + at), bytes)});
    };
    if (in_.super() != nullptr) add(0, file_.shape().chunk_bytes);
    for (const auto& a : heap_.arenas()) add(a.at, a.bytes);
    root_words roots;
    std::memcpy(&roots, image.at(root_words_offset), sizeof roots);
    if (writer.finish(closing, roots)) return {};
    return refusal(file_.path(), errc::pool_full,
                   "the seal of the compacted pool does not fit behind it: call pool.trim() "
                   "instead");
}

status compaction::write(os_file& to) {
    if (status ok = to.allocate(0, end()); !ok.ok()) return ok;
    new_image image;
    if (const int failed = image.map(to.descriptor(), end()); failed != 0)
        return refusal(file_.path(), errc::io_error, fmt::format("map: {}", std::strerror(failed)));
    // Copied unchanged: root words, the words for readers, lanes. In a closed pool nobody uses the
    // addresses in lanes.
    std::memcpy(image.at(root_words_offset), file_.base() + root_words_offset,
                extent_.offset_bytes - root_words_offset);
    root_words roots = *file_.roots();
    if (in_.super() != nullptr) roots.anchor(engine_mod) = first_chunk_;
    std::memcpy(image.at(root_words_offset), &roots, sizeof roots);
    if (status s = write_nodes(image); !s.ok()) return s;
    write_tables(image);
    write_arenas(image);
    write_superblock(image);
    const pool_header closing = header();
    for (const std::uint64_t copy : {header_a_offset, header_b_offset})
        std::memcpy(image.at(copy), &closing, sizeof closing);
    if (status s = seal(to, image, closing); !s.ok()) return s;
    return to.sync();
}

/// Gives the new file the owner and the permissions of the old one; on an error there is no new
/// file.
status take_permissions(const os_file& from, const os_file& to, const std::string& path) {
    struct stat old{};
    if (::fstat(from.descriptor(), &old) != 0)
        return refusal(path, errc::io_error, fmt::format("fstat: {}", std::strerror(errno)));
    if (old.st_nlink > 1)
        return refusal(
            path, errc::conflict,
            fmt::format(
                "expected one name of the file, found {} hard links: only one of them would "
                "lead to the compacted pool. Remove the others first",
                old.st_nlink));
    if (!to.take_owner_of(from.descriptor()))
        return refusal(
            path, errc::permission,
            fmt::format("the new file cannot get the owner of the old one: {}. Compact the pool as "
                        "its owner",
                        std::strerror(errno)));
    return {};
}

/// Whether the old file still has the name. Another file with the name is not replaced.
status still_named(const os_file& old, const std::string& path) {
    struct stat mine{}, named{};
    const bool same = ::fstat(old.descriptor(), &mine) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                      mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
    if (same) return {};
    return refusal(
        path, errc::conflict,
        "expected the file under this name, found it renamed or removed during the compaction, "
        "which has changed nothing: compact it under its present name");
}

/// Upholds (1).
result<pool> open_old(const std::string& path, const open_options& given) {
    open_options how;
    how.layout = given.layout;
    how.layout_hash = given.layout_hash;
    how.expert.relocate = given.expert.relocate;
    how.creation = create::never;
    how.read_only = true;
    how.engines = {engine()};
    const auto start = std::chrono::steady_clock::now();
    auto file = pool_file::open_to_replace(path, file_options_of(how));
    if (!file) return file.error();
    if ((*file)->migrating())
        return refusal(
            path, errc::conflict,
            "expected a pool of one layout, found a migration to another that has not ended: "
            "open the pool with its program, which ends the migration, then compact it");
    return pool::impl::open(std::move(*file), how, start);
}

/// Removes the new file, unless 'done' is ok when its scope is left.
class removed_unless {
public:
    removed_unless(const os_file& file, const status& done) : file_(file), done_(done) {}
    ~removed_unless() {
        if (!done_.ok()) file_.unlink();
    }
    removed_unless(const removed_unless&) = delete;

private:
    const os_file& file_;
    const status& done_;
};

} // namespace

result<compact_report> compact_pool(const std::string& path, const open_options& options,
                                    const copy_check& check) try {
    const auto old = open_old(path, options);
    if (!old) return old.error();
    compaction all(const_cast<pool&>(*old));
    if (status s = all.check(); !s.ok()) return s;
    if (status s = all.plan(); !s.ok()) return s;
    auto made = os_file::create_beside(path);
    if (!made) return made.error();
    status done = out_of_memory(path); // nothing that throws has changed the old file
    const removed_unless removing(*made, done);
    done = all.write(*made);
    if (done.ok()) done = take_permissions(*old->internals().file->own_file(), *made, path);
    if (done.ok() && check) done = check(*made);
    if (done.ok()) done = still_named(*old->internals().file->own_file(), path);
    if (done.ok()) done = made->replace(); // upholds (2)
    if (!done.ok()) return done;
    if (status s = made->sync_directory(); !s.ok())
        return status{s.code(), s.what() + ": the compacted pool is in place, but its name may not "
                                           "be on the disk yet: a power failure may bring the old "
                                           "pool back. Sync the folder"};
    return all.report();
} catch (const std::bad_alloc&) {
    return out_of_memory(path);
}

result<compact_report> compact(const std::string& path, const open_options& options) {
    return compact_pool(path, options, {});
}

} // namespace hf::mod
