// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the source on, at every level: a store that names a member of hf::derived is lazy with engine selective. With
// other engines it is a plain store. Links and other members cannot be confused.
// RUN: %hf_clangxx -O0 -mllvm -holdfast-engine=selective -DHF_ENGINE=selective -Rpass=holdfast -Rpass-missed=holdfast -c %s -o /dev/null 2>&1 | FileCheck %s
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=selective -DHF_ENGINE=selective -Rpass=holdfast -Rpass-missed=holdfast -c %s -o /dev/null 2>&1 | FileCheck %s
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=undo -DHF_ENGINE=undo -Rpass=holdfast -c %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNDO --allow-empty
// UNDO-NOT: is lazy
// RUN: not %hf_clangxx -fsyntax-only -mllvm -holdfast-engine=selective -DHF_ENGINE=selective -DWRONG=1 %s 2>&1 | FileCheck %s --check-prefix=LINK
// LINK: a derived member cannot be a link: recovery finds it by the links
// RUN: not %hf_clangxx -fsyntax-only -mllvm -holdfast-engine=selective -DHF_ENGINE=selective -DWRONG=2 %s 2>&1 | FileCheck %s --check-prefix=VECTOR
// VECTOR: a link is a pointer, or an array of them
#include <holdfast/author/derived.hpp>
#include <holdfast/txfunc.hpp>

struct node {
  node *child[2];
  node *parent;
};
struct tree {
  node *top;
  long count;
  long not_a_link;
};

#if WRONG == 1
using recovery = hf::derived::recovery<hf::derived::links<&tree::top, &node::child, &node::parent>,
                                       hf::derived::parent<&node::parent>>;
#elif WRONG == 2
struct numbered {
  long left;
  numbered *parent;
};
struct forest {
  numbered *top;
};
using recovery = hf::derived::recovery<hf::derived::links<&forest::top, &numbered::left>,
                                       hf::derived::parent<&numbered::parent>>;
#else
using recovery = hf::derived::recovery<hf::derived::links<&tree::top, &node::child>,
                                       hf::derived::parent<&node::parent>,
                                       hf::derived::count<&tree::count>>;
#endif

void use(hf::pool &in) { recovery::rebuild(in); }

#if !defined(WRONG)
HF_TXFUNC void lift(tree *in) noexcept {
  node *old = in->top, *lifted = old->child[1];
  // CHECK-DAG: derived.cpp:[[@LINE+1]]:{{.*}}remark: its old bytes are logged
  in->top = lifted;
  // CHECK-DAG: derived.cpp:[[@LINE+1]]:{{.*}}remark: is lazy: hf::derived finds the member again
  lifted->parent = nullptr;
  // CHECK-DAG: derived.cpp:[[@LINE+1]]:{{.*}}remark: is lazy: hf::derived finds the member again
  old->parent = lifted;
  // CHECK-DAG: derived.cpp:[[@LINE+1]]:{{.*}}remark: its old bytes are logged
  lifted->child[0] = old;
  // CHECK-DAG: derived.cpp:[[@LINE+1]]:{{.*}}remark: is lazy: hf::derived finds the member again
  ++in->count;
}
#endif
