// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct node { node* next; };
struct list { node* head; };

// [bad]
HF_TXFUNC void push(list* l) noexcept {
    l->head = new node{l->head};      // error: volatile allocation by
}
// [/bad]
