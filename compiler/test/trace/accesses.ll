; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Single accesses: what is reported, on which side of the access, behind which comparison.
; RUN: %hf_opt -passes=holdfast-trace,verify %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; CHECK: @hf_trace_watched = external global { i64, i64 }

; A load is reported before it, when its first byte is watched.
define i32 @load(ptr %p) {
; CHECK-LABEL: define i32 @load(
; CHECK: %[[BEGIN:.*]] = load i64, ptr @hf_trace_watched
; CHECK-NEXT: %[[BYTES:.*]] = load i64, ptr getelementptr inbounds ({ i64, i64 }, ptr @hf_trace_watched, i32 0, i32 1)
; CHECK-NEXT: %[[INT:.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT: %[[OFFSET:.*]] = sub i64 %[[INT]], %[[BEGIN]]
; CHECK-NEXT: %[[INSIDE:.*]] = icmp ult i64 %[[OFFSET]], %[[BYTES]]
; CHECK-NEXT: br i1 %[[INSIDE]], label %[[REPORT:.*]], label %[[GO:.*]], !prof
; CHECK: [[REPORT]]:
; CHECK-NEXT: call void @hf_trace_load(ptr %p, i64 4) #[[CALL:[0-9]+]]
; CHECK-NEXT: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK-NEXT: load i32, ptr %p
  %x = load i32, ptr %p
  ret i32 %x
}

; A store is reported after it.
define void @store(ptr %p) {
; CHECK-LABEL: define void @store(
; CHECK-NEXT: store i16 1, ptr %p
; CHECK: call void @hf_trace_store(ptr %p, i64 2)
; CHECK-NOT: call
; CHECK: ret void
  store i16 1, ptr %p
  ret void
}

; A volatile access is an access.
define void @volatile(ptr %p) {
; CHECK-LABEL: define void @volatile(
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
; CHECK: %x = load volatile i64, ptr %p
; CHECK-NEXT: store volatile i64 %x, ptr %p
; CHECK: call void @hf_trace_store(ptr %p, i64 8)
  %x = load volatile i64, ptr %p
  store volatile i64 %x, ptr %p
  ret void
}

define void @vector(ptr %p, ptr %q) {
; CHECK-LABEL: define void @vector(
; CHECK: call void @hf_trace_load(ptr %p, i64 32)
; CHECK: call void @hf_trace_store(ptr %q, i64 32)
  %x = load <4 x i64>, ptr %p
  store <4 x i64> %x, ptr %q
  ret void
}

; Bits that are no bytes round up.
define i1 @bits(ptr %p) {
; CHECK-LABEL: define i1 @bits(
; CHECK: call void @hf_trace_load(ptr %p, i64 1)
  %x = load i1, ptr %p
  ret i1 %x
}

; A weaker atomic store is a plain one to the store buffer.
define void @release(ptr %p) {
; CHECK-LABEL: define void @release(
; CHECK-NEXT: store atomic i64 1, ptr %p release
; CHECK: call void @hf_trace_store(ptr %p, i64 8)
; CHECK-NOT: hf_trace_rmw
; CHECK: ret void
  store atomic i64 1, ptr %p release, align 8
  ret void
}

define i64 @acquire(ptr %p) {
; CHECK-LABEL: define i64 @acquire(
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
; CHECK: load atomic i64, ptr %p acquire
  %x = load atomic i64, ptr %p acquire, align 8
  ret i64 %x
}

; A sequentially consistent store is an xchg whose result nobody reads.
define void @seq_cst_store(ptr %p) {
; CHECK-LABEL: define void @seq_cst_store(
; CHECK-NEXT: store atomic i64 1, ptr %p seq_cst
; CHECK: call void @hf_trace_rmw(ptr %p, i64 8)
; CHECK-NOT: call
; CHECK: ret void
  store atomic i64 1, ptr %p seq_cst, align 8
  ret void
}

; Locked whatever the ordering asked for: x86 has no other.
define i64 @rmw(ptr %p) {
; CHECK-LABEL: define i64 @rmw(
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
; CHECK: atomicrmw add ptr %p, i64 1 monotonic
; CHECK: call void @hf_trace_rmw(ptr %p, i64 8)
  %x = atomicrmw add ptr %p, i64 1 monotonic
  ret i64 %x
}

define i1 @cmpxchg(ptr %p) {
; CHECK-LABEL: define i1 @cmpxchg(
; CHECK: call void @hf_trace_load(ptr %p, i64 4)
; CHECK: cmpxchg ptr %p, i32 0, i32 1
; CHECK: call void @hf_trace_rmw(ptr %p, i64 4)
  %x = cmpxchg ptr %p, i32 0, i32 1 acq_rel monotonic
  %done = extractvalue { i32, i1 } %x, 1
  ret i1 %done
}

define void @full_fences() {
; CHECK-LABEL: define void @full_fences(
; CHECK-NEXT: fence seq_cst
; CHECK-NEXT: call void @hf_trace_fence()
; CHECK-NEXT: call void @llvm.x86.sse2.mfence()
; CHECK-NEXT: call void @hf_trace_fence()
; CHECK-NEXT: ret void
  fence seq_cst
  call void @llvm.x86.sse2.mfence()
  ret void
}

; No instruction, or the persistence layer's.
define void @other_fences() {
; CHECK-LABEL: define void @other_fences(
; CHECK-NOT: hf_trace_fence
; CHECK: ret void
  fence acq_rel
  fence syncscope("singlethread") seq_cst
  ret void
}

; Vectorised conditional stores: lane by lane, and only lanes that are on.
define void @masked(ptr %p, <2 x i64> %x, <2 x i1> %mask) {
; CHECK-LABEL: define void @masked(
; CHECK-NEXT: call void @llvm.masked.store
; CHECK: %[[ON:.*]] = extractelement <2 x i1> %mask, i64 0
; CHECK: select i1 %[[ON]], i1 %{{.*}}, i1 false
; CHECK: call void @hf_trace_store(ptr %p, i64 8)
; CHECK: %[[SECOND:.*]] = getelementptr i8, ptr %p, i64 8
; CHECK: extractelement <2 x i1> %mask, i64 1
; CHECK: call void @hf_trace_store(ptr %[[SECOND]], i64 8)
  call void @llvm.masked.store.v2i64.p0(<2 x i64> %x, ptr %p, i32 8, <2 x i1> %mask)
  ret void
}

define <2 x i32> @gather(<2 x ptr> %p, <2 x i1> %mask) {
; CHECK-LABEL: define <2 x i32> @gather(
; CHECK: %[[FIRST:.*]] = extractelement <2 x ptr> %p, i64 0
; CHECK: call void @hf_trace_load(ptr %[[FIRST]], i64 4)
; CHECK: %[[SECOND:.*]] = extractelement <2 x ptr> %p, i64 1
; CHECK: call void @hf_trace_load(ptr %[[SECOND]], i64 4)
; CHECK: call <2 x i32> @llvm.masked.gather
  %x = call <2 x i32> @llvm.masked.gather.v2i32.v2p0(<2 x ptr> %p, i32 4, <2 x i1> %mask, <2 x i32> zeroinitializer)
  ret <2 x i32> %x
}

; CHECK: attributes #[[CALL]] = { nomerge nounwind }
declare void @llvm.x86.sse2.mfence()
declare void @llvm.masked.store.v2i64.p0(<2 x i64>, ptr, i32, <2 x i1>)
declare <2 x i32> @llvm.masked.gather.v2i32.v2p0(<2 x ptr>, i32, <2 x i1>, <2 x i32>)
