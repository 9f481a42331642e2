; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engine redo looks up each lane that the processor's gathers and masked loads read, and buffers each that its
; scatters and masked stores write, wherever the base is. What is not known to be one of these is refused.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s | FileCheck %s
; RUN: sed 's/^;BAD //' %s > %t.ll && not %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %t.ll -o /dev/null 2>&1 | FileCheck %s --check-prefix=BAD

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

define <4 x i64> @from_null(ptr %p, <4 x i64> %at) #0 {
; CHECK-LABEL: define internal <4 x i64> @from_null.hf_body(
; CHECK-NOT: llvm.x86
; CHECK: %[[AT:.*]] = extractelement <4 x ptr> %{{.*}}, i64 3
; CHECK: call ptr @hf_redo_read(ptr %[[AT]], i64 8)
; CHECK: ret <4 x i64>
  store i64 1, ptr %p
  %g = call <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64> zeroinitializer, ptr null, <4 x i64> %at, <4 x i64> splat (i64 -1), i8 1)
  ret <4 x i64> %g
}
; Two indices for four elements: the others become zero.
define <4 x float> @fewer(ptr %p, <2 x i64> %at, <4 x float> %mask) #0 {
; CHECK-LABEL: define internal <4 x float> @fewer.hf_body(
; CHECK-NOT: llvm.x86
; CHECK: call ptr @hf_redo_read(ptr %{{.*}}, i64 4)
; CHECK: shufflevector <2 x float> %{{.*}}, <2 x float> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 2>
  store i64 1, ptr %p
  %g = call <4 x float> @llvm.x86.avx2.gather.q.ps(<4 x float> splat (float 1.0), ptr %p, <2 x i64> %at, <4 x float> %mask, i8 4)
  ret <4 x float> %g
}
define <4 x i64> @masked(ptr %p, <4 x i64> %mask) #0 {
; CHECK-LABEL: define internal <4 x i64> @masked.hf_body(
; CHECK-NOT: llvm.x86
; CHECK: call ptr @hf_redo_read(ptr %{{.*}}, i64 8)
  store i64 1, ptr %p
  %v = call <4 x i64> @llvm.x86.avx2.maskload.q.256(ptr %p, <4 x i64> %mask)
  ret <4 x i64> %v
}
define <32 x i8> @across_lines(ptr %p) #0 {
; CHECK-LABEL: define internal <32 x i8> @across_lines.hf_body(
; CHECK: call ptr @hf_redo_read(ptr %p, i64 32)
; CHECK-NOT: llvm.x86
  store i64 1, ptr %p
  %v = call <32 x i8> @llvm.x86.avx.ldu.dq.256(ptr %p)
  ret <32 x i8> %v
}
define void @scatter(<8 x i64> %at, <8 x i64> %v, <8 x i1> %mask) #0 {
; CHECK-LABEL: define internal void @scatter.hf_body(
; CHECK-NOT: llvm.x86
; CHECK: call {{.*}} @hf_redo_{{put|write}}(ptr %{{.*}}, {{.*}}i64 8)
  call void @llvm.x86.avx512.mask.scatter.qpq.512(ptr null, <8 x i1> %mask, <8 x i64> %at, <8 x i64> %v, i32 1)
  ret void
}

;BAD define <8 x double> @unknown(ptr %p, <8 x i32> %at) #0 {
;BAD   %g = call <8 x double> @llvm.x86.avx512.gather.dpd.512(<8 x double> zeroinitializer, ptr null, <8 x i32> %at, i8 -1, i32 1)
;BAD   store <8 x double> %g, ptr %p
;BAD   ret <8 x double> %g
;BAD }
;BAD declare <8 x double> @llvm.x86.avx512.gather.dpd.512(<8 x double>, ptr, <8 x i32>, i8, i32 immarg)
; BAD: error: {{.*}}call of 'llvm.x86.avx512.gather.dpd.512', which may read any memory: the section keeps its stores elsewhere until its end

declare <4 x i64> @llvm.x86.avx2.gather.q.q.256(<4 x i64>, ptr, <4 x i64>, <4 x i64>, i8 immarg)
declare <4 x float> @llvm.x86.avx2.gather.q.ps(<4 x float>, ptr, <2 x i64>, <4 x float>, i8 immarg)
declare <4 x i64> @llvm.x86.avx2.maskload.q.256(ptr, <4 x i64>)
declare <32 x i8> @llvm.x86.avx.ldu.dq.256(ptr)
declare void @llvm.x86.avx512.mask.scatter.qpq.512(ptr, <8 x i1>, <8 x i64>, <8 x i64>, i32 immarg)
attributes #0 = { noinline "holdfast.txfunc" }
