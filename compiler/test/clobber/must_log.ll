; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Writes whose old bytes are inputs, or may be: each must be logged.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 -holdfast-refine=0 %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; A word is read, then overwritten.
define void @increment(ptr %p) #0 {
; CHECK-LABEL: define internal void @increment.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; a[i-1] = a[i]: one SSA address, two iterations. Within one iteration they cannot alias.
define void @shift_down(ptr %a, i64 %n) #0 {
; CHECK-LABEL: define internal void @shift_down.hf_body(
; CHECK: call void @hf_clobber_log(ptr %to, i64 8)
; CHECK-NEXT: store i64 %x, ptr %to
entry:
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds i64, ptr %a, i64 %i
  %before = add nsw i64 %i, -1
  %to = getelementptr inbounds i64, ptr %a, i64 %before
  %x = load i64, ptr %from
  store i64 %x, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The read comes before the write only by the loop's back edge.
define void @back_edge(ptr %p, ptr %q, i64 %n) #0 {
; CHECK-LABEL: define internal void @back_edge.hf_body(
; CHECK: call void @hf_clobber_log(ptr %to, i64 8)
; CHECK-NEXT: store i64 %i, ptr %to
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr i64, ptr %p, i64 %i
  store i64 %i, ptr %to
  %x = load i64, ptr %q
  %next = add i64 %i, %x
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; The first store covers half of what is read and overwritten.
define void @half_covered(ptr %p) #0 {
; CHECK-LABEL: define internal void @half_covered.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 %y, ptr %p
  store i32 1, ptr %p
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; The first store does not lie on every path.
define void @one_path(ptr %p, i1 %c) #0 {
; CHECK-LABEL: define internal void @one_path.hf_body(
; CHECK: join:
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 %y, ptr %p
  br i1 %c, label %then, label %join
then:
  store i64 1, ptr %p
  br label %join
join:
  %x = load i64, ptr %p
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; The store before the read is to another node than the store after it: %node changes between the
; read in one iteration and the write in the next. The paper's "unexposed" taken literally removes
; this one.
define void @other_instance(ptr %first) #0 {
; CHECK-LABEL: define internal void @other_instance.hf_body(
; CHECK: call void @hf_clobber_log(ptr %node, i64 8)
; CHECK-NEXT: store i64 0, ptr %node
entry:
  br label %loop
loop:
  %node = phi ptr [ %first, %entry ], [ %next, %loop ]
  store i64 0, ptr %node
  %link = getelementptr inbounds i8, ptr %node, i64 8
  %next = load ptr, ptr %link
  %x = load i64, ptr %next
  store i64 %x, ptr %node
  %more = icmp ne i64 %x, 0
  br i1 %more, label %loop, label %done
done:
  ret void
}

; !noalias holds per inlined call, not across iterations of the loop around it.
define void @scoped_noalias(ptr %a, i64 %n) #0 {
; CHECK-LABEL: define internal void @scoped_noalias.hf_body(
; CHECK: call void @hf_clobber_log(ptr %to, i64 8)
; CHECK-NEXT: store i64 %x, ptr %to
entry:
  br label %loop
loop:
  %i = phi i64 [ 1, %entry ], [ %next, %loop ]
  %from = getelementptr inbounds i64, ptr %a, i64 %i
  %before = add nsw i64 %i, -1
  %to = getelementptr inbounds i64, ptr %a, i64 %before
  %x = load i64, ptr %from, !alias.scope !3, !noalias !4
  store i64 %x, ptr %to, !alias.scope !4, !noalias !3
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Another type in the same place: placement new, std::variant.
define void @type_changes(ptr %p) #0 {
; CHECK-LABEL: define internal void @type_changes.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store double
  %x = load i64, ptr %p, !tbaa !10
  %d = sitofp i64 %x to double
  store double %d, ptr %p, !tbaa !12
  ret void
}

; Another object of the same type, which begins inside the first: placement new, compaction in place.
define void @other_field(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @other_field.hf_body(
; CHECK: call void @hf_clobber_log(ptr %q, i64 8)
; CHECK-NEXT: store i64 %x, ptr %q
  %x = load i64, ptr %p, !tbaa !30
  store i64 %x, ptr %q, !tbaa !32
  ret void
}

; A bit-field's tag names the byte where it begins; the access is to the whole unit.
define void @bit_fields(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @bit_fields.hf_body(
; CHECK: call void @hf_clobber_log(ptr %q, i64 4)
  %x = load i8, ptr %p, !tbaa !20
  %wide = zext i8 %x to i32
  store i32 %wide, ptr %q, !tbaa !23
  ret void
}

; memmove may overwrite its own source.
define void @memmove_overlaps(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @memmove_overlaps.hf_body(
; CHECK: call void @hf_clobber_log(ptr %to, i64 %n)
; CHECK-NEXT: call void @llvm.memmove
  %to = getelementptr i8, ptr %p, i64 8
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %p, i64 %n, i1 false)
  ret void
}

; A copy of an object onto itself must not count as the logged first write.
define void @copy_onto_itself(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @copy_onto_itself.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 16)
; CHECK-NEXT: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 16, i1 false)
  %x = load i64, ptr %q
  %y = add i64 %x, 1
  store i64 %y, ptr %p
  ret void
}

; A reading library function reads inputs.
define void @after_strlen(ptr %s) #0 {
; CHECK-LABEL: define internal void @after_strlen.hf_body(
; CHECK: call void @hf_clobber_log(ptr %s, i64 1)
; CHECK-NEXT: store i8
  %n = call i64 @strlen(ptr %s)
  %c = trunc i64 %n to i8
  store i8 %c, ptr %s
  ret void
}

; A block from the application's own free list is not fresh, whatever its attributes say.
define void @own_allocator(ptr %list) #0 {
; CHECK-LABEL: define internal void @own_allocator.hf_body(
; CHECK: call void @hf_clobber_log(ptr %block, i64 8)
; CHECK-NEXT: store i64 7, ptr %block
  %block = call noalias ptr @take(ptr %list)
  store i64 7, ptr %block
  ret void
}
define internal noalias ptr @take(ptr %list) noinline {
  %block = load ptr, ptr %list
  %next = load ptr, ptr %block
  store ptr %next, ptr %list
  ret ptr %block
}

; A called function reads what it promises to, on both sides of its argument.
define void @reads_argument(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @reads_argument.hf_body(
; CHECK: call void @hf_clobber_log(ptr %before, i64 8)
; CHECK: call void @hf_clobber_log(ptr %q, i64 8)
; CHECK: ret void
  %x = call i64 @reads(ptr %p)
  %before = getelementptr i8, ptr %p, i64 -64
  store i64 %x, ptr %before
  store i64 %x, ptr %q
  ret void
}
define i64 @reads(ptr %p) noinline memory(argmem: read) {
  %x = load i64, ptr %p
  ret i64 %x
}

; Its argument's memory is also what a self-relative pointer leads to: the block is known by its address.
define void @reads_from_fresh(ptr %p) #0 {
; CHECK-LABEL: define internal void @reads_from_fresh.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: ret void
  %block = call ptr @hf_alloc(i64 8)
  %here = ptrtoint ptr %block to i64
  %there = ptrtoint ptr %p to i64
  %way = sub i64 %there, %here
  store i64 %way, ptr %block
  %x = call i64 @reads_far(ptr %block)
  store i64 %x, ptr %p
  ret void
}
define i64 @reads_far(ptr %p) noinline memory(argmem: read) {
  %way = load i64, ptr %p
  %far = getelementptr i8, ptr %p, i64 %way
  %x = load i64, ptr %far
  ret i64 %x
}

; In a helper everything was read before entry, by some caller.
define void @calls_helper(ptr %p) #0 {
  call void @helper(ptr %p)
  ret void
}
define void @helper(ptr %p) noinline {
  store i64 7, ptr %p
  ret void
}
; CHECK-LABEL: define internal void @helper.hf(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-NEXT: store i64 7, ptr %p

declare ptr @hf_alloc(i64)
declare i64 @strlen(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

attributes #0 = { noinline "holdfast.txfunc" }

!0 = distinct !{!0, !"domain"}
!1 = distinct !{!1, !0, !"to"}
!2 = distinct !{!2, !0, !"from"}
!3 = !{!2}
!4 = !{!1}
!10 = !{!11, !11, i64 0}
!11 = !{!"long", !14, i64 0}
!12 = !{!13, !13, i64 0}
!13 = !{!"double", !14, i64 0}
!14 = !{!"omnipotent char", !15, i64 0}
!15 = !{!"root"}
!20 = !{!21, !22, i64 0}
!21 = !{!"flags", !22, i64 0, !22, i64 3}
!22 = !{!"int", !14, i64 0}
!23 = !{!21, !22, i64 3}
!30 = !{!31, !11, i64 0}
!31 = !{!"item", !11, i64 0, !11, i64 8}
!32 = !{!31, !11, i64 8}

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
