// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoints.hpp"

#include "../temporary_file.hpp"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::bench {
namespace {

/// A word that says which image counts, in a line of its own, and two images behind it.
struct images {
    medium pm;
    std::byte* memory;
    std::size_t bytes;

    std::uint64_t& word() const { return *reinterpret_cast<std::uint64_t*>(memory); }
    std::byte* image(std::uint64_t which) const { return memory + 64 + which * bytes; }
    void say(std::uint64_t value) const {
        pm.store_word(&word(), value);
        pm.order();
    }
    void put(std::uint64_t which, const std::byte* from) const {
        pm.copy(image(which), from, bytes);
        pm.order();
    }
};

class dual final : public checkpoint_scheme {
public:
    explicit dual(const images& in) : in_(in) {}
    void write(const std::byte* object) override {
        const std::uint64_t other = 1 - in_.word();
        in_.put(other, object);
        in_.say(other);
    }
    const std::byte* recovered() override { return image_that_counts(in_.memory, in_.bytes); }

private:
    images in_;
};

/// The word names the image that is not being written.
class double_copy final : public checkpoint_scheme {
public:
    explicit double_copy(const images& in) : in_(in) { in_.say(1); }
    void write(const std::byte* object) override {
        in_.put(0, object);
        in_.say(0);
        in_.put(1, in_.image(0));
        in_.say(1);
    }
    const std::byte* recovered() override { return image_that_counts(in_.memory, in_.bytes); }

private:
    images in_;
};

/// The copy to the backup is made beside the calls, and waited for by the next checkpoint.
class kamino final : public checkpoint_scheme {
public:
    explicit kamino(const images& in) : in_(in) {
        in_.say(1);
        copier_ = std::thread([this] { copy_until_stopped(); });
    }
    ~kamino() override {
        settle();
        state_.store(stop);
        state_.notify_all();
        copier_.join();
    }
    void write(const std::byte* object) override {
        settle();
        in_.put(0, object);
        in_.say(0);
        state_.store(copying, std::memory_order_release);
        state_.notify_all();
    }
    const std::byte* recovered() override { return image_that_counts(in_.memory, in_.bytes); }
    void settle() override { state_.wait(copying, std::memory_order_acquire); }

private:
    enum state : int { idle, copying, stop };
    void copy_until_stopped() {
        for (;;) {
            state_.wait(idle, std::memory_order_acquire);
            if (state_.load(std::memory_order_acquire) == stop) return;
            in_.put(1, in_.image(0));
            in_.say(1);
            state_.store(idle, std::memory_order_release);
            state_.notify_all();
        }
    }

    images in_;
    std::atomic<int> state_{idle};
    std::thread copier_;
};

/// Image 0 is updated in place; image 1 is what is allocated. The word: 2, it is allocated, and a
/// crash leaks nothing, as an open clears the bit; 3, and it is what counts.
class copy_on_write final : public checkpoint_scheme {
public:
    explicit copy_on_write(const images& in) : in_(in) {}
    void write(const std::byte* object) override {
        in_.pm.store_word(&in_.word(), 2);
        in_.put(1, in_.image(0));
        in_.say(3);
        in_.put(0, object);
        in_.say(0);
    }
    const std::byte* recovered() override { return image_that_counts(in_.memory, in_.bytes); }

private:
    images in_;
};

class file_copy final : public checkpoint_scheme {
public:
    file_copy(std::string path, std::size_t bytes)
        : path_(std::move(path)), bytes_(bytes), read_(bytes),
          file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
        if (file_ < 0 || ::posix_fallocate(file_, 0, static_cast<off_t>(4096 + 2 * bytes)) != 0)
            give_up("cannot write " + path_);
    }
    ~file_copy() override {
        ::close(file_);
        ::unlink(path_.c_str());
    }
    void write(const std::byte* object) override {
        const std::uint64_t other = 1 - which_;
        put(object, bytes_, place(other));
        put(&other, sizeof other, 0);
        which_ = other;
    }
    const std::byte* recovered() override {
        std::uint64_t which = 0;
        if (::pread(file_, &which, sizeof which, 0) != sizeof which ||
            ::pread(file_, read_.data(), bytes_, place(which)) != static_cast<ssize_t>(bytes_))
            give_up("cannot read " + path_);
        return read_.data();
    }

private:
    off_t place(std::uint64_t which) const { return static_cast<off_t>(4096 + which * bytes_); }
    void put(const void* from, std::size_t bytes, off_t at) const {
        if (::pwrite(file_, from, bytes, at) != static_cast<ssize_t>(bytes) ||
            ::fdatasync(file_) != 0)
            give_up("cannot write " + path_);
    }

    std::string path_;
    std::size_t bytes_;
    std::vector<std::byte> read_;
    int file_;
    std::uint64_t which_ = 0;
};

} // namespace

const std::byte* image_that_counts(const std::byte* memory, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory, sizeof word);
    return memory + 64 + word % 2 * bytes;
}

std::unique_ptr<checkpoint_scheme> make_scheme(std::string_view name, medium pm, std::byte* memory,
                                               std::size_t bytes, const std::string& path) {
    const images in{pm, memory, bytes};
    if (name == "dual") return std::make_unique<dual>(in);
    if (name == "double") return std::make_unique<double_copy>(in);
    if (name == "kamino") return std::make_unique<kamino>(in);
    if (name == "cow") return std::make_unique<copy_on_write>(in);
    if (name == "file") return std::make_unique<file_copy>(path, bytes);
    give_up("no checkpoint scheme is named " + std::string(name));
}

} // namespace hf::bench
