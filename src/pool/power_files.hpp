// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mode power, seen from the pool's file: the log beside it, what an earlier open has left there,
// and the way of the image's pages home.
//
// (1) The image is private: no store reaches the pool's file but through the log, or when the pool
//     is closed.
// (2) The log has its name, in whole, before the pool's header asks for it, and loses it after.
// (3) While the header asks for the log, the pool is the file with the log's lines put over it.
#pragma once

#include <pool/os_file.hpp>
#include <power/found_log.hpp>
#include <power/log.hpp>

#include <memory>
#include <optional>
#include <string>

namespace hf {

struct pool_header;

class power_files {
public:
    /// Requires: 'home', the pool's file, outlives it. Throws std::bad_alloc.
    power_files(const std::string& pool_path, os_file& home);

    /// Beside the file itself, whichever of its names is a link to it or leads through one.
    static std::string log_path_of(const std::string& pool_path);

    /// Reads the log that an unclean end has left; writes nothing.
    ///
    /// Errors:   torn (missing, or not this open's), corrupt, truncated, wrong_version, in_use …
    status find(const pool_header& h, bool read_only);
    /// The number of lines that were found and are not home.
    std::uint64_t found_lines() const noexcept;
    std::uint64_t found_batches() const noexcept;
    /// Puts the lines found over the image.
    void put_over(std::byte* base) const noexcept;
    /// Takes what is stored to the image from here on.
    void watch(std::byte* base, const pool_header& h);
    /// Brings home what was found, and begins a log for open 'generation', whose header is durable
    /// on return. The caller makes its name durable before the pool's header asks for it, and syncs
    /// the directory (2).
    ///
    /// Errors:   exists (another file has the log's name), pool_full, io_error …
    status start(const pool_header& h, std::uint64_t generation);
    /// Brings home every difference of the image, [first, end) of it. The contents of the log are
    /// durable before.
    status bring_image_home(const std::byte* base, std::uint64_t first, std::uint64_t end);
    /// The pool is closed, or gone: nobody needs the log any more. Another log that has its name by
    /// now is left alone.
    void remove_log() noexcept;

    power::log& lines() noexcept { return log_; }

private:
    class blocks final : public power::block_file {
    public:
        explicit blocks(os_file& of) noexcept : of_(&of) {}
        status read(std::uint64_t at, void* to, std::size_t bytes) const override;
        status write(std::uint64_t at, const void* from, std::size_t bytes) override;
        void start(std::uint64_t at, std::size_t bytes) noexcept override;
        status sync() override { return of_->sync_data(); }
        int descriptor() const noexcept { return of_->descriptor(); }

    private:
        os_file* of_;
    };
    status open_log(bool read_only);
    bool log_is_open() const noexcept { return log_file_->descriptor() >= 0; }
    std::uint64_t room_bytes(const pool_header& h) const noexcept;
    status is_void(const pool_header& h, const power::log_header& old, std::uint64_t size_bytes);
    status make_log(const pool_header& h);
    status begin_log(const pool_header& h, std::uint64_t generation);

    std::string path_; // of the log, from the root of all directories where that is known
    blocks home_;
    std::optional<os_file> log_file_; // always one, open or not
    blocks log_blocks_;
    bool named_ = true; // the log's file has its name
    power::log_header sizes_{};
    std::optional<power::found_log> found_;
    power::log log_; // ends before its files do
};

} // namespace hf
