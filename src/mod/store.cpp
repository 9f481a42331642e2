// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD's part of a pool as it is opened, named and closed.
#include <base/assert.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>
#include <mod/store_impl.hpp>

#include <algorithm>
#include <cstring>

namespace hf::mod {
namespace {

constexpr std::uint32_t no_cell = ~std::uint32_t{0};

std::uint64_t cells_max(const pool_file& file) {
    return (file.shape().chunk_bytes - sizeof(superblock)) / sizeof(cell);
}

const superblock* superblock_of(const pool_file& file) {
    const std::uint64_t at = file.roots()->mod_offset;
    return at == 0 ? nullptr : reinterpret_cast<const superblock*>(file.base() + at);
}

status corrupt(const pool_file& file, const std::string& what) {
    return {errc::corrupt, fmt::format("{}: corrupt: MOD: {}", file.path(), what)};
}

/// Visits the heads of the list of arenas until 'visit' says true. Errors: corrupt: it is no list.
template <class Visit>
status visit_list(const pool::impl& in, const superblock& super, Visit&& visit) {
    const std::uint64_t chunk = in.file->shape().chunk_bytes;
    std::uint64_t left = in.file->size_bytes() / chunk; // no list is longer
    for (std::uint64_t at = super.arenas; at != 0; --left) {
        if (left == 0 || at % chunk != 0 || !in.blocks.durable().covers(at, sizeof(arena_head)))
            return corrupt(*in.file, fmt::format("the list of arenas leads to {:#x}", at));
        const auto* head = static_cast<const arena_head*>(in.at(at));
        if (visit(at, *head)) break;
        at = head->next;
    }
    return {};
}

/// No commits ever reach it: a number of theirs that is larger would end the counting.
constexpr std::uint64_t commits_max = std::uint64_t{1} << 62;

/// Whether a cell says something that can be. Its word is looked at when the root is opened.
bool sound(const cell* cells, std::uint64_t count, std::uint64_t index) {
    const cell& c = cells[index];
    if (c.name[name_bytes_max] != 0 || c.stamp > commits_max) return false;
    if (c.family == 0 && c.kind != builtin_kind::family) return c.kind != 0 && c.members == 0;
    if (c.family == 0) {
        if (c.members == 0 || c.members > family_members_max || c.members >= count - index)
            return false;
        for (std::uint64_t m = 0; m < c.members; ++m)
            if (cells[index + 1 + m].family != index + 1) return false;
        return true;
    }
    const std::uint64_t family = c.family - 1;
    return family < index && cells[family].kind == builtin_kind::family && c.members == 0 &&
           c.kind != builtin_kind::family && c.member < cells[family].members &&
           index == family + 1 + c.member;
}

/// Whether a record was written to its end.
bool valid(const redo_record& r) noexcept {
    if (r.count == 0 || r.count > redo_updates_max) return false;
    persist::trace(persist::event::checked, &r,
                   offsetof(redo_record, entries) + r.count * sizeof r.entries[0]);
    return r.check == redo_check(r);
}

} // namespace

store::impl::impl(pool::impl& in, store& face)
    : pool_(&in), face_(&face), super_(const_cast<superblock*>(superblock_of(*in.file))),
      owners_(cells_max(*in.file)), space_(in, super_) {}

store::impl::~impl() {
    stop();
    if (live_states_ != 0)
        fatal("a pool was closed while %zu versions of its structures lived", live_states_.load());
}

status store::impl::inspect(const pool::impl& in) {
    const pool_file& file = *in.file;
    const std::uint64_t at = file.roots()->mod_offset;
    if (at == 0) return {};
    const std::uint64_t chunk = file.shape().chunk_bytes;
    if (at % chunk != 0 || !in.blocks.durable().covers(at, chunk))
        return corrupt(file, fmt::format("superblock at {:#x}, outside the heap", at));
    const superblock& super = *superblock_of(file);
    if (super.magic != superblock_magic)
        return corrupt(file, fmt::format("superblock at {:#x} begins with {:#x}, expected {:#x}",
                                         at, super.magic, superblock_magic));
    if (super.cell_count > cells_max(file))
        return corrupt(
            file, fmt::format("{} roots, at most {} expected", super.cell_count, cells_max(file)));
    const auto* cells = reinterpret_cast<const cell*>(&super + 1);
    for (std::uint64_t i = 0; i < super.cell_count; ++i)
        if (!sound(cells, super.cell_count, i))
            return corrupt(file, fmt::format("root cell {} is damaged", i));
    const redo_record& r = super.redo;
    if (valid(r) && r.number > commits_max)
        return corrupt(file, fmt::format("redo record of number {}", r.number));
    if (valid(r))
        for (std::uint64_t i = 0; i < r.count; ++i)
            if (r.entries[i].cell >= super.cell_count)
                return corrupt(file, fmt::format("redo record names root {} of {}",
                                                 r.entries[i].cell, super.cell_count));
    return {};
}

namespace {

/// An arena that is allocated and in no list was about to be listed, or to be given back. It is
/// listed again: were the list damaged, live nodes might lie in it, and freeing it would lose them.
status adopt(pool::impl& in, superblock& super, block b) {
    auto* head = static_cast<arena_head*>(in.at(b.offset));
    if (super.clean != 0 || head->magic != arena_magic || head->bytes != b.bytes)
        return corrupt(*in.file,
                       fmt::format("{} bytes at {:#x} are no arena half taken", b.bytes, b.offset));
    const hf::domain d = in.file->domain();
    persist::store_word(d, &head->next, super.arenas);
    persist::fence(d);
    persist::store_word(d, &super.arenas, b.offset);
    persist::fence(d);
    return {};
}

} // namespace

namespace {

/// Of a process that was killed the last words may only be stored. What is believed of them must be
/// durable before anything that is built on it.
void flush_believed(const pool::impl& in, const superblock& super) {
    const pool_file& file = *in.file;
    if (file.was_clean()) return;
    persist::flush(file.domain(), &super, sizeof super + super.cell_count * sizeof(cell));
    const auto* cells = reinterpret_cast<const cell*>(&super + 1);
    for (std::uint64_t i = 0; i < super.cell_count; ++i)
        if (cells[i].in_place != 0 && cells[i].in_place < file.size_bytes())
            persist::flush(file.domain(), file.base() + cells[i].in_place, 1);
    // A damaged list is the trace's to report.
    (void)visit_list(in, super, [&](std::uint64_t, const arena_head& head) {
        persist::flush(file.domain(), &head, sizeof head);
        return false;
    });
    persist::fence(file.domain());
}

} // namespace

status store::impl::settle_taking(pool::impl& in) {
    auto* super = const_cast<superblock*>(superblock_of(*in.file));
    if (super == nullptr) return {};
    flush_believed(in, *super);
    if (super->taking == 0) return {};
    const block b{super->taking, super->taking_bytes};
    heap& blocks = in.blocks.durable();
    if (b.offset % in.file->shape().chunk_bytes != 0 || blocks.is_slab(b.bytes) ||
        !blocks.well_formed(b))
        return corrupt(*in.file,
                       fmt::format("arena half taken at {:#x}, {} bytes", b.offset, b.bytes));
    bool ours = false;
    const status listed = visit_list(in, *super, [&](std::uint64_t at, const arena_head&) {
        return ours = at == super->taking;
    });
    if (!listed.ok()) return listed;
    const std::uint64_t there_bytes = blocks.allocated_at(b.offset).bytes;
    const hf::domain d = in.file->domain();
    const auto dirty = [&](const void* word) { persist::flush(d, word, word_bytes); };
    if (there_bytes == b.bytes) {
        blocks.publish(b, dirty); // it is: durably
        persist::fence(d);
        return ours ? status() : adopt(in, *super, b);
    }
    // Its bit may have persisted without its chunk's entry, and the entry without the bit.
    const heap_extent& e = blocks.extent_at(blocks.extent_of(b.offset));
    const chunk_entry entry = blocks.entry(e, (b.offset - e.data_offset) / blocks.chunk_bytes());
    const bool nobodys =
        entry.word == 0 || entry.word == chunk_entry::large(b.bytes / blocks.chunk_bytes()).word;
    if (there_bytes == 0 && nobodys) blocks.retract(b, dirty);
    if (there_bytes != 0 || !nobodys || !in.blocks.claim(b))
        return corrupt(*in.file,
                       fmt::format("arena at {:#x} lies in a chunk of other blocks", b.offset));
    if (ours) blocks.publish(b, dirty);
    persist::fence(d);
    if (ours) return {};
    // From here on the chunk may be another's.
    persist::store_word(d, &super->taking, 0);
    persist::fence(d);
    thread_cache none;
    in.blocks.release(none, b);
    return {};
}

status store::impl::start() {
    pool_->file->make_readable();
    if (super_ == nullptr) return {};
    redo();
    roots_.resize(super_->cell_count);
    sharing_durable_ = super_->shares != 0;
    const bool clean = super_->clean == 1;
    was_clean_ = clean;
    if (super_->clean != 0) {
        persist::store_word(domain(), &super_->clean, 0);
        persist::fence(domain());
    }
    if (clean && super_->shares == 0) return {};
    for (std::uint64_t i = 0; i < super_->cell_count; ++i) trace_words_.push_back(cells()[i].word);
    counts_unknown_ = super_->shares != 0;
    trace_done_ = false;
    space_.begin_trace();
    // The crash checker follows one thread.
    if (pool_->file->in_memory()) {
        run_trace();
        return {};
    }
    try {
        tracing_ = std::thread([this] { run_trace(); });
    } catch (const std::system_error&) { // no thread: then now
        run_trace();
    }
    return {};
}

/// A commit of unrelated roots that was durable before its words were is completed.
void store::impl::redo() noexcept {
    for (std::uint64_t i = 0; i < super_->cell_count; ++i)
        redo_number_ = std::max(redo_number_, cells()[i].stamp);
    const redo_record& r = super_->redo;
    if (!valid(r)) return;
    redo_number_ = std::max(redo_number_, r.number);
    for (std::uint64_t i = 0; i < r.count; ++i) {
        cell& c = cells()[r.entries[i].cell];
        if (c.stamp >= r.number) continue;
        store_stamped(c, r.entries[i].word, r.number);
    }
    persist::fence(domain());
}

void store::impl::stop() noexcept {
    stop_trace_ = true;
    if (tracing_.joinable()) tracing_.join();
}

void store::impl::settle_for_close() noexcept {
    if (!pool_->usable().ok()) return; // its roots, and what is in use, are the parent's to say
    stop();
    for (auto& part : roots_) // the last commit may be another thread's, and unfenced
        if (part != nullptr) store_again(*part);
    persist::fence(domain()); // every root's word
    if (super_ == nullptr || !trace_done_ || trace_failed_ || live_states_ != 0) return;
    if (uncounted_ || space_.damaged()) return; // the next open counts
    for (auto& part : roots_) {
        if (part == nullptr) continue;
        reclaim(*part, part->cache, ~std::uint64_t{0});
        space_.give_all(part->cache);
    }
    for (auto& cache : caches_) space_.give_all(*cache);
    space_.store_bitmaps();
    persist::fence(domain());
    persist::store_word(domain(), &super_->clean, 1);
    persist::fence(domain());
}

/// As pool::root_bytes: named before it is allocated; the next open cures a crash in between.
status store::impl::make_superblock() {
    root_words* words = pool_->file->roots();
    thread_cache none;
    const block b = pool_->blocks.reserve(none, pool_->file->shape().chunk_bytes);
    if (b.offset == 0) return {errc::pool_full, pool_->file->path() + ": pool_full"};
    auto* super = static_cast<superblock*>(pool_->at(b.offset));
    std::memset(super, 0, b.bytes);
    super->magic = superblock_magic;
    persist::flush(domain(), super, b.bytes);
    persist::fence(domain());
    persist::store_word(domain(), &words->mod_offset, b.offset);
    persist::fence(domain());
    pool_->blocks.durable().publish(
        b, [&](const void* word) { persist::flush(domain(), word, word_bytes); });
    persist::fence(domain());
    super_ = super;
    space_.set_superblock(super);
    return {};
}

std::uint32_t store::impl::find_cell(std::string_view name,
                                     std::uint32_t family_plus_1) const noexcept {
    for (std::uint32_t i = 0; i < super_->cell_count; ++i)
        if (cells()[i].family == family_plus_1 && name == cells()[i].name) return i;
    return no_cell;
}

/// Appends the cells of 'at': a root's, or a family's and its members'. (1) of format.hpp.
status store::impl::create_cells(const place& at, const kind& what, std::uint64_t shape) {
    const std::uint64_t first = super_->cell_count;
    const std::uint64_t wanted = at.family.empty() ? 1 : 1 + at.members.size();
    if (first + wanted > cells_max(*pool_->file))
        return {errc::limit_reached,
                fmt::format("{}: limit_reached: {} roots there, {} wanted, at most {}",
                            pool_->file->path(), first, wanted, cells_max(*pool_->file))};
    roots_.resize(first + wanted);
    cell* made = cells() + first;
    std::memset(static_cast<void*>(made), 0, wanted * sizeof(cell));
    const auto name = [](cell& c, std::string_view given) {
        std::copy(given.begin(), given.end(), c.name);
    };
    if (at.family.empty()) {
        made->kind = what.id;
        made->shape = shape;
        name(*made, at.name);
    } else {
        made->kind = builtin_kind::family;
        made->members = static_cast<std::uint32_t>(at.members.size());
        name(*made, at.family);
        for (std::uint32_t m = 0; m < made->members; ++m) {
            made[1 + m].family = static_cast<std::uint32_t>(first + 1);
            made[1 + m].member = m;
            name(made[1 + m], at.members[m]);
        }
    }
    persist::flush(domain(), made, wanted * sizeof(cell));
    persist::fence(domain());
    persist::store_word(domain(), &super_->cell_count, first + wanted);
    persist::fence(domain());
    return {};
}

/// A member's cell gets its kind when it is first opened; the shape is durable before that.
status store::impl::bind(cell& c, const kind& what, std::uint64_t shape) {
    persist::store_word(domain(), &c.shape, shape);
    persist::fence(domain());
    c.kind = what.id;
    persist::persist(domain(), &c.kind, sizeof c.kind);
    return {};
}

root::volatile_part& store::impl::part_of(std::uint32_t index) {
    if (roots_[index] == nullptr) roots_[index] = std::make_unique<root::volatile_part>();
    else return *roots_[index];
    root::volatile_part* const part = roots_[index].get();
    part->index = index;
    part->durable = &cells()[index];
    part->word = part->durable->word;
    if (part->durable->family != 0) {
        part->family = &part_of(part->durable->family - 1);
        part->member = part->durable->member;
        const auto* words = words_of(*part->family->durable, part->family->durable->word);
        part->word = words == nullptr ? 0 : words[part->member];
    }
    if (part->family == nullptr) {
        owners_[owner_count_] = part;
        owner_count_.fetch_add(1, std::memory_order_release);
    }
    // A commit to one member is not to meet another one that is looked at later.
    for (std::uint32_t m = 0; m < part->durable->members; ++m) part_of(index + 1 + m);
    return *part;
}

/// The words of a family's members; null when there are none, or its own names no such node.
const std::uint64_t* store::impl::words_of(const cell& family, std::uint64_t word) const noexcept {
    if (word == 0 || word > ref_max) return nullptr;
    const auto parent = static_cast<ref>(word);
    const bool there = space_.bytes_of(parent) >= family.members * word_bytes;
    return there ? node_at<const std::uint64_t>(parent) : nullptr;
}

namespace {

/// Whether all that is visited are nodes.
class nodes_there final : public visitor {
public:
    explicit nodes_there(node_space& in) : in_(&in) {}
    void node(ref at, std::size_t bytes, std::uint32_t context) override {
        at &= ref_max;
        if (in_->bytes_of(at) < bytes) all_ = false;
        else last_ = {at, context};
    }
    bool all() const noexcept { return all_; }
    std::pair<ref, std::uint32_t> last() const noexcept { return last_; }

private:
    node_space* in_;
    bool all_ = true;
    std::pair<ref, std::uint32_t> last_{};
};

} // namespace

/// What can be said of a root's word at once: that it names a node, which names nodes, and no more
/// elements than the pool has bytes. Shared parts of a vector count as often as they occur.
status store::impl::check_word(const root::volatile_part& part) const {
    const cell& c = *part.durable;
    const auto damaged = [&](std::string_view which, std::uint64_t word) {
        return corrupt(*pool_->file, fmt::format("root \"{}\": {} {:#x} names nothing that can be",
                                                 c.name, which, word));
    };
    if (part.family != nullptr) {
        const std::uint64_t family = part.family->word.load(std::memory_order_relaxed);
        if (family != 0 && words_of(*part.family->durable, family) == nullptr)
            return damaged("its family's word", family);
    }
    const std::uint64_t word = part.word.load(std::memory_order_relaxed), count = word >> 32;
    if (word == 0 || c.kind >= builtin_kind::users) return {};
    const bool repeats = c.kind == builtin_kind::vector && super_->shares != 0;
    if (count > pool_->file->size_bytes() && !repeats) return damaged("its word", word);
    const kind& what = *find_kind(c.kind);
    nodes_there found(space_);
    what.top(found, base(), word, c.shape);
    const auto [top, context] = found.last();
    if (found.all())
        what.children(found, node_at<std::byte>(top), space_.bytes_of(top), context, c.shape);
    return found.all() ? status() : damaged("its word", word);
}

root* store::impl::face_of(root::volatile_part& part, const kind& what) {
    if (part.face != nullptr) return part.face.get();
    part.what = &what;
    part.face.reset(new root(*face_, &part));
    part.face->shape_ = part.durable->shape;
    return part.face.get();
}

result<root*> store::impl::open(const place& at, const kind& what, std::uint64_t shape) try {
    const auto bad = [&](const std::string& why) {
        return status{errc::bad_argument,
                      fmt::format("{}: bad_argument: {}", pool_->file->path(), why)};
    };
    const auto named = [](std::string_view name) {
        return !name.empty() && name.size() <= name_bytes_max &&
               name.find('\0') == std::string_view::npos;
    };
    if (status here = pool_->usable(); !here.ok()) return here;
    for (std::string_view name : at.members)
        if (!named(name)) return bad("a member's name has 1 to 63 bytes");
    if (!named(at.name) || (!at.family.empty() && !named(at.family)))
        return bad(fmt::format("a root's name has 1 to 63 bytes, found \"{}\"", at.name));
    if (at.members.size() > family_members_max) return bad("a family has at most 64 members");
    std::scoped_lock held{roots_lock_};
    if (super_ == nullptr)
        if (status s = make_superblock(); !s.ok()) return s;
    const std::string_view top = at.family.empty() ? at.name : at.family;
    std::uint32_t index = find_cell(top, 0);
    if (index == no_cell) {
        if (!at.family.empty() && std::ranges::find(at.members, at.name) == at.members.end())
            return bad(fmt::format("\"{}\" is no member of \"{}\"", at.name, at.family));
        if (status s = create_cells(at, what, shape); !s.ok()) return s;
        index = find_cell(top, 0);
    }
    const auto differs = [&](const cell& c, const std::string& expected) {
        const kind* is = find_kind(c.kind);
        return status{errc::wrong_layout,
                      fmt::format("{}: wrong_layout: \"{}\": expected {}, found {} of shape {:#x}",
                                  pool_->file->path(), at.name, expected,
                                  c.kind == builtin_kind::family ? "family"
                                  : is != nullptr                ? is->name
                                                                 : "a kind unknown to this program",
                                  c.shape)};
    };
    if (!at.family.empty()) {
        if (cells()[index].kind != builtin_kind::family) return differs(cells()[index], "a family");
        const std::uint32_t member = find_cell(at.name, index + 1);
        if (member == no_cell)
            return bad(fmt::format("\"{}\" is no member of \"{}\"", at.name, at.family));
        index = member;
        if (cells()[index].kind == 0 && part_of(index).load() != 0)
            return corrupt(*pool_->file, fmt::format("\"{}\" has a version and no kind", at.name));
        if (cells()[index].kind == 0)
            if (status s = bind(cells()[index], what, shape); !s.ok()) return s;
    }
    const cell& c = cells()[index];
    if (c.kind != what.id || c.shape != shape)
        return differs(c, fmt::format("{} of shape {:#x}", what.name, shape));
    root::volatile_part& part = part_of(index);
    if (part.face == nullptr)
        if (status s = check_word(part); !s.ok()) return s;
    return face_of(part, what);
} catch (const std::bad_alloc&) {
    return out_of_memory(pool_->file->path());
}

status store::impl::wait_for_trace() {
    if (status here = pool_->usable(); !here.ok()) return here; // its thread stayed behind
    std::unique_lock held{trace_lock_};
    traced_.wait(held, [&] { return trace_done_.load(); });
    return trace_outcome_;
}

std::unique_ptr<node_cache> store::impl::lease_cache() {
    std::scoped_lock held{states_lock_};
    if (caches_.empty()) return std::make_unique<node_cache>();
    auto cache = std::move(caches_.back());
    caches_.pop_back();
    return cache;
}

std::unique_ptr<node_cache> store::impl::lease_cache_if_possible() noexcept try {
    return lease_cache();
} catch (const std::bad_alloc&) {
    return nullptr;
}

void store::impl::return_cache(std::unique_ptr<node_cache> used) noexcept {
    std::scoped_lock held{states_lock_};
    try {
        caches_.push_back(std::move(used));
    } catch (const std::bad_alloc&) { // not moved from
        space_.give_all(*used);
    }
}

status store::impl::collect() {
    const entered in(*this);
    if (!in) return refusal();
    status s = wait_for_trace();
    // Not under this lock: a writer may open a root while another waits for it.
    std::vector<root::volatile_part*> parts;
    {
        std::scoped_lock held{roots_lock_};
        for (auto& part : roots_)
            if (part != nullptr) parts.push_back(part.get());
    }
    for (root::volatile_part* part : parts) {
        std::scoped_lock writing{part->lock};
        store_again(*part);
        const others around = before_reclaim(part);
        persist::fence(domain());
        reclaim(*part, part->cache, after_fence(part, around));
        space_.give_all(part->cache);
    }
    {
        std::scoped_lock caches{states_lock_};
        for (auto& cache : caches_) space_.give_all(*cache);
    }
    space_.trim();
    if (s.ok() && uncounted_)
        s = {errc::io_error, pool_->file->path() + ": io_error: out of memory earlier: what was "
                                                   "given up since is reclaimed by the next open"};
    return s.ok() && space_.damaged() ? damaged() : s;
}

store_account store::impl::account() {
    store_account sum{};
    if (!pool_->usable().ok()) return sum;
    (void)space_.load_all();
    space_.count(sum.nodes, sum.node_bytes);
    const auto without = [&](const node_cache& cache) {
        for (unsigned c = 0; c < class_count; ++c) {
            sum.nodes -= cache.free[c].size();
            sum.node_bytes -= cache.free[c].size() * class_bytes(c);
        }
    };
    std::scoped_lock held{roots_lock_, states_lock_, sharing_lock_};
    for (auto& part : roots_) {
        if (part == nullptr) continue;
        without(part->cache);
        sum.retired += part->retired.size();
    }
    for (auto& cache : caches_) without(*cache);
    sum.arena_bytes = space_.arena_bytes();
    sum.shared_nodes = sharing_.size();
    return sum;
}

// The public faces.

store::store(pool::impl& in) : impl_(std::make_unique<impl>(in, *this)) {}
store::~store() = default;
result<root*> store::open(const place& at, const kind& what, std::uint64_t shape) {
    return impl_->open(at, what, shape);
}
status store::commit(std::span<const new_version> updates) {
    return impl_->commit_versions(updates);
}
void store::settle() noexcept { persist::fence(impl_->domain()); }
status store::wait_for_trace() { return impl_->wait_for_trace(); }
status store::collect() { return impl_->collect(); }
store_account store::account() { return impl_->account(); }
status store::verify() {
    const impl::entered in(*impl_);
    return in ? impl_->verify() : impl_->refusal();
}
void store::for_each_block(void (*visit)(void*, const void*), void* context) const {
    if (impl_->super() == nullptr || !impl_->of().usable().ok()) return;
    visit(context, impl_->super());
    impl_->space().for_each_durable(
        [&](std::uint64_t offset) { visit(context, impl_->of().at(offset)); });
}

namespace {

/// What the pool keeps for the engine while it is open.
struct mod_state final : engine_state {
    explicit mod_state(pool::impl& in) : face(in) {}
    store face;
    void settle() noexcept override { face.internals().settle_for_close(); }
};

class mod_engine final : public hf::engine {
public:
    engine_bit bit() const noexcept override { return engine_mod; }
    const char* name() const noexcept override { return "mod"; }
    status check(const pool::impl& pool, const pending_section& section) const override {
        return {errc::corrupt, fmt::format("{}: corrupt: lane {} holds a section of engine mod, "
                                           "which has none",
                                           pool.file->path(), section.lane)};
    }
    void recover(pool::impl&, pending_section&, recovery&) const override {}
    status inspect(const pool::impl& in) const override { return store::impl::inspect(in); }
    status settle(pool::impl& in) const override { return store::impl::settle_taking(in); }
    result<std::unique_ptr<engine_state>> attach(pool::impl& in) const override {
        auto made = std::make_unique<mod_state>(in);
        if (status s = made->face.internals().start(); !s.ok()) return s;
        return std::unique_ptr<engine_state>(std::move(made));
    }
};

} // namespace

const hf::engine* engine() noexcept {
    static const mod_engine only;
    return &only;
}

store& store::of(const pool& in) {
    if (status here = in.internals().usable(); !here.ok()) fatal("%s", here.what().c_str());
    engine_state* state = in.internals().state_of(engine());
    if (state == nullptr)
        fatal("%s: mod::store::of: the pool was opened without mod::engine()", in.path().c_str());
    return static_cast<mod_state*>(state)->face;
}

} // namespace hf::mod
