// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The corpus by source file: each lists its subjects.
#pragma once

#include "subject.hpp"

namespace hf::bench::plain {
inline namespace HF_STRUCTURES_ENGINE {

// clang-format off
namespace textbook { subjects list(); }
namespace ut_hash { subjects list(); }
namespace boost_trees { subjects list(); }
namespace boost_hash { subjects list(); }
namespace libstdcxx { subjects list(); }
namespace libstdcxx_nodes { subjects list(); }
namespace libcxx { subjects list(); }
// clang-format on

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::bench::plain
