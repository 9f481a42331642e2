// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "floor.hpp"

#include "subject.hpp"
#include <base/assert.hpp>
#include <base/line.hpp>
#include <log/flush_set.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/author/persist.hpp>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace hf::bench::plain {
namespace {

constexpr std::uint64_t line_at = root_bytes; // the first fence's line, behind the root
constexpr std::uint64_t blocks_at = line_at + line_bytes;
arena* current = nullptr;
bool in_section = false;
flush_set dirty;

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

} // namespace hf::bench::plain

using namespace hf::bench::plain;

extern "C" {

// What the builds 'none' and 'floor' call in place of the runtime.
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

} // extern "C"
