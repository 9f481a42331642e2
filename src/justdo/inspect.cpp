// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <justdo/inspect.hpp>
#include <justdo/room.hpp>
#include <pool/file_checks.hpp>

#include <holdfast/abi/relocate_abi.h>
#include <holdfast/lock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace hf::justdo {

superblock* superblock_of(const pool_file& file) noexcept {
    const std::uint64_t at = file.roots()->anchor(engine_justdo);
    return at == 0 ? nullptr : reinterpret_cast<superblock*>(file.base() + at);
}

std::span<std::uint64_t> thread_words(superblock& super) noexcept {
    return {reinterpret_cast<std::uint64_t*>(&super + 1), super.threads_max};
}

/// The blocks by which a thread's block has grown, as far as they are sound; and the fault of the
/// next one, if there is one. Each names its thread and its number in the chain, so a chain ends.
/// 'before': how many blocks were found in others. It is bounded, too, because threads' words may
/// name one block again and again.
static std::string read_chain(const pool::impl& in, std::uint64_t thread, std::uint64_t first,
                              std::uint64_t magic, std::size_t before,
                              std::vector<const more_head*>& out) {
    const heap& blocks = in.blocks.durable();
    const std::uint64_t pool_bytes = in.file->shape().max_bytes;
    for (std::uint64_t at = first; at != 0; at = out.back()->next) {
        if (at >= pool_bytes || at % granule_bytes != 0 || !blocks.covers(at, sizeof(more_head)) ||
            before + out.size() > pool_bytes / more_bytes_min)
            return fmt::format(
                "a block that it has grown by: expected one in the heap, found {:#x}", at);
        const auto& head = *static_cast<const more_head*>(in.at(at));
        if (head.magic != magic || head.thread != thread || head.number != out.size() + 1)
            return fmt::format(
                "the block at {:#x} that it has grown by: found {:#x} of thread {:#x}, number "
                "{}, expected {:#x} of thread {:#x}, number {}",
                at, head.magic, head.thread, head.number, magic, thread, out.size() + 1);
        if (head.bytes < more_bytes_min || !blocks.well_formed({at, head.bytes}))
            return fmt::format(
                "the block at {:#x} that it has grown by: expected the size of a block, found {} "
                "bytes",
                at, head.bytes);
        out.push_back(&head);
    }
    return {};
}

own_blocks::own_blocks(const pool::impl& in) {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return;
    constexpr std::uint64_t none = ~std::uint64_t{0};
    blocks_.push_back(
        {{in.file->roots()->anchor(engine_justdo), in.file->shape().chunk_bytes}, none, 0});
    for (const std::uint64_t offset : thread_words(*super)) {
        if (offset == 0) continue;
        blocks_.push_back({{offset, super->thread_bytes}, offset, offset + sizeof(thread_block)});
        const auto& its = *static_cast<const thread_block*>(in.at(offset));
        std::vector<const more_head*> locks, frames;
        read_chain(in, offset, its.more_locks, more_locks_magic, blocks_.size(), locks);
        read_chain(in, offset, its.more_frames, more_frames_magic, blocks_.size(), frames);
        const auto at = [&](const more_head* head) {
            return block{in.offset_of(head), head->bytes};
        };
        for (const more_head* head : locks) blocks_.push_back({at(head), none, 0});
        for (const more_head* head : frames)
            blocks_.push_back({at(head), offset, at(head).offset + sizeof *head});
    }
    std::ranges::sort(blocks_, {}, [](const own& o) { return o.b.offset; });
}

bool own_blocks::meet(std::uint64_t offset, std::uint64_t bytes,
                      std::uint64_t thread) const noexcept {
    if (bytes == 0) return false;
    const auto after = std::ranges::lower_bound(blocks_, offset + bytes, {},
                                                [](const own& o) { return o.b.offset; });
    if (after == blocks_.begin()) return false;
    const own& last = *std::prev(after); // disjoint from those before it
    if (last.b.offset + last.b.bytes <= offset) return false;
    return last.thread != thread || offset < last.frames;
}

