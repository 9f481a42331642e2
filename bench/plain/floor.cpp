// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "floor.hpp"

#include "subject.hpp"
#include <base/assert.hpp>
#include <base/line.hpp>
#include <log/flush_set.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/author/persist.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace hf::bench::plain {
namespace {

constexpr std::uint64_t line_at = root_bytes;          // the first fence's line, behind the root
constexpr std::uint64_t log_at = line_at + line_bytes; // that of build 'by_hand'
constexpr std::uint64_t log_bytes = 8 << 20;
constexpr std::uint64_t blocks_at = log_at + log_bytes;
arena* current = nullptr;
bool in_section = false;
flush_set dirty;

/// A word that was overwritten; or of a range the end: its old bytes stand before it, in entries of
/// their own.
struct old_word {
    std::uint64_t where; // a range's is marked
    std::uint64_t value; // a range's length
};
constexpr std::uint64_t range_mark = std::uint64_t{1} << 63;
struct undo_log {
    std::atomic<std::uint64_t> used; // entries that count
    old_word entries[];
};
constexpr std::uint64_t entries_max = (log_bytes - sizeof(undo_log)) / sizeof(old_word);
undo_log* log_by_hand = nullptr;
std::vector<void*> freed; // by the open section

constexpr std::uint64_t entries_for(std::uint64_t bytes) {
    return (bytes + sizeof(old_word) - 1) / sizeof(old_word);
}

/// The entry counts before anything overwrites what is in it: x86 keeps the order, the compiler has
/// to.
void append(std::uint64_t at, std::uint64_t where, std::uint64_t value) noexcept {
    log_by_hand->entries[at] = {where, value};
    log_by_hand->used.store(at + 1, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

void log_range(const void* address, std::uint64_t bytes) noexcept {
    const std::uint64_t used = log_by_hand->used.load(std::memory_order_relaxed);
    const std::uint64_t end = used + entries_for(bytes);
    if (end >= entries_max) give_up("the log by hand is full");
    std::memcpy(log_by_hand->entries + used, address, bytes);
    append(end, reinterpret_cast<std::uint64_t>(address) | range_mark, bytes);
}
void log_old(const void* address, std::uint64_t bytes) noexcept {
    const auto first = reinterpret_cast<std::uint64_t>(address);
    const std::uint64_t used = log_by_hand->used.load(std::memory_order_relaxed);
    if (first % word_bytes + bytes > word_bytes || used == entries_max)
        return log_range(address, bytes);
    const std::uint64_t word = round_down(first, word_bytes);
    append(used, word, *reinterpret_cast<const std::uint64_t*>(word));
}

} // namespace

arena::arena(const std::string& directory, std::uint64_t bytes, bool durable, floor_fences fences)
    : file_(directory, "plain"), bytes_(bytes), used_(blocks_at), durable_(durable),
      fences_(fences) {
    const int descriptor = ::open(file_.path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0 || posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)) != 0)
        give_up("cannot make " + file_.path());
    void* mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    close(descriptor);
    if (mapped == MAP_FAILED) give_up("cannot map " + file_.path());
    base_ = static_cast<std::byte*>(mapped);
    log_by_hand = reinterpret_cast<undo_log*>(base_ + log_at);
    HF_ASSERT(current == nullptr);
    current = this;
}

arena::~arena() {
    current = nullptr;
    munmap(base_, bytes_);
}

void* arena::take(std::uint64_t bytes) noexcept {
    const std::uint64_t granules = std::max<std::uint64_t>(1, (bytes + granule - 1) / granule);
    if (granules < reused_granules && free_[granules] != nullptr)
        return std::exchange(free_[granules], free_[granules]->next);
    const std::uint64_t at = used_ + granule;
    if (granules > (bytes_ - at) / granule) return nullptr;
    used_ = at + granules * granule;
    std::memcpy(base_ + at - granule, &granules, sizeof granules);
    return base_ + at;
}

void arena::give(void* block) noexcept {
    std::uint64_t granules = 0;
    std::memcpy(&granules, static_cast<std::byte*>(block) - granule, sizeof granules);
    if (granules >= reused_granules) return;
    auto* freed = static_cast<free_block*>(block);
    freed->next = std::exchange(free_[granules], freed);
}

void arena::commit() noexcept {
    persist::counters& count = persist::thread_counters();
    ++count.sections;
    if (!durable_) return dirty.flush_all(medium(domain::process));
    if (fences_ == floor_fences::two) {
        const std::uint64_t line[line_bytes / word_bytes] = {count.sections};
        persist::copy(domain::adr, base_ + line_at, line, sizeof line);
        persist::fence(domain::adr);
    }
    dirty.flush_all(medium(domain::adr));
    persist::fence(domain::adr);
}

void arena::roll_back() noexcept {
    std::uint64_t used = log_by_hand->used.load(std::memory_order_relaxed);
    while (used != 0) {
        const old_word last = log_by_hand->entries[--used];
        if ((last.where & range_mark) == 0) {
            std::memcpy(reinterpret_cast<void*>(last.where), &last.value, sizeof last.value);
            continue;
        }
        used -= entries_for(last.value);
        std::memcpy(reinterpret_cast<void*>(last.where & ~range_mark), log_by_hand->entries + used,
                    last.value);
    }
    log_by_hand->used.store(0, std::memory_order_release);
    freed.clear(); // it is not free
    in_section = false;
}

} // namespace hf::bench::plain

using namespace hf::bench::plain;

extern "C" {

// The builds 'none' and 'floor' call these instead of the runtime.
void* hf_plain_alloc(std::size_t bytes) noexcept { return current->take(bytes); }
void hf_plain_free(void* block) noexcept {
    if (block != nullptr) current->give(block);
}

int hf_plain_begin(const hf_txfunc*, const void*) noexcept {
    return std::exchange(in_section, true) ? 0 : 1;
}
void hf_plain_commit() noexcept {
    current->commit();
    in_section = false;
}
void hf_plain_note(const void* address, std::uint64_t bytes) noexcept { dirty.add(address, bytes); }
void hf_plain_register(const hf_txfunc*) noexcept {}

int hf_by_hand_begin(const hf_txfunc*, const void*) noexcept {
    return std::exchange(in_section, true) ? 0 : 1;
}
void hf_by_hand_commit() noexcept {
    log_by_hand->used.store(0, std::memory_order_release);
    for (void* block : freed) current->give(block);
    freed.clear();
    in_section = false;
}
void hf_by_hand_free(void* block) noexcept {
    if (block != nullptr) freed.push_back(block);
}
void hf_by_hand_log(const void* address, std::uint64_t bytes) noexcept { log_old(address, bytes); }
void hf_by_hand_note(const void*, std::uint64_t) noexcept {} // fresh memory

} // extern "C"
