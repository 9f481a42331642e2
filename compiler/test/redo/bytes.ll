; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Copies, fills and library functions go through the write buffer; aggregates that calls copy do, too.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
%big = type [4 x i64]

define void @copies(ptr %p, ptr %q, i64 %n, i32 %m) #0 {
; CHECK-LABEL: define internal void @copies.hf_body(
; CHECK: call void @hf_redo_copy(ptr %p, ptr %q, i64 %n)
; CHECK: call void @hf_redo_copy(ptr %p, ptr %q, i64 8)
; CHECK: call void @hf_redo_put(ptr %p, ptr %local, i64 8)
; CHECK: %[[N:.*]] = zext i32 %m to i64
; CHECK: call void @hf_redo_fill(ptr %p, i32 3, i64 %[[N]])
; CHECK: %[[R:.*]] = call ptr @hf_redo_read(ptr %q, i64 64)
; CHECK-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr align 16 %local, ptr align 1 %[[R]], i64 64, i1 false)
  %local = alloca [64 x i8], align 16
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 8, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %local, i64 8, i1 false)
  call void @llvm.memset.p0.i32(ptr %p, i8 3, i32 %m, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %local, ptr align 16 %q, i64 64, i1 false)
  ret void
}

define void @fresh(ptr %p) #0 {
; CHECK-LABEL: define internal void @fresh.hf_body(
; CHECK: %[[R:.*]] = call ptr @hf_redo_read(ptr %p, i64 64)
; CHECK: call void @hf_redo_note(ptr %f, i64 64)
; CHECK-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr %f, ptr align 1 %[[R]], i64 64, i1 false)
; CHECK: call void @hf_redo_copy(ptr %p, ptr %f, i64 64)
  %f = call ptr @hf_alloc(i64 64)
  store i64 1, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %f, ptr %p, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %f, i64 64, i1 false)
  ret void
}

