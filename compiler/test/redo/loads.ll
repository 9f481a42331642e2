; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Loads that may come after a store look into the write buffer, directly before they are made.
; Those of at most 16 bytes do if the filter says so; where it is the function loads once.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; What is said of the address is not said of the place where its bytes are.
define i64 @scalar(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal i64 @scalar.hf_body(
; CHECK-NEXT: %[[OWN:.*]] = call {{.*}}ptr @llvm.threadlocal.address.p0(ptr {{.*}}@hf_redo_filter)
; CHECK-NEXT: %[[FILTER:.*]] = load ptr, ptr %[[OWN]]
; CHECK-NEXT: %a = load i64, ptr %q, align 8
; CHECK: call ptr @hf_redo_write(
; CHECK-NEXT: store i64 %a
; CHECK-NEXT: %[[NUMBER:.*]] = ptrtoint ptr %q to i64
; CHECK-NEXT: %[[KIB:.*]] = lshr i64 %[[NUMBER]], 10
; CHECK-NEXT: %[[INDEX:.*]] = and i64 %[[KIB]], 511
; CHECK-NEXT: %[[AT:.*]] = getelementptr i64, ptr %[[FILTER]], i64 %[[INDEX]]
; CHECK-NEXT: %[[BITS:.*]] = load i64, ptr %[[AT]]
; CHECK-NEXT: %[[GRANULE:.*]] = lshr i64 %[[NUMBER]], 4
; CHECK-NEXT: %[[CLASS:.*]] = and i64 %[[GRANULE]], 63
; CHECK-NEXT: %[[BIT:.*]] = lshr i64 %[[BITS]], %[[CLASS]]
; CHECK-NEXT: %[[SET:.*]] = trunc i64 %[[BIT]] to i1
; CHECK-NEXT: br i1 %[[SET]], label %[[LOOK:.*]], label %[[DONE:.*]], !prof
; CHECK: [[LOOK]]:
; CHECK-NEXT: %[[PLACE:.*]] = call ptr @hf_redo_read(ptr %q, i64 8)
; CHECK-NEXT: br label %[[DONE]]
; CHECK: [[DONE]]:
; CHECK-NEXT: %[[R:.*]] = phi ptr [ %q, %0 ], [ %[[PLACE]], %[[LOOK]] ]
; CHECK-NEXT: %b = load i64, ptr %[[R]], align 1{{$}}
  %a = load i64, ptr %q, align 8
  store i64 %a, ptr %p
  %b = load i64, ptr %q, align 8, !invariant.load !0
  ret i64 %b
}

; A load of at most 16 bytes asks the filter wherever it begins: stores are noted for the granule before theirs, too.
define <4 x i64> @wide(ptr %p) #0 {
; CHECK-LABEL: define internal <4 x i64> @wide.hf_body(
; CHECK-COUNT-1: load ptr, ptr %{{.*}}
; CHECK: %[[R:.*]] = call ptr @hf_redo_read(ptr %p, i64 32)
; CHECK-NEXT: %v = load <4 x i64>, ptr %[[R]], align 1
; CHECK: br i1
; CHECK: %[[S:.*]] = call ptr @hf_redo_read(ptr %p, i64 10)
; CHECK: %[[LONG:.*]] = phi ptr [ %p, %{{.*}} ], [ %[[S]], %{{.*}} ]
; CHECK-NEXT: load x86_fp80, ptr %[[LONG]], align 1
; CHECK-NOT: load ptr
; CHECK: br i1
; CHECK: %[[T:.*]] = call ptr @hf_redo_read(ptr %p, i64 8)
; CHECK: %[[CROOKED:.*]] = phi ptr [ %p, %{{.*}} ], [ %[[T]], %{{.*}} ]
; CHECK-NEXT: load i64, ptr %[[CROOKED]], align 1
  store i64 1, ptr %p
  %v = load <4 x i64>, ptr %p, align 32
  %long = load x86_fp80, ptr %p, align 16
  %crooked = load i64, ptr %p, align 4
  ret <4 x i64> %v
}

; The loop's back edge leads from the store to the load.
define void @loop(ptr %p, ptr %q, i64 %n) #0 {
; CHECK-LABEL: define internal void @loop.hf_body(
; CHECK: %first = load i64, ptr %q
; CHECK: loop:
; CHECK: %[[P:.*]] = call ptr @hf_redo_read(ptr %q, i64 8)
; CHECK: %[[R:.*]] = phi ptr [ %q, %{{.*}} ], [ %[[P]], %{{.*}} ]
; CHECK-NEXT: %x = load i64, ptr %[[R]]
; CHECK: call ptr @hf_redo_write(
entry:
  %first = load i64, ptr %q
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %x, %loop ]
  %x = load i64, ptr %q
  store i64 %x, ptr %p
  %more = icmp slt i64 %i, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; No path leads from the store to the other branch.
define i64 @branch(ptr %p, i1 %c) #0 {
; CHECK-LABEL: define internal i64 @branch.hf_body(
; CHECK: else:
; CHECK-NEXT: %x = load i64, ptr %p
  br i1 %c, label %then, label %else
then:
  store i64 1, ptr %p
  ret i64 0
else:
  %x = load i64, ptr %p
  ret i64 %x
}

; What a section calls stores for it, and is called when it has stored: also a function that does so
; by another.
define i64 @calls(ptr %p) #0 {
; CHECK-LABEL: define internal i64 @calls.hf_body(
; CHECK: %a = load i64, ptr %p
; CHECK-NEXT: call i64 @reader.hf(ptr %p)
; CHECK-NEXT: %c = load i64, ptr %p
; CHECK-NEXT: call void @outer.hf(ptr %p)
; CHECK: %[[P:.*]] = call ptr @hf_redo_read(ptr %p, i64 8)
; CHECK: %[[R:.*]] = phi ptr [ %p, %0 ], [ %[[P]], %{{.*}} ]
; CHECK-NEXT: %d = load i64, ptr %[[R]]
  %a = load i64, ptr %p
  %b = call i64 @reader(ptr %p)
  %c = load i64, ptr %p
  call void @outer(ptr %p)
  %d = load i64, ptr %p
  ret i64 %d
}
define i64 @reader(ptr %p) {
  %x = load i64, ptr %p
  ret i64 %x
}
define void @outer(ptr %p) {
  call void @storer(ptr %p)
  ret void
}
define void @storer(ptr %p) {
  store i64 1, ptr %p
  ret void
}

; Neither locals nor constants nor fresh memory are in the buffer.
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define i64 @elsewhere(ptr %p, i64 %i) #0 {
; CHECK-LABEL: define internal i64 @elsewhere.hf_body(
; CHECK: call ptr @hf_redo_write(
; CHECK-NOT: hf_redo_{{[a-mo-z]}}
; CHECK: ret i64
  %local = alloca i64
  %fresh = call ptr @hf_alloc(i64 16)
  store i64 1, ptr %p
  store i64 2, ptr %local
  %a = load i64, ptr %local
  %at = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %b = load i64, ptr %at
  store i64 %b, ptr %fresh
  %c = load i64, ptr %fresh
  %d = add i64 %a, %c
  ret i64 %d
}

; Lanes that are masked off are not looked at.
define <2 x i64> @masked(ptr %p, <2 x i1> %mask) #0 {
; CHECK-LABEL: define internal <2 x i64> @masked.hf_body(
; CHECK-NOT: llvm.masked
; CHECK: cond.load:
; CHECK-NEXT: %[[AT:.*]] = getelementptr inbounds i64, ptr %p, i32 0
; CHECK: %[[P:.*]] = call ptr @hf_redo_read(ptr %[[AT]], i64 8)
; CHECK: %[[R:.*]] = phi ptr [ %[[AT]], %{{.*}} ], [ %[[P]], %{{.*}} ]
; CHECK-NEXT: load i64, ptr %[[R]], align 1
  store i64 1, ptr %p
  %v = call <2 x i64> @llvm.masked.load.v2i64.p0(ptr %p, i32 8, <2 x i1> %mask, <2 x i64> zeroinitializer)
  ret <2 x i64> %v
}
define <2 x i64> @gather(ptr %p, <2 x ptr> %at, <2 x i1> %mask) #0 {
; CHECK-LABEL: define internal <2 x i64> @gather.hf_body(
; CHECK-NOT: llvm.masked
; CHECK: %[[AT:.*]] = extractelement <2 x ptr> %at, i64 0
; CHECK: call ptr @hf_redo_read(ptr %[[AT]], i64 8)
  store i64 1, ptr %p
  %v = call <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr> %at, i32 8, <2 x i1> %mask, <2 x i64> zeroinitializer)
  ret <2 x i64> %v
}
define <2 x i64> @packed(ptr %p, <2 x i1> %mask) #0 {
; CHECK-LABEL: define internal <2 x i64> @packed.hf_body(
; CHECK-NOT: llvm.masked
; CHECK: call ptr @hf_redo_read(ptr %p, i64 8)
  store i64 1, ptr %p
  %v = call <2 x i64> @llvm.masked.expandload.v2i64(ptr %p, <2 x i1> %mask, <2 x i64> zeroinitializer)
  ret <2 x i64> %v
}
define void @masked_store(ptr %p, <2 x i64> %v, <2 x i1> %mask) #0 {
; CHECK-LABEL: define internal void @masked_store.hf_body(
; CHECK-NOT: llvm.masked
; CHECK: cond.store:
; CHECK: call ptr @hf_redo_write(ptr %{{.*}}, i64 8)
  call void @llvm.masked.store.v2i64.p0(<2 x i64> %v, ptr %p, i32 8, <2 x i1> %mask)
  ret void
}

; A helper does not know what was stored before it.
; CHECK-LABEL: define internal i64 @reader.hf(
; CHECK: call ptr @hf_redo_read(ptr %p, i64 8)

declare ptr @hf_alloc(i64)
declare <2 x i64> @llvm.masked.load.v2i64.p0(ptr, i32, <2 x i1>, <2 x i64>)
declare <2 x i64> @llvm.masked.gather.v2i64.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x i64>)
declare <2 x i64> @llvm.masked.expandload.v2i64(ptr, <2 x i1>, <2 x i64>)
declare void @llvm.masked.store.v2i64.p0(<2 x i64>, ptr, i32, <2 x i1>)
attributes #0 = { noinline "holdfast.txfunc" }
!0 = !{}
