// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD's part of an open pool: roots by name, their memory, and the engine.
#include <base/assert.hpp>
#include <mod/contents.hpp>
#include <mod/store_impl.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::mod {
store::impl::impl(pool::impl& in, store& face)
    : pool_(&in), face_(&face), super_(const_cast<superblock*>(superblock_of(*in.file))),
      reads_(in.file->reads_beside()),
      words_(reads_ || in.file->lets_read() ? in.file->words_for_readers() : nullptr),
      owners_(cells_max(*in.file)), space_(in, super_) {}

store::impl::~impl() {
    stop();
    for (auto& part : roots_)
        if (part != nullptr && part->seen != nullptr) {
            unpin(*part->seen);
            recycle(part->seen);
        }
    if (live_states_ != 0)
        fatal("a pool was closed while %zu versions of its structures lived", live_states_.load());
}

/// As pool::root_bytes: named before it is allocated; the next open cures a crash in between.
status store::impl::make_superblock() {
    root_words* words = pool_->file->roots();
    HF_ASSERT(super_ == nullptr && words->anchor(engine_mod) == 0);
    thread_cache none;
    const block b = pool_->blocks.reserve(none, pool_->file->shape().chunk_bytes);
    if (b.offset == 0) return pool_->blocks.full("MOD's superblock");
    auto* super = static_cast<superblock*>(pool_->at(b.offset));
    std::memset(super, 0, b.bytes);
    super->magic = superblock_magic;
    medium().flush(super, b.bytes);
    medium().fence();
    medium().store_word(&words->anchor(engine_mod), b.offset);
    medium().fence();
    pool_->blocks.durable().publish(b, [&](const void* word) { medium().flush(word, word_bytes); });
    medium().fence();
    super_ = super;
    space_.set_superblock(super);
    return {};
}

std::uint32_t store::impl::find_cell(std::string_view name, std::uint32_t family_plus_1,
                                     std::uint64_t count) const noexcept {
    for (std::uint32_t i = 0; i < count; ++i)
        if (cells()[i].family == family_plus_1 &&
            name == std::string_view(cells()[i].name, ::strnlen(cells()[i].name, name_bytes_max)))
            return i;
    return no_cell;
}

