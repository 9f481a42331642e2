; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Write-backs, fences and non-temporal stores of the program's own, as intrinsics and as inline
; assembly; those of the persistence layer are left to it.
; RUN: %hf_opt -passes=holdfast-trace,verify %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

define void @non_temporal(ptr %p) {
; CHECK-LABEL: define void @non_temporal(
; CHECK-NOT: hf_trace_load
; CHECK: store i64 1, ptr %p
; CHECK: call void @hf_trace_nt_store(ptr %p, i64 8)
; CHECK: ret void
  store i64 1, ptr %p, !nontemporal !0
  ret void
}

; The checker follows whole words.
define void @half_a_word(ptr %p) {
; CHECK-LABEL: define void @half_a_word(
; CHECK: call void @hf_trace_load(ptr %p, i64 4)
; CHECK: store i32 1, ptr %p
; CHECK: call void @hf_trace_nt_store(ptr %p, i64 4)
; CHECK: ret void
  store i32 1, ptr %p, !nontemporal !0
  ret void
}

define i64 @non_temporal_load(ptr %p) {
; CHECK-LABEL: define i64 @non_temporal_load(
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
; CHECK: load i64, ptr %p
  %x = load i64, ptr %p, !nontemporal !0
  ret i64 %x
}

define void @write_backs(ptr %p, ptr %q, ptr %r) {
; CHECK-LABEL: define void @write_backs(
; CHECK: call void @llvm.x86.clwb(ptr %p)
; CHECK: call void @hf_trace_flush(ptr %p, i64 1)
; CHECK: call void @llvm.x86.clflushopt(ptr %q)
; CHECK: call void @hf_trace_flush(ptr %q, i64 1)
; CHECK: call void @llvm.x86.sse2.clflush(ptr %r)
; CHECK: call void @hf_trace_clflush(ptr %r, i64 1)
; CHECK: call void @llvm.x86.sse.sfence()
; CHECK-NEXT: call void @hf_trace_fence()
; CHECK: ret void
  call void @llvm.x86.clwb(ptr %p)
  call void @llvm.x86.clflushopt(ptr %q)
  call void @llvm.x86.sse2.clflush(ptr %r)
  call void @llvm.x86.sse.sfence()
  ret void
}

define void @assembly(ptr %p, ptr %q, ptr %r) {
; CHECK-LABEL: define void @assembly(
; CHECK: call void @hf_trace_flush(ptr %p, i64 1)
; CHECK: call void @hf_trace_flush(ptr %q, i64 1)
; CHECK: call void @hf_trace_clflush(ptr %r, i64 1)
; CHECK: asm sideeffect "sfence"
; CHECK-NEXT: call void @hf_trace_fence()
; CHECK: ret void
  call void asm sideeffect "clwb $0", "=*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i64) %p)
  call void asm sideeffect ".byte 0x66; clflush ($0)", "r"(ptr %q)
  call void asm sideeffect "clflush ($0)", "r"(ptr %r)
  call void asm sideeffect "sfence", "~{memory}"()
  ret void
}

; Its memory operands are read and written.
define i64 @operands(ptr %p, ptr %q) {
; CHECK-LABEL: define i64 @operands(
; CHECK: call void @hf_trace_load(ptr %q, i64 8)
; CHECK: asm "movq
; CHECK: call void @hf_trace_store(ptr %p, i64 8)
; CHECK: ret i64
  %x = call i64 asm "movq $2, $0; movq $0, $1", "=r,=*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i64) %q)
  ret i64 %x
}

define void @_ZN2hf7persist5flushEv(ptr %p) {
; CHECK-LABEL: define void @_ZN2hf7persist5flushEv(
; CHECK-NOT: hf_trace
; CHECK: ret void
  store i64 1, ptr %p, !nontemporal !0
  call void @llvm.x86.clwb(ptr %p)
  call void @llvm.x86.sse.sfence()
  ret void
}

declare void @llvm.x86.clwb(ptr)
declare void @llvm.x86.clflushopt(ptr)
declare void @llvm.x86.sse2.clflush(ptr)
declare void @llvm.x86.sse.sfence()
!0 = !{i32 1}
