// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool in memory at its canonical address, where it can be opened 200 000 times a second.
#pragma once

#include <open/pool_impl.hpp>
#include <pool/os_file.hpp>

#include <holdfast/pool.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace hf::check {

class pool_image {
public:
    /// Makes a pool by 'made_with' in a file on tmpfs, runs 'setup' on it, closes it, and takes the
    /// file's bytes over, to be opened by 'options'.
    static result<pool_image> make(const open_options& options, const open_options& made_with,
                                   const std::function<void(pool&)>& setup);
    ~pool_image();
    pool_image(pool_image&&) noexcept;
    pool_image& operator=(pool_image&&) = delete;

    /// The pool's memory: as much as it may grow to, and room for a seal behind that.
    std::span<std::byte> memory() const noexcept { return memory_; }
    /// The bytes that setup left.
    const std::vector<std::byte>& initial() const noexcept { return initial_; }
    void reset() noexcept;
    /// Opens the present contents of memory(), after a failure of the machine or of a process
    /// alone. Pending sections are recovered in this order. 'sealed': closing leaves a seal.
    result<pool> open(const recovery_order& order = {}, bool power_failed = true,
                      bool sealed = false);
    const open_options& options() const noexcept { return options_; }

private:
    explicit pool_image(const open_options& options) : options_(options) {}
    open_options options_;
    std::span<std::byte> memory_;
    std::vector<std::byte> initial_;
    std::unique_ptr<memory_image> file_;
};

} // namespace hf::check
