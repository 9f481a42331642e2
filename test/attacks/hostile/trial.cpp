// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trial.hpp"

#include "sections.hpp"
#include <base/assert.hpp>
#include <base/line.hpp>
#include <justdo/format.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>
#include <verify/examine.hpp>

#include <holdfast/author/blocks.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/justdo.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HF_HOSTILE_ASAN 1
#endif
#endif

namespace hf::hostile {
namespace {

// Behind the longest pool, for files that are longer than their pools. The library must not touch
// it.
constexpr std::uint64_t slack_bytes = 16 << 10;

/// Uses a pool as a program does, with objects of its own.
class user {
public:
    explicit user(pool& p) : pool_(&p) {}

    std::string run() {
        look();
        for (std::size_t bytes : {24, 100, 700, 3000, 5000, 20000}) take(bytes);
        for (built_for engine : {built_for::clobber, built_for::undo, built_for::redo})
            if (wrong_.empty()) sections(engine);
        for (auto [offset, bytes] : mine_) hf_free(at(offset));
        return_spare_blocks(*pool_);
        return wrong_;
    }
    /// Sections of engine justdo on a list of their own, where the pool has room for them.
    std::string run_resumable() {
        using namespace justdo::by_hand;
        void* const room = hf_alloc(3 * in_bytes_for_log);
        auto* const on = static_cast<list*>(hf_alloc(sizeof(list)));
        std::vector<void*> nodes;
        for (int i = 0; i < 4; ++i) nodes.push_back(hf_alloc(sizeof(by_hand_node)));
        const bool enough = room != nullptr && on != nullptr && nodes.back() != nullptr;
        for (void* n : nodes) hf_free(n);
        hf_free(room);
        full_ = full_ || !enough;
        if (enough) {
            *on = {};
            push(on, 1), push(on, 2), pop(on);
            if (on->count != 1 || on->head == nullptr || on->head->value != 1)
                wrong_ = "a section of engine justdo did something else";
            pop(on);
        }
        hf_free(on);
        return wrong_;
    }
    bool full() const noexcept { return full_; }

private:
    using by_hand_node = justdo::by_hand::node;
    static constexpr std::size_t in_bytes_for_log = justdo::thread_bytes_min;
    void* at(std::uint64_t offset) const { return pool_->internals().at(offset); }

    /// Everything that can be asked without following a pointer of the pool's.
    void look() {
        const alloc_account sum = account(*pool_);
        if (sum.block_bytes > sum.heap_bytes) wrong_ = "the account exceeds the heap";
        for_each_block(
            *pool_,
            [](void* self, const void* block, std::size_t bytes) {
                auto* me = static_cast<user*>(self);
                const auto* end = static_cast<const std::byte*>(block) + bytes - 1;
                if (!me->pool_->contains(block) || !me->pool_->contains(end) ||
                    me->pool_->internals().offset_of(end) >= me->pool_->size_bytes())
                    me->wrong_ = "an allocated block outside the pool";
            },
            this);
        const root_words* words = pool_->internals().file->roots();
        if (words->root_bytes == sizeof(root_object) || words->root_offset == 0)
            if (pool_->root<root_object>() == nullptr) full_ = true;
    }

    void take(std::size_t bytes) {
        void* block = hf_alloc(bytes);
        if (block == nullptr) {
            full_ = true;
            return;
        }
        const std::uint64_t offset = pool_->internals().offset_of(block);
        if (offset + bytes > pool_->size_bytes() || offset < lanes_start_offset) {
            wrong_ = "a block was handed out outside the pool";
            return;
        }
        for (auto [other, size] : mine_)
            if (offset < other + size && other < offset + bytes)
                wrong_ = "a block was handed out twice";
        std::memset(block, 0x5a, bytes);
        mine_.emplace_back(offset, bytes);
    }

