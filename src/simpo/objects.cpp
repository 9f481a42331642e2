// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <open/registry.hpp>
#include <pool/file_checks.hpp>
#include <simpo/objects.hpp>
#include <simpo/server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <sched.h>

namespace hf::simpo {

status corrupt(const pool_file& file, const std::string& what) {
    return refusal(file.path(), errc::corrupt, "SIMPO: " + what);
}

superblock* superblock_of(const pool_file& file) {
    const std::uint64_t at = file.roots()->anchor(engine_simpo);
    return at == 0 ? nullptr : reinterpret_cast<superblock*>(file.base() + at);
}

std::span<std::uint64_t> object_words(superblock& super) {
    return {reinterpret_cast<std::uint64_t*>(&super + 1), super.objects_max};
}

namespace {

/// Requires: there is one.
status check_superblock(const pool::impl& in) {
    const std::uint64_t at = in.file->roots()->anchor(engine_simpo),
                        chunk = in.file->shape().chunk_bytes;
    if (!in.blocks.durable().well_formed({at, chunk}))
        return corrupt(
            *in.file,
            fmt::format("the superblock: expected a chunk of the heap, found offset {:#x}", at));
    superblock& super = *superblock_of(*in.file);
    if (super.magic != superblock_magic || super.objects_max != objects_max_for(chunk))
        return corrupt(*in.file,
                       fmt::format("the superblock: expected magic {:#x}, {} objects, found "
                                   "{:#x}, {}",
                                   superblock_magic, objects_max_for(chunk), super.magic,
                                   super.objects_max));
    return {};
}

} // namespace

status inspect(const pool::impl& in) {
    const std::uint64_t at = in.file->roots()->anchor(engine_simpo),
                        chunk = in.file->shape().chunk_bytes;
    if (at == 0) return {};
    if (status s = check_superblock(in); !s.ok()) return s;
    superblock& super = *superblock_of(*in.file);
    std::vector<block> blocks{{at, chunk}};
    for (const std::uint64_t offset : object_words(super)) {
        if (offset == 0) continue;
        if (status s = check_head(in, offset); !s.ok()) return s;
        blocks.push_back(block_of(in, offset));
    }
    std::ranges::sort(blocks, {}, &block::offset);
    for (std::size_t i = 1; i < blocks.size(); ++i)
        if (blocks[i].offset - blocks[i - 1].offset < blocks[i - 1].bytes)
            return corrupt(
                *in.file,
                fmt::format("the object at offset {:#x}: expected bytes of its own, found them in "
                            "another object",
                            blocks[i].offset));
    for (const std::uint64_t offset :
         object_words(super)) // each once, now that none is inside another
        if (offset != 0)
            if (status s = check_copy(in, offset); !s.ok()) return s;
    for (const std::uint64_t offset : object_words(super)) {
        if (offset == 0) continue;
        if (!in.file->was_clean())
            if (status s = check_log(in, offset); !s.ok()) return s;
        if (!in.salvage) // which gives up a history, and not the object
            if (status s = check_history(in, offset); !s.ok()) return s;
    }
    return {};
}

void give_up_unsound(pool::impl& in) {
    if (in.file->roots()->anchor(engine_simpo) == 0 || !check_superblock(in).ok()) return;
    superblock* const super = superblock_of(*in.file);
    const hf::medium pm = in.file->medium();
    std::vector<block> kept{{in.file->roots()->anchor(engine_simpo), in.file->shape().chunk_bytes}};
    for (std::uint64_t& word : object_words(*super)) {
        if (word == 0) continue;
        status s = check_head(in, word);
        const block its = s.ok() ? block_of(in, word) : block{};
        const auto meets = [&](block b) {
            return b.offset < its.offset + its.bytes && its.offset < b.offset + b.bytes;
        };
        if (s.ok() && std::ranges::any_of(kept, meets))
            s = corrupt(
                *in.file,
                fmt::format("the object at offset {:#x}: expected bytes of its own, found them in "
                            "another object",
                            word));
        if (s.ok()) s = check_copy(in, word);
        if (s.ok() && !in.file->was_clean()) s = check_log(in, word);
        if (s.ok()) {
            kept.push_back(its);
            continue;
        }
        in.file->warn(
            fmt::format("{}: salvaged: an object is given up: {}", in.file->path(), s.what()));
        pm.store_word(&word, 0);
        pm.fence();
    }
}

objects::objects(pool::impl& in) noexcept : pool_(&in) {}
objects::~objects() = default;

status objects::recover(engine_recovery& done) {
    superblock* const super = superblock_of(*pool_->file);
    if (super == nullptr) return {};
    for (const std::uint64_t offset : object_words(*super)) {
        if (offset == 0) continue;
        auto& head = *static_cast<object_head*>(pool_->at(offset));
        all_.push_back(std::make_unique<detail::core>(*pool_, *this, head));
        if (is_swapped(head)) continue;
        if (status s = all_.back()->recover(done); !s.ok()) return s;
    }
    return {};
}

void objects::settle() noexcept {
    if (!pool_->usable().ok()) return;
    for (std::size_t i = 0;;) {       // objects keep their places, and others come behind them
        std::unique_lock held{lock_}; // or another thread may destroy it meanwhile
        if (i == all_.size()) return;
        if (all_[i]->settle()) {
            ++i;
            continue;
        }
        held.unlock(); // a call in progress may need it
        ::sched_yield();
    }
}

void objects::settle_for_close() noexcept {
    if (!pool_->usable().ok()) return;
    for (const auto& each : all_) each->settle_for_close();
}

void objects::end_own_work(bool /*stop*/) noexcept {
    const std::scoped_lock held{serving_};
    server_.reset();
}

status objects::serve(const serve_options& how) {
    if (status s = usable(true); !s.ok()) return s;
    const std::scoped_lock held{serving_};
    if (server_ != nullptr)
        return refusal(pool_->file->path(), errc::exists, "this process serves the pool already");
    auto started = server::start(*this, *pool_->file, how);
    if (!started) return started.error();
    server_ = std::move(*started);
    return {};
}

status objects::stop_serving() {
    if (status s = usable(true); !s.ok()) return s;
    const std::scoped_lock held{serving_};
    if (server_ == nullptr)
        return refusal(pool_->file->path(), errc::not_found,
                       "this process does not serve the pool");
    server_.reset();
    return {};
}

status objects::usable(bool writing) const {
    if (status here = pool_->usable(); !here.ok()) return here;
    if (writing && pool_->file->read_only())
        return refusal(pool_->file->path(), errc::permission, "the pool is open read-only");
    if (writing && any_section_here())
        return refusal(
            pool_->file->path(), errc::bad_argument,
            "found persistent objects made or destroyed inside a section, whose log would not "
            "have that; expected it before the section or after it");
    if (pool_->file->reads_beside())
        return refusal(
            pool_->file->path(), errc::permission,
            "the pool was opened with read_only and shared, so another process may change its "
            "persistent objects: look at them with hf::simpo::view");
    return {};
}

status objects::no_object(std::string_view name) const {
    return refusal(pool_->file->path(), errc::not_found,
                   fmt::format("there is no persistent object \"{}\"", name));
}

/// The refusal of an object that another thread destroyed while this one was about to use it.
status objects::is_destroyed() const {
    return refusal(pool_->file->path(), errc::not_found,
                   "the persistent object was destroyed by another thread meanwhile");
}

std::vector<std::unique_ptr<detail::core>>::iterator objects::place_of(std::string_view name) {
    return std::ranges::find_if(
        all_, [&](const auto& each) { return !each->destroyed() && each->name() == name; });
}

/// A block of its own; offset 0: the pool is full.
block objects::take_block(std::uint64_t bytes, purpose what) {
    thread_cache none;
    const std::uint64_t taken = rounded_to_lines(pool_->blocks.durable(), bytes);
    if (taken == 0) return {0, 0}; // no pool is as large
    const block b = pool_->blocks.reserve(none, taken, what);
    pool_->blocks.release_all(none); // what came with it
    return b;
}

/// A block that was reserved, which fill() completes, named by 'word': (1).
template <class Fill, class Before>
void* objects::make_block(block made, std::uint64_t& word, Fill&& fill, Before&& before_named) {
    const hf::medium pm = pool_->file->medium();
    void* const at = pool_->at(made.offset);
    fill(at, made.bytes);
    pm.order();
    before_named();
    pm.store_word(&word, made.offset);
    pm.order(); // upholds (1)
    pool_->blocks.durable().publish(made, [&](const void* bits) { pm.flush(bits, word_bytes); });
    pm.fence();
    return at;
}

/// The word that will name the next object.
result<std::uint64_t*> objects::free_word() {
    const std::string& path = pool_->file->path();
    const hf::medium pm = pool_->file->medium();
    const std::uint64_t chunk = pool_->file->shape().chunk_bytes;
    superblock* super = superblock_of(*pool_->file);
    if (super == nullptr) {
        const block b = take_block(chunk);
        if (b.offset == 0) return pool_->blocks.full("SIMPO's superblock");
        const auto fill = [&](void* at, std::uint64_t bytes) {
            std::memset(at, 0, bytes);
            ::new (at) superblock{superblock_magic, objects_max_for(chunk), {}};
            pm.flush(at, bytes);
        };
        super = static_cast<superblock*>(
            make_block(b, pool_->file->roots()->anchor(engine_simpo), fill, [] {}));
    }
    const auto words = object_words(*super);
    const auto word = std::ranges::find(words, std::uint64_t{0});
    if (word == words.end())
        return refusal(
            path, errc::limit_reached,
            fmt::format("expected at most {} persistent objects, found one more: destroy another",
                        words.size()));
    return &*word;
}

/// A number that no earlier object in this block can have had, nor one of another pool: the pool's
/// generation grows with each open.
std::uint64_t objects::new_salt() noexcept {
    std::uint64_t parts[4] = {pool_->file->generation(), ++made_};
    const auto uuid = pool_->file->uuid();
    static_assert(uuid.size_bytes() == sizeof parts / 2);
    std::memcpy(parts + 2, uuid.data(), uuid.size_bytes());
    return checksum(parts, sizeof parts, object_magic);
}

namespace {

status bad(const pool_file& file, const std::string& why) {
    return refusal(file.path(), errc::bad_argument, why);
}
bool is_text(std::string_view text) {
    return !text.empty() && text.size() <= text_bytes_max && text.find('\0') == text.npos;
}

} // namespace

status check_shape(const pool_file& file, const object_head& h, const detail::class_shape& what) {
    if (what.text == std::string_view(h.class_text) && what.version == h.class_version &&
        what.bytes == h.object_bytes)
        return {};
    return refusal(
        file.path(), errc::wrong_layout,
        fmt::format("object \"{}\": expected class {} of version {}, {} bytes; found {} of "
                    "version {}, {} bytes",
                    h.name, what.text, what.version, what.bytes, h.class_text, h.class_version,
                    h.object_bytes));
}

/// The head of a new object. Errors: bad_argument, pool_full.
result<object_head> objects::head_of(std::string_view name, const detail::class_shape& what,
                                     const object_options& how) {
    const pool_file& file = *pool_->file;
    for (const auto& [whose, text] :
         {std::pair{"an object's", name}, {"a persistent class's", what.text}})
        if (!is_text(text))
            return bad(file,
                       fmt::format("{} name: expected 1 to {} bytes, none of them 0, found {}{}",
                                   whose, text_bytes_max, text.size(),
                                   text.find('\0') == text.npos ? "" : " with a 0"));
    if (how.log_bytes < log_bytes_min || how.log_bytes > log_bytes_max)
        return bad(file, fmt::format("object_options::log_bytes: expected {} to {}, found {}",
                                     log_bytes_min, log_bytes_max, how.log_bytes));
    if (what.bytes > object_bytes_max)
        return pool_->blocks.full(fmt::format("an object of {} bytes (at most {} are possible)",
                                              what.bytes, object_bytes_max));
    caller_shape callers; // without callers there are no results
    if (how.callers != 0)
        callers = {how.callers, how.results, (how.result_bytes + 7) / std::uint32_t{word_bytes}};
    if (how.result_bytes > result_words_max * word_bytes || !callers.valid())
        return bad(
            file,
            fmt::format(
                "object_options: expected at most {3} callers, 1 to {4} results of at most {5} "
                "bytes each, and {6:#x} bytes in all; found {0} callers with {1} results of {2} "
                "bytes",
                how.callers, how.results, how.result_bytes, callers_max, results_max,
                result_words_max * word_bytes, object_bytes_max));
    object_head head{};
    head.magic = object_magic;
    head.salt = new_salt();
    head.object_bytes = what.bytes;
    head.log_lines = std::bit_ceil(how.log_bytes) / line_bytes;
    head.class_version = what.version;
    head.callers = callers.callers;
    head.results = callers.results;
    head.result_words = callers.result_words;
    std::memcpy(head.class_text, what.text, std::strlen(what.text));
    name.copy(head.name, name.size());
    head.check = head_check(head);
    head.resilient = index_of(head.salt, 0, 0);
    return head;
}

/// Puts an object, or, if 'copy' is null, its remains, into a reserved block, which 'word' names
/// from now on. 'instead': the block that 'word' named before, which is free then; its owner gives
/// it back.
object_head& objects::put(const object_head& head, const void* copy, block at, std::uint64_t& word,
                          std::optional<block> instead) {
    const hf::medium pm = pool_->file->medium();
    const std::uint64_t copy_bytes = copy == nullptr ? 0 : layout_of(head).copy_bytes;
    const auto fill = [&](void* to, std::uint64_t) {
        std::memcpy(to, &head, sizeof head);
        if (copy != nullptr)
            std::memcpy(static_cast<std::byte*>(to) + layout_of(head).copy_offset(0), copy,
                        copy_bytes);
        pm.flush(to, sizeof head + copy_bytes);
    };
    const auto before_named = [&] {
        if (!instead) return;
        pool_->blocks.durable().clear_bit(*instead,
                                          [&](const void* bits) { pm.flush(bits, word_bytes); });
        pm.order(); // named and free is what an open cures, allocated and not named is a leak: (1)
    };
    return *static_cast<object_head*>(make_block(at, word, fill, before_named));
}

/// Moves an object that was made in volatile memory into a reserved block, which 'word' names from
/// now on.
detail::core* objects::place(std::unique_ptr<detail::core> made, object_head& head, block at,
                             std::uint64_t& word, std::optional<block> instead) {
    head.copy_checks[0] = copy_check(head, made->working(), layout_of(head).copy_bytes);
    try {
        all_.emplace_back(); // what can fail comes first
    } catch (const std::bad_alloc&) {
        free_block(at);
        throw;
    }
    made->begin(put(head, made->working(), at, word, instead));
    all_.back() = std::move(made);
    return all_.back().get();
}

/// Its block in the pool.
block objects::block_of(const detail::core& which) {
    const block b = pool_->blocks.find(pool_->offset_of(&which.head()));
    HF_ASSERT(b.bytes != 0);
    return b;
}

result<detail::core*> objects::create(std::string_view name, const detail::class_shape& what,
                                      const object_options& how, detail::body construct,
                                      void* context) {
    if (status s = usable(true); !s.ok()) return s;
    std::unique_lock held{lock_};
    result<object_head> head = head_of(name, what, how);
    if (!head) return head.error();
    const auto word_for_it = [&]() -> result<std::uint64_t*> {
        if (place_of(name) != all_.end())
            return refusal(
                pool_->file->path(), errc::exists,
                fmt::format(
                    "there is a persistent object \"{}\" already: find it, or choose another name",
                    name));
        return free_word();
    };
    if (auto word = word_for_it(); !word) return word.error();
    held.unlock(); // the user's code may look for other objects: (2)
    auto made = std::make_unique<detail::core>(*pool_, *this, *head); // the head moves, too
    construct(made->working(), context);
    const result<block> at = reserve(layout_of(*head).block_bytes, room_for::made, held);
    if (!at) return at.error();
    const result<std::uint64_t*> word = word_for_it();
    if (!word) return free_block(*at), word.error();
    return place(std::move(made), *head, *at, **word, std::nullopt);
}

result<detail::core*> objects::remake(std::string_view name, const detail::class_shape& was,
                                      const detail::class_shape& what, const object_options& how,
                                      detail::make_from convert, void* context) {
    if (status s = usable(true); !s.ok()) return s;
    const result<detail::core*> found = find(name, was);
    if (!found) return found.error();
    detail::core& old = **found;
    std::unique_lock held{lock_};
    result<object_head> head = head_of(name, what, how);
    if (!head) return head.error();
    if (old.destroyed()) return no_object(name);
    const detail::core::pin stays(old); // before another one makes room with it
    held.unlock();                      // (2)
    if (status s = old.come_back(); !s.ok()) return s;
    old.checkpoint();
    auto made = std::make_unique<detail::core>(*pool_, *this, *head);
    convert(made->working(), old.working(), context);
    const result<block> at = reserve(layout_of(*head).block_bytes, room_for::made, held);
    if (!at) return at.error();
    if (old.destroyed()) return free_block(*at), no_object(name);
    const block b = block_of(old);
    const object_head was_there = old.head();
    detail::core* const placed = place(std::move(made), *head, *at, word_of(old), b);
    if (was_there.history != 0) pool_->file->medium().promise(), old.remove_history();
    old.end();
    free_block(b);
    remove_file(was_there);
    return placed;
}

result<detail::core*> objects::find(std::string_view name, const detail::class_shape& what) {
    if (status s = usable(false); !s.ok()) return s;
    std::unique_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    detail::core& found = **it;
    if (status s = check_shape(*pool_->file, found.head(), what); !s.ok()) return s;
    found.check_usable("find"); // from here on it may be destroyed
    held.unlock();
    if (status s = found.come_back(); !s.ok()) return s;
    return &found;
}

/// The word that names it.
std::uint64_t& objects::word_of(const detail::core& of) const {
    const auto words = object_words(*superblock_of(*pool_->file));
    const auto word = std::ranges::find(words, pool_->offset_of(&of.head()));
    HF_ASSERT(word != words.end());
    return *word;
}

/// Frees a block that no bit and no word names any more.
void objects::free_block(block b) noexcept {
    thread_cache none;
    pool_->blocks.release(none, b);
    pool_->blocks.release_all(none);
}

status objects::destroy(std::string_view name, const detail::class_shape* what) {
    if (status s = usable(true); !s.ok()) return s;
    std::scoped_lock held{lock_};
    const auto it = place_of(name);
    if (it == all_.end()) return no_object(name);
    detail::core& of = **it;
    if (what != nullptr)
        if (status s = check_shape(*pool_->file, of.head(), *what); !s.ok()) return s;
    const hf::medium pm = pool_->file->medium();
    const block b = block_of(of);
    std::uint64_t& word = word_of(of);
    const object_head was = of.head();
    of.end();
    pool_->blocks.durable().clear_bit(b, [&](const void* at) { pm.flush(at, word_bytes); });
    pm.order(); // named and free is what an open cures: (1)
    pm.store_word(&word, 0);
    pm.fence(); // before the block is anything else
    free_block(b);
    remove_file(was);
    if (was.history != 0) pm.promise(), of.remove_history();
    return {};
}

result<std::vector<object_info>> objects::list() {
    if (status s = usable(false); !s.ok()) return s;
    std::scoped_lock held{lock_};
    std::vector<object_info> out;
    for (const auto& each : all_) {
        if (each->destroyed()) continue;
        const object_head& h = each->head();
        out.push_back({h.name, h.class_text, h.class_version, h.object_bytes,
                       h.log_lines * line_bytes,
                       simpo::block_of(*pool_, pool_->offset_of(&h)).bytes, h.callers, h.results,
                       std::uint32_t(h.result_words * word_bytes), is_swapped(h)});
    }
    return out;
}

result<objects*> objects_of(const pool& in) {
    if (status here = in.internals().usable(); !here.ok()) return here;
    engine_state* const state = in.internals().state_of(engine_simpo);
    if (state == nullptr)
        return refusal(
            in.path(), errc::missing_engine,
            "expected engine simpo, found the pool opened without it: add hf::simpo::engine() to "
            "open_options::engines");
    return static_cast<objects*>(state);
}

result<std::vector<object_info>> list(const pool& in) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->list() : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

status serve(pool& in, const serve_options& how) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->serve(how) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

status stop_serving(pool& in) {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->stop_serving() : all.error();
}

status drop(pool& in, std::string_view name) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->destroy(name, nullptr) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

namespace detail {

result<core*> create(pool& in, std::string_view name, const class_shape& what,
                     const object_options& how, body construct, void* context) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->create(name, what, how, construct, context) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

result<core*> find(pool& in, std::string_view name, const class_shape& what) {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->find(name, what) : all.error();
}

status destroy(pool& in, std::string_view name, const class_shape& what) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->destroy(name, &what) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

result<core*> remake(pool& in, std::string_view name, const class_shape& was,
                     const class_shape& what, const object_options& how, make_from convert,
                     void* context) try {
    const result<objects*> all = objects_of(in);
    return all ? (*all)->remake(name, was, what, how, convert, context) : all.error();
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

} // namespace detail
} // namespace hf::simpo
