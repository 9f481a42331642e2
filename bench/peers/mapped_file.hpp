// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of zeros in memory, for the floors.
#pragma once

#include "../map_under_test.hpp"
#include "../temporary_file.hpp"

#include <cstddef>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hf::bench {

class mapped_file {
public:
    explicit mapped_file(const map_options& given)
        : file_(given.directory, "floor"), size_(pool_bytes(given)) {
        const int descriptor = ::open(file_.path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        if (descriptor < 0 || posix_fallocate(descriptor, 0, static_cast<off_t>(size_)) != 0)
            give_up("cannot make " + file_.path());
        void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                            MAP_SHARED | (given.prefault ? MAP_POPULATE : 0), descriptor, 0);
        close(descriptor);
        if (mapped == MAP_FAILED) give_up("cannot map " + file_.path());
        bytes_ = static_cast<std::byte*>(mapped);
    }
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file() { munmap(bytes_, size_); }

    std::byte* bytes() const noexcept { return bytes_; }
    std::uint64_t size() const noexcept { return size_; }
    bool holds(const void* end) const noexcept {
        return static_cast<const std::byte*>(end) <= bytes_ + size_;
    }

private:
    temporary_file file_;
    std::uint64_t size_;
    std::byte* bytes_ = nullptr;
};

} // namespace hf::bench
