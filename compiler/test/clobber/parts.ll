; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A build of clobber_log alone has no v_log: neither arguments nor preserved bytes are recorded, and
; the inputs that are overwritten are logged as ever.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-parts=clobberlog-only %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument %s | FileCheck %s --check-prefix=ALL

define void @add(ptr %p, ptr %given) #0 {
; CHECK: @add.hf_clobber = internal constant { i32, i32, {{.*}} } { i32 {{[0-9]+}}, i32 0,
; CHECK-LABEL: define internal void @add.hf_body(
; CHECK-NOT: hf_vlog_preserve
; CHECK: %amount = load i64, ptr %given
; CHECK: call void @hf_clobber_log(ptr %p, i64 8)
; CHECK: ret void
; ALL-LABEL: define internal void @add.hf_body(
; ALL: call ptr @hf_vlog_preserve(ptr %given, i64 8)
; ALL: call void @hf_clobber_log(ptr %p, i64 8)
  %kept = call ptr @hf_vlog_preserve(ptr %given, i64 8)
  %amount = load i64, ptr %kept
  %old = load i64, ptr %p
  %new = add i64 %old, %amount
  store i64 %new, ptr %p
  ret void
}

declare ptr @hf_vlog_preserve(ptr, i64)
attributes #0 = { noinline "holdfast.txfunc" }
