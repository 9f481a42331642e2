; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engine undo: every write that may reach PM is logged, inputs or not; fresh memory is noted.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %s | FileCheck %s

define void @output_only(ptr %p) #0 {
; CHECK-LABEL: define void @output_only(
; CHECK: %[[OPENED:.*]] = call i32 @hf_undo_begin(ptr @output_only.hf_undo,
; CHECK: call void @output_only.hf_body(
; CHECK: call void @hf_undo_commit()
; CHECK-LABEL: define internal void @output_only.hf_body(
; CHECK: call void @hf_undo_log(ptr %p, i64 8)
; CHECK: store i64 7, ptr %p
  store i64 7, ptr %p
  ret void
}

; The second write's old bytes are in the log with the first's.
define void @twice(ptr %p) #0 {
; CHECK-LABEL: define internal void @twice.hf_body(
; CHECK: call void @hf_undo_log(ptr %p, i64 8)
; CHECK-NOT: hf_undo_log
; CHECK: ret void
  store i64 7, ptr %p
  store i64 8, ptr %p
  ret void
}

define void @fresh() #0 {
; CHECK-LABEL: define internal void @fresh.hf_body(
; CHECK-NOT: hf_undo_log
; CHECK: call void @hf_undo_note(ptr %n, i64 8)
  %n = call ptr @hf_alloc(i64 16)
  store i64 7, ptr %n
  ret void
}

declare ptr @hf_alloc(i64)
attributes #0 = { noinline "holdfast.txfunc" }
