; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; ARM64 passes an object of more than 16 bytes by its address, a smaller one as words. The section's record has the object
; all the same, and what it points to is checked: a closure's; a parameter's that is marked HF_BY_VALUE; what words hold.
; RUN: split-file %s %t
; RUN: %hf_opt -passes=holdfast-mark,holdfast-instrument %t/records.ll | FileCheck %s
; RUN: %hf_opt -passes=holdfast-mark,holdfast-instrument -holdfast-engine=justdo %t/records.ll | FileCheck %s --check-prefix=RESUMES
; RUN: %hf_opt -passes=holdfast-mark,holdfast-instrument -holdfast-engine=undo %t/records.ll \
; RUN:   | llc -mtriple=aarch64-linux-gnu -O2 -o - | FileCheck %s --check-prefix=CODE
; RUN: not %hf_opt -passes=holdfast-mark,holdfast-instrument %t/unmarked.ll 2>&1 | FileCheck %s --check-prefix=UNMARKED
; RUN: not %hf_opt -passes=holdfast-mark,holdfast-instrument -holdfast-engine=ido %t/unmarked.ll 2>&1 | FileCheck %s --check-prefix=UNMARKED
; RUN: %hf_opt -passes=holdfast-mark,holdfast-instrument -holdfast-engine=auto %t/unmarked.ll -o /dev/null
; RUN: not %hf_opt -passes=holdfast-mark,holdfast-instrument %t/captures.ll 2>&1 | FileCheck %s --check-prefix=CAPTURES

; UNMARKED: error: {{.*}}failure-atomic function 'add(wide, list*)' takes a 'wide' by value, which this processor passes by its address
; UNMARKED-NOT: error
; CAPTURES: error: {{.*}}closure of hf::tx captures the address of a local variable

; Offset, bytes, kind: the pool; the closure's pointer, which leads into the pool; its number.
; CHECK-DAG: @closure.hf_args = internal constant {{.*}} [{ i32, i32, i32 } { i32 0, i32 8, i32 0 }, { i32, i32, i32 } { i32 8, i32 8, i32 1 }, { i32, i32, i32 } { i32 16, i32 16, i32 0 }]
; CHECK-DAG: @marked.hf_args = internal constant {{.*}} [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }, { i32, i32, i32 } { i32 8, i32 24, i32 0 }]
; CHECK-DAG: @words.hf_args = internal constant {{.*}} [{ i32, i32, i32 } { i32 0, i32 8, i32 0 }, { i32, i32, i32 } { i32 8, i32 8, i32 1 }]
; CHECK-DAG: @word.hf_args = internal constant {{.*}} [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }]

;--- records.ll
target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128"
target triple = "aarch64-unknown-linux-gnu"
%record = type { ptr, i64, i64 }