; A result that points into the copy points into what was searched.
define ptr @searches(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal ptr @searches.hf_body(
; CHECK: %[[Q:.*]] = call ptr @hf_redo_read_string(ptr %p)
; CHECK-NEXT: %r = call ptr @strchr(ptr %[[Q]], i32 58)
; CHECK: %[[RW:.*]] = ptrtoint ptr %r to i64
; CHECK: %[[QW:.*]] = ptrtoint ptr %[[Q]] to i64
; CHECK: %[[D:.*]] = sub i64 %[[RW]], %[[QW]]
; CHECK: %[[NONE:.*]] = icmp eq ptr %r, null
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %p, i64 %[[D]]
; CHECK: %[[RESULT:.*]] = select i1 %[[NONE]], ptr %r, ptr %[[AT]]
; CHECK: %[[COUNT:.*]] = call i64 @hf_redo_until(ptr %p, i8 58, i64 %n)
; CHECK: %[[M:.*]] = call ptr @hf_redo_read(ptr %p, i64 %{{.*}})
; CHECK-NEXT: call ptr @memchr(ptr %[[M]], i32 58, i64 %n)
; CHECK: ret ptr %[[RESULT]]
  store i64 1, ptr %p
  %r = tail call ptr @strchr(ptr %p, i32 58)
  %s = call ptr @memchr(ptr %p, i32 58, i64 %n)
  ret ptr %r
}

; How far a function reads is found out before its places are.
define i32 @compares(ptr %p, ptr %q, i64 %n) #0 {
; CHECK-LABEL: define internal i32 @compares.hf_body(
; CHECK: %[[A:.*]] = call ptr @hf_redo_read(ptr %p, i64
; CHECK-NEXT: %[[B:.*]] = call ptr @hf_redo_read(ptr %q, i64
; CHECK-NEXT: call i32 @memcmp(ptr %[[A]], ptr %[[B]], i64 %n)
; CHECK: call i64 @hf_redo_until(ptr %p, i8 0, i64 %n)
; CHECK: call i64 @hf_redo_until(ptr %q, i8 0, i64 %n)
; CHECK: %[[C:.*]] = call ptr @hf_redo_read(ptr %p, i64
; CHECK-NEXT: %[[D:.*]] = call ptr @hf_redo_read(ptr %q, i64
; CHECK-NEXT: call i32 @strncmp(ptr %[[C]], ptr %[[D]], i64 %n)
  store i64 1, ptr %p
  %c = call i32 @memcmp(ptr %p, ptr %q, i64 %n)
  %d = call i32 @strncmp(ptr %p, ptr %q, i64 %n)
  %e = add i32 %c, %d
  ret i32 %e
}

define ptr @strings(ptr %p, ptr %q, i64 %n) #0 {
; CHECK-LABEL: define internal ptr @strings.hf_body(
; CHECK: %[[S:.*]] = call ptr @hf_redo_read_string(ptr %q)
; CHECK-NEXT: %[[L:.*]] = call i64 @strlen(ptr %[[S]])
; CHECK-NEXT: %[[B:.*]] = add i64 %[[L]], 1
; CHECK-NEXT: call void @hf_redo_copy(ptr %p, ptr %q, i64 %[[B]])
; CHECK: %[[U:.*]] = call i64 @hf_redo_until(ptr %q, i8 0, i64 %n)
; CHECK-NEXT: call void @hf_redo_copy(ptr %p, ptr %q, i64 %[[U]])
; CHECK: call void @hf_redo_fill(ptr %{{.*}}, i32 0, i64 %{{.*}})
; CHECK: %[[T:.*]] = call ptr @hf_redo_read_string(ptr %q)
; CHECK-NEXT: call ptr @strcpy(ptr %local, ptr %[[T]])
; CHECK: %[[V:.*]] = add i64 %{{.*}}, 1
; CHECK: call void @hf_redo_copy(ptr %p, ptr %q, i64 %[[V]])
; CHECK-NEXT: %[[W:.*]] = sub i64 %[[V]], 1
; CHECK-NEXT: %[[X:.*]] = getelementptr i8, ptr %p, i64 %[[W]]
; CHECK-NEXT: ret ptr %[[X]]
  %local = alloca [64 x i8]
  %a = call ptr @strcpy(ptr %p, ptr %q)
  %b = call ptr @strncpy(ptr %p, ptr %q, i64 %n)
  %c = call ptr @strcpy(ptr %local, ptr %q)
  %d = call ptr @stpcpy(ptr %p, ptr %q)
  ret ptr %d
}

define ptr @appends(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal ptr @appends.hf_body(
; CHECK: %[[S:.*]] = call ptr @hf_redo_read_string(ptr %p)
; CHECK-NEXT: %[[L:.*]] = call i64 @strlen(ptr %[[S]])
; CHECK-NEXT: %[[T:.*]] = call ptr @hf_redo_read_string(ptr %q)
; CHECK-NEXT: %[[M:.*]] = call i64 @strlen(ptr %[[T]])
; CHECK-NEXT: %[[B:.*]] = add i64 %[[M]], 1
; CHECK-NEXT: %[[E:.*]] = getelementptr i8, ptr %p, i64 %[[L]]
; CHECK-NEXT: call void @hf_redo_copy(ptr %[[E]], ptr %q, i64 %[[B]])
; CHECK-NEXT: %[[U:.*]] = call ptr @hf_redo_read_string(ptr %q)
; CHECK-NEXT: call ptr @hf_c_strcat(ptr %local, ptr %[[U]])
; CHECK-NEXT: ret ptr %p
  %local = alloca [64 x i8]
  store i8 0, ptr %local
  %a = call ptr @strcat(ptr %p, ptr %q)
  %b = call ptr @strcat(ptr %local, ptr %q)
  ret ptr %a
}

define ptr @fortified(ptr %p, ptr %q, i64 %n, i64 %room) #0 {
; CHECK-LABEL: define internal ptr @fortified.hf_body(
; CHECK: %[[TOO:.*]] = icmp ugt i64 %n, %room
; CHECK: br i1 %[[TOO]]
; CHECK: call void @__chk_fail()
; CHECK: call void @hf_redo_copy(ptr %p, ptr %q, i64 %n)
; CHECK-NEXT: ret ptr %p
  %a = call ptr @__memcpy_chk(ptr %p, ptr %q, i64 %n, i64 %room)
  ret ptr %a
}

; A second result goes by way of a local, an object that is changed as well.
define double @second_result(ptr %p) #0 {
; CHECK-LABEL: define internal double @second_result.hf_body(
; CHECK: %x = call double @hf_c_frexp(double 1.000000e+00, ptr %[[L:.*]])
; CHECK-NEXT: call void @hf_redo_put(ptr %p, ptr %[[L]], i64 4)
; CHECK: %[[R:.*]] = call ptr @hf_redo_read(ptr %p, i64 16)
; CHECK-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr align 16 %[[M:.*]], ptr align 1 %[[R]], i64 16, i1 false)
; CHECK-NEXT: call i64 @_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(ptr %[[M]], i64 9)
; CHECK-NEXT: call void @hf_redo_put(ptr %p, ptr %[[M]], i64 16)
  %x = call double @frexp(double 1.0, ptr %p)
  %y = call i64 @_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(ptr %p, i64 9)
  ret double %x
}

; Where a number ends is told of the text, not of its copy; whoever does not ask is not told.
define i64 @numbers(ptr %p, ptr %end) #0 {
; CHECK-LABEL: define internal i64 @numbers.hf_body(
; CHECK: %[[Q:.*]] = call ptr @hf_redo_read_string(ptr %p)
; CHECK-NEXT: %x = call i64 @hf_c_strtol(ptr %[[Q]], ptr %[[L:.*]], i32 10)
; CHECK-NEXT: %[[E:.*]] = load i64, ptr %[[L]]
; CHECK-NEXT: %[[W:.*]] = ptrtoint ptr %[[Q]] to i64
; CHECK-NEXT: %[[D:.*]] = sub i64 %[[E]], %[[W]]
; CHECK-NEXT: %[[AT:.*]] = getelementptr i8, ptr %p, i64 %[[D]]
; CHECK-NEXT: %[[ASKED:.*]] = icmp ne ptr %end, null
; CHECK-NEXT: br i1 %[[ASKED]]
; CHECK: %[[TO:.*]] = call ptr @hf_redo_write(ptr %end, i64 8)
; CHECK-NEXT: store ptr %[[AT]], ptr %[[TO]], align 8
; CHECK: %[[R:.*]] = call ptr @hf_redo_read_string(ptr %p)
; CHECK-NEXT: call i64 @hf_c_strtol(ptr %[[R]], ptr null, i32 10)
  store i64 1, ptr %p
  %x = call i64 @strtol(ptr %p, ptr %end, i32 10)
  %y = call i64 @strtol(ptr %p, ptr null, i32 10)
  ret i64 %x
}

; Aggregates that calls copy.
define i64 @aggregates(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal i64 @aggregates.hf_body(
; CHECK: %[[R:.*]] = call ptr @hf_redo_read(ptr %q, i64 32)
; CHECK-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr align 16 %[[C:.*]], ptr align 1 %[[R]], i64 32, i1 false)
; CHECK-NEXT: call i64 @digest(ptr byval([4 x i64]) align 16 %[[C]])
; CHECK-NEXT: call void @spread(ptr sret([4 x i64]) align 8 %[[S:.*]], i64 1)
; CHECK-NEXT: call void @hf_redo_put(ptr %p, ptr %[[S]], i64 32)
  store i64 1, ptr %p
  %x = tail call i64 @digest(ptr byval(%big) align 16 %q)
  call void @spread(ptr sret(%big) align 8 %p, i64 1)
  ret i64 %x
}

declare ptr @hf_alloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare ptr @strchr(ptr, i32)
declare ptr @memchr(ptr, i32, i64)
declare i32 @memcmp(ptr, ptr, i64)
declare i32 @strncmp(ptr, ptr, i64)
declare ptr @strcpy(ptr, ptr)
declare ptr @stpcpy(ptr, ptr)
declare ptr @strcat(ptr, ptr)
declare ptr @strncpy(ptr, ptr, i64)
declare ptr @__memcpy_chk(ptr, ptr, i64, i64)
declare i64 @strtol(ptr, ptr, i32)
declare double @frexp(double, ptr)
declare i64 @_ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(ptr, i64)
declare i64 @digest(ptr byval(%big) align 16) #1
declare void @spread(ptr sret(%big) align 8, i64) #1
attributes #0 = { noinline "holdfast.txfunc" }
attributes #1 = { "holdfast.pure" }
