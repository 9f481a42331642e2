; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Calls inside a section go to instrumented helpers: txfuncs join, recursion ends, originals stay.
; RUN: %hf_opt -passes=holdfast-instrument %s -o %t
; RUN: FileCheck %s < %t
; RUN: FileCheck %s --check-prefix=ENTRY < %t

; A txfunc called from a section joins it: no begin in between.
define void @outer(ptr %p) #0 {
; CHECK-LABEL: define internal void @outer.hf_body(
; CHECK: call void @inner.hf(ptr %p)
  call void @inner(ptr %p)
  ret void
}
define void @inner(ptr %p) #0 {
; ENTRY-LABEL: define void @inner(
; ENTRY: call i32 @hf_clobber_begin(ptr @inner.hf_clobber,
; ENTRY: call void @inner.hf_body(
  store i64 1, ptr %p
  ret void
}

; A section's own recursion goes to its helper.
define void @recurses(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @recurses.hf_body(
; CHECK: call void @recurses.hf(ptr %p, i64 %m)
  %end = icmp eq i64 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i64 %n, 1
  call void @recurses(ptr %p, i64 %m)
  br label %done
done:
  ret void
}

; The original is for callers outside sections.
define void @helper(ptr %p) {
; ENTRY-LABEL: define void @helper(
; ENTRY-NEXT: store i64 1, ptr %p
; ENTRY-NEXT: ret void
  store i64 1, ptr %p
  ret void
}
define void @uses(ptr %p) #0 {
; CHECK-LABEL: define internal void @uses.hf_body(
; CHECK: call void @helper.hf(ptr %p)
  call void @helper(ptr %p)
  ret void
}

; CHECK-LABEL: define internal void @inner.hf(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK-LABEL: define internal void @recurses.hf(
; CHECK: call void @recurses.hf(
; CHECK-LABEL: define internal void @helper.hf(
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)

attributes #0 = { noinline "holdfast.txfunc" }