namespace {

/// Exclusive claims of threads and open sections.
struct claims {
    struct owned {
        std::uint64_t word;
        bool shared;
    };
    std::vector<owned> locks;
    std::vector<block> blocks;
};

/// One thread's block, judged. Each check returns ok if it finds no fault.
class reading {
public:
    reading(const pool::impl& in, std::uint64_t offset, std::uint64_t bytes, const own_blocks& own,
            claims& all)
        : in_(in), own_(own), heap_(in.blocks.durable()), at_(offset), bytes_(bytes), all_(all),
          block_(*static_cast<const thread_block*>(in.at(offset))) {}

    status run() {
        if (block_.magic != thread_magic)
            return corrupt(
                fmt::format("its block: found {:#x}, expected {:#x}", block_.magic, thread_magic));
        if (status s = chain(block_.more_locks, more_locks_magic, locks_); !s.ok()) return s;
        if (status s = chain(block_.more_frames, more_frames_magic, stack_); !s.ok()) return s;
        if (status s = intentions(); !s.ok()) return s;
        const program_counter pc{block_.log.counter};
        if (!pc.open()) return {};
        if (in_.file->was_clean() && !in_.salvage)
            return corrupt(fmt::format(
                "expected no open section in a pool that was closed cleanly, found program "
                "counter {:#x}; salvage believes the close",
                pc.word));
        // A section that is given up is read no further.
        if (in_.file->was_clean() || in_.recovery == recovery_policy::roll_back) return given_up();
        if (!pc.well_formed() || pc.depth() == 0)
            return corrupt(
                fmt::format("expected the program counter of a section, found {:#x}", pc.word));
        if (status s = frames(pc); !s.ok()) return s;
        for_each_place([&](const lock_place& place) { owned_.push_back(place.owned); });
        if (status s = entries(pc); !s.ok()) return s;
        return ownerships();
    }

    /// Checks that there is such a lock, which can be reset. `holdfast repair --roll-back` has no
    /// kinds of locks, and leaves that to the program that has them.
    status intention(std::uint64_t word) const {
        const bool repairs = in_.salvage && in_.recovery == recovery_policy::roll_back;
        status found = lock(word, "intended", repairs);
        const hf_justdo_lock_calls* const calls = find_lock(lock_kind(word));
        if (found.ok() && calls != nullptr && calls->reset == nullptr)
            found = corrupt(fmt::format(
                "intended lock: expected one that can be reset, found {:#x}, which frees itself",
                word));
        return found;
    }

private:
    status corrupt(const std::string& what) const {
        return refusal(in_.file->path(), errc::corrupt,
                       fmt::format("engine justdo: the thread at {:#x}: {}{}", at_, what,
                                   program_counter{block_.log.counter}.open() ? out() : ""));
    }
    std::string out() const { return last_way_out(*in_.file); }

    status chain(std::uint64_t first, std::uint64_t magic, std::vector<const more_head*>& out) {
        const std::string wrong = read_chain(in_, at_, first, magic, all_.blocks.size(), out);
        for (const more_head* head : out) all_.blocks.push_back({in_.offset_of(head), head->bytes});
        return wrong.empty() ? status() : corrupt(wrong);
    }
    template <class Visit> void for_each_place(Visit&& visit) const {
        for (const lock_place& place : block_.locks) visit(place);
        for (const more_head* in : locks_)
            for (std::uint64_t i = 0; i < places_in(in->bytes); ++i)
                visit(reinterpret_cast<const lock_place*>(in + 1)[i]);
    }

    /// A section that stays half done: nothing that it overwrote is known any more.
    status given_up() const {
        if (in_.salvage) return {};
        return refusal(
            in_.file->path(), errc::torn,
            fmt::format(
                "engine justdo: the thread at {:#x} has a section open, which can be resumed and "
                "not rolled back: complete it with recovery_policy::complete{}",
                at_, out()));
    }

    status intentions() {
        status found;
        for_each_place([&](const lock_place& place) {
            if (place.intended != 0 && found.ok()) found = intention(place.intended);
        });
        return found;
    }

