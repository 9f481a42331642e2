// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "variants.hpp"

#include "../temporary_file.hpp"
#include <base/assert.hpp>

#include <algorithm>
#include <bit>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::bench {
namespace {

/// Memory of a file that goes with it, every page touched.
std::byte* map_file(const std::string& path, std::size_t bytes) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0)
        give_up("cannot write " + path);
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    ::close(file);
    ::unlink(path.c_str());
    if (at == MAP_FAILED) give_up("cannot map " + path);
    return static_cast<std::byte*>(at);
}

std::string_view scheme_of(std::string_view variant) {
    if (variant == "ssd") return "file";
    return variant == "nvram" || variant == "hybrid" ? "dual" : variant;
}

} // namespace

locked_rows::locked_rows(std::string_view variant, domain d, std::uint64_t calls_a_checkpoint,
                         const std::string& directory)
    : calls_a_checkpoint_(variant == "ssd" || variant == "nvram" ? 1 : calls_a_checkpoint) {
    const std::uint64_t lines = std::bit_ceil(2 * std::max(calls_a_flush, calls_a_checkpoint_));
    const std::string path = directory + "/holdfast-bench-variant." + std::to_string(::getpid());
    mapped_bytes_ = memory_for(image_bytes) + sizeof(simpo::object_head) + lines * line_bytes;
    memory_ = map_file(path, mapped_bytes_);
    auto* const head = ::new (memory_ + memory_for(image_bytes)) simpo::object_head{};
    head->log_lines = lines; // they lie behind it
    log_ = std::make_unique<simpo::log_array>(medium(d), *head, false);
    scheme_ = make_scheme(scheme_of(variant), medium(d), memory_, image_bytes, path + ".copies");
}

locked_rows::~locked_rows() {
    scheme_.reset(); // a thread of its own may still copy
    ::munmap(memory_, mapped_bytes_);
}

void locked_rows::all_inc(std::int32_t by) {
    using call = simpo::detail::registered<two_rows, &two_rows::all_inc>;
    const std::scoped_lock held{lock_};
    log(call::entry, call::traits::arguments::store(by).data());
    rows_->all_inc(by);
    called();
}

void locked_rows::row_inc(std::int32_t by, std::uint32_t row) {
    using call = simpo::detail::registered<two_rows, &two_rows::row_inc>;
    const std::scoped_lock held{lock_};
    log(call::entry, call::traits::arguments::store(by, row).data());
    rows_->row_inc(by, row);
    called();
}

void locked_rows::log(const simpo::detail::function& f, const std::uint64_t* arguments) {
    const auto at = log_->append(simpo::record_kind::deferred, &f, arguments);
    HF_ASSERT(at.has_value()); // it has room for the calls of two checkpoints
}

void locked_rows::called() {
    ++calls_;
    if (calls_ % calls_a_flush == 0) {
        log_->commit(log_->head(), log_->head());
        log_->set_done(log_->head());
    }
    if (calls_ % calls_a_checkpoint_ == 0) checkpoint();
}

void locked_rows::checkpoint() {
    scheme_->write(image_.data());
    log_->set_done(log_->head()); // they are in the image
    log_->set_resilient(log_->head());
}

std::int64_t locked_rows::durable_sum() {
    const std::scoped_lock held{lock_};
    checkpoint();
    scheme_->settle();
    return std::launder(reinterpret_cast<const two_rows*>(scheme_->recovered()))->sum();
}

} // namespace hf::bench
