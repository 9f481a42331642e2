; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Steps in line, where the medium keeps order: the entry, the program counter, the store, and no call.
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=justdo %s | FileCheck %s --check-prefixes=CHECK,JUSTDO
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=ido %s | FileCheck %s --check-prefixes=CHECK,IDO

; CHECK: @hf_justdo_steps = external thread_local(initialexec) global

; What was saved for the step is noted on the way of the call alone. The address is of the pool if a whole word is there.
; CHECK-LABEL: define void @adds(
; CHECK: br i1 {{.*}}, label %in_line, label %by_call, !prof
; JUSTDO: by_call:
; JUSTDO: call void @hf_justdo_store(ptr {{.*}}, i64 {{.*}}, i32 4, i32 1)
; JUSTDO-NEXT: br label %stepped
; JUSTDO: in_line:
; JUSTDO: %[[WHERE:.*]] = or i64 {{.*}}, 73183493944770560
; JUSTDO: %[[OTHER:.*]] = lshr i64 {{.*}}, 63
; JUSTDO: store i64 %[[WHERE]], ptr
; JUSTDO: store i64 %{{.*}}, ptr
; JUSTDO: fence syncscope("singlethread") seq_cst
; JUSTDO: store atomic i64 %{{.*}}, ptr %{{.*}} release, align 8
; JUSTDO: fence syncscope("singlethread") seq_cst
; JUSTDO: store atomic i32 %{{.*}}, ptr %{{.*}} release, align 4
; IDO: in_line:
; IDO-NOT: store atomic
; CHECK: br label %stepped
; CHECK: }
define void @adds(ptr %p) "holdfast.txfunc" {
  %x = load i32, ptr %p
  %y = add i32 %x, 1
  store i32 %y, ptr %p, align 4
  ret void
}
