; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What functions promised about memory does not hold any more once they call the runtime.
; RUN: %hf_opt -passes=holdfast-instrument %s | FileCheck %s

; CHECK: define void @f(ptr noundef %p) #[[ENTRY:[0-9]+]]
; CHECK: define internal void @f.hf_body(ptr noundef %p) #[[BODY:[0-9]+]]
; CHECK: call void @g.hf(ptr noundef %p)
; CHECK: define internal void @g.hf(ptr noundef %p) #[[BODY]]
; CHECK-NOT: attributes #[[ENTRY]] = {{.*}}memory(
; CHECK-NOT: attributes #[[BODY]] = {{.*}}{{memory|nosync|willreturn|nofree|mustprogress}}
define void @f(ptr noundef nocapture %p) #0 {
  call void @g(ptr noundef nocapture writeonly %p) #2
  ret void
}
define void @g(ptr noundef nocapture writeonly %p) #1 {
  store i64 1, ptr %p
  ret void
}
attributes #0 = { noinline nosync nofree willreturn mustprogress nounwind memory(argmem: write) "holdfast.txfunc" }
attributes #1 = { noinline nosync nofree willreturn mustprogress nounwind memory(argmem: write) }
attributes #2 = { nosync memory(argmem: write) }
