; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What is read by indices, or at an address that is a number, may be anything, whatever the base is: null, a
; constant or a local. Each write behind it must be logged.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-batch=0 -holdfast-engine=undo %s | FileCheck %s --check-prefix=UNDO

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]

define void @from_null(ptr %p, <4 x i64> %at) #0 {
; CHECK-LABEL: define internal void @from_null.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 32)
  %g = call <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64> zeroinitializer, ptr null, <4 x i64> %at, <4 x i64> splat (i64 -1), i8 1)
  store <4 x i64> %g, ptr %p
  ret void
}
define void @from_table(ptr %p, <4 x i64> %at) #0 {
; CHECK-LABEL: define internal void @from_table.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 32)
  %g = call <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64> zeroinitializer, ptr @table, <4 x i64> %at, <4 x i64> splat (i64 -1), i8 8)
  store <4 x i64> %g, ptr %p
  ret void
}
define void @from_local(ptr %p, <4 x i64> %at) #0 {
; CHECK-LABEL: define internal void @from_local.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 32)
  %local = alloca i64
  %g = call <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64> zeroinitializer, ptr %local, <4 x i64> %at, <4 x i64> splat (i64 -1), i8 1)
  store <4 x i64> %g, ptr %p
  ret void
}
define void @wider(ptr %p, <8 x i64> %at) #0 {
; CHECK-LABEL: define internal void @wider.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 64)
  %g = call <8 x i64> @llvm.x86.avx512.mask.gather.qpq.512(<8 x i64> zeroinitializer, ptr null, <8 x i64> %at, <8 x i1> splat (i1 true), i32 1)
  store <8 x i64> %g, ptr %p
  ret void
}

; Two addresses that are computed from null may be one.
define void @numbers(i64 %x, i64 %y) #0 {
; CHECK-LABEL: define internal void @numbers.hf_body(
; CHECK: %b = inttoptr i64 %y to ptr
; CHECK: call void @hf_clobber_log(ptr %b, i64 8)
; UNDO-LABEL: define internal void @numbers.hf_body(
; UNDO: call void @hf_undo_log(ptr %b, i64 8)
  %a = getelementptr i8, ptr null, i64 %x
  %b = getelementptr i8, ptr null, i64 %y
  %v = load i64, ptr %a
  %w = add i64 %v, 1
  store i64 %w, ptr %b
  ret void
}
define void @one_number(ptr %p) #0 {
; CHECK-LABEL: define internal void @one_number.hf_body(
; CHECK: call void @hf_clobber_log(ptr inttoptr (i64 95726742126592 to ptr), i64 8)
  %v = load i64, ptr %p
  store i64 %v, ptr inttoptr (i64 95726742126592 to ptr)
  ret void
}
; A choice between a constant and null, and a distance from there.
define void @table_or_number(ptr %p, i1 %c, i64 %x) #0 {
; CHECK-LABEL: define internal void @table_or_number.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
  %from = select i1 %c, ptr @table, ptr null
  %a = getelementptr i8, ptr %from, i64 %x
  %v = load i64, ptr %a
  store i64 %v, ptr %p
  ret void
}

; Within an object, too: the language knows no such address, and what it makes of it is found.
define void @table_or_address(ptr %p, i1 %c, i64 %x) #0 {
; CHECK-LABEL: define internal void @table_or_address.hf_body(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
  %from = select i1 %c, ptr @table, ptr null
  %a = getelementptr inbounds i64, ptr %from, i64 %x
  %v = load i64, ptr %a
  store i64 %v, ptr %p
  ret void
}

; Scattered and masked stores are logged lane by lane, where they lead.
define void @scatter(<8 x i64> %at, <8 x i64> %v, <8 x i1> %mask) #0 {
; CHECK-LABEL: define internal void @scatter.hf_body(
; CHECK-NOT: llvm.x86
; CHECK: %[[AT:.*]] = extractelement <8 x ptr> %{{.*}}, i64 0
; UNDO-LABEL: define internal void @scatter.hf_body(
; UNDO: %[[AT:.*]] = extractelement <8 x ptr> %{{.*}}, i64 0
; UNDO: call void @hf_undo_log(ptr %[[AT]], i64 8)
; UNDO-NOT: llvm.x86
  call void @llvm.x86.avx512.mask.scatter.qpq.512(ptr null, <8 x i1> %mask, <8 x i64> %at, <8 x i64> %v, i32 1)
  ret void
}
define void @masked(ptr %p, <4 x i64> %mask, <4 x i64> %v) #0 {
; UNDO-LABEL: define internal void @masked.hf_body(
; UNDO-NOT: llvm.x86
; UNDO: call void @hf_undo_log(ptr %{{.*}}, i64 8)
  call void @llvm.x86.avx2.maskstore.q.256(ptr %p, <4 x i64> %mask, <4 x i64> %v)
  ret void
}
define void @bytes(ptr %p, <16 x i8> %v, <16 x i8> %mask) #0 {
; UNDO-LABEL: define internal void @bytes.hf_body(
; UNDO-NOT: llvm.x86
; UNDO: call void @hf_undo_log(ptr %{{.*}}, i64 1)
  call void @llvm.x86.sse2.maskmov.dqu(<16 x i8> %v, <16 x i8> %mask, ptr %p)
  ret void
}

declare <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64>, ptr, <4 x i64>, <4 x i64>, i8 immarg)
declare <8 x i64> @llvm.x86.avx512.mask.gather.qpq.512(<8 x i64>, ptr, <8 x i64>, <8 x i1>, i32 immarg)
declare void @llvm.x86.avx512.mask.scatter.qpq.512(ptr, <8 x i1>, <8 x i64>, <8 x i64>, i32 immarg)
declare void @llvm.x86.avx2.maskstore.q.256(ptr, <4 x i64>, <4 x i64>)
declare void @llvm.x86.sse2.maskmov.dqu(<16 x i8>, <16 x i8>, ptr)
attributes #0 = { noinline "holdfast.txfunc" }
