// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <string>

// error in a header: the constructor may throw
struct name {
    name() : text("anonymous, and too long for a small string") {}
    std::string text;
};

HF_TXFUNC void create(name** where) noexcept { *where = hf::make<name>(); }
