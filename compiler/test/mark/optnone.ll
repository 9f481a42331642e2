; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; optnone skips optional passes; a persistence pass is none of them.
; RUN: %hf_opt -passes=holdfast-mark,holdfast-instrument %s | FileCheck %s

@text = private unnamed_addr constant [16 x i8] c"holdfast.txfunc\00", section "llvm.metadata"
@llvm.global.annotations = appending global [1 x { ptr, ptr, ptr, i32, ptr }] [{ ptr, ptr, ptr, i32, ptr } { ptr @f, ptr @text, ptr null, i32 1, ptr null }], section "llvm.metadata"

; CHECK: call i32 @hf_clobber_begin(ptr @f.hf_clobber, ptr
; CHECK-LABEL: define internal void @f.hf_body(
; CHECK: call void @hf_clobber_log(
define void @f(ptr %p) #0 {
  %local = alloca ptr
  store ptr %p, ptr %local
  %q = load ptr, ptr %local
  %x = load i64, ptr %q
  store i64 %x, ptr %q
  ret void
}
attributes #0 = { noinline optnone }
