; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The code of ARM64 for an entry in line. The section's store comes last, the word that counts the entry before it, and
; the entry before that: a killed process leaves a prefix of these (docs/internals/persistency-model.md).
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %s -o %t.ll
; RUN: llc -mtriple=aarch64-linux-gnu -O2 %t.ll -o - | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=clobber %s -o %t.ll
; RUN: llc -mtriple=aarch64-linux-gnu -O2 %t.ll -o - | FileCheck %s

target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"

define void @bump(ptr %p) #0 {
; CHECK-LABEL: {{^}}bump.hf_body:
; CHECK: adrp {{.*}}:gottprel:hf_words
; CHECK: b.hs
; CHECK-NOT: {{st[lu]?r|stp}} {{.*}}[x0]
; CHECK: stp x{{[0-9]+}}, x{{[0-9]+}}, [x[[NEXT:[0-9]+]]]
; CHECK-NOT: {{st[lu]?r|stp}} {{.*}}[x0]
; CHECK: stlr x{{[0-9]+}}, [x{{[0-9]+}}]
; CHECK-NEXT: MEMBARRIER
; CHECK: str x{{[0-9]+}}, [x0]
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  ret void
}

attributes #0 = { noinline nounwind "holdfast.txfunc" }
