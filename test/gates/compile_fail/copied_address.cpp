// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct node { node* next; long value; long more[20]; };

HF_TXFUNC void put(node* at, long value) noexcept {
    node local{nullptr, value, {}};
    node copy{&local, value, {}};
    *at = copy;                       // error: address of a local variable
}
