// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a subject should hold: the same operations on volatile containers of the standard library.
#pragma once

#include "subject.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hf::bench::plain {

class model {
public:
    explicit model(shape is);

    bool insert(std::uint64_t key, std::uint64_t value);
    bool erase(std::uint64_t key);
    /// Empty when 'of' holds the same at 'root'; else what differs.
    std::string difference(const subject& of, const void* root) const;

private:
    shape is_;
    std::map<std::uint64_t, std::uint64_t> pairs_;
    std::vector<std::uint64_t> elements_; // of what has no keys
};

} // namespace hf::bench::plain