/// Appends the cells of 'at': a root's, or a family's and its members'. (1) of format.hpp.
status store::impl::create_cells(const place& at, const kind& what, std::uint64_t shape) {
    HF_ASSERT(super_ != nullptr && at.members.size() <= family_members_max);
    const std::uint64_t first = super_->cell_count;
    const std::uint64_t wanted = at.family.empty() ? 1 : 1 + at.members.size();
    if (first + wanted > cells_max(*pool_->file))
        return {
            errc::limit_reached,
            fmt::format("{}: limit_reached: found {} roots and {} more wanted, expected at most {}",
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
    medium().flush(made, wanted * sizeof(cell));
    medium().fence();
    medium().store_word(&super_->cell_count, first + wanted);
    medium().fence();
    return {};
}

/// A member's cell gets its kind when it is first opened; the shape is durable before that.
status store::impl::bind(cell& c, const kind& what, std::uint64_t shape) {
    HF_ASSERT(c.kind == 0 && c.family != 0 && what.id != 0);
    medium().store_word(&c.shape, shape);
    medium().fence();
    c.kind = what.id;
    medium().persist(&c.kind, sizeof c.kind);
    return {};
}

root::volatile_part& store::impl::part_of(std::uint32_t index) {
    HF_ASSERT(index < roots_.size());
    if (roots_[index] == nullptr) roots_[index] = std::make_unique<root::volatile_part>();
    else return *roots_[index];
    root::volatile_part* const part = roots_[index].get();
    part->index = index;
    part->durable = &cells()[index];
    part->word = reads_ ? 0 : part->durable->word;
    part->unseen = reads_;
    std::memcpy(part->line.data(), part->durable, line_bytes);
    if (part->durable->family != 0) {
        part->family = &part_of(part->durable->family - 1);
        part->member = part->durable->member;
        const auto* words =
            reads_ ? nullptr : words_of(*part->family->durable, part->family->durable->word);
        part->word = words == nullptr ? 0 : words[part->member];
    }
    if (part->family == nullptr) {
        HF_ASSERT(owner_count_ < owners_.size());
        owners_[owner_count_] = part;
        owner_count_.fetch_add(1, std::memory_order_release);
    }
    // A commit to one member is not to meet another one that is looked at later.
    for (std::uint32_t m = 0; m < part->durable->members; ++m) part_of(index + 1 + m);
    return *part;
}

/// The words of a family's members; null if it has none, or if its own word names no such node.
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

/// Checks what a root's word alone shows: it names a node, that node names nodes, and the elements
/// are no more than the pool has bytes. Shared parts of a vector count as often as they occur.
status store::impl::check_word(const root::volatile_part& part) const {
    const cell& c = *part.durable;
    const auto damaged = [&](std::string_view which, std::uint64_t word) {
        return corrupt(
            *pool_->file,
            fmt::format("root \"{}\": {}: expected one that names a version, found {:#x}", c.name,
                        which, word));
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
    HF_ASSERT(part.durable->kind == what.id);
    part.what = &what;
    part.face.reset(new root(*face_, &part));
    part.face->shape_ = part.durable->shape;
    return part.face.get();
}

status store::impl::differs(const place& at, const cell& c, const std::string& expected) const {
    const kind* is = find_kind(c.kind);
    const std::string_view name = c.kind == builtin_kind::family ? "family"
                                  : is != nullptr                ? is->name
                                                                 : "a kind unknown to this program";
    return status{errc::wrong_layout, fmt::format("{}: wrong_layout: \"{}\": expected {}, found {}",
                                                  pool_->file->path(), at.name, expected,
                                                  shape_text(name, c.kind, c.shape))};
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
    if (any_section_here()) return refusal();
    for (std::string_view name : at.members)
        if (!named(name))
            return bad(fmt::format(
                "a member's name: expected 1 to 63 bytes without a zero, found \"{}\"", name));
    if (!named(at.name) || (!at.family.empty() && !named(at.family)))
        return bad(fmt::format("a root's name: expected 1 to 63 bytes without a zero, found \"{}\"",
                               at.name));
    if (at.members.size() > family_members_max)
        return bad(fmt::format("a family: expected at most {} members, found {}",
                               family_members_max, at.members.size()));
    if (reads_) return open_beside(at, what, shape);
    std::scoped_lock held{roots_lock_};
    if (super_ == nullptr)
        if (status s = make_superblock(); !s.ok()) return s;
    const std::string_view top = at.family.empty() ? at.name : at.family;
    std::uint32_t index = find_cell(top, 0, super_->cell_count);
    if (index == no_cell) {
        if (!at.family.empty() && std::ranges::find(at.members, at.name) == at.members.end())
            return bad(
                fmt::format("found \"{}\", expected a member of \"{}\"", at.name, at.family));
        if (status s = create_cells(at, what, shape); !s.ok()) return s;
        index = find_cell(top, 0, super_->cell_count);
    }
    if (!at.family.empty()) {
        if (cells()[index].kind != builtin_kind::family)
            return differs(at, cells()[index], "a family");
        const std::uint32_t member = find_cell(at.name, index + 1, super_->cell_count);
        if (member == no_cell)
            return bad(
                fmt::format("found \"{}\", expected a member of \"{}\"", at.name, at.family));
        index = member;
        if (cells()[index].kind == 0 && part_of(index).load() != 0)
            return corrupt(
                *pool_->file,
                fmt::format("\"{}\": expected a kind beside its version, found none", at.name));
        if (cells()[index].kind == 0)
            if (status s = bind(cells()[index], what, shape); !s.ok()) return s;
    }
    const cell& c = cells()[index];
    if (c.kind != what.id || c.shape != shape)
        return differs(at, c, shape_text(what.name, what.id, shape));
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
    traced_.wait(held, [&] { return trace_done_.load() || held_back_; });
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
    HF_ASSERT(used != nullptr);
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
    // Outside this lock: a writer may open a root while another waits for it.
    std::vector<root::volatile_part*> parts;
    {
        std::scoped_lock held{roots_lock_};
        for (auto& part : roots_)
            if (part != nullptr) parts.push_back(part.get());
    }
    ask_readers();
    for (root::volatile_part* part : parts) {
        std::scoped_lock writing{part->lock};
        store_again(*part);
        const others around = before_reclaim(part);
        medium().fence();
        reclaim(*part, part->cache, after_fence(part, around));
        space_.give_all(part->cache);
    }
    {
        std::scoped_lock caches{states_lock_};
        for (auto& cache : caches_) space_.give_all(*cache);
    }
    space_.trim();
    if (s.ok() && uncounted_)
        s = {errc::io_error, pool_->file->path() + ": io_error: memory ran out earlier, so nodes "
                                                   "given up since stay in use: the next open "
                                                   "reclaims them"};
    return s.ok() && space_.damaged() ? damaged() : s;
}

store_account store::impl::account() {
    store_account sum{};
    if (!pool_->usable().ok() || reads_) return sum; // a writer's, which counts them meanwhile
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
void store::settle() noexcept { impl_->settle(); }
status store::wait_for_trace() { return impl_->wait_for_trace(); }
status store::collect() { return impl_->collect(); }
store_account store::account() { return impl_->account(); }
status store::verify() {
    const impl::entered in(*impl_);
    return in ? impl_->verify() : impl_->refusal();
}
void store::for_each_block(void (*visit)(void*, const void*), void* context) const {
    if (impl_->super() == nullptr || !impl_->its_pool().usable().ok()) return;
    visit(context, impl_->super());
    impl_->space().for_each_durable(
        [&](std::uint64_t offset) { visit(context, impl_->its_pool().at(offset)); });
}

namespace {

/// The engine's state in an open pool.
struct mod_state final : engine_state {
    explicit mod_state(pool::impl& in) : face(in) {}
    store face;
    void settle() noexcept override { face.internals().settle(); }
    void settle_for_close() noexcept override { face.internals().settle_for_close(); }
    status trim() override { return face.collect(); }
};

class mod_engine final : public hf::engine {
public:
    const engine_row& row() const noexcept override { return engine_rows::mod; }
    const char* read_beside() const noexcept override { return "MOD containers"; }
    status inspect(const pool::impl& in) const override { return store::impl::inspect(in); }
    void give_up_unsound(pool::impl& in) const override { store::impl::give_up_unsound(in); }
    status settle(pool::impl& in) const override { return store::impl::settle(in); }
    result<std::unique_ptr<engine_state>> attach(pool::impl& in) const override {
        auto made = std::make_unique<mod_state>(in);
        if (status s = made->face.internals().start(); !s.ok()) return s;
        return std::unique_ptr<engine_state>(std::move(made));
    }
};

} // namespace

engine_ptr engine() noexcept {
    static const mod_engine only;
    return lasting(only);
}

store& store::in(const pool& in) {
    if (status here = in.internals().usable(); !here.ok()) fatal("%s", here.what().c_str());
    engine_state* state = in.internals().state_of(engine_mod);
    if (state == nullptr)
        fatal("%s: mod::store::in: the pool was opened without mod::engine(): give "
              "open_options::engines hf::mod::engine() as well",
              in.path().c_str());
    return static_cast<mod_state*>(state)->face;
}

} // namespace hf::mod
