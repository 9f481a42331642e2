// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file system on a block device that loses power: what it may hold after each recorded event.
//
// (1) A sync of a file has made durable what was written before, and its size. Of later writes each
//     sector may be there in any of its versions, and the size may be any it had.
// (2) Names that a directory's sync has not covered may be there or not, each by itself.
// (3) A sector is old or new. Bytes never written read as zeros.
#pragma once

#include "recorder.hpp"

#include <functional>
#include <map>
#include <random>

namespace hf::power_test {

using content = std::vector<char>;
/// The contents by name.
using names = std::map<std::string, content>;

class device {
public:
    device(std::uint64_t sector_bytes, unsigned states_max)
        : sector_bytes_(sector_bytes), states_max_(states_max) {}
    /// Takes an event; then calls 'visit' with states that a failure may leave: all of them if they
    /// are at most 'states_max', else some.
    void take(const file_event& e);
    void visit(const std::function<void(const names&)>& visit);
    /// What the next process sees if this one is killed here: everything, durable or not.
    names seen() const;

private:
    struct file {
        content bytes;                    // durable
        std::uint64_t size = 0;           // by now
        std::vector<std::uint64_t> sizes; // since the last sync; [0] the durable one
        std::map<std::uint64_t, std::vector<content>> sectors; // since then; [0] the durable one
    };
    struct naming {
        std::string name;
        std::uint64_t inode; // 0: the name goes
    };
    names chosen(const std::function<std::size_t(std::size_t)>& choose) const;

    std::uint64_t sector_bytes_;
    unsigned states_max_;
    std::map<std::uint64_t, file> files_;
    std::map<std::string, std::uint64_t> named_; // durable
    std::vector<naming> namings_;
    std::mt19937 random_{1};
};

} // namespace hf::power_test
