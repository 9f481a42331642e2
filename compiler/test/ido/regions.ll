; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engine ido: where idempotent regions end, and the bytes of registers each boundary logs.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=ido %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

declare noalias ptr @hf_alloc(i64)
declare ptr @hf_vlog_preserve(ptr, i64)

; CHECK-LABEL: define void @increment(ptr %p)
; CHECK: call i32 @hf_ido_begin(
; CHECK: call void @hf_ido_commit()

; The store overwrites what the region has read; the sum is needed behind the cut.
define void @increment(ptr %p) #0 {
; CHECK-LABEL: define internal void @increment.hf_body(
; CHECK: %y = add
; CHECK-NEXT: call void @hf_ido_region(i64 8)
; CHECK-NEXT: call void @hf_ido_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 %y, ptr %p
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; What the region has written itself it may overwrite; clobber logs nothing, either.
define i64 @own_result(ptr %p) #0 {
; CHECK-LABEL: define internal i64 @own_result.hf_body(
; CHECK-NOT: hf_ido_region
; CHECK: ret i64
  store i64 1, ptr %p
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret i64 %y
}

; Behind the cut the word is the region's own.
define void @twice(ptr %p) #0 {
; CHECK-LABEL: define internal void @twice.hf_body(
; CHECK-COUNT-1: call void @hf_ido_region(i64 8)
; CHECK-NOT: hf_ido_region
; CHECK: ret void
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  %z = load i64, ptr %p
  %u = mul i64 %z, 3
  store i64 %u, ptr %p
  ret void
}

; Clobber logs nothing: the section has written the word itself. A region does not know what an earlier
; one has written.
define void @between(ptr %p) #0 {
; CHECK-LABEL: define internal void @between.hf_body(
; CHECK: store i64 1
; CHECK: call void @hf_ido_region(i64 0)
; CHECK-NEXT: %n = call ptr @hf_alloc
; CHECK: call void @hf_ido_region(i64 8)
; CHECK-NEXT: call void @hf_ido_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 %y
; CHECK: ret void
  store i64 1, ptr %p
  %n = call ptr @hf_alloc(i64 16)
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; A loop that only reads is part of its region.
define i64 @search(ptr %from, i64 %key) #0 {
; CHECK-LABEL: define internal i64 @search.hf_body(
; CHECK-NOT: hf_ido_region
; CHECK: ret i64
entry:
  br label %loop
loop:
  %p = phi ptr [ %from, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %p
  %at = getelementptr i8, ptr %p, i64 8
  %found = load i64, ptr %at
  %more = icmp ne i64 %found, %key
  br i1 %more, label %loop, label %done
done:
  ret i64 %found
}

; One that overwrites what it reads ends a region at its header, where its variable changes, and at the store.
define void @raise(ptr %a, i64 %n) #0 {
; CHECK-LABEL: define internal void @raise.hf_body(
; CHECK: %i = phi
; CHECK-NEXT: call void @hf_ido_region(i64 8)
; The sum and the next index:
; CHECK: %y = add
; CHECK-NEXT: call void @hf_ido_region(i64 16)
; CHECK-NEXT: call void @hf_ido_log(ptr %at, i64 8)
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %at = getelementptr i8, ptr %a, i64 8
  %x = load i64, ptr %at
  %y = add i64 %x, %i
  store i64 %y, ptr %at
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal i64 @helper(ptr %p) noinline {
  %x = load i64, ptr %p
  ret i64 %x
}

; A call is a region: its result is what the region before the second cut has set.
define void @calls(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @calls.hf_body(
; CHECK: %k = load
; CHECK-NEXT: call void @hf_ido_region(i64 8)
; CHECK-NEXT: %x = call i64 @helper.hf(
; CHECK-NEXT: call void @hf_ido_region(i64 8)
; CHECK: call void @hf_ido_log(ptr %q
  %k = load i64, ptr %p
  %x = call i64 @helper(ptr %p)
  %y = add i64 %k, %x
  store i64 %y, ptr %q
  ret void
}

; The section's beginning is the boundary before its first call. The head is overwritten behind its read.
define void @push(ptr %head) #0 {
; CHECK-LABEL: define internal void @push.hf_body(
; CHECK-NEXT: %n = call ptr @hf_alloc
; CHECK: call void @hf_ido_log(ptr %n, i64 8)
; CHECK-NEXT: store ptr %old, ptr %n
; CHECK-NEXT: call void @hf_ido_region(i64 8)
; CHECK-NEXT: call void @hf_ido_log(ptr %head, i64 8)
; CHECK-NOT: hf_ido_region
; CHECK: ret void
  %n = call ptr @hf_alloc(i64 16)
  %old = load ptr, ptr %head
  store ptr %old, ptr %n
  store ptr %n, ptr %head
  ret void
}

; What the section keeps of volatile memory becomes persistent with its arguments.
define void @keep(ptr %p, ptr %from, i64 %count) #0 {
; CHECK-LABEL: define internal void @keep.hf_body(
; CHECK-NEXT: call void @hf_ido_preserve(i64 %count)
; CHECK-NEXT: %kept = call ptr @hf_vlog_preserve
; CHECK-NOT: hf_ido_region
; CHECK: ret void
  %kept = call ptr @hf_vlog_preserve(ptr %from, i64 %count)
  %x = load i64, ptr %kept
  store i64 %x, ptr %p
  ret void
}

attributes #0 = { "holdfast.txfunc" }