    void sections(built_for engine) {
        chain* c = make_chain();
        if (c == nullptr) {
            full_ = true;
            return;
        }
        // A section that finds the pool full would follow a null pointer: room for three is sure.
        std::vector<void*> room;
        for (int i = 0; i < 4; ++i) room.push_back(hf_alloc(sizeof(node)));
        const bool enough = room.back() != nullptr;
        for (void* b : room) hf_free(b);
        if (!enough) {
            full_ = true;
            return;
        }
        for (std::uint64_t v = 1; v <= 3; ++v) push(engine, c, v);
        pop(engine, c);
        replace(engine, c, 2);
        if (const char* why = fault(c, 1, 2)) wrong_ = why;
        pop(engine, c);
        pop(engine, c);
        destroy_chain(c);
    }

    pool* pool_;
    std::string wrong_;
    bool full_ = false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> mine_;
};

open_options options_for(const base_pool& base) {
    open_options o = base.options;
    for (engine_ptr& e : o.engines) {
        if (e->bit() == engine_clobber) e = clobber::engine({.recovery_ms_max = 20});
        if (e->bit() == engine_justdo)
            e = justdo::engine({.recovery_ms_max = 20, .open_waits = true});
    }
    return o;
}

} // namespace

std::uint64_t tally::refusals() const {
    return std::accumulate(refused.begin(), refused.end(), std::uint64_t{0});
}

trial::trial(const base_pool& base) : base_(&base), map_(base) {
    const std::uint64_t pool_bytes =
        std::max<std::uint64_t>(map_.header.max_bytes, base.bytes.size());
    const std::uint64_t bytes = round_up(pool_bytes, 4096) + slack_bytes;
    const bool as_file = base.served != nullptr; // then its address is kept free
    auto* wanted = as_file ? nullptr : reinterpret_cast<void*>(map_.header.base_address);
    void* got = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (as_file ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
    if (got == MAP_FAILED || (!as_file && got != wanted))
        fatal("no memory at %p for the mutants", wanted);
    memory_ = {static_cast<std::byte*>(got), bytes};
    initial_.assign(bytes, std::byte{0});
    std::memcpy(initial_.data(), base.bytes.data(), base.bytes.size());
    std::fill(initial_.end() - slack_bytes, initial_.end(), std::byte{0xa5});
}

trial::~trial() {
    fence_off(false);
    ::munmap(memory_.data(), memory_.size());
}

/// A read past the longest pool is a report of AddressSanitizer, and otherwise a signal in pools
/// where nothing is executed again.
void trial::fence_off(bool off) const {
    std::byte* const at = memory_.data() + map_.header.max_bytes;
    const std::size_t bytes = memory_.size() - map_.header.max_bytes;
    if (base_->mod && map_.header.max_bytes % 4096 == 0)
        ::mprotect(at, bytes, off ? PROT_NONE : PROT_READ | PROT_WRITE);
#ifdef HF_HOSTILE_ASAN
    if (off) __asan_poison_memory_region(at, bytes);
    else __asan_unpoison_memory_region(at, bytes);
#endif
}

std::string trial::verify(const mutator& of, tally& count) const {
    const std::span<const std::byte> file = memory_.first(of.file_bytes());
    const verify::report said = verify::examine(file, verify::depth::deep);
    if (said.outcome == verify::verdict::damaged) ++count.verified_damaged;
    else if (said.outcome != verify::verdict::good) ++count.verified_otherwise;
    else {
        ++count.verified_good;
        if (!base_->sealed) return "verify --deep calls a pool good that was never sealed";
        for (block b : map_.blocks)
            if (b.offset + b.bytes > file.size() ||
                std::memcmp(file.data() + b.offset, initial_.data() + b.offset, b.bytes) != 0)
                return fmt::format("verify --deep calls it good, and the block at {:#x} differs",
                                   b.offset);
        if (said.blocks != map_.blocks.size())
            return "verify --deep calls it good, with another number of blocks";
        if (std::memcmp(file.data() + root_words_offset, initial_.data() + root_words_offset,
                        sizeof(root_words)) != 0)
            return "verify --deep calls it good, with another root";
    }
    return {};
}

std::string trial::reopen(const char* when) {
    const open_options options = options_for(*base_);
    auto file = pool_file::open_image(image_, file_options_of(options));
    if (!file) return fmt::format("{}: {}", when, file.error().what());
    auto again = pool::impl::open(std::move(*file), options, std::chrono::steady_clock::now());
    if (!again) return fmt::format("{}: {}", when, again.error().what());
    if (again->recovered().sections_pending != 0)
        return fmt::format("{}: sections are pending", when);
    pool::impl::abandon(std::move(*again));
    return {};
}

std::string trial::open_and_use(tally& count) {
    const open_options options = options_for(*base_);
    auto file = pool_file::open_image(image_, file_options_of(options));
    if (!file) {
        ++count.refused[static_cast<std::size_t>(file.error().code())];
        said_ = file.error().what();
        return said_.empty() ? "a refusal without a word" : "";
    }
    auto opened = pool::impl::open(std::move(*file), options, std::chrono::steady_clock::now());
    if (!opened) {
        ++count.refused[static_cast<std::size_t>(opened.error().code())];
        executed_ = opened.error().what().find("recovering") != std::string::npos ||
                    opened.error().what().find("resuming") != std::string::npos;
        count.stopped += executed_ ? 1 : 0;
        said_ = opened.error().what();
        return said_.empty() ? "a refusal without a word" : "";
    }
    ++count.opened;
    said_ = "opened";
    executed_ = opened->recovered().re_executed != 0 || opened->recovered().resumed != 0;
    count.sections_pending += opened->recovered().sections_pending;
    if (std::string wrong = use(*opened, count); !wrong.empty()) return wrong;
    { const pool closing = std::move(*opened); }
    return reopen("opened again after a clean close");
}

std::string trial::serve(std::uint64_t bytes, tally& count) {
    const int fd = ::open(base_->path.c_str(), O_RDWR | O_TRUNC | O_CLOEXEC);
    const bool written = fd >= 0 && ::write(fd, memory_.data(), bytes) == ssize_t(bytes);
    ::close(fd);
    if (!written) return "no file for the mutant";
    serving came = base_->served(base_->path);
    ++(came.opened ? count.opened : count.refused[static_cast<std::size_t>(came.refused)]);
    count.sections_pending += came.sections_pending;
    count.stopped += came.why.find("recovering") != std::string::npos ? 1 : 0;
    said_ = came.opened ? "opened" : came.why;
    return came.wrong;
}

std::string trial::use(pool& in, tally& count) const {
    if (base_->mod) {
        const mod_use said = use_mod(in, *base_->mod);
        ++(said.verified ? count.mod_verified : count.mod_damaged);
        count.pools_full += said.full ? 1 : 0;
        return said.wrong;
    }
    user someone(in);
    std::string wrong = someone.run();
    if (wrong.empty() && base_->justdo) wrong = someone.run_resumable();
    count.pools_full += someone.full() ? 1 : 0;
    return wrong;
}

std::string trial::run(std::uint64_t seed, tally& count, std::string* story) {
    std::memcpy(memory_.data(), initial_.data(), initial_.size());
    random_source random(seed);
    mutator mutant(map_, memory_, random);
    mutant.tell = story != nullptr;
    mutant.mutate();
    if (story != nullptr) *story = mutant.story;
    ++count.tried;
    executed_ = false;
    std::string wrong = verify(mutant, count);
    if (!wrong.empty()) return wrong;
    if (base_->served != nullptr) return serve(mutant.file_bytes(), count);
    const std::vector<std::byte> behind(memory_.end() - slack_bytes, memory_.end());
    image_ = {memory_.data(), mutant.file_bytes(), map_.header.max_bytes};
    fence_off(true);
    wrong = open_and_use(count);
    fence_off(false);
    // A re-executed function stores to addresses from the objects, which may hold anything.
    // AddressSanitizer watches the library even then.
    if (wrong.empty() && !executed_ &&
        !std::equal(behind.begin(), behind.end(), memory_.end() - slack_bytes))
        wrong = "something was written behind the pool";
    return wrong;
}

} // namespace hf::hostile
