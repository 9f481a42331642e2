; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Log entries made ahead of their writes: what shares an ordering point, and what does not.
; RUN: %hf_opt -passes=holdfast-instrument %s | FileCheck %s --check-prefixes=CHECK,ON
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %s | FileCheck %s --check-prefixes=UNDO
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 %s | FileCheck %s --check-prefixes=CHECK,OFF

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; Fields that touch: one entry, one note.
define void @adjacent(ptr %p) #0 {
; CHECK-LABEL: define internal void @adjacent.hf_body(
; ON: call void @hf_log_ahead(ptr %p, i64 16)
; ON: call void @hf_clobber_note(ptr %p, i64 16)
; ON-NOT: call
; OFF: call void @hf_clobber_log(ptr %p, i64 8)
; OFF: call void @hf_clobber_log(ptr %q, i64 8)
; CHECK: ret void
; UNDO-LABEL: define internal void @adjacent.hf_body(
; UNDO: call void @hf_log_ahead(ptr %p, i64 16)
; UNDO-NOT: hf_undo_log
; UNDO: ret void
  %x = load i64, ptr %p
  store i64 7, ptr %p
  %q = getelementptr i8, ptr %p, i64 8
  %y = load i64, ptr %q
  store i64 8, ptr %q
  ret void
}

; A gap may be another section's: two entries, of which the write's own is one.
define void @gap(ptr %p) #0 {
; CHECK-LABEL: define internal void @gap.hf_body(
; ON: call void @hf_log_ahead(ptr %{{.*}}, i64 8)
; ON-NEXT: call void @hf_clobber_log(ptr %p, i64 8)
; ON-NEXT: store i64 7, ptr %p
; ON: call void @hf_clobber_note(ptr %q, i64 8)
; ON-NEXT: store i64 8, ptr %q
; CHECK: ret void
  %q = getelementptr i8, ptr %p, i64 16
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  store i64 7, ptr %p
  store i64 8, ptr %q
  ret void
}

; The load may see the first write: its entry waits.
define void @moved(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @moved.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: call void @hf_clobber_log(ptr %r, i64 8)
; CHECK: ret void
  %o = load ptr, ptr %p
  store ptr %q, ptr %p
  %r = load ptr, ptr %q
  %x = load i64, ptr %r
  store i64 8, ptr %r
  ret void
}

; By its type it does not; but the write keeps a call of its own.
define void @typed(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @typed.hf_body(
; ON: %[[R:.*]] = load ptr, ptr %q
; ON-NEXT: call void @hf_log_ahead(ptr %[[R]], i64 8)
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: call void @hf_clobber_log(ptr %r, i64 8)
; CHECK: ret void
  %o = load i64, ptr %p
  store i64 1, ptr %p, !tbaa !1
  %r = load ptr, ptr %q, !tbaa !2
  %x = load i64, ptr %r
  store i64 8, ptr %r
  ret void
}

; Where the second write may not be made, nothing of it is logged ahead.
define void @sometimes(ptr %p, ptr %q, i1 %c) #0 {
; CHECK-LABEL: define internal void @sometimes.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: ret void
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  store i64 7, ptr %p
  br i1 %c, label %then, label %done
then:
  store i64 8, ptr %q
  br label %done
done:
  ret void
}

; Over a branch that comes back together it is.
define void @joined(ptr %p, ptr %q, ptr %r, i1 %c) #0 {
; CHECK-LABEL: define internal void @joined.hf_body(
; ON: call void @hf_log_ahead(ptr %q, i64 8)
; ON-NEXT: call void @hf_clobber_log(ptr %p, i64 8)
; ON: then:
; ON-NEXT: call void @hf_clobber_log(ptr %r, i64 8)
; ON: done:
; ON-NEXT: call void @hf_clobber_note(ptr %q, i64 8)
; CHECK: ret void
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  %z = load i64, ptr %r
  store i64 7, ptr %p
  br i1 %c, label %then, label %done
then:
  store i64 9, ptr %r
  br label %done
done:
  store i64 8, ptr %q
  ret void
}

; Not over a call of the runtime, nor of anything that may not come back.
define void @stopped(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @stopped.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: ret void
  %x = load i64, ptr %p
  %y = load i64, ptr %q
  store i64 7, ptr %p
  call void @hf_crash_point(ptr null)
  store i64 8, ptr %q
  ret void
}

; A loop's range, before it; to the byte, whatever its length.
define void @range(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @range.hf_body(
; ON: %[[WAY:.*]] = shl i64 %n, 3
; ON-NEXT: call void @hf_log_ahead(ptr %p, i64 %[[WAY]])
; ON-NEXT: br label %loop
; ON: call void @hf_clobber_note(ptr %to, i64 8)
; ON-NOT: hf_clobber_log
; CHECK: ret void
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %before, label %done
before:
  br label %loop
loop:
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %to = getelementptr inbounds i64, ptr %p, i64 %i
  %x = load i64, ptr %to
  %y = add i64 %x, 3
  store i64 %y, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The same without a block before the loop that is only its own.
define void @no_block_before(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @no_block_before.hf_body(
; ON: call void @hf_log_ahead(ptr %p, i64 %{{.*}})
; ON-NEXT: br label %loop
; ON: call void @hf_clobber_note(ptr %to, i64 8)
; ON-NOT: hf_clobber_log
; CHECK: ret void
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr inbounds i64, ptr %p, i64 %i
  %x = load i64, ptr %to
  %y = add i64 %x, 3
  store i64 %y, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Every second word: what lies between is not the loop's.
define void @stride(ptr %p) #0 {
; CHECK-LABEL: define internal void @stride.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: call void @hf_clobber_log(ptr %to, i64 8)
; CHECK: ret void
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr inbounds i64, ptr %p, i64 %i
  %x = load i64, ptr %to
  store i64 %i, ptr %to
  %next = add nuw nsw i64 %i, 2
  %more = icmp ult i64 %next, 20
  br i1 %more, label %loop, label %done
done:
  ret void
}

; A loop that may be left before its last iteration.
define void @left(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @left.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: ret void
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %to = getelementptr inbounds i64, ptr %p, i64 %i
  %x = load i64, ptr %to
  store i64 %i, ptr %to
  %found = icmp eq i64 %x, 3
  br i1 %found, label %done, label %again
again:
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 20
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Over a function that reads and comes back; and one that stores, if it stores to its arguments' memory alone.
define void @over_calls(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @over_calls.hf_body(
; ON: call void @hf_log_ahead(ptr %p, i64 24)
; ON: call i64 @reads.hf(ptr %q)
; ON: call void @stores.hf(ptr %q)
; ON-NOT: hf_clobber_log
; CHECK: ret void
  %x = load [3 x i64], ptr %p
  store i64 7, ptr %p
  %y = call i64 @reads(ptr %q)
  %p8 = getelementptr i8, ptr %p, i64 8
  store i64 %y, ptr %p8
  call void @stores(ptr %q)
  %p16 = getelementptr i8, ptr %p, i64 16
  store i64 7, ptr %p16
  ret void
}

; Not over one that may not come back, may be left by an exception, or stores elsewhere.
define void @not_over_calls(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @not_over_calls.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: ret void
  %x = load [4 x i64], ptr %p
  store i64 7, ptr %p
  call i64 @may_stay(ptr %q)
  %p8 = getelementptr i8, ptr %p, i64 8
  store i64 7, ptr %p8
  call i64 @may_throw(ptr %q)
  %p16 = getelementptr i8, ptr %p, i64 16
  store i64 7, ptr %p16
  call void @stores_elsewhere(ptr %q)
  %p24 = getelementptr i8, ptr %p, i64 24
  store i64 7, ptr %p24
  ret void
}

; What a called function stores to may be what a load reads, also where alias analysis knows better: an
; argument may lead anywhere.
define void @moved_by_call(ptr noalias %p, ptr noalias %q, ptr noalias %s) #0 {
; CHECK-LABEL: define internal void @moved_by_call.hf_body(
; CHECK-NOT: hf_log_ahead
; CHECK: ret void
  %x = load i64, ptr %p
  store i64 7, ptr %p
  call void @stores(ptr %q)
  %r = load ptr, ptr %s
  %y = load i64, ptr %r
  store i64 8, ptr %r
  ret void
}

define i64 @reads(ptr %q) #1 {
  %x = load i64, ptr %q
  ret i64 %x
}
define void @stores(ptr %q) #2 {
  store i64 3, ptr %q
  ret void
}
define i64 @may_stay(ptr %q) nounwind memory(argmem: read) {
  %x = load i64, ptr %q
  ret i64 %x
}
define i64 @may_throw(ptr %q) willreturn memory(argmem: read) {
  %x = load i64, ptr %q
  ret i64 %x
}
define void @stores_elsewhere(ptr %q) nounwind willreturn {
  %r = load ptr, ptr %q
  store i64 3, ptr %r
  ret void
}

declare void @hf_crash_point(ptr)
attributes #0 = { noinline mustprogress "holdfast.txfunc" }
attributes #1 = { noinline nounwind willreturn memory(argmem: read) }
attributes #2 = { noinline nounwind willreturn memory(argmem: readwrite) }
!0 = !{!"types"}
!1 = !{!3, !3, i64 0}
!2 = !{!4, !4, i64 0}
!3 = !{!"long", !0}
!4 = !{!"pointer", !0}

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
