// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/line.hpp>
#include <check/pool_image.hpp>
#include <pool/header.hpp>

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::check {
namespace {

// For the blocks of a small pool, and for some thousand more.
constexpr std::uint64_t room_for_seal = 64 << 10;

} // namespace

result<pool_image> pool_image::make(const open_options& options, const open_options& made_with,
                                    const std::function<void(pool&)>& setup) {
    pool_image out(options);
    const std::string path = fmt::format("/dev/shm/holdfast_image.{}", ::getpid());
    ::unlink(path.c_str());
    open_options creating = made_with;
    creating.creation = create::always_new;
    {
        auto p = pool::open(path, creating);
        if (!p) return p.error();
        setup(*p);
    }
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    ::unlink(path.c_str());
    pool_header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::uint64_t capacity =
        round_up(std::max<std::uint64_t>(header.max_bytes, bytes.size()), 4096) + room_for_seal;
    auto* at = reinterpret_cast<void*>(header.base_address);
    if (::mmap(at, capacity, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
        return status{errc::address_taken, fmt::format("no memory at {}", at)};
    out.memory_ = {static_cast<std::byte*>(at), capacity};
    out.initial_.resize(capacity);
    std::memcpy(out.initial_.data(), bytes.data(), bytes.size());
    out.file_ =
        std::make_unique<memory_image>(memory_image{out.memory_.data(), bytes.size(), capacity});
    out.options_.creation = create::never;
    out.options_.expert.guard_signals = false; // the checker has its own
    out.reset();
    return out;
}

pool_image::pool_image(pool_image&& other) noexcept
    : options_(std::move(other.options_)), memory_(std::exchange(other.memory_, {})),
      initial_(std::move(other.initial_)), file_(std::move(other.file_)) {}

pool_image::~pool_image() {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

void pool_image::reset() noexcept { std::memcpy(memory_.data(), initial_.data(), initial_.size()); }

result<pool> pool_image::open(const recovery_order& order, bool power_failed, bool sealed) {
    // The size of a file survives with the header that names its end, or is larger.
    file_->size_bytes = memory_.size();
    file_->power_failed = power_failed;
    file_->sealed = sealed;
    auto file = pool_file::open_image(*file_, file_options_of(options_));
    if (!file) return file.error();
    return pool::impl::open(std::move(*file), options_, std::chrono::steady_clock::now(), order);
}

} // namespace hf::check