    status lock(std::uint64_t word, const char* what, bool of_any_kind = false) const {
        const std::uint32_t kind = lock_kind(word);
        const std::uint64_t offset = lock_offset(word);
        if (lock_word(kind, offset) != word)
            return corrupt(
                fmt::format("{} lock: expected a kind and an offset, found {:#x}", what, word));
        const hf_justdo_lock_calls* const calls = find_lock(kind);
        if (calls == nullptr && !of_any_kind)
            return refusal(
                in_.file->path(),
                // Salvage forgets what nothing resumes: it may be damaged.
                in_.salvage && !program_counter{block_.log.counter}.open() ? errc::corrupt
                                                                           : errc::function_changed,
                fmt::format(
                    "engine justdo: the thread at {:#x} holds a lock: expected a kind that this "
                    "program has registered, found kind {}; open the pool with the build that "
                    "registers it{}",
                    at_, kind, program_counter{block_.log.counter}.open() ? out() : ""));
        const bool real = kind != HF_JUSTDO_NO_LOCK;
        const std::uint64_t bytes = calls == nullptr ? 1 : calls->bytes;
        const std::uint64_t aligned_to = kind < HF_JUSTDO_KINDS ? alignof(shared_mutex) : 1;
        if (real ? offset % aligned_to != 0 || !heap_.covers(offset, bytes) ||
                       own_.meet(offset, bytes, 0)
                 : offset != 0)
            return corrupt(fmt::format("{} lock, {}: expected it in a block, found it at {:#x}",
                                       what, calls == nullptr ? "of another program" : calls->name,
                                       offset));
        return {};
    }

    status frames(program_counter pc) {
        std::uint64_t next = at_ + sizeof(thread_block), end = at_ + bytes_;
        std::uint64_t in_block = 0; // of the chain; 0: the thread's own
        const hf_justdo_function* function = nullptr;
        for (std::uint64_t d = 0; d < pc.depth(); ++d) {
            if (end - next < sizeof(frame_head))
                return corrupt(fmt::format(
                    "frame {} of {}: expected it in the thread's blocks, found it outside", d,
                    pc.depth()));
            const auto& head = *static_cast<const frame_head*>(in_.at(next));
            if (head.bytes < sizeof head || head.bytes % line_bytes != 0 || head.bytes > end - next)
                return corrupt(fmt::format(
                    "frame {}: expected whole lines inside the thread's block, found {} bytes", d,
                    head.bytes));
            function = find_function(head.function_id, head.function_version, head.constants);
            if (status s = known(head, function); !s.ok()) return s;
            if (d == 0 && function->resume == nullptr)
                return corrupt(fmt::format(
                    "the outermost frame: expected a function that can begin a section, found {}",
                    readable_name(function->name)));
            if (head.bytes != sizeof head + round_up(function->frame_bytes, line_bytes))
                return corrupt(fmt::format(
                    "frame {}: found {} bytes, expected those of {}, which takes {} and a head", d,
                    head.bytes, readable_name(function->name), function->frame_bytes));
            const std::uint64_t place = d + 1 == pc.depth() ? pc.place() : head.place();
            const std::uint64_t point = place & ~std::uint64_t{HF_JUSTDO_SNAPSHOT};
            if (point == 0 || point > function->points)
                return corrupt(
                    fmt::format("frame {}: found resume point {} of {}, expected 1 to {}", d, point,
                                readable_name(function->name), function->points));
            next += head.bytes;
            const std::uint64_t above = d + 1 == pc.depth() ? 0 : head.block_above();
            if (above == 0) continue;
            if (above <= in_block || above > stack_.size())
                return corrupt(fmt::format(
                    "frame {}: found it in block {} of {}, expected one behind block {}", d + 1,
                    above, stack_.size(), in_block));
            in_block = above;
            next = in_.offset_of(stack_[above - 1]) + sizeof(more_head);
            end = next - sizeof(more_head) + stack_[above - 1]->bytes;
        }
        return {};
    }

