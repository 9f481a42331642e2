; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Link-time optimisation takes from the runtime's archive what the sections of engine redo will call.
; RUN: %hf_opt -passes=holdfast-defer -holdfast-engine=redo %s | FileCheck %s
; CHECK: call void (...) @holdfast_error_link_with_load_pass_plugin(
; CHECK-SAME: @hf_redo_begin
; CHECK-SAME: @hf_redo_note
; CHECK-SAME: @hf_c_overwrite
; CHECK-SAME: @hf_redo_write
; CHECK-SAME: @hf_redo_put
; CHECK-SAME: @hf_redo_copy
; CHECK-SAME: @hf_redo_fill
; CHECK-SAME: @hf_redo_read
; CHECK-SAME: @hf_redo_read_string
; CHECK-SAME: @hf_redo_commit_or_throw
; CHECK-SAME: @hf_redo_abort
; CHECK-NOT: hf_redo_log

define void @f(ptr %p) #0 {
  store i64 1, ptr %p
  ret void
}
attributes #0 = { noinline "holdfast.txfunc" }
