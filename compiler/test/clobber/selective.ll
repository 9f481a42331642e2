; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engine selective: undo, but of what the program says needs no log, or need not be durable. What says so
; notes the store; other engines drop it.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=selective %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %s | FileCheck %s --check-prefix=OTHER
; OTHER-NOT: call void @hf_log_free
; OTHER-NOT: call void @hf_lazy

define void @plain(ptr %p) #0 {
; CHECK-LABEL: define void @plain(
; CHECK: call i32 @hf_selective_begin(ptr @plain.hf_selective,
; CHECK: call void @hf_selective_commit()
; CHECK-LABEL: define internal void @plain.hf_body(
; CHECK: call void @hf_selective_log(ptr %p, i64 8)
; CHECK: store i64 7, ptr %p
  store i64 7, ptr %p
  ret void
}

define void @said(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @said.hf_body(
; CHECK-NOT: hf_selective_log
; CHECK-NOT: hf_selective_note
; CHECK: call void @hf_log_free(ptr %p, i64 8)
; CHECK: store i64 7, ptr %p
; CHECK: call void @hf_lazy(ptr %q, i64 8)
; CHECK: store i64 8, ptr %q
; CHECK-NEXT: ret void
; OTHER-LABEL: define internal void @said.hf_body(
; OTHER: call void @hf_undo_log(ptr %p, i64 8)
; OTHER: store i64 7, ptr %p
; OTHER: store i64 8, ptr %q
  call void @hf_log_free(ptr %p, i64 8)
  store i64 7, ptr %p
  call void @hf_lazy(ptr %q, i64 8)
  store i64 8, ptr %q
  ret void
}

; Not what was said: another place, more bytes, and a way here on which nothing was said.
define void @elsewhere(ptr %p) #0 {
; CHECK-LABEL: define internal void @elsewhere.hf_body(
; CHECK: call void @hf_selective_log(ptr %behind, i64 8)
; CHECK: store i64 1, ptr %behind
  %behind = getelementptr i8, ptr %p, i64 8
  call void @hf_log_free(ptr %p, i64 8)
  store i64 1, ptr %behind
  ret void
}

define void @more(ptr %p) #0 {
; CHECK-LABEL: define internal void @more.hf_body(
; CHECK: call void @hf_selective_log(ptr %p, i64 16)
; CHECK-NEXT: store i128 2, ptr %p
  call void @hf_log_free(ptr %p, i64 8)
  store i128 2, ptr %p
  ret void
}

define void @on_one_way(ptr %p, i1 %c) #0 {
; CHECK-LABEL: define internal void @on_one_way.hf_body(
; CHECK: call void @hf_selective_log(ptr %p, i64 8)
; CHECK: store i64 7, ptr %p
  br i1 %c, label %says, label %then
says:
  call void @hf_lazy(ptr %p, i64 8)
  br label %then
then:
  store i64 7, ptr %p
  ret void
}

; Of a loop's addresses it is said of each before its store.
define void @in_a_loop(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @in_a_loop.hf_body(
; CHECK-NOT: hf_selective_log
; CHECK: call void @hf_log_free(ptr %at, i64 8)
; CHECK: store i64 %i, ptr %at
; CHECK-NOT: hf_selective_log
; CHECK: ret void
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  call void @hf_log_free(ptr %at, i64 8)
  store i64 %i, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; What is said does not keep logged writes apart: they share an ordering point.
define void @beside_logged(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @beside_logged.hf_body(
; CHECK: call void @hf_log_ahead(
; CHECK: store i64 1, ptr %p
; CHECK: call void @hf_lazy(ptr %q, i64 8)
  store i64 1, ptr %p
  call void @hf_lazy(ptr %q, i64 8)
  store i64 2, ptr %q
  %third = getelementptr i8, ptr %p, i64 64
  store i64 3, ptr %third
  ret void
}

declare void @hf_log_free(ptr, i64)
declare void @hf_lazy(ptr, i64)
attributes #0 = { noinline "holdfast.txfunc" }

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