    status known(const frame_head& head, const hf_justdo_function* function) const {
        const std::string& path = in_.file->path();
        if (function == nullptr)
            return refusal(
                path, errc::function_changed,
                fmt::format(
                    "engine justdo: a section was cut short: expected a function of this "
                    "program, found {:#x} of version {:#x}, which this program does not have; "
                    "open the pool with the build that made it{}",
                    head.function_id, head.function_version, out()));
        if (function->version != head.function_version)
            return refusal(
                path, errc::function_changed,
                fmt::format("engine justdo: a section was cut short in {} ({}): expected version "
                            "{:#x}, found {:#x}; open the pool with the build that made it{}",
                            readable_name(function->name), function->where, function->version,
                            head.function_version, out()));
        if (layout_of(*function) != head.constants)
            return refusal(
                path, errc::function_changed,
                fmt::format(
                    "engine justdo: a section was cut short in {} ({}), whose constants lie "
                    "elsewhere in this program: expected layout {:#x}, found {:#x}; open the pool "
                    "with the build that made it{}",
                    readable_name(function->name), function->where, layout_of(*function),
                    head.constants, out()));
        // Frames hold addresses, but nobody knows in which of their words.
        const auto here = reinterpret_cast<std::uint64_t>(in_.file->base());
        if (in_.file->relocated() || here != in_.file->logged_base())
            return refusal(
                path, errc::address_taken,
                fmt::format("engine justdo: a section was cut short in {} ({}), and resumes only "
                            "where the pool was mapped then, at {:#x}{}",
                            readable_name(function->name), function->where, in_.file->logged_base(),
                            out()));
        return {};
    }

    status entries(program_counter pc) {
        const log_entry& active = block_.log.entries[pc.active()];
        if (active.repeats_before()) {
            const log_entry& before = block_.log.entries[pc.active() ^ 1];
            const bool can_be = before.what() == action::store || before.what() == action::lock ||
                                before.what() == action::unlock;
            if (!can_be) return bad(before);
            if (status s = entry(before); !s.ok()) return s;
        }
        return entry(active);
    }
    status bad(const log_entry& e) const {
        return corrupt(fmt::format("log entry {:#x}, {:#x}, {:#x}", e.where, e.value, e.extra));
    }
    status entry(const log_entry& e) {
        const bool sized = e.size() == 1 || e.size() == 2 || e.size() == 4 || e.size() == 8;
        const auto covers = [&](std::uint64_t offset, std::uint64_t bytes) {
            return bytes != 0 && offset < in_.file->shape().max_bytes &&
                   heap_.covers(offset, bytes);
        };
        bool good = false;
        switch (e.what()) {
        case action::none: good = true; break;
        case action::store: good = sized && covers(e.offset(), e.size()); break;
        case action::copy: // of bytes that overlap moves are made
            good = covers(e.offset(), e.extra) && covers(e.value, e.extra) &&
                   std::max(e.offset(), e.value) - std::min(e.offset(), e.value) >= e.extra;
            break;
        case action::fill: good = covers(e.offset(), e.extra); break;
        case action::move: good = move(e, {e.value, e.extra}); break;
        case action::alloc:
            good = covers(e.offset(), word_bytes) && claim({e.value, e.extra});
            break;
        case action::free: good = claim({e.value, e.extra}); break;
        case action::lock:
        case action::unlock:
            if (e.extra >= owned_.size()) break;
            owned_[e.extra] = e.what() == action::lock ? e.value : 0;
            good = true;
            break;
        }
        good = good && !own_.meet(e.offset(), stored_bytes(e), at_);
        return good ? status() : bad(e);
    }
    bool move(const log_entry& e, move_rest rest) const {
        const std::uint64_t n = rest.piece_bytes(), left = rest.left_bytes();
        if (n == 0 || n > stage_bytes || e.size() > 1 || left > in_.file->shape().max_bytes)
            return false;
        if (rest.backwards() && (rest.from() < left || e.offset() < left)) return false;
        const std::uint64_t down = rest.backwards() ? left : 0;
        return heap_.covers(rest.from() - down, n + left) &&
               heap_.covers(e.offset() - down, n + left);
    }
    bool claim(block b) const {
        if (b.offset >= in_.file->shape().max_bytes || !heap_.well_formed(b)) return false;
        all_.blocks.push_back(b);
        return true;
    }

