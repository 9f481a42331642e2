; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Stores that may reach PM go to the write buffer; others stay.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s -o %t
; RUN: FileCheck %s < %t
; RUN: FileCheck %s --check-prefix=ENTRY < %t

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; ENTRY-LABEL: define void @scalar(
; ENTRY: call i32 @hf_redo_begin(ptr @scalar.hf_redo,
; ENTRY: invoke void @scalar.hf_body(
; ENTRY: call void @hf_redo_commit_or_throw()
define void @scalar(ptr %p) #0 {
; CHECK-LABEL: define internal void @scalar.hf_body(
; CHECK-NEXT: %[[Q:.*]] = call ptr @hf_redo_write(ptr %p, i64 8)
; CHECK-NEXT: store i64 7, ptr %[[Q]], align 8
; CHECK-NEXT: ret void
  store i64 7, ptr %p, align 8, !tbaa !0
  ret void
}

; Bits that fill no byte, and a vector of half the buffer's grain's alignment.
define void @small(ptr %p, i1 %bit, <2 x i64> %pair) #0 {
; CHECK-LABEL: define internal void @small.hf_body(
; CHECK: %[[A:.*]] = call ptr @hf_redo_write(ptr %p, i64 1)
; CHECK-NEXT: store i1 %bit, ptr %[[A]], align 1
; CHECK: %[[B:.*]] = call ptr @hf_redo_write(ptr %p, i64 16)
; CHECK-NEXT: store <2 x i64> %pair, ptr %[[B]], align 16
; CHECK: store <2 x i64> %pair, ptr %[[C:.*]], align 16
; CHECK-NEXT: call void @hf_redo_put(ptr %p, ptr %[[C]], i64 16)
  store i1 %bit, ptr %p
  store <2 x i64> %pair, ptr %p, align 64
  store <2 x i64> %pair, ptr %p, align 8
  ret void
}

; What is wide, odd or not aligned is put: the bytes that are stored, and no padding.
define void @put(ptr %p, <4 x i64> %wide, i24 %odd, x86_fp80 %long) #0 {
; CHECK-LABEL: define internal void @put.hf_body(
; CHECK: call void @hf_redo_put(ptr %p, ptr %{{.*}}, i64 32)
; CHECK: call void @hf_redo_put(ptr %p, ptr %{{.*}}, i64 3)
; CHECK: call void @hf_redo_put(ptr %p, ptr %{{.*}}, i64 10)
; CHECK: call void @hf_redo_put(ptr %p, ptr %{{.*}}, i64 8)
; CHECK-NOT: store {{.*}} ptr %p
; CHECK: ret void
  store <4 x i64> %wide, ptr %p, align 32
  store i24 %odd, ptr %p, align 4
  store x86_fp80 %long, ptr %p, align 16
  store i64 1, ptr %p, align 4
  ret void
}

define void @aggregate(ptr %p, { i8, [2 x i32] } %value) #0 {
; CHECK-LABEL: define internal void @aggregate.hf_body(
; CHECK: call ptr @hf_redo_write(ptr %p, i64 1)
; CHECK: %[[ONE:.*]] = getelementptr i8, ptr %p, i64 4
; CHECK: call ptr @hf_redo_write(ptr %[[ONE]], i64 4)
; CHECK: %[[TWO:.*]] = getelementptr i8, ptr %[[ONE]], i64 4
; CHECK: call ptr @hf_redo_write(ptr %[[TWO]], i64 4)
; CHECK: ret void
  store { i8, [2 x i32] } %value, ptr %p, align 4
  ret void
}

; Locals are nobody else's, fresh memory is reached by nothing until the commit.
define void @elsewhere() #0 {
; CHECK-LABEL: define internal void @elsewhere.hf_body(
; CHECK-NOT: hf_redo
; CHECK: store i64 1, ptr %local
; CHECK-NOT: hf_redo
; CHECK: call void @hf_redo_note(ptr %fresh, i64 16)
; CHECK-NEXT: store i64 %x, ptr %fresh
; CHECK-NEXT: store i64 3, ptr %next
; CHECK-NEXT: ret void
  %local = alloca i64
  store i64 1, ptr %local
  %fresh = call ptr @hf_alloc(i64 16)
  %next = getelementptr i8, ptr %fresh, i64 8
  %x = load i64, ptr %local
  store i64 %x, ptr %fresh
  store i64 3, ptr %next
  ret void
}

; Between a note and its stores no call of the runtime may come.
define void @note_and_load(ptr %p) #0 {
; CHECK-LABEL: define internal void @note_and_load.hf_body(
; CHECK: call ptr @hf_redo_write(
; CHECK: call void @hf_redo_note(ptr %fresh, i64 8)
; CHECK-NEXT: store i64 2, ptr %fresh
; CHECK: call ptr @hf_redo_read(ptr %p, i64 8)
; CHECK: call void @hf_redo_note(ptr %next, i64 8)
; CHECK-NEXT: store i64 %x, ptr %next
  %fresh = call ptr @hf_alloc(i64 16)
  %next = getelementptr i8, ptr %fresh, i64 8
  store i64 1, ptr %p
  store i64 2, ptr %fresh
  %x = load i64, ptr %p
  store i64 %x, ptr %next
  ret void
}

declare ptr @hf_alloc(i64)
attributes #0 = { noinline "holdfast.txfunc" }
!0 = !{!1, !1, i64 0}
!1 = !{!"long", !2}
!2 = !{!"root"}
