; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Stores that name a member of which the program has told are lazy; none else is, and no call that tells is left.
; RUN: %hf_opt -passes=holdfast-lazy-members -pass-remarks=holdfast %s 2>%t | FileCheck %s --implicit-check-not=hf_derived_member
; RUN: FileCheck %s --check-prefix=SAID --implicit-check-not=remark <%t

%node = type { ptr, ptr, ptr, i64 } ; left, right, parent, height
%other = type { ptr, ptr, ptr, i64 }

define void @tells(ptr %n) {
; CHECK-LABEL: define void @tells(
; CHECK-NOT: call
; CHECK: ret void
  %next = getelementptr inbounds %node, ptr %n, i64 1
  %parent = getelementptr inbounds i8, ptr %n, i64 16
  call void @hf_derived_member(ptr %next, ptr %parent, i64 8)
  %height = getelementptr inbounds i8, ptr %n, i64 24
  call void @hf_derived_member(ptr %next, ptr %height, i64 8)
  ret void
}

define void @named(ptr %n, ptr %p) {
; CHECK-LABEL: define void @named(
; CHECK: call void @hf_lazy(ptr %parent, i64 8)
; CHECK-NEXT: store ptr %p, ptr %parent
; CHECK: call void @hf_lazy(ptr %height, i64 8)
; CHECK-NEXT: store i64 1, ptr %height
; SAID: remark: {{.*}}is lazy: hf::derived finds the member again
; SAID: remark: {{.*}}is lazy: hf::derived finds the member again
  %parent = getelementptr inbounds %node, ptr %n, i32 0, i32 2
  store ptr %p, ptr %parent
  %height = getelementptr inbounds %node, ptr %n, i32 0, i32 3
  store i64 1, ptr %height
  ret void
}

; Clang names a member by an address of its own: one that an index is folded into has been changed since.
define void @folded(ptr %n, i64 %i) {
; CHECK-LABEL: define void @folded(
; CHECK-NOT: hf_lazy
; CHECK: ret void
  %height = getelementptr inbounds %node, ptr %n, i64 %i, i32 3
  store i64 1, ptr %height
  ret void
}

; Another member, the same place in another type, a place of no type, half of the member, and of another object.
define void @others(ptr %n, ptr %p) {
; CHECK-LABEL: define void @others(
; CHECK-NOT: hf_lazy
; CHECK: ret void
  %right = getelementptr inbounds %node, ptr %n, i32 0, i32 1
  store ptr %p, ptr %right
  %same = getelementptr inbounds %other, ptr %n, i32 0, i32 2
  store ptr %p, ptr %same
  %bytes = getelementptr inbounds i8, ptr %n, i64 16
  store ptr %p, ptr %bytes
  %height = getelementptr inbounds %node, ptr %n, i32 0, i32 3
  store i32 1, ptr %height
  %behind = getelementptr inbounds %node, ptr %n, i64 1, i32 2
  store ptr %p, ptr %behind
  ret void
}

declare void @hf_derived_member(ptr, ptr, i64)
