; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Composed with an engine: bodies and clones of sections are traced, around the engine's calls.
; RUN: %hf_opt -passes=holdfast-instrument,holdfast-trace,verify -holdfast-engine=clobber %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument,holdfast-trace,verify -holdfast-engine=undo %s | FileCheck %s

; CHECK-LABEL: define internal void @section.hf_body(
; CHECK: call void @bump.hf
; CHECK: call void @hf_{{clobber|undo}}_log(ptr %q, i64 8)
; CHECK: store i64 3, ptr %q
; CHECK: call void @hf_trace_store(ptr %q, i64 8)

; CHECK-LABEL: define internal void @bump.hf
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
; CHECK: %x = load i64, ptr %p
; CHECK: call void @hf_{{clobber|undo}}_log(ptr %p, i64 8)
; CHECK: store i64 %y, ptr %p
; CHECK: call void @hf_trace_store(ptr %p, i64 8)

define void @bump(ptr %p) {
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

define void @section(ptr %p, ptr %q) noinline "holdfast.txfunc" {
  call void @bump(ptr %p)
  store i64 3, ptr %q
  ret void
}