    status ownerships() {
        for (const std::uint64_t word : owned_) {
            if (word == 0) continue;
            if (status s = lock(word, "owned"); !s.ok()) return s;
            if (lock_kind(word) == HF_JUSTDO_NO_LOCK) continue;
            all_.locks.push_back({word, find_lock(lock_kind(word))->shared != 0});
        }
        return {};
    }

    const pool::impl& in_;
    const own_blocks& own_;
    const heap& heap_;
    std::uint64_t at_, bytes_;
    claims& all_;
    const thread_block& block_;
    std::vector<const more_head*> locks_, stack_; // the chains
    std::vector<std::uint64_t> owned_;            // by place, once the last step is done again
};

/// Checks that no two sections have one lock, unless both share it: two threads would wait for each
/// other.
status check_claims(const pool_file& file, claims& all) {
    const auto offset = [](const claims::owned& o) { return lock_offset(o.word); };
    std::ranges::sort(all.locks, {}, offset);
    const auto both = std::ranges::adjacent_find(all.locks, [&](const auto& a, const auto& b) {
        return offset(a) == offset(b) && !(a.shared && b.shared);
    });
    if (both != all.locks.end())
        return refusal(
            file.path(), errc::corrupt,
            fmt::format(
                "engine justdo: the lock at {:#x}: expected one section that owns it, found two",
                offset(*both)));
    return {};
}

status check_superblock(const pool::impl& in) {
    const pool_file& file = *in.file;
    const std::uint64_t at = file.roots()->anchor(engine_justdo), chunk = file.shape().chunk_bytes;
    const auto corrupt = [&](const std::string& what) {
        return refusal(file.path(), errc::corrupt, "engine justdo: superblock: " + what);
    };
    if (at % chunk != 0 || at >= file.shape().max_bytes || !in.blocks.durable().covers(at, chunk))
        return corrupt(fmt::format("expected a chunk of the heap, found {:#x}", at));
    const superblock& super = *superblock_of(file);
    if (super.magic != superblock_magic)
        return corrupt(fmt::format("at {:#x}: found {:#x}, expected {:#x}", at, super.magic,
                                   superblock_magic));
    if (super.threads_max != threads_max_for(chunk))
        return corrupt(fmt::format("found {} threads, expected {}", super.threads_max,
                                   threads_max_for(chunk)));
    if (super.thread_bytes < thread_bytes_min || super.thread_bytes > thread_bytes_max ||
        in.blocks.durable().rounded(super.thread_bytes) != super.thread_bytes)
        return corrupt(fmt::format("a thread's block: expected a size in bounds, found {} bytes",
                                   super.thread_bytes));
    return {};
}

} // namespace

status inspect(const pool::impl& in) {
    if (in.file->roots()->anchor(engine_justdo) == 0) return {};
    if (status s = check_superblock(in); !s.ok()) return s;
    superblock* const super = superblock_of(*in.file);
    claims all;
    std::vector<block> blocks{
        {in.file->roots()->anchor(engine_justdo), in.file->shape().chunk_bytes}};
    for (const std::uint64_t offset : thread_words(*super)) {
        if (offset == 0) continue;
        const block b{offset, super->thread_bytes};
        if (offset >= in.file->shape().max_bytes || !in.blocks.durable().well_formed(b))
            return refusal(
                in.file->path(), errc::corrupt,
                fmt::format(
                    "engine justdo: a thread's block: expected a block of the heap, found {:#x}, "
                    "{} bytes",
                    offset, b.bytes));
        blocks.push_back(b);
    }
    const own_blocks own(in);
    for (const std::uint64_t offset : thread_words(*super))
        if (offset != 0)
            if (status s = reading(in, offset, super->thread_bytes, own, all).run(); !s.ok())
                return s;
    // The engine's blocks are each one thread's, and not what a section takes or frees.
    for (const block b : all.blocks) blocks.push_back(b);
    std::ranges::sort(blocks, {}, &block::offset);
    const auto meet = [](block a, block b) { return b.offset - a.offset < a.bytes; };
    if (const auto twice = std::ranges::adjacent_find(blocks, meet); twice != blocks.end())
        return refusal(
            in.file->path(), errc::corrupt,
            fmt::format(
                "engine justdo: the block at {:#x}: expected one place that names it, found two",
                twice->offset));
    return check_claims(*in.file, all);
}

