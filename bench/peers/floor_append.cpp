// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The least that durability on a disk can cost: a batch's keys and values in one write to a file
// whose blocks are written already, and one fdatasync. A floor to compare with, not a map to use:
// it finds nothing again.
#include "../temporary_file.hpp"
#include "peers.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace hf::bench {
namespace {

class floor_append final : public map_under_test {
public:
    explicit floor_append(const map_options& given)
        : value_bytes_(given.value_bytes), file_(given.directory, "append") {
        descriptor_ = ::open(file_.path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        const std::vector<std::byte> zeros(1 << 20);
        for (std::uint64_t at = 0; descriptor_ >= 0 && at < file_bytes; at += zeros.size())
            if (::pwrite(descriptor_, zeros.data(), zeros.size(), static_cast<off_t>(at)) !=
                static_cast<ssize_t>(zeros.size()))
                give_up("cannot write " + file_.path());
        if (descriptor_ < 0 || ::fsync(descriptor_) != 0) give_up("cannot make " + file_.path());
    }
    ~floor_append() override { ::close(descriptor_); }

    bool insert(std::uint64_t key, const void* value) noexcept override {
        const std::scoped_lock held{lock_};
        const auto* const bytes = static_cast<const std::byte*>(value);
        const auto* const name = reinterpret_cast<const std::byte*>(&key);
        batch_.insert(batch_.end(), name, name + sizeof key);
        batch_.insert(batch_.end(), bytes, bytes + value_bytes_);
        return true;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        return insert(key, value);
    }
    bool find(std::uint64_t, void*) noexcept override { return false; }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    void end_batch() noexcept override {
        const std::scoped_lock held{lock_};
        if (batch_.empty()) return;
        if (next_ + batch_.size() > file_bytes) next_ = 0;
        if (::pwrite(descriptor_, batch_.data(), batch_.size(), static_cast<off_t>(next_)) !=
                static_cast<ssize_t>(batch_.size()) ||
            ::fdatasync(descriptor_) != 0)
            give_up("cannot write " + file_.path());
        next_ += (batch_.size() + 4095) / 4096 * 4096;
        batch_.clear();
    }
    map_facts facts() const override {
        return {false, false, false, "one write and one fdatasync a batch; nothing is found again"};
    }

private:
    static constexpr std::uint64_t file_bytes = 64 << 20;

    std::size_t value_bytes_;
    temporary_file file_;
    int descriptor_ = -1;
    std::uint64_t next_ = 0;
    std::mutex lock_;
    std::vector<std::byte> batch_;
};

} // namespace

std::unique_ptr<map_under_test> make_map_floor_append(const map_options& given) {
    return std::make_unique<floor_append>(given);
}

} // namespace hf::bench
