; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is a step, where its function goes on, and what is saved for that.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=justdo %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=justdo -disable-output %s

; The section begins behind what is read, with what is needed from there on; each store is a step. Nothing is saved that was
; saved before, and nothing that is not needed any more.
; CHECK-LABEL: define void @two_stores(
; CHECK: %[[FRAME:.*]] = call ptr @hf_justdo_enter(ptr @two_stores.hf_justdo, ptr {{.*}}, ptr %[[PLACE:.*]])
; CHECK: switch i32 {{.*}}, label %[[BEGIN:.*]] [
; CHECK-NEXT: i32 1, label %resume.1
; CHECK-NEXT: i32 2, label %resume.2
; CHECK-NEXT: i32 3, label %resume.3
; CHECK-NEXT: i32 4, label %resume.4
; CHECK-NEXT: ]
; CHECK: %x = load i64, ptr %p
; CHECK: store ptr %{{.*}}, ptr
; CHECK: store i64 %x, ptr
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 16)
; CHECK-NEXT: call void @hf_justdo_lock(ptr null, i32 2, i32 4)
; CHECK-NOT: store
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 7, i32 8, i32 1)
; CHECK-NOT: store i
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 {{.*}}, i32 8, i32 2)
; CHECK: call void @hf_justdo_unlock(ptr null, i32 2, i32 3)
; CHECK: call void @hf_justdo_leave()
; CHECK: ret void
define void @two_stores(ptr %p) "holdfast.txfunc" {
  %x = load i64, ptr %p
  store i64 7, ptr %p, align 8
  %q = getelementptr i8, ptr %p, i64 8
  store i64 %x, ptr %q, align 8
  ret void
}

; What the loop changes has two places: the snapshot that does not count yet is written.
; CHECK-LABEL: define void @counts(
; CHECK: xor i32 {{.*}}, 8388608
; CHECK: %i = phi i64
; CHECK: %[[BIT:.*]] = xor i32 {{.*}}, 8388608
; CHECK: %[[SECOND:.*]] = icmp ne i32 %[[BIT]], 0
; CHECK: %[[AREA:.*]] = select i1 %[[SECOND]]
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %[[AREA]], i64 0
; CHECK: store i64 %i, ptr
; CHECK: %[[POINT:.*]] = or i32 %[[BIT]], 1
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 8)
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 {{.*}}, i32 8, i32 %[[POINT]])
define void @counts(ptr %p, i64 %n) "holdfast.txfunc" {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %i
  store i64 %new, ptr %at, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; A vector fits into no step: a point before it, and the store behind that.
; CHECK-LABEL: define void @wide(
; CHECK: store <2 x i64>
; CHECK: call void @hf_justdo_point(i32 1)
; CHECK: store <2 x i64>
; CHECK: call void @hf_justdo_note(ptr {{.*}}, i64 16)
; CHECK: call void @hf_justdo_unlock(
define void @wide(ptr %p) "holdfast.txfunc" {
  %v = load <2 x i64>, ptr %p
  %w = add <2 x i64> %v, <i64 1, i64 2>
  store <2 x i64> %w, ptr %p
  ret void
}

; A block's address goes to its slot by the step itself.
; CHECK-LABEL: define void @allocates(
; CHECK: %[[BLOCK:.*]] = call ptr @hf_justdo_alloc(i64 16, ptr %{{.*}}, i32
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 {{.*}}, i32 8, i32
; CHECK: call void @hf_justdo_free(ptr {{.*}}, i32
declare ptr @hf_alloc(i64)
declare void @hf_free(ptr)
define void @allocates(ptr %p) "holdfast.txfunc" {
  %old = load ptr, ptr %p
  %new = call ptr @hf_alloc(i64 16)
  store ptr %new, ptr %p, align 8
  call void @hf_free(ptr %old)
  ret void
}

; A local that is not read before is written as it is, in the frame.
; CHECK-LABEL: define void @local(
; CHECK-NOT: call void @hf_justdo_store
; CHECK: call void @hf_justdo_note(
; CHECK: call void @hf_justdo_copy(ptr {{.*}}, ptr {{.*}}, i64 32, i32 1)
define void @local(ptr %p, i64 %i) "holdfast.txfunc" {
  %a = alloca [4 x i64]
  %at = getelementptr [4 x i64], ptr %a, i64 0, i64 %i
  store i64 5, ptr %at, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %a, i64 32, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; A table's address is another in the next process.
; CHECK-LABEL: define void @constant(
; CHECK: sub i64 {{.*}}, ptrtoint (ptr @__ehdr_start to i64)
; CHECK: add i64 {{.*}}, ptrtoint (ptr @__ehdr_start to i64)
@one = private constant [2 x i64] [i64 1, i64 2]
@two = private constant [2 x i64] [i64 3, i64 4]
define void @constant(ptr %p, i1 %c) "holdfast.txfunc" {
  %t = select i1 %c, ptr @one, ptr @two
  %x = load i64, ptr %t
  store i64 %x, ptr %p, align 8
  %y = getelementptr i64, ptr %t, i64 1
  %z = load i64, ptr %y
  store i64 %z, ptr %p, align 8
  ret void
}

; Nothing is stored: no section.
; CHECK-LABEL: define i64 @reads(
; CHECK-NOT: hf_justdo
; CHECK: ret i64
define i64 @reads(ptr %p) "holdfast.txfunc" {
  %x = load i64, ptr %p
  ret i64 %x
}

; The bytes behind an address that was kept are the pool's or a constant's, and nobody knows which: a point before the copy,
; for which a constant is no source to make it again from. What the pool has pointers to is the pool.
; CHECK-LABEL: define void @copies_kept(
; CHECK: call void @hf_justdo_point(i32 [[POINT:.*]])
; CHECK-NEXT: br label
; CHECK: call void @hf_justdo_copy(ptr {{.*}}, ptr {{.*}}, i64 16, i32
; CHECK-NOT: hf_justdo_point
; CHECK: call void @hf_justdo_copy(ptr {{.*}}, ptr {{.*}}, i64 24, i32
; CHECK: ret void
define void @copies_kept(ptr %p, i64 %i) "holdfast.txfunc" {
  %kept = alloca [2 x ptr]
  %second = getelementptr i8, ptr %kept, i64 8
  store ptr @one, ptr %kept
  store ptr %p, ptr %second
  %slot = getelementptr ptr, ptr %kept, i64 %i
  %from = load ptr, ptr %slot
  %to = getelementptr i8, ptr %p, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 16, i1 false)
  %in = load ptr, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %in, i64 24, i1 false)
  ret void
}