namespace {

void warn(pool::impl& in, const status& why) {
    in.file->warn(fmt::format("{}: salvaged: {}: it is given up, half done as it is",
                              in.file->path(), why.what()));
}

/// Ends the chain that begins at 'first' before its first unsound block. Returns the blocks that
/// are left.
std::vector<const more_head*> cut_chain(pool::impl& in, std::uint64_t thread, std::uint64_t& first,
                                        std::uint64_t magic) {
    std::vector<const more_head*> sound;
    if (read_chain(in, thread, first, magic, 0, sound).empty()) return sound;
    std::uint64_t& next =
        sound.empty() ? first : static_cast<more_head*>(in.at(in.offset_of(sound.back())))->next;
    in.file->medium().store_word(&next, 0);
    return sound;
}

/// Ends the section that the thread has open. The locks that it may have taken are reset when the
/// engine takes the pool up: it forgets those alone that cannot be.
void give_up(pool::impl& in, std::uint64_t offset) {
    auto& block = *static_cast<thread_block*>(in.at(offset));
    const hf::medium pm = in.file->medium();
    const own_blocks own(in);
    claims none;
    const reading its(in, offset, superblock_of(*in.file)->thread_bytes, own, none);
    const auto forget = [&](std::span<lock_place> places) {
        for (lock_place& place : places) {
            if (place.intended != 0 && !its.intention(place.intended).ok())
                pm.store_word(&place.intended, 0);
            pm.store_word(&place.owned, 0);
        }
    };
    pm.store_word(&block.log.counter, 0);
    forget(block.locks);
    for (const more_head* head : cut_chain(in, offset, block.more_locks, more_locks_magic)) {
        auto* const more = static_cast<more_head*>(in.at(in.offset_of(head)));
        forget({reinterpret_cast<lock_place*>(more + 1), places_in(more->bytes)});
    }
    cut_chain(in, offset, block.more_frames, more_frames_magic);
    pm.fence();
}

} // namespace

void give_up_unsound(pool::impl& in) {
    if (in.file->roots()->anchor(engine_justdo) == 0 || !check_superblock(in).ok()) return;
    superblock* const super = superblock_of(*in.file);
    const hf::medium pm = in.file->medium();
    const heap& blocks = in.blocks.durable();
    for (std::uint64_t& word : thread_words(*super)) {
        const block b{word, super->thread_bytes};
        const bool is_block = word < in.file->shape().max_bytes && blocks.well_formed(b) &&
                              static_cast<thread_block*>(in.at(word))->magic == thread_magic;
        if (word == 0 || is_block) continue;
        in.file->warn(fmt::format("{}: salvaged: engine justdo: nothing of a thread stands at "
                                  "{:#x}: it is given up",
                                  in.file->path(), word));
        pm.store_word(&word, 0);
        pm.fence();
    }
    const own_blocks own(in);
    for (const std::uint64_t offset : thread_words(*super)) {
        if (offset == 0) continue;
        claims its;
        const status read = reading(in, offset, super->thread_bytes, own, its).run();
        if (read.ok()) continue;
        warn(in, read);
        give_up(in, offset);
    }
    if (const status together = inspect(in); !together.ok()) give_up_all(in, together);
}

void give_up_all(pool::impl& in, const status& why) {
    superblock* const super = superblock_of(*in.file);
    if (super == nullptr) return;
    warn(in, why);
    for (const std::uint64_t offset : thread_words(*super))
        if (offset != 0) give_up(in, offset);
}

} // namespace hf::justdo
