; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; From LLVM 20 on, clang's type metadata has a type for each type of pointer, under "any pointer". Copies of such
; are copies of pointers; those of numbers are checked.
; RUN: %hf_opt -passes=holdfast-relocate %s | FileCheck %s

define void @links(ptr %to, ptr %from, i64 %bytes) {
; CHECK-LABEL: define void @links(
; CHECK: call void @hf_relocated_copy_pointers(
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 %bytes, i1 false), !tbaa !0
  ret void
}

define void @numbers(ptr %to, ptr %from, i64 %bytes) {
; CHECK-LABEL: define void @numbers(
; CHECK-NOT: copy_pointers
; CHECK: call void @hf_relocated_copy(
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 %bytes, i1 false), !tbaa !5
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

!0 = !{!1, !1, i64 0}
!1 = !{!"p1 _ZTS4node", !2, i64 0}
!2 = !{!"any pointer", !3, i64 0}
!3 = !{!"omnipotent char", !4, i64 0}
!4 = !{!"Simple C++ TBAA"}
!5 = !{!6, !6, i64 0}
!6 = !{!"long", !3, i64 0}
