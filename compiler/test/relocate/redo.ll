; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What a section of engine redo stores lies in no pool until the commit: its pointers would not be
; translated.
; RUN: not %hf_clang -O1 -mllvm -holdfast-relocatable -mllvm -holdfast-engine=redo -c -x ir %s -o %t.o 2>&1 | FileCheck %s
; CHECK: error: -holdfast-relocatable does not work with sections of engine redo

target triple = "x86_64-pc-linux-gnu"
define void @f(ptr %p) #0 {
  store ptr %p, ptr %p
  ret void
}
attributes #0 = { noinline "holdfast.txfunc" }
