; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Ranges, by intrinsic or by the C library: sources before, destinations after, when any byte is
; watched.
; RUN: %hf_opt -passes=holdfast-trace,verify %s | FileCheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @copy(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define void @copy(
; CHECK: %[[INT:.*]] = ptrtoint ptr %from to i64
; CHECK-NEXT: %[[OFFSET:.*]] = sub i64 %[[INT]], %{{.*}}
; CHECK-NEXT: %[[INSIDE:.*]] = icmp ult i64 %[[OFFSET]], %{{.*}}
; CHECK-NEXT: %[[AHEAD:.*]] = sub i64 0, %[[OFFSET]]
; CHECK-NEXT: %[[REACHES:.*]] = icmp ult i64 %[[AHEAD]], %n
; CHECK-NEXT: or i1 %[[INSIDE]], %[[REACHES]]
; CHECK: call void @hf_trace_load(ptr %from, i64 %n)
; CHECK: call void @llvm.memcpy
; CHECK: call void @hf_trace_store(ptr %to, i64 %n)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
}

define void @move(ptr %to, ptr %from) {
; CHECK-LABEL: define void @move(
; CHECK: call void @hf_trace_load(ptr %from, i64 24)
; CHECK: call void @llvm.memmove
; CHECK: call void @hf_trace_store(ptr %to, i64 24)
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 24, i1 false)
  ret void
}

define void @set(ptr %to, i32 %n) {
; CHECK-LABEL: define void @set(
; CHECK-NOT: hf_trace_load
; CHECK: call void @llvm.memset
; CHECK: %[[N:.*]] = zext i32 %n to i64
; CHECK: call void @hf_trace_store(ptr %to, i64 %[[N]])
  call void @llvm.memset.p0.i32(ptr %to, i8 0, i32 %n, i1 false)
  ret void
}

define void @nothing(ptr %to, ptr %from) {
; CHECK-LABEL: define void @nothing(
; CHECK-NOT: hf_trace
; CHECK: ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 0, i1 false)
  ret void
}

define ptr @library_copy(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define ptr @library_copy(
; CHECK: call void @hf_trace_load(ptr %from, i64 %n)
; CHECK: call ptr @memcpy(
; CHECK: call void @hf_trace_store(ptr %to, i64 %n)
  %r = tail call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret ptr %r
}

; The report must come after the call: no musttail then.
define ptr @musttail(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define ptr @musttail(
; CHECK: {{^  }}%r = call ptr @memcpy(
; CHECK: call void @hf_trace_store(ptr %to, i64 %n)
; CHECK: ret ptr %r
  %r = musttail call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret ptr %r
}

; An unwind edge does not lose the report of the normal one.
define void @invoked(ptr %to, ptr %from, i64 %n) personality ptr @__gxx_personality_v0 {
; CHECK-LABEL: define void @invoked(
; CHECK: invoke ptr @memcpy(
; CHECK-NEXT: to label %[[NORMAL:.*]] unwind label %caught
; CHECK: [[NORMAL]]:
; CHECK: call void @hf_trace_store(ptr %to, i64 %n)
  %r = invoke ptr @memcpy(ptr %to, ptr %from, i64 %n) to label %done unwind label %caught
caught:
  %e = landingpad { ptr, i32 } cleanup
  br label %done
done:
  ret void
}

define i32 @compare(ptr %a, ptr %b) {
; CHECK-LABEL: define i32 @compare(
; CHECK: call void @hf_trace_load(ptr %a, i64 16)
; CHECK: call void @hf_trace_load(ptr %b, i64 16)
; CHECK: call i32 @bcmp(
; CHECK-NOT: call void
; CHECK: ret i32
  %r = call i32 @bcmp(ptr %a, ptr %b, i64 16)
  ret i32 %r
}

; A string is read up to its end, which only its reported bytes tell.
define i64 @length(ptr %s) {
; CHECK-LABEL: define i64 @length(
; CHECK: call void @hf_trace_string(ptr %s, i64 -1)
; CHECK-NEXT: call i64 @strlen(
  %n = call i64 @strlen(ptr %s)
  ret i64 %n
}

define void @string_copy(ptr %to) {
; CHECK-LABEL: define void @string_copy(
; CHECK-NEXT: call ptr @strcpy(ptr %to, ptr @text)
; CHECK: %[[LENGTH:.*]] = call i64 @strlen(ptr %to)
; CHECK: %[[BYTES:.*]] = add i64 %[[LENGTH]], 1
; CHECK: call void @hf_trace_store(ptr %to, i64 %[[BYTES]])
  call ptr @strcpy(ptr %to, ptr @text)
  ret void
}

; The system reads what is written to a file.
define void @out(ptr %p) {
; CHECK-LABEL: define void @out(
; CHECK: call void @hf_trace_load(ptr %p, i64 100)
; CHECK: call i64 @write(
  call i64 @write(i32 1, ptr %p, i64 100)
  ret void
}

; A by-value argument is copied by the call.
define void @by_value(ptr %p) {
; CHECK-LABEL: define void @by_value(
; CHECK: call void @hf_trace_load(ptr %p, i64 24)
; CHECK: call void @take(
  call void @take(ptr byval({ i64, i64, i64 }) %p)
  ret void
}

; CHECK-LABEL: define internal void @hf_trace_string(
; CHECK: call void @hf_trace_load(ptr %{{.*}}, i64 1)
; CHECK: load i8

@text = constant [3 x i8] c"ab\00"
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @bcmp(ptr, ptr, i64)
declare i64 @strlen(ptr)
declare ptr @strcpy(ptr, ptr)
declare i64 @write(i32, ptr, i64)
declare void @take(ptr byval({ i64, i64, i64 }))
declare i32 @__gxx_personality_v0(...)
