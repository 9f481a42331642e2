// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct node { node* next; };

// [bad]
HF_TXFUNC void push(node** head) noexcept {
    node local{*head};
    *head = &local;                   // error: address of a local variable is stored
}
// [/bad]
