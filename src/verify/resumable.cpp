// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <verify/resumable.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace hf::verify {
namespace {

using justdo::action;
using justdo::log_entry;
using justdo::program_counter;

template <class T> T load(const pool_image& pool, std::uint64_t offset) {
    T out{};
    if (pool.has(offset, sizeof out)) std::memcpy(&out, pool.file().data() + offset, sizeof out);
    return out;
}

bool in_heap(const pool_image& pool, std::uint64_t offset, std::uint64_t bytes) {
    const extent_image* const e = pool.extent_of(offset);
    return e != nullptr && bytes != 0 &&
           bytes <= e->data_offset + e->chunks * pool.chunk_bytes() - offset;
}

/// One thread's block. Stops at the first fault of each of its parts.
class thread_reading {
public:
    thread_reading(const pool_image& pool, std::uint64_t at, std::uint64_t bytes, justdo_image& out)
        : pool_(pool), at_(at), bytes_(bytes), out_(out),
          where_(fmt::format("engine justdo's thread {:#x}", at)) {}

    void run() {
        const auto magic = load<std::uint64_t>(pool_, at_ + offsetof(justdo::thread_block, magic));
        if (magic != justdo::thread_magic)
            return wrong(offsetof(justdo::thread_block, magic),
                         fmt::format("{:#x}", justdo::thread_magic), fmt::format("{:#x}", magic));
        chain(offsetof(justdo::thread_block, more_locks), justdo::more_locks_magic, locks_);
        chain(offsetof(justdo::thread_block, more_frames), justdo::more_frames_magic, stack_);
        locks(&justdo::lock_place::intended);
        const auto log = load<justdo::thread_log>(pool_, at_);
        const program_counter pc{log.counter};
        if (!pc.open()) return;
        if (!pc.well_formed() || pc.depth() == 0)
            return wrong(0, "a program counter, or 0", fmt::format("{:#x}", pc.word));
        section_.thread = at_;
        section_.depth = pc.depth();
        section_.point = pc.place() & (justdo::program_counter::place_mask >> 1);
        if (!frames(pc)) return;
        section_.locks = locks(&justdo::lock_place::owned);
        if (log.entries[pc.active()].repeats_before()) entry(log.entries[pc.active() ^ 1], true);
        entry(log.entries[pc.active()], false);
        out_.open.push_back(section_);
    }

private:
    void wrong(std::uint64_t offset, std::string expected, std::string found) {
        out_.faults.push_back({at_ + offset, where_, std::move(expected), std::move(found)});
    }

    /// The blocks that the thread's own has grown by, as far as they are in order. As many as the
    /// pool has room for.
    void chain(std::uint64_t word, std::uint64_t magic, std::vector<block>& out) {
        std::uint64_t named_at = at_ + word;
        while (const std::uint64_t at = pool_.word(named_at)) {
            const auto head = in_heap(pool_, at, sizeof(justdo::more_head))
                                  ? load<justdo::more_head>(pool_, at)
                                  : justdo::more_head{};
            const block b{at, head.bytes};
            if (head.magic != magic || head.thread != at_ || head.number != out.size() + 1 ||
                head.bytes < justdo::more_bytes_min || !pool_.well_formed(b) ||
                out_.blocks.size() > pool_.pool_bytes() / justdo::more_bytes_min)
                return wrong(named_at - at_,
                             fmt::format("block {} that the thread has grown by", out.size() + 1),
                             fmt::format("{:#x}", at));
            out.push_back(b);
            out_.blocks.push_back(b);
            named_at = at + offsetof(justdo::more_head, next);
        }
    }

    std::uint64_t locks(std::uint64_t justdo::lock_place::* word) {
        std::uint64_t count = 0;
        const auto in = [&](std::uint64_t from, std::uint64_t places) {
            for (std::uint64_t i = 0; i < places; ++i) {
                const std::uint64_t place = from + i * sizeof(justdo::lock_place);
                const std::uint64_t lock = load<justdo::lock_place>(pool_, place).*word;
                if (lock == 0) continue;
                ++count;
                const std::uint64_t at = justdo::lock_offset(lock);
                const bool formed = justdo::lock_word(justdo::lock_kind(lock), at) == lock;
                if (formed && (at == 0 || in_heap(pool_, at, 1))) continue;
                return wrong(place - at_, "a lock in the heap", fmt::format("{:#x}", lock));
            }
        };
        in(at_ + offsetof(justdo::thread_block, locks), justdo::lock_places);
        for (const block b : locks_)
            in(b.offset + sizeof(justdo::more_head), justdo::places_in(b.bytes));
        return count;
    }
    std::uint64_t places() const {
        std::uint64_t count = justdo::lock_places;
        for (const block b : locks_) count += justdo::places_in(b.bytes);
        return count;
    }

