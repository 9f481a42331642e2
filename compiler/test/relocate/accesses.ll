; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is translated, what is checked, and what neither: relocatable code.
; RUN: %hf_opt -passes=holdfast-relocate,verify %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; A pointer is translated behind its load, where the address's upper bits say "relocated".
define ptr @load(ptr %p) {
; CHECK-LABEL: define ptr @load(
; CHECK-NEXT: %v = load ptr, ptr %p
; CHECK-NEXT: %[[INT:.*]] = ptrtoint ptr %p to i64
; CHECK-NEXT: %[[BITS:.*]] = lshr i64 %[[INT]], 42
; CHECK-NEXT: %[[THERE:.*]] = icmp eq i64 %[[BITS]], 23
; CHECK-NEXT: br i1 %[[THERE]], label %[[ASK:.*]], label %[[GO:.*]], !prof
; CHECK: [[ASK]]:
; CHECK-NEXT: %[[NEW:.*]] = call ptr @hf_relocated_load(ptr %p, ptr %v, ptr @hf_place
; CHECK: [[GO]]:
; CHECK-NEXT: %[[BOTH:.*]] = phi ptr [ %v, %0 ], [ %[[NEW]], %[[ASK]] ]
; CHECK-NEXT: ret ptr %[[BOTH]]
  %v = load ptr, ptr %p
  ret ptr %v
}

; And before its store.
define void @store(ptr %p, ptr %v) {
; CHECK-LABEL: define void @store(
; CHECK: %[[NEW:.*]] = call ptr @hf_relocated_store(ptr %p, ptr %v,
; CHECK: %[[BOTH:.*]] = phi ptr [ %v, %0 ], [ %[[NEW]],
; CHECK-NEXT: store ptr %[[BOTH]], ptr %p
  store ptr %v, ptr %p
  ret void
}

; The address of the next access is the translated one, whichever is visited first.
define ptr @follow(ptr %p) {
; CHECK-LABEL: define ptr @follow(
; CHECK: %[[BOTH:.*]] = phi ptr [ %v,
; CHECK-NEXT: %w = load ptr, ptr %[[BOTH]]
; CHECK-NEXT: ptrtoint ptr %[[BOTH]] to i64
; CHECK: call ptr @hf_relocated_load(ptr %[[BOTH]], ptr %w,
  %v = load ptr, ptr %p
  %w = load ptr, ptr %v
  ret ptr %w
}

; A word that is no pointer is looked at in line, and refused by the runtime.
define i64 @word(ptr %p, i64 %v) {
; CHECK-LABEL: define i64 @word(
; CHECK: %old = load i64, ptr %p
; CHECK: icmp ult i64 %{{.*}}, 3298534883328
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 8,
; CHECK: icmp eq i64 %{{.*}}, 23
; CHECK: call void @hf_relocated_store_word(ptr %p, i64 %v,
; CHECK: store i64 %v, ptr %p
  %old = load i64, ptr %p
  store i64 %v, ptr %p
  ret i64 %old
}

; An integer that is a pointer by another name is translated: so clang makes atomic ones.
define ptr @atomic(ptr %p, ptr %v) {
; CHECK-LABEL: define ptr @atomic(
; CHECK: call ptr @hf_relocated_store(ptr %p,
; CHECK: store atomic i64 %{{.*}}, ptr %p release
; CHECK: load atomic i64, ptr %p acquire
; CHECK: call ptr @hf_relocated_load(ptr %p,
; CHECK-NOT: hf_relocated_raw_load
; CHECK: ret ptr
  %int = ptrtoint ptr %v to i64
  store atomic i64 %int, ptr %p release, align 8
  %old = load atomic i64, ptr %p acquire, align 8
  %back = inttoptr i64 %old to ptr
  ret ptr %back
}

; A compare-exchange of pointers: what is compared, what is stored, what was there.
define ptr @exchange(ptr %p, ptr %a, ptr %b) {
; CHECK-LABEL: define ptr @exchange(
; CHECK: call ptr @hf_relocated_store(ptr %p, ptr %a,
; CHECK: call ptr @hf_relocated_store(ptr %p, ptr %b,
; CHECK: %x = cmpxchg ptr %p
; CHECK: call ptr @hf_relocated_load(ptr %p,
; CHECK: insertvalue { ptr, i1 } %x
  %x = cmpxchg ptr %p, ptr %a, ptr %b seq_cst seq_cst
  %old = extractvalue { ptr, i1 } %x, 0
  ret ptr %old
}

; Lanes of a vector are translated one by one.
define void @vector(ptr %p, <2 x ptr> %v) {
; CHECK-LABEL: define void @vector(
; CHECK: %[[FIRST:.*]] = getelementptr i8, ptr %p, i64 0
; CHECK: call ptr @hf_relocated_store(ptr %[[FIRST]],
; CHECK: %[[SECOND:.*]] = getelementptr i8, ptr %p, i64 8
; CHECK: call ptr @hf_relocated_store(ptr %[[SECOND]],
; CHECK: store <2 x ptr> %{{.*}}, ptr %p
  store <2 x ptr> %v, ptr %p
  ret void
}

; A floating-point number, or a vector as wide, may be a pointer that shares a union with it.
define double @number(ptr %p, double %v) {
; CHECK-LABEL: define double @number(
; CHECK: %old = load double, ptr %p
; CHECK: %[[READ:.*]] = bitcast double %old to i64
; CHECK: sub i64 %[[READ]], 95657511616512
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 8,
; CHECK: %[[STORED:.*]] = bitcast double %v to i64
; CHECK: lshr i64 %[[STORED]], 42
; CHECK: call void @hf_relocated_store_word(ptr %p, i64 %[[STORED]],
; CHECK: store double %v, ptr %p
  %old = load double, ptr %p
  store double %v, ptr %p
  ret double %old
}
define <2 x float> @two_floats(ptr %p, <2 x float> %v) {
; CHECK-LABEL: define <2 x float> @two_floats(
; CHECK: %old = load <2 x float>, ptr %p
; CHECK: bitcast <2 x float> %old to i64
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 8,
; CHECK: %[[STORED:.*]] = bitcast <2 x float> %v to i64
; CHECK: call void @hf_relocated_store_word(ptr %p, i64 %[[STORED]],
; CHECK: store <2 x float> %v, ptr %p
  %old = load <2 x float>, ptr %p
  store <2 x float> %v, ptr %p
  ret <2 x float> %old
}

; Bytes of unknown type are looked at before they are read or stored.
define <2 x i64> @wide(ptr %p, <2 x i64> %v) {
; CHECK-LABEL: define <2 x i64> @wide(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 16,
; CHECK: load <2 x i64>, ptr %p
; CHECK: call void @hf_relocated_raw_store(ptr %p, ptr %{{.*}}, i64 16,
; CHECK: store <2 x i64> %v, ptr %p
  %old = load <2 x i64>, ptr %p
  store <2 x i64> %v, ptr %p
  ret <2 x i64> %old
}

; Wider numbers are such bytes.
define <4 x float> @wide_numbers(ptr %p, <4 x float> %v) {
; CHECK-LABEL: define <4 x float> @wide_numbers(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 16,
; CHECK: load <4 x float>, ptr %p
; CHECK: call void @hf_relocated_raw_store(ptr %p, ptr %{{.*}}, i64 16,
; CHECK: store <4 x float> %v, ptr %p
  %old = load <4 x float>, ptr %p
  store <4 x float> %v, ptr %p
  ret <4 x float> %old
}
define x86_fp80 @extended(ptr %p, x86_fp80 %v) {
; CHECK-LABEL: define x86_fp80 @extended(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 10,
; CHECK: load x86_fp80, ptr %p
; CHECK: call void @hf_relocated_raw_store(ptr %p, ptr %{{.*}}, i64 10,
; CHECK: store x86_fp80 %v, ptr %p
  %old = load x86_fp80, ptr %p
  store x86_fp80 %v, ptr %p
  ret x86_fp80 %old
}
define <2 x double> @masked(ptr %p, <2 x double> %v, <2 x i1> %m) {
; CHECK-LABEL: define <2 x double> @masked(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 16,
; CHECK: call <2 x double> @llvm.masked.load
; CHECK: call void @hf_relocated_raw_store(ptr %p, ptr %{{.*}}, i64 16,
; CHECK: call void @llvm.masked.store
  %old = call <2 x double> @llvm.masked.load.v2f64.p0(ptr %p, i32 8, <2 x i1> %m, <2 x double> %v)
  call void @llvm.masked.store.v2f64.p0(<2 x double> %v, ptr %p, i32 8, <2 x i1> %m)
  ret <2 x double> %old
}

; A copy asks for either side.
define void @copy(ptr %p, ptr %q, i64 %n) {
; CHECK-LABEL: define void @copy(
; CHECK: or i1
; CHECK: call void @hf_relocated_copy(ptr %p, ptr %q, i64 %n,
; CHECK: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  ret void
}

; One known to consist of pointers is made by the runtime.
define void @copy_pointers(ptr %p, ptr %q, i64 %n) {
; CHECK-LABEL: define void @copy_pointers(
; CHECK: call void @hf_relocated_copy_pointers(ptr %p, ptr %q, i64 %n,
; CHECK-NEXT: br label %[[DONE:.*]]
; CHECK: call void @llvm.memcpy
; CHECK-NEXT: br label %[[DONE]]
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false), !tbaa !3
  ret void
}

; A comparison reads.
define i32 @compare(ptr %p, ptr %q) {
; CHECK-LABEL: define i32 @compare(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 24,
; CHECK: call void @hf_relocated_raw_load(ptr %q, i64 24,
; CHECK: call i32 @memcmp
  %r = call i32 @memcmp(ptr %p, ptr %q, i64 24)
  ret i32 %r
}

; The call copies its argument.
define void @by_value(ptr %p) {
; CHECK-LABEL: define void @by_value(
; CHECK: call void @hf_relocated_raw_load(ptr %p, i64 24,
; CHECK: call void @taken
  call void @taken(ptr byval([3 x i64]) %p)
  ret void
}

; Locals are elsewhere; nothing small, no number of the program's text and no null is an address.
define void @left_alone(ptr %p, i32 %v, float %d) {
; CHECK-LABEL: define void @left_alone(
; CHECK-NOT: hf_relocated
; CHECK: ret void
  %a = alloca ptr
  store ptr %p, ptr %a
  %q = load ptr, ptr %a
  store i32 %v, ptr %q
  store float %d, ptr %q
  store double 7.0, ptr %q
  store ptr null, ptr %q
  store i64 7, ptr %q
  ret void
}

; It calls the runtime now.
define ptr @promises(ptr nocapture readonly %p) memory(argmem: read) {
; CHECK-LABEL: define ptr @promises(ptr %p) {
  %v = load ptr, ptr %p
  ret ptr %v
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare <2 x double> @llvm.masked.load.v2f64.p0(ptr, i32, <2 x i1>, <2 x double>)
declare void @llvm.masked.store.v2f64.p0(<2 x double>, ptr, i32, <2 x i1>)
declare i32 @memcmp(ptr, ptr, i64)
declare void @taken(ptr)

!0 = !{!"any pointer", !1, i64 0}
!1 = !{!"omnipotent char", !2, i64 0}
!2 = !{!"Simple C++ TBAA"}
!3 = !{!0, !0, i64 0}
