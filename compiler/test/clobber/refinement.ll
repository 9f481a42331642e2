; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; The refinement of Clobber Fig. 5, on and off: candidates that can never be the first write to an
; input.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 %s | FileCheck %s --check-prefixes=CHECK,ON
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 -holdfast-refine=0 %s | FileCheck %s --check-prefixes=CHECK,OFF

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; Unexposed: the read may see *p, but then the section wrote that itself.
define void @unexposed(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @unexposed.hf_body(
; CHECK: call void @hf_clobber_note(ptr %p, i64 8)
; CHECK-NEXT: store i64 1, ptr %p
; ON-NOT: hf_clobber_log
; OFF: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: store i64 %x, ptr %p
  store i64 1, ptr %p
  %x = load i64, ptr %q
  store i64 %x, ptr %p
  ret void
}

; Unexposed in a loop: from the second iteration on, the read may see *p, but not as an input.
define void @unexposed_in_loop(ptr %p, ptr %q, i64 %n) #0 {
; CHECK-LABEL: define internal void @unexposed_in_loop.hf_body(
; ON-NOT: hf_clobber_log
; OFF: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: store i64 %i, ptr %p
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  store i64 %i, ptr %p
  %x = load i64, ptr %q
  %next = add i64 %i, %x
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Unexposed, where the first write does not dominate the last.
define void @unexposed_on_the_path(ptr %p, ptr %q, i1 %c) #0 {
; CHECK-LABEL: define internal void @unexposed_on_the_path.hf_body(
; CHECK: join:
; ON-NEXT: call void @hf_clobber_note(ptr %p, i64 8)
; OFF-NEXT: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 3, ptr %p
  br i1 %c, label %reads, label %join
reads:
  store i64 1, ptr %p
  %x = load i64, ptr %q
  store i64 %x, ptr %q
  br label %join
join:
  store i64 3, ptr %p
  ret void
}

; Shadowed: the first write to *p was logged.
define void @shadowed(ptr %p) #0 {
; CHECK-LABEL: define internal void @shadowed.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 1, ptr %p
; ON: call void @hf_clobber_note(ptr %half, i64 4)
; OFF: call void @hf_clobber_log(ptr %half, i64 4)
; CHECK-NEXT: store i32 2, ptr %half
  %x = load i64, ptr %p
  store i64 1, ptr %p
  %half = getelementptr i8, ptr %p, i64 4
  store i32 2, ptr %half
  ret void
}

; Shadowed: *q may be *p, but *p was clobbered already.
define void @shadowed_by_the_reads_own_clobber(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @shadowed_by_the_reads_own_clobber.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 %y, ptr %p
; ON: call void @hf_clobber_note(ptr %q, i64 8)
; OFF: call void @hf_clobber_log(ptr %q, i64 8)
; CHECK-NEXT: store i64 2, ptr %q
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  store i64 2, ptr %q
  ret void
}

; Not shadowed: the earlier write covers too little.
define void @too_short(ptr %p) #0 {
; CHECK-LABEL: define internal void @too_short.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 4)
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
  %x = load i64, ptr %p
  store i32 1, ptr %p
  store i64 2, ptr %p
  ret void
}

; Not shadowed: the earlier write is not on every path.
define void @not_every_path(ptr %p, i1 %c) #0 {
; CHECK-LABEL: define internal void @not_every_path.hf_body(
; CHECK: join:
; CHECK-NEXT: call void @hf_clobber_log(ptr %p, i64 8)
  %x = load i64, ptr %p
  br i1 %c, label %then, label %join
then:
  store i64 1, ptr %p
  br label %join
join:
  store i64 2, ptr %p
  ret void
}

; Rule 3 needs one instance of the address: %p is another one in each iteration, so the last store
; may be the first to overwrite what an earlier iteration read.
define void @clobbered_elsewhere(ptr %first, ptr %q) #0 {
; CHECK-LABEL: define internal void @clobbered_elsewhere.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: call void @hf_clobber_log(ptr %q, i64 8)
entry:
  br label %loop
loop:
  %p = phi ptr [ %first, %entry ], [ %next, %loop ]
  %link = getelementptr i8, ptr %p, i64 8
  %next = load ptr, ptr %link
  %x = load i64, ptr %p
  store i64 0, ptr %p
  store i64 1, ptr %q
  %more = icmp ne ptr %next, null
  br i1 %more, label %loop, label %done
done:
  ret void
}

attributes #0 = { noinline "holdfast.txfunc" }

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