    bool frames(program_counter pc) {
        std::uint64_t next = at_ + sizeof(justdo::thread_block), end = at_ + bytes_;
        std::uint64_t in_block = 0; // of the chain; 0: the thread's own
        for (std::uint64_t d = 0; d < pc.depth(); ++d) {
            const auto head = end - next < sizeof(justdo::frame_head)
                                  ? justdo::frame_head{}
                                  : load<justdo::frame_head>(pool_, next);
            const std::uint64_t above = d + 1 == pc.depth() ? 0 : head.block_above();
            const bool jumps = above != 0;
            if (head.bytes < sizeof head || head.bytes % line_bytes != 0 ||
                head.bytes > end - next ||
                (jumps && (above <= in_block || above > stack_.size()))) {
                wrong(next - at_, fmt::format("frame {} of {}", d + 1, pc.depth()),
                      fmt::format("{} bytes, the next one in block {} of {}", head.bytes, above,
                                  stack_.size()));
                return false;
            }
            if (d == 0) section_.function_id = head.function_id;
            if (d == 0) section_.function_version = head.function_version;
            next += head.bytes;
            if (!jumps) continue;
            in_block = above;
            next = stack_[above - 1].offset + sizeof(justdo::more_head);
            end = stack_[above - 1].offset + stack_[above - 1].bytes;
        }
        return true;
    }

    void entry(const log_entry& e, bool before) {
        const bool sized = e.size() == 1 || e.size() == 2 || e.size() == 4 || e.size() == 8;
        bool good = false;
        switch (e.what()) {
        case action::none: good = !before; break;
        case action::store: good = sized && in_heap(pool_, e.offset(), e.size()); break;
        case action::copy:
            good =
                !before && in_heap(pool_, e.offset(), e.extra) && in_heap(pool_, e.value, e.extra);
            break;
        case action::fill: good = !before && in_heap(pool_, e.offset(), e.extra); break;
        case action::move: good = !before && in_heap(pool_, e.offset(), 1); break;
        case action::alloc:
        case action::free:
            good = !before && pool_.well_formed({e.value, e.extra});
            if (good) out_.blocks.push_back({e.value, e.extra});
            break;
        case action::lock:
        case action::unlock: good = e.extra < places(); break;
        }
        if (!good)
            wrong(0, "a log entry that can be done again",
                  fmt::format("{:#x}, {:#x}, {:#x}", e.where, e.value, e.extra));
    }

    const pool_image& pool_;
    std::uint64_t at_, bytes_;
    justdo_image& out_;
    std::string where_;
    std::vector<block> locks_, stack_; // the chains
    resumable_section section_{};
};

} // namespace

justdo_image read_justdo(const pool_image& pool) {
    justdo_image out;
    const std::uint64_t at = pool.roots().anchor(engine_justdo), chunk = pool.chunk_bytes();
    if (at == 0) return out;
    const auto wrong = [&](std::uint64_t offset, std::string expected, std::string found) {
        out.faults.push_back(
            {offset, "engine justdo's superblock", std::move(expected), std::move(found)});
    };
    const extent_image* const e = pool.extent_of(at);
    if (e == nullptr || (at - e->data_offset) % chunk != 0 || !in_heap(pool, at, chunk)) {
        wrong(root_words_offset, "a chunk of the heap", fmt::format("{:#x}", at));
        return out;
    }
    out.blocks.push_back({at, chunk});
    const auto super = load<justdo::superblock>(pool, at);
    if (super.magic != justdo::superblock_magic ||
        super.threads_max != justdo::threads_max_for(chunk) ||
        super.thread_bytes < justdo::thread_bytes_min ||
        super.thread_bytes > justdo::thread_bytes_max ||
        pool.rounded(super.thread_bytes) != super.thread_bytes) {
        wrong(at,
              fmt::format("magic {:#x}, {} threads", justdo::superblock_magic,
                          justdo::threads_max_for(chunk)),
              fmt::format("{:#x}, {} threads of {} bytes", super.magic, super.threads_max,
                          super.thread_bytes));
        return out;
    }
    for (std::uint64_t t = 0; t < super.threads_max; ++t) {
        const std::uint64_t word = at + sizeof super + t * word_bytes;
        const block b{pool.word(word), super.thread_bytes};
        if (b.offset == 0) continue;
        if (!pool.well_formed(b)) {
            wrong(word, "a block of the heap", fmt::format("{:#x}", b.offset));
            continue;
        }
        out.blocks.push_back(b);
        thread_reading(pool, b.offset, b.bytes, out).run();
    }
    return out;
}

} // namespace hf::verify
