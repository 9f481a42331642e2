; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is not reported: memory that is no mapping, functions that say so.
; RUN: %hf_opt -passes=holdfast-trace,verify %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

define i64 @local(i64 %i) {
; CHECK-LABEL: define i64 @local(
; CHECK-NOT: hf_trace
; CHECK: ret i64
  %a = alloca [8 x i64]
  %p = getelementptr [8 x i64], ptr %a, i64 0, i64 %i
  store i64 1, ptr %p
  %x = load i64, ptr %a
  ret i64 %x
}

; One of two origins may be PM.
define i64 @local_or_not(i1 %c, ptr %p) {
; CHECK-LABEL: define i64 @local_or_not(
; CHECK: call void @hf_trace_load(ptr %q, i64 8)
  %a = alloca i64
  %q = select i1 %c, ptr %a, ptr %p
  %x = load i64, ptr %q
  ret i64 %x
}

define void @by_value(ptr byval(i64) %p) {
; CHECK-LABEL: define void @by_value(
; CHECK-NOT: hf_trace
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}

@global = global [8 x i64] zeroinitializer
@constant = constant i64 1
@per_thread = thread_local global i64 0

define i64 @globals(i64 %i) {
; CHECK-LABEL: define i64 @globals(
; CHECK-NOT: hf_trace
; CHECK: ret i64
  %p = getelementptr [8 x i64], ptr @global, i64 0, i64 %i
  %x = load i64, ptr @constant
  store i64 %x, ptr %p
  %t = call ptr @llvm.threadlocal.address.p0(ptr @per_thread)
  %y = load i64, ptr %t
  ret i64 %y
}

; A pointer kept in a global is another matter.
define i64 @through_global() {
; CHECK-LABEL: define i64 @through_global(
; CHECK-NEXT: %p = load ptr, ptr @global
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
  %p = load ptr, ptr @global
  %x = load i64, ptr %p
  ret i64 %x
}

; fs and gs.
define i64 @segment() {
; CHECK-LABEL: define i64 @segment(
; CHECK-NOT: hf_trace
; CHECK: ret i64
  %x = load i64, ptr addrspace(257) null
  ret i64 %x
}

define void @untraced(ptr %p) disable_sanitizer_instrumentation {
; CHECK-LABEL: define void @untraced(
; CHECK-NOT: hf_trace
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}

; The checker's own.
define void @hf_trace_store(ptr %p, i64 %n) {
; CHECK-LABEL: define void @hf_trace_store(
; CHECK-NOT: call
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}

define void @naked(ptr %p) naked {
; CHECK-LABEL: define void @naked(
; CHECK-NOT: hf_trace
; CHECK: unreachable
  call void asm "ret", ""()
  unreachable
}

; Another module's body, shown for optimisation only.
define available_externally void @shown(ptr %p) {
; CHECK-LABEL: define available_externally void @shown(
; CHECK-NOT: hf_trace
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}

declare ptr @llvm.threadlocal.address.p0(ptr)
