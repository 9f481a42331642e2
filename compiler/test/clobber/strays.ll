; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A fresh block or a local is known to be one only while the access is shown to be inside: a
; self-relative pointer is its own address plus what is stored there.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 %s | FileCheck %s
; RUN: sed s/holdfast.txfunc\"/holdfast.txfunc\"=\"undo\"/ %s | %hf_opt -passes=holdfast-instrument -holdfast-batch=0 | FileCheck %s --check-prefix=UNDO

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; The block holds the distance to %q: what lies there is an input, and no new memory.
define void @out_of_fresh(ptr %q, ptr %out) #0 {
; CHECK-LABEL: define internal void @out_of_fresh.hf_body(
; CHECK: call void @hf_clobber_log(ptr %there, i64 8)
; CHECK-NEXT: store i64 %y, ptr %there
; CHECK: call void @hf_clobber_log(ptr %out, i64 8)
; UNDO-LABEL: define internal void @out_of_fresh.hf_body(
; UNDO: call void @hf_undo_log(ptr %there, i64 8)
  %n = call noalias ptr @hf_alloc(i64 16)
  %from = ptrtoint ptr %n to i64
  %to = ptrtoint ptr %q to i64
  %distance = sub i64 %to, %from
  store i64 %distance, ptr %n
  call void @opaque()
  %again = load i64, ptr %n
  %there = getelementptr inbounds i8, ptr %n, i64 %again
  %x = load i64, ptr %there
  %beyond = getelementptr inbounds i8, ptr %there, i64 8
  %z = load i64, ptr %beyond
  %y = add i64 %x, %z
  store i64 %y, ptr %there
  store i64 %y, ptr %out
  ret void
}

; Of a local, too: such a store is not even noted otherwise.
define void @out_of_local(ptr %q) #0 {
; CHECK-LABEL: define internal void @out_of_local.hf_body(
; CHECK: call void @hf_{{clobber_note|clobber_log}}(ptr %there, i64 8)
; UNDO-LABEL: define internal void @out_of_local.hf_body(
; UNDO: call void @hf_undo_log(ptr %there, i64 8)
  %here = alloca i64
  call void @aim(ptr %here, ptr %q)
  %distance = load i64, ptr %here
  %there = getelementptr i8, ptr %here, i64 %distance
  store i64 7, ptr %there
  ret void
}
define internal void @aim(ptr %here, ptr %q) noinline {
  %from = ptrtoint ptr %here to i64
  %to = ptrtoint ptr %q to i64
  %distance = sub i64 %to, %from
  store i64 %distance, ptr %here
  ret void
}

; It may also walk away, step by step.
define void @walks_out(ptr %list, i64 %n) #0 {
; CHECK-LABEL: define internal void @walks_out.hf_body(
; CHECK: call void @hf_{{clobber_note|clobber_log}}(ptr %at, i64 8)
; UNDO-LABEL: define internal void @walks_out.hf_body(
; UNDO: call void @hf_undo_log(ptr %at, i64 8)
entry:
  %first = call noalias ptr @hf_alloc(i64 16)
  store ptr %first, ptr %list
  br label %loop
loop:
  %at = phi ptr [ %first, %entry ], [ %next, %loop ]
  %i = phi i64 [ 0, %entry ], [ %more, %loop ]
  store i64 %i, ptr %at
  %next = getelementptr inbounds i8, ptr %at, i64 8
  %more = add i64 %i, 1
  %again = icmp ult i64 %more, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}

; --- Precision: what is inside stays fresh, or local ---

; A constant offset; an index that is masked; an index from a byte.
define void @inside(ptr %list, i64 %i, i8 %j) #0 {
; CHECK-LABEL: define internal void @inside.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: call void @hf_clobber_log(ptr %list, i64 8)
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
; UNDO-LABEL: define internal void @inside.hf_body(
; UNDO-NOT: hf_undo_log
; UNDO: call void @hf_undo_log(ptr %list, i64 8)
; UNDO-NOT: hf_undo_log
; UNDO: ret void
  %old = load ptr, ptr %list
  %n = call noalias ptr @hf_alloc(i64 2048)
  store ptr %n, ptr %list
  %last = getelementptr i8, ptr %n, i64 2040
  store ptr %old, ptr %last
  %masked = and i64 %i, 255
  %a = getelementptr i64, ptr %n, i64 %masked
  store i64 1, ptr %a
  %wide = zext i8 %j to i64
  %b = getelementptr i64, ptr %n, i64 %wide
  store i64 2, ptr %b
  ret void
}

; Nobody has the block's address yet: no distance from it to anything else was ever taken.
define void @not_known_yet(ptr %list, i64 %i, i64 %bytes) #0 {
; CHECK-LABEL: define internal void @not_known_yet.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: call void @hf_clobber_note(ptr %a, i64 8)
; CHECK-NEXT: store i64 1, ptr %a
; CHECK-NOT: hf_clobber_log
; CHECK: call void @hf_clobber_log(ptr %list, i64 8)
  %old = load ptr, ptr %list
  %n = call noalias ptr @hf_alloc(i64 %bytes)
  %a = getelementptr i64, ptr %n, i64 %i
  store i64 1, ptr %a
  store ptr %n, ptr %list
  ret void
}

; A local table that no function is told of.
define i64 @local_table(ptr %p, i64 %i, i64 %j) #0 {
; CHECK-LABEL: define internal i64 @local_table.hf_body(
; CHECK-NOT: call void @hf
; CHECK: ret i64
; UNDO-LABEL: define internal i64 @local_table.hf_body(
; UNDO-NOT: call void @hf
; UNDO: ret i64
  %table = alloca [16 x i64]
  %x = load i64, ptr %p
  %a = getelementptr [16 x i64], ptr %table, i64 0, i64 %i
  store i64 %x, ptr %a
  %b = getelementptr [16 x i64], ptr %table, i64 0, i64 %j
  %r = load i64, ptr %b
  ret i64 %r
}

; An array is a block or null. Where the program has looked, it is a block ...
define void @looked(i64 %n, i64 %i, i1 %fits, i1 %other) #0 {
; CHECK-LABEL: define internal void @looked.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: store i64 7, ptr %at
; UNDO-LABEL: define internal void @looked.hf_body(
; UNDO-NOT: hf_undo_log
; UNDO: store i64 7, ptr %at
  br i1 %fits, label %take, label %have
take:
  %new = call noalias ptr @hf_alloc(i64 %n)
  br label %have
have:
  %array = phi ptr [ null, %0 ], [ %new, %take ]
  %none = icmp eq ptr %array, null
  %stop = or i1 %none, %other
  br i1 %stop, label %done, label %store
store:
  %at = getelementptr i64, ptr %array, i64 %i
  store i64 7, ptr %at
  br label %done
done:
  ret void
}

; ... elsewhere the index may be an address ...
define void @did_not_look(i64 %n, i64 %i, i1 %fits, i1 %other) #0 {
; CHECK-LABEL: define internal void @did_not_look.hf_body(
; UNDO-LABEL: define internal void @did_not_look.hf_body(
; UNDO: call void @hf_undo_log(ptr %at, i64 8)
  br i1 %fits, label %take, label %have
take:
  %new = call noalias ptr @hf_alloc(i64 %n)
  br label %have
have:
  %array = phi ptr [ null, %0 ], [ %new, %take ]
  %none = icmp eq ptr %array, null
  %stop = and i1 %none, %other
  br i1 %stop, label %done, label %store
store:
  %at = getelementptr i64, ptr %array, i64 %i
  store i64 7, ptr %at
  br label %done
done:
  ret void
}

; ... and where it is null, too.
define void @looked_the_other_way(i64 %n, i64 %i, i1 %fits) #0 {
; UNDO-LABEL: define internal void @looked_the_other_way.hf_body(
; UNDO: call void @hf_undo_log(ptr %at, i64 8)
  br i1 %fits, label %take, label %have
take:
  %new = call noalias ptr @hf_alloc(i64 %n)
  br label %have
have:
  %array = phi ptr [ null, %0 ], [ %new, %take ]
  %none = icmp ne ptr %array, null
  br i1 %none, label %done, label %store
store:
  %at = getelementptr i64, ptr %array, i64 %i
  store i64 7, ptr %at
  br label %done
done:
  ret void
}

; What was looked at is this round's array, what is stored to the last one's.
define void @looked_at_another(i64 %n, i64 %i, i1 %fits, i1 %more) #0 {
; UNDO-LABEL: define internal void @looked_at_another.hf_body(
; UNDO: call void @hf_undo_log(ptr %last, i64 8)
  %first = call noalias ptr @hf_alloc(i64 8)
  br label %loop
loop:
  %last = phi ptr [ %first, %0 ], [ %at, %have ], [ %at, %store ]
  br i1 %fits, label %take, label %have
take:
  %new = call noalias ptr @hf_alloc(i64 %n)
  br label %have
have:
  %array = phi ptr [ null, %loop ], [ %new, %take ]
  %at = getelementptr i64, ptr %array, i64 %i
  %none = icmp eq ptr %array, null
  br i1 %none, label %loop, label %store
store:
  store i64 7, ptr %last
  br i1 %more, label %loop, label %done
done:
  ret void
}

declare noalias ptr @hf_alloc(i64)
declare void @opaque() #1

attributes #0 = { noinline "holdfast.txfunc" }
attributes #1 = { "holdfast.pure" }

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
