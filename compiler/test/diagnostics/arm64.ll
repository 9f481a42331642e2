; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What only ARM64 has: vectors of a length that the compiler does not know, a machine instruction that draws random
; numbers, the register of floating-point modes. Engine redo takes sections back, and so lets them draw.
; RUN: split-file %s %t
; RUN: not %hf_opt -passes=holdfast-instrument %t/stores.ll 2>&1 | FileCheck %s --check-prefix=LENGTH
; RUN: not %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %t/stores.ll 2>&1 | FileCheck %s --check-prefix=LENGTH
; RUN: not %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %t/masked.ll 2>&1 | FileCheck %s --check-prefix=LENGTH
; RUN: not %hf_opt -passes=holdfast-instrument %t/draws.ll 2>&1 | FileCheck %s --check-prefix=DRAWS
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %t/draws.ll -o /dev/null
; RUN: not %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %t/modes.ll 2>&1 | FileCheck %s --check-prefix=MODES

; LENGTH: error: {{.*}}vector whose length only the processor knows (SVE)
; DRAWS: error: {{.*}}nondeterministic machine instruction (llvm.aarch64.rndr)
; MODES: error: {{.*}}access of the floating-point environment

;--- stores.ll
define void @stores(ptr %p) #0 {
  store <vscale x 2 x i64> zeroinitializer, ptr %p
  ret void
}
attributes #0 = { noinline nounwind "holdfast.txfunc" }

;--- masked.ll
declare void @llvm.masked.store.nxv2i64.p0(<vscale x 2 x i64>, ptr, i32, <vscale x 2 x i1>)
define void @stores_by_mask(ptr %p) #0 {
  call void @llvm.masked.store.nxv2i64.p0(<vscale x 2 x i64> zeroinitializer, ptr %p, i32 8, <vscale x 2 x i1> zeroinitializer)
  ret void
}
attributes #0 = { noinline nounwind "holdfast.txfunc" }

;--- draws.ll
declare { i64, i1 } @llvm.aarch64.rndr()
define void @draws(ptr %p) #0 {
  %drawn = call { i64, i1 } @llvm.aarch64.rndr()
  %number = extractvalue { i64, i1 } %drawn, 0
  store i64 %number, ptr %p
  ret void
}
attributes #0 = { noinline nounwind "holdfast.txfunc" }

;--- modes.ll
declare i64 @llvm.aarch64.get.fpcr()
define void @looks_at_modes(ptr %p) #0 {
  %modes = call i64 @llvm.aarch64.get.fpcr()
  store i64 %modes, ptr %p
  ret void
}
attributes #0 = { noinline nounwind "holdfast.txfunc" }
