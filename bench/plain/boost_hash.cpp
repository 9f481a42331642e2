// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost's unordered_map; unordered_flat_map came later than Debian 12's Boost 1.74.
#include "containers.hpp"
#include "files.hpp"

#include <boost/unordered_map.hpp>

HF_PLAIN_BEGIN(boost_hash)

using number = std::uint64_t;
using map = boost::unordered_map<number, number, boost::hash<number>, std::equal_to<number>,
                                 hf::allocator<std::pair<const number, number>>>;

constexpr subject all[] = {keyed<map>("boost::unordered_map")};
subjects list() { return {all, 1}; }

HF_PLAIN_END
