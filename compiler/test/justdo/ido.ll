; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engine ido: writes that change nothing which was read since the last step are made in place, and noted.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=ido %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=ido -disable-output %s

; Three stores, and the section's begin and end.
; CHECK-LABEL: define void @fills(
; CHECK: call void @hf_justdo_lock(ptr null, i32 2, i32
; CHECK: store i64 1, ptr
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 8)
; CHECK: store i64 2, ptr
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 8)
; CHECK: store i64 3, ptr
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 8)
; CHECK-NOT: call void @hf_justdo_store
; CHECK: call void @hf_justdo_unlock(ptr null, i32 2, i32
define void @fills(ptr %p) "holdfast.txfunc" {
  store i64 1, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 8
  store i64 2, ptr %q, align 8
  %r = getelementptr i8, ptr %p, i64 16
  store i64 3, ptr %r, align 8
  ret void
}

; What the section has read before it begins is in its frame: one increment is no step. The second one's word may be the
; first one's, which was read since: it is.
; CHECK-LABEL: define void @two(
; CHECK: call void @hf_justdo_lock(ptr null, i32 2, i32
; CHECK: store i64 %{{.*}}, ptr
; CHECK: call void @hf_justdo_note(
; CHECK: load i64, ptr
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 {{.*}}, i32 8, i32
; CHECK-NOT: call void @hf_justdo_store
; CHECK: call void @hf_justdo_unlock(
define void @two(ptr %p, ptr %q) "holdfast.txfunc" {
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p, align 8
  %v = load i64, ptr %q
  %w = add i64 %v, 1
  store i64 %w, ptr %q, align 8
  ret void
}

; In a loop the store comes before the next iteration's load: it may be another word, or this one.
; CHECK-LABEL: define void @shifts(
; CHECK: load i64, ptr
; CHECK: call void @hf_justdo_store(
define void @shifts(ptr %p, i64 %n) "holdfast.txfunc" {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %from = getelementptr i64, ptr %p, i64 %i
  %x = load i64, ptr %from
  %next = add i64 %i, 1
  %to = getelementptr i64, ptr %p, i64 %next
  store i64 %x, ptr %to, align 8
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Others may look at an atomic word at once: a step.
; CHECK-LABEL: define void @publishes(
; CHECK: store i64 1, ptr
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 2, i32 8, i32
define void @publishes(ptr %p, ptr %q) "holdfast.txfunc" {
  store i64 1, ptr %p, align 8
  store atomic i64 2, ptr %q release, align 8
  ret void
}