; CHECK-LABEL: define void @closure(ptr %pool, ptr byref(%record) align 8 %record)
; CHECK: call void @llvm.memcpy.p0.p0.i64({{.*}}, ptr align 8 %record, i64 24, i1 false)
; CHECK: call i32 @hf_clobber_begin(
; CHECK: call void @closure.hf_body(ptr %pool, ptr byval(%record) align 8 %record)
; CHECK-LABEL: define void @calls(
; CHECK: call void @closure(ptr %pool, ptr %built)
; RESUMES-LABEL: define internal void @closure.hf_resume()
; RESUMES: [[AT:%.*]] = alloca %record
; RESUMES: call void @closure(ptr null, ptr byref(%record) align 8 [[AT]])
; CODE-LABEL: {{^}}closure:
; CODE: bl hf_undo_begin
define void @closure(ptr %pool, ptr %record) noinline nounwind {
  %at = load ptr, ptr %record
  %more.at = getelementptr i8, ptr %record, i64 16
  %more = load i64, ptr %more.at
  %old = load i64, ptr %at
  %new = add i64 %old, %more
  store i64 %new, ptr %at
  ret void
}
define void @calls(ptr %pool, ptr %list) {
  %built = alloca %record, align 8
  store ptr %list, ptr %built
  call void @closure(ptr %pool, ptr %built)
  ret void
}

; CHECK-LABEL: define void @marked(ptr %list, ptr byref(%record) align 8 %key)
; CHECK-NOT: llvm.var.annotation
; CHECK: call void @marked.hf_body(ptr %list, ptr byval(%record) align 8 %key)
define void @marked(ptr %list, ptr %key) noinline nounwind {
  call void @llvm.var.annotation.p0.p0(ptr %key, ptr @by_value, ptr @file, i32 1, ptr null)
  %more.at = getelementptr i8, ptr %key, i64 8
  %more = load i64, ptr %more.at
  store i64 %more, ptr %list
  ret void
}
define void @passes(ptr %list) {
  %key = alloca %record, align 8
  call void @marked(ptr %list, ptr %key)
  ret void
}

define void @words(i64 %count, [1 x i64] %view) noinline nounwind {
  %number = extractvalue [1 x i64] %view, 0
  %at = inttoptr i64 %number to ptr
  store i64 %count, ptr %at
  ret void
}
define void @word(i64 %box) noinline nounwind {
  %local = alloca ptr
  %at = inttoptr i64 %box to ptr
  store ptr %at, ptr %local
  %again = load ptr, ptr %local
  store i64 7, ptr %again
  ret void
}

declare void @llvm.var.annotation.p0.p0(ptr, ptr, ptr, i32, ptr)
@txfunc = private constant [16 x i8] c"holdfast.txfunc\00"
@is_closure = private constant [17 x i8] c"holdfast.closure\00"
@by_value = private constant [18 x i8] c"holdfast.by_value\00"
@file = private constant [2 x i8] c"f\00"
@llvm.global.annotations = appending global [5 x { ptr, ptr, ptr, i32, ptr }] [
  { ptr, ptr, ptr, i32, ptr } { ptr @closure, ptr @txfunc, ptr @file, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @closure, ptr @is_closure, ptr @file, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @marked, ptr @txfunc, ptr @file, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @words, ptr @txfunc, ptr @file, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @word, ptr @txfunc, ptr @file, i32 1, ptr null }], section "llvm.metadata"

;--- unmarked.ll
target triple = "aarch64-unknown-linux-gnu"
; void add(wide, list*); void take(list*, void (*)(list*), list&)
define void @_Z3add4wideP4list(ptr %w, ptr %list) noinline nounwind {
  %more = load i64, ptr %w
  store i64 %more, ptr %list
  ret void
}
define void @_Z4takeP4listPFvS0_ERS_(ptr %list, ptr %f, ptr %other) noinline nounwind {
  %more = load i64, ptr %other
  store i64 %more, ptr %list
  ret void
}
@txfunc = private constant [16 x i8] c"holdfast.txfunc\00"
@llvm.global.annotations = appending global [2 x { ptr, ptr, ptr, i32, ptr }] [
  { ptr, ptr, ptr, i32, ptr } { ptr @_Z3add4wideP4list, ptr @txfunc, ptr @txfunc, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @_Z4takeP4listPFvS0_ERS_, ptr @txfunc, ptr @txfunc, i32 1, ptr null }], section "llvm.metadata"

;--- captures.ll
target triple = "aarch64-unknown-linux-gnu"
%record = type { ptr, i64, i64 }
define void @closure(ptr %pool, ptr %record) noinline nounwind {
  %at = load ptr, ptr %record
  store i64 1, ptr %at
  ret void
}
define void @calls(ptr %pool) {
  %variable = alloca i64
  %built = alloca %record, align 8
  store ptr %variable, ptr %built
  call void @closure(ptr %pool, ptr %built)
  ret void
}
@txfunc = private constant [16 x i8] c"holdfast.txfunc\00"
@is_closure = private constant [17 x i8] c"holdfast.closure\00"
@llvm.global.annotations = appending global [2 x { ptr, ptr, ptr, i32, ptr }] [
  { ptr, ptr, ptr, i32, ptr } { ptr @closure, ptr @txfunc, ptr @txfunc, i32 1, ptr null },
  { ptr, ptr, ptr, i32, ptr } { ptr @closure, ptr @is_closure, ptr @txfunc, i32 1, ptr null }], section "llvm.metadata"
